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
	bool rel_same;
	size_t types_same;
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

static int
see_rel(void *arg, const struct ws_rel *r, struct ws_err *err)
{
	struct current *cur = arg;
	const struct ws_rel *want = cur->t->rel;

	(void)err;
	if (r->oid != want->oid)
		return 0;
	bool same = !strcmp(r->nspname, want->nspname) && !strcmp(r->name, want->name) && r->kind == want->kind &&
	            r->persistence == want->persistence && r->filenode == want->filenode && r->natts == want->natts;

	for (int i = 0; same && i < r->natts; i++)
		same = same_attr(&r->attrs[i], &want->attrs[i]);
	cur->rel_same = same;
	return 0;
}

static bool
same_type(const struct ws_type *a, const struct ws_type *b)
{
	if (a->typtype != b->typtype || a->base != b->base || a->elem != b->elem || a->nlabels != b->nlabels)
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

int
copy_check(struct copy *c, const struct copy_table *t, struct ws_err *err)
{
	struct current cur = {.t = t};
	const struct ws_catquery_sink sink = {see_rel, see_type, gone, gone, NULL, NULL, &cur};
	const struct ws_boundary none = {0};
	ws_oid *types = ws_calloc(t->ntypes, sizeof *types), rel = t->rel->oid;
	const struct ws_boundary_ids ids = {.rels = &rel, .nrels = 1, .types = types, .ntypes = t->ntypes};
	const struct ws_catquery_want want = {.boundary = &none, .ids = &ids};

	for (size_t i = 0; i < t->ntypes; i++)
		types[i] = t->types[i]->oid;
	int rc = ws_catquery_read(c->control, &want, 0, &sink, err);

	free(types);
	if (rc != 0)
		return -1;
	return cur.rel_same && cur.types_same == t->ntypes;
}
