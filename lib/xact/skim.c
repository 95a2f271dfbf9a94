/* The first reading: which records are remembered, by position, with their transactions.  Little
 * is looked at, since most records are index pages, and much of the rest may yet abort. */
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "ws/cursor.h"
#include "ws/log.h"

/* access/heapam_xlog.h */
#define HEAP_OPMASK  0x70
#define HEAP_INSERT  0x00
#define HEAP_DELETE  0x10
#define HEAP_UPDATE  0x20
#define HEAP_TRUNCATE 0x30
#define HEAP_HOT_UPDATE 0x40
#define HEAP_CONFIRM 0x50
#define HEAP2_MULTI_INSERT 0x50
/* catalog/pg_control.h */
#define XLOG_CHECKPOINT_SHUTDOWN 0x00
#define XLOG_CHECKPOINT_ONLINE 0x10
#define XLOG_PARAMETER_CHANGE 0x60
#define XLOG_END_OF_RECOVERY 0x90
#define XLOG_FPI 0xB0
#define XLOG_CHECKPOINT_REDO 0xE0
#define WAL_LEVEL_LOGICAL 2
/* catalog/storage_xlog.h, commands/dbcommands_xlog.h */
#define SMGR_CREATE 0x10
#define DBASE_DROP 0x20
#define SEQ_LOG 0x00
#define INIT_FORK 3

static bool
user_file(const struct ws_decoder *d, const struct ws_locator *loc)
{
	return loc->db == d->o.db && loc->rel >= WS_FIRST_NORMAL_OID;
}

/* The main data alone. */
static int
main_data(const struct ws_rec *rec, struct ws_record *r, uint32_t least, const char *what,
          struct ws_err *err)
{
	if (ws_record_parse(rec, r, err) != 0)
		return -1;
	if (r->main_len < least)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": short %s record", WS_LSN_ARG(rec->start),
		                 what);
	return 0;
}

static int
truncate_wanted(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if (main_data(rec, &r, 12, "TRUNCATE", err) != 0)
		return -1;
	return ws_le32(r.main) == d->o.db;
}

/* A sequence's record belongs to its transaction only when the file was made in it: as long as
 * the history does not know the file. */
static int
sequence_wanted(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_locator loc;
	ws_oid oid;

	if ((rec->info & 0xF0) != SEQ_LOG || !ws_rec_locator(rec->data, rec->tot_len, &loc) ||
	    !user_file(d, &loc))
		return 0;
	int rc = ws_cathist_filenode(d->o.cat, d->o.db, loc.rel, rec->start, &oid, err);

	return rc < 0 ? -1 : rc == 0;
}

static int
message_wanted(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if (main_data(rec, &r, 24, "message", err) != 0)
		return -1;
	return ws_le32(r.main) == d->o.db && r.main[4];
}

int
ws_skim_wanted(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_locator loc;

	switch (rec->rmid) {
	case WS_RM_HEAP:
		switch (rec->info & HEAP_OPMASK) {
		case HEAP_INSERT:
		case HEAP_DELETE:
		case HEAP_UPDATE:
		case HEAP_HOT_UPDATE:
		case HEAP_CONFIRM:
			return ws_rec_locator(rec->data, rec->tot_len, &loc) && user_file(d, &loc);
		case HEAP_TRUNCATE:
			return truncate_wanted(d, rec, err);
		}
		return 0;
	case WS_RM_HEAP2:
		return (rec->info & HEAP_OPMASK) == HEAP2_MULTI_INSERT &&
		       ws_rec_locator(rec->data, rec->tot_len, &loc) && user_file(d, &loc);
	case WS_RM_SEQ:
		return sequence_wanted(d, rec, err);
	case WS_RM_LOGICALMSG:
		return message_wanted(d, rec, err);
	}
	return 0;
}

static void
remember(struct ws_decoder *d, const struct ws_rec *rec)
{
	struct ws_xtx *tx = ws_xtab_get(&d->tab, rec->xid, rec->start);

	ws_xtx_append(&d->tab, tx, rec->start);
}

/* ---- heap ---- */

/* In a transaction that made files: what went into them. */
static void
heap_with_ddl(struct ws_decoder *d, struct ws_xtx *tx, const struct ws_rec *rec, const struct ws_locator *loc)
{
	struct ws_birth *b = ws_xtx_birth(tx, loc->rel);

	if (!b)
		b = ws_orphan_find(&d->orphans, loc->rel);
	if (b && !b->first_row)
		b->first_row = rec->start;
}

