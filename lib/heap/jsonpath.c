/* jsonpath on disk (utils/jsonpath.h), printed as utils/adt/jsonpath.c does.
 *
 * A header (version, lax), then items: a byte with the type, padding to 4, offset of the next item
 * in the path (0 none), and what the type has: a text, a numeric, offsets of arguments.  Offsets
 * count from the item and go forward only.  Each item is printed once, so more than fit into the
 * value are none. */
#include <string.h>

#include "heap-int.h"

#define VERSION 1u
#define LAX     0x80000000u

enum item_type {
	T_NULL,
	T_STRING,
	T_NUMERIC,
	T_BOOL,
	T_AND,
	T_OR,
	T_NOT,
	T_IS_UNKNOWN,
	T_EQ,
	T_NE,
	T_LT,
	T_GT,
	T_LE,
	T_GE,
	T_ADD,
	T_SUB,
	T_MUL,
	T_DIV,
	T_MOD,
	T_PLUS,
	T_MINUS,
	T_ANY_ARRAY,
	T_ANY_KEY,
	T_INDEX_ARRAY,
	T_ANY,
	T_KEY,
	T_CURRENT,
	T_ROOT,
	T_VARIABLE,
	T_FILTER,
	T_EXISTS,
	T_TYPE,
	T_SIZE,
	T_ABS,
	T_FLOOR,
	T_CEILING,
	T_DOUBLE,
	T_DATETIME,
	T_KEYVALUE,
	T_SUBSCRIPT,
	T_LAST,
	T_STARTS_WITH,
	T_LIKE_REGEX,
	/* since 17 */
	T_BIGINT,
	T_BOOLEAN,
	T_DATE,
	T_DECIMAL,
	T_INTEGER,
	T_NUMBER,
	T_STRING_FUNC,
	T_TIME,
	T_TIME_TZ,
	T_TIMESTAMP,
	T_TIMESTAMP_TZ,
	T_COUNT
};

/* How a type is printed, its text, and for operators their priority. */
enum form { F_NONE, F_WORD, F_BINARY, F_UNARY, F_METHOD, F_OWN };

