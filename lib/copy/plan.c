/* Which tables a round reads, and their shapes as of its consistent point. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/file.h"
#include "ws/log.h"
#include "ws/pos.h"
#include "copy-int.h"

void
copy_oids_add(struct copy_oids *o, ws_oid oid)
{
	o->v = ws_realloc(o->v, (o->n + 1) * sizeof *o->v);
	o->v[o->n++] = oid;
}

bool
copy_oids_has(const struct copy_oids *o, ws_oid oid)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i] == oid)
			return true;
	return false;
}

static void
table_fini(struct copy_table *t)
{
	ws_heapdesc_free(t->desc);
	for (size_t i = 0; i < t->ntypes; i++)
		ws_type_free(t->types[i]);
	free(t->types);
	free(t->cols);
	ws_rel_free(t->rel);
	ws_rel_free(t->root);
	ws_rel_free(t->toast);
}

void
copy_plan_free(struct copy *c)
{
	for (size_t i = 0; i < c->ntables; i++)
		table_fini(&c->tables[i]);
	free(c->tables);
	c->tables = NULL;
	c->ntables = 0;
}

/* ---- shapes ---- */

struct lookup {
	struct copy *c;
	struct copy_table *t;
};

static int
find_type(void *arg, ws_oid oid, const struct ws_type **out, struct ws_err *err)
{
	struct lookup *l = arg;
	struct copy_table *t = l->t;
	struct ws_type *type;

	for (size_t i = 0; i < t->ntypes; i++)
		if (t->types[i]->oid == oid) {
			*out = t->types[i];
			return 1;
		}
	int rc = ws_cathist_type(l->c->hist, l->c->o->db, oid, l->c->snap.lsn, &type, err);

	if (rc != 1)
		return rc;
	t->types = ws_realloc(t->types, (t->ntypes + 1) * sizeof(void *));
	t->types[t->ntypes++] = type;
	*out = type;
	return 1;
}

static int
shape(struct copy *c, struct copy_table *t, struct ws_err *err)
{
	struct lookup l = {c, t};
	const struct ws_copy_opts *o = c->o;

	t->desc = ws_heapdesc_new(t->rel, find_type, &l, err);
	if (!t->desc)
		return -1;
	if (o->oracle)
		ws_heapdesc_oracle(t->desc);
	t->cols = ws_calloc(t->desc->ncols, 1);
	for (uint16_t i = 0; i < t->desc->ncols; i++) {
		const struct ws_heapcol *col = &t->desc->cols[i];

		t->cols[i] = (uint8_t)o->column(o->arg, t->rel, t->root, col->attr,
									   col->type.kind == WS_K_UNSUPPORTED);
	}
	return o->oracle ? copy_check_raw(c, t, err) : 0;
}

/* ---- choosing ---- */

static bool
is_named(const char *operand, const struct ws_rel *r)
{
	size_t n = strlen(r->nspname);

	if (!strncmp(operand, r->nspname, n) && operand[n] == '.' && !strcmp(operand + n + 1, r->name))
		return true;
	return !strcmp(r->nspname, "public") && !strcmp(operand, r->name);
}

/* Named by an operand, itself or by its partitioned table; found[] notes which. */
static bool
is_wanted(const struct copy *c, const struct copy_table *t, bool *found)
{
	bool wanted = c->o->ntables == 0;

	for (int i = 0; i < c->o->ntables; i++)
		if (is_named(c->o->tables[i], t->rel) || (t->root && is_named(c->o->tables[i], t->root)))
			wanted = found[i] = true;
	return wanted;
}

/* Loaded by an earlier run?  1 and its consistent point counts for the stream's end; 0; -1. */
static int
is_loaded(struct copy *c, ws_oid oid, struct ws_err *err)
{
	char *path = ws_asprintf("%s/consumer/%s/load/%u", c->o->state, c->o->consumer, oid);
	struct ws_pos p;
	int rc = ws_pos_read_first(path, &p, err);

	if (rc == 1 && (!c->lowest || p.lsn < c->lowest))
		c->lowest = p.lsn;
	free(path);
	return rc;
}

/* Tables whose rows ws-decode sends: ordinary, permanent, not the system's. */
static bool
is_user_table(const struct ws_rel *r)
{
	return r->kind == 'r' && r->persistence == 'p' && r->oid >= WS_FIRST_NORMAL_OID;
}