static int
skim_heap(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_locator loc;
	uint8_t op = rec->info & HEAP_OPMASK;

	if (rec->rmid == WS_RM_HEAP2) {
		if (op != HEAP2_MULTI_INSERT)
			return 0;
	} else if (op > HEAP_CONFIRM) {
		return 0;
	} else if (op == HEAP_TRUNCATE) {
		int rc = truncate_wanted(d, rec, err);

		if (rc > 0)
			remember(d, rec);
		return rc < 0 ? -1 : 0;
	}
	if (!ws_rec_locator(rec->data, rec->tot_len, &loc) || loc.db != d->o.db)
		return 0;
	if (loc.rel < WS_FIRST_NORMAL_OID)
		return 0;
	struct ws_xtx *tx = ws_xtab_get(&d->tab, rec->xid, rec->start);

	ws_xtx_append(&d->tab, tx, rec->start);
	if ((tx->ddl && tx->ddl->nbirths) || d->orphans.n)
		heap_with_ddl(d, tx, rec, &loc);
	return 0;
}

/* ---- files, images ---- */

static int
skim_smgr(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if ((rec->info & 0xF0) != SMGR_CREATE)
		return 0;
	if (main_data(rec, &r, 16, "SMGR CREATE", err) != 0)
		return -1;
	struct ws_locator loc = {ws_le32(r.main), ws_le32(r.main + 4), ws_le32(r.main + 8)};
	uint32_t fork = ws_le32(r.main + 12);

	if (!user_file(d, &loc) || (fork != 0 && fork != INIT_FORK))
		return 0;
	struct ws_xtx *tx = rec->xid ? ws_xtab_get(&d->tab, rec->xid, rec->start) : NULL;
	struct ws_birth b = {.lsn = rec->start, .spc = loc.spc, .rel = loc.rel, .unlogged = fork == INIT_FORK};

	if (ws_orphan_find(&d->orphans, loc.rel) || (tx && ws_xtx_birth(tx, loc.rel)))
		return 0; /* a second fork */
	if (tx)
		*ws_xtx_add_birth(tx) = b;
	else
		ws_orphan_add(&d->orphans, &b);
	return 0;
}

/* An image of a whole page: the way CLUSTER and SET TABLESPACE fill a new file. */
static void
skim_fpi(struct ws_decoder *d, const struct ws_rec *rec)
{
	struct ws_locator loc;
	struct ws_xtx *tx = rec->xid ? ws_xtab_find(&d->tab, rec->xid) : NULL;

	if ((!d->orphans.n && (!tx || !tx->ddl)) || !ws_rec_locator(rec->data, rec->tot_len, &loc) || !user_file(d, &loc))
		return;
	/* Main fork only: block header's fork is in its lower half. */
	if (rec->data[WS_REC_HDR_SIZE + 1] & 0x0F)
		return;
	struct ws_birth *b = tx ? ws_xtx_birth(tx, loc.rel) : NULL;

	if (!b)
		b = ws_orphan_find(&d->orphans, loc.rel);
	if (b && !b->first_image)
		b->first_image = rec->start;
}

/* ---- settings of the source ---- */

static int
check_wal_level(const struct ws_decoder *d, const struct ws_rec *rec, const struct ws_record *r,
                uint32_t at, struct ws_err *err)
{
	if (r->main_len < at + 4)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": short record (XLOG %02X)",
		                 WS_LSN_ARG(rec->start), rec->info);
	uint32_t level = ws_le32(r->main + at);

	if (level >= WAL_LEVEL_LOGICAL || rec->end <= d->first_capture)
		return 0;
	return ws_err_op(err, "wal_level",
	                 "the source runs with wal_level below logical from " WS_LSN_FMT
	                 " on: its changes carry no "
	                 "keys; set wal_level=logical and load the tables again",
	                 WS_LSN_ARG(rec->start));
}

/* CheckPoint and xl_end_of_recovery both have ThisTimeLineID @8 and PrevTimeLineID @12: a timeline begins
 * when they differ. */
static int
skim_start(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if (main_data(rec, &r, 16, "XLOG", err) != 0)
		return -1;
	if (ws_le32(r.main + 8) != ws_le32(r.main + 12))
		ws_abandon(d);
	return 0;
}

static int
skim_xlog(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;
	uint32_t at;
	uint8_t op = rec->info & 0xF0;
	bool from17 = d->ver->major >= 17;

	if ((op == XLOG_CHECKPOINT_SHUTDOWN || op == XLOG_END_OF_RECOVERY) && skim_start(d, rec, err) != 0)
		return -1;
	switch (op) {
	case XLOG_FPI:
		skim_fpi(d, rec);
		return 0;
	case XLOG_PARAMETER_CHANGE: /* xl_parameter_change */
		at = 20;
		break;
	case XLOG_CHECKPOINT_REDO:
		at = 0;
		break;
	case XLOG_CHECKPOINT_SHUTDOWN: /* CheckPoint: wal_level since 17 */
	case XLOG_CHECKPOINT_ONLINE:
		if (!from17)
			return 0;
		at = 20;
		break;
	case XLOG_END_OF_RECOVERY: /* xl_end_of_recovery: wal_level since 17 */
		if (!from17)
			return 0;
		at = 16;
		break;
	default:
		return 0;
	}
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	return check_wal_level(d, rec, &r, at, err);
}