static const struct {
	uint8_t form;
	uint8_t priority;
	const char *text;
} types[T_COUNT] = {[T_NULL] = {F_WORD, 6, "null"},
					[T_STRING] = {F_OWN, 6, NULL},
					[T_NUMERIC] = {F_OWN, 6, NULL},
					[T_BOOL] = {F_OWN, 6, NULL},
					[T_AND] = {F_BINARY, 1, " && "},
					[T_OR] = {F_BINARY, 0, " || "},
					[T_NOT] = {F_OWN, 6, NULL},
					[T_IS_UNKNOWN] = {F_OWN, 6, NULL},
					[T_EQ] = {F_BINARY, 2, " == "},
					[T_NE] = {F_BINARY, 2, " != "},
					[T_LT] = {F_BINARY, 2, " < "},
					[T_GT] = {F_BINARY, 2, " > "},
					[T_LE] = {F_BINARY, 2, " <= "},
					[T_GE] = {F_BINARY, 2, " >= "},
					[T_ADD] = {F_BINARY, 3, " + "},
					[T_SUB] = {F_BINARY, 3, " - "},
					[T_MUL] = {F_BINARY, 4, " * "},
					[T_DIV] = {F_BINARY, 4, " / "},
					[T_MOD] = {F_BINARY, 4, " % "},
					[T_PLUS] = {F_UNARY, 5, "+"},
					[T_MINUS] = {F_UNARY, 5, "-"},
					[T_ANY_ARRAY] = {F_WORD, 6, "[*]"},
					[T_ANY_KEY] = {F_OWN, 6, NULL},
					[T_INDEX_ARRAY] = {F_OWN, 6, NULL},
					[T_ANY] = {F_OWN, 6, NULL},
					[T_KEY] = {F_OWN, 6, NULL},
					[T_CURRENT] = {F_WORD, 6, "@"},
					[T_ROOT] = {F_WORD, 6, "$"},
					[T_VARIABLE] = {F_OWN, 6, NULL},
					[T_FILTER] = {F_OWN, 6, NULL},
					[T_EXISTS] = {F_OWN, 6, NULL},
					[T_TYPE] = {F_WORD, 6, ".type()"},
					[T_SIZE] = {F_WORD, 6, ".size()"},
					[T_ABS] = {F_WORD, 6, ".abs()"},
					[T_FLOOR] = {F_WORD, 6, ".floor()"},
					[T_CEILING] = {F_WORD, 6, ".ceiling()"},
					[T_DOUBLE] = {F_WORD, 6, ".double()"},
					[T_DATETIME] = {F_METHOD, 6, ".datetime("},
					[T_KEYVALUE] = {F_WORD, 6, ".keyvalue()"},
					[T_LAST] = {F_WORD, 6, "last"},
					[T_STARTS_WITH] = {F_BINARY, 2, " starts with "},
					[T_LIKE_REGEX] = {F_OWN, 6, NULL},
					[T_BIGINT] = {F_WORD, 6, ".bigint()"},
					[T_BOOLEAN] = {F_WORD, 6, ".boolean()"},
					[T_DATE] = {F_WORD, 6, ".date()"},
					[T_DECIMAL] = {F_OWN, 6, NULL},
					[T_INTEGER] = {F_WORD, 6, ".integer()"},
					[T_NUMBER] = {F_WORD, 6, ".number()"},
					[T_STRING_FUNC] = {F_WORD, 6, ".string()"},
					[T_TIME] = {F_METHOD, 6, ".time("},
					[T_TIME_TZ] = {F_METHOD, 6, ".time_tz("},
					[T_TIMESTAMP] = {F_METHOD, 6, ".timestamp("},
					[T_TIMESTAMP_TZ] = {F_METHOD, 6, ".timestamp_tz("}};

/* What is still to be printed: an item, a text, or the end of a like_regex. */
struct task {
	const char *text;
	uint32_t pos;
	bool in_key, brackets, regex;
};

struct path {
	const uint8_t *p; /* the items */
	uint32_t n;
	uint32_t left; /* items that may still come */
	struct ws_buf *stack, *out;
};

static void
push(struct path *j, struct task t)
{
	ws_buf_put(j->stack, &t, sizeof t);
}

static void
push_text(struct path *j, const char *s)
{
	push(j, (struct task){.text = s});
}

/* Where the item's own part begins. */
static uint64_t
body(uint32_t pos)
{
	return (((uint64_t)pos + 4) & ~(uint64_t)3) + 4;
}

/* The u32 at `at` bytes after the item's head; a failure is one of the caller's to see. */
static uint32_t
arg(const struct path *j, uint32_t pos, uint32_t at, bool *bad)
{
	uint64_t from = body(pos) + at;

	if (from + 4 > j->n) {
		*bad = true;
		return 0;
	}
	return ws_le32(j->p + from);
}

static int
push_item(struct path *j, uint32_t pos, uint32_t offset, bool in_key, bool brackets)
{
	if (offset == 0 || offset > j->n - pos)
		return -1;
	push(j, (struct task){.pos = pos + offset, .in_key = in_key, .brackets = brackets});
	return 0;
}

/* An operand is in brackets unless it binds tighter. */
static int
push_operand(struct path *j, uint32_t pos, uint32_t offset, unsigned priority)
{
	if (offset == 0 || offset >= j->n - pos || j->p[pos + offset] >= T_COUNT)
		return -1;
	return push_item(j, pos, offset, false, types[j->p[pos + offset]].priority <= priority);
}

static int
put_text(struct path *j, uint32_t pos, uint32_t at, uint32_t len)
{
	uint64_t from = body(pos) + at;

	if (from + len > j->n)
		return -1;
	ws_json_quote(j->out, j->p + from, len);
	return 0;
}

