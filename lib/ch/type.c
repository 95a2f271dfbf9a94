/* ClickHouse type texts: parsed, quoted, compared; see lib/ch/type.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/type.h"

#define MAX_DEPTH 16

void
ch_quote_name(struct ws_buf *b, const char *name)
{
	ws_buf_putc(b, '`');
	for (; *name; name++) {
		if (*name == '`' || *name == '\\')
			ws_buf_putc(b, '\\');
		ws_buf_putc(b, (uint8_t)*name);
	}
	ws_buf_putc(b, '`');
}

void
ch_quote_text(struct ws_buf *b, const char *s, size_t n)
{
	ws_buf_putc(b, '\'');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\'' || c == '\\')
			ws_buf_putc(b, '\\');
		if (c < 0x20)
			ws_buf_printf(b, "\\x%02X", c);
		else
			ws_buf_putc(b, c);
	}
	ws_buf_putc(b, '\'');
}

/* ---- parsing ---- */

struct tp {
	const char *s;
	struct ws_arena *a;
	struct ws_err *err;
	const char *whole;
};

static void
blanks(struct tp *p)
{
	while (*p->s == ' ')
		p->s++;
}

static bool
take(struct tp *p, char c)
{
	blanks(p);
	if (*p->s != c)
		return false;
	p->s++;
	return true;
}

static int
fail(struct tp *p)
{
	return ws_err_op(p->err, "type_unsupported", "ClickHouse type %s cannot be written at: %.60s", p->whole, p->s);
}

static int
number(struct tp *p, int *out)
{
	char *end;

	blanks(p);
	if (!isdigit((unsigned char)*p->s) && *p->s != '-')
		return fail(p);
	long v = strtol(p->s, &end, 10);

	if (v < -32768 || v > 0xffffff)
		return fail(p);
	p->s = end;
	*out = (int)v;
	return 0;
}

/* 'text' with backslash escapes; fills *out (arena) and its length. */
static int
quoted(struct tp *p, const char **out, size_t *len)
{
	if (!take(p, '\''))
		return fail(p);
	char *o = ws_arena_alloc(p->a, strlen(p->s) + 1);
	size_t n = 0;

	for (;; p->s++) {
		if (!*p->s)
			return fail(p);
		if (*p->s == '\'')
			break;
		char c = *p->s;

		if (c == '\\' && p->s[1]) {
			static const char from[] = "0abfnrtv", to[] = "\0\a\b\f\n\r\t\v";
			const char *e = strchr(from, *++p->s);

			c = e ? to[e - from] : *p->s;
		}
		o[n++] = c;
	}
	p->s++;
	o[n] = 0;
	*out = o;
	*len = n;
	return 0;
}

static int
label_cmp(const void *a, const void *b)
{
	const struct ch_label *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;
	int d = memcmp(x->name, y->name, n);

	return d ? d : (x->len > y->len) - (x->len < y->len);
}

static int
labels(struct tp *p, struct ch_type *t)
{
	int cap = 0;

	t->first = INT16_MAX;
	do {
		int v;

		if (t->nlabels == cap) {
			struct ch_label *old = t->labels;

			cap = cap ? cap * 2 : 16;
			t->labels = ws_arena_alloc(p->a, (size_t)cap * sizeof *old);
			if (t->nlabels)
				memcpy(t->labels, old, (size_t)t->nlabels * sizeof *old);
		}
		struct ch_label *l = &t->labels[t->nlabels];

		if (quoted(p, &l->name, &l->len) != 0 || !take(p, '=') || number(p, &v) != 0)
			return fail(p);
		l->value = (int16_t)v;
		if (l->value < t->first)
			t->first = l->value;
		t->nlabels++;
	} while (take(p, ','));
	qsort(t->labels, (size_t)t->nlabels, sizeof *t->labels, label_cmp);
	return 0;
}

