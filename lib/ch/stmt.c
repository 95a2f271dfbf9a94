/* Statements that do not commute with inserts: TRUNCATE, replacing a table's content, DROP; see
 * lib/ch/emit.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

void
ch_staging_name(const struct ws_emit *e, ws_oid oid, struct ws_buf *out)
{
	ws_buf_printf(out, "ws_staging_%s_%u", e->o.consumer, oid);
	ws_buf_cstr(out);
}

int
emit_truncate(struct ws_emit *e, struct ch_tab *t, uint64_t ordinal, struct ws_err *err)
{
	struct ws_buf cluster = {0};

	if (t->history)
		return ch_batch_row(e, t, 'T', NULL, NULL, ordinal, true, false, 0, err);
	if (t->shared && t->phase != CH_RESTAGE)
		return emit_leaf_empty(e, t, (unsigned __int128)e->tx.commit_lsn << 64 | ordinal, err);
	if (t->shared)
		return emit_leaf_empty(e, t, 0, err);
	if (emit_barrier(e, err) != 0)
		return -1;
	int rc = emit_sql(e, NULL, err, "TRUNCATE TABLE %s%s", t->target, ch_on_cluster(t, &cluster));

	ws_buf_free(&cluster);
	return rc;
}

static int
drop_table(struct ws_emit *e, struct ch_tab *t, const char *full, struct ws_err *err)
{
	struct ws_buf cluster = {0};
	int rc =
		emit_sql(e, NULL, err, "DROP TABLE IF EXISTS %s%s SYNC", full, ch_on_cluster(t, &cluster));

	ws_buf_free(&cluster);
	return rc;
}

/* A fresh staging table, to which the table's rows go from now on.  What an earlier attempt left is
 * dropped.  It has the table's comment from the start, which it keeps when it takes its place. */
int
emit_stage(struct ws_emit *e, struct ch_tab *t, const char *what, struct ws_err *err)
{
	struct ws_buf name = {0}, full = {0}, sql = {0}, text = {0}, cluster = {0};
	struct ch_desc old = {0}, d = {0};
	struct ch_note note = {0}, was = {0};
	int rc = -1;

	if (t->open)
		ch_batch_seal(e, t->open);
	ch_staging_name(e, t->oid, &name);
	ch_full_name(&full, t->db, (char *)name.data);
	ws_buf_cstr(&full);
	ws_debug("table %s.%s: %s into %s", t->db, t->name, what, (char *)name.data);
	if (drop_table(e, t, (char *)full.data, err) != 0 ||
		emit_describe(e, t->db, t->name, &old, err) != 0)
		goto out;
	/* Siblings may have changed their lines since this leaf was bound. */
	if (t->shared && old.exists && ch_note_parse_oid(old.comment, t->oid, &was) == 1) {
		free(t->note.text);
		t->note.text = ws_strdup(was.text);
	}
	ch_note_fini(&was);
	ch_note_of(e, t, t->rel, &note);
	if (old.exists && !t->retype && strncmp(old.engine, "Replicated", 10)) {
		/* Everything that somebody gave the table stays. */
		for (int i = 0; i < note.ncols; i++) {
			const struct ch_note_col *before = ch_note_find(&t->note, note.cols[i].attnum);

			if (before && strcmp(before->name, note.cols[i].name)) {
				free(note.cols[i].name);
				note.cols[i].name = ws_strdup(before->name);
			}
		}
		ch_note_format(&note, &text);
		ws_buf_printf(&sql, "CREATE TABLE %s%s AS %s COMMENT ", (char *)full.data,
					  ch_on_cluster(t, &cluster), t->target);
		ch_quote_text(&sql, (char *)text.data, text.len);
		ws_buf_cstr(&sql);
	} else {
		ch_create_sql(e, t, t->rel, t->db, (char *)name.data, old.exists ? &old : NULL, &note,
					  &sql);
	}
	struct ch_stmt s = {.sql = (char *)sql.data};

	if (emit_query(e, &s, NULL, err) != 0 ||
		emit_describe(e, t->db, (char *)name.data, &d, err) != 0)
		goto out;
	ch_note_fini(&t->note);
	t->note = note;
	memset(&note, 0, sizeof note);
	if (ch_check_table(t, t->rel, &d, err) != 0 || emit_layout(e, t, t->rel, &d, err) != 0 ||
		emit_tab_bind(e, t, t->rel, err) != 0)
		goto out;
	free(t->target);
	t->target = ws_strdup((char *)full.data);
	t->retype = false;
	rc = 0;
out:
	ch_desc_fini(&old);
	ch_desc_fini(&d);
	ch_note_fini(&note);
	ws_buf_free(&name);
	ws_buf_free(&full);
	ws_buf_free(&sql);
	ws_buf_free(&text);
	ws_buf_free(&cluster);
	return rc;
}

