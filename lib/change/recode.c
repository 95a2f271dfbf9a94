/* Texts of a database's encoding into UTF-8, by the C library's iconv; see recode.h.
 *
 * Every server encoding of PostgreSQL is a superset of ASCII, and none has state: what has no byte
 * above 127 needs no conversion, and a value is converted by itself. */
#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#include "recode.h"

/* PostgreSQL's names (mb/encnames.c), iconv's. */
static const struct {
	const char *pg, *iconv;
} names[] = {
	{"EUC_JP", "EUC-JP"},
	{"EUC_CN", "EUC-CN"},
	{"EUC_KR", "EUC-KR"},
	{"EUC_TW", "EUC-TW"},
	{"EUC_JIS_2004", "EUC-JISX0213"},
	{"LATIN1", "ISO-8859-1"},
	{"LATIN2", "ISO-8859-2"},
	{"LATIN3", "ISO-8859-3"},
	{"LATIN4", "ISO-8859-4"},
	{"LATIN5", "ISO-8859-9"},
	{"LATIN6", "ISO-8859-10"},
	{"LATIN7", "ISO-8859-13"},
	{"LATIN8", "ISO-8859-14"},
	{"LATIN9", "ISO-8859-15"},
	{"LATIN10", "ISO-8859-16"},
	{"ISO_8859_5", "ISO-8859-5"},
	{"ISO_8859_6", "ISO-8859-6"},
	{"ISO_8859_7", "ISO-8859-7"},
	{"ISO_8859_8", "ISO-8859-8"},
	{"WIN1250", "CP1250"},
	{"WIN1251", "CP1251"},
	{"WIN1252", "CP1252"},
	{"WIN1253", "CP1253"},
	{"WIN1254", "CP1254"},
	{"WIN1255", "CP1255"},
	{"WIN1256", "CP1256"},
	{"WIN1257", "CP1257"},
	{"WIN1258", "CP1258"},
	{"WIN866", "CP866"},
	{"WIN874", "CP874"},
	{"KOI8R", "KOI8-R"},
	{"KOI8U", "KOI8-U"},
};

struct ws_recode {
	const char *encoding; /* PostgreSQL's name */
	iconv_t to, from;     /* to UTF-8, from it */
	struct ws_buf out, back, array;
};

int
ws_recode_new(const char *encoding, struct ws_recode **out, struct ws_err *err)
{
	const char *name = NULL;

	*out = NULL;
	if (!strcmp(encoding, "UTF8") || !strcmp(encoding, "SQL_ASCII"))
		return 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(names[i].pg, encoding)) {
			name = names[i].iconv;
			encoding = names[i].pg;
		}
	if (!name)
		return ws_err_op(err, "encoding", "the database's encoding %s cannot be converted to UTF-8",
						 encoding);
	struct ws_recode *r = ws_calloc(1, sizeof *r);

	r->encoding = encoding;
	r->to = iconv_open("UTF-8", name);
	r->from = iconv_open(name, "UTF-8");
	*out = r;
	if (r->to != (iconv_t)-1 && r->from != (iconv_t)-1)
		return 1;
	ws_recode_free(r);
	*out = NULL;
	return ws_err_op(err, "encoding", "the C library here cannot convert %s (%s) to UTF-8",
					 encoding, name);
}

void
ws_recode_free(struct ws_recode *r)
{
	if (!r)
		return;
	if (r->to != (iconv_t)-1)
		iconv_close(r->to);
	if (r->from != (iconv_t)-1)
		iconv_close(r->from);
	ws_buf_free(&r->out);
	ws_buf_free(&r->back);
	ws_buf_free(&r->array);
	free(r);
}

static int
convert(iconv_t cd, const uint8_t *p, size_t n, struct ws_buf *out)
{
	char *in = (char *)(uintptr_t)p;

	iconv(cd, NULL, NULL, NULL, NULL);
	out->len = 0;
	while (n) {
		ws_buf_reserve(out, n + n / 2 + 16);
		char *o = (char *)out->data + out->len;
		size_t room = out->cap - out->len, rc = iconv(cd, &in, &n, &o, &room);

		out->len = (size_t)((uint8_t *)o - out->data);
		/* Anything but a want of room: bytes that are none of the encoding. */
		if (rc == (size_t)-1 && errno != E2BIG)
			return -1;
	}
	return 0;
}

static bool
is_ascii(const uint8_t *p, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= p[i];
	return any < 0x80;
}

