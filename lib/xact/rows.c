/* Heap records of a committed transaction to row events. */
#include <string.h>

#include "toast.h"
#include "ws/log.h"

/* ---- which relation ---- */

/* Classes whose rows nobody asked for count, so that it can be seen. */
static struct ws_shape *
sendable(struct ws_decoder *d, struct ws_shape *sh)
{
	if (sh->cls == WS_REL_USER || sh->cls == WS_REL_TOAST)
		return sh;
	if (sh->cls != WS_REL_CATALOG)
		d->st.not_sent++;
	return NULL;
}

static int
unknown(const struct ws_decoder *d, const struct ws_locator *loc, ws_lsn lsn, struct ws_err *err)
{
	return ws_err_op(err, "unknown_relation",
	                 "the row at " WS_LSN_FMT
	                 " is of file %u/%u/%u, which no relation of the catalog history has "
	                 "(transaction %u, commit at " WS_LSN_FMT ")",
	                 WS_LSN_ARG(lsn), loc->spc, loc->db, loc->rel, d->begin.xid,
	                 WS_LSN_ARG(d->begin.commit_lsn));
}

/* A file older than the transaction, or made in it without our having seen that. */
static int
older_file(struct ws_decoder *d, const struct ws_locator *loc, ws_lsn lsn, bool has_data,
           struct ws_shape **sh, struct ws_err *err)
{
	ws_oid oid;
	int rc = ws_cathist_filenode(d->o.cat, d->o.db, loc->rel, d->begin.commit_lsn, &oid, err);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		rc = ws_shapes_file(&d->shapes, loc, sh, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			return has_data ? unknown(d, loc, lsn, err) : 0;
		oid = (*sh)->rel->oid;
	}
	if (ws_chain_judge(d->chain, loc->rel, lsn, oid) == WS_PLACE_VOID) {
		d->st.voided++;
		*sh = NULL;
		return 0;
	}
	/* Not there at the commit: dropped by this transaction, and its rows with it. */
	return ws_shapes_rel(&d->shapes, oid, sh, err) < 0 ? -1 : 0;
}

static int
chained_file(struct ws_decoder *d, const struct ws_locator *loc, ws_lsn lsn, bool has_data,
             struct ws_shape **sh, struct ws_err *err)
{
	ws_oid oid;

	switch (ws_chain_place(d->chain, loc->rel, lsn, &oid)) {
	case WS_PLACE_KNOWN:
		return ws_shapes_rel(&d->shapes, oid, sh, err) < 0 ? -1 : 0;
	case WS_PLACE_VOID:
		d->st.voided++;
		return 0;
	case WS_PLACE_GONE:
		return 0;
	case WS_PLACE_OLDER:
		return older_file(d, loc, lsn, has_data, sh, err);
	case WS_PLACE_UNKNOWN:
		break;
	}
	return has_data ? unknown(d, loc, lsn, err) : 0;
}

int
ws_row_file(struct ws_decoder *d, const struct ws_locator *loc, ws_lsn lsn, bool has_data,
            struct ws_shape **sh, struct ws_err *err)
{
	*sh = NULL;
	if (d->chain)
		return chained_file(d, loc, lsn, has_data, sh, err);
	int rc = ws_shapes_file(&d->shapes, loc, sh, err);

	if (rc == 0 && has_data)
		return unknown(d, loc, lsn, err);
	return rc < 0 ? -1 : 0;
}

/* The shape of a row's relation; NULL: not to be sent. */
static int
row_shape(struct ws_decoder *d, const struct ws_locator *loc, bool has_data, struct ws_shape **sh,
          struct ws_err *err)
{
	struct ws_rowfile *f = &d->files[loc->rel % WS_ROWFILES];

	if (!d->chain && f->file == loc->rel && f->spc == loc->spc) {
		*sh = f->shape;
		return 0;
	}
	if (ws_row_file(d, loc, d->row_lsn, has_data, sh, err) != 0)
		return -1;
	if (*sh)
		*sh = sendable(d, *sh);
	if (!d->chain && *sh)
		*f = (struct ws_rowfile){loc->rel, loc->spc, *sh};
	return 0;
}

/* ---- rows ---- */

static int
decode(struct ws_decoder *d, struct ws_shape *sh, const struct ws_tuple *t, unsigned flags,
       struct ws_value *v, struct ws_err *err)
{
	struct ws_heapenv env = {&d->arena, ws_toast_fetch, d, d->o.max_value};
	struct ws_heapdesc *desc = sh->desc;

