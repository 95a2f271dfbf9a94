/* lib/heap: values of types with a form of their own, as a server (17) wrote them; each of them cut
 * at every byte, and with every byte changed, gives a value or an error and no byte too far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/cursor.h"
#include "ws/heap.h"

static struct ws_arena arena;

static const struct sample {
	ws_oid typid;
	int16_t len;
	char align;
	const char *hex, *text;
} samples[] = {
	{30010, -1, 'i', "1d2253000009612c620963226402", "[\"a,b\",\"c\"\"d\")"}, /* textrange */
	/* hstore */
	{30040, -1, 'i', "4b03000080000000800300000004000000050000000800000008000040785c796131622263",
	 "\"\"=>\"x\\\\y\", \"a\"=>\"1\", \"b\\\"c\"=>NULL"},
	{1562, -1, 'i', "0d07000000b2", "1011001"},                            /* bit varying */
	{1560, -1, 'i', "0f09000000b380", "101100111"},                        /* bit(9) */
	{1562, -1, 'i', "0b00000000", ""},                                     /* bit varying */
	{600, 16, 'd', "000000000000f83f000000000000f0ff", "(1.5,-Infinity)"}, /* point */
	/* lseg */
	{601, 32, 'd', "0000000000000000000000000000f03f000000000000f87f0000000000000080",
	 "[(0,1),(NaN,-0)]"},
	/* box */
	{603, 32, 'd', "00000000000008400000000000001040000000000000f03f0000000000000040",
	 "(3,4),(1,2)"},
	/* box[] */
	{1020, -1, 'd',
	 "7b01000000200000005b020000020000000000000001000000000000000000000000000840000000"
	 "0000001040000000000000f03f0000000000000040",
	 "[0:1]={(3,4),(1,2);NULL}"},
	/* path */
	{602, -1, 'd',
	 "5b020000000000000000000000000000000000f03f000000000000004000000000000008409c7500"
	 "883ce4577e",
	 "[(1,2),(3,4e+300)]"},
	/* path */
	{602, -1, 'd',
	 "5b020000000100000000000000000000000000f03f00000000000000400000000000000840000000"
	 "0000001040",
	 "((1,2),(3,4))"},
	/* polygon */
	{604, -1, 'd',
	 "8b02000000000000000000f03f9a9999999999b93f00000000000000000000000000000000000000"
	 "00000000000000000000000000000000000000f03f9a9999999999b93f",
	 "((0,0),(1,0.1))"},
	{628, 24, 'd', "000000000000f03f000000000000f0bf000000000000e03f", "{1,-1,0.5}"}, /* line */
	{718, 24, 'd', "000000000000f03f00000000000000400000000000000840", "<(1,2),3>"},  /* circle */
	{829, 6, 'i', "08002b010203", "08:00:2b:01:02:03"},                               /* macaddr */
	{774, 8, 'i', "08002b0102030405", "08:00:2b:01:02:03:04:05"},                     /* macaddr8 */
	{869, -1, 'i', "27036400000000000000000000ffff01020304", "::ffff:1.2.3.4/100"},   /* inet */
	{790, 8, 'd', "eb32a4f8ffffffff", "-$1,234,567.89"},                              /* money */
	{790, 8, 'd', "0000000000000080", "-$92,233,720,368,547,758.08"},                 /* money */
	{3220, 8, 'd', "48d874b316000000", "16/B374D848"},                                /* pg_lsn */
	{27, 6, 's', "ffffffff0700", "(4294967295,7)"},                                   /* tid */
	{5069, 8, 'd', "ffffffffffffffff", "18446744073709551615"},                       /* xid8 */
	/* int2vector */
	{22, -1, 'i', "7800000001000000000000001500000003000000000000000100feffff7f", "1 -2 32767"},
	/* oidvector */
	{30, -1, 'i', "8000000001000000000000001a000000020000000000000001000000ffffffff",
	 "1 4294967295"},
	{30, -1, 'i', "6000000001000000000000001a0000000000000000000000", ""}, /* oidvector */
	/* xml */
	{142, -1, 'i',
	 "793c3f786d6c2076657273696f6e3d22312e302220656e636f64696e673d225554462d3822207374"
	 "616e64616c6f6e653d22796573223f3e3c612f3e",
	 "<?xml version=\"1.0\" standalone=\"yes\"?><a/>"},
	/* tsvector */
	{3614, -1, 'i', "4703000000060000000330000009800000625c5c630100020069742773020001c0ff3f",
	 "'b\\\\\\\\' 'c':2 'it''s':1A,16383"},
	/* tsquery */
	{3615, -1, 'i',
	 "280200000a0000000203000006000000000000000204010004000000000000000204030002000000"
	 "0000000001000000a57ada100180000001000000334add67016000000100000090dfb9f901400000"
	 "020100000100000000000000020200000200000000000000010c010006efbe8e0120000001000000"
	 "bcbeb7170100000061006200630064006500",
	 "!( 'a' & 'b':*AB ) | 'c' <-> ( 'd' <3> 'e' )"},
	{3615, -1, 'i', "2000000000000000", ""}, /* tsquery */
	/* jsonpath */
	{4072, -1, 'i',
	 "70030000010000001b00000008000000190000000e00000001000000610017003e00000002000000"
	 "1a000000000000002800000036000000020000000000000018000000008002000000000020000000"
	 "0080010028000000000000001d000000780000000c00000004000000000000001000000046000000"
	 "0b0000000000000010000000260000001a0000000800000019000000000000000100000062000200"
	 "00000000280000008080010088130600000000000a0000002a000000000000000100000017000000"
	 "020000005e78001a000000001f00000000000000",
	 "strict $.\"a\"[0,1 to last]?(@.\"b\" > 1.5 && !(@ like_regex \"^x\" flag \"i\")).type()"},
	/* jsonpath */
	{4072, -1, 'i',
	 "60020000010000801000000000000000100000008000000014000000000000000c0000000e000000"
	 "000000001000000020000000020000000000000020000000008001001b0000000800000019000000"
	 "0e0000000100000078002e00000000000e0000001e00000002000000000000002000000000800500"
	 "0200000000000000200000000080020002000000000000002000000000800200",
	 "(-(1 + $.\"x\".decimal(5,2)) * 2)"},
	{3904, -1, 'i', "1d400f0000010000000500000002", "[1,5)"}, /* int4range */
	{3906, -1, 'i', "1b420f00000f0081010088130c", "(,1.50]"}, /* numrange */
	{3908, -1, 'd', "0d440f000001", "empty"},                 /* tsrange */
	/* int4multirange */
	{4451, -1, 'i',
	 "53631100000300000008000000080000000202120001000000030000000500000007000000090000"
	 "00",
	 "{[1,3),[5,7),[9,)}"},
	/* textmultirange */
	{30011, -1, 'i', "3b60540000020000000400000002020000056105620963206405650000",
	 "{[a,b),[\"c d\",e)}"},
	{4451, -1, 'i', "136311000000000000", "{}"}, /* int4multirange */
	/* pair */
	{30020, -1, 'd',
	 "51205d94026b54000000000000fcff0300020c18000100156120227122202878290f008101008813",
	 "(1,\"a \"\"q\"\" (x)\",1.50)"},
	{30020, -1, 'd', "2d205d94026b54000000000000fcff0300030c180203", "(,\"\",)"}, /* pair */
	/* pair[] */
	{30021, -1, 'd',
	 "8b01000000200000006b5400000200000001000000010000000000000084000000205d94026b5400"
	 "0000000000fcff0300020c1800010005780b0080020000000000000000",
	 "{\"(1,x,2)\",NULL}"},
	/* ints[] */
	{30031, -1, 'i',
	 "9b01000000200000006d540000030000000100000003000000000000008000000001000000000000"
	 "00170000000200000001000000010000000200000040000000000000000000000017000000",
	 "{\"{1,2}\",\"{}\",NULL}"},
	/* ltree */
	{30041, -1, 'i', "3b03000000010061000000000003004263640000000100650000000000", "a.Bcd.e"},
	/* lquery */
	{30042, -1, 'i',
	 "db0300000001000000000000003000170002000000000000000000000043beb7e801000061000000"
	 "0000000000f9efbe7101000762000000000000000010000000000002000500000000000000200020"
	 "000100000003000000000000006fdfb906010000630000000000000000",
	 "!a|b%@*.*{2,5}.c{,3}"},
	/* ltxtquery */
	{30043, -1, 'i',
	 "a706000000030005002600000000000000030001002100000000000000030002007c000000000000"
	 "00020000006fdfb9060201040002000000f9efbe71010102000200000043beb7e800010000610062"
	 "006300",
	 "a & !( b* | c@ )"},
	/* cube */
	{30044, -1, 'd',
	 "a000000002000000000000000000f03f000000000000044000000000000008400000000000000080",
	 "(1, 2.5),(3, -0)"},
	{30045, -1, 'i', "09416243", "AbC"}, /* citext */
};

