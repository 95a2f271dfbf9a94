/* Frames of the oracle's protocol, ws-pgext(7): u32 length, u8 type, body. */
#include <string.h>

#include "oracle-int.h"
#include "ws/cursor.h"

static int
malformed(const char *what, struct ws_err *err)
{
	return ws_err_op(err, "oracle_protocol", "the oracle sent a malformed %s", what);
}

int
ws_oracle_frame_parse(const uint8_t *p, size_t n, struct ws_oracle_frame *f, struct ws_err *err)
{
	if (n < 4)
		return 0;
	uint32_t len = ws_le32(p);

	if (len < 1 || len > WS_ORACLE_MAX_FRAME)
		return malformed("frame", err);
	if (n - 4 < len)
		return 0;
	*f = (struct ws_oracle_frame){p[4], p + 5, len - 1, 4 + (size_t)len};
	return 1;
}

int
ws_oracle_hello_parse(const uint8_t *p, size_t n, struct ws_oracle_hello *h, struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(p, n);
	const uint8_t *magic = ws_cur_bytes(&c, 8);
	size_t len;

	memset(h, 0, sizeof *h);
	if (!magic || memcmp(magic, WS_ORACLE_MAGIC, 8))
		return ws_err_op(err, "oracle_protocol", "whoever listens there is no oracle");
	h->version = ws_cur_u16(&c);
	h->major = ws_cur_u16(&c);
	h->db = ws_cur_u32(&c);
	const char *s = ws_cur_str(&c, &len);

	if (c.bad || len >= sizeof h->encoding || ws_cur_left(&c))
		return malformed("greeting", err);
	memcpy(h->encoding, s, len);
	if (h->version != WS_ORACLE_VERSION)
		return ws_err_op(err, "oracle_protocol",
						 "the oracle speaks version %u of its protocol, not %u: the module in the "
						 "shadow and this program are of different releases",
						 h->version, WS_ORACLE_VERSION);
	return 0;
}

int
ws_oracle_text_parse(const uint8_t *p, size_t n, char *text, size_t size, struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(p, n);
	size_t len;
	const char *s = ws_cur_str(&c, &len);

	if (c.bad || ws_cur_left(&c))
		return malformed("message", err);
	if (len >= size)
		len = size - 1;
	memcpy(text, s, len);
	text[len] = 0;
	return 0;
}

int
ws_oracle_answers_begin(const uint8_t *p, size_t n, uint32_t seq, uint32_t count,
						struct ws_oracle_answers *a, struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(p, n);

	if (ws_cur_u32(&c) != seq || ws_cur_u32(&c) != count || c.bad)
		return malformed("answer: not to what was asked", err);
	*a = (struct ws_oracle_answers){c.p, c.end, count};
	return 0;
}

int
ws_oracle_answers_next(struct ws_oracle_answers *a, bool *failed, const char **text, uint32_t *len,
					   struct ws_err *err)
{
	struct ws_cursor c = {a->p, a->end, false};
	uint8_t status = ws_cur_u8(&c);
	size_t n;

	*text = ws_cur_str(&c, &n);
	if (!a->left || c.bad || status > 1 || n > 0x3fffffff)
		return malformed("answer", err);
	*failed = status == 1;
	*len = (uint32_t)n;
	a->p = c.p;
	a->left--;
	if (!a->left && a->p != a->end)
		return malformed("answer: too long", err);
	return 1;
}

size_t
oracle_frame_begin(struct ws_buf *b, uint8_t type)
{
	size_t at = b->len;

	ws_buf_put32(b, 0);
	ws_buf_putc(b, type);
	return at;
}

void
oracle_frame_end(struct ws_buf *b, size_t at)
{
	ws_store32(b->data + at, (uint32_t)(b->len - at - 4));
}
