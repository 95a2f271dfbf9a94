/* Destination tables: found by their comment or by name, made, and led to their source's shape; see
 * lib/ch/emit.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

/* ---- finding and making ---- */

struct ch_tab *
emit_tab(struct ws_emit *e, const struct ws_c_relation *rel)
{
	struct ch_tab *t;

	HASH_FIND(hh, e->tabs, &rel->oid, sizeof rel->oid, t);
	if (!t) {
		t = ws_calloc(1, sizeof *t);
		t->oid = rel->oid;
		HASH_ADD(hh, e->tabs, oid, sizeof t->oid, t);
	}
	return t;
}

void
emit_tab_free(struct ch_tab *t)
{
	ws_route_fini(&t->route);
	ch_note_fini(&t->note);
	ch_layout_unref(t->layout);
	free(t->db);
	free(t->name);
	free(t->target);
	free(t->src);
	free(t);
}

void
emit_tabs_forget_routes(struct ws_emit *e)
{
	for (struct ch_tab *t = e->tabs; t; t = t->hh.next) {
		ws_route_fini(&t->route);
		memset(&t->route, 0, sizeof t->route);
		t->resolved = t->ready = t->told = false;
	}
}

static int
database_make(struct ws_emit *e, struct ch_tab *t, const char *db, struct ws_err *err)
{
	struct ws_buf q = {0}, cluster = {0};

	ch_quote_name(&q, db);
	int rc = emit_sql(e, NULL, err, "CREATE DATABASE IF NOT EXISTS %s%s", ws_buf_cstr(&q), ch_on_cluster(t, &cluster));

	ws_buf_free(&q);
	ws_buf_free(&cluster);
	return rc;
}

struct renaming {
	const char *db, *name;
};

/* 1 when the new name exists: the RENAME whose answer was lost has happened. */
static int
renamed(struct ws_emit *e, void *arg, struct ws_err *err)
{
	const struct renaming *r = arg;
	struct ch_desc d;

	if (emit_describe(e, r->db, r->name, &d, err) != 0)
		return -1;
	bool there = d.exists;

	ch_desc_fini(&d);
	return there;
}

static int
rename_to(struct ws_emit *e, struct ch_tab *t, const char *db, const char *name, const char *todb, const char *toname,
          struct ws_err *err)
{
	struct ws_buf sql = {0}, cluster = {0};
	struct renaming r = {todb, toname};

	if (emit_barrier(e, err) != 0 || (strcmp(db, todb) && database_make(e, t, todb, err) != 0))
		return -1;
	ws_buf_puts(&sql, "RENAME TABLE ");
	ch_full_name(&sql, db, name);
	ws_buf_puts(&sql, " TO ");
	ch_full_name(&sql, todb, toname);
	ws_buf_puts(&sql, ch_on_cluster(t, &cluster));
	struct ch_stmt s = {.sql = ws_buf_cstr(&sql), .done = renamed, .arg = &r};
	int rc = emit_query(e, &s, NULL, err);

	ws_buf_free(&sql);
	ws_buf_free(&cluster);
	return rc;
}

/* Another relation's table has a new name now: tables that exchange their names are renamed one by one. */
static void
moved_to(struct ws_emit *e, ws_oid oid, const char *name)
{
	struct ch_known *k = emit_known_find(e, oid);
	struct ch_tab *o;

	if (k) {
		free(k->name);
		k->name = ws_strdup(name);
	}
	HASH_FIND(hh, e->tabs, &oid, sizeof oid, o);
	if (o && o->db) {
		free(o->name);
		o->name = ws_strdup(name);
		o->ready = false;
	}
}

/* A table of that name which this consumer filled for another relation makes room: that one is gone, or
 * gets its own new name when its turn comes. */