struct swap {
	const char *db, *name, *uuid;
};

/* 1 when the table of that name is the one that was staged. */
static int
swapped(struct ws_emit *e, void *arg, struct ws_err *err)
{
	const struct swap *s = arg;
	struct ch_desc d;

	if (emit_describe(e, s->db, s->name, &d, err) != 0)
		return -1;
	bool done = d.exists && !strcmp(d.uuid, s->uuid);

	ch_desc_fini(&d);
	return done;
}

/* The staging table takes the table's place.  A replay stages again and swaps again, which is right
 * as long as what was swapped in comes again, too: ack stands before it. */
int
emit_exchange(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ws_buf name = {0}, full = {0}, sql = {0}, cluster = {0};
	struct ch_desc old = {0}, staged = {0};
	int rc = -1;

	if (emit_barrier(e, err) != 0)
		return -1;
	ch_staging_name(e, t->oid, &name);
	if (emit_describe(e, t->db, t->name, &old, err) != 0 ||
		emit_describe(e, t->db, (char *)name.data, &staged, err) != 0)
		goto out;
	struct swap swap = {t->db, t->name, staged.uuid};

	ch_full_name(&full, t->db, t->name);
	ws_buf_printf(&sql, "%s %s %s %s%s", old.exists ? "EXCHANGE TABLES" : "RENAME TABLE", t->target,
				  old.exists ? "AND" : "TO", ws_buf_cstr(&full), ch_on_cluster(t, &cluster));
	struct ch_stmt s = {.sql = ws_buf_cstr(&sql), .done = swapped, .arg = &swap};

	if (emit_query(e, &s, NULL, err) != 0)
		goto out;
	if (old.exists && drop_table(e, t, t->target, err) != 0)
		goto out;
	free(t->target);
	t->target = ws_strdup((char *)full.data);
	rc = 0;
out:
	ch_desc_fini(&old);
	ch_desc_fini(&staged);
	ws_buf_free(&name);
	ws_buf_free(&full);
	ws_buf_free(&sql);
	ws_buf_free(&cluster);
	return rc;
}

/* A copy whose answer was lost starts from nothing. */
static int
empty_again(struct ws_emit *e, void *arg, struct ws_err *err)
{
	return emit_sql(e, NULL, err, "TRUNCATE TABLE %s", (const char *)arg);
}

/* A type changed in a way that the server's MODIFY would get wrong, and the source did not rewrite
 * its table: the rows are copied by a cast that refuses what it cannot keep. */
int
emit_rebuild(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ws_buf to = {0}, from = {0}, old_target = {0}, sql = {0};
	struct ch_note was = {0};
	struct ch_desc old = {0}, now = {0};
	struct ws_buf name = {0};
	int rc = -1;

	ws_buf_puts(&old_target, t->target);
	ws_buf_cstr(&old_target);
	ch_staging_name(e, t->oid, &name);
	if (emit_barrier(e, err) != 0 || emit_describe(e, t->db, t->name, &old, err) != 0)
		goto out;
	was = t->note;
	memset(&t->note, 0, sizeof t->note);
	t->note = (struct ch_note){.text = ws_strdup(was.text)};
	/* ch_create_sql asks the note which types may stay. */
	for (int i = 0; i < was.ncols; i++) {
		struct ch_note_col *c = ch_note_add(&t->note);

		*c = was.cols[i];
		c->name = ws_strdup(was.cols[i].name);
	}
	if (emit_stage(e, t, "a copy with new types", err) != 0 ||
		emit_describe(e, t->db, (char *)name.data, &now, err) != 0)
		goto out;
	for (int i = 0; i < now.n; i++) {
		const struct ch_dcol *c = &now.cols[i], *o = ch_desc_find(&old, c->name);

		for (int j = 0; j < t->note.ncols && *c->kind == 0; j++)
			if (!strcmp(t->note.cols[j].name, c->name)) {
				const struct ch_note_col *w = ch_note_find(&was, t->note.cols[j].attnum);

				o = w ? ch_desc_find(&old, w->name) : NULL;
			}
		if (!o || !strcmp(c->kind, "ALIAS") || !strcmp(c->kind, "MATERIALIZED"))
			continue;
		if (strcmp(o->type, c->type) &&
			(!strncmp(o->type, "Array", 5) || strstr(c->type, "String"))) {
			ws_err_op(err, "type_changed",
					  "table %s.%s: column %s: %s cannot become %s by a cast; load the table again",
					  t->db, t->name, o->name, o->type, c->type);
			goto out;
		}
		ws_buf_puts(&to, to.len ? ", " : "");
		ch_quote_name(&to, c->name);
		ws_buf_puts(&from, from.len ? ", " : "");
		if (strcmp(o->type, c->type)) {
			ws_buf_puts(&from, "accurateCast(");
			ch_quote_name(&from, o->name);
			ws_buf_puts(&from, ", ");
			ch_quote_text(&from, c->type, strlen(c->type));
			ws_buf_putc(&from, ')');
		} else {
			ch_quote_name(&from, o->name);
		}
	}
	ws_buf_printf(&sql, "INSERT INTO %s (%s) SELECT %s FROM %s", t->target, ws_buf_cstr(&to),
				  ws_buf_cstr(&from), (char *)old_target.data);
	struct ch_stmt copy = {.sql = ws_buf_cstr(&sql), .done = empty_again, .arg = t->target};

	if (emit_query(e, &copy, NULL, err) != 0)
		goto out;
	rc = emit_exchange(e, t, err);
out:
	ch_note_fini(&was);
	ch_desc_fini(&old);
	ch_desc_fini(&now);
	ws_buf_free(&to);
	ws_buf_free(&from);
	ws_buf_free(&old_target);
	ws_buf_free(&sql);
	ws_buf_free(&name);
	return rc;
}

