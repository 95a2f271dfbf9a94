/* Texts of statements: CREATE TABLE, names, default values of added columns; see lib/ch/emit.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/ch/conv.h"
#include "lib/ch/emit.h"

void
ch_full_name(struct ws_buf *b, const char *db, const char *name)
{
	ch_quote_name(b, db);
	ws_buf_putc(b, '.');
	ch_quote_name(b, name);
}

const char *
ch_on_cluster(const struct ch_tab *t, struct ws_buf *scratch)
{
	scratch->len = 0;
	if (t->route.cluster) {
		ws_buf_puts(scratch, " ON CLUSTER ");
		ch_quote_name(scratch, t->route.cluster);
	}
	return ws_buf_cstr(scratch);
}

bool
ch_rel_key(const struct ws_c_relation *rel, bool *key)
{
	unsigned flag = rel->replident == 'f'   ? WS_COL_PKEY
					: rel->replident == 'n' ? 0
											: WS_COL_IDENTITY;
	bool any = false;

	for (int i = 0; i < rel->ncols; i++) {
		bool k = rel->cols[i].flags & flag;

		if (key)
			key[i] = k;
		any |= k;
	}
	return any;
}

void
ch_column_name(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
			   const struct ws_c_column *col, struct ws_route_column *out)
{
	ws_routes_column(e->routes, t->shared ? rel->root_nspname : rel->nspname,
					 t->shared ? rel->root_name : rel->name, col->name, out);
	if (!out->name)
		out->name = col->name;
}

void
ch_note_of(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
		   struct ch_note *out)
{
	memset(out, 0, sizeof *out);
	out->text = ws_strdup(t->note.text ? t->note.text : "");
	out->system_id = e->id.system_id;
	out->db = e->id.db;
	out->oid = t->oid;
	out->consumer = ws_strdup(e->o.consumer);
	out->shape = rel->lsn;
	out->at = e->in_tx ? e->tx.commit_lsn : t->snap.lsn;
	for (int i = 0; i < rel->ncols; i++) {
		const struct ws_c_column *c = &rel->cols[i];
		struct ws_route_column rc;

		ch_column_name(e, t, rel, c, &rc);
		if (rc.excluded)
			continue;
		struct ch_note_col *n = ch_note_add(out);

		n->attnum = c->attnum;
		n->typid = c->typid;
		n->typmod = c->typmod;
		n->notnull = c->flags & WS_COL_NOTNULL;
		n->name = ws_strdup(rc.name);
	}
}

/* ---- CREATE TABLE ---- */

static bool
replacing(const struct ch_tab *t)
{
	return t->route.engine ? strstr(t->route.engine, "ReplacingMergeTree") != NULL : !t->history;
}

static void
put_engine(const struct ch_tab *t, struct ws_buf *out)
{
	const char *engine = t->route.engine ? t->route.engine
						 : t->history    ? "MergeTree"
										 : "ReplacingMergeTree";
	struct ws_buf args = {0};

	ws_buf_puts(out, " ENGINE = ");
	if (!replacing(t)) {
		ws_buf_puts(out, engine);
		return;
	}
	ch_quote_name(&args, t->route.extra[WS_X_VERSION]);
	if (t->route.deletes == WS_DEL_TOMBSTONE) {
		ws_buf_puts(&args, ", ");
		ch_quote_name(&args, t->route.extra[WS_X_DELETED]);
	}
	/* A replicated engine brings arguments of its own; ours come last. */
	const char *close = strrchr(engine, ')'), *open = strchr(engine, '(');

	if (close && open) {
		bool empty = strspn(open + 1, " ") == (size_t)(close - open - 1);

		ws_buf_put(out, engine, (size_t)(close - engine));
		ws_buf_printf(out, "%s%s)", empty ? "" : ", ", ws_buf_cstr(&args));
	} else {
		ws_buf_printf(out, "%s(%s)", engine, ws_buf_cstr(&args));
	}
	ws_buf_free(&args);
}

