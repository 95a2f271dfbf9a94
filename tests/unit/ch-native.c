/* lib/ch: the Native bytes of every type, what is refused, and what is clamped. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/ch/column.h"

static const struct ch_limits lim = {-719162, 2932896, -719162 * INT64_C(86400000000), 2932897 * INT64_C(86400000000) - 1, true};

struct col {
	struct ws_arena arena;
	struct ch_type type;
	struct ch_col c;
	uint64_t policy;
};

static void
col_open(struct col *x, const char *type, enum ws_kind kind, enum ws_kind elem, enum ws_unfit unfit)
{
	struct ws_route route = {.unfit = unfit, .unsupported = WS_UNSUP_HEX};
	struct ws_err err;

	memset(x, 0, sizeof *x);
	if (ch_type_parse(type, &x->arena, &x->type, &err) != 0)
		fail_msg("%s: %s", type, err.msg);
	if (ch_col_init(&x->c, &x->type, kind, elem, &route, &lim) != 0)
		fail_msg("%s does not take kind %d", type, kind);
}

static void
col_close(struct col *x)
{
	ch_col_fini(&x->c);
	ws_arena_free(&x->arena);
}

/* Text of PostgreSQL into a column; NULL is NULL. */
static int
add(struct col *x, enum ws_kind kind, enum ws_kind elem, const char *text)
{
	struct ws_value v = {.state = WS_V_NULL, .kind = (uint8_t)kind};
	struct ws_err err;

	if (text && kind == WS_K_UNSUPPORTED)
		v = (struct ws_value){WS_V_VALUE, WS_K_UNSUPPORTED, (uint32_t)strlen(text), {.p = (const uint8_t *)text}};
	else if (text && ws_value_from_text(kind, elem, text, strlen(text), &x->arena, &v, &err) != 0)
		fail_msg("%s: %s", text, err.msg);
	return ch_col_add(&x->c, &v, &x->policy);
}

static void
hex_of(const struct ch_col *c, char *out)
{
	struct ch_piece p[40];
	int n = ch_col_pieces(c, p, 40);

	*out = 0;
	for (int i = 0; i < n; i++)
		for (size_t j = 0; j < p[i].n; j++)
			out += sprintf(out, "%02x", ((const uint8_t *)p[i].p)[j]);
}

static void
bytes_are(const char *type, enum ws_kind kind, enum ws_kind elem, const char *text, const char *want)
{
	char got[4096];
	struct col x;

	col_open(&x, type, kind, elem, WS_UNFIT_STOP);
	if (add(&x, kind, elem, text) != 0)
		fail_msg("%s: %s is refused", type, text);
	hex_of(&x.c, got);
	if (strcmp(got, want))
		fail_msg("%s %s: %s, wanted %s", type, text, got, want);
	assert_int_equal(x.c.rows, 1);
	col_close(&x);
}

static void
refused(const char *type, enum ws_kind kind, enum ws_kind elem, const char *text)
{
	struct col x;

	col_open(&x, type, kind, elem, WS_UNFIT_STOP);
	if (add(&x, kind, elem, text) == 0)
		fail_msg("%s: %s is taken", type, text);
	assert_int_equal(x.c.rows, 0);
	assert_int_equal(ch_col_bytes(&x.c), 0);
	col_close(&x);
}

static void
clamped(const char *type, enum ws_kind kind, const char *text, const char *want)
{
	char got[4096];
	struct col x;

	refused(type, kind, 0, text);
	col_open(&x, type, kind, 0, WS_UNFIT_CLAMP);
	if (add(&x, kind, 0, text) != 0)
		fail_msg("%s: %s cannot be clamped", type, text);
	hex_of(&x.c, got);
	if (strcmp(got, want))
		fail_msg("%s %s: %s, wanted %s", type, text, got, want);
	assert_int_equal(x.policy, 1);
	col_close(&x);
}