/* ---- the catalog that they need ---- */

static struct ws_attr pair_attrs[] = {
	{.name = "i", .typid = 21, .attnum = 1, .len = 2, .align = 's'},
	{.name = "t", .typid = 25, .attnum = 2, .len = -1, .align = 'i'},
	{.name = "n", .typid = 1700, .attnum = 3, .len = -1, .align = 'i'}};
static struct ws_rel pair_rel = {.natts = 3, .attrs = pair_attrs};

#define TYPE(id, tt, al, ...)                                                                      \
	{                                                                                              \
		.oid = id, .typtype = tt, .len = -1, .align = al, .delim = ',', __VA_ARGS__                \
	}
#define INNER         .out_lib = "", .out_sym = "array_out"
#define EXT(lib, sym) .out_lib = "$libdir/" lib, .out_sym = sym
static struct ws_type types[] = {
	TYPE(3904, 'r', 'i', .subtype = 23, INNER), TYPE(3906, 'r', 'i', .subtype = 1700, INNER),
	TYPE(3908, 'r', 'd', .subtype = 1114, INNER), TYPE(4451, 'm', 'i', .subtype = 3904, INNER),
	TYPE(30010, 'r', 'i', .subtype = 25, INNER), TYPE(30011, 'm', 'i', .subtype = 30010, INNER),
	TYPE(30020, 'c', 'd', .relid = 1, .row = &pair_rel, INNER),
	TYPE(30021, 'b', 'd', .elem = 30020, INNER), TYPE(30030, 'd', 'i', .base = 1007, INNER),
	TYPE(30031, 'b', 'i', .elem = 30030, INNER), TYPE(30040, 'b', 'i', EXT("hstore", "hstore_out")),
	TYPE(30041, 'b', 'i', EXT("ltree", "ltree_out")),
	TYPE(30042, 'b', 'i', EXT("ltree", "lquery_out")),
	TYPE(30043, 'b', 'i', EXT("ltree", "ltxtq_out")),
	TYPE(30044, 'b', 'd', EXT("cube", "cube_out")),
	TYPE(30045, 'b', 'i', .out_lib = "", .out_sym = "textout"),
	TYPE(30046, 'b', 'i', EXT("vector", "vector_out")),
	TYPE(30047, 'b', 'i', EXT("other", "hstore_out")),
	/* what is not decoded, and what has it inside */
	TYPE(30050, 'r', 'i', .subtype = 2205, INNER), TYPE(30051, 'r', 'i', .subtype = 30050, INNER),
	TYPE(30052, 'm', 'i', .subtype = 25, INNER), TYPE(30053, 'c', 'd', .relid = 2, INNER),
	TYPE(30054, 'b', 'i', .elem = 30054, INNER), TYPE(30055, 'r', 'i', .subtype = 30055, INNER)};