	if (d->chain && ws_row_old_desc(d, sh, t, &desc, err) != 0)
		return -1;
	if (ws_heap_decode(desc, t, flags, &env, v, err) != 0)
		return ws_err_prefix(err, "%s.%s, row at " WS_LSN_FMT, sh->rel->nspname, sh->rel->name,
		                     WS_LSN_ARG(d->row_lsn));
	return 0;
}

static int
old_values(struct ws_decoder *d, struct ws_shape *sh, const struct ws_tuple *t, bool whole,
           struct ws_err *err)
{
	d->nmiss = 0;
	d->old_whole = whole;
	if (decode(d, sh, t, whole ? 0 : WS_DECODE_KEY, d->vold, err) != 0)
		return -1;
	return d->nmiss && whole ? ws_toast_fill(d, sh, NULL, d->vold, err) : 0;
}

static int
new_values(struct ws_decoder *d, struct ws_shape *sh, const struct ws_tuple *t,
           const struct ws_value *old, struct ws_err *err)
{
	d->nmiss = 0;
	if (decode(d, sh, t, 0, d->vnew, err) != 0)
		return -1;
	return d->nmiss ? ws_toast_fill(d, sh, old, d->vnew, err) : 0;
}

static int
put_row(struct ws_decoder *d, struct ws_shape *sh, char op, const struct ws_tuple *new_,
        const struct ws_tuple *old, bool old_full, struct ws_err *err)
{
	if ((!d->begun && ws_ev_begin(d, err) != 0) ||
	    (!sh->handle && ws_shapes_describe(&d->shapes, sh, d->o.out, err) != 0))
		return -1;
	ws_arena_reset(&d->arena);
	d->old_whole = false;
	if ((old && old_values(d, sh, old, old_full, err) != 0) ||
	    (new_ && new_values(d, sh, new_, old ? d->vold : NULL, err) != 0))
		return -1;
	size_t frame = d->o.out->len;

	ws_change_put_row(d->o.out, op, sh->handle, ++d->ordinal, sh->desc->ncols,
	                  new_ ? d->vnew : NULL, old ? d->vold : NULL, old_full);
	if (d->o.out->len - frame > WS_CHANGE_MAX_FRAME)
		return ws_err_op(
			err, "row_too_long",
			"%s.%s: the row at " WS_LSN_FMT " has %zu bytes, more than a frame may have",
			sh->rel->nspname, sh->rel->name, WS_LSN_ARG(d->row_lsn), d->o.out->len - frame);
	if (sh->nraw)
		ws_row_raw(d, sh, frame, new_ ? d->vnew : NULL, old ? d->vold : NULL);
	return d->o.out->len >= d->o.flush_at ? ws_ev_flush(d, err) : 0;
}

static int
no_tuple(const struct ws_decoder *d, const struct ws_shape *sh, struct ws_err *err)
{
	return ws_err_op(err, "wal_level",
	                 "%s.%s: the row at " WS_LSN_FMT " was logged without what logical decoding "
	                 "needs (wal_level below logical)",
	                 sh->rel->nspname, sh->rel->name, WS_LSN_ARG(d->row_lsn));
}

static int
multi_insert(struct ws_decoder *d, struct ws_shape *sh, const struct ws_heaprec *h,
             struct ws_err *err)
{
	struct ws_heap_multi m = ws_heap_multi(h);
	struct ws_tuple t;
	int rc;

	while ((rc = ws_heap_multi_next(&m, &t, NULL, err)) == 1) {
		if (put_row(d, sh, 'I', &t, NULL, false, err) != 0)
			return -1;
		d->st.inserts++;
	}
	return rc < 0 ? ws_err_prefix(err, WS_LSN_FMT, WS_LSN_ARG(d->row_lsn)) : 0;
}

static int
user_row(struct ws_decoder *d, struct ws_shape *sh, const struct ws_heaprec *h, struct ws_err *err)
{
	bool full = h->flags & WS_HR_OLD_FULL;
	const struct ws_tuple *old = h->flags & (WS_HR_OLD_FULL | WS_HR_OLD_KEY) ? &h->old : NULL;

	if (h->op != WS_HEAP_DELETE && (!(h->flags & WS_HR_NEW) || h->flags & WS_HR_DELTA))
		return no_tuple(d, sh, err);
	switch (h->op) {
	case WS_HEAP_INSERT:
		d->st.inserts++;
		return put_row(d, sh, 'I', &h->new_, NULL, false, err);
	case WS_HEAP_MULTI_INSERT:
		return multi_insert(d, sh, h, err);
	case WS_HEAP_UPDATE:
		d->st.updates++;
		return put_row(d, sh, 'U', &h->new_, old, full, err);
	case WS_HEAP_DELETE:
		d->st.deletes++;
		return put_row(d, sh, 'D', NULL, old, full, err);
	default:
		return 0;
	}
}

