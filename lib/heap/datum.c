/* Values inside of values: where the next one is, its text, the quotes around it.
 *
 * Containers count offsets and alignment from their varlena's 4-byte header, which is not among the
 * bytes that a codec gets. */
#include <string.h>

#include "heap-int.h"

int
ws_inner_next(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, size_t *at, int16_t len,
			  uint8_t mask, const uint8_t **e, uint32_t *elen)
{
	size_t size = (size_t)n + WS_VARHDR;
	struct ws_varlena v;

	if (len > 0) {
		*at = (*at + mask) & ~(size_t)mask;
		if (*at > size || size - *at < (size_t)len)
			return -1;
		*e = p + (*at - WS_VARHDR);
		*elen = (uint32_t)len;
		*at += *elen;
		return 0;
	}
	if (len != -1 || *at >= size)
		return -1;
	if (!p[*at - WS_VARHDR]) /* padding */
		*at = (*at + mask) & ~(size_t)mask;
	if (*at >= size || ws_varlena_parse(p + (*at - WS_VARHDR), size - *at, &v) != 0)
		return -1;
	*at += v.total;
	if (v.kind == WS_VAR_PLAIN) {
		*e = v.data;
		*elen = v.len;
		return 0;
	}
	/* No value outside of the row belongs to one inside of a value; compressed ones may. */
	const struct ws_heapenv env = {.arena = in->arena};

	return ws_varlena_detoast(&v, &env, e, elen, NULL) == 1 ? 0 : -1;
}

int
ws_inner_text(const struct ws_codec_in *in, const struct ws_heaptype *t, const uint8_t *p,
			  uint32_t n, struct ws_buf *out)
{
	const struct ws_codec_in inner = {t, in->arena, in->text, in->stack, in->level + 1};
	struct ws_value v = {.state = WS_V_VALUE, .kind = (uint8_t)t->kind};

	if (t->codec->read(&inner, p, n, &v) != 0)
		return -1;
	ws_value_text(&v, out);
	return out->len > WS_VALUE_MAX ? -1 : 0;
}

static bool
is_plain(const uint8_t *p, size_t n, const char *specials)
{
	size_t len = strlen(specials);

	for (size_t i = 0; i < n; i++)
		if (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r') || memchr(specials, p[i], len))
			return false;
	return n > 0;
}

void
ws_inner_quote(struct ws_buf *out, size_t from, const char *specials)
{
	size_t n = out->len - from, more = 2;

	if (is_plain(out->data + from, n, specials))
		return;
	for (size_t i = from; i < out->len; i++)
		more += out->data[i] == '"' || out->data[i] == '\\';
	ws_buf_reserve(out, more);
	/* From the end, so that nothing is overwritten before it was moved. */
	uint8_t *s = out->data + out->len, *d = s + more;

	out->len += more;
	*--d = '"';
	while (s > out->data + from) {
		*--d = *--s;
		if (*s == '"' || *s == '\\')
			*--d = *s;
	}
	*--d = '"';
}
