/* lib/heap: tuples by a shape: alignment, NULLs, dropped and missing attributes, keys, TOAST,
 * damage.  Values of every type against a server are in tests/it/070-types.t. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <lz4.h>

#include "ws/cursor.h"
#include "ws/heap.h"

static struct ws_arena arena;
static struct ws_err err;

/* A relation: one letter a column: b bool, 2 4 8 ints, t text, n numeric, d dropped text,
 * x unknown varlena, e enum, a int4[], j jsonb. */
static struct ws_attr attrs[64];
static struct ws_rel rel = {.nspname = "public", .name = "t", .attrs = attrs};
static struct ws_enum_label labels[] = {{100, "one"}, {104, "two"}, {102, "between"}};
static struct ws_type mood = {.oid = 20000, .typtype = 'e', .len = 4, .nlabels = 3, .labels = labels, .out_lib = "", .out_sym = "enum_out"};
static struct ws_type dom = {.oid = 20001, .typtype = 'd', .base = 20002, .len = 4, .out_lib = "", .out_sym = "domain"};
static struct ws_type dom2 = {.oid = 20002, .typtype = 'd', .base = 20000, .len = 4, .out_lib = "", .out_sym = "domain"};
static struct ws_type loop = {.oid = 20003, .typtype = 'd', .base = 20003, .len = 4, .out_lib = "", .out_sym = ""};
static struct ws_type moods = {.oid = 20004, .typtype = 'b', .elem = 20001, .len = -1, .delim = ',', .align = 'i', .out_lib = "", .out_sym = "array_out"};

static int
lookup(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *e)
{
	const struct ws_type *all[] = {&mood, &dom, &dom2, &loop, &moods};

	(void)arg, (void)e;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i]->oid == oid) {
			*t = all[i];
			return 1;
		}
	return 0;
}

static struct ws_heapdesc *
make(const char *cols)
{
	static const struct {
		char c;
		ws_oid typid;
		int16_t len;
		char align;
	} map[] = {{'b', 16, 1, 'c'},   {'2', 21, 2, 's'},     {'4', 23, 4, 'i'},     {'8', 20, 8, 'd'},   {'t', 25, -1, 'i'},
	           {'n', 1700, -1, 'i'}, {'d', 0, -1, 'i'},     {'x', 30000, -1, 'd'}, {'e', 20001, 4, 'i'}, {'a', 1007, -1, 'i'},
	           {'j', 3802, -1, 'i'}, {'D', 0, 8, 'd'},      {'u', 2950, 16, 'c'},  {'l', 20003, 4, 'i'}, {'A', 20004, -1, 'i'},
	           {'c', 30001, -2, 'c'}};

	memset(attrs, 0, sizeof attrs);
	rel.natts = (int)strlen(cols);
	for (int i = 0; i < rel.natts; i++) {
		attrs[i] = (struct ws_attr){.name = "c", .attnum = (int16_t)(i + 1), .typname = "type"};
		for (size_t k = 0; k < sizeof map / sizeof map[0]; k++)
			if (map[k].c == cols[i]) {
				attrs[i].typid = map[k].typid;
				attrs[i].len = map[k].len;
				attrs[i].align = map[k].align;
			}
		if (!attrs[i].typid)
			attrs[i].flags = WS_ATT_DROPPED;
	}
	struct ws_heapdesc *d = ws_heapdesc_new(&rel, lookup, NULL, &err);

	assert_non_null(d);
	return d;
}

/* Tuples are exactly as large as they are, so that a sanitizer sees each byte too far. */
static struct ws_tuple
tuple(uint16_t natts, const char *bitmap, const void *data, size_t n)
{
	size_t bits = bitmap ? (natts + 7u) / 8 : 0, hoff = (23 + bits + 7) & ~(size_t)7;
	uint8_t *body = calloc(1, hoff - 23 + n);

	for (size_t i = 0; i < natts && bitmap; i++)
		if (bitmap[i] == '1')
			body[i / 8] |= (uint8_t)(1u << i % 8);
	memcpy(body + hoff - 23, data, n);
	return (struct ws_tuple){body, (uint32_t)(hoff - 23 + n), natts, bitmap ? 1 : 0, (uint8_t)hoff};
}

static int
decode(struct ws_heapdesc *d, struct ws_tuple t, unsigned flags, struct ws_value *out)
{
	const struct ws_heapenv env = {.arena = &arena};

	return ws_heap_decode(d, &t, flags, &env, out, &err);
}