int
ws_recode_text(struct ws_recode *r, const uint8_t **p, size_t *n, bool back, struct ws_arena *a)
{
	if (is_ascii(*p, *n))
		return 0;
	if (convert(r->to, *p, *n, &r->out) != 0 || r->out.len > WS_VALUE_MAX)
		return -1;
	if (back && (convert(r->from, r->out.data, r->out.len, &r->back) != 0 || r->back.len != *n ||
				 memcmp(r->back.data, *p, *n) != 0))
		return -1;
	*n = r->out.len;
	*p = ws_arena_dup(a, r->out.data, r->out.len);
	return 0;
}

static bool
is_text(enum ws_kind k)
{
	return k == WS_K_TEXT || k == WS_K_JSON || k == WS_K_OTHER;
}

/* The same array with other texts: the head and the NULLs stay. */
static int
recode_array(struct ws_recode *r, struct ws_value *v, bool back, struct ws_arena *a)
{
	struct ws_array arr;
	struct ws_value e;
	struct ws_buf *out = &r->array;

	if (is_ascii(v->p, v->len))
		return 0;
	if (ws_array_parse(v->p, v->len, &arr, NULL) != 0)
		return -1;
	if (!is_text(arr.elem))
		return 0;
	const uint8_t *at = arr.data;

	out->len = 0;
	ws_buf_put(out, v->p, (size_t)(arr.data - v->p));
	for (uint32_t i = 0; i < arr.nelems; i++) {
		if (ws_array_next(&arr, i, &at, &e, NULL) != 0)
			return -1;
		if (e.state != WS_V_VALUE)
			continue;
		size_t n = e.len;

		if (ws_recode_text(r, &e.p, &n, back, a) != 0)
			return -1;
		e.len = (uint32_t)n;
		ws_value_put(out, &e);
		if (out->len > WS_VALUE_MAX)
			return -1;
	}
	v->p = ws_arena_dup(a, out->data, out->len);
	v->len = (uint32_t)out->len;
	return 0;
}

int
ws_recode_value(struct ws_recode *r, struct ws_value *v, bool back, struct ws_arena *a)
{
	if (v->state != WS_V_VALUE)
		return 0;
	if (v->kind == WS_K_ARRAY)
		return recode_array(r, v, back, a);
	if (!is_text(v->kind))
		return 0;
	size_t n = v->len;

	if (ws_recode_text(r, &v->p, &n, back, a) != 0)
		return -1;
	v->len = (uint32_t)n;
	return 0;
}

/* A string of a relation; names that become equal would be one name. */
static int
name(struct ws_recode *r, const char **s, struct ws_arena *a)
{
	const uint8_t *p = (const uint8_t *)*s;
	size_t n = *s ? strlen(*s) : 0;

	if (!*s || is_ascii(p, n))
		return 0;
	if (ws_recode_text(r, &p, &n, true, a) != 0)
		return -1;
	char *d = ws_arena_alloc(a, n + 1);

	memcpy(d, p, n);
	d[n] = 0;
	*s = d;
	return 0;
}

const char *
ws_recode_name(struct ws_recode *r, const char *s, struct ws_arena *a)
{
	(void)name(r, &s, a);
	return s;
}

static int
recode_column(struct ws_recode *r, struct ws_c_column *c, struct ws_arena *a)
{
	int rc = name(r, &c->name, a) | name(r, &c->typname, a) | name(r, &c->missing, a);

	for (uint16_t i = 0; i < c->nlabels; i++)
		rc |= name(r, &c->labels[i], a);
	return rc;
}

int
ws_recode_relation(struct ws_recode *r, struct ws_c_relation *rel, struct ws_arena *a,
				   struct ws_err *err)
{
	int rc = name(r, &rel->nspname, a) | name(r, &rel->name, a) | name(r, &rel->root_nspname, a) |
			 name(r, &rel->root_name, a);

	for (uint16_t i = 0; i < rel->ncols; i++)
		rc |= recode_column(r, &rel->cols[i], a);
	if (rc != 0)
		return ws_err_op(err, "invalid_encoding",
						 "relation %u: a name, label or default is not valid %s", rel->oid,
						 r->encoding);
	return 0;
}

const char *
ws_recode_row(struct ws_recode *r, const struct ws_c_relation *rel, struct ws_value *v,
			  struct ws_arena *a)
{
	for (uint16_t i = 0; v && i < rel->ncols; i++) {
		bool key = rel->cols[i].flags & (WS_COL_IDENTITY | WS_COL_PKEY);

		if (ws_recode_value(r, &v[i], key, a) != 0)
			return rel->cols[i].name;
	}
	return NULL;
}