/* The sort key as it is meant without order-by: key columns, all columns, or the version. */
static void
put_order(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
		  struct ws_buf *out)
{
	bool key[WS_CHANGE_MAX_COLS];
	const char *sep = "";

	if (t->route.order_by) {
		bool bare = t->route.order_by[0] == '(' || !strncmp(t->route.order_by, "tuple", 5);

		ws_buf_printf(out, bare ? " ORDER BY %s" : " ORDER BY (%s)", t->route.order_by);
		return;
	}
	ws_buf_puts(out, " ORDER BY (");
	bool has = ch_rel_key(rel, key);

	for (int i = 0; i < rel->ncols; i++) {
		struct ws_route_column rc;

		ch_column_name(e, t, rel, &rel->cols[i], &rc);
		if (rc.excluded || (has ? !key[i] : t->append || t->history))
			continue;
		ws_buf_puts(out, sep);
		ch_quote_name(out, rc.name);
		sep = ", ";
	}
	if (t->append || t->history) {
		ws_buf_puts(out, sep);
		ch_quote_name(out, t->route.extra[WS_X_VERSION]);
		sep = ", ";
	}
	/* Leaves may have equal keys, of different rows. */
	if (t->shared) {
		ws_buf_puts(out, sep);
		ch_quote_name(out, t->route.extra[WS_X_LEAF]);
	}
	ws_buf_putc(out, ')');
}

static void
put_extras(const struct ch_tab *t, struct ws_buf *out)
{
	static const char *const types[WS_X_COUNT] = {
		[WS_X_VERSION] = "UInt128 CODEC(ZSTD(1))",
		[WS_X_DELETED] = "UInt8",
		[WS_X_OP] = "Enum8('I' = 1, 'U' = 2, 'D' = 3, 'T' = 4, 'S' = 5)",
		[WS_X_XID] = "UInt32 CODEC(T64, ZSTD(1))",
		[WS_X_LEAF] = "UInt32",
		[WS_X_COMMIT_TS] = "DateTime64(6, 'UTC') CODEC(ZSTD(1))"};

	for (int i = 0; i < WS_X_COUNT; i++) {
		if (!t->route.extra[i] || (i == WS_X_DELETED && t->history) ||
			(i == WS_X_OP && !t->history) || (i == WS_X_LEAF && !t->shared))
			continue;
		ws_buf_puts(out, ", ");
		ch_quote_name(out, t->route.extra[i]);
		ws_buf_putc(out, ' ');
		if (i == WS_X_LSN) {
			ws_buf_puts(out, "UInt64 ALIAS toUInt64(bitShiftRight(");
			ch_quote_name(out, t->route.extra[WS_X_VERSION]);
			ws_buf_puts(out, ", 64))");
		} else {
			ws_buf_puts(out, types[i]);
		}
	}
}

