/* Destination tables: found by their comment or by name, made, checked, and what inserts into them
 * carry; see lib/ch/emit.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

/* ---- asking ---- */

void
ch_desc_fini(struct ch_desc *d)
{
	ws_arena_free(&d->arena);
	memset(d, 0, sizeof *d);
}

struct ch_dcol *
ch_desc_find(const struct ch_desc *d, const char *name)
{
	for (int i = 0; i < d->n; i++)
		if (!strcmp(d->cols[i].name, name))
			return &d->cols[i];
	return NULL;
}

/* Next field of an answer, kept in the arena; "" past the end. */
static char *
field(struct ws_arena *a, char **at)
{
	bool eol;
	char *s = ch_tsv_next(at, &eol);

	return ws_arena_strdup(a, s ? s : "");
}

int
emit_describe(struct ws_emit *e, const char *db, const char *name, struct ch_desc *d, struct ws_err *err)
{
	struct ws_buf qdb = {0}, qname = {0}, out = {0};
	int rc = -1, cap = 0;

	memset(d, 0, sizeof *d);
	ch_quote_text(&qdb, db, strlen(db));
	ch_quote_text(&qname, name, strlen(name));
	ws_buf_cstr(&qdb);
	ws_buf_cstr(&qname);
	if (emit_sql(e, &out, err,
	             "SELECT engine, engine_full, sorting_key, toString(uuid), comment FROM system.tables WHERE database = %s AND name = %s",
	             (char *)qdb.data, (char *)qname.data) != 0)
		goto out;
	if (out.len) {
		char *at = (char *)out.data;

		d->exists = true;
		d->engine = field(&d->arena, &at);
		d->engine_full = field(&d->arena, &at);
		d->sorting_key = field(&d->arena, &at);
		d->uuid = field(&d->arena, &at);
		d->comment = field(&d->arena, &at);
		out.len = 0;
		if (emit_sql(e, &out, err,
		             "SELECT name, type, default_kind, is_in_sorting_key, is_in_partition_key FROM system.columns "
		             "WHERE database = %s AND table = %s ORDER BY position",
		             (char *)qdb.data, (char *)qname.data) != 0)
			goto out;
		for (at = (char *)out.data; *at;) {
			if (d->n == cap) {
				struct ch_dcol *old = d->cols;

				cap = cap ? cap * 2 : 32;
				d->cols = ws_arena_alloc(&d->arena, (size_t)cap * sizeof *old);
				if (d->n)
					memcpy(d->cols, old, (size_t)d->n * sizeof *old);
			}
			struct ch_dcol *c = &d->cols[d->n++];

			c->name = field(&d->arena, &at);
			c->type = field(&d->arena, &at);
			c->kind = field(&d->arena, &at);
			c->key = *field(&d->arena, &at) == '1';
			c->part = *field(&d->arena, &at) == '1';
		}
	}
	rc = 0;
out:
	ws_buf_free(&qdb);
	ws_buf_free(&qname);
	ws_buf_free(&out);
	if (rc != 0)
		ch_desc_fini(d);
	return rc;
}

static void
known_free(struct ws_emit *e)
{
	for (struct ch_known *k = e->known, *next; k; k = next) {
		next = k->next;
		ch_note_fini(&k->note);
		free(k->db);
		free(k->name);
		free(k);
	}
	e->known = NULL;
}

static bool
ours(const struct ws_emit *e, const struct ch_note *n)
{
	return n->system_id == e->id.system_id && n->db == e->id.db && !strcmp(n->consumer, e->o.consumer);
}

/* Every table whose comment says that it is this consumer's. */
int
emit_known_read(struct ws_emit *e, struct ws_err *err)
{
	struct ws_buf out = {0};
	bool eol;

	known_free(e);
	if (!e->dbname)
		return 0;
	if (emit_sql(e, &out, err,
	             "SELECT database, name, comment FROM system.tables WHERE position(comment, 'walshadow=1 system=%" PRIu64
	             " database=%u ') > 0 AND NOT startsWith(name, 'ws_staging_')",
	             e->id.system_id, e->id.db) != 0) {
		ws_buf_free(&out);
		return -1;
	}
	for (char *at = out.data ? (char *)out.data : (char[1]){0}; *at;) {
		char *db = ch_tsv_next(&at, &eol), *name = ch_tsv_next(&at, &eol), *comment = ch_tsv_next(&at, &eol);
		struct ch_note note;

		if (!comment || ch_note_parse(comment, &note) != 1)
			continue;
		if (!ours(e, &note)) {
			ch_note_fini(&note);
			continue;
		}
		struct ch_known *k = ws_calloc(1, sizeof *k);

		k->db = ws_strdup(db);
		k->name = ws_strdup(name);
		k->note = note;
		k->next = e->known;
		e->known = k;
	}
	ws_buf_free(&out);
	return 0;
}