static int
set_aside(struct ws_emit *e, struct ch_tab *t, const char *db, const char *name, const struct ch_note *n, struct ws_err *err)
{
	if (!emit_note_ours(e, n))
		return ws_err_op(err, "destination_taken", "table %s.%s belongs to consumer %s of system %" PRIu64 " database %u", db, name,
		                 n->consumer, n->system_id, n->db);
	char *to = ws_asprintf("%s_dropped_%u", name, n->oid);

	ws_warn("table %s.%s held another relation: it is now %s", db, name, to);
	int rc = rename_to(e, t, db, name, db, to, err);

	if (rc == 0)
		moved_to(e, n->oid, to);

	free(to);
	return rc;
}

/* The table's relation is still there by another name than ours: the rules send both to one place, where
 * rows of the one would replace the other's.  One that had our name has lost it, or will be told to. */
static int
check_rival(struct ws_emit *e, const struct ws_c_relation *rel, ws_oid oid, const char *db, const char *name, struct ws_err *err)
{
	const struct ch_tab *o;

	HASH_FIND(hh, e->tabs, &oid, sizeof oid, o);
	if (!o || o->gone || !o->routed || !o->rel || strcmp(o->route.database, db) || strcmp(o->route.table, name) ||
	    (!strcmp(o->rel->name, rel->name) && !strcmp(o->rel->nspname, rel->nspname)))
		return 0;
	return ws_err_op(err, "destination_taken", "tables %s.%s and %s.%s are both routed to %s.%s; see name= in ws-routes(5)",
	                 o->rel->nspname, o->rel->name, rel->nspname, rel->name, db, name);
}

static int
create(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	struct ws_buf sql = {0};

	ch_note_fini(&t->note);
	ch_note_of(e, t, rel, &t->note);
	ch_create_sql(e, t, rel, t->db, t->name, NULL, &t->note, &sql);
	struct ch_stmt s = {.sql = (char *)sql.data};
	int rc = database_make(e, t, t->db, err) != 0 ? -1 : emit_query(e, &s, NULL, err);

	ws_buf_free(&sql);
	return rc;
}

/* Decides where the relation's table is, and makes it when it is nowhere. */
static int
locate(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	struct ch_known *k = t->db ? NULL : emit_known_find(e, t->oid);
	const char *db = t->route.database, *name = t->route.table;
	struct ch_desc d;
	int rc = 0;

	if (k) {
		t->db = ws_strdup(k->db);
		t->name = ws_strdup(k->name);
	}
	if (t->db) {
		bool moved = strcmp(t->db, db) || strcmp(t->name, name);

		if (!moved || t->route.rename_table == WS_CHANGE_KEEP)
			return 0;
		if (t->route.rename_table == WS_CHANGE_STOP)
			return ws_err_op(err, "table_renamed", "table %s.%s should now be %s.%s; see rename-table= in ws-routes(5)", t->db, t->name, db, name);
	}
	if (emit_describe(e, db, name, &d, err) != 0)
		return -1;
	struct ch_note n = {0};
	int noted = d.exists ? ch_note_parse(d.comment, &n) : 0;

	if (noted < 0)
		rc = ws_err_op(err, "destination_comment", "table %s.%s: its comment has a damaged walshadow line", db, name);
	else if (noted && n.oid != t->oid && emit_note_ours(e, &n) && check_rival(e, rel, n.oid, db, name, err) != 0)
		rc = -1;
	else if (noted && n.oid != t->oid && (rc = set_aside(e, t, db, name, &n, err)) == 0)
		d.exists = false;
	else if (rc == 0 && d.exists && t->db)
		rc = ws_err_op(err, "destination_taken", "table %s.%s cannot be renamed: %s.%s exists", t->db, t->name, db, name);
	else if (rc == 0 && noted && !emit_note_ours(e, &n))
		rc = ws_err_op(err, "destination_taken", "table %s.%s belongs to consumer %s", db, name, n.consumer);
	if (rc == 0 && t->db)
		rc = rename_to(e, t, t->db, t->name, db, name, err);
	bool make = !d.exists && !t->db;

	ch_note_fini(&n);
	ch_desc_fini(&d);
	if (rc != 0)
		return -1;
	free(t->db);
	free(t->name);
	t->db = ws_strdup(db);
	t->name = ws_strdup(name);
	return make ? create(e, t, rel, err) : 0;
}

