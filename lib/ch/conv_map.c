/* hstore's text into a Map of Strings; see lib/ch/column.h. */
#include "lib/ch/conv.h"

struct scan {
	const uint8_t *p, *end;
	struct ws_buf word;
};

static bool
take(struct scan *s, const char *t)
{
	size_t n = strlen(t);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, t, n) != 0)
		return false;
	s->p += n;
	return true;
}

/* "text" with backslashes before quotes and backslashes, into s->word. */
static bool
quoted(struct scan *s)
{
	if (!take(s, "\""))
		return false;
	for (s->word.len = 0; s->p < s->end && *s->p != '"'; s->p++) {
		if (*s->p == '\\' && ++s->p == s->end)
			return false;
		ws_buf_putc(&s->word, *s->p);
	}
	return take(s, "\"");
}

static void
put_word(struct ch_col *c, const struct ws_buf *w)
{
	conv_string(&c->data, w->data, w->len);
	if (c->type->nullable)
		ws_buf_putc(&c->nulls, 0);
	c->rows++;
}

static int
pairs(struct ch_col *key, struct ch_col *value, struct scan *s, bool clamp)
{
	for (bool first = true; s->p < s->end; first = false) {
		if ((!first && !take(s, ", ")) || !quoted(s) || !take(s, "=>"))
			return -1;
		put_word(key, &s->word);
		if (quoted(s)) {
			put_word(value, &s->word);
			continue;
		}
		/* A Map of plain Strings has no NULL; the nearest is the empty one. */
		if (!take(s, "NULL") || (!value->type->nullable && !clamp))
			return -1;
		ch_col_add_default(value);
	}
	return 0;
}

void
ch_map_literal(const struct ws_value *v, struct ws_buf *out)
{
	struct scan s = {.p = v->p, .end = v->p + v->len};
	const char *sep = "";

	ws_buf_puts(out, "map(");
	while (s.p < s.end) {
		if ((*sep && !take(&s, ", ")) || !quoted(&s) || !take(&s, "=>"))
			break;
		ws_buf_puts(out, sep);
		ch_quote_text(out, s.word.data ? (char *)s.word.data : "", s.word.len);
		ws_buf_puts(out, ", ");
		if (quoted(&s))
			ch_quote_text(out, s.word.data ? (char *)s.word.data : "", s.word.len);
		else if (take(&s, "NULL"))
			ws_buf_puts(out, "NULL");
		sep = ", ";
	}
	ws_buf_putc(out, ')');
	ws_buf_free(&s.word);
}

struct mark {
	uint64_t rows;
	size_t data, nulls;
};

static struct mark
mark(const struct ch_col *c)
{
	return (struct mark){c->rows, c->data.len, c->nulls.len};
}

static void
cut_back(struct ch_col *c, struct mark m)
{
	c->rows = m.rows;
	c->data.len = m.data;
	c->nulls.len = m.nulls;
}

static int
put_map(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	struct ch_col *key = c->elem, *value = key->elem;
	struct scan s = {.p = v->p, .end = v->p + v->len};
	struct mark k = mark(key), w = mark(value);
	int rc = pairs(key, value, &s, clamp);

	ws_buf_free(&s.word);
	if (rc != 0) {
		cut_back(key, k);
		cut_back(value, w);
		return -1;
	}
	ws_store64(conv_room(&c->data, 8), key->rows);
	c->data.len += 8;
	return 0;
}

ch_put_fn
ch_put_map(enum ws_kind kind, const struct ch_type *t)
{
	bool strings = t->elem->base == CH_STRING && !t->elem->nullable && t->value->base == CH_STRING;

	return kind == WS_K_OTHER && strings ? put_map : NULL;
}