struct ch_known *
emit_known_find(struct ws_emit *e, ws_oid oid)
{
	for (struct ch_known *k = e->known; k; k = k->next)
		if (k->note.oid == oid)
			return k;
	return NULL;
}

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
		hit = (len == strlen(name) && !memcmp(s, name, len)) || (len == quoted.len && !memcmp(s, quoted.data, len));
		from = i + 1;
	}
	ws_buf_free(&quoted);
	return hit;
}

static int
check_engine(const struct ch_tab *t, const struct ch_desc *d, struct ws_err *err)
{
	bool replacing = strstr(d->engine, "ReplacingMergeTree") != NULL;
	bool merge = strstr(d->engine, "MergeTree") != NULL;
	const char *open = strchr(d->engine_full, '('), *version = t->route.extra[WS_X_VERSION];

	if (t->history)
		return !merge || !replacing ? 0 :
		       ws_err_op(err, "engine_mismatch", "table %s.%s: a history in %s would lose its rows", t->db, t->name, d->engine);
	if (!merge)
		return 0; /* Null, Distributed, ...: somebody chose it */
	if (!replacing)
		return ws_err_op(err, "engine_mismatch", "table %s.%s: engine %s keeps every version of a row; it needs deletes=history",
		                 t->db, t->name, d->engine);
	size_t n = open ? strcspn(open, ")") : 0;
	const char *deleted = t->route.deletes == WS_DEL_TOMBSTONE ? t->route.extra[WS_X_DELETED] : NULL;

	if (!n || !list_has(open + 1, n - 1, version) || (deleted && !list_has(open + 1, n - 1, deleted)))
		return ws_err_op(err, "engine_mismatch", "table %s.%s: the engine's arguments must end with %s%s%s", t->db, t->name,
		                 version, deleted ? ", " : "", deleted ? deleted : "");
	return 0;
}

/* The sort key must tell rows apart exactly as the source's key does, and its old value must be
 * known when it changes. */
