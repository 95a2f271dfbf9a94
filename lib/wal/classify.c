/* Which records a catalogs-only standby needs; the rules are in ws/filter.h.
 * Layouts: catalog/storage_xlog.h, storage/standbydefs.h, commands/dbcommands_xlog.h,
 * commands/tablespace.h, utils/relmapper.h (and RelMapFile in relmapper.c), access/heapam_xlog.h,
 * access/nbtxlog.h, access/gistxlog.h.
 *
 * Most records are heap and index changes of user tables, so the headers are walked here once,
 * without taking the record apart; everything else goes through ws_record_parse. */
#include "filterpriv.h"
#include "ws/cursor.h"

#define INFO_MASK 0xF0

enum xlog_info {
	XLOG_FPI_FOR_HINT = 0xA0,
	XLOG_FPI = 0xB0,
	SMGR_CREATE = 0x10,
	DBASE_CREATE_FILE_COPY = 0x00,
	DBASE_CREATE_WAL_LOG = 0x10,
	DBASE_DROP = 0x20,
	TBLSPC_CREATE = 0x00,
	RELMAP_UPDATE = 0x00,
	STANDBY_LOCK = 0x00,
	HEAP_TRUNCATE = 0x30,
	HEAP2_REWRITE = 0x00,
	HEAP2_NEW_CID = 0x70,
	BTREE_REUSE_PAGE = 0xD0,
	GIST_PAGE_REUSE = 0x20
};

#define HEAP_OPMASK 0x70

/* How a resource manager's records are judged. */
enum kind { DROP_ALL, KEEP_ALL, BY_BLOCK, SPECIAL };

static const uint8_t kinds[256] = {
    [WS_RM_XLOG] = SPECIAL,
    [WS_RM_XACT] = SPECIAL,
    [WS_RM_SMGR] = SPECIAL,
    [WS_RM_CLOG] = KEEP_ALL,
    [WS_RM_DBASE] = SPECIAL,
    [WS_RM_TBLSPC] = SPECIAL,
    [WS_RM_MULTIXACT] = KEEP_ALL,
    [WS_RM_RELMAP] = SPECIAL,
    [WS_RM_STANDBY] = SPECIAL,
    [WS_RM_HEAP2] = BY_BLOCK,
    [WS_RM_HEAP] = BY_BLOCK,
    [WS_RM_BTREE] = BY_BLOCK,
    [WS_RM_HASH] = BY_BLOCK,
    [WS_RM_GIN] = BY_BLOCK,
    [WS_RM_GIST] = BY_BLOCK,
    [WS_RM_SEQ] = BY_BLOCK,
    [WS_RM_SPGIST] = BY_BLOCK,
    [WS_RM_BRIN] = BY_BLOCK,
    [WS_RM_COMMITTS] = KEEP_ALL,
    [WS_RM_REPLORIGIN] = KEEP_ALL,
    [WS_RM_GENERIC] = BY_BLOCK,
    [WS_RM_LOGICALMSG] = DROP_ALL,
};

/* A relation file above the fixed rules. */
static bool
keeps_high(struct ws_filter *f, ws_oid db, ws_oid rel, ws_xid xid)
{
	uint64_t key = filter_key(db, rel);

	uint32_t slot = filter_slot(key);

	if (key == f->seen[slot])
		return f->seen_kept[slot];
	uint32_t *v = ws_u64map_get(&f->kept, key);

	if (v && *v == KEPT_PROVISIONAL) {
		if (!xid)
			return true;
		if (!filter_tree_locks(f, xid)) {
			filter_bury(f, db, rel);
			return false;
		}
		filter_keep(f, db, rel, false);
	}
	f->seen[slot] = key;
	f->seen_kept[slot] = v != NULL;
	return v != NULL;
}

static inline bool
keeps(struct ws_filter *f, ws_oid db, ws_oid rel, ws_xid xid)
{
	if (!db)
		return true;
	if (rel < WS_FIRST_NORMAL_OID)
		return filter_catalog_oid(rel);
	return keeps_high(f, db, rel, xid);
}

#define ID_SHORT     255
#define ID_LONG      254
#define ID_ORIGIN    253
#define ID_TOPLEVEL  252
#define BKP_SAME_REL 0x80
#define IMG_COMPRESSED (WS_IMG_PGLZ | WS_IMG_LZ4 | WS_IMG_ZSTD)