static int
skim_standby(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if ((rec->info & 0xF0) != WS_RUNNING_XACTS)
		return 0;
	/* xl_running_xacts: counts, overflow, nextXid @12, oldestRunningXid @16 */
	if (main_data(rec, &r, WS_RUNNING_XACTS_MIN, "RUNNING_XACTS", err) != 0)
		return -1;
	ws_orphans_running(&d->orphans, ws_le32(r.main + 12), ws_le32(r.main + 16));
	d->st.reaped += ws_xtab_reap(&d->tab, ws_le32(r.main + 16));
	return 0;
}

static int
skim_dbase(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if ((rec->info & 0xF0) != DBASE_DROP)
		return 0;
	if (main_data(rec, &r, 4, "DBASE DROP", err) != 0)
		return -1;
	if (ws_le32(r.main) != d->o.db)
		return 0;
	return ws_err_op(err, "database_dropped", "the database (oid %u) was dropped at " WS_LSN_FMT,
	                 d->o.db, WS_LSN_ARG(rec->start));
}

/* ---- things sent at their place, and ends of transactions ---- */

/* 1 go on, 0 stop, -1 */
static int
captured(struct ws_decoder *d, ws_lsn end, struct ws_err *err)
{
	return d->o.captured ? d->o.captured(d->o.arg, end, err) : 1;
}

/* Sequences and messages.  As skim. */
static int
skim_event(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;
	bool seq = rec->rmid == WS_RM_SEQ;
	int rc = seq ? captured(d, rec->end, err) : 1;

	if (rc == 1)
		rc = ws_skim_wanted(d, rec, err);
	else
		return rc;
	if (rc < 0)
		return -1;
	if (rc == 1) {
		if (rec->xid)
			remember(d, rec);
		return 1;
	}
	if (rec->end <= d->o.skip)
		return 1;
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	if (!seq && (rc = captured(d, rec->end, err)) != 1)
		return rc;
	ws_shapes_as_of(&d->shapes, rec->start);
	rc = seq ? ws_ev_sequence(d, &r, false, err) : ws_ev_message(d, &r, false, err);
	return rc < 0 ? -1 : 1;
}

/* Remembers where a command's catalog changes stand, when they name relations of this database. */
static void
skim_invals(struct ws_decoder *d, const struct ws_rec *rec, const struct ws_xactrec *x)
{
	if (!rec->xid)
		return;
	for (uint32_t i = 0; i < x->nmsgs; i++) {
		struct ws_inval m = ws_xactrec_msg(x, i);

		if (m.id == WS_INVAL_RELCACHE && m.db == d->o.db && m.value >= WS_FIRST_NORMAL_OID) {
			ws_xtx_add_inval(ws_xtab_get(&d->tab, rec->xid, rec->start), rec->start);
			return;
		}
	}
}

static int
skim_xact(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;
	struct ws_xactrec x;

	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	int rc = ws_xactrec_parse(&r, d->ver, &x, err);

	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	switch (x.op) {
	case WS_XACT_COMMIT:
		return ws_commit(d, &r, &x, err);
	case WS_XACT_COMMIT_PREPARED:
		rc = ws_commit(d, &r, &x, err);
		if (rc == 1)
			(void)ws_prepset_drop(&d->prepared, x.xid);
		return rc;
	case WS_XACT_ABORT_PREPARED:
		(void)ws_prepset_drop(&d->prepared, x.xid);
		ws_abort(d, &x);
		return 1;
	case WS_XACT_ABORT:
		ws_abort(d, &x);
		return 1;
	case WS_XACT_INVALIDATIONS:
		skim_invals(d, rec, &x);
		return 1;
	case WS_XACT_PREPARE:
		if (x.db == d->o.db)
			ws_prepset_add(&d->prepared, &d->tab, &x, rec->start);
		return 1;
	case WS_XACT_ASSIGNMENT: /* the commit lists its subtransactions itself */
		return 1;
	}
	return 1;
}

int
ws_decoder_record(struct ws_decoder *d, const struct ws_rec *rec, const struct ws_walver *ver,
                  struct ws_err *err)
{
	int rc;

	d->ver = ver;
	d->st.records++;
	switch (rec->rmid) {
	case WS_RM_HEAP:
	case WS_RM_HEAP2:
		rc = skim_heap(d, rec, err);
		break;
	case WS_RM_XACT:
		return skim_xact(d, rec, err);
	case WS_RM_SEQ:
		if ((rec->info & 0xF0) != SEQ_LOG)
			return 1;
		return skim_event(d, rec, err);
	case WS_RM_LOGICALMSG:
		return skim_event(d, rec, err);
	case WS_RM_XLOG:
		rc = skim_xlog(d, rec, err);
		break;
	case WS_RM_SMGR:
		rc = skim_smgr(d, rec, err);
		break;
	case WS_RM_STANDBY:
		rc = skim_standby(d, rec, err);
		break;
	case WS_RM_DBASE:
		rc = skim_dbase(d, rec, err);
		break;
	default:
		return 1;
	}
	return rc < 0 ? -1 : 1;
}
