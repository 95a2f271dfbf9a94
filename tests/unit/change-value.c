/* lib/change/value*.c: text and wire forms of every kind, literals good and bad. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/value.h"

static struct ws_arena arena;

static void
same(enum ws_kind kind, enum ws_kind elem, const char *text)
{
	struct ws_value v, w;
	struct ws_buf wire = {0}, out = {0};
	struct ws_err err = {0};

	if (ws_value_from_text(kind, elem, text, strlen(text), &arena, &v, &err) != 0)
		fail_msg("%s: %s", text, err.msg);
	assert_int_equal(v.state, WS_V_VALUE);
	assert_int_equal(v.kind, kind);
	ws_value_put(&wire, &v);
	const uint8_t *at = wire.data;

	assert_int_equal(ws_value_get(kind, &at, wire.data + wire.len, &w), 0);
	assert_ptr_equal(at, wire.data + wire.len);
	ws_value_text(&w, &out);
	assert_string_equal(ws_buf_cstr(&out), text);
	for (size_t cut = 0; cut < wire.len; cut++) {
		at = wire.data;
		assert_int_equal(ws_value_get(kind, &at, wire.data + cut, &w), -1);
	}
	ws_buf_free(&wire);
	ws_buf_free(&out);
	ws_arena_reset(&arena);
}

static void
refused(enum ws_kind kind, enum ws_kind elem, const char *text)
{
	struct ws_value v;
	struct ws_err err = {0};

	if (ws_value_from_text(kind, elem, text, strlen(text), &arena, &v, &err) == 0)
		fail_msg("%s: taken as %s", text, ws_kind_name(kind));
	assert_string_equal(err.reason, "bad_value");
	ws_arena_reset(&arena);
}

struct item {
	enum ws_kind kind;
	const char *text;
};

static void
test_scalars(void **state)
{
	static const struct item good[] = {
	    {WS_K_BOOL, "t"}, {WS_K_BOOL, "f"}, {WS_K_INT2, "-32768"}, {WS_K_INT2, "32767"},
	    {WS_K_INT4, "-2147483648"}, {WS_K_INT4, "0"}, {WS_K_INT8, "-9223372036854775808"},
	    {WS_K_INT8, "9223372036854775807"}, {WS_K_OID, "4294967295"},
	    {WS_K_UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, {WS_K_BYTES, "\\x"},
	    {WS_K_BYTES, "\\x00ff10"}, {WS_K_TEXT, ""}, {WS_K_TEXT, "a\nb"}, {WS_K_JSON, "{\"a\": 1}"},
	    {WS_K_OTHER, "1 day"}, {WS_K_NUMERIC, "NaN"}, {WS_K_NUMERIC, "-Infinity"},
	    {WS_K_NUMERIC, "Infinity"}, {WS_K_NUMERIC, "-12.500"}, {WS_K_NUMERIC, "0.00"},
	};
	static const struct item wrong[] = {
	    {WS_K_BOOL, "true"}, {WS_K_BOOL, ""}, {WS_K_INT2, "32768"}, {WS_K_INT2, "-32769"},
	    {WS_K_INT4, "2147483648"}, {WS_K_INT4, ""}, {WS_K_INT4, "-"}, {WS_K_INT4, "1 "},
	    {WS_K_INT8, "9223372036854775808"}, {WS_K_INT8, "-9223372036854775809"},
	    {WS_K_INT8, "99999999999999999999"}, {WS_K_OID, "-1"}, {WS_K_OID, "4294967296"},
	    {WS_K_UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1"}, {WS_K_UUID, "a0eebc99x9c0b-4ef8-bb6d-6bb9bd380a11"},
	    {WS_K_BYTES, ""}, {WS_K_BYTES, "\\x0"}, {WS_K_BYTES, "\\x0g"}, {WS_K_BYTES, "x00"},
	    {WS_K_NUMERIC, ""}, {WS_K_NUMERIC, "."}, {WS_K_NUMERIC, "1."}, {WS_K_NUMERIC, "-"},
	    {WS_K_NUMERIC, "1e5"}, {WS_K_NUMERIC, "+1"}, {WS_K_NUMERIC, "nan"}, {WS_K_FLOAT8, ""},
	    {WS_K_FLOAT8, "0x10"}, {WS_K_FLOAT8, "inf"}, {WS_K_FLOAT8, "nan"}, {WS_K_FLOAT8, "1e999"},
	    {WS_K_FLOAT8, "1 "}, {WS_K_FLOAT4, "1e39"}, {WS_K_FLOAT8, "1e"}, {WS_K_UNSUPPORTED, "x"},
	    {WS_K_UNSUPPORTED, "\\x00"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		same(good[i].kind, 0, good[i].text);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		refused(wrong[i].kind, 0, wrong[i].text);
}

static void
test_times(void **state)
{
	static const struct item good[] = {
	    {WS_K_DATE, "2000-01-01"}, {WS_K_DATE, "1999-12-31"}, {WS_K_DATE, "infinity"},
	    {WS_K_DATE, "-infinity"}, {WS_K_DATE, "4714-11-24 BC"}, {WS_K_DATE, "0001-12-31 BC"},
	    {WS_K_DATE, "0001-01-01"}, {WS_K_DATE, "5874897-12-31"}, {WS_K_DATE, "2000-02-29"},
	    {WS_K_DATE, "0005-02-29 BC"}, {WS_K_TIME, "00:00:00"}, {WS_K_TIME, "24:00:00"},
	    {WS_K_TIME, "23:59:59.999999"}, {WS_K_TIME, "12:00:00.1"}, {WS_K_TIME, "12:00:00.000001"},
	    {WS_K_TIMESTAMP, "2000-01-01 00:00:00"}, {WS_K_TIMESTAMP, "1999-12-31 23:59:59.999999"},
	    {WS_K_TIMESTAMP, "4714-11-24 00:00:00 BC"}, {WS_K_TIMESTAMP, "294276-12-31 23:59:59.999999"},
	    {WS_K_TIMESTAMP, "infinity"}, {WS_K_TIMESTAMP, "-infinity"},
	    {WS_K_TIMESTAMPTZ, "2024-02-29 12:34:56.7+00"}, {WS_K_TIMESTAMPTZ, "0044-03-15 12:00:00+00 BC"},
	    {WS_K_TIMESTAMPTZ, "infinity"},
	};
	static const struct item wrong[] = {
	    {WS_K_DATE, "2001-02-29"}, {WS_K_DATE, "1900-02-29"}, {WS_K_DATE, "2000-13-01"},
	    {WS_K_DATE, "2000-00-01"}, {WS_K_DATE, "2000-01-32"}, {WS_K_DATE, "0000-01-01"},
	    {WS_K_DATE, "2000-1-1"}, {WS_K_DATE, "01/02/2000"}, {WS_K_DATE, ""}, {WS_K_DATE, "9999999-01-01"},
	    {WS_K_TIME, "24:00:00.000001"}, {WS_K_TIME, "25:00:00"}, {WS_K_TIME, "12:60:00"},
	    {WS_K_TIME, "12:00:00."}, {WS_K_TIME, "12:00:00.1234567"}, {WS_K_TIME, "12:00"},
	    {WS_K_TIMESTAMP, "2000-01-01"}, {WS_K_TIMESTAMP, "2000-01-01 24:00:00"},
	    {WS_K_TIMESTAMP, "2000-01-01 00:00:00+00"}, {WS_K_TIMESTAMP, "294277-12-31 00:00:00"},
	    {WS_K_TIMESTAMPTZ, "2000-01-01 00:00:00"}, {WS_K_TIMESTAMP, "Infinity"},
	};
	struct ws_value v, w;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		same(good[i].kind, 0, good[i].text);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		refused(wrong[i].kind, 0, wrong[i].text);
	/* Every day there is, forth and back. */
	for (int32_t d = -2451545; d < 400000; d++) {
		char s[WS_TEXT_MAX];
		size_t n = ws_date_text(s, d);

		assert_int_equal(ws_value_from_text(WS_K_DATE, 0, s, n, &arena, &v, NULL), 0);
		assert_int_equal(v.i, d);
	}
	const char *zones[] = {"2000-01-01 05:30:00+05:30", "1999-12-31 15:59:00-08:01", "2000-01-01 01:00:05+01:00:05"};

	assert_int_equal(ws_value_from_text(WS_K_TIMESTAMPTZ, 0, "2000-01-01 00:00:00+00", 22, &arena, &w, NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ws_value_from_text(WS_K_TIMESTAMPTZ, 0, zones[i], strlen(zones[i]), &arena, &v, NULL), 0);
		assert_true(v.i == (i == 1 ? 0 : w.i));
	}
}

