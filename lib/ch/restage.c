/* What a transaction does to a shared table as a whole: leaves rewritten into a type that the table
 * does not hold are staged together and exchanged at the commit, as are drops, since only then is
 * known whether the root goes too.  See lib/ch/emit.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

/* The tab that owns the staging table of t's root in this transaction. */
static struct ch_tab *
owner_of(struct ws_emit *e, ws_oid root)
{
	for (struct ch_tab *o = e->tabs; o; o = o->hh.next)
		if (o->phase == CH_RESTAGE && o->root == root && o->stager)
			return o;
	return NULL;
}

bool
emit_restaging(struct ws_emit *e, const struct ch_tab *t)
{
	return t->shared && owner_of(e, t->root);
}

/* A further leaf into the staging table: its line goes into the comment, with its new types. */
static int
join(struct ws_emit *e, struct ch_tab *t, struct ch_tab *owner, struct ws_err *err)
{
	struct ws_buf name = {0}, text = {0}, sql = {0}, cluster = {0};
	struct ch_desc d;
	struct ch_note n = {0}, was = {0};
	int rc = -1;

	ch_staging_name(e, owner->oid, &name);
	if (emit_describe(e, t->db, (char *)name.data, &d, err) != 0)
		goto out;
	if (ch_note_parse_oid(d.comment, t->oid, &was) < 0)
		goto bad;
	free(t->note.text);
	t->note.text = ws_strdup(was.text ? was.text : d.comment);
	ch_note_of(e, t, t->rel, &n);
	ch_note_format(&n, &text);
	ws_buf_printf(&sql, "ALTER TABLE %s%s MODIFY COMMENT ", owner->target,
				  ch_on_cluster(t, &cluster));
	ch_quote_text(&sql, (char *)text.data, text.len);
	struct ch_stmt s = {.sql = ws_buf_cstr(&sql)};

	ch_note_fini(&t->note);
	t->note = n;
	if (emit_query(e, &s, NULL, err) != 0 || ch_check_table(t, t->rel, &d, err) != 0 ||
		emit_layout(e, t, t->rel, &d, err) != 0 || emit_tab_bind(e, t, t->rel, err) != 0)
		goto bad;
	free(t->target);
	t->target = ws_strdup(owner->target);
	t->retype = false;
	rc = 0;
bad:
	ch_note_fini(&was);
	ch_desc_fini(&d);
out:
	ws_buf_free(&name);
	ws_buf_free(&text);
	ws_buf_free(&sql);
	ws_buf_free(&cluster);
	return rc;
}

int
emit_restage(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ch_tab *owner = owner_of(e, t->root);

	if (t->phase == CH_RESTAGE) /* a second rewrite in the transaction */
		return ws_err_op(err, "change_malformed", "table %s.%s is replaced twice at once", t->db,
						 t->name);
	if (emit_barrier(e, err) != 0)
		return -1;
	if (owner) {
		if (join(e, t, owner, err) != 0)
			return -1;
	} else {
		if (emit_stage(e, t, "new types of a shared table", err) != 0)
			return -1;
		t->stager = true;
	}
	t->phase = CH_RESTAGE;
	return 0;
}

/* Leaves that the transaction did not rewrite cannot be among those that it did: a type change of
 * a partitioned table rewrites them all.  It is looked at all the same. */
static int
check_rest(struct ws_emit *e, struct ch_tab *owner, struct ws_err *err)
{
	struct ws_buf full = {0}, n = {0}, in = {0};
	int rc;

	for (struct ch_tab *o = e->tabs; o; o = o->hh.next)
		if (o->phase == CH_RESTAGE && o->root == owner->root)
			ws_buf_printf(&in, "%s%u", in.len ? ", " : "", o->oid);
	ch_full_name(&full, owner->db, owner->name);
	struct ws_buf leaf = {0};

	ch_quote_name(&leaf, owner->route.extra[WS_X_LEAF]);
	rc = emit_sql(e, &n, err, "SELECT count() FROM %s WHERE %s NOT IN (%s)", ws_buf_cstr(&full),
				  ws_buf_cstr(&leaf), ws_buf_cstr(&in));
	if (rc == 0 && strcmp((char *)n.data, "0\n"))
		rc = ws_err_op(err, "type_changed",
					   "table %s.%s: some leaves were rewritten to another type, others not",
					   owner->db, owner->name);
	ws_buf_free(&full);
	ws_buf_free(&n);
	ws_buf_free(&in);
	ws_buf_free(&leaf);
	return rc;
}