static void
is_text(const struct ws_value *v, const char *want)
{
	struct ws_buf b = {0};

	assert_int_equal(v->state, WS_V_VALUE);
	ws_value_text(v, &b);
	assert_string_equal(ws_buf_cstr(&b), want);
	ws_buf_free(&b);
}

static void
test_layout(void **state)
{
	struct ws_heapdesc *d = make("b284t4t");
	struct ws_value v[8];
	/* bool, pad, int2, pad 4, int8, int4, short text "hi", pad 1, int4, long text "x" */
	static const uint8_t data[] = {1, 0, 2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0, 0, 0,
	                               7, 'h', 'i', 0, 5, 0, 0, 0, 20, 0, 0, 0, 'x'};
	struct ws_tuple t = tuple(7, NULL, data, sizeof data);

	(void)state;
	assert_int_equal(d->ncols, 7);
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[0], "t");
	is_text(&v[1], "2");
	is_text(&v[2], "-1");
	is_text(&v[3], "4");
	is_text(&v[4], "hi");
	is_text(&v[5], "5");
	is_text(&v[6], "x");
	/* The short text stands in the tuple itself. */
	assert_ptr_equal(v[4].p, t.body + t.hoff - 23 + 21);
	free((void *)t.body);
	/* Every shorter tuple is refused. */
	for (size_t n = 0; n < sizeof data; n++) {
		t = tuple(7, NULL, data, n);
		assert_int_equal(decode(d, t, 0, v), -1);
		assert_string_equal(err.reason, "corrupt_tuple");
		free((void *)t.body);
	}
	ws_heapdesc_free(d);
}

static void
test_nulls(void **state)
{
	struct ws_heapdesc *d = make("4t84t");
	struct ws_value v[8];
	static const uint8_t data[] = {1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, 'a'};
	struct ws_tuple t = tuple(5, "10101", data, sizeof data);

	(void)state;
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[0], "1");
	assert_int_equal(v[1].state, WS_V_NULL);
	is_text(&v[2], "8");
	assert_int_equal(v[3].state, WS_V_NULL);
	assert_int_equal(v[3].kind, WS_K_INT4);
	is_text(&v[4], "a");
	/* In a key tuple what is NULL is not there. */
	assert_int_equal(decode(d, t, WS_DECODE_KEY, v), 0);
	is_text(&v[0], "1");
	assert_int_equal(v[1].state, WS_V_ABSENT);
	assert_int_equal(v[3].state, WS_V_ABSENT);
	/* The bitmap must fit before the data. */
	t.hoff = 23;
	assert_int_equal(decode(d, t, 0, v), -1);
	t.hoff = 200;
	assert_int_equal(decode(d, t, 0, v), -1);
	t.hoff = 0;
	assert_int_equal(decode(d, t, 0, v), -1);
	free((void *)t.body);
	ws_heapdesc_free(d);
}

static void
test_missing(void **state)
{
	struct ws_heapdesc *d = make("4");
	struct ws_value v[8];
	static const uint8_t data[] = {1, 0, 0, 0};
	struct ws_tuple t = tuple(1, NULL, data, sizeof data);

	(void)state;
	ws_heapdesc_free(d);
	d = make("4tdnax");
	ws_heapdesc_free(d);
	attrs[1].flags |= WS_ATT_MISSING;
	attrs[1].missing = "old, times";
	attrs[3].flags |= WS_ATT_MISSING;
	attrs[3].missing = "1.50";
	attrs[4].flags |= WS_ATT_MISSING;
	attrs[4].missing = "{1,NULL}";
	d = ws_heapdesc_new(&rel, lookup, NULL, &err);
	assert_non_null(d);
	assert_int_equal(d->ncols, 5);
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[0], "1");
	is_text(&v[1], "old, times");
	is_text(&v[2], "1.50");
	is_text(&v[3], "{1,NULL}");
	assert_int_equal(v[4].state, WS_V_NULL);
	assert_int_equal(decode(d, t, WS_DECODE_KEY, v), 0);
	assert_int_equal(v[1].state, WS_V_ABSENT);
	ws_heapdesc_free(d);
	/* Of a type that is not decoded: only a tuple that needs it fails. */
	attrs[5].flags |= WS_ATT_MISSING;
	attrs[5].missing = "?";
	d = ws_heapdesc_new(&rel, lookup, NULL, &err);
	assert_non_null(d);
	assert_int_equal(decode(d, t, 0, v), -1);
	assert_string_equal(err.reason, "type_unsupported");
	ws_heapdesc_free(d);
	attrs[3].missing = "abc";
	assert_null(ws_heapdesc_new(&rel, lookup, NULL, &err));
	assert_string_equal(err.reason, "bad_value");
	free((void *)t.body);
	/* A tuple may not be wider than the relation. */
	d = make("4");
	t = tuple(2, NULL, "\1\0\0\0\2\0\0\0", 8);
	assert_int_equal(decode(d, t, 0, v), -1);
	free((void *)t.body);
	ws_heapdesc_free(d);
}