void
ch_create_sql(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
			  const char *db, const char *name, const struct ch_desc *old,
			  const struct ch_note *note, struct ws_buf *out)
{
	bool key[WS_CHANGE_MAX_COLS], has = ch_rel_key(rel, key), nullable_key = false;
	const char *sep = "";
	struct ws_buf cluster = {0}, comment = {0};

	ws_buf_puts(out, "CREATE TABLE IF NOT EXISTS ");
	ch_full_name(out, db, name);
	ws_buf_printf(out, "%s (", ch_on_cluster(t, &cluster));
	for (int i = 0; i < rel->ncols; i++) {
		const struct ws_c_column *c = &rel->cols[i];
		const struct ch_note_col *n = old ? ch_note_find(&t->note, c->attnum) : NULL;
		const struct ch_dcol *d = n ? ch_desc_find(old, n->name) : NULL;
		struct ws_route_column rc;

		ch_column_name(e, t, rel, c, &rc);
		if (rc.excluded)
			continue;
		ws_buf_puts(out, sep);
		ch_quote_name(out, rc.name);
		ws_buf_putc(out, ' ');
		/* What the table has stays while the source's type does. */
		if (rc.type)
			ws_buf_puts(out, rc.type);
		else if (d && n->typid == c->typid && n->typmod == c->typmod &&
				 (n->notnull || !(c->flags & WS_COL_NOTNULL)))
			ws_buf_puts(out, d->type);
		else
			ch_type_default(c, &t->route, &e->srv.lim,
							has ? key[i] : t->route.keyless == WS_KEYLESS_ALL, out);
		nullable_key |= !has && !(c->flags & WS_COL_NOTNULL);
		sep = ", ";
	}
	put_extras(t, out);
	ws_buf_putc(out, ')');
	put_engine(t, out);
	if (t->route.partition_by)
		ws_buf_printf(out, " PARTITION BY %s", t->route.partition_by);
	if (t->route.primary_key)
		ws_buf_printf(out, " PRIMARY KEY (%s)", t->route.primary_key);
	if (t->route.order_by || !t->route.engine || strstr(t->route.engine, "MergeTree"))
		put_order(e, t, rel, out);
	if (t->route.ttl)
		ws_buf_printf(out, " TTL %s", t->route.ttl);
	bool all = t->route.keyless == WS_KEYLESS_ALL && nullable_key;

	if (t->route.settings || all)
		ws_buf_printf(out, " SETTINGS %s%s%s", t->route.settings ? t->route.settings : "",
					  t->route.settings && all ? ", " : "", all ? "allow_nullable_key = 1" : "");
	ws_buf_puts(out, " COMMENT ");
	ch_note_format(note, &comment);
	ch_quote_text(out, (char *)comment.data, comment.len);
	ws_buf_cstr(out);
	ws_buf_free(&comment);
	ws_buf_free(&cluster);
}

/* ---- values of rows that are older than their column ---- */

static void
literal(const struct ws_value *v, const struct ch_type *t, const char *wire, struct ws_buf *out)
{
	struct ws_buf text = {0};
	uint64_t bits = 0;

	if (v->state != WS_V_VALUE) {
		ws_buf_puts(out, "NULL");
		return;
	}
	if (t->base == CH_FLOAT && (v->kind == WS_K_FLOAT4 || v->kind == WS_K_FLOAT8)) {
		double d = v->kind == WS_K_FLOAT4 ? (double)v->f4 : v->f8;
		float f = (float)d;

		if (t->width == 4)
			memcpy(&bits, &f, 4);
		else
			memcpy(&bits, &d, 8);
		ws_buf_printf(out, "reinterpret(toUInt%u(%llu), 'Float%u')", t->width * 8,
					  (unsigned long long)bits, t->width * 8);
	} else if (t->base == CH_DATE32 && v->kind == WS_K_DATE) {
		ws_buf_printf(out, "addDays(toDate32('1970-01-01'), %lld)", (long long)v->i + EPOCH_DAYS);
	} else if (t->base == CH_DATETIME64 && t->scale == 6 &&
			   (v->kind == WS_K_TIMESTAMP || v->kind == WS_K_TIMESTAMPTZ)) {
		ws_buf_printf(out, "reinterpret(toInt64(%lld), 'DateTime64(6, \\'UTC\\')')",
					  (long long)v->i + EPOCH_US);
	} else if (v->kind == WS_K_BOOL && t->base != CH_STRING) {
		ws_buf_printf(out, "CAST(%d, ", (int)v->i);
		ch_quote_text(out, wire, strlen(wire));
		ws_buf_putc(out, ')');
	} else if (t->base == CH_MAP) {
		ch_map_literal(v, out);
	} else {
		if (v->kind == WS_K_BYTES && t->base == CH_STRING)
			ws_buf_put(&text, v->p, v->len);
		else
			ws_value_text(v, &text);
		if (v->kind == WS_K_OTHER && t->base == CH_DECIMAL)
			text.len = conv_money(text.data, text.len);
		ws_buf_puts(out, "CAST(");
		ch_quote_text(out, (char *)text.data, text.len);
		ws_buf_puts(out, ", ");
		ch_quote_text(out, wire, strlen(wire));
		ws_buf_putc(out, ')');
	}
	ws_buf_free(&text);
}