static void
test_fixed(void **state)
{
	(void)state;
	bytes_are("Bool", WS_K_BOOL, 0, "t", "01");
	bytes_are("UInt8", WS_K_BOOL, 0, "f", "00");
	bytes_are("Int16", WS_K_INT2, 0, "-2", "feff");
	bytes_are("Int32", WS_K_INT4, 0, "1", "01000000");
	bytes_are("Int64", WS_K_INT8, 0, "-9223372036854775808", "0000000000000080");
	bytes_are("UInt32", WS_K_OID, 0, "4294967295", "ffffffff");
	bytes_are("Int128", WS_K_INT4, 0, "-1", "ffffffffffffffffffffffffffffffff");
	bytes_are("Int8", WS_K_INT4, 0, "-128", "80");
	bytes_are("UInt64", WS_K_INT4, 0, "7", "0700000000000000");
	bytes_are("Float32", WS_K_FLOAT4, 0, "1.5", "0000c03f");
	bytes_are("Float64", WS_K_FLOAT8, 0, "-0", "0000000000000080");
	bytes_are("Float64", WS_K_FLOAT4, 0, "1.5", "000000000000f83f");
	bytes_are("Float32", WS_K_FLOAT8, 0, "0.5", "0000003f");
	bytes_are("UUID", WS_K_UUID, 0, "00112233-4455-6677-8899-aabbccddeeff", "7766554433221100ffeeddccbbaa9988");
	bytes_are("Date", WS_K_DATE, 0, "1970-01-02", "0100");
	bytes_are("Date32", WS_K_DATE, 0, "1969-12-31", "ffffffff");
	bytes_are("DateTime", WS_K_TIMESTAMPTZ, 0, "1970-01-01 00:00:01+00", "01000000");
	bytes_are("DateTime64(6, 'UTC')", WS_K_TIMESTAMP, 0, "1970-01-01 00:00:00.000001", "0100000000000000");
	bytes_are("DateTime64(3)", WS_K_TIMESTAMP, 0, "1969-12-31 23:59:59.999", "ffffffffffffffff");
	bytes_are("DateTime64(9)", WS_K_TIMESTAMP, 0, "1970-01-01 00:00:00.000001", "e803000000000000");
	bytes_are("DateTime64(6)", WS_K_DATE, 0, "1970-01-02", "0060d71d14000000");
	bytes_are("Time64(6)", WS_K_TIME, 0, "00:00:00.000002", "0200000000000000");
	bytes_are("Time64(3)", WS_K_TIME, 0, "00:00:01", "e803000000000000");
	bytes_are("IPv4", WS_K_OTHER, 0, "1.2.3.4", "04030201");
	bytes_are("IPv6", WS_K_OTHER, 0, "::1", "00000000000000000000000000000001");
	bytes_are("FixedString(4)", WS_K_TEXT, 0, "ab", "61620000");
	bytes_are("Enum8('a' = 1, 'b\\'c' = -3)", WS_K_OTHER, 0, "b'c", "fd");
	bytes_are("Enum16('a' = 300)", WS_K_TEXT, 0, "a", "2c01");
}