struct walk {
	bool keep;      /* a block's relation is kept */
	bool blocks;    /* there is a block */
	uint32_t main_len;
};

/* Bytes of a block header behind its id, or 0 when they are not all there. */
static inline size_t
block_header_size(const uint8_t *p, size_t left)
{
	size_t n = 3;

	if (left < n)
		return 0;
	if (p[0] & WS_BKP_HAS_IMAGE) {
		if (left < 8)
			return 0;
		n += 5 + ((p[7] & IMG_COMPRESSED) && (p[7] & WS_IMG_HAS_HOLE) ? 2 : 0);
	}
	if (!(p[0] & BKP_SAME_REL))
		n += 12;
	return n + 4 <= left ? n + 4 : 0;
}

/* Walks the record's headers: learns the tree of a subtransaction, judges each named relation.
 * access/transam/xlogreader.c, DecodeXLogRecord. */
static int
walk_headers(struct ws_filter *f, const struct ws_rec *rec, struct walk *w)
{
	const uint8_t *p = rec->data + WS_REC_HDR_SIZE, *end = rec->data + rec->tot_len;
	size_t payload = 0;

	w->keep = w->blocks = false;
	w->main_len = 0;
	while ((size_t)(end - p) > payload) {
		uint8_t id = *p++;
		size_t left = (size_t)(end - p);

		if (id < WS_REC_MAX_BLOCKS) {
			size_t n = block_header_size(p, left);

			if (!n)
				return -1;
			payload += ws_le16(p + 1);
			if (p[0] & WS_BKP_HAS_IMAGE)
				payload += ws_le16(p + 3);
			if (!(p[0] & BKP_SAME_REL) && keeps(f, ws_le32(p + n - 12), ws_le32(p + n - 8), rec->xid))
				w->keep = true;
			w->blocks = true;
			p += n;
		} else if (id == ID_SHORT && left >= 1) {
			w->main_len = *p++;
			payload += w->main_len;
			break;
		} else if (id == ID_LONG && left >= 4) {
			w->main_len = ws_le32(p);
			p += 4;
			payload += w->main_len;
			break;
		} else if (id == ID_ORIGIN && left >= 2) {
			p += 2;
		} else if (id == ID_TOPLEVEL && left >= 4) {
			filter_subxact(f, rec->xid, ws_le32(p));
			p += 4;
		} else {
			return -1;
		}
	}
	return (size_t)(end - p) == payload ? 0 : -1;
}

/* The usual record: one block with its relation and no image, then short main data, and nothing
 * else; of a relation above the fixed rules that was asked for before.  False: any other. */
static inline bool
usual(const struct ws_filter *f, const struct ws_rec *rec, enum ws_verdict *verdict)
{
	const uint8_t *p = rec->data + WS_REC_HDR_SIZE;

	/* id, fork and flags, data length, locator, block number, id, main data's length */
	if (rec->tot_len < WS_REC_HDR_SIZE + 22 || p[0] != 0 || p[1] & (WS_BKP_HAS_IMAGE | BKP_SAME_REL) ||
	    p[20] != ID_SHORT || WS_REC_HDR_SIZE + 22u + ws_le16(p + 2) + p[21] != rec->tot_len)
		return false;
	uint64_t key = filter_key(ws_le32(p + 8), ws_le32(p + 12));
	uint32_t slot = filter_slot(key);

	if (!key || key != f->seen[slot])
		return false;
	*verdict = f->seen_kept[slot] ? WS_KEEP : WS_BLANK;
	return true;
}

