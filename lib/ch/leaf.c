/* Partitions that share their root's table: a leaf's rows moved in and out, emptied and replaced
 * without touching its siblings'; see lib/ch/emit.h.
 *
 * The shared table's comment has a line for the root and one a leaf.  A leaf whose place changes
 * (ATTACH, DETACH, another rule) is copied by the server from where its rows were; the state in
 * its line makes each step repeatable. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

static void
put_version(struct ws_buf *b, unsigned __int128 v)
{
	ws_buf_printf(b, "bitOr(bitShiftLeft(toUInt128(%" PRIu64 "), 64), toUInt128(%" PRIu64 "))",
				  (uint64_t)(v >> 64), (uint64_t)v);
}

void
ch_leaf_where(const struct ch_tab *t, struct ws_buf *where)
{
	if (!t->shared)
		return;
	ws_buf_puts(where, where->len ? " AND " : "");
	ch_quote_name(where, t->route.extra[WS_X_LEAF]);
	ws_buf_printf(where, " = %u", t->oid);
	ws_buf_cstr(where);
}

/* Deletes what the condition finds; a mutation that has nothing to do costs more than a count. */
static int
delete_where(struct ws_emit *e, const char *full, const char *cluster, const char *where,
			 struct ws_err *err)
{
	struct ws_buf n = {0};
	int rc = emit_sql(e, &n, err, "SELECT count() FROM %s WHERE %s", full, where);

	if (rc == 0 && strcmp((char *)n.data, "0\n"))
		rc = emit_sql(e, NULL, err, "ALTER TABLE %s%s DELETE WHERE %s SETTINGS mutations_sync = 2",
					  full, cluster, where);
	ws_buf_free(&n);
	return rc;
}

/* Rows of the leaf whose version is below, or with above not below, that one. */
static int
delete_versions(struct ws_emit *e, struct ch_tab *t, bool above, unsigned __int128 version,
				struct ws_err *err)
{
	struct ws_buf where = {0}, cluster = {0};
	int rc = emit_barrier(e, err);

	ch_leaf_where(t, &where);
	ws_buf_puts(&where, " AND ");
	ch_quote_name(&where, t->route.extra[WS_X_VERSION]);
	ws_buf_puts(&where, above ? " >= " : " < ");
	put_version(&where, version);
	if (rc == 0)
		rc = delete_where(e, t->target, ch_on_cluster(t, &cluster), ws_buf_cstr(&where), err);
	ws_buf_free(&where);
	ws_buf_free(&cluster);
	return rc;
}

/* Versions of a load begin here, see ch_batch_row. */
static unsigned __int128
load_base(const struct ch_tab *t)
{
	return (unsigned __int128)(t->append || t->history ? t->snap.lsn - 1 : t->snap.lsn) << 64;
}

int
emit_leaf_load(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	/* What a first attempt at this very load has left; nothing else is as new. */
	return delete_versions(e, t, true, load_base(t), err);
}

int
emit_leaf_loaded(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	return delete_versions(e, t, false, load_base(t), err);
}

int
emit_leaf_empty(struct ws_emit *e, struct ch_tab *t, unsigned __int128 below, struct ws_err *err)
{
	struct ws_buf where = {0}, cluster = {0};
	int rc = emit_barrier(e, err);

	if (rc == 0 && below)
		rc = delete_versions(e, t, false, below, err);
	ch_leaf_where(t, &where);
	if (rc == 0 && !below)
		rc = delete_where(e, t->target, ch_on_cluster(t, &cluster), ws_buf_cstr(&where), err);
	ws_buf_free(&where);
	ws_buf_free(&cluster);
	return rc;
}

/* ---- lines of a comment ---- */

static int
set_comment(struct ws_emit *e, struct ch_tab *t, const char *full, const char *text,
			struct ws_err *err)
{
	struct ws_buf sql = {0}, cluster = {0};

	ws_buf_printf(&sql, "ALTER TABLE %s%s MODIFY COMMENT ", full, ch_on_cluster(t, &cluster));
	ch_quote_text(&sql, text, strlen(text));
	struct ch_stmt s = {.sql = ws_buf_cstr(&sql)};
	int rc = emit_query(e, &s, NULL, err);

	ws_buf_free(&sql);
	ws_buf_free(&cluster);
	return rc;
}

/* Gives a relation's line in a table another state; CH_NOTE_STATES takes the line out. */
static int
set_state(struct ws_emit *e, struct ch_tab *t, const char *db, const char *name, ws_oid oid,
		  enum ch_note_state state, struct ws_err *err)
{
	struct ws_buf full = {0}, text = {0};
	struct ch_desc d;
	struct ch_note n = {0};
	int rc = emit_describe(e, db, name, &d, err);

