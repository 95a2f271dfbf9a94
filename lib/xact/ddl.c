/* A commit that changed the catalog; see ddl.h. */
#include <stdlib.h>
#include <string.h>

#include "ddl.h"
#include "pgclass.h"
#include "ws/log.h"

#define PG_CLASS_OID 1259u

void
ws_ddl_fini(struct ws_ddl *g)
{
	for (size_t i = 0; i < g->nrels; i++) {
		ws_shape_unref(g->rels[i].before);
		ws_shape_unref(g->rels[i].after);
	}
	free(g->rels);
	if (g->has_chain)
		ws_chain_fini(&g->chain);
	ws_arena_free(&g->arena);
}

static bool
described(const struct ws_shape *sh)
{
	return sh && (sh->cls == WS_REL_USER || sh->cls == WS_REL_ROOT);
}

/* ---- which relations ---- */

static void
add_rel(struct ws_ddl *g, ws_oid oid)
{
	if ((g->nrels & (g->nrels - 1)) == 0)
		g->rels = ws_realloc(g->rels, (g->nrels ? g->nrels * 2 : 1) * sizeof *g->rels);
	g->rels[g->nrels++] = (struct ws_ddlrel){.oid = oid};
}

/* Did a type that was there before change?  Labels of an enum do not say whose they are. */
static int
types_changed(struct ws_ddl *g, const struct ws_boundary_ids *ids, struct ws_err *err)
{
	if (ids->nlabels)
		return 1;
	for (size_t i = 0; i < ids->ntypes; i++) {
		struct ws_type *before = NULL, *after = NULL;
		int rc = ws_cathist_type(g->d->o.cat, g->d->o.db, ids->types[i], g->start, &before, err);

		if (rc == 1)
			rc = ws_cathist_type(g->d->o.cat, g->d->o.db, ids->types[i], g->end, &after, err);
		bool changed = rc == 1 && before->lsn != after->lsn;

		ws_type_free(before);
		ws_type_free(after);
		if (rc < 0)
			return -1;
		if (changed)
			return 1;
	}
	return 0;
}

/* Did a composite type that was there before change?  Its attributes are a relation's; its row in
 * pg_type stays as it is. */
static int
composites_changed(struct ws_ddl *g, const ws_oid *oids, size_t n, struct ws_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		struct ws_rel *before = NULL;

		rc = ws_cathist_rel(g->d->o.cat, g->d->o.db, oids[i], g->start, &before, err);
		if (rc == 1 && before->kind != 'c')
			rc = 0;
		ws_rel_free(before);
	}
	return rc;
}

/* Relations that the commit changed.  A change of types concerns tables without an entry of their
 * own: all are compared then. */
static int
collect(struct ws_ddl *g, const struct ws_xactrec *x, struct ws_err *err)
{
	struct ws_decoder *d = g->d;
	struct ws_boundary_ids ids;
	ws_oid *oids = NULL;
	size_t n = 0;

	ws_boundary_ids(x, d->ver, &ids);
	int rc = types_changed(g, &ids, err);

	ws_boundary_ids_fini(&ids);
	if (rc < 0 || ws_cathist_changes(d->o.cat, d->o.db, g->end, &oids, &n, err) != 0)
		return -1;
	/* A catalog that moves is nobody's change. */
	for (size_t i = 0; i < n; i++)
		if (oids[i] >= WS_FIRST_NORMAL_OID)
			add_rel(g, oids[i]);
	if (rc == 0)
		rc = composites_changed(g, oids, n, err);
	free(oids);
	if (rc <= 0)
		return rc;
	size_t changed = g->nrels;

	if (ws_cathist_list(d->o.cat, d->o.db, g->start, &oids, &n, err) != 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		bool known = oids[i] < WS_FIRST_NORMAL_OID;

		for (size_t k = 0; k < changed && !known; k++)
			known = g->rels[k].oid == oids[i];
		if (!known)
			add_rel(g, oids[i]);
	}
	free(oids);
	return 0;
}