static void
test_decimal(void **state)
{
	(void)state;
	bytes_are("Decimal(4, 2)", WS_K_NUMERIC, 0, "-1.5", "6affffff");
	bytes_are("Decimal(18, 0)", WS_K_NUMERIC, 0, "999999999999999999", "ffff63a7b3b6e00d");
	bytes_are("Decimal(20, 2)", WS_K_NUMERIC, 0, "-0.01", "ffffffffffffffffffffffffffffffff");
	bytes_are("Decimal(38, 19)", WS_K_NUMERIC, 0, "1.0000000000000000001", "0100e8890423c78a0000000000000000");
	bytes_are("Decimal(76, 1)", WS_K_NUMERIC, 0, "-1", "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");
	bytes_are("Decimal(5, 5)", WS_K_NUMERIC, 0, "0.00001", "01000000");
	bytes_are("Decimal(9, 2)", WS_K_INT4, 0, "-3", "d4feffff");
	bytes_are("Int64", WS_K_NUMERIC, 0, "-9223372036854775808", "0000000000000080");
	bytes_are("UInt64", WS_K_NUMERIC, 0, "18446744073709551615", "ffffffffffffffff");
	bytes_are("String", WS_K_NUMERIC, 0, "1.50", "04312e3530");
	refused("Decimal(4, 2)", WS_K_NUMERIC, 0, "100");
	refused("Decimal(4, 2)", WS_K_NUMERIC, 0, "1.001");
	refused("Decimal(4, 2)", WS_K_NUMERIC, 0, "NaN");
	refused("Decimal(76, 0)", WS_K_NUMERIC, 0, "10000000000000000000000000000000000000000000000000000000000000000000000000000");
	refused("Int64", WS_K_NUMERIC, 0, "9223372036854775808");
	refused("UInt64", WS_K_NUMERIC, 0, "-1");
	refused("Int64", WS_K_NUMERIC, 0, "1.5");
	refused("Float64", WS_K_NUMERIC, 0, "1.5");
	clamped("Decimal(4, 2)", WS_K_NUMERIC, "100", "0f270000");
	clamped("Decimal(4, 2)", WS_K_NUMERIC, "-Infinity", "f1d8ffff");
	clamped("Decimal(4, 2)", WS_K_NUMERIC, "1.239", "7b000000");
	clamped("Int64", WS_K_NUMERIC, "99999999999999999999", "ffffffffffffff7f");
	clamped("UInt8", WS_K_NUMERIC, "-5", "00");
}

static void
test_ranges(void **state)
{
	(void)state;
	clamped("Int16", WS_K_INT4, "32768", "ff7f");
	clamped("UInt32", WS_K_INT4, "-1", "00000000");
	clamped("UInt64", WS_K_INT8, "-1", "0000000000000000");
	clamped("Date", WS_K_DATE, "1969-12-31", "0000");
	clamped("Date32", WS_K_DATE, "infinity", "a0c02c00");
	clamped("Date32", WS_K_DATE, "0001-12-31 BC", "c606f5ff");
	clamped("DateTime", WS_K_TIMESTAMP, "2106-02-07 06:28:16", "ffffffff");
	clamped("DateTime", WS_K_TIMESTAMP, "2000-01-01 00:00:00.5", "80436d38");
	clamped("Float32", WS_K_FLOAT8, "1e300", "ffff7f7f");
	clamped("Float64", WS_K_INT8, "9007199254740993", "0000000000004043");
	clamped("FixedString(2)", WS_K_TEXT, "abc", "6162");
	refused("DateTime64(6)", WS_K_TIMESTAMP, 0, "infinity");
	refused("DateTime64(6)", WS_K_TIMESTAMP, 0, "10000-01-01 00:00:00");
	refused("DateTime64(9)", WS_K_TIMESTAMP, 0, "2300-01-01 00:00:00");
	refused("Enum8('a' = 1)", WS_K_OTHER, 0, "b");
	refused("IPv4", WS_K_OTHER, 0, "1.2.3.0/24");
	refused("Int32", WS_K_INT4, 0, NULL);
	bytes_are("Date32", WS_K_DATE, 0, "9999-12-31", "a0c02c00");
	bytes_are("DateTime64(6)", WS_K_TIMESTAMP, 0, "9999-12-31 23:59:59.999999", "ff5f73cc0c448403");
}

