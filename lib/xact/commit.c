/* A transaction's end: its positions are read again, in order, and become events. */
#include <stdlib.h>
#include <string.h>

#include "ddl.h"
#include "decoder.h"
#include "merge.h"
#include "toast.h"

/* The transaction and its committed subtransactions, as far as they wrote anything of ours: most
 * are one.  Those that are spilled are taken in the spill. */
struct members {
	struct ws_xtx *few[16], **tx;
	size_t n, cap;
};

static void
member(struct ws_decoder *d, struct members *m, ws_xid xid)
{
	struct ws_xtx *tx = ws_xtab_find(&d->tab, xid);

	if (d->tab.spill.n)
		(void)ws_spill_take(&d->tab.spill, xid);
	if (!tx)
		return;
	if (m->n == m->cap) {
		m->cap *= 2;
		struct ws_xtx **more = ws_malloc(m->cap * sizeof *more);

		memcpy(more, m->tx, m->n * sizeof *more);
		if (m->tx != m->few)
			free(m->tx);
		m->tx = more;
	}
	m->tx[m->n++] = tx;
}

static void
members(struct ws_decoder *d, const struct ws_xactrec *x, struct members *m)
{
	m->tx = m->few;
	m->n = 0;
	m->cap = sizeof m->few / sizeof m->few[0];
	member(d, m, x->xid);
	for (uint32_t i = 0; i < x->nsubxids; i++)
		member(d, m, ws_xactrec_subxid(x, i));
}

static void
drop(struct ws_decoder *d, struct members *m)
{
	for (size_t i = 0; i < m->n; i++)
		ws_xtab_drop(&d->tab, m->tx[i]);
	ws_spill_done(&d->tab.spill);
}

void
ws_abort(struct ws_decoder *d, const struct ws_xactrec *x)
{
	ws_orphans_abort(&d->orphans, d->o.db, x);
	if (ws_xtab_end(&d->tab, x->xid))
		d->st.aborts++;
	for (uint32_t i = 0; i < x->nsubxids; i++)
		(void)ws_xtab_end(&d->tab, ws_xactrec_subxid(x, i));
}

/* ---- the records ---- */

static int
one(struct ws_decoder *d, ws_lsn at, struct ws_err *err)
{
	struct ws_record r;
	const struct ws_rec *rec = &d->rd.rec;

	if (ws_posread_rec(&d->rd, at, err) != 0)
		return -1;
	if (rec->rmid == WS_RM_HEAP || rec->rmid == WS_RM_HEAP2)
		return ws_row_record(d, rec, err);
	if (d->store_only)
		return 0;
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	return rec->rmid == WS_RM_SEQ ? ws_ev_sequence(d, &r, true, err)
	                              : ws_ev_message(d, &r, true, err);
}

static int
records_merged(struct ws_decoder *d, struct ws_ddl *g, struct ws_xtx **tx, size_t n,
               struct ws_err *err)
{
	struct ws_merge m;
	ws_lsn at;
	int rc = ws_merge_init(&m, d, tx, n, d->begin.commit_lsn, err);

	while (rc == 0 && (rc = ws_merge_next(&m, &at, err)) == 1) {
		rc = g && !d->store_only ? ws_ddl_marks(g, at, err) : 0;
		if (rc == 0)
			rc = one(d, at, err);
	}
	ws_merge_fini(&m);
	return rc;
}

static int
records(struct ws_decoder *d, struct ws_ddl *g, struct ws_xtx **tx, size_t n, struct ws_err *err)
{
	struct ws_positer it;
	ws_lsn at;

	if (n != 1 || tx[0]->pages || g || d->tab.spill.taken)
		return n || d->tab.spill.taken ? records_merged(d, g, tx, n, err) : 0;
	ws_positer_init(&it, tx[0]);
	while ((at = ws_positer_next(&it)))
		if (one(d, at, err) != 0)
			return -1;
	return 0;
}

/* ---- the commit ---- */

static int
send(struct ws_decoder *d, const struct ws_xactrec *x, bool mine, struct ws_xtx **tx, size_t n,
     struct ws_err *err)
{
	struct ws_ddl g;
	bool ddl = mine;
	int rc;

