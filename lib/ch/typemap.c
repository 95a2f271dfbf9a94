/* Which ClickHouse type a PostgreSQL column gets: the one table, ws-types(5); see lib/ch/type.h. */
#include "lib/ch/type.h"

/* PARTIAL: the native type lacks some of the source's values, so that unfit=text makes a String. */
#define PARTIAL 1u

static const struct mapping {
	ws_oid typid, arrayid; /* 0: every type of that kind that has no line of its own */
	enum ws_kind kind;
	unsigned flags;
	const char *type; /* NULL: Decimal by the typmod, else String */
} map[] = {
	{790, 791, WS_K_OTHER, 0, "Decimal(19, 2)"}, /* money */
	{5069, 271, WS_K_NUMERIC, 0, "UInt64"},      /* xid8 */
	{0, 0, WS_K_BOOL, 0, "Bool"},
	{0, 0, WS_K_INT2, 0, "Int16"},
	{0, 0, WS_K_INT4, 0, "Int32"},
	{0, 0, WS_K_INT8, 0, "Int64"},
	{0, 0, WS_K_OID, 0, "UInt32"}, /* and xid, cid, regclass and its like */
	{0, 0, WS_K_FLOAT4, 0, "Float32"},
	{0, 0, WS_K_FLOAT8, 0, "Float64"},
	{0, 0, WS_K_NUMERIC, PARTIAL, NULL},
	{0, 0, WS_K_DATE, PARTIAL, "Date32"},
	{0, 0, WS_K_TIME, 0, "Time64(6)"},
	{0, 0, WS_K_TIMESTAMP, PARTIAL, "DateTime64(6, 'UTC')"},
	{0, 0, WS_K_TIMESTAMPTZ, PARTIAL, "DateTime64(6, 'UTC')"},
	{0, 0, WS_K_UUID, 0, "UUID"},
	{0, 0, WS_K_TEXT, 0, "String"},
	{0, 0, WS_K_BYTES, 0, "String"},
	{0, 0, WS_K_JSON, 0, "String"},
	{0, 0, WS_K_OTHER, 0, "String"},
	{0, 0, WS_K_UNSUPPORTED, 0, "String"},
	{0, 0, WS_K_ARRAY, 0, "String"}, /* that has no Array, see ch_type_default */
};

static const struct mapping *
find(enum ws_kind kind, ws_oid typid)
{
	for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
		if (map[i].kind == kind &&
			(!map[i].typid || map[i].typid == typid || map[i].arrayid == typid))
			return &map[i];
	return NULL;
}

bool
ch_numeric_typmod(int32_t typmod, int *precision, int *scale)
{
	if (typmod < 4)
		return false;
	*precision = ((typmod - 4) >> 16) & 0xffff;
	*scale = (((typmod - 4) & 0x7ff) ^ 1024) - 1024;
	return true;
}

/* numeric(p,s) as a Decimal that holds every finite value of it; false when none does. */
static bool
decimal_for(int32_t typmod, int *precision, int *scale)
{
	if (!ch_numeric_typmod(typmod, precision, scale))
		return false;
	if (*scale < 0) {
		*precision -= *scale;
		*scale = 0;
	} else if (*scale > *precision) {
		*precision = *scale;
	}
	return *precision <= 76;
}

static void
scalar(enum ws_kind kind, const struct ws_c_column *col, const struct ws_route *route,
	   const struct ch_limits *lim, struct ws_buf *out)
{
	const struct mapping *m = find(kind, col->typid);
	int p, s;

	if (!m || (m->flags & PARTIAL && route->unfit == WS_UNFIT_TEXT) ||
		(kind == WS_K_TIME && !lim->has_time64))
		ws_buf_puts(out, "String");
	else if (m->type)
		ws_buf_puts(out, m->type);
	else if (decimal_for(col->typmod, &p, &s))
		ws_buf_printf(out, "Decimal(%d, %d)", p, s);
	else
		ws_buf_puts(out, "String");
}

void
ch_type_default(const struct ws_c_column *col, const struct ws_route *route,
				const struct ch_limits *lim, bool key, struct ws_buf *out)
{
	bool nullable = !(col->flags & WS_COL_NOTNULL) && !(key && route->keyless != WS_KEYLESS_ALL);

	/* An Array cannot be NULL, nor hold arrays of several shapes, nor be a sort key when its
	 * elements can be NULL. */
	if (col->kind == WS_K_ARRAY && !key && route->unfit != WS_UNFIT_TEXT &&
		(!nullable || route->null_array == WS_NULL_ARRAY_EMPTY)) {
		ws_buf_puts(out, "Array(Nullable(");
		scalar(col->elem_kind, col, route, lim, out);
		ws_buf_puts(out, "))");
		return;
	}
	if (nullable)
		ws_buf_puts(out, "Nullable(");
	scalar(col->kind, col, route, lim, out);
	if (nullable)
		ws_buf_putc(out, ')');
}
