/* The parts of a WAL source.  Of lib/wal only: walsrc.c chooses one of the three kinds. */
#ifndef WS_WALSRCPRIV_H
#define WS_WALSRCPRIV_H

#include "walnames.h"
#include "ws/waldir.h"

#define WS_CHUNK      262144u /* the most that one chunk holds */
#define WS_CHUNK_ROOM 16384u  /* before an editable one */

struct ws_walsrc;

struct ws_srcops {
	int (*next)(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err);
	int (*seek)(struct ws_walsrc *s, struct ws_pos to, struct ws_err *err);
	void (*close)(struct ws_walsrc *s);
};

struct ws_walsrc {
	const struct ws_srcops *ops;
	void *impl;
	char *spec;
	uint32_t segsize;
	bool follow;
	bool at_end;
	int fd; /* for ws_walsrc_fd; not owned here */
	uint8_t *buf; /* WS_CHUNK bytes */
	uint8_t *other; /* editable: takes turns with buf */
	uint8_t *mem[2];
	bool cluster_known;
	struct ws_cluster cluster;
	bool hist_known;
	struct ws_history hist;
};

int ws_srcdir_open(struct ws_walsrc *s, struct ws_pos start, struct ws_err *err);
int ws_srcfile_open(struct ws_walsrc *s, struct ws_pos start, struct ws_err *err);
int ws_srcstream_open(struct ws_walsrc *s, int fd, struct ws_pos start, struct ws_err *err);

/* *c becomes the first n bytes of s->buf, which were read from `at`; with an editable source the
 * other buffer is the next to read into. */
void ws_walsrc_give(struct ws_walsrc *s, ws_lsn at, ws_tli tli, size_t n, struct ws_walchunk *c);

/* Takes identity and segment size from a segment's first bytes.  -1: they are no segment's, or
 * another cluster's than before; path is for the message. */
int ws_walsrc_identify(struct ws_walsrc *s, const char *path, const uint8_t *p, size_t n, struct ws_err *err);

#endif