	ws_toast_begin(d);
	for (size_t i = 0; i < n && !ddl; i++)
		ddl = tx[i]->ddl && tx[i]->ddl->nbirths;
	if (!ddl) {
		ws_shapes_as_of(&d->shapes, d->begin.end_lsn);
		rc = records(d, NULL, tx, n, err);
		if (rc == 0)
			rc = ws_toast_end(d, NULL, x, err);
	} else {
		rc = ws_ddl_init(&g, d, x, mine, err);
		if (rc == 0)
			rc = ws_ddl_chain(&g, x, tx, n, err);
		if (rc == 0 && !d->store_only)
			rc = ws_ddl_schema(&g, err);
		if (rc == 0)
			rc = records(d, &g, tx, n, err);
		if (rc == 0 && !d->store_only)
			rc = ws_ddl_marks(&g, UINT64_MAX, err);
		if (rc == 0)
			rc = ws_toast_end(d, &g, x, err);
		d->chain = NULL;
		ws_row_old_forget(d);
		ws_ddl_fini(&g);
	}
	ws_toastmap_reset(&d->toast);
	if (rc == 0 && d->nspecs)
		rc = ws_err_op(err, "speculative_insert",
		               "the speculative insert at " WS_LSN_FMT " was never confirmed, but "
		               "its transaction committed at " WS_LSN_FMT,
		               WS_LSN_ARG(d->specs[0].at), WS_LSN_ARG(d->begin.commit_lsn));
	if (rc == 0)
		ws_ev_commit(d);
	return rc;
}

/* 1 wanted, 0 stop, -1; *skip: it was sent before, or is older than the history. */
static int
admit(struct ws_decoder *d, ws_lsn end, bool *skip, struct ws_err *err)
{
	struct ws_pos first;

	*skip = end <= d->o.skip;
	if (*skip)
		return 1;
	int rc = d->o.captured ? d->o.captured(d->o.arg, end, err) : 1;

	if (rc != 1 || d->first_capture)
		goto out;
	rc = ws_cathist_captured(d->o.cat, d->o.db, &first, NULL, err);
	if (rc == 0)
		return ws_err_op(err, "catalog_missing", "the catalog history has nothing of database %u",
		                 d->o.db);
	if (rc > 0)
		d->first_capture = first.lsn;
out:
	*skip = end <= d->first_capture;
	return rc;
}

/* Sent and acknowledged before a restart, or older than the history.  The TOAST store may not have
 * what it did: that is made good. */
static int
skipped(struct ws_decoder *d, const struct ws_xactrec *x, bool mine, struct ws_xtx **tx, size_t n,
        struct ws_err *err)
{
	size_t settled;
	int rc;

	d->st.skipped++;
	if (d->o.toast && d->begin.end_lsn > d->first_capture &&
	    !ws_toaststore_has(d->o.toast, d->begin.end_lsn)) {
		d->store_only = true;
		rc = send(d, x, mine, tx, n, err);
		d->store_only = false;
		return rc;
	}
	if (!mine)
		return 0;
	ws_decoder_epoch(d);
	return d->orphans.n ? ws_orphans_claim(d, x, d->begin.end_lsn, NULL, &settled, err) : 0;
}

int
ws_commit(struct ws_decoder *d, const struct ws_record *r, const struct ws_xactrec *x,
          struct ws_err *err)
{
	struct members m;
	struct ws_boundary b = {0};
	bool skip = false;
	int rc = 1;

	members(d, x, &m);
	bool n = m.n || d->tab.spill.taken;

	if (x->nmsgs)
		b = ws_boundary_of(x, d->ver);
	bool mine = ws_boundary_for(&b, d->o.db);

	if (n || mine)
		rc = admit(d, r->rec->end, &skip, err);
	if (rc == 1 && (n || mine)) {
		d->st.commit_time = x->time;
		d->begin = (struct ws_c_begin){x->xid, r->rec->start, r->rec->end, x->time, r->origin};
		d->tli = r->rec->tli;
		d->ordinal = 0;
		rc = skip ? skipped(d, x, mine, m.tx, m.n, err) : send(d, x, mine, m.tx, m.n, err);
		rc = rc == 0 ? 1 : -1;
		if (rc == 1)
			drop(d, &m);
	}
	if (m.tx != m.few)
		free(m.tx);
	return rc;
}