static void
test_dropped(void **state)
{
	struct ws_heapdesc *d = make("d4Dt");
	struct ws_value v[4];
	/* dropped text "old", int4 7, dropped int8, text "x" */
	static const uint8_t data[] = {9, 'o', 'l', 'd', 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 'x'};
	/* a dropped column that was external: only its pointer's size counts */
	uint8_t ext[18 + 2 + 4] = {1, 18, 100, 0, 0, 0, 50, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 7};
	struct ws_tuple t = tuple(4, NULL, data, sizeof data);

	(void)state;
	assert_int_equal(d->ncols, 2);
	assert_int_equal(d->cols[0].attnum, 2);
	assert_int_equal(d->cols[1].attnum, 4);
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[0], "7");
	is_text(&v[1], "x");
	free((void *)t.body);
	t = tuple(4, "0101", "\7\0\0\0\5x", 6);
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[0], "7");
	is_text(&v[1], "x");
	free((void *)t.body);
	ws_heapdesc_free(d);
	d = make("d4");
	t = tuple(2, NULL, ext, sizeof ext);
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[0], "7");
	free((void *)t.body);
	ws_heapdesc_free(d);
}

static void
test_types(void **state)
{
	struct ws_heaptype t;

	(void)state;
	assert_int_equal(ws_heaptype_of(20001, lookup, NULL, &arena, &t, &err), 0);
	assert_int_equal(t.kind, WS_K_OTHER);
	assert_ptr_equal(t.enum_, &mood);
	assert_int_equal(ws_heaptype_of(20004, lookup, NULL, &arena, &t, &err), 0);
	assert_int_equal(t.kind, WS_K_ARRAY);
	assert_int_equal(t.elem, WS_K_OTHER);
	assert_ptr_equal(t.enum_, &mood);
	assert_int_equal(ws_heaptype_of(20003, lookup, NULL, &arena, &t, &err), 0);
	assert_int_equal(t.kind, WS_K_UNSUPPORTED);
	assert_int_equal(ws_heaptype_of(1033, NULL, NULL, &arena, &t, &err), 0); /* aclitem */
	assert_int_equal(t.kind, WS_K_UNSUPPORTED);
	assert_int_equal(ws_heaptype_of(1231, NULL, NULL, &arena, &t, &err), 0);
	assert_int_equal(t.kind, WS_K_ARRAY);
	assert_int_equal(t.elem, WS_K_NUMERIC);
	struct ws_heapdesc *d = make("exc");
	struct ws_value v[3];
	static const uint8_t data[] = {102, 0, 0, 0, 7, 0xfe, 0xff, 'z', 0};
	struct ws_tuple tup = tuple(3, NULL, data, sizeof data);

	assert_int_equal(decode(d, tup, 0, v), 0);
	is_text(&v[0], "between");
	is_text(&v[1], "\\xfeff");
	is_text(&v[2], "\\x7a");
	assert_int_equal(d->cols[1].unsupported, 1);
	assert_int_equal(d->cols[2].unsupported, 1);
	free((void *)tup.body);
	tup = tuple(1, NULL, "\1\0\0\0", 4); /* no such label */
	assert_int_equal(decode(d, tup, 0, v), -1);
	free((void *)tup.body);
	ws_heapdesc_free(d);
}

struct chunks {
	const uint8_t *data;
	struct ws_toast_ptr seen;
	int rc;
};

static int
give(void *arg, const struct ws_toast_ptr *p, struct ws_arena *a, const uint8_t **data, struct ws_err *e)
{
	struct chunks *c = arg;

	(void)a, (void)e;
	c->seen = *p;
	*data = c->data;
	return c->rc;
}

