/* The history's LMDB environment, private to lib/catalog.  ws-catalog(5) describes it.
 *
 * One unnamed database; every key starts with a letter, then big-endian numbers.  An LSN in a key is
 * inverted, so that the first key at or after (object, ~lsn) is the newest at or below lsn.
 *
 *   V                      format: "WSCATHIST" u32 version
 *   M db                   u32 tli, u64 lsn of the first capture; the same of the last; u64 pruned
 *   R db oid ~lsn          an encoded relation; empty: dropped
 *   T db oid ~lsn          an encoded type; empty: dropped
 *   F db filenode ~lsn     u32 oid that has the file from lsn on; 0: nobody
 *   C db lsn oid           relation changed at lsn (plain LSN: read by boundary); empty value */
#ifndef WS_CATALOG_HIST_H
#define WS_CATALOG_HIST_H

#include <lmdb.h>
#include "ws/shape.h"

#define HIST_MAGIC   "WSCATHIST"
#define HIST_VERSION 1
/* Room for the map, not disk: the file grows with what is written. */
#define HIST_MAP_SIZE (64ull * 1024 * 1024 * 1024)
#define HIST_READERS  1024

struct hist_meta {
	struct ws_pos first, last;
	ws_lsn pruned; /* lookups below it cannot be answered any more; 0: never pruned */
};

struct ws_cathist {
	char *dir;
	MDB_env *env;
	MDB_dbi dbi;
	MDB_txn *rtxn; /* reset between calls */
	int lock;      /* writer: flock on dir/.lock, else -1 */
	/* between begin and commit: */
	MDB_txn *wtxn;
	ws_oid db;
	struct ws_pos at;
	struct hist_meta meta;
	bool initial; /* the database's first capture: nothing changed, everything is new */
};

#define HIST_KEY_MAX 17
struct hist_key {
	uint8_t b[HIST_KEY_MAX];
	size_t n;
};

struct hist_key hist_key_meta(ws_oid db);
/* kind R, T or F. */
struct hist_key hist_key_object(char kind, ws_oid db, uint32_t id, ws_lsn lsn);
struct hist_key hist_key_change(ws_oid db, ws_lsn lsn, ws_oid oid);
ws_lsn hist_key_lsn(const uint8_t *key); /* of R, T, F */
uint32_t hist_key_id(const uint8_t *key);
MDB_val hist_val(const struct hist_key *k);

int hist_fail(const struct ws_cathist *h, int rc, struct ws_err *err, const char *what);
/* The newest entry of an object at or below lsn in txn: 1, 0 none, -1.  *v points into the map. */
int hist_newest(const struct ws_cathist *h, MDB_txn *txn, char kind, ws_oid db, uint32_t id, ws_lsn lsn,
                MDB_val *v, struct ws_err *err);
int hist_meta_get(const struct ws_cathist *h, MDB_txn *txn, ws_oid db, struct hist_meta *m, struct ws_err *err);
int hist_meta_put(struct ws_cathist *h, MDB_txn *txn, ws_oid db, const struct hist_meta *m, struct ws_err *err);

#endif
