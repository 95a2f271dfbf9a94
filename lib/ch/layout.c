/* Whether a destination table is fit for a shape's rows, and what inserts into it carry; see
 * lib/ch/emit.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

/* ---- checking ---- */

/* The server gives ORDER BY (a) back with its parentheses, ORDER BY (a, b) without. */
static void
strip_parentheses(const char **list, size_t *n)
{
	int depth = 0;

	if (*n < 2 || **list != '(')
		return;
	for (size_t i = 0; i < *n; i++) {
		depth += (*list)[i] == '(' ? 1 : (*list)[i] == ')' ? -1 : 0;
		if (depth == 0 && i + 1 < *n)
			return;
	}
	*list += 1;
	*n -= 2;
}

/* Whether a list like "id, `my col`, toDate(ts)" has name as an element of its own. */
static bool
list_has(const char *list, size_t n, const char *name)
{
	struct ws_buf quoted = {0};
	bool hit = false;
	int depth = 0;
	size_t from = 0;

	strip_parentheses(&list, &n);
	ch_quote_name(&quoted, name);
	for (size_t i = 0; i <= n && !hit; i++) {
		if (i < n && list[i] == '`') {
			while (++i < n && list[i] != '`')
				i += list[i] == '\\';
			continue;
		}
		if (i < n && (list[i] == '(' || list[i] == ')'))
			depth += list[i] == '(' ? 1 : -1;
		if (i < n && (list[i] != ',' || depth))
			continue;
		const char *s = list + from;
		size_t len = i - from;

		while (len && *s == ' ')
			s++, len--;
		hit = (len == strlen(name) && !memcmp(s, name, len)) ||
			  (len == quoted.len && !memcmp(s, quoted.data, len));
		from = i + 1;
	}
	ws_buf_free(&quoted);
	return hit;
}

int
ch_check_engine(const struct ch_tab *t, const struct ch_desc *d, struct ws_err *err)
{
	bool replacing = strstr(d->engine, "ReplacingMergeTree") != NULL;
	bool merge = strstr(d->engine, "MergeTree") != NULL;
	const char *open = strchr(d->engine_full, '('), *version = t->route.extra[WS_X_VERSION];

	if (t->history)
		return !merge || !replacing ? 0
									: ws_err_op(err, "engine_mismatch",
												"table %s.%s: a history in %s would lose its rows",
												t->db, t->name, d->engine);
	if (!merge)
		return 0; /* Null, Distributed, ...: somebody chose it */
	if (!replacing)
		return ws_err_op(
			err, "engine_mismatch",
			"table %s.%s: engine %s keeps every version of a row; it needs deletes=history", t->db,
			t->name, d->engine);
	size_t n = open ? strcspn(open, ")") : 0;
	const char *deleted =
		t->route.deletes == WS_DEL_TOMBSTONE ? t->route.extra[WS_X_DELETED] : NULL;

	if (!n || !list_has(open + 1, n - 1, version) ||
		(deleted && !list_has(open + 1, n - 1, deleted)))
		return ws_err_op(err, "engine_mismatch",
						 "table %s.%s: the engine's arguments must end with %s%s%s", t->db, t->name,
						 version, deleted ? ", " : "", deleted ? deleted : "");
	return 0;
}

/* The sort key must tell rows apart exactly as the source's key does, and its old value must be
 * known when it changes. */
int
ch_check_table(const struct ch_tab *t, const struct ws_c_relation *rel, const struct ch_desc *d,
			   struct ws_err *err)
{
	bool key[WS_CHANGE_MAX_COLS], has = ch_rel_key(rel, key);

	if (ch_check_engine(t, d, err) != 0)
		return -1;
	const char *leaf = t->shared ? t->route.extra[WS_X_LEAF] : NULL;

	if (leaf && strstr(d->engine, "MergeTree") &&
		!list_has(d->sorting_key, strlen(d->sorting_key), leaf))
		return ws_err_op(err, "sort_key",
						 "table %s.%s: ORDER BY (%s) lacks %s, which tells the leaves apart", t->db,
						 t->name, d->sorting_key, leaf);
	if (t->history || t->append || !strstr(d->engine, "MergeTree"))
		return 0;
	for (int i = 0; i < rel->ncols; i++) {
		const struct ch_note_col *n = ch_note_find(&t->note, rel->cols[i].attnum);
		const struct ch_dcol *dc = n ? ch_desc_find(d, n->name) : NULL;
		bool part_of_key = has ? key[i] : t->route.keyless == WS_KEYLESS_ALL;

		if (part_of_key && !dc)
			return ws_err_op(err, "sort_key",
							 "table %s.%s: key column %s of the source is left out", t->db, t->name,
							 rel->cols[i].name);
		if (part_of_key && !list_has(d->sorting_key, strlen(d->sorting_key), dc->name))
			return ws_err_op(
				err, "sort_key",
				"table %s.%s: rows of different source keys could collapse: ORDER BY (%s) lacks %s",
				t->db, t->name, d->sorting_key, dc->name);
		bool known_old =
			rel->replident == 'f' || (has && key[i] && (rel->cols[i].flags & WS_COL_IDENTITY));

		if (dc && dc->key && !known_old)
			return ws_err_op(
				err, "sort_key",
				"table %s.%s: sort key column %s can change unseen; it needs REPLICA IDENTITY FULL",
				t->db, t->name, dc->name);
	}
	const char *version = t->route.extra[WS_X_VERSION];

	if (list_has(d->sorting_key, strlen(d->sorting_key), version))
		return ws_err_op(err, "sort_key",
						 "table %s.%s: %s in the sort key keeps every version of a row", t->db,
						 t->name, version);
	if (t->route.deletes == WS_DEL_SOFT && rel->replident != 'f')
		return ws_err_op(err, "soft_needs_full",
						 "table %s.%s: deletes=soft keeps the deleted row's values: it needs "
						 "REPLICA IDENTITY FULL",
						 t->db, t->name);
	return 0;
}

