/* Text search on disk: tsvector and tsquery (tsearch/ts_type.h), printed as utils/adt/tsvector.c
 * and tsquery.c do. */
#include <string.h>

#include "heap-int.h"

/* ' and \\ are doubled.  No other character has such a byte in a server encoding. */
static void
put_lexeme(struct ws_buf *out, const uint8_t *p, size_t n)
{
	ws_buf_reserve(out, 2 * n + 2);
	uint8_t *o = out->data + out->len;

	*o++ = '\'';
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\'' || p[i] == '\\')
			*o++ = p[i];
		*o++ = p[i];
	}
	*o++ = '\'';
	out->len = (size_t)(o - out->data);
}

/* ---- tsvector: count, an entry each {haspos:1, len:11, pos:20}, lexemes with their positions ----
 */

/* *used counts bytes, so that none belongs to two lexemes and the work is bounded by the value's
 * size. */
static int
put_positions(struct ws_buf *out, const uint8_t *p, uint32_t n, size_t at, size_t *used)
{
	at += at & 1;
	if (at > n || n - at < 2)
		return -1;
	uint32_t npos = ws_le16(p + at);

	*used += 2 + 2 * (size_t)npos;
	if ((n - at - 2) / 2 < npos || *used > n)
		return -1;
	for (uint32_t i = 0; i < npos; i++) {
		uint16_t pos = ws_le16(p + at + 2 + 2 * (size_t)i);

		ws_buf_printf(out, i ? ",%u" : ":%u", pos & 0x3fffu);
		if (pos >> 14)
			ws_buf_putc(out, (uint8_t)("DCBA"[pos >> 14]));
	}
	return 0;
}

WS_CODEC(ws_read_tsvector)
{
	uint32_t count = n >= 4 ? ws_le32(p) : UINT32_MAX;
	struct ws_buf *out = in->text;
	size_t used = 0;

	if (count > (n - 4) / 4)
		return -1;
	const uint8_t *str = p + 4 + 4 * (size_t)count;
	uint32_t avail = n - 4 - 4 * count;

	out->len = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t e = ws_le32(p + 4 + 4 * (size_t)i), len = e >> 1 & 0x7ff, pos = e >> 12;

		used += len;
		if (pos + len > avail || used > avail)
			return -1;
		if (i)
			ws_buf_putc(out, ' ');
		put_lexeme(out, str + pos, len);
		if (e & 1 && put_positions(out, str, avail, pos + len, &used) != 0)
			return -1;
	}
	ws_codec_done(in, out, v);
	return 0;
}

/* ---- tsquery: count, items of 12 bytes in prefix order (an operator, its right operand, its left
 * one), texts that end in NUL ---- */

#define ITEM 12u
enum { QI_VAL = 1, QI_OPR = 2 };
enum { OP_NOT = 1, OP_AND, OP_OR, OP_PHRASE };

static const int8_t priority[] = {0, 4, 2, 1, 3};

/* What is still to be printed: the subtree of items [lo, hi), or a text (hi 0). */
struct task {
	uint32_t lo, hi;
	int8_t parent; /* priority of the operator above */
	bool right_phrase;
	const char *text;
	int16_t distance; /* of a phrase operator, whose text is NULL */
};

static void
push(struct ws_buf *stack, struct task t)
{
	ws_buf_put(stack, &t, sizeof t);
}

static void
push_text(struct ws_buf *stack, const char *s)
{
	push(stack, (struct task){.text = s});
}

struct query {
	const uint8_t *items;
	const uint8_t *str;
	uint32_t avail; /* bytes at str */
	size_t used;    /* of them; none belongs to two operands */
};

static int
put_operand(struct query *q, const uint8_t *item, struct ws_buf *out)
{
	uint32_t e = ws_le32(item + 8), at = e >> 12;
	const uint8_t *end = at < q->avail ? memchr(q->str + at, 0, q->avail - at) : NULL;

	if (!end || (q->used += (size_t)(end - (q->str + at)) + 1) > q->avail)
		return -1;
	put_lexeme(out, q->str + at, (size_t)(end - (q->str + at)));
	if (!item[1] && !item[2])
		return 0;
	ws_buf_putc(out, ':');
	if (item[2])
		ws_buf_putc(out, '*');
	for (int i = 3; i >= 0; i--)
		if (item[1] >> i & 1)
			ws_buf_putc(out, (uint8_t)("DCBA"[i]));
	return 0;
}

static int
put_operator(const struct query *q, const struct task *t, struct ws_buf *stack, struct ws_buf *out)
{
	const uint8_t *item = q->items + (size_t)t->lo * ITEM;
	uint8_t op = item[1];
	uint32_t left = ws_le32(item + 4);

	if (op < OP_NOT || op > OP_PHRASE || t->hi - t->lo < 2)
		return -1;
	int8_t prio = priority[op];
	bool parens = prio < t->parent || (op == OP_PHRASE && t->right_phrase);

	if (parens) {
		ws_buf_puts(out, "( ");
		push_text(stack, " )");
	}
	if (op == OP_NOT) {
		ws_buf_putc(out, '!');
		push(stack, (struct task){.lo = t->lo + 1, .hi = t->hi, .parent = prio});
		return 0;
	}
	if (left < 2 || left >= t->hi - t->lo)
		return -1;
	push(stack,
		 (struct task){
			 .lo = t->lo + 1, .hi = t->lo + left, .parent = prio, .right_phrase = op == OP_PHRASE});
	push(stack, (struct task){.text = op == OP_OR    ? " | "
									  : op == OP_AND ? " & "
													 : NULL,
							  .distance = (int16_t)ws_le16(item + 2)});
	push(stack, (struct task){.lo = t->lo + left, .hi = t->hi, .parent = prio});
	return 0;
}

static int
put_task(struct query *q, const struct task *t, struct ws_buf *stack, struct ws_buf *out)
{
	const uint8_t *item = q->items + (size_t)t->lo * ITEM;

	if (t->hi == 0) {
		if (t->text)
			ws_buf_puts(out, t->text);
		else if (t->distance == 1)
			ws_buf_puts(out, " <-> ");
		else
			ws_buf_printf(out, " <%d> ", t->distance);
		return 0;
	}
	if (item[0] == QI_OPR)
		return put_operator(q, t, stack, out);
	/* An operand is a subtree of one. */
	return item[0] == QI_VAL && t->hi == t->lo + 1 ? put_operand(q, item, out) : -1;
}

WS_CODEC(ws_read_tsquery)
{
	uint32_t count = n >= 4 ? ws_le32(p) : UINT32_MAX;
	struct query q = {.items = p + 4};
	struct task t;

	if (count > (n - 4) / ITEM)
		return -1;
	q.str = p + 4 + (size_t)count * ITEM;
	q.avail = n - 4 - count * ITEM;
	in->text->len = in->stack->len = 0;
	if (count)
		push(in->stack, (struct task){.lo = 0, .hi = count, .parent = -1});
	while (in->stack->len) {
		in->stack->len -= sizeof t;
		memcpy(&t, in->stack->data + in->stack->len, sizeof t);
		if (put_task(&q, &t, in->stack, in->text) != 0 || in->text->len > WS_VALUE_MAX)
			return -1;
	}
	ws_codec_done(in, in->text, v);
	return 0;
}
