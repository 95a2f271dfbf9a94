/* The parts of a WAL source.  Of lib/wal only: walsrc.c chooses one of the three kinds. */
#ifndef WS_WALSRCPRIV_H
#define WS_WALSRCPRIV_H

#include "walnames.h"
#include "ws/waldir.h"

#define WS_CHUNK      262144u /* the most that one chunk holds */
#define WS_CHUNK_ROOM 16384u  /* before the memory of editable ones */
#define WS_CHUNKS     8u      /* that the memory of editable ones holds: see ws_walsrc_place */

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
	/* Memory of chunks: of one, or, with an editable source, of several behind each other, so that
	 * what the caller holds back of one lies right before the next. */
	uint8_t *mem;
	bool editable;
	size_t at;    /* of the next chunk in mem */
	ws_lsn next;  /* where it starts, if it follows */
	size_t room;  /* of the next chunk, see ws_walchunk */
	bool cluster_known;
	struct ws_cluster cluster;
	bool hist_known;
	struct ws_history hist;
};

/* Segment size and identity from whatever segment is in the directory s->spec.  1 known, 0 no segment yet, -1. */
int ws_srcdir_identify(struct ws_walsrc *s, const struct ws_walnames *l, struct ws_err *err);
int ws_srcdir_open(struct ws_walsrc *s, struct ws_pos start, struct ws_err *err);
int ws_srcfile_open(struct ws_walsrc *s, struct ws_pos start, struct ws_err *err);
int ws_srcstream_open(struct ws_walsrc *s, int fd, struct ws_pos start, struct ws_err *err);

/* Memory for up to n <= WS_CHUNK bytes from lsn on; the same until ws_walsrc_give. */
uint8_t *ws_walsrc_place(struct ws_walsrc *s, ws_lsn lsn, size_t n);
/* *c becomes n bytes, read into ws_walsrc_place(s, lsn, ...). */
void ws_walsrc_give(struct ws_walsrc *s, ws_lsn lsn, ws_tli tli, size_t n, struct ws_walchunk *c);

/* Sets s->hist to the newest timeline that descends from `from` (0: the newest of all). */
int ws_srcroute_choose(struct ws_walsrc *s, const struct ws_walnames *l, ws_tli from, struct ws_err *err);
/* The timeline under whose name a segment is read. */
ws_tli ws_srcroute_tli(const struct ws_walsrc *s, ws_lsn seg);
/* True when a segment of this timeline holds bytes of the route. */
bool ws_srcroute_has(const struct ws_walsrc *s, ws_tli tli, ws_lsn seg);

/* Takes identity and segment size from a segment's first bytes.  -1: they are no segment's, or
 * another cluster's than before; path is for the message. */
int ws_walsrc_identify(struct ws_walsrc *s, const char *path, const uint8_t *p, size_t n, struct ws_err *err);

#endif