/* Records without a block that name a relation in their main data. */
static bool
names_kept(struct ws_filter *f, const struct ws_rec *rec, uint32_t main_len)
{
	struct ws_cursor c = ws_cursor(rec->data + rec->tot_len - main_len, main_len);
	uint8_t info = rec->info & INFO_MASK;
	size_t at;

	if (rec->rmid == WS_RM_HEAP && (info & HEAP_OPMASK) == HEAP_TRUNCATE) {
		/* Of logically logged tables, and only for logical decoding; oids, not files. */
		ws_cur_skip(&c, 4);
		uint32_t n = ws_cur_u32(&c);

		ws_cur_skip(&c, 4);
		for (; n && !c.bad; n--)
			if (filter_catalog_oid(ws_cur_u32(&c)) && !c.bad)
				return true;
		return false;
	}
	if (rec->rmid == WS_RM_HEAP2 && (info & HEAP_OPMASK) == HEAP2_REWRITE) {
		ws_cur_skip(&c, 8);
		ws_oid rel = ws_cur_u32(&c);

		return !c.bad && filter_catalog_oid(rel);
	}
	if (rec->rmid == WS_RM_HEAP2 && (info & HEAP_OPMASK) == HEAP2_NEW_CID)
		at = 16;
	else if ((rec->rmid == WS_RM_BTREE && info == BTREE_REUSE_PAGE) ||
	         (rec->rmid == WS_RM_GIST && info == GIST_PAGE_REUSE))
		at = 0;
	else
		return false;
	ws_cur_skip(&c, at + 4);
	ws_oid db = ws_cur_u32(&c), rel = ws_cur_u32(&c);

	return !c.bad && keeps(f, db, rel, rec->xid);
}

/* A file's birth: decided here, for good. */
static void
smgr_record(struct ws_filter *f, const struct ws_record *r)
{
	struct ws_cursor c = ws_cursor(r->main, r->main_len);
	const struct ws_rec *rec = r->rec;

	if ((rec->info & INFO_MASK) != SMGR_CREATE)
		return;
	ws_cur_skip(&c, 4);
	ws_oid db = ws_cur_u32(&c), rel = ws_cur_u32(&c);
	uint32_t fork = ws_cur_u32(&c);
	bool keep;

	if (c.bad || fork != 0 || !db || rel < WS_FIRST_NORMAL_OID)
		return;
	if (filter_copying(f, db))
		keep = !f->have_list || filter_kept_anywhere(f, rel);
	else
		keep = rec->xid ? filter_tree_locks(f, rec->xid) : f->nlocks > 0;
	if (keep)
		filter_keep(f, db, rel, !rec->xid && !filter_copying(f, db));
	else if (!f->have_list || rec->start >= f->since)
		filter_bury(f, db, rel); /* a number used again */
}

static void
dbase_record(struct ws_filter *f, const struct ws_record *r)
{
	struct ws_cursor c = ws_cursor(r->main, r->main_len);
	ws_oid db = ws_cur_u32(&c);
	uint32_t second = ws_cur_u32(&c);

	switch (r->rec->info & INFO_MASK) {
	case DBASE_CREATE_FILE_COPY: {
		ws_oid from = ws_cur_u32(&c), from_spc = ws_cur_u32(&c);

		if (c.bad)
			break;
		if (from == db)
			filter_move_add(f, db, from_spc);
		else
			filter_inherit(f, db, from);
		break;
	}
	case DBASE_CREATE_WAL_LOG:
		if (!c.bad)
			filter_copy_add(f, db, r->rec->xid);
		break;
	case DBASE_DROP: {
		ws_oid spc = ws_cur_u32(&c);

		/* Moved to another tablespace: the old files go, the database stays. */
		if (c.bad || (second == 1 && filter_move_take(f, db, spc)))
			break;
		filter_bury_db(f, db);
		break;
	}
	default:
		break;
	}
}

/* The mapped catalogs of a database have these files now: all must be known. */
static int
relmap_record(struct ws_filter *f, const struct ws_record *r, struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(r->main, r->main_len);
	ws_oid db = ws_cur_u32(&c);

	ws_cur_skip(&c, 12); /* tablespace, length, magic */
	uint32_t n = ws_cur_u32(&c);

	if ((r->rec->info & INFO_MASK) != RELMAP_UPDATE || c.bad || !db)
		return 0;
	bool must = f->have_list && r->rec->start >= f->since;
	bool copying = filter_copying(f, db);

	while (n--) {
		ws_oid oid = ws_cur_u32(&c), rel = ws_cur_u32(&c);

		if (c.bad)
			return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": relation map cut short",
			                 WS_LSN_ARG(r->rec->start));
		if (rel < WS_FIRST_NORMAL_OID)
			continue;
		if (must && !(copying ? filter_kept_anywhere(f, rel) : ws_filter_keeps(f, db, rel)))
			return ws_err_op(err, "catalog_missed",
			                 WS_LSN_FMT ": file %u of catalog %u in database %u was not kept; "
			                            "a new base backup with a new kept list is needed",
			                 WS_LSN_ARG(r->rec->start), rel, oid, db);
		filter_keep(f, db, rel, false);
	}
	return 0;
}