/* The shape as of now, referenced, with what reads it. */
static int
take(struct ws_ddl *g, ws_oid oid, struct ws_shape **out, struct ws_err *err)
{
	struct ws_shape *sh;
	int rc = ws_shapes_rel(&g->d->shapes, oid, &sh, err);

	if (rc <= 0)
		return rc;
	if (described(sh) && ws_shapes_desc(&g->d->shapes, sh, err) != 0)
		return -1;
	*out = ws_shape_ref(sh);
	return 0;
}

static int
compare(struct ws_ddl *g, struct ws_ddlrel *r, struct ws_err *err)
{
	bool was = described(r->before), is = described(r->after), same;

	if (was && is) {
		if (r->before == r->after)
			return 0;
		if (ws_shapes_same(&g->d->shapes, r->before, r->after, &same, err) != 0)
			return -1;
		if (!same)
			r->what = 'A';
		else
			r->after->handle = r->before->handle;
	} else if (is) {
		r->what = 'C';
	} else if (was && !r->after) {
		r->what = 'D';
	} else if (was) {
		ws_warn("%s.%s is unlogged from " WS_LSN_FMT " on: its changes are not in the WAL",
		        r->after->rel->nspname, r->after->rel->name, WS_LSN_ARG(g->end));
	}
	return 0;
}

int
ws_ddl_init(struct ws_ddl *g, struct ws_decoder *d, const struct ws_xactrec *x, bool mine,
            struct ws_err *err)
{
	memset(g, 0, sizeof *g);
	g->d = d;
	g->start = d->begin.commit_lsn;
	g->end = d->begin.end_lsn;
	if (mine && collect(g, x, err) != 0)
		return -1;
	ws_shapes_as_of(&d->shapes, g->start);
	for (size_t i = 0; i < g->nrels; i++)
		if (take(g, g->rels[i].oid, &g->rels[i].before, err) != 0)
			return -1;
	ws_decoder_epoch(d);
	ws_shapes_as_of(&d->shapes, g->end);
	for (size_t i = 0; i < g->nrels; i++)
		if (take(g, g->rels[i].oid, &g->rels[i].after, err) != 0 ||
		    compare(g, &g->rels[i], err) != 0)
			return -1;
	return 0;
}

/* ---- the chain ---- */

static bool
same_types(const struct ws_rel *a, const struct ws_rel *b)
{
	for (int i = 0; i < a->natts && i < b->natts; i++)
		if (!(b->attrs[i].flags & WS_ATT_DROPPED) &&
		    (a->attrs[i].typid != b->attrs[i].typid || a->attrs[i].typmod != b->attrs[i].typmod))
			return false;
	return true;
}

static int
chain_rel(void *arg, ws_oid oid, struct ws_chain_rel *out, struct ws_err *err)
{
	struct ws_ddl *g = arg;
	struct ws_rel *before = NULL, *after = NULL;

	if (ws_cathist_rel(g->d->o.cat, g->d->o.db, oid, g->start, &before, err) < 0 ||
	    ws_cathist_rel(g->d->o.cat, g->d->o.db, oid, g->end, &after, err) < 0) {
		ws_rel_free(before);
		return -1;
	}
	const struct ws_rel *any = after ? after : before;

	memset(out, 0, sizeof *out);
	out->before = before;
	out->after = after;
	if (any) {
		out->kind = any->kind;
		out->name = ws_arena_strdup(&g->arena, any->name);
	}
	if (before) {
		out->file_before = before->filenode;
		out->pers_before = before->persistence;
	}
	if (after) {
		out->file_after = after->filenode;
		out->pers_after = after->persistence;
	}
	out->same_types = before && after && same_types(before, after);
	ws_rel_free(before);
	ws_rel_free(after);
	return any != NULL;
}

static int
chain_file(void *arg, ws_oid file, bool after, ws_oid *oid, struct ws_err *err)
{
	struct ws_ddl *g = arg;

	return ws_cathist_filenode(g->d->o.cat, g->d->o.db, file, after ? g->end : g->start, oid, err);
}

static int
class_file(struct ws_ddl *g, ws_lsn lsn, ws_oid *file, struct ws_err *err)
{
	struct ws_rel *rel;
	int rc = ws_cathist_rel(g->d->o.cat, g->d->o.db, PG_CLASS_OID, lsn, &rel, err);

	*file = rc == 1 ? rel->filenode : PG_CLASS_OID;
	if (rc == 1)
		ws_rel_free(rel);
	return rc < 0 ? -1 : 0;
}

