/* Transaction records taken apart: COMMIT, ABORT, PREPARE, COMMIT_PREPARED, ABORT_PREPARED,
 * ASSIGNMENT, INVALIDATIONS (access/xact.h, access/rmgrdesc/xactdesc.c: ParseCommitRecord), and
 * invalidation messages (storage/sinval.h).  Pure; arrays point into the record: read their items
 * with the accessors. */
#ifndef WS_XACTREC_H
#define WS_XACTREC_H

#include "ws/record.h"
#include "ws/walpage.h"

enum ws_xact_op { /* info & 0x70 */
	WS_XACT_COMMIT = 0x00,
	WS_XACT_PREPARE = 0x10,
	WS_XACT_ABORT = 0x20,
	WS_XACT_COMMIT_PREPARED = 0x30,
	WS_XACT_ABORT_PREPARED = 0x40,
	WS_XACT_ASSIGNMENT = 0x50,
	WS_XACT_INVALIDATIONS = 0x60
};

/* storage/standbydefs.h: XLOG_RUNNING_XACTS of RM_STANDBY_ID, info & 0xF0, and xl_running_xacts up to xids[] */
#define WS_RUNNING_XACTS     0x10
#define WS_RUNNING_XACTS_MIN 24u

struct ws_xactrec {
	enum ws_xact_op op;
	ws_xid xid;      /* the transaction's own: TWOPHASE section or PREPARE header, else the record's */
	int64_t time;    /* microseconds since 2000-01-01 UTC */
	uint32_t xinfo;
	bool has_db;
	ws_oid db, spc;
	uint32_t nsubxids, nrels, nmsgs;
	const uint8_t *subxids; /* u32 each */
	const uint8_t *rels;    /* 12 bytes each: files dropped at commit (abort for ABORT) */
	const uint8_t *msgs;    /* 16 bytes each */
	uint32_t nabort_rels;   /* PREPARE only */
	const uint8_t *abort_rels;
	const char *gid;        /* NUL-terminated, or NULL */
	ws_lsn origin_lsn;
	int64_t origin_time;
	ws_xid assign_top;      /* ASSIGNMENT: the top xid; subxids are its children */
};

/* 1 parsed, 0 not a transaction record of these kinds, -1 malformed. */
int ws_xactrec_parse(const struct ws_record *r, const struct ws_walver *ver, struct ws_xactrec *out,
                     struct ws_err *err);
ws_xid ws_xactrec_subxid(const struct ws_xactrec *x, uint32_t i);
struct ws_locator ws_xactrec_rel(const struct ws_xactrec *x, uint32_t i);

enum ws_inval_kind {
	WS_INVAL_CATCACHE, /* id >= 0; value is the key's hash */
	WS_INVAL_CATALOG = -1,
	WS_INVAL_RELCACHE = -2, /* value is the relation's oid, 0 = all */
	WS_INVAL_SMGR = -3,
	WS_INVAL_RELMAP = -4,
	WS_INVAL_SNAPSHOT = -5,
	WS_INVAL_RELSYNC = -6
};

struct ws_inval {
	int id; /* cache id >= 0, or a ws_inval_kind */
	ws_oid db;
	uint32_t value;
};

struct ws_inval ws_xactrec_msg(const struct ws_xactrec *x, uint32_t i);

#endif