static int
lookup(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *e)
{
	(void)arg, (void)e;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].oid == oid) {
			*t = &types[i];
			return 1;
		}
	return 0;
}

static struct ws_attr attr = {.name = "c", .attnum = 1, .typname = "t"};
static struct ws_rel rel = {.nspname = "s", .name = "r", .attrs = &attr, .natts = 1};

static struct ws_heapdesc *
desc_of(const struct sample *s)
{
	struct ws_err err;

	attr.typid = s->typid;
	attr.len = s->len;
	attr.align = s->align;
	struct ws_heapdesc *d = ws_heapdesc_new(&rel, lookup, NULL, &err);

	assert_non_null(d);
	return d;
}

/* The bytes are a heap block of their own, so that a sanitizer sees each one too far. */
static int
decode(struct ws_heapdesc *d, const uint8_t *p, size_t n, struct ws_value *v, uint8_t **body)
{
	const struct ws_heapenv env = {.arena = &arena};
	struct ws_err err;

	*body = malloc(n + 1);
	**body = 0;
	memcpy(*body + 1, p, n);
	const struct ws_tuple t = {*body, (uint32_t)n + 1, 1, 0, 24};

	return ws_heap_decode(d, &t, 0, &env, v, &err);
}

static size_t
unhex(const char *s, uint8_t *out)
{
	size_t n = strlen(s) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned b;

		assert_int_equal(sscanf(s + 2 * i, "%2x", &b), 1);
		out[i] = (uint8_t)b;
	}
	return n;
}

static void
test_samples(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		const struct sample *s = &samples[i];
		struct ws_heapdesc *d = desc_of(s);
		struct ws_buf text = {0}, one = {0}, two = {0};
		struct ws_value v, w;
		struct ws_err err;
		uint8_t raw[512], *body;

		if (decode(d, raw, unhex(s->hex, raw), &v, &body) != 0)
			fail_msg("type %u %s: refused", s->typid, s->text);
		ws_value_text(&v, &text);
		assert_string_equal(ws_buf_cstr(&text), s->text);
		/* By text comes the same value. */
		assert_int_equal(ws_value_from_text(v.kind, d->cols[0].type.elem, s->text, strlen(s->text),
											&arena, &w, &err),
						 0);
		ws_value_put(&one, &v);
		ws_value_put(&two, &w);
		assert_int_equal(one.len, two.len);
		assert_memory_equal(one.data, two.data, one.len);
		free(body);
		ws_buf_free(&text);
		ws_buf_free(&one);
		ws_buf_free(&two);
		ws_heapdesc_free(d);
		ws_arena_reset(&arena);
	}
}

