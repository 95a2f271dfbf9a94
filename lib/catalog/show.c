/* Shapes as text and as JSON; see ws/shape.h. */
#include <string.h>

#include "ws/shape.h"

/* A JSON string.  Names are in the database's encoding; bytes above 0x7f pass as they are. */
static void
put_json(struct ws_buf *b, const char *key, const char *s)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";

	ws_buf_printf(b, ",\"%s\":\"", key);
	for (const uint8_t *p = (const uint8_t *)s; *p; p++) {
		const char *at = strchr(plain, *p);

		if (at)
			ws_buf_printf(b, "\\%c", letter[at - plain]);
		else if (*p < 0x20)
			ws_buf_printf(b, "\\u%04x", *p);
		else
			ws_buf_putc(b, *p);
	}
	ws_buf_putc(b, '"');
}

static void
put_json_char(struct ws_buf *b, const char *key, char c)
{
	char s[2] = {c, 0};

	put_json(b, key, s);
}

static void
put_json_key(struct ws_buf *b, const char *key, const int16_t *v, int n)
{
	ws_buf_printf(b, ",\"%s\":[", key);
	for (int i = 0; i < n; i++)
		ws_buf_printf(b, i ? ",%d" : "%d", v[i]);
	ws_buf_putc(b, ']');
}

static void
put_json_attr(struct ws_buf *b, const struct ws_attr *a)
{
	static const struct {
		int flag;
		const char *name;
	} flags[] = {{WS_ATT_DROPPED, "dropped"}, {WS_ATT_NOTNULL, "not_null"}, {WS_ATT_BYVAL, "by_value"},
	             {WS_ATT_STORED, "stored"},   {WS_ATT_VIRTUAL, "virtual"},  {WS_ATT_IDENTITY, "identity"},
	             {WS_ATT_PKEY, "primary_key"}};

	ws_buf_printf(b, "{\"attnum\":%d", a->attnum);
	put_json(b, "name", a->name);
	ws_buf_printf(b, ",\"typid\":%u,\"typmod\":%d", a->typid, a->typmod);
	put_json(b, "type", a->typname);
	ws_buf_printf(b, ",\"len\":%d", a->len);
	put_json_char(b, "align", a->align);
	put_json_char(b, "storage", a->storage);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
		if (a->flags & flags[i].flag)
			ws_buf_printf(b, ",\"%s\":true", flags[i].name);
	if (a->missing)
		put_json(b, "missing", a->missing);
	ws_buf_putc(b, '}');
}

void
ws_rel_json(const struct ws_rel *r, struct ws_buf *b)
{
	ws_buf_printf(b, "{\"relation\":%u,\"database\":%u,\"lsn\":\"" WS_LSN_FMT "\",\"namespace\":%u", r->oid, r->db,
	              WS_LSN_ARG(r->lsn), r->ns);
	put_json(b, "schema", r->nspname);
	put_json(b, "name", r->name);
	put_json_char(b, "kind", r->kind);
	put_json_char(b, "persistence", r->persistence);
	put_json_char(b, "replident", r->replident);
	ws_buf_printf(b,
	              ",\"filenode\":%u,\"tablespace\":%u,\"toast\":%u,\"toast_of\":%u,\"parent\":%u,\"root\":%u,"
	              "\"rowtype\":%u",
	              r->filenode, r->spc, r->toast, r->toast_of, r->parent, r->root, r->reltype);
	put_json_key(b, "identity", r->ident, r->nident);
	put_json_key(b, "primary_key", r->pkey, r->npkey);
	ws_buf_puts(b, ",\"columns\":[");
	for (int i = 0; i < r->natts; i++) {
		if (i)
			ws_buf_putc(b, ',');
		put_json_attr(b, &r->attrs[i]);
	}
	ws_buf_puts(b, "]}\n");
}