/* What was sent after the last acknowledged commit comes again, and a history would have it twice.
 * An initial load above that commit does not come again: its rows stay. */
static int
history_cut(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ws_buf where = {0}, out = {0};
	ws_lsn from;
	int rc;

	if (emit_gone(e, err) != 0 || emit_loaded_read(e, t->oid, &from, err) != 0)
		return -1;
	if (from < e->start_ack.lsn)
		from = e->start_ack.lsn;
	ch_quote_name(&where, t->route.extra[WS_X_VERSION]);
	ws_buf_printf(&where, " > bitShiftLeft(toUInt128(%" PRIu64 "), 64)", from);
	rc = emit_sql(e, &out, err, "SELECT count() FROM %s WHERE %s", t->target, ws_buf_cstr(&where));
	if (rc == 0 && strcmp((char *)out.data, "0\n")) {
		ws_info("table %s: removing rows after the last acknowledged commit, which come again", t->target);
		rc = emit_sql(e, NULL, err, "ALTER TABLE %s DELETE WHERE %s SETTINGS mutations_sync = 2", t->target, (char *)where.data);
	}
	ws_buf_free(&where);
	ws_buf_free(&out);
	return rc;
}

/* The comment of the table is a step's. */
static int
step_done(struct ws_emit *e, void *arg, struct ws_err *err)
{
	const struct renaming *r = ((void **)arg)[0];
	const struct ch_note *want = ((void **)arg)[1];
	struct ws_buf text = {0};
	struct ch_desc d;

	if (emit_describe(e, r->db, r->name, &d, err) != 0)
		return -1;
	ch_note_format(want, &text);
	bool same = d.exists && !strcmp(d.comment, (char *)text.data);

	ws_buf_free(&text);
	ch_desc_fini(&d);
	return same;
}

/* Steps towards the shape until there is none left.  d is read again after each. */
static int
follow(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ch_desc *d, struct ws_err *err)
{
	struct ch_step step;
	int rc;

	for (;;) {
		rc = ch_shape_step(e, t, rel, d, &step, err);
		if (rc != 1)
			break;
		struct renaming where = {t->db, t->name};
		void *arg[2] = {&where, &step.note};
		struct ws_buf sql = {0}, cluster = {0};

		ws_buf_puts(&sql, "ALTER TABLE ");
		ch_full_name(&sql, t->db, t->name);
		ws_buf_printf(&sql, "%s %s", ch_on_cluster(t, &cluster), (char *)step.sql.data);
		struct ch_stmt s = {.sql = ws_buf_cstr(&sql), .done = step_done, .arg = arg};

		rc = emit_barrier(e, err) != 0 ? -1 : emit_query(e, &s, NULL, err);
		ws_buf_free(&sql);
		ws_buf_free(&cluster);
		ws_buf_free(&step.sql);
		if (rc != 0) {
			ch_note_fini(&step.note);
			return -1;
		}
		ch_note_fini(&t->note);
		t->note = step.note;
		ch_desc_fini(d);
		if (emit_describe(e, t->db, t->name, d, err) != 0)
			return -1;
	}
	t->retype = step.retype;
	ws_buf_free(&step.sql);
	ch_note_fini(&step.note);
	return rc;
}

bool
emit_tab_refused(const struct ch_tab *t, const struct ws_c_relation *rel)
{
	return !ch_rel_key(rel, NULL) && t->route.deletes != WS_DEL_HISTORY && t->route.keyless == WS_KEYLESS_REFUSE;
}