static void
try(struct ws_heapdesc *d, const uint8_t *p, size_t n)
{
	struct ws_buf text = {0};
	struct ws_value v;
	uint8_t *body;

	if (decode(d, p, n, &v, &body) == 0 && v.state == WS_V_VALUE)
		ws_value_text(&v, &text);
	free(body);
	ws_buf_free(&text);
	/* No damage makes much of little. */
	assert_true(arena.total < 4 << 20);
	ws_arena_reset(&arena);
}

static void
test_damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		const struct sample *s = &samples[i];
		struct ws_heapdesc *d = desc_of(s);
		uint8_t raw[512], cut[512];
		size_t n = unhex(s->hex, raw);

		for (size_t k = 1; k < n; k++) {
			memcpy(cut, raw, n);
			if (s->len < 0 && n < 127)
				cut[0] = (uint8_t)(k << 1 | 1);
			try(d, cut, k);
		}
		for (size_t k = s->len < 0; k < n; k++)
			for (unsigned x = 1; x < 256; x += x < 16 || x > 250 ? 1 : 17) {
				memcpy(cut, raw, n);
				cut[k] ^= (uint8_t)x;
				try(d, cut, n);
			}
		ws_heapdesc_free(d);
	}
}

static void
kind_is(ws_oid typid, enum ws_kind kind, enum ws_kind elem, bool reg)
{
	struct ws_heaptype t;
	struct ws_err err;

	assert_int_equal(ws_heaptype_of(typid, lookup, NULL, &arena, &t, &err), 0);
	if (t.kind != kind || t.elem != elem || t.reg != reg)
		fail_msg("type %u: kind %d of %d, reg %d", typid, t.kind, t.elem, t.reg);
}

static void
test_kinds(void **state)
{
	(void)state;
	kind_is(30010, WS_K_OTHER, 0, false);
	kind_is(30021, WS_K_ARRAY, WS_K_OTHER, false);
	kind_is(30031, WS_K_ARRAY, WS_K_OTHER, false);
	kind_is(1020, WS_K_OTHER, 0, false); /* box[]: its delimiter is ; */
	kind_is(1017, WS_K_ARRAY, WS_K_OTHER, false);
	kind_is(30045, WS_K_TEXT, 0, false);
	kind_is(30046, WS_K_OTHER, 0, false);
	kind_is(28, WS_K_OID, 0, false);
	kind_is(5069, WS_K_NUMERIC, 0, false);
	kind_is(2205, WS_K_OID, 0, true);
	kind_is(2210, WS_K_ARRAY, WS_K_OID, true);
	/* Within a value a name would be needed; another library; a row without attributes; loops. */
	static const ws_oid not [] = {30050, 30051, 30052, 30047, 30053,
								  30054, 30055, 1033,  2970,  30099};

	for (size_t i = 0; i < sizeof not / sizeof not [0]; i++)
		kind_is(not [i], WS_K_UNSUPPORTED, 0, false);
}

/* Attributes that were dropped, and that came later. */
static void
test_row_shapes(void **state)
{
	static const char hex[] =
		"5108e78a022b53000000000000fcff0300020c18000100156120227122202878290f008101008813";
	struct ws_attr changed[] = {pair_attrs[0],
								pair_attrs[1],
								pair_attrs[2],
								{.name = "l", .typid = 25, .attnum = 4, .len = -1, .align = 'i'},
								{.name = "m",
								 .typid = 23,
								 .attnum = 5,
								 .len = 4,
								 .align = 'i',
								 .flags = WS_ATT_MISSING,
								 .missing = "7 8"}};
	struct ws_rel row = {.natts = 5, .attrs = changed};
	static const struct sample s = {30020, -1, 'd', hex, ""};
	struct ws_buf text = {0};
	struct ws_value v;
	uint8_t raw[64], *body;
	size_t n = unhex(hex, raw);

	(void)state;
	changed[1].typid = 0;
	changed[1].flags = WS_ATT_DROPPED;
	types[6].row = &row;
	struct ws_heapdesc *d = desc_of(&s);

	assert_int_equal(decode(d, raw, n, &v, &body), 0);
	ws_value_text(&v, &text);
	assert_string_equal(ws_buf_cstr(&text), "(1,1.50,,\"7 8\")");
	free(body);
	ws_heapdesc_free(d);
	/* Fewer attributes than the value has. */
	row.natts = 2;
	d = desc_of(&s);
	assert_int_equal(decode(d, raw, n, &v, &body), -1);
	free(body);
	ws_heapdesc_free(d);
	types[6].row = &pair_rel;
	ws_buf_free(&text);
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples),
									   cmocka_unit_test(test_damage), cmocka_unit_test(test_kinds),
									   cmocka_unit_test(test_row_shapes)};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
