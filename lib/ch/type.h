/* ClickHouse types: their text parsed, and the default type of a PostgreSQL column, ws-types(5). */
#ifndef LIB_CH_TYPE_H
#define LIB_CH_TYPE_H

#include "ws/change.h"
#include "ws/routes.h"

enum ch_base {
	CH_BOOL,
	CH_INT,
	CH_UINT,
	CH_FLOAT,
	CH_DECIMAL,
	CH_STRING,
	CH_FIXED,
	CH_DATE,
	CH_DATE32,
	CH_DATETIME,
	CH_DATETIME64,
	CH_TIME,
	CH_TIME64,
	CH_UUID,
	CH_IPV4,
	CH_IPV6,
	CH_ENUM,
	CH_JSON,
	CH_ARRAY,
	CH_MAP
};

struct ch_label {
	const char *name;
	size_t len;
	int16_t value;
};

struct ch_type {
	enum ch_base base;
	unsigned width; /* bytes of a value; 0: String, JSON, Array and Map */
	bool nullable;
	int precision;  /* Decimal */
	int scale;      /* Decimal, DateTime64, Time64: digits after the point */
	struct ch_type *elem;    /* of an Array; of a Map its keys */
	struct ch_type *value;   /* of a Map */
	struct ch_label *labels; /* Enum, sorted by name */
	int nlabels;
	int16_t first;    /* Enum: the lowest value, which is the server's default */
	const char *wire; /* what the block says: the text without LowCardinality */
};

/* What a server can hold; asked once a connection. */
struct ch_limits {
	int64_t day_lo, day_hi; /* Date32, days since 1970 */
	int64_t us_lo, us_hi;   /* DateTime64, microseconds since 1970 */
	bool has_time64;
};

/* Parses the server's text of a type; memory from the arena.  -1 names the part that cannot be
 * written (Tuple, AggregateFunction, ...). */
int ch_type_parse(const char *text, struct ws_arena *a, struct ch_type *out, struct ws_err *err);

/* Appends the type of a new destination column.  key: part of the sort key, so not Nullable unless
 * the source column can be NULL and nullable_key is set. */
void ch_type_default(const struct ws_c_column *col, const struct ws_route *route,
                     const struct ch_limits *lim, bool key, struct ws_buf *out);

/* numeric's typmod (utils/numeric.h: numeric_typmod_precision and _scale); false without one. */
bool ch_numeric_typmod(int32_t typmod, int *precision, int *scale);

/* Whether MODIFY COLUMN from one to the other keeps every value. */
bool ch_type_widens(const struct ch_type *from, const struct ch_type *to);
bool ch_type_equal(const struct ch_type *a, const struct ch_type *b);

/* Quoting for statements, appended: `name` and 'text'. */
void ch_quote_name(struct ws_buf *b, const char *name);
void ch_quote_text(struct ws_buf *b, const char *s, size_t n);

#endif