static void
test_strings(void **state)
{
	char want[700] = "c801";
	char text[201];

	(void)state;
	memset(text, 'x', 200);
	text[200] = 0;
	for (int i = 0; i < 200; i++)
		strcat(want, "78");
	bytes_are("String", WS_K_TEXT, 0, text, want);
	bytes_are("String", WS_K_TEXT, 0, "", "00");
	bytes_are("LowCardinality(String)", WS_K_TEXT, 0, "a", "0161");
	bytes_are("String", WS_K_BYTES, 0, "\\x00ff", "0200ff");
	bytes_are("String", WS_K_BOOL, 0, "t", "0174");
	bytes_are("String", WS_K_INT4, 0, "-5", "022d35");
	bytes_are("String", WS_K_DATE, 0, "infinity", "08696e66696e697479");
	bytes_are("String", WS_K_UNSUPPORTED, 0, "ab", "065c7836313632");
	bytes_are("Nullable(String)", WS_K_TEXT, 0, NULL, "0100");
	bytes_are("Nullable(Int16)", WS_K_INT2, 0, NULL, "010000");
	bytes_are("Nullable(Int16)", WS_K_INT2, 0, "3", "000300");
	bytes_are("Nullable(Enum8('a' = 5))", WS_K_TEXT, 0, NULL, "0105");
}

static void
test_arrays(void **state)
{
	(void)state;
	bytes_are("Array(Nullable(Int32))", WS_K_ARRAY, WS_K_INT4, "{1,NULL}", "0200000000000000" "0001" "0100000000000000");
	bytes_are("Array(Int32)", WS_K_ARRAY, WS_K_INT4, "{}", "0000000000000000");
	bytes_are("Array(Array(String))", WS_K_ARRAY, WS_K_TEXT, "{{a,b},{c,d}}",
	          "0200000000000000" "0200000000000000" "0400000000000000" "0161" "0162" "0163" "0164");
	bytes_are("String", WS_K_ARRAY, WS_K_INT4, "{1,NULL}", "087b312c4e554c4c7d");
	refused("Array(Int32)", WS_K_ARRAY, WS_K_INT4, "{1,NULL}");
	refused("Array(Int32)", WS_K_ARRAY, WS_K_INT4, "{{1},{2}}");
	refused("Array(Int32)", WS_K_ARRAY, WS_K_INT4, "[2:3]={1,2}");
	refused("Array(Int8)", WS_K_ARRAY, WS_K_INT4, "{1,2,300}");
	refused("Array(Int32)", WS_K_ARRAY, WS_K_INT4, NULL);
}

/* What a refused array leaves must not shift the next rows. */
static void
test_array_after_refusal(void **state)
{
	char got[400];
	struct col x;

	(void)state;
	col_open(&x, "Array(Nullable(Int8))", WS_K_ARRAY, WS_K_INT4, WS_UNFIT_STOP);
	assert_int_equal(add(&x, WS_K_ARRAY, WS_K_INT4, "{1}"), 0);
	assert_int_equal(add(&x, WS_K_ARRAY, WS_K_INT4, "{2,300}"), -1);
	assert_int_equal(add(&x, WS_K_ARRAY, WS_K_INT4, "{3}"), 0);
	ch_col_add_default(&x.c);
	hex_of(&x.c, got);
	assert_string_equal(got, "0100000000000000" "0200000000000000" "0200000000000000" "0000" "0103");
	assert_int_equal(x.c.rows, 3);
	col_close(&x);
}

