/* The TOAST store's insides; ws-toast(5) describes the layout.
 *
 * One unnamed database; every key begins with a letter, then big-endian numbers.  born is
 * inverted, so that the first key at or after (table, chunk_id, ~commit) is the newest value at
 * that commit. */
#ifndef WS_TOAST_INT_H
#define WS_TOAST_INT_H

#include <lmdb.h>

#include "ws/cursor.h"
#include "ws/toaststore.h"

#define TS_MAGIC   "WSTOAST1"
#define TS_KEY_MAX 32
#define TS_RELS    256

/* What an operation may dirty, and how much is dirty before a commit in between. */
#define TS_OP_COST  4096u
#define TS_OP_LIMIT (12u * 1024 * 1024)

struct ts_key {
	uint8_t b[TS_KEY_MAX];
	size_t n;
};

/* What is known of a TOAST table. */
struct ts_rel {
	ws_oid rel;
	ws_lsn loaded; /* consistent point of its load, 0 none */
	ws_lsn from;   /* values born below are not to be used; 0 */
	bool unwanted;
	bool stored;   /* there is a record of it */
};

/* Chunks are stored two by two, an even one with its successor: that fills a page of LMDB. */
#define TS_CHUNK_MAX 2016u

struct ts_chunk {
	ws_oid rel, id;
	ws_lsn born;
	uint32_t seq, len; /* len 0: none */
	uint8_t data[2 * TS_CHUNK_MAX];
};

struct ts_meta {
	struct ws_pos applied; /* commits up to here are in */
	ws_lsn busy;           /* this one in part, 0 none */
};

struct ws_toaststore {
	char *dir;
	MDB_env *env;
	MDB_dbi dbi;
	int lock;
	MDB_txn *txn;      /* the one write transaction, also for reading */
	MDB_cursor *rd, *wr;
	bool dirty;        /* txn has changes */
	bool unsynced;     /* a committed transaction whose meta page is not flushed */
	size_t cost;
	struct ts_meta meta, saved;
	ws_lsn at;         /* of the commit being applied */
	struct ts_chunk half; /* waits for its other half */
	struct ts_rel rels[TS_RELS]; /* by oid, direct mapped */
	struct ts_key resume; /* of a purge that was cut short */
	ws_lsn resume_at;
	struct ws_toaststore_stats st;
};

/* ---- store.c ---- */
int ts_fail(const struct ws_toaststore *s, int rc, struct ws_err *err, const char *what);
/* A transaction with room for an operation. */
int ts_room(struct ws_toaststore *s, struct ws_err *err);
int ts_put(struct ws_toaststore *s, const struct ts_key *k, const void *p, size_t n,
           struct ws_err *err);
/* 1 *v points into the map, 0 none, -1. */
int ts_get(struct ws_toaststore *s, const struct ts_key *k, MDB_val *v, struct ws_err *err);
/* The first key at or after k, when it begins with k's first `prefix` bytes: 1, 0, -1. */
int ts_seek(struct ws_toaststore *s, const struct ts_key *k, size_t prefix, MDB_val *key,
            MDB_val *v, struct ws_err *err);
/* The one after the last found. */
int ts_next(struct ws_toaststore *s, const struct ts_key *k, size_t prefix, MDB_val *key,
            MDB_val *v, struct ws_err *err);
/* Removes what ts_seek or ts_next found last. */
int ts_del(struct ws_toaststore *s, struct ws_err *err);
/* The chunk that waits is stored. */
int ts_flush(struct ws_toaststore *s, struct ws_err *err);
int ts_rel(struct ws_toaststore *s, ws_oid rel, struct ts_rel **out, struct ws_err *err);
int ts_rel_put(struct ws_toaststore *s, struct ts_rel *r, struct ws_err *err);

/* ---- value.c ---- */
#define TS_CHUNK_REL 5  /* prefixes of a chunk's key: table, value, generation */
#define TS_CHUNK_ID  9
#define TS_CHUNK_GEN 17
#define TS_CHUNK_LEN 21
#define TS_PLACE_FILE 5
#define TS_PLACE_LEN  11
#define TS_PLACE_VAL  16

struct ts_key ts_key(char kind);
void ts_key_be(struct ts_key *k, uint64_t v, int bytes);
uint64_t ts_be(const uint8_t *p, int bytes);
struct ts_key ts_key_chunk(ws_oid rel, ws_oid id, ws_lsn born, uint32_t seq);
struct ts_key ts_key_place(const struct ws_toastplace *at);
/* The queue of the dead: kind v (value), r (table emptied), g (table gone), f (file). */
#define TS_DEAD_LEN 26
struct ts_key ts_key_dead(ws_lsn lsn, char kind, uint32_t a, uint32_t b, ws_lsn born);

#endif