static const struct simple {
	const char *name;
	enum ch_base base;
	unsigned width;
} simples[] = {
    {"Bool", CH_BOOL, 1}, {"Int8", CH_INT, 1}, {"Int16", CH_INT, 2}, {"Int32", CH_INT, 4}, {"Int64", CH_INT, 8},
    {"Int128", CH_INT, 16}, {"Int256", CH_INT, 32}, {"UInt8", CH_UINT, 1}, {"UInt16", CH_UINT, 2},
    {"UInt32", CH_UINT, 4}, {"UInt64", CH_UINT, 8}, {"UInt128", CH_UINT, 16}, {"UInt256", CH_UINT, 32},
    {"Float32", CH_FLOAT, 4}, {"Float64", CH_FLOAT, 8}, {"String", CH_STRING, 0}, {"Date", CH_DATE, 2},
    {"Date32", CH_DATE32, 4}, {"DateTime", CH_DATETIME, 4}, {"Time", CH_TIME, 4}, {"UUID", CH_UUID, 16},
    {"IPv4", CH_IPV4, 4}, {"IPv6", CH_IPV6, 16}, {"JSON", CH_JSON, 0},
};

static int parse(struct tp *p, struct ch_type *t, int depth);

static int
closed(struct tp *p)
{
	return take(p, ')') ? 0 : fail(p);
}

/* The argument list of a type that has one; its opening parenthesis is read. */
static int
parse_args(struct tp *p, const char *name, size_t n, struct ch_type *t, int depth)
{
	const char *tz;
	size_t len;

#define IS(s) (n == sizeof(s) - 1 && !memcmp(name, s, n))
	if (IS("Nullable") || IS("LowCardinality")) {
		if (parse(p, t, depth + 1) != 0)
			return -1;
		if (name[0] == 'N') {
			if (t->nullable || t->base == CH_ARRAY || t->base == CH_MAP)
				return fail(p);
			t->nullable = true;
		}
		return closed(p);
	}
	if (IS("Array")) {
		t->base = CH_ARRAY;
		t->elem = ws_arena_zalloc(p->a, sizeof *t->elem);
		return parse(p, t->elem, depth + 1) == 0 ? closed(p) : -1;
	}
	if (IS("Map")) {
		t->base = CH_MAP;
		t->elem = ws_arena_zalloc(p->a, sizeof *t->elem);
		t->value = ws_arena_zalloc(p->a, sizeof *t->value);
		if (parse(p, t->elem, depth + 1) != 0 || !take(p, ',') ||
			parse(p, t->value, depth + 1) != 0)
			return fail(p);
		return closed(p);
	}
	if (IS("Decimal")) {
		if (number(p, &t->precision) != 0 || (take(p, ',') && number(p, &t->scale) != 0))
			return -1;
		if (t->precision < 1 || t->precision > 76 || t->scale < 0 || t->scale > t->precision)
			return fail(p);
		t->base = CH_DECIMAL;
		t->width = t->precision <= 9 ? 4 : t->precision <= 18 ? 8 : t->precision <= 38 ? 16 : 32;
		return closed(p);
	}
	if (IS("DateTime64") || IS("Time64")) {
		t->base = name[0] == 'D' ? CH_DATETIME64 : CH_TIME64;
		t->width = 8;
		if (number(p, &t->scale) != 0 || (take(p, ',') && quoted(p, &tz, &len) != 0))
			return -1;
		return t->scale >= 0 && t->scale <= 9 ? closed(p) : fail(p);
	}
	if (IS("DateTime")) {
		t->base = CH_DATETIME;
		t->width = 4;
		return quoted(p, &tz, &len) == 0 ? closed(p) : -1;
	}
	if (IS("FixedString")) {
		int w;

		if (number(p, &w) != 0 || w < 1)
			return fail(p);
		t->base = CH_FIXED;
		t->width = (unsigned)w;
		return closed(p);
	}
	if (IS("Enum8") || IS("Enum16")) {
		t->base = CH_ENUM;
		t->width = n == 5 ? 1 : 2;
		return labels(p, t) == 0 ? closed(p) : -1;
	}
#undef IS
	return fail(p);
}