static void
literal_array(const struct ws_value *v, const struct ch_type *t, struct ws_buf *out)
{
	const struct ch_type *inner = t->elem;
	struct ws_array a;
	struct ws_err err;
	struct ws_value x;
	struct ws_buf text = {0};

	if (ws_array_parse(v->p, v->len, &a, &err) != 0 || a.ndim > 1)
		a.nelems = 0; /* the comparison below tells */
	const uint8_t *at = a.data;

	ws_buf_puts(out, "CAST([");
	for (uint32_t i = 0; i < a.nelems && ws_array_next(&a, i, &at, &x, &err) == 0; i++) {
		ws_buf_puts(out, i ? ", " : "");
		if (x.state != WS_V_VALUE) {
			ws_buf_puts(out, "NULL");
			continue;
		}
		text.len = 0;
		if (x.kind == WS_K_BOOL)
			ws_buf_puts(&text, x.i ? "true" : "false");
		else
			ws_value_text(&x, &text);
		if (x.kind == WS_K_OTHER && inner->base == CH_DECIMAL)
			text.len = conv_money(text.data, text.len);
		ch_quote_text(out, (char *)text.data, text.len);
	}
	ws_buf_puts(out, "], ");
	ch_quote_text(out, t->wire, strlen(t->wire));
	ws_buf_putc(out, ')');
	ws_buf_free(&text);
}

/* The expression is evaluated by the server and compared with the bytes that an insert would
 * send: texts mean different things on both sides often enough. */
int
ch_missing_sql(struct ws_emit *e, const struct ws_c_column *col, const char *type,
			   struct ws_buf *out, struct ws_err *err)
{
	struct ws_arena arena = {0};
	struct ch_type t;
	struct ch_col c = {0};
	struct ws_value v;
	struct ws_route route = {0};
	struct ws_buf expr = {0}, answer = {0}, want = {0};
	struct ch_piece pieces[40];
	uint64_t policy = 0;
	int rc = -1;

	route.unsupported = WS_UNSUP_HEX;
	if (ws_value_from_text(col->kind, col->elem_kind, col->missing, strlen(col->missing), &arena,
						   &v, err) != 0 ||
		ch_type_parse(type, &arena, &t, err) != 0)
		goto out;
	if (ch_col_init(&c, &t, col->kind, col->elem_kind, &route, &e->srv.lim) != 0 ||
		ch_col_add(&c, &v, &policy) != 0) {
		ws_err_op(err, "value_unfit", "column %s: the default of older rows does not fit into %s",
				  col->name, type);
		goto out;
	}
	if (t.base == CH_ARRAY)
		literal_array(&v, &t, &expr);
	else
		literal(&v, &t, t.wire, &expr);
	if (emit_sql(e, &answer, err, "SELECT CAST((%s) AS %s) FORMAT Native", ws_buf_cstr(&expr),
				 type) != 0)
		goto out;
	int n = ch_col_pieces(&c, pieces, 40);

	for (int i = 0; i < n; i++)
		ws_buf_put(&want, pieces[i].p, pieces[i].n);
	if (answer.len < want.len || memcmp(answer.data + answer.len - want.len, want.data, want.len)) {
		ws_err_op(err, "default_inexact",
				  "column %s: the server does not read %.100s as PostgreSQL means it", col->name,
				  ws_buf_cstr(&expr));
		goto out;
	}
	ws_buf_put(out, expr.data, expr.len);
	rc = 0;
out:
	ch_col_fini(&c);
	ws_arena_free(&arena);
	ws_buf_free(&expr);
	ws_buf_free(&answer);
	ws_buf_free(&want);
	return rc;
}
