/* Destination tables made fit for a shape's rows: checked, led to their source's shape; see
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
	ch_leaf_where(t, &where);
	rc = emit_sql(e, &out, err, "SELECT count() FROM %s WHERE %s", t->target, ws_buf_cstr(&where));
	if (rc == 0 && strcmp((char *)out.data, "0\n")) {
		ws_info("table %s: removing rows after the last acknowledged commit, which come again",
				t->target);
		rc = emit_sql(e, NULL, err, "ALTER TABLE %s DELETE WHERE %s SETTINGS mutations_sync = 2",
					  t->target, (char *)where.data);
	}
	ws_buf_free(&where);
	ws_buf_free(&out);
	return rc;
}

/* The comment of the table is a step's. */
static int
step_done(struct ws_emit *e, void *arg, struct ws_err *err)
{
	const struct ch_place *r = ((void **)arg)[0];
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
follow(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ch_desc *d,
	   struct ws_err *err)
{
	struct ch_step step;
	int rc;

	for (;;) {
		rc = ch_shape_step(e, t, rel, d, &step, err);
		if (rc != 1)
			break;
		struct ch_place where = {t->db, t->name};
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
	return !ch_rel_key(rel, NULL) && t->route.deletes != WS_DEL_HISTORY &&
		   t->route.keyless == WS_KEYLESS_REFUSE;
}

static int
check_source(struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	t->keyless = !ch_rel_key(rel, NULL);
	t->history = t->route.deletes == WS_DEL_HISTORY;
	t->append = t->keyless && t->route.keyless == WS_KEYLESS_APPEND && !t->history;
	if (emit_tab_refused(t, rel))
		return ws_err_op(
			err, "keyless",
			"table %s.%s has no usable key (primary key that is not deferrable, or replica "
			"identity index); see keyless= in ws-routes(5)",
			rel->nspname, rel->name);
	for (int i = 0; i < rel->ncols; i++)
		for (int x = 0; x < WS_X_COUNT; x++)
			if (t->route.extra[x] && (x != WS_X_LEAF || t->shared) &&
				!strcmp(rel->cols[i].name, t->route.extra[x]))
				return ws_err_op(err, "extra_column",
								 "table %s.%s has a column %s itself: give the extra one another "
								 "name in the routes",
								 rel->nspname, rel->name, rel->cols[i].name);
	return 0;
}

/* The source got another key while the table, which is ours and sorted by the old one, has no rows:
 * made again, it is sorted by the new one.  1 so, 0 not, -1. */
static int
may_remake(struct ws_emit *e, const struct ch_tab *t, const struct ch_desc *d,
		   const struct ws_err *why, struct ws_err *err)
{
	struct ws_buf n = {0};

	if (strcmp(why->reason, "sort_key") || t->route.order_by || t->route.engine || t->history ||
		t->append || t->shared || t->phase != CH_ROWS || strcmp(d->engine, "ReplacingMergeTree"))
		return 0;
	if (emit_barrier(e, err) != 0 ||
		emit_sql(e, &n, err, "SELECT count() FROM (SELECT 1 FROM %s LIMIT 1)", t->target) != 0) {
		ws_buf_free(&n);
		return -1;
	}
	bool empty = !strcmp((char *)n.data, "0\n");

	ws_buf_free(&n);
	if (empty)
		ws_info("table %s.%s has no rows yet and is made again: %s", t->db, t->name, why->msg);
	return empty;
}

static bool
known_here(const struct ws_emit *e, const struct ch_tab *t)
{
	for (const struct ch_known *k = e->known; k; k = k->next)
		if (k->note.oid == t->oid && k->note.state != CH_NOTE_LEFT &&
			k->note.state != CH_NOTE_ROOT && !strcmp(k->db, t->db) && !strcmp(k->name, t->name))
			return true;
	return false;
}

static int
leaf_again(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ch_known *k = emit_known_leaf(e, t->oid);

	ch_note_fini(&t->note);
	return k ? emit_retire(e, t, k, err) : 0;
}

int
emit_tab_ready(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
			   struct ws_err *err)
{
	struct ch_desc d = {0};
	int rc = -1;

	if (check_source(t, rel, err) != 0)
		return -1;
	if (t->open)
		ch_batch_seal(e, t->open);
	if (emit_locate(e, t, rel, err) != 0 || emit_describe(e, t->db, t->name, &d, err) != 0)
		goto out;
	if (!d.exists) {
		ws_err_op(err, "destination_table_missing",
				  "table %s.%s has disappeared from the destination", t->db, t->name);
		goto out;
	}
	ch_note_fini(&t->note);
	int noted = ch_note_parse_oid(d.comment, t->oid, &t->note);

	if (noted < 0) {
		ws_err_op(err, "destination_comment",
				  "table %s.%s: its comment has a damaged walshadow line", t->db, t->name);
		goto out;
	}
	if (noted && t->note.state == CH_NOTE_LEAVING) {
		/* It left and comes back; what it had is still to be removed. */
		if (leaf_again(e, t, err) != 0)
			goto out;
		ch_desc_fini(&d);
		if (emit_describe(e, t->db, t->name, &d, err) != 0)
			goto out;
		noted = 0;
	}
	if (!noted) {
		/* A table that somebody made, or another leaf's: it is used as it is, and marked. */
		t->note =
			(struct ch_note){.text = ws_strdup(d.comment),
							 .system_id = e->id.system_id,
							 .db = e->id.db,
							 .oid = t->oid,
							 .consumer = ws_strdup(e->o.consumer),
							 .shape = rel->lsn,
							 .state = emit_place_before(e, t) ? CH_NOTE_FILLING : CH_NOTE_OWN};
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
	if (!known_here(e, t))
		emit_known_add(e, t->db, t->name, t->oid, CH_NOTE_OWN, t->shared);
	if (emit_move(e, t, &d, err) != 0)
		goto out;
	if (!t->cut && t->history && noted && history_cut(e, t, err) != 0)
		goto out;
	t->cut = t->ready = true;
	rc = 0;
out:
	ch_desc_fini(&d);
	return rc;
}