static int
parse(struct tp *p, struct ch_type *t, int depth)
{
	blanks(p);
	const char *name = p->s;
	size_t n = 0;

	while (isalnum((unsigned char)name[n]))
		n++;
	if (n == 0 || depth > MAX_DEPTH)
		return fail(p);
	p->s += n;
	if (take(p, '('))
		return parse_args(p, name, n, t, depth);
	for (size_t i = 0; i < sizeof simples / sizeof simples[0]; i++)
		if (strlen(simples[i].name) == n && !memcmp(simples[i].name, name, n)) {
			t->base = simples[i].base;
			t->width = simples[i].width;
			return 0;
		}
	p->s = name;
	return fail(p);
}

/* LowCardinality is a way of storing: a block may carry the plain type instead. */
static const char *
without_low_cardinality(const char *text, struct ws_arena *a)
{
	static const char word[] = "LowCardinality(";
	char *s = ws_arena_strdup(a, text), *at;

	while ((at = strstr(s, word))) {
		char *open = at + sizeof word - 1, *e = open;

		for (int level = 1; *e; e++) {
			level += *e == '(' ? 1 : *e == ')' ? -1 : 0;
			if (level == 0)
				break;
		}
		if (!*e)
			break;
		size_t inner = (size_t)(e - open);

		memmove(at, open, inner);
		memmove(at + inner, e + 1, strlen(e + 1) + 1);
	}
	return s;
}

int
ch_type_parse(const char *text, struct ws_arena *a, struct ch_type *out, struct ws_err *err)
{
	struct tp p = {text, a, err, text};

	memset(out, 0, sizeof *out);
	if (parse(&p, out, 0) != 0)
		return -1;
	blanks(&p);
	if (*p.s)
		return fail(&p);
	/* Labels may hold any text: only types without them are looked through. */
	out->wire = strstr(text, "Enum") ? ws_arena_strdup(a, text) : without_low_cardinality(text, a);
	return 0;
}

/* ---- comparing ---- */

bool
ch_type_equal(const struct ch_type *a, const struct ch_type *b)
{
	if (a->base != b->base || a->width != b->width || a->nullable != b->nullable ||
	    a->precision != b->precision || a->scale != b->scale || a->nlabels != b->nlabels)
		return false;
	if (a->base == CH_ENUM)
		return !strcmp(a->wire ? a->wire : "", b->wire ? b->wire : "");
	if (a->base == CH_MAP && !ch_type_equal(a->value, b->value))
		return false;
	return (a->base != CH_ARRAY && a->base != CH_MAP) || ch_type_equal(a->elem, b->elem);
}

bool
ch_type_widens(const struct ch_type *from, const struct ch_type *to)
{
	if (from->nullable && !to->nullable)
		return false;
	if (from->base == CH_MAP || to->base == CH_MAP)
		return from->base == to->base && ch_type_widens(from->elem, to->elem) &&
			   ch_type_widens(from->value, to->value);
	if (from->base == CH_ARRAY || to->base == CH_ARRAY)
		return from->base == to->base && ch_type_widens(from->elem, to->elem);
	switch (to->base) {
	case CH_STRING:
		/* Only where the server's text is PostgreSQL's. */
		return from->base == CH_STRING || from->base == CH_INT || from->base == CH_UINT ||
		       from->base == CH_UUID || from->base == CH_ENUM;
	case CH_INT:
		return (from->base == CH_INT && from->width <= to->width) ||
		       (from->base == CH_UINT && from->width < to->width);
	case CH_UINT:
		return from->base == CH_UINT && from->width <= to->width;
	case CH_FLOAT:
		return from->base == CH_FLOAT && from->width <= to->width;
	case CH_DECIMAL:
		return from->base == CH_DECIMAL && from->scale <= to->scale &&
		       from->precision - from->scale <= to->precision - to->scale;
	default:
		return from->base == to->base && from->width == to->width && from->scale == to->scale &&
		       from->base != CH_ENUM;
	}
}
