/* The TOAST store: chunks of TOAST values that rows may still point to, so that a row which keeps a
 * value that an earlier transaction wrote can be sent whole.  An LMDB environment of one consumer,
 * ws-toast(5); one process has it open at a time.
 *
 * A chunk's key is (TOAST table's oid, chunk_id, born, seq), where born is the end of the commit
 * that wrote it, so that an oid which is used again names another value.  Changes come commit by
 * commit, in order; the store knows up to where it has them, and what it has is not applied
 * again: WAL can be read again from the floor at any time.  A commit that was applied in part, when
 * the process died, is applied again as a whole, with the same result.
 *
 * What a DELETE of a chunk removes is known by its place alone (file, block, line pointer), so the
 * places of first chunks are kept too.  A deleted value stays until the floor has passed its
 * death.  A place that is not known only leaves its value in the store: which value a row gets
 * never depends on deletes.  Nothing here knows shapes or records. */
#ifndef WS_TOASTSTORE_H
#define WS_TOASTSTORE_H

#include "ws/err.h"

struct ws_toaststore;

/* Where a chunk stands. */
struct ws_toastplace {
	ws_oid file;
	uint32_t blkno;
	uint16_t off;
};

/* Opens, makes when absent, and locks.  The store of another cluster or database is an error. */
struct ws_toaststore *ws_toaststore_open(const char *dir, uint64_t system_id, ws_oid db,
                                         struct ws_err *err);
/* What was not synced is forgotten. */
void ws_toaststore_close(struct ws_toaststore *s);

/* ---- a commit's changes ---- */

/* The commit that ends at `end`.  False: the store has it already, and nothing is to be applied. */
bool ws_toaststore_begin(struct ws_toaststore *s, ws_tli tli, ws_lsn end);
/* Does the store have that commit? */
bool ws_toaststore_has(const struct ws_toaststore *s, ws_lsn end);
/* All of it was applied. */
int ws_toaststore_end(struct ws_toaststore *s, struct ws_err *err);

/* A chunk was inserted. */
int ws_toaststore_put(struct ws_toaststore *s, ws_oid rel, ws_oid id, int32_t seq,
                      const uint8_t *data, uint32_t len, const struct ws_toastplace *at,
                      struct ws_err *err);
/* The first chunk of a value, in the store or not, has a further place: the table was copied. */
int ws_toaststore_move(struct ws_toaststore *s, ws_oid rel, ws_oid id,
                       const struct ws_toastplace *at, struct ws_err *err);
/* The chunk at this place was deleted. */
int ws_toaststore_delete(struct ws_toaststore *s, const struct ws_toastplace *at,
                         struct ws_err *err);
/* The table was emptied: all that earlier commits wrote is dead; gone: it is dropped too. */
int ws_toaststore_void(struct ws_toaststore *s, ws_oid rel, bool gone, struct ws_err *err);
/* The commit removed a file. */
int ws_toaststore_drop_file(struct ws_toaststore *s, ws_oid file, struct ws_err *err);
/* Are the table's chunks kept?  False: they are not seen from this commit on, so that what the
 * store has of it counts no longer.  To be told at least once a run, before a put: 1 it counts, 0
 * not for this commit, which the table's load has (tell it again), -1. */
int ws_toaststore_want(struct ws_toaststore *s, ws_oid rel, bool wanted, struct ws_err *err);

/* ---- asking ---- */

enum ws_toastfound {
	WS_TOAST_UNKNOWN = 0,
	WS_TOAST_FOUND = 1,
	WS_TOAST_BEFORE_LOAD = 2 /* the table was loaded after that commit, which nobody needs */
};

/* The value as of the commit that ends at `end`: its chunks, `size` bytes, to out. */
int ws_toaststore_fetch(struct ws_toaststore *s, ws_oid rel, ws_oid id, ws_lsn end, uint32_t size,
                        uint8_t *out, struct ws_err *err);

/* ---- durability ---- */

/* What was applied is durable, and up to where that is.  Before a floor is announced: of a commit at or
 * below the position that it belongs to, the WAL from the floor on may have only a part. */
int ws_toaststore_sync(struct ws_toaststore *s, struct ws_err *err);
/* Removes what died at or below the floor, `most` pieces at a time.  1 there may be more, 0, -1. */
int ws_toaststore_purge(struct ws_toaststore *s, ws_lsn floor, unsigned most, struct ws_err *err);
/* Up to where commits are in it; lsn 0: none is. */
struct ws_pos ws_toaststore_applied(const struct ws_toaststore *s);
/* Writes what has rested for long, so that a restart does not apply it again. */
int ws_toaststore_tend(struct ws_toaststore *s, struct ws_err *err);
/* The path of the WAL left that of the store at `fork` at the latest: forgets what commits above
 * `keep` did, which are read again, but for loads of tables that are not past the fork. */
int ws_toaststore_fork(struct ws_toaststore *s, ws_tli tli, ws_lsn keep, ws_lsn fork,
                       struct ws_err *err);

/* ---- the initial load ---- */

/* The table's chunks as of the snapshot with consistent point p follow: what the store has of it,
 * and of its present file, is removed.  Commits that end at or below p are not applied to it. */
int ws_toaststore_load(struct ws_toaststore *s, ws_oid rel, ws_oid file, ws_lsn p,
                       struct ws_err *err);
int ws_toaststore_load_put(struct ws_toaststore *s, ws_oid rel, ws_lsn p, ws_oid id, int32_t seq,
                           const uint8_t *data, uint32_t len, const struct ws_toastplace *at,
                           struct ws_err *err);

struct ws_toaststore_stats {
	uint64_t chunks, bytes; /* put */
	uint64_t fetched, unknown;
	uint64_t dead, purged; /* values; chunks */
	uint64_t disk;         /* bytes in use */
};
void ws_toaststore_get_stats(struct ws_toaststore *s, struct ws_toaststore_stats *st);

#endif
