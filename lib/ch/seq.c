/* Sequences as rows: the latest value of each in a table walshadow.sequences, which is made up
 * here and goes where the routes send a table of that name; see ws-emit(1), --sequences. */
#include <string.h>

#include "lib/ch/seq.h"

/* pg_sequence's: no user's table has it. */
#define SEQUENCES_OID 2224

#define COLUMN(num, col, k, fl, type)                                                              \
	{                                                                                              \
		.name = (col), .attnum = (num), .kind = (k), .flags = (fl), .typmod = -1,                  \
		.typname = (type)                                                                          \
	}
#define KEY (WS_COL_NOTNULL | WS_COL_IDENTITY | WS_COL_PKEY)

static struct ws_c_column columns[] = {
	COLUMN(1, "oid", WS_K_OID, KEY, "oid"),
	COLUMN(2, "schema_name", WS_K_TEXT, WS_COL_NOTNULL, "text"),
	COLUMN(3, "sequence_name", WS_K_TEXT, WS_COL_NOTNULL, "text"),
	COLUMN(4, "last_value", WS_K_INT8, WS_COL_NOTNULL, "bigint"),
	COLUMN(5, "is_called", WS_K_BOOL, WS_COL_NOTNULL, "boolean"),
};
_Static_assert(sizeof columns / sizeof columns[0] == EMIT_SEQ_COLS, "a value for each column");

/* Handle 0 is no relation's of a stream. */
static const struct ws_c_relation relation = {
	.handle = 0,
	.oid = SEQUENCES_OID,
	.relkind = 'r',
	.replident = 'd',
	.nspname = "walshadow",
	.name = "sequences",
	.ncols = EMIT_SEQ_COLS,
	.cols = columns,
};

static struct ws_value
text(const char *s)
{
	return (struct ws_value){.state = WS_V_VALUE,
							 .kind = WS_K_TEXT,
							 .len = (uint32_t)strlen(s),
							 .p = (const uint8_t *)s};
}

static struct ws_value
number(enum ws_kind kind, int64_t i)
{
	return (struct ws_value){.state = WS_V_VALUE, .kind = (uint8_t)kind, .i = i};
}

void
emit_seq_row(const struct ws_c_sequence *s, struct emit_seq *out)
{
	out->v[0] = number(WS_K_OID, s->oid);
	out->v[1] = text(s->nspname);
	out->v[2] = text(s->name);
	out->v[3] = number(WS_K_INT8, s->last_value);
	out->v[4] = number(WS_K_BOOL, s->is_called);
	/* Alone it is a transaction of its own, at its place in the WAL.  Its record's end is not
	 * known, but is above its start: that may be what was acknowledged last. */
	out->begin = (struct ws_c_begin){.commit_lsn = s->lsn, .end_lsn = s->lsn + 1};
	out->row = (struct ws_change){
		.type = WS_C_ROW,
		.size = sizeof out->v,
		.row = {.op = 'I',
				.flags = WS_ROW_NEW,
				.handle = relation.handle,
				.ordinal = s->ordinal ? s->ordinal : 1,
				.rel = &relation,
				.new_ = out->v},
	};
}