/* ---- speculative inserts (ON CONFLICT): they count once confirmed ---- */

/* The pending one that the record decides, or NULL. */
static struct ws_spec *
spec_find(struct ws_decoder *d, const struct ws_heaprec *h, ws_xid xid)
{
	for (unsigned i = d->nspecs; i-- > 0;)
		if (d->specs[i].xid == xid && d->specs[i].file == h->loc.rel &&
		    d->specs[i].blkno == h->blkno && d->specs[i].off == h->off)
			return &d->specs[i];
	return NULL;
}

static void
spec_forget(struct ws_decoder *d, struct ws_spec *s)
{
	*s = d->specs[--d->nspecs];
}

/* More than one can wait only where an index expression inserts again. */
static int
spec_begin(struct ws_decoder *d, const struct ws_heaprec *h, const struct ws_rec *rec,
           struct ws_err *err)
{
	if (d->nspecs == WS_SPECS_MAX)
		return ws_err_op(err, "speculative_insert", "the speculative insert at " WS_LSN_FMT
		                 " was neither confirmed nor taken back before the one at " WS_LSN_FMT,
		                 WS_LSN_ARG(d->specs[0].at), WS_LSN_ARG(rec->start));
	d->specs[d->nspecs++] = (struct ws_spec){rec->start, rec->xid, h->loc.rel, h->blkno, h->off};
	return 0;
}

static int
spec_confirm(struct ws_decoder *d, const struct ws_heaprec *h, ws_xid xid, struct ws_err *err)
{
	struct ws_spec *s = spec_find(d, h, xid);
	struct ws_record r;
	struct ws_heaprec ins;
	struct ws_shape *sh;

	if (!s)
		return 0; /* of a relation that is not sent */
	d->row_lsn = s->at;
	spec_forget(d, s);
	if (ws_posread_rec(&d->rd, d->row_lsn, err) != 0 || ws_record_parse(&d->rd.rec, &r, err) != 0 ||
	    ws_heaprec_parse(&r, &ins, err) < 0 ||
	    row_shape(d, &ins.loc, ins.flags & WS_HR_NEW, &sh, err) != 0)
		return -1;
	return sh ? user_row(d, sh, &ins, err) : 0;
}

/* Everything but a row of an ordinary kind.  1: there is none to come; 0: h is a row; -1. */
static int
no_row(struct ws_decoder *d, const struct ws_rec *rec, struct ws_heaprec *h, struct ws_err *err)
{
	struct ws_record r;

	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	int rc = ws_heaprec_parse(&r, h, err);

	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	if (h->op == WS_HEAP_TRUNCATE) {
		if (ws_toast_truncate(d, h, err) != 0)
			return -1;
		return !d->store_only && ws_ev_truncate(d, h, rec->start, err) != 0 ? -1 : 1;
	}
	if (h->op == WS_HEAP_CONFIRM)
		return spec_confirm(d, h, rec->xid, err) != 0 ? -1 : 1;
	return 0;
}

int
ws_row_record(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_heaprec h;
	struct ws_shape *sh;

	d->row_lsn = rec->start;
	if (!ws_quick_heap(rec, &h)) {
		int rc = no_row(d, rec, &h, err);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	if (h.flags & WS_HR_SUPER) {
		/* Also one for each TOAST chunk of the row, which nothing will point to. */
		struct ws_spec *s = spec_find(d, &h, rec->xid);

		if (s)
			spec_forget(d, s);
		return ws_toast_super(d, &h, err);
	}
	if (row_shape(d, &h.loc, h.flags & (WS_HR_NEW | WS_HR_OLD_KEY | WS_HR_OLD_FULL), &sh, err) != 0)
		return -1;
	if (!sh)
		return 0;
	if (sh->cls == WS_REL_TOAST)
		return ws_toast_record(d, sh, rec, &h, err);
	if (d->store_only)
		return 0;
	if (h.flags & WS_HR_SPECULATIVE)
		return spec_begin(d, &h, rec, err);
	return user_row(d, sh, &h, err);
}
