/* Text, bytes and everything that has only a text into ClickHouse; see lib/ch/column.h. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/ch/conv.h"

static int
put_string(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	(void)clamp;
	conv_string(&c->data, v->p, v->len);
	return 0;
}

/* PostgreSQL's text of the value. */
static int
put_as_text(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	struct ws_buf text = {0};

	(void)clamp;
	ws_value_text(v, &text);
	conv_string(&c->data, text.data, text.len);
	ws_buf_free(&text);
	return 0;
}

/* The server pads with NULs and gives them back: a value that ends in one would be ambiguous. */
static int
put_fixed(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	unsigned w = c->type->width;
	size_t n = v->len;

	if (n > w || (n < w && n && v->p[n - 1] == 0)) {
		if (!clamp)
			return -1;
		n = n > w ? w : n;
	}
	uint8_t *o = conv_room(&c->data, w);

	if (n)
		memcpy(o, v->p, n);
	memset(o + n, 0, w - n);
	c->data.len += w;
	return 0;
}

static int
put_enum(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	const struct ch_type *t = c->type;
	int lo = 0, hi = t->nlabels;

	(void)clamp; /* no label is near another */
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		const struct ch_label *l = &t->labels[mid];
		size_t n = l->len < v->len ? l->len : v->len;
		int d = n ? memcmp(l->name, v->p, n) : 0;

		if (d == 0)
			d = (l->len > v->len) - (l->len < v->len);
		if (d == 0) {
			memcpy(conv_room(&c->data, t->width), &l->value, t->width);
			c->data.len += t->width;
			return 0;
		}
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

/* inet's text of a single address; one with a mask is something else. */
static int
put_address(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	char s[INET6_ADDRSTRLEN];
	bool v4 = c->type->base == CH_IPV4;
	uint8_t a[16];

	if (v->len >= sizeof s)
		return -1;
	memcpy(s, v->p, v->len);
	s[v->len] = 0;
	if (inet_pton(v4 ? AF_INET : AF_INET6, s, a) != 1) {
		/* The IPv6 address that means an IPv4 one. */
		if (!clamp || v4 || inet_pton(AF_INET, s, a + 12) != 1)
			return -1;
		memset(a, 0, 10);
		memset(a + 10, 0xff, 2);
	}
	uint8_t *o = conv_room(&c->data, c->type->width);

	if (v4)
		for (int i = 0; i < 4; i++)
			o[i] = a[3 - i];
	else
		memcpy(o, a, 16);
	c->data.len += c->type->width;
	return 0;
}

/* money's text: $1,234.50. */
static int
put_money(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	const struct ch_type *t = c->type;
	uint8_t s[48];

	if (v->len > sizeof s || !memchr(v->p, '$', v->len))
		return -1;
	memcpy(s, v->p, v->len);
	uint8_t *o = conv_room(&c->data, t->width);

	if (ch_decimal(s, conv_money(s, v->len), t->width, t->precision, t->scale, clamp, o) != 0)
		return -1;
	c->data.len += t->width;
	return 0;
}

static int
put_unsupported(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	if (c->unsupported == WS_UNSUP_BYTES)
		return put_string(c, v, clamp);
	return c->unsupported == WS_UNSUP_HEX ? put_as_text(c, v, clamp) : -1;
}

ch_put_fn
ch_put_text(enum ws_kind kind, const struct ch_type *t)
{
	bool text = kind == WS_K_TEXT || kind == WS_K_OTHER || kind == WS_K_JSON;

	if (kind == WS_K_UNSUPPORTED)
		return t->base == CH_STRING ? put_unsupported : NULL;
	if (t->base == CH_STRING)
		return text || kind == WS_K_BYTES || kind == WS_K_NUMERIC ? put_string : put_as_text;
	if (t->base == CH_FIXED)
		return text || kind == WS_K_BYTES ? put_fixed : NULL;
	if (t->base == CH_ENUM)
		return kind == WS_K_OTHER || kind == WS_K_TEXT ? put_enum : NULL;
	if (t->base == CH_IPV4 || t->base == CH_IPV6)
		return kind == WS_K_OTHER ? put_address : NULL;
	if (t->base == CH_DECIMAL)
		return kind == WS_K_OTHER ? put_money : NULL;
	if (t->base == CH_JSON)
		return kind == WS_K_JSON ? put_string : NULL;
	return NULL;
}