int
emit_drop(struct ws_emit *e, struct ch_tab *t, struct ws_err *err)
{
	struct ch_known *k = t->db ? NULL : emit_known_find(e, t->oid);
	struct ws_buf full = {0};
	int rc = 0;

	t->gone = true;
	if (!t->db && !k)
		return 0;
	ch_full_name(&full, t->db ? t->db : k->db, t->db ? t->name : k->name);
	ws_buf_cstr(&full);
	if (t->route.drop_table == WS_DROP_STOP) {
		rc = ws_err_op(err, "table_dropped",
					   "table %s was dropped at the source; see drop-table= in ws-routes(5)",
					   (char *)full.data);
	} else if (t->route.drop_table == WS_DROP_WARN) {
		ws_warn("table %s was dropped at the source and stays at the destination",
				(char *)full.data);
		*e->m_dropped += 1;
		if (t->open)
			ch_batch_seal(e, t->open);
	} else if (t->route.drop_table == WS_DROP_KEEP) {
		ws_info("table %s was dropped at the source and stays at the destination",
				(char *)full.data);
		if (t->open)
			ch_batch_seal(e, t->open);
	} else if (emit_barrier(e, err) != 0 || drop_table(e, t, (char *)full.data, err) != 0) {
		rc = -1;
	}
	ws_buf_free(&full);
	t->ready = false;
	return rc;
}

/* Staging tables of an earlier life. */
int
emit_drop_staging(struct ws_emit *e, struct ws_err *err)
{
	struct ws_buf out = {0}, prefix = {0}, full = {0};
	bool eol;
	int rc;

	ws_buf_printf(&prefix, "ws_staging_%s_", e->o.consumer);
	struct ws_buf q = {0};

	ch_quote_text(&q, (char *)prefix.data, prefix.len);
	rc = emit_sql(e, &out, err,
				  "SELECT database, name, comment FROM system.tables WHERE startsWith(name, %s)",
				  ws_buf_cstr(&q));
	for (char *at = rc == 0 ? ws_buf_cstr(&out) : (char[1]){0}; *at && rc == 0;) {
		char *db = ch_tsv_next(&at, &eol), *name = ch_tsv_next(&at, &eol),
			 *comment = ch_tsv_next(&at, &eol);
		struct ch_note n;

		if (!comment || ch_note_parse(comment, &n) != 1)
			continue;
		if (n.system_id == e->id.system_id && n.db == e->id.db &&
			!strcmp(n.consumer, e->o.consumer)) {
			full.len = 0;
			ch_full_name(&full, db, name);
			rc = emit_sql(e, NULL, err, "DROP TABLE IF EXISTS %s SYNC", ws_buf_cstr(&full));
		}
		ch_note_fini(&n);
	}
	ws_buf_free(&out);
	ws_buf_free(&prefix);
	ws_buf_free(&full);
	ws_buf_free(&q);
	return rc;
}