/* Types that have PostgreSQL's text in the stream. */
static void
test_other(void **state)
{
	(void)state;
	bytes_are("Map(String, String)", WS_K_OTHER, 0, "\"a\"=>\"1\", \"q\\\"\"=>\"x\\\\\"", "0200000000000000" "0161" "027122" "0131" "02785c");
	bytes_are("Map(LowCardinality(String), Nullable(String))", WS_K_OTHER, 0, "\"a\"=>NULL, \"\"=>\"\"",
	          "0200000000000000" "0161" "00" "0100" "00" "00");
	bytes_are("Map(String, String)", WS_K_OTHER, 0, "", "0000000000000000");
	refused("Map(String, String)", WS_K_OTHER, 0, "\"a\"=>NULL");
	refused("Map(String, String)", WS_K_OTHER, 0, "\"a\"=>\"1\", \"b\"");
	refused("Map(String, String)", WS_K_OTHER, 0, "{1,2}");
	clamped("Map(String, String)", WS_K_OTHER, "\"a\"=>NULL", "0100000000000000" "0161" "00");
	bytes_are("Decimal(19, 2)", WS_K_OTHER, 0, "-$1,234.50", "c61dfeffffffffffffffffffffffffff");
	bytes_are("Decimal(19, 2)", WS_K_OTHER, 0, "$92,233,720,368,547,758.07", "ffffffffffffff7f0000000000000000");
	refused("Decimal(4, 2)", WS_K_OTHER, 0, "$1,234.50");
	refused("Decimal(19, 2)", WS_K_OTHER, 0, "12.5");
	bytes_are("UInt64", WS_K_NUMERIC, 0, "18446744073709551615", "ffffffffffffffff");
	bytes_are("IPv6", WS_K_OTHER, 0, "::1", "00000000000000000000000000000001");
	clamped("IPv6", WS_K_OTHER, "1.2.3.4", "00000000000000000000ffff01020304");
	refused("IPv4", WS_K_OTHER, 0, "1.2.3.0/24");
}

/* An element that does not fit is NULL by itself, and counted. */
static void
test_array_elements_null(void **state)
{
	char got[400];
	struct col x;

	(void)state;
	col_open(&x, "Array(Nullable(Decimal(4, 2)))", WS_K_ARRAY, WS_K_NUMERIC, WS_UNFIT_NULL);
	assert_int_equal(add(&x, WS_K_ARRAY, WS_K_NUMERIC, "{NaN,1.5,1000}"), 0);
	assert_int_equal(x.policy, 2);
	hex_of(&x.c, got);
	assert_string_equal(got, "0300000000000000" "010001" "000000009600000000000000");
	col_close(&x);
	col_open(&x, "Array(Decimal(4, 2))", WS_K_ARRAY, WS_K_NUMERIC, WS_UNFIT_NULL);
	assert_int_equal(add(&x, WS_K_ARRAY, WS_K_NUMERIC, "{NaN,1.5}"), -1);
	assert_int_equal(ch_col_bytes(&x.c), 0);
	col_close(&x);
}

static void
default_is(ws_oid typid, enum ws_kind kind, enum ws_kind elem, int32_t typmod, unsigned flags, enum ws_unfit unfit, const char *want)
{
	struct ws_c_column col = {.name = "c", .kind = (uint8_t)kind, .elem_kind = (uint8_t)elem, .typid = typid, .typmod = typmod, .flags = (uint8_t)flags};
	struct ws_route route = {.unfit = unfit};
	struct ws_buf b = {0};

	ch_type_default(&col, &route, &lim, false, &b);
	assert_string_equal(ws_buf_cstr(&b), want);
	ws_buf_free(&b);
}

static void
test_defaults(void **state)
{
	int32_t n62 = ((6 << 16) | 2) + 4;

	(void)state;
	default_is(790, WS_K_OTHER, 0, -1, WS_COL_NOTNULL, WS_UNFIT_STOP, "Decimal(19, 2)");
	default_is(791, WS_K_ARRAY, WS_K_OTHER, -1, WS_COL_NOTNULL, WS_UNFIT_STOP, "Array(Nullable(Decimal(19, 2)))");
	default_is(5069, WS_K_NUMERIC, 0, -1, 0, WS_UNFIT_STOP, "Nullable(UInt64)");
	default_is(271, WS_K_ARRAY, WS_K_NUMERIC, -1, WS_COL_NOTNULL, WS_UNFIT_STOP, "Array(Nullable(UInt64))");
	default_is(5069, WS_K_NUMERIC, 0, -1, 0, WS_UNFIT_TEXT, "Nullable(UInt64)");
	default_is(1700, WS_K_NUMERIC, 0, n62, 0, WS_UNFIT_STOP, "Nullable(Decimal(6, 2))");
	default_is(1700, WS_K_NUMERIC, 0, n62, 0, WS_UNFIT_TEXT, "Nullable(String)");
	default_is(1700, WS_K_NUMERIC, 0, -1, 0, WS_UNFIT_STOP, "Nullable(String)");
	default_is(600, WS_K_OTHER, 0, -1, 0, WS_UNFIT_STOP, "Nullable(String)");
	default_is(2205, WS_K_OID, 0, -1, 0, WS_UNFIT_STOP, "Nullable(UInt32)");
	default_is(1007, WS_K_ARRAY, WS_K_INT4, -1, 0, WS_UNFIT_STOP, "Nullable(String)");
	default_is(1082, WS_K_DATE, 0, -1, WS_COL_NOTNULL, WS_UNFIT_CLAMP, "Date32");
}