int
ch_check_table(const struct ch_tab *t, const struct ws_c_relation *rel, const struct ch_desc *d, struct ws_err *err)
{
	bool key[WS_CHANGE_MAX_COLS], has = ch_rel_key(rel, key);

	if (check_engine(t, d, err) != 0)
		return -1;
	if (t->history || t->append || !strstr(d->engine, "MergeTree"))
		return 0;
	for (int i = 0; i < rel->ncols; i++) {
		const struct ch_note_col *n = ch_note_find(&t->note, rel->cols[i].attnum);
		const struct ch_dcol *dc = n ? ch_desc_find(d, n->name) : NULL;
		bool part_of_key = has ? key[i] : t->route.keyless == WS_KEYLESS_ALL;

		if (part_of_key && !dc)
			return ws_err_op(err, "sort_key", "table %s.%s: key column %s of the source is left out", t->db, t->name, rel->cols[i].name);
		if (part_of_key && !list_has(d->sorting_key, strlen(d->sorting_key), dc->name))
			return ws_err_op(err, "sort_key", "table %s.%s: rows of different source keys could collapse: ORDER BY (%s) lacks %s",
			                 t->db, t->name, d->sorting_key, dc->name);
		bool known_old = rel->replident == 'f' || (has && key[i] && (rel->cols[i].flags & WS_COL_IDENTITY));

		if (dc && dc->key && !known_old)
			return ws_err_op(err, "sort_key", "table %s.%s: sort key column %s can change unseen; it needs REPLICA IDENTITY FULL",
			                 t->db, t->name, dc->name);
	}
	const char *version = t->route.extra[WS_X_VERSION];

	if (list_has(d->sorting_key, strlen(d->sorting_key), version))
		return ws_err_op(err, "sort_key", "table %s.%s: %s in the sort key keeps every version of a row", t->db, t->name, version);
	if (t->route.deletes == WS_DEL_SOFT && rel->replident != 'f')
		return ws_err_op(err, "soft_needs_full", "table %s.%s: deletes=soft keeps the deleted row's values: it needs REPLICA IDENTITY FULL",
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

static const uint8_t extra_kinds[WS_X_COUNT] = {[WS_X_VERSION] = WS_K_INT8, [WS_X_DELETED] = WS_K_BOOL, [WS_X_OP] = WS_K_TEXT,
                                                [WS_X_XID] = WS_K_OID, [WS_X_COMMIT_TS] = WS_K_TIMESTAMPTZ};

static int
layout_add(struct ch_tab *t, struct ch_layout *l, const struct ch_dcol *dc, uint8_t kind, uint8_t elem, int extra,
           int16_t attnum, const char *source, struct ws_err *err)
{
	struct ch_lcol *c = &l->cols[l->n];

	if (ch_type_parse(dc->type, &l->arena, &c->type, err) != 0)
		return ws_err_prefix(err, "table %s.%s column %s", t->db, t->name, dc->name);
	if (!ch_put_find(kind, elem, &c->type))
		return ws_err_op(err, "type_mismatch", "table %s.%s: %s cannot go into column %s %s", t->db, t->name, source, dc->name, dc->type);
	if (extra == WS_X_VERSION && strcmp(dc->type, "UInt128"))
		return ws_err_op(err, "type_mismatch", "table %s.%s: column %s must be UInt128", t->db, t->name, dc->name);
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
	return x == WS_X_VERSION || (x == WS_X_OP && t->history) ||
	       (x == WS_X_DELETED && !t->history && (t->route.deletes == WS_DEL_TOMBSTONE || t->route.deletes == WS_DEL_SOFT));
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

		ch_column_name(e, rel, c, &rc);
		if (rc.excluded)
			continue;
		/* Dropped since: rows of an older shape come without it. */
		if (!dc && rel->lsn && rel->lsn < t->note.shape)
			continue;
		if (!dc) {
			ws_err_op(err, "destination_schema", "table %s.%s: no column for %s of the source", t->db, t->name, c->name);
			goto bad;
		}
		if (!strcmp(dc->kind, "ALIAS") || !strcmp(dc->kind, "MATERIALIZED")) {
			ws_err_op(err, "destination_schema", "table %s.%s: column %s is %s and cannot be written", t->db, t->name, dc->name, dc->kind);
			goto bad;
		}
		if (layout_add(t, l, dc, c->kind, c->elem_kind, -1, c->attnum, c->typname, err) != 0)
			goto bad;
	}
	for (int x = 0; x < WS_X_LSN; x++) {
		const struct ch_dcol *dc = t->route.extra[x] ? ch_desc_find(d, t->route.extra[x]) : NULL;

		if ((x == WS_X_DELETED && t->history) || (x == WS_X_OP && !t->history))
			continue;
		if (!dc && extra_needed(t, x)) {
			ws_err_op(err, "destination_schema", "table %s.%s: column %s is missing", t->db, t->name, t->route.extra[x]);
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
emit_tab_bind(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
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
				return ws_err_op(err, "shape_conflict", "table %s.%s: column %s comes with two types", t->db, t->name, l->cols[i].name);
			t->src[i] = j;
		}
	}
	t->rel = rel;
	return 0;
}

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
	if (!ours(e, n))
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
	else if (noted && n.oid != t->oid && (rc = set_aside(e, t, db, name, &n, err)) == 0)
		d.exists = false;
	else if (rc == 0 && d.exists && t->db)
		rc = ws_err_op(err, "destination_taken", "table %s.%s cannot be renamed: %s.%s exists", t->db, t->name, db, name);
	else if (rc == 0 && noted && !ours(e, &n))
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
		if (check_engine(t, &d, err) != 0)
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
	if (ch_check_table(t, rel, &d, err) != 0 || emit_layout(e, t, rel, &d, err) != 0 || emit_tab_bind(e, t, rel, err) != 0)
		goto out;
	if (!t->cut && t->history && noted && history_cut(e, t, err) != 0)
		goto out;
	t->cut = t->ready = true;
	rc = 0;
out:
	ch_desc_fini(&d);
	return rc;
}