static int
put_numeric(struct path *j, uint32_t pos, bool next)
{
	struct ws_varlena v;

	if (ws_varlena_parse(j->p + body(pos), j->n - body(pos), &v) != 0 || v.kind != WS_VAR_PLAIN)
		return -1;
	if (next)
		ws_buf_putc(j->out, '(');
	if (ws_numeric_text(v.data, v.len, j->out) != 0)
		return -1;
	if (next)
		ws_buf_putc(j->out, ')');
	return 0;
}

static void
put_levels(struct path *j, uint32_t first, uint32_t last)
{
	ws_buf_puts(j->out, "**");
	if (first == 0 && last == UINT32_MAX)
		return;
	if (first == last && first == UINT32_MAX)
		ws_buf_puts(j->out, "{last}");
	else if (first == last)
		ws_buf_printf(j->out, "{%u}", first);
	else if (first == UINT32_MAX)
		ws_buf_printf(j->out, "{last to %u}", last);
	else if (last == UINT32_MAX)
		ws_buf_printf(j->out, "{%u to last}", first);
	else
		ws_buf_printf(j->out, "{%u to %u}", first, last);
}

static int
put_regex(struct path *j, uint32_t pos, bool brackets)
{
	static const char letters[] = "ismxq";
	bool bad = false;
	uint32_t flags = arg(j, pos, 0, &bad), len = arg(j, pos, 8, &bad);

	ws_buf_puts(j->out, " like_regex ");
	if (bad || put_text(j, pos, 12, len) != 0)
		return -1;
	if (flags) {
		ws_buf_puts(j->out, " flag \"");
		for (int i = 0; letters[i]; i++)
			if (flags >> i & 1)
				ws_buf_putc(j->out, (uint8_t)letters[i]);
		ws_buf_putc(j->out, '"');
	}
	if (brackets)
		ws_buf_putc(j->out, ')');
	return 0;
}

/* [from to to, ...]: pushed from the end. */
static int
push_subscripts(struct path *j, uint32_t pos)
{
	bool bad = false;
	uint32_t n = arg(j, pos, 0, &bad);

	if (bad || n > j->n / 8)
		return -1;
	ws_buf_putc(j->out, '[');
	push_text(j, "]");
	for (uint32_t i = n; i-- > 0;) {
		uint32_t from = arg(j, pos, 4 + 8 * i, &bad), to = arg(j, pos, 8 + 8 * i, &bad);

		if (bad || (to && push_item(j, pos, to, false, false) != 0))
			return -1;
		if (to)
			push_text(j, " to ");
		if (push_item(j, pos, from, false, false) != 0)
			return -1;
		if (i)
			push_text(j, ",");
	}
	return 0;
}

/* An argument between two texts. */
static int
push_between(struct path *j, uint32_t pos, const char *open, const char *close)
{
	bool bad = false;
	uint32_t a = arg(j, pos, 0, &bad);

	ws_buf_puts(j->out, open);
	push_text(j, close);
	return bad ? -1 : push_item(j, pos, a, false, false);
}

