/* How a destination table follows its source's shape, one ALTER at a time: the comment says what
 * has been done, so a crash between two steps, or a replay of all, ends in the same table.  See
 * lib/ch/emit.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

static void
copy_note(const struct ch_note *n, struct ch_note *out)
{
	*out = *n;
	out->text = ws_strdup(n->text ? n->text : "");
	out->consumer = ws_strdup(n->consumer ? n->consumer : "");
	out->cols = NULL;
	out->ncols = 0;
	for (int i = 0; i < n->ncols; i++) {
		struct ch_note_col *c = ch_note_add(out);

		*c = n->cols[i];
		c->name = ws_strdup(n->cols[i].name);
	}
}

const struct ws_c_column *
ch_rel_column(const struct ws_c_relation *rel, int16_t attnum)
{
	for (int i = 0; i < rel->ncols; i++)
		if (rel->cols[i].attnum == attnum)
			return &rel->cols[i];
	return NULL;
}

static struct ch_note_col *
by_name(struct ch_note *n, const char *name)
{
	for (int i = 0; i < n->ncols; i++)
		if (!strcmp(n->cols[i].name, name))
			return &n->cols[i];
	return NULL;
}

static void
action(struct ch_step *s)
{
	if (s->sql.len)
		ws_buf_puts(&s->sql, ", ");
}

/* In the lines of all leaves that share the column. */
static void
set_name(struct ch_step *s, struct ch_note_col *c, char *name)
{
	ch_notes_rename(&s->note.text, c->name, name);
	free(c->name);
	c->name = name;
}

/* ---- the steps, in this order ---- */

static int
drops(const struct ch_tab *t, const struct ws_c_relation *rel, const struct ch_desc *d,
	  struct ch_step *s, struct ws_err *err)
{
	for (int i = 0; i < s->note.ncols; i++) {
		struct ch_note_col *c = &s->note.cols[i];
		const struct ch_dcol *dc = ch_desc_find(d, c->name);

		if (ch_rel_column(rel, c->attnum) || t->route.drop_column == WS_DROP_KEEP)
			continue;
		if (t->route.drop_column == WS_DROP_STOP)
			return ws_err_op(err, "column_dropped",
							 "table %s.%s: column %s was dropped at the source; see drop-column= "
							 "in ws-routes(5)",
							 t->db, t->name, c->name);
		if (dc && (dc->key || dc->part)) {
			ws_warn("table %s.%s: column %s was dropped at the source and stays, as it is part of "
					"a key",
					t->db, t->name, c->name);
			continue;
		}
		action(s);
		ws_buf_puts(&s->sql, "DROP COLUMN IF EXISTS ");
		ch_quote_name(&s->sql, c->name);
		ch_notes_rename(&s->note.text, c->name, NULL);
		free(c->name);
		*c = s->note.cols[--s->note.ncols];
		i--;
	}
	return 0;
}

/* Gives the column that has a wanted name another one: a temporary name when it is on its way to a
 * third, or that of something dropped. */
static int
make_room(const struct ch_tab *t, const struct ws_c_relation *rel, const struct ch_desc *d,
		  const char *name, struct ch_step *s, struct ws_err *err)
{
	struct ch_note_col *c = by_name(&s->note, name);
	const struct ch_dcol *dc = ch_desc_find(d, name);

	if (!c || (dc && (dc->key || dc->part)))
		return ws_err_op(err, "destination_schema",
						 "table %s.%s: column %s is in the way of one of that name at the source",
						 t->db, t->name, name);
	char *to =
		ws_asprintf("%s_%s_%d", name, ch_rel_column(rel, c->attnum) ? "moving" : "dropped", c->attnum);

	action(s);
	ws_buf_puts(&s->sql, "RENAME COLUMN ");
	ch_quote_name(&s->sql, name);
	ws_buf_puts(&s->sql, " TO ");
	ch_quote_name(&s->sql, to);
	set_name(s, c, to);
	return 0;
}