static int
check_source(struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	t->keyless = !ch_rel_key(rel, NULL);
	t->history = t->route.deletes == WS_DEL_HISTORY;
	t->append = t->keyless && t->route.keyless == WS_KEYLESS_APPEND && !t->history;
	if (emit_tab_refused(t, rel))
		return ws_err_op(err, "keyless", "table %s.%s has no usable key (primary key that is not deferrable, or replica "
		                 "identity index); see keyless= in ws-routes(5)", rel->nspname, rel->name);
	for (int i = 0; i < rel->ncols; i++)
		for (int x = 0; x < WS_X_COUNT; x++)
			if (t->route.extra[x] && !strcmp(rel->cols[i].name, t->route.extra[x]))
				return ws_err_op(err, "extra_column", "table %s.%s has a column %s itself: give the extra one another name in the routes",
				                 rel->nspname, rel->name, rel->cols[i].name);
	return 0;
}

/* The source got another key while the table, which is ours and sorted by the old one, has no rows:
 * made again, it is sorted by the new one.  1 so, 0 not, -1. */
static int
may_remake(struct ws_emit *e, const struct ch_tab *t, const struct ch_desc *d, const struct ws_err *why, struct ws_err *err)
{
	struct ws_buf n = {0};

	if (strcmp(why->reason, "sort_key") || t->route.order_by || t->route.engine || t->history || t->append ||
	    t->phase != CH_ROWS || strcmp(d->engine, "ReplacingMergeTree"))
		return 0;
	if (emit_barrier(e, err) != 0 || emit_sql(e, &n, err, "SELECT count() FROM (SELECT 1 FROM %s LIMIT 1)", t->target) != 0) {
		ws_buf_free(&n);
		return -1;
	}
	bool empty = !strcmp((char *)n.data, "0\n");

	ws_buf_free(&n);
	if (empty)
		ws_info("table %s.%s has no rows yet and is made again: %s", t->db, t->name, why->msg);
	return empty;
}

int
emit_tab_ready(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	struct ch_desc d = {0};
	int rc = -1;

	if (check_source(t, rel, err) != 0)
		return -1;
	if (t->open)
		ch_batch_seal(e, t->open);
	if (locate(e, t, rel, err) != 0 || emit_describe(e, t->db, t->name, &d, err) != 0)
		goto out;
	if (!d.exists) {
		ws_err_op(err, "destination_table_missing", "table %s.%s has disappeared from the destination", t->db, t->name);
		goto out;
	}
	ch_note_fini(&t->note);
	int noted = ch_note_parse(d.comment, &t->note);

	if (noted < 0) {
		ws_err_op(err, "destination_comment", "table %s.%s: its comment has a damaged walshadow line", t->db, t->name);
		goto out;
	}
	if (!noted) {
		/* A table that somebody made: it is used as it is, and marked. */
		t->note = (struct ch_note){.text = ws_strdup(d.comment), .system_id = e->id.system_id, .db = e->id.db, .oid = t->oid,
		                           .consumer = ws_strdup(e->o.consumer), .shape = rel->lsn};
		if (ch_check_engine(t, &d, err) != 0)
			goto out;
	}
	free(t->target);
	struct ws_buf target = {0};

	ch_full_name(&target, t->db, t->name);
	t->target = ws_buf_cstr(&target);
	/* A shape older than the table's: its rows were written before the change and come again. */
	if ((!rel->lsn || rel->lsn >= t->note.shape) && follow(e, t, rel, &d, err) != 0)
		goto out;
	if (t->retype) {
		t->rel = rel;
		t->ready = true;
		rc = 0;
		goto out;
	}
	if (ch_check_table(t, rel, &d, err) != 0) {
		struct ws_err why = *err;

		rc = noted ? may_remake(e, t, &d, &why, err) : 0;
		if (rc == 1) {
			t->rel = rel;
			t->retype = t->ready = true;
		} else if (rc == 0) {
			*err = why;
		}
		rc = rc == 1 ? 0 : -1;
		goto out;
	}
	if (emit_layout(e, t, rel, &d, err) != 0 || emit_tab_bind(e, t, rel, err) != 0)
		goto out;
	if (!t->cut && t->history && noted && history_cut(e, t, err) != 0)
		goto out;
	t->cut = t->ready = true;
	rc = 0;
out:
	ch_desc_fini(&d);
	return rc;
}