/* The types that have a form of their own. */
static int
put_own(struct path *j, const struct task *t, enum item_type type, bool next)
{
	uint32_t pos = t->pos, a, b;
	bool bad = false;

	switch (type) {
	case T_KEY:
	case T_VARIABLE:
		if (type == T_VARIABLE)
			ws_buf_putc(j->out, '$');
		else if (t->in_key)
			ws_buf_putc(j->out, '.');
		/* fall through */
	case T_STRING:
		a = arg(j, pos, 0, &bad);
		return bad ? -1 : put_text(j, pos, 4, a);
	case T_NUMERIC:
		return put_numeric(j, pos, next);
	case T_BOOL:
		if (body(pos) >= j->n)
			return -1;
		ws_buf_puts(j->out, j->p[body(pos)] ? "true" : "false");
		return 0;
	case T_NOT:
		return push_between(j, pos, "!(", ")");
	case T_IS_UNKNOWN:
		return push_between(j, pos, "(", ") is unknown");
	case T_FILTER:
		return push_between(j, pos, "?(", ")");
	case T_EXISTS:
		return push_between(j, pos, "exists (", ")");
	case T_ANY_KEY:
		ws_buf_puts(j->out, t->in_key ? ".*" : "*");
		return 0;
	case T_INDEX_ARRAY:
		return push_subscripts(j, pos);
	case T_ANY:
		a = arg(j, pos, 0, &bad);
		b = arg(j, pos, 4, &bad);
		if (t->in_key)
			ws_buf_putc(j->out, '.');
		put_levels(j, a, b);
		return bad ? -1 : 0;
	case T_LIKE_REGEX:
		a = arg(j, pos, 4, &bad);
		if (t->brackets)
			ws_buf_putc(j->out, '(');
		push(j, (struct task){.pos = pos, .regex = true, .brackets = t->brackets});
		return bad ? -1 : push_operand(j, pos, a, types[type].priority);
	case T_DECIMAL:
		a = arg(j, pos, 0, &bad);
		b = arg(j, pos, 4, &bad);
		ws_buf_puts(j->out, ".decimal(");
		push_text(j, ")");
		if (bad || (b && push_item(j, pos, b, false, false) != 0))
			return -1;
		if (b)
			push_text(j, ",");
		return a ? push_item(j, pos, a, false, false) : 0;
	default:
		return -1;
	}
}

static int
put_item(struct path *j, const struct task *t)
{
	uint32_t pos = t->pos, next, a, b;
	bool bad = false;

	if (body(pos) > j->n || j->left-- == 0 || j->p[pos] >= T_COUNT)
		return -1;
	enum item_type type = j->p[pos];
	unsigned prio = types[type].priority;
	const char *text = types[type].text;

	next = ws_le32(j->p + body(pos) - 4);
	if (next && push_item(j, pos, next, true, true) != 0)
		return -1;
	switch (types[type].form) {
	case F_WORD:
		ws_buf_puts(j->out, text);
		return 0;
	case F_BINARY:
		a = arg(j, pos, 0, &bad);
		b = arg(j, pos, 4, &bad);
		if (t->brackets) {
			ws_buf_putc(j->out, '(');
			push_text(j, ")");
		}
		if (bad || push_operand(j, pos, b, prio) != 0)
			return -1;
		push_text(j, text);
		return push_operand(j, pos, a, prio);
	case F_UNARY:
		a = arg(j, pos, 0, &bad);
		if (t->brackets) {
			ws_buf_putc(j->out, '(');
			push_text(j, ")");
		}
		ws_buf_puts(j->out, text);
		return bad ? -1 : push_operand(j, pos, a, prio);
	case F_METHOD:
		a = arg(j, pos, 0, &bad);
		ws_buf_puts(j->out, text);
		push_text(j, ")");
		return bad ? -1 : a ? push_item(j, pos, a, false, false) : 0;
	case F_OWN:
		return put_own(j, t, type, next != 0);
	default:
		return -1;
	}
}

WS_CODEC(ws_read_jsonpath)
{
	struct path j = {.stack = in->stack, .out = in->text};
	struct task t;

	if (n < 4 || (ws_le32(p) & ~LAX) != VERSION)
		return -1;
	j.p = p + 4;
	j.n = n - 4;
	j.left = j.n / 5;
	j.out->len = j.stack->len = 0;
	if (!(ws_le32(p) & LAX))
		ws_buf_puts(j.out, "strict ");
	push(&j, (struct task){.brackets = true});
	while (j.stack->len) {
		j.stack->len -= sizeof t;
		memcpy(&t, j.stack->data + j.stack->len, sizeof t);
		if (t.text)
			ws_buf_puts(j.out, t.text);
		else if ((t.regex ? put_regex(&j, t.pos, t.brackets) : put_item(&j, &t)) != 0)
			return -1;
		if (j.out->len > WS_VALUE_MAX)
			return -1;
	}
	ws_codec_done(in, j.out, v);
	return 0;
}
