/* Where a relation's table is: found by its comment or by name, renamed, set aside, made; see
 * lib/ch/emit.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

static int
database_make(struct ws_emit *e, struct ch_tab *t, const char *db, struct ws_err *err)
{
	struct ws_buf q = {0}, cluster = {0};

	ch_quote_name(&q, db);
	int rc = emit_sql(e, NULL, err, "CREATE DATABASE IF NOT EXISTS %s%s", ws_buf_cstr(&q),
					  ch_on_cluster(t, &cluster));

	ws_buf_free(&q);
	ws_buf_free(&cluster);
	return rc;
}

/* 1 when the new name exists: the RENAME whose answer was lost has happened. */
static int
renamed(struct ws_emit *e, void *arg, struct ws_err *err)
{
	const struct ch_place *r = arg;
	struct ch_desc d;

	if (emit_describe(e, r->db, r->name, &d, err) != 0)
		return -1;
	bool there = d.exists;

	ch_desc_fini(&d);
	return there;
}

static int
rename_to(struct ws_emit *e, struct ch_tab *t, const char *db, const char *name, const char *todb,
		  const char *toname, struct ws_err *err)
{
	struct ws_buf sql = {0}, cluster = {0};
	struct ch_place r = {todb, toname};

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

/* A table has a new name now: all that are in it know. */
static void
known_moved(struct ws_emit *e, const char *db, const char *name, const char *todb,
			const char *toname)
{
	char *was_db = ws_strdup(db), *was = ws_strdup(name);

	for (struct ch_known *k = e->known; k; k = k->next)
		if (!strcmp(k->db, was_db) && !strcmp(k->name, was)) {
			free(k->db);
			free(k->name);
			k->db = ws_strdup(todb);
			k->name = ws_strdup(toname);
		}
	for (struct ch_tab *o = e->tabs; o; o = o->hh.next)
		if (o->db && !strcmp(o->db, was_db) && !strcmp(o->name, was)) {
			free(o->db);
			free(o->name);
			o->db = ws_strdup(todb);
			o->name = ws_strdup(toname);
			o->ready = false;
		}
	free(was_db);
	free(was);
}

/* A table of that name which this consumer filled for another relation makes room: that one is
 * gone, or gets its own new name when its turn comes. */
static int
set_aside(struct ws_emit *e, struct ch_tab *t, const char *db, const char *name,
		  const struct ch_note *n, struct ws_err *err)
{
	if (!emit_note_ours(e, n))
		return ws_err_op(err, "destination_taken",
						 "table %s.%s belongs to consumer %s of system %" PRIu64 " database %u", db,
						 name, n->consumer, n->system_id, n->db);
	char *to = ws_asprintf("%s_dropped_%u", name, n->oid);

	ws_warn("table %s.%s held another relation: it is now %s", db, name, to);
	int rc = rename_to(e, t, db, name, db, to, err);

	if (rc == 0)
		known_moved(e, db, name, db, to);

	free(to);
	return rc;
}

/* The table's relation is still there by another name than ours: the rules send both to one place,
 * where rows of the one would replace the other's.  One that had our name has lost it, or will be
 * told to. */
static int
check_rival(struct ws_emit *e, const struct ws_c_relation *rel, ws_oid oid, const char *db,
			const char *name, struct ws_err *err)
{
	const struct ch_tab *o;

	HASH_FIND(hh, e->tabs, &oid, sizeof oid, o);
	if (!o || o->gone || !o->routed || !o->rel || strcmp(o->route.database, db) ||
		strcmp(o->route.table, name) ||
		(!strcmp(o->rel->name, rel->name) && !strcmp(o->rel->nspname, rel->nspname)))
		return 0;
	return ws_err_op(err, "destination_taken",
					 "tables %s.%s and %s.%s are both routed to %s.%s; see name= in ws-routes(5)",
					 o->rel->nspname, o->rel->name, rel->nspname, rel->name, db, name);
}

/* A shared table is made with its root's line and the first leaf's. */
static int
create(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	struct ws_buf sql = {0};
	enum ch_note_state state = emit_place_before(e, t) ? CH_NOTE_FILLING : CH_NOTE_OWN;

	ch_note_fini(&t->note);
	if (t->shared) {
		struct ch_note root = {.system_id = e->id.system_id, .db = e->id.db, .oid = rel->root};
		struct ws_buf text = {0};

		root.consumer = (char *)e->o.consumer;
		root.state = CH_NOTE_ROOT;
		root.shape = rel->lsn;
		ch_note_format(&root, &text);
		t->note.text = ws_buf_cstr(&text);
	}
	struct ch_note note;

	ch_note_of(e, t, rel, &note);
	note.state = state;
	ch_note_fini(&t->note);
	t->note = note;
	ch_create_sql(e, t, rel, t->db, t->name, NULL, &t->note, &sql);
	struct ch_stmt s = {.sql = (char *)sql.data};
	int rc = database_make(e, t, t->db, err) != 0 ? -1 : emit_query(e, &s, NULL, err);

	ws_buf_free(&sql);
	if (rc == 0) {
		if (t->shared)
			emit_known_add(e, t->db, t->name, rel->root, CH_NOTE_ROOT, true);
		emit_known_add(e, t->db, t->name, t->oid, state, t->shared);
	}
	return rc;
}

/* rename-table=new: the table stays with its rows and is no longer this relation's, before the new
 * one is made: a death between the two ends in the same. */
static int
leave(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ws_buf sql = {0}, text = {0}, cluster = {0};
	struct ch_known *k = emit_known_find(e, t->oid);
	struct ch_desc d = {0};
	struct ch_note n = {0};
	int rc = -1;

	if (emit_barrier(e, err) != 0 || emit_describe(e, t->db, t->name, &d, err) != 0)
		return -1;
	if (d.exists && ch_note_parse(d.comment, &n) == 1) {
		n.state = CH_NOTE_LEFT;
		ch_note_format(&n, &text);
		ws_buf_puts(&sql, "ALTER TABLE ");
		ch_full_name(&sql, t->db, t->name);
		ws_buf_printf(&sql, "%s MODIFY COMMENT ", ch_on_cluster(t, &cluster));
		ch_quote_text(&sql, (char *)text.data, text.len);
		struct ch_stmt s = {.sql = ws_buf_cstr(&sql)};

		if (emit_query(e, &s, NULL, err) != 0)
			goto out;
		ws_info("table %s.%s stays as it is; its relation has a new name", t->db, t->name);
	}
	if (k)
		k->note.state = CH_NOTE_LEFT;
	free(t->db);
	free(t->name);
	t->db = t->name = NULL;
	rc = 0;
out:
	ch_desc_fini(&d);
	ch_note_fini(&n);
	ws_buf_free(&sql);
	ws_buf_free(&text);
	ws_buf_free(&cluster);
	return rc;
}

/* What the rule says where the table is, but has another name. */
static int
renaming(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	const char *db = t->route.database, *name = t->route.table;

	if (t->route.rename_table == WS_RENAME_STOP)
		return ws_err_op(err, "table_renamed",
						 "table %s.%s should now be %s.%s; see rename-table= in ws-routes(5)",
						 t->db, t->name, db, name);
	return t->route.rename_table == WS_RENAME_NEW ? leave(e, t, err) : 0;
}

/* The name that the rule gives must be free, or the table of that name this relation's. */
static int
check_name(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ch_desc *d,
		   struct ws_err *err)
{
	const char *db = t->route.database, *name = t->route.table;
	ws_oid oid = t->shared ? t->root : t->oid;
	struct ch_note n = {0};
	int noted = d->exists ? ch_note_parse(d->comment, &n) : 0, rc = 0;
	bool mine = n.oid == oid && n.state != CH_NOTE_LEFT && (n.state == CH_NOTE_ROOT) == t->shared;

	if (noted < 0)
		rc = ws_err_op(err, "destination_comment",
					   "table %s.%s: its comment has a damaged walshadow line", db, name);
	else if (noted && !mine && n.state != CH_NOTE_LEFT && emit_note_ours(e, &n) &&
			 check_rival(e, rel, n.oid, db, name, err) != 0)
		rc = -1;
	else if (noted && !mine && (rc = set_aside(e, t, db, name, &n, err)) == 0)
		d->exists = false;
	else if (rc == 0 && d->exists && t->db)
		rc = ws_err_op(err, "destination_taken", "table %s.%s cannot be renamed: %s.%s exists",
					   t->db, t->name, db, name);
	else if (rc == 0 && noted && !emit_note_ours(e, &n))
		rc = ws_err_op(err, "destination_taken", "table %s.%s belongs to consumer %s", db, name,
					   n.consumer);
	ch_note_fini(&n);
	return rc;
}

/* Decides where the relation's table is, and makes it when it is nowhere. */
int
emit_locate(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
			struct ws_err *err)
{
	const char *db = t->route.database, *name = t->route.table;
	struct ch_known *k = t->shared ? emit_known_root(e, rel->root) : emit_known_find(e, t->oid);
	struct ch_desc d;

	if (k && (t->shared || !t->db)) {
		free(t->db);
		free(t->name);
		t->db = ws_strdup(k->db);
		t->name = ws_strdup(k->name);
	}
	if (t->db) {
		bool moved = strcmp(t->db, db) || strcmp(t->name, name);

		if (!moved || t->route.rename_table == WS_RENAME_KEEP)
			return 0;
		if (renaming(e, t, err) != 0)
			return -1;
	}
	if (emit_describe(e, db, name, &d, err) != 0)
		return -1;
	int rc = check_name(e, t, rel, &d, err);

	if (rc == 0 && t->db && (rc = rename_to(e, t, t->db, t->name, db, name, err)) == 0)
		known_moved(e, t->db, t->name, db, name);
	bool make = !d.exists && !t->db;

	ch_desc_fini(&d);
	if (rc != 0)
		return -1;
	free(t->db);
	free(t->name);
	t->db = ws_strdup(db);
	t->name = ws_strdup(name);
	return make ? create(e, t, rel, err) : 0;
}
