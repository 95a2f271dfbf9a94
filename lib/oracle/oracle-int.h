/* What the files of lib/oracle share. */
#ifndef WS_ORACLE_INT_H
#define WS_ORACLE_INT_H

#include "ws/oracle.h"

/* ---- link.c: the connection to a database's worker ---- */

struct oracle_link {
	char *socket; /* the launcher's */
	ws_oid db;
	int fd; /* of the worker, -1 none */
	struct ws_buf in;
	size_t taken;  /* bytes of in that were dealt with */
	char why[400]; /* why it is not there */
};

/* 1 connected, 0 not there (why), -1 no oracle. */
int oracle_link_open(struct oracle_link *k, struct ws_err *err);
void oracle_link_close(struct oracle_link *k);
/* False: lost (why). */
bool oracle_link_send(struct oracle_link *k, const uint8_t *p, size_t n);
/* The next frame, good until the next call.  1, 0 lost (why), -1 malformed. */
int oracle_link_frame(struct oracle_link *k, struct ws_oracle_frame *f, struct ws_err *err);

/* ---- frame.c ---- */
size_t oracle_frame_begin(struct ws_buf *b, uint8_t type);
void oracle_frame_end(struct ws_buf *b, size_t at);

/* ---- patch.c ---- */

struct oracle_fix {
	size_t frame, at;
	uint32_t type;
	ws_lsn lsn;
	size_t text; /* where its text is, once it is known */
	uint32_t len;
};

/* from with every fix's value replaced by its text, into out. */
int oracle_patch(const struct ws_buf *from, const struct oracle_fix *fix, size_t n,
				 const uint8_t *texts, struct ws_buf *out, struct ws_err *err);

#endif