static void
test_arrays(void **state)
{
	static const struct item good[] = {
	    {WS_K_INT4, "{}"}, {WS_K_INT4, "{1,2,3}"}, {WS_K_INT4, "{NULL}"}, {WS_K_INT4, "{{1,2},{3,NULL}}"},
	    {WS_K_INT4, "[0:1]={1,2}"}, {WS_K_INT4, "[-5:-4][2:3]={{1,2},{3,4}}"},
	    {WS_K_INT4, "{{{{{{1}}}}}}"}, {WS_K_INT4, "[2147483646:2147483646]={7}"},
	    {WS_K_TEXT, "{\"\",\"NULL\",\"null\",NULL,\"a b\",\"a,b\",\"{\",\"}\",\"\\\\\",\"\\\"\",x}"},
	    {WS_K_TEXT, "{\"a\nb\",\"\t\",NULLs}"}, {WS_K_BOOL, "{t,f}"},
	    {WS_K_TIMESTAMP, "{\"2000-01-01 00:00:00\",infinity}"}, {WS_K_BYTES, "{\"\\\\x00\",\"\\\\x\"}"},
	    {WS_K_UUID, "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"}, {WS_K_FLOAT8, "{NaN,-0,1e+300}"},
	    {WS_K_FLOAT4, "{1.5,-Infinity}"}, {WS_K_INT8, "{9223372036854775807}"}, {WS_K_INT2, "{-1}"},
	    {WS_K_JSON, "{\"{\\\"a\\\": [1, 2]}\"}"}, {WS_K_NUMERIC, "{1.50,NaN}"}, {WS_K_OID, "{4294967295}"},
	    {WS_K_DATE, "{\"0044-03-15 BC\"}"}, {WS_K_OTHER, "{1.2.3.4,::1}"},
	    {WS_K_INT4, "{1,2,3,4,5,6,7,NULL,9,10,11,12,13,14,15,16,NULL}"},
	};
	static const struct item wrong[] = {
	    {WS_K_INT4, ""}, {WS_K_INT4, "{"}, {WS_K_INT4, "{1"}, {WS_K_INT4, "{1,"}, {WS_K_INT4, "{1,}"},
	    {WS_K_INT4, "{,1}"}, {WS_K_INT4, "{1}}"}, {WS_K_INT4, "{1} "}, {WS_K_INT4, "{{1},2}"},
	    {WS_K_INT4, "{1,{2}}"}, {WS_K_INT4, "{{1},{2,3}}"}, {WS_K_INT4, "{{1},{}}"}, {WS_K_INT4, "{a}"},
	    {WS_K_INT4, "{{{{{{{1}}}}}}}"}, {WS_K_INT4, "[0:1]={1}"}, {WS_K_INT4, "[1:0]={}"},
	    {WS_K_INT4, "[0:1]{1,2}"}, {WS_K_INT4, "[0:1][0:0]={1,2}"}, {WS_K_INT4, "[0:]={1}"},
	    {WS_K_INT4, "[99999999999:99999999999]={1}"}, {WS_K_TEXT, "{\"}"}, {WS_K_TEXT, "{\"a\\\"}"},
	    {WS_K_TEXT, "{a\"b\"}"}, {WS_K_TEXT, "{\\"}, {WS_K_TEXT, "{\"a\"b}"}, {WS_K_UNSUPPORTED, "{a}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		same(WS_K_ARRAY, good[i].kind, good[i].text);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		refused(WS_K_ARRAY, wrong[i].kind, wrong[i].text);
}

/* No cut or flipped byte of an array value may lead outside of it. */
static void
test_array_damage(void **state)
{
	static const char text[] = "[2:3][1:2]={{\"a b\",NULL},{\"\",c}}";
	struct ws_value v, e;
	struct ws_array a;

	(void)state;
	assert_int_equal(ws_value_from_text(WS_K_ARRAY, WS_K_TEXT, text, strlen(text), &arena, &v, NULL), 0);
	for (uint32_t at = 0; at < v.len * 8; at++) {
		uint8_t *p = malloc(v.len);
		struct ws_buf out = {0};

		memcpy(p, v.p, v.len);
		p[at / 8] ^= (uint8_t)(1u << at % 8);
		if (ws_array_parse(p, v.len, &a, NULL) == 0) {
			const uint8_t *q = a.data;

			for (uint32_t i = 0; i < a.nelems && ws_array_next(&a, i, &q, &e, NULL) == 0; i++)
				assert_true(q <= p + v.len);
		}
		e = (struct ws_value){.state = WS_V_VALUE, .kind = WS_K_ARRAY, .len = v.len, .p = p};
		ws_value_text(&e, &out);
		ws_buf_free(&out);
		free(p);
		p = malloc(at / 8 + 1);
		memcpy(p, v.p, at / 8);
		(void)ws_array_parse(p, at / 8, &a, NULL);
		free(p);
	}
	ws_arena_reset(&arena);
}

static void
float8_is(double d, const char *want)
{
	char s[WS_TEXT_MAX];
	size_t n = ws_float8_text(s, d);

	s[n] = 0;
	assert_string_equal(s, want);
}

/* The fewest digits that bring v back: what %.*g finds, but for decimals exactly on a bound. */
static void
test_floats(void **state)
{
	static const struct {
		double d;
		const char *text;
	} known[] = {
	    {0.0, "0"}, {-0.0, "-0"}, {1, "1"}, {0.1, "0.1"}, {-1.5, "-1.5"}, {1e15, "1e+15"},
	    {123456789012345, "123456789012345"}, {1234567890123456, "1.234567890123456e+15"},
	    {0.0001, "0.0001"}, {0.00001, "1e-05"}, {5e-324, "5e-324"}, {1e23, "9.999999999999999e+22"},
	    {1.7976931348623157e308, "1.7976931348623157e+308"}, {2.2250738585072014e-308, "2.2250738585072014e-308"},
	    {9007199254740991, "9.007199254740991e+15"}, {1e100, "1e+100"}, {100, "100"}, {0.3, "0.3"},
	    {0.1 + 0.2, "0.30000000000000004"}, {INFINITY, "Infinity"}, {-INFINITY, "-Infinity"}, {NAN, "NaN"},
	};
	uint64_t seed = 88172645463325252ull;

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		float8_is(known[i].d, known[i].text);
	for (int i = 0; i < 300000; i++) {
		char s[WS_TEXT_MAX], t[WS_TEXT_MAX];
		double d;
		float f;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(&d, &seed, 8);
		if (i % 3 == 0)
			d = (double)(int64_t)seed / 1000;
		s[ws_float8_text(s, d)] = 0;
		if (isfinite(d)) {
			assert_true(strtod(s, NULL) == d);
			int digits = 0;

			do
				snprintf(t, sizeof t, "%.*e", digits++, d);
			while (strtod(t, NULL) != d);
			int n = 0;
			bool lead = true;

			for (const char *c = s; *c && *c != 'e'; c++)
				if (*c >= '0' && *c <= '9' && !(lead && *c == '0')) {
					lead = false;
					n++;
				}
			/* Trailing zeros of fixed notation are not digits of the decimal. */
			if (!strpbrk(s, ".e"))
				for (size_t z = strlen(s); z > 1 && s[z - 1] == '0'; z--)
					n--;
			/* More digits only when the shorter decimal lies halfway between two floats
			 * (exact in a long double at this size). */
			long double gap = strtold(t, NULL) - d;
			uint64_t next_bits;
			double next;

			memcpy(&next_bits, &d, 8);
			next_bits++;
			memcpy(&next, &next_bits, 8);

			if (n != digits && !(n > digits && fabs(d) < 1e23 && fabs(d) > 0x1p53 &&
			                     (gap < 0 ? -gap : gap) * 2 == fabs(next - d)))
				fail_msg("%s: shorter is %s", s, t);
		}
		uint32_t half = (uint32_t)seed;

		memcpy(&f, &half, 4);
		s[ws_float4_text(s, f)] = 0;
		if (isfinite(f))
			assert_true(strtof(s, NULL) == f);
	}
	same(WS_K_FLOAT8, 0, "-0");
	same(WS_K_FLOAT8, 0, "NaN");
	same(WS_K_FLOAT4, 0, "3.4028235e+38");
	same(WS_K_FLOAT4, 0, "1e-45");
	same(WS_K_FLOAT4, 0, "123456");
	same(WS_K_FLOAT4, 0, "1.234567e+06");
}

static int
teardown(void **state)
{
	(void)state;
	ws_arena_free(&arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_scalars), cmocka_unit_test(test_times),        cmocka_unit_test(test_floats),
	    cmocka_unit_test(test_arrays),  cmocka_unit_test(test_array_damage),
	};

	return cmocka_run_group_tests_name("value", tests, NULL, teardown);
}
