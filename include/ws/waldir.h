/* WAL directories: one writer appends, any number of readers follow.
 *
 * Segments have PostgreSQL's names; the growing one ends in ".partial", is append-only (its size
 * is its end) and is fsynced and renamed when full.  ws-wal(5) is the specification. */
#ifndef WS_WALDIR_H
#define WS_WALDIR_H

#include "ws/cluster.h"
#include "ws/err.h"
#include "ws/history.h"

/* ---- writer ---- */
struct ws_walwriter;

struct ws_walwriter_opts {
	uint32_t segsize;
	bool no_sync;   /* tests and benches only */
	bool preallocate; /* a new segment gets its disk space at once: less work when it is filled soon */
	int recycle;    /* reserved, 0: a file whose size is its end has nothing to reuse */
	ws_lsn durable; /* bytes of a .partial at or above it may be cut off when they differ from what
	                 * comes (a crash of the machine leaves such); 0: none may */
};

/* Opens dir (made when absent) and takes its lock (dir/.lock) for life.  ws_walwriter_end is then
 * the end of the newest segment there (a whole segment's end, or the .partial's size), {0, 0} when
 * there is none; nothing is taken as synced but what lies below opts->durable. */
struct ws_walwriter *ws_walwriter_open(const char *dir, const struct ws_walwriter_opts *o, struct ws_err *err);
void ws_walwriter_close(struct ws_walwriter *w);

/* Appends n bytes at (tli, lsn).  The first append sets the position: a segment's start, or any
 * place in a segment that is there, up to its end.  Bytes that are there are compared and skipped; a
 * difference is WS_EOPERATOR reason=wal_mismatch.  Every later one must follow, or start a higher
 * timeline at a segment's start at or below the end: then its bytes below the switch (by the
 * history file, which must be there) are compared with the ancestor's, a difference is
 * reason=fork_prefix_mismatch.  Crosses segments.
 *
 * One write(2) an append and segment: give large pieces.  After an error (a full disk) what
 * ws_walwriter_end says was written, and an append from there may be tried again. */
int ws_walwriter_append(struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                        struct ws_err *err);
/* The next append goes on from pos, up to which the bytes are there, as the first one does; or starts a
 * higher timeline. */
int ws_walwriter_position(struct ws_walwriter *w, struct ws_pos pos, struct ws_err *err);
/* Makes everything appended durable; afterwards ws_walwriter_synced is ws_walwriter_end. */
int ws_walwriter_sync(struct ws_walwriter *w, struct ws_err *err);
struct ws_pos ws_walwriter_end(const struct ws_walwriter *w);
struct ws_pos ws_walwriter_synced(const struct ws_walwriter *w);
/* ws_histdir_store into the writer's directory. */
int ws_walwriter_history(struct ws_walwriter *w, ws_tli tli, const void *p, size_t n, struct ws_err *err);

/* ---- what was left ---- */

/* The segments of dir that begin at or above the end of their timeline on history h get names that no
 * reader takes, NAME.abandoned; with `ends` also those that go on above it.  Durable when it returns 0, and
 * may be repeated after a kill.  *bytes is how much there was. */
int ws_waldir_set_aside(const char *dir, uint32_t segsize, const struct ws_history *h, bool ends, uint64_t *bytes,
                        struct ws_err *err);

#define WS_WAL_ABANDONED ".abandoned" /* behind the name of a segment that was set aside */

/* Any name that a segment has in a WAL directory: SEGMENT[.partial][.abandoned], also compressed. */
bool ws_waldir_segment(const char *name, uint32_t segsize, ws_tli *tli, ws_lsn *start);

/* ---- reader ---- */

/* Any WAL input: a WAL directory, one segment file (also .gz .lz4 .zst), or "-" (a framed WAL
 * stream, ws-wal(5)).  Bytes come in order from the start asked for. */
struct ws_walsrc;