static int
renames(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
		const struct ch_desc *d, struct ch_step *s, struct ws_err *err)
{
	struct ws_route_column rc;

	for (int i = 0; i < rel->ncols; i++) {
		struct ch_note_col *c = ch_note_find(&s->note, rel->cols[i].attnum);

		ch_column_name(e, t, rel, &rel->cols[i], &rc);
		if (!c || rc.excluded || !strcmp(c->name, rc.name))
			continue;
		const struct ch_dcol *dc = ch_desc_find(d, c->name);

		if (dc && (dc->key || dc->part)) {
			ws_warn("table %s.%s: column %s keeps its name, as it is part of a key; the source "
					"calls it %s",
					t->db, t->name, c->name, rc.name);
			continue;
		}
		if (ch_desc_find(d, rc.name)) {
			/* Given up by another one in this very statement: the next has it. */
			if (!by_name(&s->note, rc.name) && s->sql.len)
				continue;
			return make_room(t, rel, d, rc.name, s, err);
		}
		action(s);
		ws_buf_puts(&s->sql, "RENAME COLUMN ");
		ch_quote_name(&s->sql, c->name);
		ws_buf_puts(&s->sql, " TO ");
		ch_quote_name(&s->sql, rc.name);
		set_name(s, c, ws_strdup(rc.name));
	}
	return 0;
}

static int
adds(struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
	 const struct ch_desc *d, struct ch_step *s, bool *noted, struct ws_err *err)
{
	bool key[WS_CHANGE_MAX_COLS], has = ch_rel_key(rel, key);
	struct ws_route_column rc;
	const char *after = NULL;
	struct ws_buf type = {0};
	int rc_ = 0;

	for (int i = 0; i < rel->ncols && rc_ == 0; i++) {
		const struct ws_c_column *col = &rel->cols[i];
		struct ch_note_col *c = ch_note_find(&s->note, col->attnum);

		ch_column_name(e, t, rel, col, &rc);
		if (c || rc.excluded) {
			after = c ? c->name : after;
			continue;
		}
		if (!ch_desc_find(d, rc.name)) {
			type.len = 0;
			if (rc.type)
				ws_buf_puts(&type, rc.type);
			else
				ch_type_default(col, &t->route, &e->srv.lim, has && key[i], &type);
			action(s);
			ws_buf_puts(&s->sql, "ADD COLUMN IF NOT EXISTS ");
			ch_quote_name(&s->sql, rc.name);
			ws_buf_printf(&s->sql, " %s", ws_buf_cstr(&type));
			if (col->flags & WS_COL_MISSING) {
				ws_buf_puts(&s->sql, " DEFAULT ");
				rc_ = ch_missing_sql(e, col, (char *)type.data, &s->sql, err);
			}
			if (after) {
				ws_buf_puts(&s->sql, " AFTER ");
				ch_quote_name(&s->sql, after);
			}
		} else if (by_name(&s->note, rc.name)) {
			s->sql.len = 0;
			rc_ = make_room(t, rel, d, rc.name, s, err);
			break;
		} else {
			*noted = true; /* it was there before us */
		}
		/* A sibling's column may be narrower: the last step looks. */
		bool theirs = *noted && t->shared;

		c = ch_note_add(&s->note);
		*c = (struct ch_note_col){col->attnum, theirs ? 0 : col->typid, col->typmod,
								  !!(col->flags & WS_COL_NOTNULL), ws_strdup(rc.name)};
		after = c->name;
	}
	ws_buf_free(&type);
	return rc_;
}

/* What a changed source column needs: nothing (it holds all), a wider type, or a rewrite. */
static int
retype(struct ws_emit *e, const struct ch_tab *t, const struct ws_c_column *col, bool key,
	   const struct ch_dcol *dc, const struct ws_route_column *rc, struct ch_step *s,
	   struct ws_err *err)
{
	struct ws_arena arena = {0};
	struct ws_buf want = {0}, now = {0};
	struct ch_type to, from, both;
	int done = 0; /* 1 recorded, 0 needs a rewrite */

