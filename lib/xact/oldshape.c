/* Rows older than a CLUSTER or VACUUM FULL of the same transaction.  The copy holds every column,
 * so PostgreSQL forgets the missing values (RelationClearMissing in catalog/heap.c); rows from
 * before it may be too short for the commit's shape and need them. */
#include <stdlib.h>
#include <string.h>

#include "decoder.h"

static void
forget(struct ws_decoder *d)
{
	ws_heapdesc_free(d->old_desc);
	free(d->old_rel);
	ws_rel_free(d->old_before);
	ws_shape_unref(d->old_shape);
	d->old_desc = NULL;
	d->old_rel = d->old_before = NULL;
	d->old_shape = NULL;
}

/* A copy of rel, whose strings stay rel's, with room for its attributes. */
static struct ws_rel *
shallow_copy(const struct ws_rel *rel)
{
	struct ws_rel *r = ws_malloc(sizeof *r + (size_t)rel->natts * sizeof *r->attrs);

	*r = *rel;
	r->attrs = (struct ws_attr *)(r + 1);
	memcpy(r->attrs, rel->attrs, (size_t)rel->natts * sizeof *r->attrs);
	return r;
}

static int
make(struct ws_decoder *d, struct ws_shape *sh, struct ws_err *err)
{
	struct ws_rel *before;

	forget(d);
	if (ws_cathist_rel(d->o.cat, d->o.db, sh->rel->oid, d->begin.commit_lsn, &before, err) < 0)
		return -1;
	d->old_before = before;
	d->old_shape = ws_shape_ref(sh);
	d->old_natts = before ? (int16_t)before->natts : 0;
	d->old_rel = shallow_copy(sh->rel);
	for (int i = 0; before && i < before->natts && i < sh->rel->natts; i++) {
		struct ws_attr *a = &d->old_rel->attrs[i];
		const struct ws_attr *b = &before->attrs[i];

		if (a->flags & (WS_ATT_MISSING | WS_ATT_DROPPED) || !(b->flags & WS_ATT_MISSING))
			continue;
		a->missing = b->missing;
		a->flags |= WS_ATT_MISSING;
	}
	d->old_desc = ws_shapes_reader(&d->shapes, sh, d->old_rel, err);
	return d->old_desc ? 0 : -1;
}

int
ws_row_old_desc(struct ws_decoder *d, struct ws_shape *sh, const struct ws_tuple *t,
                struct ws_heapdesc **desc, struct ws_err *err)
{
	int natts = WS_TUPLE_NATTS(t);

	if (natts >= sh->rel->natts || !ws_chain_copied_after(d->chain, sh->rel->oid, d->row_lsn))
		return 0;
	if (d->old_shape != sh && make(d, sh, err) != 0)
		return -1;
	for (int i = natts > d->old_natts ? natts : d->old_natts; i < sh->rel->natts; i++)
		if (!(sh->rel->attrs[i].flags & (WS_ATT_DROPPED | WS_ATT_MISSING | WS_ATT_VIRTUAL)))
			return ws_err_op(
				err, "missing_value",
				"%s.%s, column %s: added and the table copied in the transaction of the row "
			    "at " WS_LSN_FMT ", whose value for it is not known any more; load the table again",
				sh->rel->nspname, sh->rel->name, sh->rel->attrs[i].name, WS_LSN_ARG(d->row_lsn));
	*desc = d->old_desc;
	return 0;
}

void
ws_row_old_forget(struct ws_decoder *d)
{
	forget(d);
}
