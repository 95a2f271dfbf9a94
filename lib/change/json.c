/* The change stream as JSON, one object a line: ws-change(5), "JSON form". */
#include "ws/change.h"
#include "ws/cursor.h"
#include "ws/lsn.h"

static void
put_hex(struct ws_buf *b, const uint8_t *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	ws_buf_reserve(b, n * 2);
	for (size_t i = 0; i < n; i++) {
		b->data[b->len++] = (uint8_t)digits[p[i] >> 4];
		b->data[b->len++] = (uint8_t)digits[p[i] & 15];
	}
}

/* Length of the valid UTF-8 sequence at p, or 0 (RFC 3629: no overlong forms, no surrogates). */
static size_t
utf8_len(const uint8_t *p, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t k = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
	uint32_t cp;

	if (k < 2)
		return k;
	if (k > n)
		return 0;
	cp = p[0] & (0xffu >> (k + 1));
	for (size_t i = 1; i < k; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	return cp < least[k] || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000) ? 0 : k;
}

static bool
utf8_ok(const uint8_t *p, size_t n)
{
	for (size_t k; n; p += k, n -= k)
		if (!(k = utf8_len(p, n)))
			return false;
	return true;
}

static void
put_text(struct ws_buf *b, const void *text, size_t n)
{
	const uint8_t *p = text;

	if (!utf8_ok(p, n)) {
		ws_buf_puts(b, "{\"$bytes\":\"");
		put_hex(b, p, n);
		ws_buf_puts(b, "\"}");
		return;
	}
	ws_buf_putc(b, '"');
	for (size_t i = 0, from = 0;; i++) {
		if (i < n && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
			continue;
		ws_buf_put(b, p + from, i - from);
		if (i == n)
			break;
		from = i + 1;
		if (p[i] == '"' || p[i] == '\\')
			ws_buf_printf(b, "\\%c", p[i]);
		else if (p[i] == '\n')
			ws_buf_puts(b, "\\n");
		else if (p[i] == '\t')
			ws_buf_puts(b, "\\t");
		else
			ws_buf_printf(b, "\\u%04x", p[i]);
	}
	ws_buf_putc(b, '"');
}

static void
put_member(struct ws_buf *b, const char *name, const char *text)
{
	ws_buf_printf(b, ",\"%s\":", name);
	put_text(b, text, strlen(text));
}

static void
put_lsn(struct ws_buf *b, const char *name, ws_lsn lsn)
{
	ws_buf_printf(b, ",\"%s\":\"" WS_LSN_FMT "\"", name, WS_LSN_ARG(lsn));
}

static void
put_text_of(struct ws_buf *b, const struct ws_value *v)
{
	struct ws_buf t = {0};

	ws_value_text(v, &t);
	put_text(b, t.data ? t.data : (const uint8_t *)"", t.len);
	ws_buf_free(&t);
}

static bool
is_number(const struct ws_value *v)
{
	switch ((enum ws_kind)v->kind) {
	case WS_K_INT2:
	case WS_K_INT4:
	case WS_K_INT8:
	case WS_K_OID:
		return true;
	case WS_K_FLOAT4:
		return v->f4 - v->f4 == 0;
	case WS_K_FLOAT8:
		return v->f8 - v->f8 == 0;
	case WS_K_NUMERIC:
		/* NaN, Infinity and -Infinity are the only ones that end in a letter. */
		return v->len && v->p[v->len - 1] >= '0' && v->p[v->len - 1] <= '9';
	default:
		return false;
	}
}

static void put_value(struct ws_buf *b, const struct ws_value *v, const char *typname);

/* False when the array has to be printed as PostgreSQL's text. */
static bool
put_array(struct ws_buf *b, const struct ws_value *v)
{
	struct ws_array a;
	size_t start = b->len;

	if (ws_array_parse(v->p, v->len, &a, NULL) != 0)
		return false;
	if (a.ndim > 1 || (a.ndim == 1 && a.lbounds[0] != 1))
		return false;
	const uint8_t *at = a.data;

	ws_buf_putc(b, '[');
	for (uint32_t i = 0; i < a.nelems; i++) {
		struct ws_value e;

		if (ws_array_next(&a, i, &at, &e, NULL) != 0) {
			b->len = start;
			return false;
		}
		if (i)
			ws_buf_putc(b, ',');
		put_value(b, &e, "");
	}
	ws_buf_putc(b, ']');
	return true;
}

static void
put_value(struct ws_buf *b, const struct ws_value *v, const char *typname)
{
	if (v->state == WS_V_NULL) {
		ws_buf_puts(b, "null");
	} else if (v->kind == WS_K_BOOL) {
		ws_buf_puts(b, v->i ? "true" : "false");
	} else if (is_number(v)) {
		ws_value_text(v, b);
	} else if (v->kind == WS_K_UNSUPPORTED) {
		ws_buf_puts(b, "{\"$unsupported\":");
		put_text(b, typname, strlen(typname));
		ws_buf_puts(b, ",\"bytes\":\"");
		put_hex(b, v->p, v->len);
		ws_buf_puts(b, "\"}");
	} else if (v->kind == WS_K_TEXT || v->kind == WS_K_JSON || v->kind == WS_K_OTHER) {
		put_text(b, v->p, v->len);
	} else if (v->kind != WS_K_ARRAY || !put_array(b, v)) {
		put_text_of(b, v);
	}
}

static void
put_tuple(struct ws_buf *b, const char *name, const struct ws_c_relation *rel, const struct ws_value *v)
{
	const char *sep = "";

	ws_buf_printf(b, ",\"%s\":{", name);
	for (uint16_t i = 0; i < rel->ncols; i++) {
		if (v[i].state == WS_V_ABSENT)
			continue;
		ws_buf_puts(b, sep);
		put_text(b, rel->cols[i].name, strlen(rel->cols[i].name));
		ws_buf_putc(b, ':');
		put_value(b, &v[i], rel->cols[i].typname);
		sep = ",";
	}
	ws_buf_putc(b, '}');
}

static void
put_names(struct ws_buf *b, const struct ws_c_relation *rel)
{
	ws_buf_printf(b, ",\"oid\":%u", rel->oid);
	put_member(b, "schema", rel->nspname);
	put_member(b, "table", rel->name);
}

static void
put_relation(struct ws_buf *b, const struct ws_c_relation *r)
{
	ws_buf_printf(b, ",\"handle\":%u", r->handle);
	put_names(b, r);
	ws_buf_printf(b, ",\"relkind\":\"%c\",\"replident\":\"%c\"", r->relkind, r->replident);
	if (r->root) {
		ws_buf_printf(b, ",\"root_oid\":%u", r->root);
		put_member(b, "root_schema", r->root_nspname);
		put_member(b, "root_table", r->root_name);
	}
	put_lsn(b, "lsn", r->lsn);
	ws_buf_puts(b, ",\"columns\":[");
	for (uint16_t i = 0; i < r->ncols; i++) {
		const struct ws_c_column *c = &r->cols[i];

		ws_buf_printf(b, "%s{\"attnum\":%d", i ? "," : "", c->attnum);
		put_member(b, "name", c->name);
		put_member(b, "kind", ws_kind_name(c->kind));
		if (c->elem_kind)
			put_member(b, "element_kind", ws_kind_name(c->elem_kind));
		put_member(b, "type", c->typname);
		ws_buf_printf(b, ",\"typid\":%u,\"typmod\":%d", c->typid, c->typmod);
		if (c->flags & WS_COL_NOTNULL)
			ws_buf_puts(b, ",\"not_null\":true");
		if (c->flags & WS_COL_IDENTITY)
			ws_buf_puts(b, ",\"identity\":true");
		if (c->flags & WS_COL_PKEY)
			ws_buf_puts(b, ",\"primary_key\":true");
		if (c->flags & WS_COL_GENERATED)
			ws_buf_puts(b, ",\"generated\":true");
		if (c->flags & WS_COL_MISSING)
			put_member(b, "missing", c->missing);
		for (uint16_t j = 0; j < c->nlabels; j++) {
			ws_buf_puts(b, j ? "," : ",\"labels\":[");
			put_text(b, c->labels[j], strlen(c->labels[j]));
			if (j + 1 == c->nlabels)
				ws_buf_putc(b, ']');
		}
		ws_buf_putc(b, '}');
	}
	ws_buf_putc(b, ']');
}

static const char *
type_name(enum ws_change_type t)
{
	switch (t) {
	case WS_C_IDENTITY:
		return "identity";
	case WS_C_RELATION:
		return "relation";
	case WS_C_BEGIN:
		return "begin";
	case WS_C_ROW:
		return "row";
	case WS_C_TRUNCATE:
		return "truncate";
	case WS_C_REPLACE_BEGIN:
		return "replace_begin";
	case WS_C_REPLACE_END:
		return "replace_end";
	case WS_C_SCHEMA:
		return "schema";
	case WS_C_MESSAGE:
		return "message";
	case WS_C_SEQUENCE:
		return "sequence";
	case WS_C_COMMIT:
		return "commit";
	case WS_C_PROGRESS:
		return "progress";
	case WS_C_TIMELINE:
		return "timeline";
	case WS_C_SNAPSHOT_BEGIN:
		return "snapshot_begin";
	case WS_C_SNAPSHOT_END:
		return "snapshot_end";
	case WS_C_END:
		return "end";
	}
	return "unknown";
}

static void
put_row(struct ws_buf *b, const struct ws_c_row *row)
{
	ws_buf_printf(b, ",\"op\":\"%s\",\"ordinal\":%llu",
	              row->op == 'I' ? "insert" : row->op == 'U' ? "update" : "delete",
	              (unsigned long long)row->ordinal);
	put_names(b, row->rel);
	if (row->new_)
		put_tuple(b, "new", row->rel, row->new_);
	if (row->old)
		put_tuple(b, "old", row->rel, row->old);
}

static void
put_rest(struct ws_buf *b, const struct ws_change *c, const struct ws_change_reader *r)
{
	struct ws_value t = {.state = WS_V_VALUE, .kind = WS_K_TIMESTAMPTZ};
	const struct ws_c_relation *rel;

	switch (c->type) {
	case WS_C_IDENTITY:
		ws_buf_printf(b, ",\"system_id\":\"%llu\",\"timeline\":%u,\"database_oid\":%u,\"major\":%u",
		              (unsigned long long)c->identity.system_id, c->identity.tli, c->identity.db,
		              c->identity.major);
		put_member(b, "database", c->identity.dbname);
		put_member(b, "encoding", c->identity.encoding);
		break;
	case WS_C_BEGIN:
		ws_buf_printf(b, ",\"xid\":%u", c->begin.xid);
		put_lsn(b, "commit_lsn", c->begin.commit_lsn);
		put_lsn(b, "end_lsn", c->begin.end_lsn);
		ws_buf_puts(b, ",\"time\":");
		t.i = c->begin.time;
		put_text_of(b, &t);
		ws_buf_printf(b, ",\"origin\":%u", c->begin.origin);
		break;
	case WS_C_COMMIT:
		ws_buf_printf(b, ",\"xid\":%u", c->commit.xid);
		put_lsn(b, "commit_lsn", c->commit.commit_lsn);
		put_lsn(b, "end_lsn", c->commit.end_lsn);
		ws_buf_printf(b, ",\"timeline\":%u,\"changes\":%llu", c->commit.tli,
		              (unsigned long long)c->commit.nchanges);
		break;
	case WS_C_TRUNCATE:
		ws_buf_printf(b, ",\"ordinal\":%llu,\"cascade\":%s,\"restart_identity\":%s,\"tables\":[",
		              (unsigned long long)c->truncate.ordinal,
		              c->truncate.flags & WS_TRUNCATE_CASCADE ? "true" : "false",
		              c->truncate.flags & WS_TRUNCATE_RESTART ? "true" : "false");
		for (uint32_t i = 0; i < c->truncate.nhandles; i++) {
			rel = ws_change_relation(r, c->truncate.handles[i]);
			ws_buf_printf(b, "%s{\"handle\":%u", i ? "," : "", c->truncate.handles[i]);
			put_names(b, rel);
			ws_buf_putc(b, '}');
		}
		ws_buf_putc(b, ']');
		break;
	case WS_C_REPLACE_BEGIN:
	case WS_C_REPLACE_END:
		ws_buf_printf(b, ",\"ordinal\":%llu", (unsigned long long)c->replace.ordinal);
		put_names(b, ws_change_relation(r, c->replace.handle));
		break;
	case WS_C_SCHEMA:
		ws_buf_printf(b, ",\"what\":\"%s\",\"ordinal\":%llu,\"old_handle\":%u,\"new_handle\":%u",
		              c->schema.what == 'C'   ? "created"
		              : c->schema.what == 'A' ? "altered"
		                                      : "dropped",
		              (unsigned long long)c->schema.ordinal, c->schema.old_handle, c->schema.new_handle);
		rel = ws_change_relation(r, c->schema.new_handle ? c->schema.new_handle : c->schema.old_handle);
		if (rel)
			put_names(b, rel);
		else
			ws_buf_printf(b, ",\"oid\":%u", c->schema.oid);
		break;
	case WS_C_MESSAGE:
		ws_buf_printf(b, ",\"ordinal\":%llu,\"transactional\":%s", (unsigned long long)c->message.ordinal,
		              c->message.transactional ? "true" : "false");
		put_lsn(b, "lsn", c->message.lsn);
		put_member(b, "prefix", c->message.prefix);
		ws_buf_puts(b, ",\"content\":");
		put_text(b, c->message.content, c->message.len);
		break;
	case WS_C_SEQUENCE:
		ws_buf_printf(b, ",\"ordinal\":%llu,\"oid\":%u", (unsigned long long)c->sequence.ordinal,
		              c->sequence.oid);
		put_lsn(b, "lsn", c->sequence.lsn);
		put_member(b, "schema", c->sequence.nspname);
		put_member(b, "sequence", c->sequence.name);
		ws_buf_printf(b, ",\"last_value\":%lld,\"is_called\":%s", (long long)c->sequence.last_value,
		              c->sequence.is_called ? "true" : "false");
		break;
	case WS_C_TIMELINE:
		ws_buf_printf(b, ",\"old_timeline\":%u,\"new_timeline\":%u", c->timeline.old_tli,
		              c->timeline.new_tli);
		put_lsn(b, "lsn", c->timeline.lsn);
		break;
	case WS_C_SNAPSHOT_BEGIN:
	case WS_C_SNAPSHOT_END:
		put_names(b, ws_change_relation(r, c->snapshot.handle));
		put_lsn(b, "lsn", c->snapshot.lsn);
		ws_buf_printf(b, ",\"timeline\":%u", c->snapshot.tli);
		if (c->type == WS_C_SNAPSHOT_END)
			ws_buf_printf(b, ",\"rows\":%llu", (unsigned long long)c->snapshot.rows);
		else
			ws_buf_printf(b, ",\"with_rows\":%s", c->snapshot.with_rows ? "true" : "false");
		break;
	case WS_C_PROGRESS:
	case WS_C_END:
		ws_buf_printf(b, ",\"timeline\":%u", c->progress.tli);
		put_lsn(b, "lsn", c->progress.lsn);
		break;
	case WS_C_RELATION:
	case WS_C_ROW:
		break;
	}
}

void
ws_change_json(const struct ws_change *c, const struct ws_change_reader *r, struct ws_buf *b)
{
	ws_buf_printf(b, "{\"type\":\"%s\"", type_name(c->type));
	if (c->type == WS_C_RELATION)
		put_relation(b, c->relation);
	else if (c->type == WS_C_ROW)
		put_row(b, &c->row);
	else
		put_rest(b, c, r);
	ws_buf_puts(b, "}\n");
}