	if (rc != 0)
		return rc;
	ch_full_name(&full, db, name);
	ws_buf_cstr(&full);
	if (d.exists && ch_note_parse_oid(d.comment, oid, &n) == 1 && n.state != state) {
		n.state = state;
		if (state == CH_NOTE_STATES)
			ws_buf_puts(&text, n.text);
		else
			ch_note_format(&n, &text);
		rc = set_comment(e, t, (char *)full.data, ws_buf_cstr(&text), err);
	}
	ch_note_fini(&n);
	ch_desc_fini(&d);
	ws_buf_free(&full);
	ws_buf_free(&text);
	return rc;
}

/* ---- from one place to another ---- */

/* The relation's rows are not in k any more. */
int
emit_retire(struct ws_emit *e, struct ch_tab *t, struct ch_known *k, struct ws_err *err)
{
	struct ws_buf full = {0}, where = {0}, cluster = {0};
	ws_oid oid = k->note.oid;
	int rc = emit_barrier(e, err);

	ch_full_name(&full, k->db, k->name);
	ws_buf_cstr(&full);
	const char *leaf = t->route.extra[WS_X_LEAF] ? t->route.extra[WS_X_LEAF] : "_leaf";

	ch_quote_name(&where, leaf);
	ws_buf_printf(&where, " = %u", oid);
	ws_buf_cstr(&where);
	if (rc != 0) {
	} else if (k->shared) {
		ws_info("table %s: the rows of relation %u leave it", (char *)full.data, oid);
		if ((rc = set_state(e, t, k->db, k->name, oid, CH_NOTE_LEAVING, err)) == 0 &&
			(rc = delete_where(e, (char *)full.data, ch_on_cluster(t, &cluster), (char *)where.data,
							   err)) == 0)
			rc = set_state(e, t, k->db, k->name, oid, CH_NOTE_STATES, err);
	} else if (t->route.drop_table == WS_DROP_DROP) {
		rc = emit_sql(e, NULL, err, "DROP TABLE IF EXISTS %s%s SYNC", (char *)full.data,
					  ch_on_cluster(t, &cluster));
	} else {
		ws_info("table %s stays as it is: its relation is a partition now", (char *)full.data);
		rc = set_state(e, t, k->db, k->name, oid, CH_NOTE_LEFT, err);
	}
	if (rc == 0)
		emit_known_forget(e, k);
	ws_buf_free(&full);
	ws_buf_free(&where);
	ws_buf_free(&cluster);
	return rc;
}

/* A value from column o for column c. */
static int
put_source(struct ws_buf *from, const struct ch_dcol *o, const struct ch_dcol *c)
{
	if (!strcmp(o->type, c->type)) {
		ch_quote_name(from, o->name);
		return 0;
	}
	if (!strncmp(o->type, "Array", 5) || strstr(c->type, "String"))
		return -1;
	ws_buf_puts(from, "accurateCast(");
	ch_quote_name(from, o->name);
	ws_buf_puts(from, ", ");
	ch_quote_text(from, c->type, strlen(c->type));
	ws_buf_putc(from, ')');
	return 0;
}

static int
put_pair(struct ws_buf *to, struct ws_buf *from, const struct ch_dcol *o, const struct ch_dcol *c,
		 const struct ch_tab *t, struct ws_err *err)
{
	ws_buf_puts(to, to->len ? ", " : "");
	ch_quote_name(to, c->name);
	ws_buf_puts(from, from->len ? ", " : "");
	if (put_source(from, o, c) != 0)
		return ws_err_op(err, "type_changed",
						 "table %s.%s: column %s: %s cannot become %s by a cast; load it again",
						 t->db, t->name, c->name, o->type, c->type);
	return 0;
}

/* The lists of columns of a copy from the place k, described by o, to t, described by d. */
static int
copy_lists(struct ch_tab *t, const struct ch_known *k, const struct ch_note *was,
		   const struct ch_desc *o, const struct ch_desc *d, struct ws_buf *to, struct ws_buf *from,
		   struct ws_err *err)
{
	for (int i = 0; i < t->note.ncols; i++) {
		const struct ch_note_col *w = ch_note_find(was, t->note.cols[i].attnum);
		const struct ch_dcol *c = ch_desc_find(d, t->note.cols[i].name);
		const struct ch_dcol *oc = w ? ch_desc_find(o, w->name) : NULL;

		if (!c || !strcmp(c->kind, "ALIAS") || !strcmp(c->kind, "MATERIALIZED"))
			continue;
		if (!oc)
			return ws_err_op(err, "partition_unloaded",
							 "table %s.%s: column %s of %s is not in %s.%s; load it again", t->db,
							 t->name, c->name, t->rel->name, k->db, k->name);
		if (put_pair(to, from, oc, c, t, err) != 0)
			return -1;
	}
	for (int x = 0; x < WS_X_LEAF; x++) {
		const char *name = t->route.extra[x];
		const struct ch_dcol *c = name ? ch_desc_find(d, name) : NULL;
		const struct ch_dcol *oc = name ? ch_desc_find(o, name) : NULL;

		if (c && oc && put_pair(to, from, oc, c, t, err) != 0)
			return -1;
		if (c && !oc && x == WS_X_VERSION)
			return ws_err_op(err, "partition_unloaded", "table %s.%s has no column %s", k->db,
							 k->name, name);
	}
	if (t->shared) {
		ws_buf_puts(to, to->len ? ", " : "");
		ch_quote_name(to, t->route.extra[WS_X_LEAF]);
		ws_buf_printf(from, "%s%u", from->len ? ", " : "", t->oid);
	}
	return 0;
}