/* 1: t is one of the round's, 0 not, -1 error. */
static int
consider(struct copy *c, struct copy_table *t, ws_oid oid, bool *found, struct ws_err *err)
{
	const struct ws_copy_opts *o = c->o;
	int rc = ws_cathist_rel(c->hist, o->db, oid, c->snap.lsn, &t->rel, err);

	if (rc != 1)
		return rc;
	if (!is_user_table(t->rel))
		return 0;
	if (t->rel->root && t->rel->root != oid &&
	    ws_cathist_rel(c->hist, o->db, t->rel->root, c->snap.lsn, &t->root, err) < 0)
		return -1;
	if (!is_wanted(c, t, found))
		return 0;
	rc = o->route(o->arg, t->rel, t->root, &t->with_rows, err);
	if (rc != 1) {
		if (rc != 0 || !o->ntables)
			return rc;
		for (int i = 0; i < o->ntables; i++)
			if (is_named(o->tables[i], t->rel))
				return ws_err_usage(err, "table %s.%s has no rule that replicates it", t->rel->nspname, t->rel->name);
		ws_warn("table %s.%s has no rule that replicates it", t->rel->nspname, t->rel->name);
		return 0;
	}
	rc = is_loaded(c, oid, err);
	if (rc == 1 && o->ntables)
		ws_warn("table %s.%s was loaded before, and is not loaded again; what rules left out of it since is missing: "
				"walshadow reload",
				t->rel->nspname, t->rel->name);
	else if (rc == 1)
		ws_info("table %s.%s was loaded before: skipped", t->rel->nspname, t->rel->name);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (t->rel->toast &&
	    ws_cathist_rel(c->hist, o->db, t->rel->toast, c->snap.lsn, &t->toast, err) < 0)
		return -1;
	return shape(c, t, err) != 0 ? -1 : 1;
}

static int
missing_operand(const struct copy *c, const bool *found, struct ws_err *err)
{
	for (int i = 0; i < c->o->ntables; i++)
		if (!found[i])
			return ws_err_usage(err, "no table %s in database %s as of " WS_LSN_FMT, c->o->tables[i], c->o->dbname,
			                    WS_LSN_ARG(c->snap.lsn));
	return 0;
}

/* ---- sizes: the largest first, so that none is left over at the end ---- */

static void
set_size(void *arg, ws_oid oid, double pages, double rows)
{
	struct copy *c = arg;

	for (size_t i = 0; i < c->ntables; i++)
		if (c->tables[i].rel->oid == oid) {
			c->tables[i].pages = pages;
			c->tables[i].tuples = rows;
		}
}

static int
by_size(const void *a, const void *b)
{
	const struct copy_table *x = a, *y = b;

	if (x->pages != y->pages)
		return x->pages > y->pages ? -1 : 1;
	return x->rel->oid < y->rel->oid ? -1 : 1;
}

static int
sizes(struct copy *c, struct ws_err *err)
{
	ws_oid *oids = ws_calloc(c->ntables, sizeof *oids);

	for (size_t i = 0; i < c->ntables; i++)
		oids[i] = c->tables[i].rel->oid;
	int rc = ws_pg_table_sizes(c->control, oids, c->ntables, set_size, c, err);

	free(oids);
	if (rc != 0)
		return -1;
	qsort(c->tables, c->ntables, sizeof *c->tables, by_size);
	for (size_t i = 0; i < c->ntables; i++)
		c->pages_total += c->tables[i].pages + 1;
	return 0;
}

int
copy_plan(struct copy *c, const struct copy_oids *only, struct ws_err *err)
{
	bool *found = ws_calloc((size_t)c->o->ntables, 1);
	ws_oid *oids = NULL;
	size_t n = 0;
	int rc = ws_cathist_list(c->hist, c->o->db, c->snap.lsn, &oids, &n, err);

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		struct copy_table t = {0};

		if (only && !copy_oids_has(only, oids[i]))
			continue;
		rc = consider(c, &t, oids[i], found, err);
		if (rc != 1) {
			table_fini(&t);
			continue;
		}
		c->tables = ws_realloc(c->tables, (c->ntables + 1) * sizeof t);
		c->tables[c->ntables++] = t;
	}
	if (rc >= 0)
		rc = only ? 0 : missing_operand(c, found, err);
	free(oids);
	free(found);
	if (rc != 0 || c->ntables == 0)
		return rc;
	return sizes(c, err);
}