void
ws_type_json(const struct ws_type *t, struct ws_buf *b)
{
	ws_buf_printf(b, "{\"type\":%u,\"database\":%u,\"lsn\":\"" WS_LSN_FMT "\"", t->oid, t->db, WS_LSN_ARG(t->lsn));
	put_json(b, "schema", t->nspname);
	put_json(b, "name", t->name);
	put_json_char(b, "typtype", t->typtype);
	put_json_char(b, "category", t->category);
	ws_buf_printf(b, ",\"len\":%d,\"by_value\":%s", t->len, t->byval ? "true" : "false");
	put_json_char(b, "align", t->align);
	put_json_char(b, "storage", t->storage);
	put_json_char(b, "delimiter", t->delim);
	ws_buf_printf(b, ",\"element\":%u,\"base\":%u,\"base_typmod\":%d,\"relation\":%u,\"subtype\":%u", t->elem,
	              t->base, t->base_typmod, t->relid, t->subtype);
	put_json(b, "output_library", t->out_lib);
	put_json(b, "output_symbol", t->out_sym);
	ws_buf_puts(b, ",\"labels\":[");
	for (int i = 0; i < t->nlabels; i++) {
		ws_buf_printf(b, "%s{\"oid\":%u", i ? "," : "", t->labels[i].oid);
		put_json(b, "label", t->labels[i].label);
		ws_buf_putc(b, '}');
	}
	ws_buf_puts(b, "]}\n");
}

static const char *
kind_name(char kind)
{
	switch (kind) {
	case 'r':
		return "Table";
	case 'p':
		return "Partitioned table";
	case 'm':
		return "Materialized view";
	case 't':
		return "TOAST table";
	case 'S':
		return "Sequence";
	case 'i':
		return "Index";
	case 'c':
		return "Composite type";
	default:
		return "Relation";
	}
}

static const char *
replident_name(char c)
{
	switch (c) {
	case 'd':
		return "default";
	case 'i':
		return "index";
	case 'f':
		return "full";
	default:
		return "nothing";
	}
}

static void
put_attr(struct ws_buf *b, const struct ws_attr *a, int width)
{
	static const struct {
		int flag;
		const char *text;
	} flags[] = {{WS_ATT_NOTNULL, " not null"}, {WS_ATT_STORED, " generated stored"},
	             {WS_ATT_VIRTUAL, " generated virtual"}, {WS_ATT_PKEY, " primary key"},
	             {WS_ATT_IDENTITY, " identity"}};

	if (a->flags & WS_ATT_DROPPED) {
		ws_buf_printf(b, "  %4d  (dropped, length %d, alignment %c)\n", a->attnum, a->len, a->align);
		return;
	}
	ws_buf_printf(b, "  %4d  %-*s  %s", a->attnum, width, a->name, a->typname);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
		if (a->flags & flags[i].flag)
			ws_buf_puts(b, flags[i].text);
	if (a->missing)
		ws_buf_printf(b, " missing '%s'", a->missing);
	ws_buf_putc(b, '\n');
}

static void
put_key(struct ws_buf *b, const char *what, const struct ws_rel *r, const int16_t *v, int n)
{
	if (!n)
		return;
	ws_buf_puts(b, what);
	for (int i = 0; i < n; i++)
		ws_buf_printf(b, "%s%s", i ? ", " : "", r->attrs[v[i] - 1].name);
	ws_buf_putc(b, '\n');
}

void
ws_rel_text(const struct ws_rel *r, struct ws_buf *b)
{
	int width = 0;

	ws_buf_printf(b, "%s %s.%s\n", kind_name(r->kind), r->nspname, r->name);
	ws_buf_printf(b, "  oid %u, file %u, tablespace %u, captured at " WS_LSN_FMT "\n", r->oid, r->filenode, r->spc,
	              WS_LSN_ARG(r->lsn));
	if (r->persistence == 'u')
		ws_buf_puts(b, "  unlogged\n");
	if (r->toast)
		ws_buf_printf(b, "  TOAST table %u\n", r->toast);
	if (r->toast_of)
		ws_buf_printf(b, "  of table %u\n", r->toast_of);
	if (r->parent)
		ws_buf_printf(b, "  partition of %u, root %u\n", r->parent, r->root);
	if (strchr("rpm", r->kind))
		ws_buf_printf(b, "  replica identity %s\n", replident_name(r->replident));
	for (int i = 0; i < r->natts; i++)
		if ((int)strlen(r->attrs[i].name) > width && !(r->attrs[i].flags & WS_ATT_DROPPED))
			width = (int)strlen(r->attrs[i].name);
	for (int i = 0; i < r->natts; i++)
		put_attr(b, &r->attrs[i], width);
	put_key(b, "  primary key: ", r, r->pkey, r->npkey);
	put_key(b, "  identity: ", r, r->ident, r->nident);
}