	if (rc->type)
		ws_buf_puts(&want, rc->type);
	else
		ch_type_default(col, &t->route, &e->srv.lim, key, &want);
	if (ch_type_parse(ws_buf_cstr(&want), &arena, &to, err) != 0 ||
		ch_type_parse(dc->type, &arena, &from, err) != 0) {
		done = -1;
	} else {
		both = to;
		both.nullable |= from.nullable && to.base != CH_ARRAY;
		/* An Array stays one when its column may now be NULL: an Array has no NULL. */
		bool array = from.base == CH_ARRAY && col->kind == WS_K_ARRAY && to.base == CH_STRING;

		if ((array || (from.base == to.base && ch_type_widens(&to, &from))) &&
			ch_put_find(col->kind, col->elem_kind, &from)) {
			done = 1;
		} else if (ch_type_widens(&from, &both) && !dc->key && !dc->part) {
			action(s);
			ws_buf_puts(&s->sql, "MODIFY COLUMN ");
			ch_quote_name(&s->sql, dc->name);
			ws_buf_printf(&s->sql, both.nullable != to.nullable ? " Nullable(%s)" : " %s",
						  ws_buf_cstr(&want));
			done = 1;
		}
	}
	ws_arena_free(&arena);
	ws_buf_free(&want);
	ws_buf_free(&now);
	return done;
}

static int
types(struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
	  const struct ch_desc *d, struct ch_step *s, bool *noted, struct ws_err *err)
{
	bool key[WS_CHANGE_MAX_COLS], has = ch_rel_key(rel, key);
	struct ws_route_column rc;

	for (int i = 0; i < rel->ncols; i++) {
		const struct ws_c_column *col = &rel->cols[i];
		struct ch_note_col *c = ch_note_find(&s->note, col->attnum);
		bool notnull = col->flags & WS_COL_NOTNULL;

		ch_column_name(e, t, rel, col, &rc);
		if (!c || rc.excluded ||
			(c->typid == col->typid && c->typmod == col->typmod && c->notnull <= notnull))
			continue;
		const struct ch_dcol *dc = ch_desc_find(d, c->name);

		if (!dc)
			continue;
		int done = retype(e, t, col, has && key[i], dc, &rc, s, err);

		if (done < 0)
			return -1;
		if (!done && t->route.type_change == WS_TYPE_STOP)
			return ws_err_op(
				err, "type_changed",
				"table %s.%s: column %s is now %s at the source, which %s does not hold; "
				"see type-change= in ws-routes(5)",
				t->db, t->name, c->name, col->typname, dc->type);
		if (!done) {
			s->retype = true;
			continue;
		}
		c->typid = col->typid;
		c->typmod = col->typmod;
		c->notnull = notnull;
		*noted = true;
	}
	return 0;
}

int
ch_shape_step(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
			  const struct ch_desc *d, struct ch_step *s, struct ws_err *err)
{
	bool noted = false;

	memset(s, 0, sizeof *s);
	copy_note(&t->note, &s->note);
	if (drops(t, rel, d, s, err) != 0)
		return -1;
	if (!s->sql.len && renames(e, t, rel, d, s, err) != 0)
		return -1;
	if (!s->sql.len && adds(e, t, rel, d, s, &noted, err) != 0)
		return -1;
	if (!s->sql.len && !noted && types(e, t, rel, d, s, &noted, err) != 0)
		return -1;
	if (!s->sql.len && !noted)
		return 0;
	s->note.shape = rel->lsn;
	s->note.at = e->in_tx ? e->tx.commit_lsn : t->snap.lsn;
	struct ws_buf text = {0};

	ch_note_format(&s->note, &text);
	action(s);
	ws_buf_puts(&s->sql, "MODIFY COMMENT ");
	ch_quote_text(&s->sql, (char *)text.data, text.len);
	ws_buf_cstr(&s->sql);
	ws_buf_free(&text);
	return 1;
}