static void
test_head(void **state)
{
	struct ws_buf b = {0};
	struct col x;

	(void)state;
	col_open(&x, "LowCardinality(Nullable(String))", WS_K_TEXT, 0, WS_UNFIT_STOP);
	ch_col_head(&x.c, "n", &b);
	assert_int_equal(b.len, 2 + 1 + 16);
	assert_memory_equal(b.data, "\001n\020Nullable(String)", b.len);
	col_close(&x);
	b.len = 0;
	col_open(&x, "JSON", WS_K_JSON, 0, WS_UNFIT_STOP);
	ch_col_head(&x.c, "j", &b);
	assert_memory_equal(b.data, "\001j\004JSON\001\0\0\0\0\0\0\0", 15);
	col_close(&x);
	ws_buf_free(&b);
}

static void
test_types(void **state)
{
	static const char *const bad[] = {"", "Foo", "Map(String)", "Map(String, String", "Nullable(Map(String, String))", "Tuple(Int8)", "Nullable(", "Nullable(Nullable(Int8))",
	                                  "Nullable(Array(Int8))", "Decimal(77, 0)", "Decimal(4, 5)", "Int32 x", "Enum8('a)", "DateTime64(10)",
	                                  "AggregateFunction(sum, Int8)", "FixedString(0)"};
	struct ws_arena a = {0};
	struct ch_type t, u;
	struct ws_err err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (ch_type_parse(bad[i], &a, &t, &err) == 0)
			fail_msg("%s is taken", bad[i]);
	struct {
		const char *from, *to;
		bool widens;
	} w[] = {{"Int32", "Int64", true}, {"Int64", "Int32", false}, {"Int32", "Nullable(Int32)", true}, {"Nullable(Int32)", "Int32", false},
	         {"Decimal(10, 2)", "Decimal(12, 4)", true}, {"Decimal(10, 2)", "Decimal(10, 4)", false}, {"UInt32", "Int32", false},
	         {"UInt32", "Int64", true}, {"Float32", "Float64", true}, {"Int32", "String", true}, {"Float64", "String", false},
	         {"Array(Int32)", "Array(Int64)", true}, {"Date32", "Date32", true}, {"DateTime64(3)", "DateTime64(6)", false}};

	for (size_t i = 0; i < sizeof w / sizeof w[0]; i++) {
		assert_int_equal(ch_type_parse(w[i].from, &a, &t, &err), 0);
		assert_int_equal(ch_type_parse(w[i].to, &a, &u, &err), 0);
		if (ch_type_widens(&t, &u) != w[i].widens)
			fail_msg("%s to %s", w[i].from, w[i].to);
	}
	ws_arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fixed), cmocka_unit_test(test_decimal), cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_strings), cmocka_unit_test(test_arrays), cmocka_unit_test(test_array_after_refusal),
	    cmocka_unit_test(test_head), cmocka_unit_test(test_types), cmocka_unit_test(test_other),
	    cmocka_unit_test(test_array_elements_null), cmocka_unit_test(test_defaults)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