struct ws_walsrc_opts {
	uint32_t segsize; /* 0: found out from the file */
	bool follow;      /* wait for more at the end; false: the end is the end */
	bool editable;    /* the caller edits chunks in place, see ws_walchunk */
};

#define WS_CHUNK_STAYS 6

struct ws_walchunk {
	ws_lsn lsn;
	ws_tli tli;       /* of the file's name */
	const uint8_t *p; /* valid until the next call */
	size_t n;
	bool whole; /* of a segment that is complete, and so durable */
	/* Of an editable source that reads files: p again, to be written to, with `room` bytes before it
	 * that are the caller's, or the end of the chunk before; both stay until WS_CHUNK_STAYS calls
	 * later.  Else NULL and 0. */
	uint8_t *edit;
	size_t room;
};

/* spec as above.  start.lsn 0: the oldest byte there.  start.tli 0: the newest timeline that holds
 * start.lsn by the directory's history files.  Reading starts at the page that holds start.lsn
 * (the segment's start when that is smaller work for the source).  A directory without the segment
 * is WS_EOPERATOR reason=wal_missing, or with follow waited for when nothing newer is there. */
struct ws_walsrc *ws_walsrc_open(const char *spec, struct ws_pos start, const struct ws_walsrc_opts *o,
                                 struct ws_err *err);
void ws_walsrc_close(struct ws_walsrc *s);

/* 1: *c has bytes (up to 256 kB, never across a segment).  0: none now (follow), the end, or a
 * signal while waiting for a stream.  -1: error.  The chunks follow each other without a gap, but
 * where a switch of timeline becomes known while the ancestor's segment is read: the next chunk is
 * then the start of the fork's segment under the descendant's tli.  A chunk is only bytes: a whole
 * segment of a server's pg_wal ends in zeros or old pages (ws_walreader_clean_end). */
int ws_walsrc_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err);

/* A following reader met bytes of c that are no WAL, none at or above `below` at fault.  1: no waiting heals
 * them, they were durable: by pos/received (a path, or NULL outside of a state directory), or as part
 * of a whole segment.  0: they may yet be written (clean_end: they look like it).  -1 on error. */
int ws_walsrc_damaged(const struct ws_walchunk *c, ws_lsn below, bool clean_end, const char *received_file,
                      struct ws_err *err);

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
/* The history of the timeline that is read towards (NULL when none is known): after a chunk with a
 * new tli, ws_history_end(h, old tli) is the switch.  Valid until the next call. */
const struct ws_history *ws_walsrc_history(const struct ws_walsrc *s);
/* After a chunk c of another timeline than the one before, tli: where that one ends. */
ws_lsn ws_walsrc_switch(const struct ws_walsrc *s, ws_tli tli, const struct ws_walchunk *c);
struct ws_walreader;
struct ws_rec;
/* ws_walreader_next for a reader that is fed with chunks of s, the last one of timeline tli: rec->tli is that
 * of the record's place, not its page's (the page in which a switch lies keeps the ancestor's). */
int ws_walsrc_record(const struct ws_walsrc *s, ws_tli tli, struct ws_walreader *r, struct ws_rec *rec,
                     struct ws_err *err);
/* System identifier, major and segment size; false while nothing was read yet. */
bool ws_walsrc_cluster(const struct ws_walsrc *s, struct ws_cluster *c);

/* ---- framed WAL stream, writing side ---- */
struct ws_walframe;
struct ws_walframe *ws_walframe_new(int fd, const struct ws_cluster *c, struct ws_err *err);
int ws_walframe_bytes(struct ws_walframe *f, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n, struct ws_err *err);
int ws_walframe_history(struct ws_walframe *f, ws_tli tli, const void *p, size_t n, struct ws_err *err);
int ws_walframe_end(struct ws_walframe *f, struct ws_pos pos, struct ws_err *err);
void ws_walframe_free(struct ws_walframe *f);

#endif