static int
chain_sets_file(void *arg, ws_lsn from, ws_lsn to, ws_oid rel, ws_oid file, struct ws_err *err)
{
	struct ws_ddl *g = arg;
	struct ws_pgclass where = {.from = from, .to = to, .oldest = g->oldest, .db = g->d->o.db};

	if (class_file(g, g->start, &where.class_before, err) != 0 ||
	    class_file(g, g->end, &where.class_after, err) != 0)
		return -1;
	return ws_pgclass_find(&g->d->rd, &where, rel, file, err);
}

static int
by_lsn(const void *a, const void *b)
{
	/* Both structs begin with their position. */
	ws_lsn x = *(const ws_lsn *)a, y = *(const ws_lsn *)b;

	return x < y ? -1 : x > y;
}

static int
read_inval(struct ws_ddl *g, ws_lsn at, struct ws_chain_inval *out, struct ws_err *err)
{
	struct ws_decoder *d = g->d;
	struct ws_record r;
	struct ws_xactrec x;

	if (ws_posread_rec(&d->rd, at, err) != 0 || ws_record_parse(&d->rd.rec, &r, err) != 0 ||
	    ws_xactrec_parse(&r, d->ver, &x, err) < 0)
		return -1;
	ws_oid *oids = ws_arena_alloc(&g->arena, x.nmsgs * sizeof *oids);

	*out = (struct ws_chain_inval){at, oids, 0};
	for (uint32_t i = 0; i < x.nmsgs; i++) {
		struct ws_inval m = ws_xactrec_msg(&x, i);

		if (m.id == WS_INVAL_RELCACHE && m.db == d->o.db && m.value >= WS_FIRST_NORMAL_OID)
			oids[out->n++] = m.value;
	}
	return 0;
}

/* Births and invalidations of the whole tree, in order, and what the commit removes. */
static int
gather(struct ws_ddl *g, const struct ws_xactrec *x, struct ws_xtx **tx, size_t n,
       struct ws_chain_input *in, struct ws_err *err)
{
	size_t nbirths = g->d->orphans.n, ninvals = 0;

	for (size_t i = 0; i < n; i++)
		if (tx[i]->ddl) {
			nbirths += tx[i]->ddl->nbirths;
			ninvals += tx[i]->ddl->ninvals;
		}
	struct ws_birth *births = ws_arena_alloc(&g->arena, nbirths * sizeof *births);
	struct ws_chain_inval *invals = ws_arena_alloc(&g->arena, ninvals * sizeof *invals);
	ws_oid *dropped = ws_arena_alloc(&g->arena, x->nrels * sizeof *dropped);

	for (size_t i = 0; i < n; i++) {
		const struct ws_xddl *l = tx[i]->ddl;

		if (!l)
			continue;
		if (l->nbirths)
			memcpy(births + in->nbirths, l->births, l->nbirths * sizeof *births);
		in->nbirths += l->nbirths;
		for (size_t k = 0; k < l->ninvals; k++)
			if (read_inval(g, l->invals[k], &invals[in->ninvals++], err) != 0)
				return -1;
	}
	if (g->d->orphans.n) {
		size_t claimed;

		if (ws_orphans_claim(g->d, x, g->end, births + in->nbirths, &claimed, err) != 0)
			return -1;
		in->nbirths += claimed;
	}
	qsort(births, in->nbirths, sizeof *births, by_lsn);
	qsort(invals, ninvals, sizeof *invals, by_lsn);
	for (uint32_t i = 0; i < x->nrels; i++) {
		struct ws_locator loc = ws_xactrec_rel(x, i);

		if (loc.db == g->d->o.db)
			dropped[in->ndropped++] = loc.rel;
	}
	in->births = births;
	in->invals = invals;
	in->dropped = dropped;
	return 0;
}

int
ws_ddl_chain(struct ws_ddl *g, const struct ws_xactrec *x, struct ws_xtx **tx, size_t n,
             struct ws_err *err)
{
	struct ws_chain_input in = {
		.commit = g->end,
		.no_rows = true,
		.trust_swaps = g->d->o.trust_swaps,
		.rel = chain_rel,
		.file = chain_file,
		.sets_file = chain_sets_file,
		.arg = g,
	};
	bool wanted = false;

