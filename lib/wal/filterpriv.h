/* The filter's knowledge; see ws/filter.h.  Private to classify.c, filterxact.c, filterstate.c. */
#ifndef WS_FILTERPRIV_H
#define WS_FILTERPRIV_H

#include "u64map.h"
#include "xidruns.h"
#include "ws/filter.h"
#include "ws/xactrec.h"

/* pg_largeobject and its index: user data in a catalog's clothes. */
#define LARGEOBJECT_OID       2613u
#define LARGEOBJECT_INDEX_OID 2683u

#define KEPT             1u /* values of the kept set */
#define KEPT_PROVISIONAL 2u /* born by xid 0: its creator is not known yet */

#define FILTER_SEEN 256u

struct filter_lock {
	ws_xid xid; /* holds an AccessExclusive lock on a catalog */
	ws_xid top; /* of its tree */
};

struct filter_copy { /* CREATE DATABASE by WAL under way */
	ws_oid db;
	ws_xid xid;
};

struct filter_move { /* ALTER DATABASE SET TABLESPACE: its DROP is no burial */
	ws_oid db, spc;
};

struct ws_filter {
	struct ws_u64map kept; /* (db << 32 | rel) -> KEPT* */
	struct ws_xidruns subs; /* subxact -> top */
	struct filter_lock *locks;
	uint32_t nlocks, locks_cap;
	struct filter_copy *copies;
	uint32_t ncopies, copies_cap;
	struct filter_move *moves;
	uint32_t nmoves, moves_cap;
	uint32_t nprovisional;
	/* The kept list held from here: earlier records only add.  have_list false: no list. */
	bool have_list;
	ws_lsn since;
	/* Transactions with lower xids may have begun before we read: their trees are not known. */
	bool have_horizon;
	ws_xid horizon;
	/* Relations outside the fixed rules that were asked for last, each in the slot of its key. */
	uint64_t seen[FILTER_SEEN]; /* keys, 0: none */
	bool seen_kept[FILTER_SEEN];
};

static inline uint64_t
filter_key(ws_oid db, ws_oid rel)
{
	return (uint64_t)db << 32 | rel;
}

static inline uint32_t
filter_slot(uint64_t key)
{
	return (uint32_t)key & (FILTER_SEEN - 1);
}

static inline bool
filter_catalog_oid(ws_oid rel)
{
	return rel < WS_FIRST_NORMAL_OID && rel != LARGEOBJECT_OID && rel != LARGEOBJECT_INDEX_OID;
}

/* xid a precedes b (access/transam/transam.c, TransactionIdPrecedes, for normal xids). */
static inline bool
filter_precedes(ws_xid a, ws_xid b)
{
	return (int32_t)(a - b) < 0;
}

/* filterset.c: the kept set */
void filter_keep(struct ws_filter *f, ws_oid db, ws_oid rel, bool provisional);
void filter_bury(struct ws_filter *f, ws_oid db, ws_oid rel);
void filter_bury_db(struct ws_filter *f, ws_oid db);
void filter_inherit(struct ws_filter *f, ws_oid db, ws_oid from);
bool filter_kept_anywhere(const struct ws_filter *f, ws_oid rel);

/* filterxact.c: transaction trees and their locks */
void filter_subxact(struct ws_filter *f, ws_xid sub, ws_xid top);
void filter_lock(struct ws_filter *f, ws_xid xid);
bool filter_tree_locks(const struct ws_filter *f, ws_xid xid);
int filter_xact_record(struct ws_filter *f, const struct ws_record *r, const struct ws_walver *ver,
                       struct ws_err *err);
void filter_running(struct ws_filter *f, const struct ws_record *r);
void filter_copy_add(struct ws_filter *f, ws_oid db, ws_xid xid);
bool filter_copying(const struct ws_filter *f, ws_oid db);
void filter_move_add(struct ws_filter *f, ws_oid db, ws_oid spc);
bool filter_move_take(struct ws_filter *f, ws_oid db, ws_oid spc);

#endif