static int
finish_restaged(struct ws_emit *e, struct ch_tab *owner, struct ws_err *err)
{
	if (emit_barrier(e, err) != 0 || check_rest(e, owner, err) != 0 ||
		emit_exchange(e, owner, err) != 0)
		return -1;
	for (struct ch_tab *o = e->tabs; o; o = o->hh.next)
		if (o->phase == CH_RESTAGE && o->root == owner->root) {
			free(o->target);
			o->target = ws_strdup(owner->target);
			o->phase = CH_ROWS;
		}
	owner->stager = false;
	return 0;
}

/* ---- drops ---- */

void
emit_leaf_dropped(struct ws_emit *e, const struct ws_c_relation *rel)
{
	e->dropped = ws_realloc(e->dropped, (size_t)(e->ndropped + 1) * sizeof *e->dropped);
	e->dropped[e->ndropped++] = rel;
}

static bool
root_dropped(const struct ws_emit *e, ws_oid root)
{
	for (int i = 0; i < e->ndropped; i++)
		if (e->dropped[i]->oid == root)
			return true;
	return false;
}

/* The shared table of a dropped root: by its rule, as any other. */
static int
drop_root(struct ws_emit *e, const struct ws_c_relation *rel, struct ch_known *k,
		  struct ws_err *err)
{
	struct ch_tab t = {.oid = rel->oid, .db = k->db, .name = k->name};
	int rc = ws_routes_resolve(e->routes, e->dbname, rel->nspname, rel->name, &t.route, err);

	if (rc <= 0)
		return rc;
	rc = emit_drop(e, &t, err);
	ws_route_fini(&t.route);
	return rc;
}

static int
drop_leaf(struct ws_emit *e, const struct ws_c_relation *rel, struct ch_known *k,
		  struct ws_err *err)
{
	struct ch_tab *t, nobody = {.oid = rel->oid, .shared = true, .root = rel->root};
	bool shared;

	HASH_FIND(hh, e->tabs, &rel->oid, sizeof rel->oid, t);
	if (t && t->routed)
		return t->route.deletes == WS_DEL_HISTORY ? 0 : emit_retire(e, t, k, err);
	int rc = ws_routes_resolve_leaf(e->routes, e->dbname, rel->nspname, rel->name,
									rel->root_nspname, rel->root_name, &nobody.route, &shared, err);

	if (rc != 1)
		return rc;
	if (nobody.route.deletes != WS_DEL_HISTORY)
		rc = emit_retire(e, &nobody, k, err);
	ws_route_fini(&nobody.route);
	return rc < 0 ? -1 : 0;
}

int
emit_leaves_commit(struct ws_emit *e, struct ws_err *err)
{
	struct ch_known *k;

	for (struct ch_tab *o = e->tabs; o; o = o->hh.next)
		if (o->phase == CH_RESTAGE && o->stager && finish_restaged(e, o, err) != 0)
			return -1;
	for (int i = 0; i < e->ndropped; i++) {
		const struct ws_c_relation *rel = e->dropped[i];

		if (rel->relkind == 'p') {
			if ((k = emit_known_root(e, rel->oid)) && drop_root(e, rel, k, err) != 0)
				return -1;
		} else if ((k = emit_known_leaf(e, rel->oid)) && !root_dropped(e, rel->root) &&
				   drop_leaf(e, rel, k, err) != 0) {
			return -1;
		}
	}
	e->ndropped = 0;
	return 0;
}