static void
test_toast(void **state)
{
	struct ws_heapdesc *d = make("t4");
	struct ws_value v[2];
	char raw[1000], packed[1100];
	uint8_t data[24] = {1, 18};
	struct chunks c = {.rc = 1};
	const struct ws_heapenv env = {.arena = &arena, .toast = give, .toast_arg = &c};

	(void)state;
	memset(raw, 'r', sizeof raw);
	ws_store32(packed, 1000 | 1u << 30);
	uint32_t ext = 4 + (uint32_t)LZ4_compress_default(raw, packed + 4, 1000, sizeof packed - 4);

	ws_store32(data + 2, 1000 + 4);
	ws_store32(data + 6, ext | 1u << 30);
	ws_store32(data + 10, 777);
	ws_store32(data + 14, 888);
	ws_store32(data + 20, 5);
	struct ws_tuple t = tuple(2, NULL, data, sizeof data);

	c.data = (uint8_t *)packed;
	assert_int_equal(ws_heap_decode(d, &t, 0, &env, v, &err), 0);
	assert_int_equal(c.seen.valueid, 777);
	assert_int_equal(c.seen.toastrelid, 888);
	assert_int_equal(c.seen.rawsize, 1000);
	assert_int_equal(c.seen.extsize, ext);
	assert_int_equal(c.seen.method, WS_COMPRESS_LZ4);
	assert_int_equal(v[0].len, 1000);
	assert_memory_equal(v[0].p, raw, 1000);
	is_text(&v[1], "5");
	c.rc = 0;
	assert_int_equal(ws_heap_decode(d, &t, 0, &env, v, &err), 0);
	assert_int_equal(v[0].state, WS_V_ABSENT);
	is_text(&v[1], "5");
	c.rc = 1;
	packed[0]++; /* the length inside differs from the pointer's */
	assert_int_equal(ws_heap_decode(d, &t, 0, &env, v, &err), -1);
	assert_int_equal(decode(d, t, 0, v), 0); /* nobody to ask */
	assert_int_equal(v[0].state, WS_V_ABSENT);
	free((void *)t.body);
	/* The same in line. */
	packed[0]--;
	uint8_t *inl = calloc(1, 4 + ext);

	ws_store32(inl, (4 + ext) << 2 | 2);
	memcpy(inl + 4, packed, ext);
	t = tuple(1, NULL, inl, 4 + ext);
	assert_int_equal(decode(d, t, 0, v), 0);
	assert_int_equal(v[0].len, 1000);
	free((void *)t.body);
	inl[4 + 3] |= 0x80; /* method 3 */
	t = tuple(1, NULL, inl, 4 + ext);
	assert_int_equal(decode(d, t, 0, v), -1);
	free((void *)t.body);
	free(inl);
	ws_heapdesc_free(d);
}

static void
one(const char *col, const void *bytes, size_t n, const char *want)
{
	struct ws_heapdesc *d = make(col);
	uint8_t data[256];
	struct ws_value v;

	ws_store32(data, (uint32_t)(n + 4) << 2);
	memcpy(data + 4, bytes, n);
	struct ws_tuple t = tuple(1, NULL, data, n + 4);
	int rc = decode(d, t, 0, &v);

	if (want) {
		assert_int_equal(rc, 0);
		is_text(&v, want);
	} else
		assert_int_equal(rc, -1);
	free((void *)t.body);
	ws_heapdesc_free(d);
	ws_arena_reset(&arena);
}

#define ONE(col, want, ...) \
	do { \
		static const uint8_t b_[] = {__VA_ARGS__}; \
		one(col, b_, sizeof b_, want); \
	} while (0)