/* ---- what inserts carry ---- */

void
ch_layout_unref(struct ch_layout *l)
{
	if (l && --l->refs == 0) {
		ws_arena_free(&l->arena);
		free(l);
	}
}

static const uint8_t extra_kinds[WS_X_COUNT] = {
	[WS_X_VERSION] = WS_K_INT8, [WS_X_DELETED] = WS_K_BOOL, [WS_X_OP] = WS_K_TEXT,
	[WS_X_XID] = WS_K_OID,      [WS_X_LEAF] = WS_K_OID,     [WS_X_COMMIT_TS] = WS_K_TIMESTAMPTZ};

static int
layout_add(struct ch_tab *t, struct ch_layout *l, const struct ch_dcol *dc, uint8_t kind,
		   uint8_t elem, int extra, int16_t attnum, const char *source, struct ws_err *err)
{
	struct ch_lcol *c = &l->cols[l->n];

	if (ch_type_parse(dc->type, &l->arena, &c->type, err) != 0)
		return ws_err_prefix(err, "table %s.%s column %s", t->db, t->name, dc->name);
	if (!ch_put_find(kind, elem, &c->type))
		return ws_err_op(err, "type_mismatch", "table %s.%s: %s cannot go into column %s %s", t->db,
						 t->name, source, dc->name, dc->type);
	if (extra == WS_X_VERSION && strcmp(dc->type, "UInt128"))
		return ws_err_op(err, "type_mismatch", "table %s.%s: column %s must be UInt128", t->db,
						 t->name, dc->name);
	c->name = ws_arena_strdup(&l->arena, dc->name);
	c->kind = kind;
	c->elem = elem;
	c->fast = (uint8_t)ch_put_fast(kind, &c->type);
	c->extra = extra;
	c->attnum = attnum;
	c->key = dc->key;
	l->n++;
	return 0;
}

static bool
extra_needed(const struct ch_tab *t, int x)
{
	return x == WS_X_VERSION || (x == WS_X_LEAF && t->shared) || (x == WS_X_OP && t->history) ||
		   (x == WS_X_DELETED && !t->history &&
			(t->route.deletes == WS_DEL_TOMBSTONE || t->route.deletes == WS_DEL_SOFT));
}

int
emit_layout(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
			const struct ch_desc *d, struct ws_err *err)
{
	struct ch_layout *l = ws_calloc(1, sizeof *l);

	l->refs = 1;
	l->cols = ws_arena_zalloc(&l->arena, ((size_t)rel->ncols + WS_X_COUNT) * sizeof *l->cols);
	for (int i = 0; i < rel->ncols; i++) {
		const struct ws_c_column *c = &rel->cols[i];
		const struct ch_note_col *n = ch_note_find(&t->note, c->attnum);
		const struct ch_dcol *dc = n ? ch_desc_find(d, n->name) : NULL;
		struct ws_route_column rc;

		ch_column_name(e, t, rel, c, &rc);
		if (rc.excluded)
			continue;
		/* Dropped since: rows of an older shape come without it. */
		if (!dc && rel->lsn && rel->lsn < t->note.shape)
			continue;
		if (!dc) {
			ws_err_op(err, "destination_schema", "table %s.%s: no column for %s of the source",
					  t->db, t->name, c->name);
			goto bad;
		}
		if (!strcmp(dc->kind, "ALIAS") || !strcmp(dc->kind, "MATERIALIZED")) {
			ws_err_op(err, "destination_schema",
					  "table %s.%s: column %s is %s and cannot be written", t->db, t->name,
					  dc->name, dc->kind);
			goto bad;
		}
		if (layout_add(t, l, dc, c->kind, c->elem_kind, -1, c->attnum, c->typname, err) != 0)
			goto bad;
	}
	for (int x = 0; x < WS_X_LSN; x++) {
		const struct ch_dcol *dc = t->route.extra[x] ? ch_desc_find(d, t->route.extra[x]) : NULL;

		if ((x == WS_X_DELETED && t->history) || (x == WS_X_OP && !t->history) ||
			(x == WS_X_LEAF && !t->shared))
			continue;
		if (!dc && extra_needed(t, x)) {
			ws_err_op(err, "destination_schema", "table %s.%s: column %s is missing", t->db,
					  t->name, t->route.extra[x]);
			goto bad;
		}
		if (dc && layout_add(t, l, dc, extra_kinds[x], 0, x, 0, "the extra column", err) != 0)
			goto bad;
	}
	ch_layout_unref(t->layout);
	t->layout = l;
	return 0;
bad:
	ch_layout_unref(l);
	return -1;
}

int
emit_tab_bind(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
			  struct ws_err *err)
{
	const struct ch_layout *l = t->layout;

	(void)e;
	free(t->src);
	t->src = ws_calloc((size_t)l->n, sizeof *t->src);
	for (int i = 0; i < l->n; i++) {
		t->src[i] = -1;
		for (int j = 0; j < rel->ncols && l->cols[i].extra < 0; j++) {
			if (rel->cols[j].attnum != l->cols[i].attnum)
				continue;
			/* An older shape than the table's: its kinds must go into the same columns. */
			if (rel->cols[j].kind != l->cols[i].kind || rel->cols[j].elem_kind != l->cols[i].elem)
				return ws_err_op(err, "shape_conflict",
								 "table %s.%s: column %s comes with two types", t->db, t->name,
								 l->cols[i].name);
			t->src[i] = j;
		}
	}
	t->rel = rel;
	return 0;
}
