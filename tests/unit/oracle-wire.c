/* The oracle's protocol: descriptions of types byte for byte, frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ws/oracle.h"

/* ---- descriptions ---- */

static struct ws_enum_label labels[] = {{70, "x"}, {71, "yy"}};
static struct ws_type types[] = {
	{.oid = 10,
	 .typtype = 'b',
	 .len = 4,
	 .byval = true,
	 .align = 'i',
	 .delim = ';',
	 .out_lib = "",
	 .out_sym = "int4out"},
	{.oid = 11,
	 .typtype = 'b',
	 .len = -1,
	 .align = 'i',
	 .elem = 10,
	 .delim = ',',
	 .out_lib = "",
	 .out_sym = "array_out"},
	{.oid = 12,
	 .typtype = 'd',
	 .len = 4,
	 .align = 'i',
	 .base = 10,
	 .out_lib = "",
	 .out_sym = "int4out"},
	{.oid = 13,
	 .typtype = 'e',
	 .len = 4,
	 .align = 'i',
	 .nlabels = 2,
	 .labels = labels,
	 .out_lib = "",
	 .out_sym = "enum_out"},
	{.oid = 14,
	 .typtype = 'c',
	 .len = -1,
	 .align = 'd',
	 .relid = 100,
	 .out_lib = "",
	 .out_sym = "record_out"},
	{.oid = 15,
	 .typtype = 'r',
	 .len = -1,
	 .align = 'i',
	 .subtype = 12,
	 .out_lib = "",
	 .out_sym = "range_out"},
	{.oid = 16,
	 .typtype = 'm',
	 .len = -1,
	 .align = 'i',
	 .subtype = 15,
	 .out_lib = "",
	 .out_sym = "multirange_out"},
	/* an output function of its own, as int2vector has it */
	{.oid = 17,
	 .typtype = 'b',
	 .len = -1,
	 .align = 'i',
	 .elem = 10,
	 .delim = ',',
	 .out_lib = "$libdir/v",
	 .out_sym = "v_out"},
	{.oid = 18, .typtype = 'd', .base = 18, .out_lib = "", .out_sym = "x"},
};
static struct ws_attr attrs[] = {
	{.attnum = 1, .typid = 12, .flags = 0},
	{.attnum = 2, .flags = WS_ATT_DROPPED | WS_ATT_BYVAL, .len = 2, .align = 's'},
	{.attnum = 3, .typid = 13, .flags = WS_ATT_MISSING, .missing = "x"},
};
static struct ws_rel rel = {.oid = 100, .natts = 3, .attrs = attrs};

static int
find_type(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err)
{
	(void)arg, (void)err;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].oid == oid) {
			*t = &types[i];
			return 1;
		}
	return 0;
}

static int
find_rel(void *arg, ws_oid oid, const struct ws_rel **r, struct ws_err *err)
{
	(void)arg, (void)err;
	*r = &rel;
	return oid == 100;
}

static const struct ws_oracle_lookup look = {find_type, find_rel, NULL};

#define INT4 "b\x0a\0\0\0\x04\0\x01i\0\0\0\0\x07\0\0\0int4out"
#define ENUM "e\x02\0\0\0\x46\0\0\0\x01\0\0\0x\x47\0\0\0\x02\0\0\0yy"

static void
describes(ws_oid oid, const char *want, size_t n)
{
	struct ws_buf b = {0};
	struct ws_err err;

	assert_int_equal(ws_oracle_describe(oid, &look, &b, &err), 0);
	assert_int_equal(b.len, n);
	assert_memory_equal(b.data, want, n);
	ws_buf_free(&b);
}
#define DESCRIBES(oid, text) describes(oid, text, sizeof(text) - 1)

static void
descriptions(void **state)
{
	struct ws_buf b = {0};
	struct ws_err err;

	(void)state;
	DESCRIBES(10, INT4);
	DESCRIBES(12, INT4);
	DESCRIBES(11, "ai;" INT4);
	DESCRIBES(13, ENUM);
	DESCRIBES(14, "c\x03\0\x01" INT4 "\0\x02\0\x01s\x02\x01\0\0\0x" ENUM);
	DESCRIBES(15, "ri\x0f\0\0\0" INT4);
	DESCRIBES(16, "mi\x0f\0\0\0" INT4);
	DESCRIBES(17, "b\x11\0\0\0\xff\xff\0i\x09\0\0\0$libdir/v\x05\0\0\0v_out");
	for (ws_oid oid = 18; oid < 20; oid++) {
		assert_int_equal(ws_oracle_describe(oid, &look, &b, &err), -1);
		assert_string_equal(err.reason, "unknown_type");
		assert_int_equal(b.len, 0);
	}
	ws_buf_free(&b);
}

/* ---- frames ---- */

static void
frames(void **state)
{
	struct ws_oracle_frame f;
	struct ws_oracle_hello h;
	struct ws_oracle_answers a;
	struct ws_err err;
	static const uint8_t hello[] = "\x17\0\0\0HWSORACLE\x01\0\x11\0\x05\0\0\0\x02\0\0\0U8";
	static const uint8_t answer[] = "\x02\0\0\0\x02\0\0\0\0\x01\0\0\0a\x01\x02\0\0\0no";
	const char *text;
	uint32_t len;
	bool failed;

	(void)state;
	for (size_t n = 0; n < 27; n++)
		assert_int_equal(ws_oracle_frame_parse(hello, n, &f, &err), 0);
	assert_int_equal(ws_oracle_frame_parse(hello, 27, &f, &err), 1);
	assert_int_equal(f.type, 'H');
	assert_int_equal(f.size, 27);
	assert_int_equal(ws_oracle_hello_parse(f.p, f.n, &h, &err), 0);
	assert_int_equal(h.major, 17);
	assert_int_equal(h.db, 5);
	assert_string_equal(h.encoding, "U8");
	assert_int_equal(ws_oracle_hello_parse(f.p, f.n - 1, &h, &err), -1);
	assert_int_equal(ws_oracle_frame_parse((const uint8_t *)"\0\0\0\0", 4, &f, &err), -1);
	assert_int_equal(ws_oracle_frame_parse((const uint8_t *)"\xff\xff\xff\xff", 4, &f, &err), -1);

	assert_int_equal(ws_oracle_answers_begin(answer, sizeof answer - 1, 1, 2, &a, &err), -1);
	assert_int_equal(ws_oracle_answers_begin(answer, sizeof answer - 1, 2, 3, &a, &err), -1);
	assert_int_equal(ws_oracle_answers_begin(answer, sizeof answer - 1, 2, 2, &a, &err), 0);
	assert_int_equal(ws_oracle_answers_next(&a, &failed, &text, &len, &err), 1);
	assert_false(failed);
	assert_int_equal(len, 1);
	assert_int_equal(ws_oracle_answers_next(&a, &failed, &text, &len, &err), 1);
	assert_true(failed);
	assert_memory_equal(text, "no", 2);
	/* one byte too many */
	assert_int_equal(ws_oracle_answers_begin(answer, sizeof answer, 2, 2, &a, &err), 0);
	assert_int_equal(ws_oracle_answers_next(&a, &failed, &text, &len, &err), 1);
	assert_int_equal(ws_oracle_answers_next(&a, &failed, &text, &len, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptions),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
