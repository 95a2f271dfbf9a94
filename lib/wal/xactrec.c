/* Transaction records taken apart; see ws/xactrec.h.
 * Layouts: access/xact.h (xl_xact_*), rmgrdesc/xactdesc.c. */
#include <string.h>

#include "walpriv.h"
#include "ws/cursor.h"
#include "ws/xactrec.h"

#define XACT_OPMASK   0x70
#define XACT_HAS_INFO 0x80

enum xinfo {
	HAS_DBINFO = 1 << 0,
	HAS_SUBXACTS = 1 << 1,
	HAS_RELFILES = 1 << 2,
	HAS_INVALS = 1 << 3,
	HAS_TWOPHASE = 1 << 4,
	HAS_ORIGIN = 1 << 5,
	HAS_GID = 1 << 7,
	HAS_DROPPED_STATS = 1 << 8
};

#define REL_SIZE 12u /* RelFileLocator */
#define MSG_SIZE 16u /* SharedInvalidationMessage */

/* A count and that many items. */
static const uint8_t *
counted(struct ws_cursor *c, uint32_t *n, size_t size)
{
	*n = ws_cur_u32(c);
	return ws_cur_bytes(c, *n * size);
}

/* A NUL-terminated string inside the cursor. */
static const char *
string(struct ws_cursor *c)
{
	const uint8_t *p = c->p, *nul = ws_cur_left(c) ? memchr(p, 0, ws_cur_left(c)) : NULL;

	if (!nul) {
		c->bad = true;
		return NULL;
	}
	ws_cur_skip(c, (size_t)(nul - p) + 1);
	return (const char *)p;
}

/* COMMIT, ABORT and both of prepared transactions. */
static void
parse_end(struct ws_cursor *c, bool has_info, uint8_t stat_size, struct ws_xactrec *out)
{
	uint32_t nstats;

	out->time = (int64_t)ws_cur_u64(c);
	if (has_info)
		out->xinfo = ws_cur_u32(c);
	if (out->xinfo & HAS_DBINFO) {
		out->has_db = true;
		out->db = ws_cur_u32(c);
		out->spc = ws_cur_u32(c);
	}
	if (out->xinfo & HAS_SUBXACTS)
		out->subxids = counted(c, &out->nsubxids, 4);
	if (out->xinfo & HAS_RELFILES)
		out->rels = counted(c, &out->nrels, REL_SIZE);
	if (out->xinfo & HAS_DROPPED_STATS)
		(void)counted(c, &nstats, stat_size);
	if (out->xinfo & HAS_INVALS && (out->op == WS_XACT_COMMIT || out->op == WS_XACT_COMMIT_PREPARED))
		out->msgs = counted(c, &out->nmsgs, MSG_SIZE);
	if (out->xinfo & HAS_TWOPHASE) {
		out->xid = ws_cur_u32(c);
		if (out->xinfo & HAS_GID)
			out->gid = string(c);
	}
	if (out->xinfo & HAS_ORIGIN) {
		out->origin_lsn = ws_cur_u64(c);
		out->origin_time = (int64_t)ws_cur_u64(c);
	}
}

/* n items of PREPARE, 8-aligned. */
static const uint8_t *
aligned(struct ws_cursor *c, uint32_t n, size_t size)
{
	return ws_cur_bytes(c, ws_maxalign(n * size));
}

/* PREPARE: struct xl_xact_prepare (72 bytes), then its arrays. */
static void
parse_prepare(struct ws_cursor *c, uint8_t stat_size, struct ws_xactrec *out)
{
	const uint8_t *h = ws_cur_bytes(c, 72);

	if (!h)
		return;
	out->xid = ws_le32(h + 8);
	out->has_db = true;
	out->db = ws_le32(h + 12);
	out->time = (int64_t)ws_le64(h + 16);
	out->nsubxids = ws_le32(h + 28);
	out->nrels = ws_le32(h + 32);
	out->nabort_rels = ws_le32(h + 36);
	uint32_t ncommit_stats = ws_le32(h + 40), nabort_stats = ws_le32(h + 44);

	out->nmsgs = ws_le32(h + 48);
	uint16_t gidlen = ws_le16(h + 54);

	out->origin_lsn = ws_le64(h + 56);
	out->origin_time = (int64_t)ws_le64(h + 64);
	const uint8_t *gid = aligned(c, gidlen, 1);

	if (gid && gidlen && gid[gidlen - 1] == 0)
		out->gid = (const char *)gid;
	else
		c->bad = true;
	out->subxids = aligned(c, out->nsubxids, 4);
	out->rels = aligned(c, out->nrels, REL_SIZE);
	out->abort_rels = aligned(c, out->nabort_rels, REL_SIZE);
	(void)aligned(c, ncommit_stats, stat_size);
	(void)aligned(c, nabort_stats, stat_size);
	out->msgs = aligned(c, out->nmsgs, MSG_SIZE);
}

int
ws_xactrec_parse(const struct ws_record *r, const struct ws_walver *ver, struct ws_xactrec *out,
                 struct ws_err *err)
{
	if (r->rec->rmid != WS_RM_XACT)
		return 0;
	struct ws_cursor c = ws_cursor(r->main, r->main_len);

	*out = (struct ws_xactrec){.op = r->rec->info & XACT_OPMASK, .xid = r->rec->xid};
	switch (out->op) {
	case WS_XACT_COMMIT:
	case WS_XACT_ABORT:
	case WS_XACT_COMMIT_PREPARED:
	case WS_XACT_ABORT_PREPARED:
		parse_end(&c, r->rec->info & XACT_HAS_INFO, ver->stat_item_size, out);
		break;
	case WS_XACT_PREPARE:
		parse_prepare(&c, ver->stat_item_size, out);
		break;
	case WS_XACT_ASSIGNMENT:
		out->assign_top = ws_cur_u32(&c);
		out->subxids = counted(&c, &out->nsubxids, 4);
		break;
	case WS_XACT_INVALIDATIONS:
		out->msgs = counted(&c, &out->nmsgs, MSG_SIZE);
		break;
	default:
		return 0;
	}
	if (c.bad)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": malformed transaction record (info %02X)",
		                 WS_LSN_ARG(r->rec->start), r->rec->info);
	return 1;
}

ws_xid
ws_xactrec_subxid(const struct ws_xactrec *x, uint32_t i)
{
	return ws_le32(x->subxids + 4 * (size_t)i);
}

struct ws_locator
ws_xactrec_rel(const struct ws_xactrec *x, uint32_t i)
{
	const uint8_t *p = x->rels + REL_SIZE * (size_t)i;

	return (struct ws_locator){ws_le32(p), ws_le32(p + 4), ws_le32(p + 8)};
}

struct ws_inval
ws_xactrec_msg(const struct ws_xactrec *x, uint32_t i)
{
	const uint8_t *p = x->msgs + MSG_SIZE * (size_t)i;

	/* storage/sinval.h: id int8 at 0; the database is second in every kind but the relation map's
	 * and snapshot's, where it is first as well, since padding precedes it.  SMGR messages have a
	 * backend and a locator instead; nobody here reads them. */
	return (struct ws_inval){(int8_t)p[0], ws_le32(p + 4), ws_le32(p + 8)};
}