	for (size_t i = 0; i < n; i++) {
		if (!g->oldest || tx[i]->first < g->oldest)
			g->oldest = tx[i]->first;
		in.no_rows &= tx[i]->n == 0;
		wanted |= tx[i]->n || (tx[i]->ddl && tx[i]->ddl->nbirths);
	}
	if (g->d->tab.spill.taken) {
		ws_lsn first = ws_spill_taken_first(&g->d->tab.spill);

		if (!g->oldest || first < g->oldest)
			g->oldest = first;
		in.no_rows = false;
		wanted = true;
	}
	for (size_t i = 0; i < g->nrels && !wanted; i++) {
		const struct ws_ddlrel *r = &g->rels[i];

		wanted = r->before && r->after && r->before->rel->filenode != r->after->rel->filenode;
	}
	if (!wanted) {
		size_t claimed;

		return ws_orphans_claim(g->d, x, g->end, NULL, &claimed, err);
	}
	ws_oid *changed = ws_arena_alloc(&g->arena, g->nrels * sizeof *changed);

	for (size_t i = 0; i < g->nrels; i++)
		changed[i] = g->rels[i].oid;
	in.changed = changed;
	in.nchanged = g->nrels;
	if (gather(g, x, tx, n, &in, err) != 0 || ws_chain_build(&in, &g->chain, err) != 0)
		return -1;
	g->has_chain = true;
	g->d->chain = &g->chain;
	g->d->next_mark = 0;
	return 0;
}

int
ws_ddl_marks(struct ws_ddl *g, ws_lsn lsn, struct ws_err *err)
{
	struct ws_decoder *d = g->d;

	while (g->has_chain && d->next_mark < g->chain.nmarks &&
	       g->chain.marks[d->next_mark].at < lsn) {
		const struct ws_mark *m = &g->chain.marks[d->next_mark++];
		struct ws_shape *sh;
		int rc = ws_shapes_rel(&d->shapes, m->rel, &sh, err);

		if (rc < 0 ||
		    (rc == 1 && sh->cls == WS_REL_USER && ws_ev_replace(d, m->begin, sh, err) != 0))
			return -1;
	}
	return 0;
}

/* ---- schema events ---- */

static bool
same_name(const struct ws_rel *a, const struct ws_rel *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->nspname, b->nspname);
}

/* Gives its name up: dropped or renamed. */
static bool
releases(const struct ws_ddlrel *r)
{
	return r->what == 'D' || (r->what == 'A' && !same_name(r->before->rel, r->after->rel));
}

/* Is r's new name still another's? */
static bool
must_wait(const struct ws_ddlrel *r, struct ws_ddlrel *const *held, size_t nheld)
{
	if (r->what == 'D')
		return false;
	for (size_t i = 0; i < nheld; i++)
		if (held[i] != r && held[i]->what && same_name(held[i]->before->rel, r->after->rel))
			return true;
	return false;
}

/* All events come first in the transaction, since all its rows have the commit's shape; whoever
 * takes over a name comes after the one that gives it up.  Names that go round in a circle are
 * left to the consumer. */
int
ws_ddl_schema(struct ws_ddl *g, struct ws_err *err)
{
	struct ws_ddlrel **held = ws_malloc(g->nrels * sizeof(void *));
	size_t nheld = 0, left = 0;
	bool circle = false;
	int rc = 0;

	for (size_t i = 0; i < g->nrels; i++) {
		left += g->rels[i].what != 0;
		if (releases(&g->rels[i]))
			held[nheld++] = &g->rels[i];
	}
	while (left && rc == 0) {
		size_t before = left;

		for (size_t i = 0; i < g->nrels && rc == 0; i++) {
			struct ws_ddlrel *r = &g->rels[i];

			if (!r->what || (must_wait(r, held, nheld) && !circle))
				continue;
			rc = ws_ev_schema(g->d, r->what, r->what == 'C' ? NULL : r->before,
			                  r->what == 'D' ? NULL : r->after, err);
			r->what = 0;
			left--;
			circle = false;
		}
		circle = left == before;
	}
	free(held);
	return rc;
}
