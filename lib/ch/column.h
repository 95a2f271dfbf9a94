/* Native columns built from values of the change stream, clickhouse-side rules included: what the
 * server would change silently (range, precision, labels, NULLs) is refused here. */
#ifndef LIB_CH_COLUMN_H
#define LIB_CH_COLUMN_H

#include "lib/ch/type.h"

struct ch_col;

/* Appends a value (state WS_V_VALUE).  0 done; -1 it does not fit, nothing appended.  With clamp the
 * nearest value that fits is taken where there is one. */
typedef int (*ch_put_fn)(struct ch_col *c, const struct ws_value *v, bool clamp);

struct ch_col {
	const struct ch_type *type;
	const struct ch_limits *lim;
	ch_put_fn put;
	enum ws_unfit unfit;
	enum ws_unsupported unsupported;
	bool null_array_empty;
	uint64_t rows;
	uint64_t nulled;     /* elements that did not fit and are NULL by policy, not counted yet */
	struct ws_buf data;  /* values; of an Array or a Map the offsets */
	struct ws_buf nulls; /* of a Nullable */
	struct ch_col *elem; /* of an Array; of a Map its keys, whose elem are the values */
};

/* How a source kind goes into a type; NULL when it does not. */
ch_put_fn ch_put_find(enum ws_kind kind, enum ws_kind elem, const struct ch_type *t);

/* Conversions that most values take and that the row loop does by itself: plain copies of so many
 * bytes, a string as it is, microseconds of both epochs. */
enum ch_fast { CH_SLOW, CH_FAST_1, CH_FAST_2, CH_FAST_4, CH_FAST_8, CH_FAST_STRING, CH_FAST_US };
enum ch_fast ch_put_fast(enum ws_kind kind, const struct ch_type *t);

/* Prepares an empty column; -1 when the kind does not go into the type. */
int ch_col_init(struct ch_col *c, const struct ch_type *t, enum ws_kind kind, enum ws_kind elem,
                const struct ws_route *route, const struct ch_limits *lim);
void ch_col_fini(struct ch_col *c);
void ch_col_clear(struct ch_col *c); /* keeps the memory */
size_t ch_col_bytes(const struct ch_col *c);
size_t ch_col_held(const struct ch_col *c); /* memory, for the budget */

/* Appends a value or NULL under the column's policy.  *policy counts what a policy changed.
 * -1: does not fit and the policy is to stop. */
int ch_col_add(struct ch_col *c, const struct ws_value *v, uint64_t *policy);
/* Appends the type's default (NULL for a Nullable). */
void ch_col_add_default(struct ch_col *c);

/* The column's part of a Native block as pieces in order; pieces are at most 3 + those of the
 * element.  head is scratch for what precedes them (name, type, prefix). */
struct ch_piece {
	const void *p;
	size_t n;
};
int ch_col_pieces(const struct ch_col *c, struct ch_piece *out, int max);
/* A column's header in the block: name, type, and the prefix that some types have. */
void ch_col_head(const struct ch_col *c, const char *name, struct ws_buf *out);
void ch_varint(struct ws_buf *b, uint64_t v);

/* Decimal text to value * 10^scale as a little-endian integer of width bytes.  0 done, -1 not a
 * finite decimal or it does not fit precision and scale; with clamp cut or saturated. */
int ch_decimal(const uint8_t *s, size_t n, unsigned width, int precision, int scale, bool clamp, uint8_t *out);

#endif