static void
test_values(void **state)
{
	(void)state;
	ONE("n", "0", 0x00, 0x80);
	ONE("n", "0.00", 0x00, 0x81);
	ONE("n", "1", 0x00, 0x80, 1, 0);
	ONE("n", "-12345.6", 0x81, 0xa0, 1, 0, 0x29, 0x09, 0x70, 0x17);
	ONE("n", "0.0001", 0x7f, 0x82, 1, 0);
	ONE("n", "10000", 0x00, 0x00, 1, 0, 1, 0);
	ONE("n", "NaN", 0x00, 0xc0);
	ONE("n", "Infinity", 0x00, 0xd0);
	ONE("n", "-Infinity", 0x00, 0xf0);
	ONE("n", NULL, 0x00, 0xe0);
	ONE("n", NULL, 0x00);
	ONE("n", NULL, 0x00, 0x80, 1);
	ONE("n", NULL, 0x00, 0x80, 0x10, 0x27); /* digit 10000 */
	ONE("a", "{}", 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0);
	ONE("a", "{7}", 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0);
	ONE("a", "[0:1]={7,NULL}", 1, 0, 0, 0, 32, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0);
	ONE("a", NULL, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0);
	ONE("a", NULL, 7, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0);
	ONE("a", NULL, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0);
	ONE("A", "{one,NULL}", 1, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0);
	ONE("j", "{}", 0, 0, 0, 0x20);
	ONE("j", "[]", 0, 0, 0, 0x40);
	ONE("j", "null", 1, 0, 0, 0x50, 0, 0, 0, 0x40);
	ONE("j", "[\"a\\\"\", true]", 2, 0, 0, 0x40, 2, 0, 0, 0x80, 0, 0, 0, 0x30, 'a', '"');
	ONE("j", "{\"k\": 1}", 1, 0, 0, 0x20, 1, 0, 0, 0, 0x0b, 0, 0, 0x10, 'k', 0, 0, 0, 32, 0, 0, 0, 0, 0x80, 1, 0);
	ONE("j", "[[], {}]", 2, 0, 0, 0x40, 4, 0, 0, 0x50, 4, 0, 0, 0x50, 0, 0, 0, 0x40, 0, 0, 0, 0x20);
	ONE("j", NULL, 0, 0, 0, 0x60);                                       /* array and object */
	ONE("j", NULL, 1, 0, 0, 0x40);                                       /* no entry */
	ONE("j", NULL, 1, 0, 0, 0x40, 2, 0, 0, 0, 'a');                      /* beyond the end */
	ONE("j", NULL, 2, 0, 0, 0x40, 2, 0, 0, 0x80, 1, 0, 0, 0x80, 'a', 'b'); /* ends go back */
	ONE("j", NULL, 1, 0, 0, 0x20, 1, 0, 0, 0x40, 0, 0, 0, 0x40, 'k');    /* key is no string */
	ONE("j", NULL, 1, 0, 0, 0x40, 0, 0, 0, 0x60);                        /* no such type */
	ONE("j", NULL, 0xff, 0xff, 0xff, 0x4f);
}

/* Any bit flipped anywhere: an answer or an error, and never a byte outside (for sanitizers). */
static void
test_damage(void **state)
{
	struct ws_heapdesc *d = make("4tnaj8");
	struct ws_value v[8];
	struct ws_buf out = {0};
	static const uint8_t good[] = {
	    1, 0, 0, 0, 5, 'a', 7, 0x00, 0x80, 0, 0, 0, 28 * 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
	    7, 0, 0, 0, 28 * 4, 0, 0, 0, 1, 0, 0, 0x20, 1, 0, 0, 0, 0x0b, 0, 0, 0x10, 'k', 0, 0, 0, 32, 0, 0, 0, 0, 0x80, 1, 0,
	    0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
	struct ws_tuple t = tuple(6, NULL, good, sizeof good);

	(void)state;
	assert_int_equal(decode(d, t, 0, v), 0);
	is_text(&v[2], "0");
	is_text(&v[3], "{7}");
	is_text(&v[4], "{\"k\": 1}");
	is_text(&v[5], "9");
	free((void *)t.body);
	for (size_t bit = 0; bit < sizeof good * 8; bit++) {
		t = tuple(6, NULL, good, sizeof good);
		((uint8_t *)t.body)[t.hoff - 23 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (decode(d, t, 0, v) == 0)
			for (int i = 0; i < 6; i++)
				if (v[i].state == WS_V_VALUE)
					ws_value_text(&v[i], &out);
		free((void *)t.body);
		ws_arena_reset(&arena);
		out.len = 0;
	}
	ws_buf_free(&out);
	ws_heapdesc_free(d);
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
	    cmocka_unit_test(test_layout), cmocka_unit_test(test_nulls), cmocka_unit_test(test_missing),
	    cmocka_unit_test(test_dropped), cmocka_unit_test(test_types), cmocka_unit_test(test_toast),
	    cmocka_unit_test(test_values), cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests_name("heap-tuple", tests, NULL, teardown);
}
