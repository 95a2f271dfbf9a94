/* Transaction trees, the catalog locks that they hold, databases being copied; see filterpriv.h.
 * Layouts: storage/standbydefs.h (xl_running_xacts). */
#include <stdlib.h>

#include "filterpriv.h"
#include "ws/cursor.h"

static ws_xid
top_of(const struct ws_filter *f, ws_xid xid)
{
	ws_xid top = ws_xidruns_find(&f->subs, xid);

	return top ? top : xid;
}

void
filter_subxact(struct ws_filter *f, ws_xid sub, ws_xid top)
{
	if (!sub || !top || sub == top)
		return;
	ws_xidruns_put(&f->subs, sub, top);
	/* A lock seen under the subtransaction before its tree was known. */
	for (uint32_t i = 0; i < f->nlocks; i++)
		if (f->locks[i].top == sub)
			f->locks[i].top = top;
}

void
filter_lock(struct ws_filter *f, ws_xid xid)
{
	for (uint32_t i = 0; i < f->nlocks; i++)
		if (f->locks[i].xid == xid)
			return;
	if (f->nlocks == f->locks_cap) {
		f->locks_cap = f->locks_cap ? f->locks_cap * 2 : 16;
		f->locks = ws_realloc(f->locks, f->locks_cap * sizeof *f->locks);
	}
	f->locks[f->nlocks++] = (struct filter_lock){xid, top_of(f, xid)};
}

/* True when the tree of xid holds an AccessExclusive lock on a catalog.  An xid from before the
 * horizon may be a subtransaction whose top we never learnt: then the lock of any tree that may be
 * its own counts (a top is always older than its subtransactions). */
bool
filter_tree_locks(const struct ws_filter *f, ws_xid xid)
{
	if (!f->nlocks)
		return false;
	ws_xid known = ws_xidruns_find(&f->subs, xid), top = known ? known : xid;
	bool vague = !known && (!f->have_horizon || filter_precedes(xid, f->horizon));

	for (uint32_t i = 0; i < f->nlocks; i++)
		if (f->locks[i].top == top || (vague && filter_precedes(f->locks[i].top, xid)))
			return true;
	return false;
}

static void
unlock_at(struct ws_filter *f, uint32_t i)
{
	f->locks[i] = f->locks[--f->nlocks];
}

/* xid ended: as a top transaction with all its tree, as a subtransaction alone. */
static void
forget(struct ws_filter *f, ws_xid xid)
{
	for (uint32_t i = 0; i < f->nlocks;)
		if (f->locks[i].xid == xid || f->locks[i].top == xid)
			unlock_at(f, i);
		else
			i++;
	for (uint32_t i = 0; i < f->ncopies;)
		if (f->copies[i].xid == xid)
			f->copies[i] = f->copies[--f->ncopies];
		else
			i++;
	ws_xidruns_del(&f->subs, xid);
}

int
filter_xact_record(struct ws_filter *f, const struct ws_record *r, const struct ws_walver *ver,
                   struct ws_err *err)
{
	struct ws_xactrec x;
	int rc = ws_xactrec_parse(r, ver, &x, err);

	if (rc <= 0)
		return rc;
	switch (x.op) {
	case WS_XACT_ASSIGNMENT:
		for (uint32_t i = 0; i < x.nsubxids; i++)
			filter_subxact(f, ws_xactrec_subxid(&x, i), x.assign_top);
		break;
	case WS_XACT_COMMIT:
	case WS_XACT_COMMIT_PREPARED:
	case WS_XACT_ABORT:
	case WS_XACT_ABORT_PREPARED:
		if (f->kept.n)
			for (uint32_t i = 0; i < x.nrels; i++) {
				struct ws_locator loc = ws_xactrec_rel(&x, i);

				filter_bury(f, loc.db, loc.rel);
			}
		if (!f->nlocks && !f->ncopies && ws_xidruns_empty(&f->subs))
			break;
		for (uint32_t i = 0; i < x.nsubxids; i++)
			forget(f, ws_xactrec_subxid(&x, i));
		forget(f, x.xid);
		break;
	case WS_XACT_PREPARE: /* goes on, with its locks */
	case WS_XACT_INVALIDATIONS:
		break;
	}
	return 0;
}

/* A snapshot of what runs: transactions that a crash ended without a record are reaped.  With an
 * overflowed list a subtransaction may be missing from it, so only what is older than all goes. */
void
filter_running(struct ws_filter *f, const struct ws_record *r)
{
	struct ws_cursor c = ws_cursor(r->main, r->main_len);
	uint32_t n = ws_cur_u32(&c) + ws_cur_u32(&c);
	bool overflow = ws_cur_u32(&c) & 0xff;
	ws_xid next = ws_cur_u32(&c), oldest = ws_cur_u32(&c);

	ws_cur_skip(&c, 4);
	if (c.bad || ws_cur_left(&c) / 4 < n)
		return;
	const uint8_t *xids = c.p;

	for (uint32_t i = 0; i < f->nlocks;) {
		ws_xid top = f->locks[i].top;
		bool runs = !filter_precedes(top, oldest) && (overflow || !filter_precedes(top, next));

		for (uint32_t k = 0; !runs && k < n; k++)
			runs = ws_le32(xids + (size_t)k * 4) == top;
		if (runs)
			i++;
		else
			unlock_at(f, i);
	}
	for (uint32_t i = 0; i < f->ncopies;)
		if (filter_precedes(f->copies[i].xid, oldest))
			f->copies[i] = f->copies[--f->ncopies];
		else
			i++;
	ws_xidruns_reap(&f->subs, oldest);
	if (!f->have_horizon) {
		f->have_horizon = true;
		f->horizon = next;
	}
}

void
filter_copy_add(struct ws_filter *f, ws_oid db, ws_xid xid)
{
	if (f->ncopies == f->copies_cap) {
		f->copies_cap = f->copies_cap ? f->copies_cap * 2 : 4;
		f->copies = ws_realloc(f->copies, f->copies_cap * sizeof *f->copies);
	}
	f->copies[f->ncopies++] = (struct filter_copy){db, xid};
}

bool
filter_copying(const struct ws_filter *f, ws_oid db)
{
	for (uint32_t i = 0; i < f->ncopies; i++)
		if (f->copies[i].db == db)
			return true;
	return false;
}

void
filter_move_add(struct ws_filter *f, ws_oid db, ws_oid spc)
{
	for (uint32_t i = 0; i < f->nmoves; i++)
		if (f->moves[i].db == db) {
			f->moves[i].spc = spc;
			return;
		}
	if (f->nmoves == f->moves_cap) {
		f->moves_cap = f->moves_cap ? f->moves_cap * 2 : 4;
		f->moves = ws_realloc(f->moves, f->moves_cap * sizeof *f->moves);
	}
	f->moves[f->nmoves++] = (struct filter_move){db, spc};
}

/* True when a move of db away from spc was under way; it has ended now. */
bool
filter_move_take(struct ws_filter *f, ws_oid db, ws_oid spc)
{
	for (uint32_t i = 0; i < f->nmoves; i++)
		if (f->moves[i].db == db && f->moves[i].spc == spc) {
			f->moves[i] = f->moves[--f->nmoves];
			return true;
		}
	return false;
}
