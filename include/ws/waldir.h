/* WAL directories: one writer appends, any number of readers follow.
 *
 * Segments have PostgreSQL's names; the growing one ends in ".partial", is append-only (its size
 * is its end) and is fsynced and renamed when full.  ws-wal(5) is the specification. */
#ifndef WS_WALDIR_H
#define WS_WALDIR_H

#include "ws/cluster.h"
#include "ws/err.h"

/* ---- writer ---- */
struct ws_walwriter;

struct ws_walwriter_opts {
	uint32_t segsize;
	bool no_sync;   /* tests and benches only */
	int recycle;    /* keep up to this many pruned segments for reuse; 0 none */
};

/* Opens dir (made when absent) and takes its lock (dir/.lock) for life. */
struct ws_walwriter *ws_walwriter_open(const char *dir, const struct ws_walwriter_opts *o, struct ws_err *err);
void ws_walwriter_close(struct ws_walwriter *w);

/* Appends n bytes at (tli, lsn).  The first append sets the position (a segment's start, or the
 * end of an existing .partial; below it the bytes are compared and skipped; a difference is
 * WS_EOPERATOR reason=wal_mismatch).  Every later one must follow.  Crosses segments. */
int ws_walwriter_append(struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                        struct ws_err *err);
/* Makes everything appended durable; afterwards ws_walwriter_synced is ws_walwriter_end. */
int ws_walwriter_sync(struct ws_walwriter *w, struct ws_err *err);
struct ws_pos ws_walwriter_end(const struct ws_walwriter *w);
struct ws_pos ws_walwriter_synced(const struct ws_walwriter *w);
/* Writes a history file, durable. */
int ws_walwriter_history(struct ws_walwriter *w, ws_tli tli, const void *p, size_t n, struct ws_err *err);

/* ---- reader ---- */

/* Any WAL input: a WAL directory, one segment file (also .gz .lz4 .zst), or "-" (a framed WAL
 * stream, ws-wal(5)).  Bytes come in order from the start asked for. */
struct ws_walsrc;

struct ws_walsrc_opts {
	uint32_t segsize; /* 0: found out from the file */
	bool follow;      /* wait for more at the end; false: the end is the end */
};

struct ws_walchunk {
	ws_lsn lsn;
	ws_tli tli;       /* of the file's name */
	const uint8_t *p; /* valid until the next call */
	size_t n;
};

/* spec as above.  start.lsn 0: the oldest byte there.  start.tli 0: the newest timeline that holds
 * start.lsn by the directory's history files.  Reading starts at the page that holds start.lsn
 * (the segment's start when that is smaller work for the source).  A directory without the segment
 * is WS_EOPERATOR reason=wal_missing, or with follow waited for when nothing newer is there. */
struct ws_walsrc *ws_walsrc_open(const char *spec, struct ws_pos start, const struct ws_walsrc_opts *o,
                                 struct ws_err *err);
void ws_walsrc_close(struct ws_walsrc *s);

/* 1: *c has bytes (up to 256 kB, never across a segment).  0: none now (follow) or the end.
 * -1: error.  The chunks follow each other without a gap; a switch of timeline begins a chunk at
 * the start of the fork's segment with the descendant's tli. */
int ws_walsrc_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err);

/* Waits until bytes may be there, timeout_ms passed, or a signal came (ws_tool_signal_fd is part of
 * the wait).  A following source only.  0, or -1 on error. */
int ws_walsrc_wait(struct ws_walsrc *s, int timeout_ms, struct ws_err *err);
/* A descriptor to poll for "more may be there" (inotify, or the stream itself); -1 when none. */
int ws_walsrc_fd(struct ws_walsrc *s);

/* Goes to another position; the next chunk starts at the page that holds it. */
int ws_walsrc_seek(struct ws_walsrc *s, struct ws_pos to, struct ws_err *err);

/* True when a not-following source, or a stream, has ended in order (explicit end frame). */
bool ws_walsrc_at_end(const struct ws_walsrc *s);
uint32_t ws_walsrc_segsize(const struct ws_walsrc *s);

/* ---- framed WAL stream, writing side ---- */
struct ws_walframe;
struct ws_walframe *ws_walframe_new(int fd, const struct ws_cluster *c, struct ws_err *err);
int ws_walframe_bytes(struct ws_walframe *f, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n, struct ws_err *err);
int ws_walframe_history(struct ws_walframe *f, ws_tli tli, const void *p, size_t n, struct ws_err *err);
int ws_walframe_end(struct ws_walframe *f, struct ws_pos pos, struct ws_err *err);
void ws_walframe_free(struct ws_walframe *f);

#endif