/* Locks are read here, then blanked: replayed, they would block reads of a parked standby. */
static enum ws_verdict
standby_record(struct ws_filter *f, const struct ws_record *r)
{
	struct ws_cursor c = ws_cursor(r->main, r->main_len);

	if ((r->rec->info & INFO_MASK) == WS_RUNNING_XACTS)
		filter_running(f, r);
	if ((r->rec->info & INFO_MASK) != STANDBY_LOCK)
		return WS_KEEP;
	for (uint32_t n = ws_cur_u32(&c); n && !c.bad; n--) {
		ws_xid xid = ws_cur_u32(&c);
		ws_oid db = ws_cur_u32(&c), rel = ws_cur_u32(&c);

		if (c.bad || !xid)
			break;
		if (filter_catalog_oid(rel)) {
			filter_lock(f, xid);
		} else if (f->nprovisional && db) {
			/* A new relation's oid is its first file number: its lock names the creator. */
			uint32_t *v = ws_u64map_get(&f->kept, filter_key(db, rel));

			if (v && *v == KEPT_PROVISIONAL)
				(void)keeps(f, db, rel, xid);
		}
	}
	return WS_BLANK;
}

static int
special_record(struct ws_filter *f, const struct ws_rec *rec, const struct ws_walver *ver,
               enum ws_verdict *verdict, struct ws_err *err)
{
	struct ws_record r;

	*verdict = WS_KEEP;
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	filter_subxact(f, rec->xid, r.toplevel_xid);
	switch (rec->rmid) {
	case WS_RM_XACT:
		return filter_xact_record(f, &r, ver, err);
	case WS_RM_RELMAP:
		return relmap_record(f, &r, err);
	case WS_RM_STANDBY:
		*verdict = standby_record(f, &r);
		break;
	case WS_RM_SMGR:
		smgr_record(f, &r);
		break;
	case WS_RM_DBASE:
		dbase_record(f, &r);
		break;
	case WS_RM_TBLSPC:
		if ((rec->info & INFO_MASK) == TBLSPC_CREATE && r.main_len > 4)
			*verdict = WS_CLEAR_PATH;
		break;
	default:
		break;
	}
	return 0;
}

/* The top-level xid stands behind the blocks, but tells whose they are. */
static int
learn_tree_first(struct ws_filter *f, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	filter_subxact(f, rec->xid, r.toplevel_xid);
	return 0;
}

static __attribute__((noinline)) int
record_slow(struct ws_filter *f, const struct ws_rec *rec, const struct ws_walver *ver,
            enum ws_verdict *verdict, struct ws_err *err)
{
	uint8_t kind = kinds[rec->rmid];
	struct walk w;

	if (rec->rmid == WS_RM_XLOG) {
		uint8_t info = rec->info & INFO_MASK;

		kind = info == XLOG_FPI || info == XLOG_FPI_FOR_HINT ? BY_BLOCK : KEEP_ALL;
	}
	if (kind == SPECIAL)
		return special_record(f, rec, ver, verdict, err);
	if (f->nprovisional && learn_tree_first(f, rec, err) != 0)
		return -1;
	if (walk_headers(f, rec, &w) != 0)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": the record's headers are malformed",
		                 WS_LSN_ARG(rec->start));
	bool keep = kind == KEEP_ALL || (kind == BY_BLOCK && w.keep);

	if (kind == BY_BLOCK && !w.blocks)
		keep = names_kept(f, rec, w.main_len);
	*verdict = keep ? WS_KEEP : WS_BLANK;
	return 0;
}

int
ws_filter_record(struct ws_filter *f, const struct ws_rec *rec, const struct ws_walver *ver,
                 enum ws_verdict *verdict, struct ws_err *err)
{
	if (kinds[rec->rmid] == BY_BLOCK && !f->nprovisional && usual(f, rec, verdict))
		return 0;
	return record_slow(f, rec, ver, verdict, err);
}
