/* Whether a table is on the source now what it was at the consistent point.
 *
 * COPY reads the snapshot's rows, but through the catalog of its own time: after a rewrite the
 * old rows are gone, after a DROP and ADD COLUMN a name means another column.  So the catalog is
 * read with a fresh snapshot while the table is locked, which keeps DDL away, and compared. */
#include <stdlib.h>
#include <string.h>

#include "ws/catquery.h"
#include "copy-int.h"

struct current {
	const struct copy_table *t;
	bool rel_same, toast_same;
	size_t types_same, rows_same; /* rows: of composites */
};

static bool
same_attr(const struct ws_attr *a, const struct ws_attr *b)
{
	const uint8_t flags = WS_ATT_DROPPED | WS_ATT_STORED | WS_ATT_VIRTUAL;

	if ((a->flags & flags) != (b->flags & flags))
		return false;
	if (a->flags & WS_ATT_DROPPED)
		return true;
	return !strcmp(a->name, b->name) && a->typid == b->typid && a->typmod == b->typmod;
}

/* What is in a composite, its name aside. */
static bool
same_row(const struct ws_rel *a, const struct ws_rel *b)
{
	bool same = a->natts == b->natts;

	for (int i = 0; same && i < a->natts; i++)
		same = same_attr(&a->attrs[i], &b->attrs[i]);
	return same;
}

static int
see_rel(void *arg, const struct ws_rel *r, struct ws_err *err)
{
	struct current *cur = arg;
	const struct ws_rel *want = cur->t->rel;

	(void)err;
	/* Chunks are known by their places in this file. */
	if (cur->t->toast && r->oid == cur->t->toast->oid)
		cur->toast_same = r->filenode == cur->t->toast->filenode;
	for (size_t i = 0; i < cur->t->ntypes; i++) {
		const struct ws_rel *row = cur->t->types[i]->row;

		if (row && row->oid == r->oid && same_row(row, r))
			cur->rows_same++;
	}
	if (r->oid != want->oid)
		return 0;
	bool same = !strcmp(r->nspname, want->nspname) && !strcmp(r->name, want->name) &&
				r->kind == want->kind && r->persistence == want->persistence &&
				r->filenode == want->filenode && r->toast == want->toast;

	cur->rel_same = same && same_row(r, want);
	return 0;
}

static bool
same_type(const struct ws_type *a, const struct ws_type *b)
{
	if (a->typtype != b->typtype || a->base != b->base || a->elem != b->elem ||
		a->subtype != b->subtype || a->relid != b->relid || a->nlabels != b->nlabels)
		return false;
	for (int i = 0; i < a->nlabels; i++)
		if (a->labels[i].oid != b->labels[i].oid || strcmp(a->labels[i].label, b->labels[i].label) != 0)
			return false;
	return true;
}

static int
see_type(void *arg, const struct ws_type *type, struct ws_err *err)
{
	struct current *cur = arg;

	(void)err;
	for (size_t i = 0; i < cur->t->ntypes; i++)
		if (cur->t->types[i]->oid == type->oid && same_type(cur->t->types[i], type))
			cur->types_same++;
	return 0;
}

static int
gone(void *arg, ws_oid oid, struct ws_err *err)
{
	(void)arg, (void)oid, (void)err;
	return 0;
}

static int
by_oid(const void *a, const void *b)
{
	ws_oid x = *(const ws_oid *)a, y = *(const ws_oid *)b;

	return x < y ? -1 : x > y;
}

int
copy_check(struct copy *c, const struct copy_table *t, struct ws_err *err)
{
	struct current cur = {.t = t, .toast_same = !t->toast};
	const struct ws_catquery_sink sink = {see_rel, see_type, gone, gone, NULL, NULL, NULL, &cur};
	const struct ws_boundary none = {0};
	ws_oid *types = ws_calloc(t->ntypes, sizeof *types);
	ws_oid *rels = ws_calloc(t->ntypes + 2, sizeof *rels);
	struct ws_boundary_ids ids = {.rels = rels, .nrels = 1, .types = types, .ntypes = t->ntypes};
	const struct ws_catquery_want want = {.boundary = &none, .ids = &ids};

	rels[0] = t->rel->oid;
	for (size_t i = 0; i < t->ntypes; i++) {
		types[i] = t->types[i]->oid;
		if (t->types[i]->row)
			rels[ids.nrels++] = t->types[i]->row->oid;
	}
	size_t nrows = ids.nrels - 1;

	if (t->toast)
		rels[ids.nrels++] = t->toast->oid;
	qsort(rels, ids.nrels, sizeof *rels, by_oid);
	qsort(types, ids.ntypes, sizeof *types, by_oid);
	int rc = ws_catquery_read(c->control, &want, 0, &sink, err);

	free(types);
	free(rels);
	if (rc != 0)
		return -1;
	return cur.rel_same && cur.toast_same && cur.types_same == t->ntypes && cur.rows_same == nrows;
}