static int
empty_place(struct ws_emit *e, void *arg, struct ws_err *err)
{
	struct ch_tab *t = arg;
	struct ws_buf cluster = {0};
	int rc = t->shared ? emit_leaf_empty(e, t, 0, err)
					   : emit_sql(e, NULL, err, "TRUNCATE TABLE %s%s", t->target,
								  ch_on_cluster(t, &cluster));

	ws_buf_free(&cluster);
	return rc;
}

static int
copy_from(struct ws_emit *e, struct ch_tab *t, struct ch_known *k, const struct ch_desc *d,
		  struct ws_err *err)
{
	struct ws_buf to = {0}, from = {0}, sql = {0};
	struct ch_note was = {0};
	struct ch_desc o;
	int rc = -1;

	if (emit_describe(e, k->db, k->name, &o, err) != 0)
		return -1;
	if (!o.exists || ch_note_parse_oid(o.comment, t->oid, &was) != 1) {
		ws_err_op(err, "partition_unloaded", "table %s.%s, which had the rows of %s.%s, is gone",
				  k->db, k->name, t->rel->nspname, t->rel->name);
		goto out;
	}
	/* A history's rows are changes, another's are what there is. */
	if (!strstr(o.engine, "ReplacingMergeTree") != !strstr(d->engine, "ReplacingMergeTree")) {
		ws_err_op(err, "partition_unloaded",
				  "table %s.%s: rows of %s.%s, a table of %s, cannot be taken over; load them",
				  t->db, t->name, k->db, k->name, o.engine);
		goto out;
	}
	if (copy_lists(t, k, &was, &o, d, &to, &from, err) != 0 || empty_place(e, t, err) != 0)
		goto out;
	ws_info("table %s.%s: takes the rows of %s.%s from %s.%s", t->db, t->name, t->rel->nspname,
			t->rel->name, k->db, k->name);
	ws_buf_printf(&sql, "INSERT INTO %s (%s) SELECT %s FROM ", t->target, ws_buf_cstr(&to),
				  ws_buf_cstr(&from));
	ch_full_name(&sql, k->db, k->name);
	if (k->shared) {
		ws_buf_puts(&sql, " WHERE ");
		ch_quote_name(&sql, t->route.extra[WS_X_LEAF] ? t->route.extra[WS_X_LEAF] : "_leaf");
		ws_buf_printf(&sql, " = %u", t->oid);
	}
	struct ch_stmt s = {.sql = ws_buf_cstr(&sql), .done = empty_place, .arg = t};

	rc = emit_query(e, &s, NULL, err);
out:
	ch_note_fini(&was);
	ch_desc_fini(&o);
	ws_buf_free(&to);
	ws_buf_free(&from);
	ws_buf_free(&sql);
	return rc;
}

struct ch_known *
emit_place_before(struct ws_emit *e, const struct ch_tab *t)
{
	for (struct ch_known *k = e->known; k; k = k->next) {
		if (k->note.oid != t->oid || k->note.state == CH_NOTE_LEFT ||
			k->note.state == CH_NOTE_ROOT || (!t->shared && !k->shared))
			continue;
		if (!t->db || strcmp(k->db, t->db) || strcmp(k->name, t->name))
			return k;
	}
	return NULL;
}

int
emit_move(struct ws_emit *e, struct ch_tab *t, const struct ch_desc *d, struct ws_err *err)
{
	struct ch_known *k = emit_place_before(e, t);

	if (t->note.state == CH_NOTE_FILLING) {
		if (!k)
			return ws_err_op(err, "partition_unloaded",
							 "table %s.%s: the rows of %s.%s are in no table; load it", t->db,
							 t->name, t->rel->nspname, t->rel->name);
		if (emit_barrier(e, err) != 0 || copy_from(e, t, k, d, err) != 0 ||
			set_state(e, t, t->db, t->name, t->oid, CH_NOTE_OWN, err) != 0)
			return -1;
		t->note.state = CH_NOTE_OWN;
	}
	return k ? emit_retire(e, t, k, err) : 0;
}
