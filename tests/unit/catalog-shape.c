/* lib/catalog/shape.c: relations and types survive encoding; no bytes whatever break the decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/shape.h"

static struct ws_attr attrs[] = {
    {"id", 23, -1, 1, 4, 'i', 'p', WS_ATT_NOTNULL | WS_ATT_BYVAL | WS_ATT_IDENTITY | WS_ATT_PKEY, "integer", NULL},
    {"........pg.dropped.2........", 0, -1, 2, -1, 'i', 'x', WS_ATT_DROPPED, "", NULL},
    {"näme \"q\"", 1043, 14, 3, -1, 'i', 'x', WS_ATT_MISSING, "character varying(10)", "it's\n\\new"},
    {"empty", 25, -1, 4, -1, 'i', 'x', WS_ATT_MISSING, "text", ""},
};
static int16_t ident[] = {3, 1}, pkey[] = {1};

static struct ws_rel
sample_rel(void)
{
	return (struct ws_rel){.db = 5, .oid = 16400, .lsn = 0x123456789abcdefull, .ns = 2200, .nspname = "public",
	                       .name = "t", .kind = 'r', .persistence = 'p', .replident = 'i', .filenode = 16500,
	                       .spc = 0, .toast = 16403, .parent = 1, .root = 2, .reltype = 16402, .natts = 4,
	                       .attrs = attrs, .nident = 2, .npkey = 1, .ident = ident, .pkey = pkey};
}

static struct ws_enum_label labels[] = {{16700, "sad"}, {16702, ""}, {16704, "happy"}};

static struct ws_type
sample_type(void)
{
	return (struct ws_type){.db = 5, .oid = 16699, .lsn = 77, .nspname = "public", .name = "mood",
	                        .typtype = 'e', .category = 'E', .len = 4, .byval = true, .align = 'i',
	                        .storage = 'p', .delim = ',', .elem = 1, .base = 2, .base_typmod = -1, .relid = 3,
	                        .subtype = 4, .out_lib = "$libdir/x", .out_sym = "enum_out", .nlabels = 3,
	                        .labels = labels};
}

static void
test_rel(void **state)
{
	struct ws_rel r = sample_rel(), *d;
	struct ws_buf b = {0}, again = {0};
	struct ws_err err = {0};

	(void)state;
	ws_rel_encode(&r, &b);
	d = ws_rel_decode(b.data, b.len, &err);
	assert_non_null(d);
	assert_int_equal(d->oid, 16400);
	assert_true(d->lsn == r.lsn);
	assert_string_equal(d->attrs[2].name, "näme \"q\"");
	assert_string_equal(d->attrs[2].missing, "it's\n\\new");
	assert_string_equal(d->attrs[3].missing, "");
	assert_null(d->attrs[0].missing);
	assert_int_equal(d->attrs[1].flags, WS_ATT_DROPPED);
	assert_int_equal(d->attrs[2].typmod, 14);
	assert_int_equal(d->attrs[1].len, -1);
	assert_int_equal(d->nident, 2);
	assert_int_equal(d->ident[0], 3);
	assert_int_equal(d->pkey[0], 1);
	ws_rel_encode(d, &again);
	assert_int_equal(again.len, b.len);
	assert_memory_equal(again.data, b.data, b.len);
	ws_rel_free(d);
	ws_buf_free(&b);
	ws_buf_free(&again);
}

static void
test_type(void **state)
{
	struct ws_type t = sample_type(), *d;
	struct ws_buf b = {0}, again = {0};
	struct ws_err err = {0};

	(void)state;
	ws_type_encode(&t, &b);
	d = ws_type_decode(b.data, b.len, &err);
	assert_non_null(d);
	assert_string_equal(d->labels[2].label, "happy");
	assert_int_equal(d->labels[1].oid, 16702);
	assert_string_equal(d->out_lib, "$libdir/x");
	assert_int_equal(d->base_typmod, -1);
	ws_type_encode(d, &again);
	assert_int_equal(again.len, b.len);
	assert_memory_equal(again.data, b.data, b.len);
	ws_type_free(d);
	ws_buf_free(&b);
	ws_buf_free(&again);
}

/* The bytes in an allocation of exactly their size, so that a sanitizer sees every overrun. */
static bool
decodes(bool rel, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct ws_err err = {0};
	bool ok;

	memcpy(copy, p, n);
	if (rel) {
		struct ws_rel *r = ws_rel_decode(copy, n, &err);

		ok = r != NULL;
		ws_rel_free(r);
	} else {
		struct ws_type *t = ws_type_decode(copy, n, &err);

		ok = t != NULL;
		ws_type_free(t);
	}
	assert_true(ok || (err.status == WS_EOPERATOR && !strcmp(err.reason, "catalog_corrupt")));
	free(copy);
	return ok;
}

static void
test_damage(void **state)
{
	struct ws_rel r = sample_rel();
	struct ws_type t = sample_type();
	unsigned seed = 1;

	(void)state;
	for (int rel = 0; rel < 2; rel++) {
		struct ws_buf b = {0};

		if (rel)
			ws_rel_encode(&r, &b);
		else
			ws_type_encode(&t, &b);
		for (size_t n = 0; n < b.len; n++)
			assert_false(decodes(rel, b.data, n));
		ws_buf_putc(&b, 0);
		assert_false(decodes(rel, b.data, b.len));
		b.len--;
		for (size_t i = 0; i < b.len; i++)
			for (int bit = 0; bit < 8; bit++) {
				b.data[i] ^= (uint8_t)(1 << bit);
				decodes(rel, b.data, b.len);
				b.data[i] ^= (uint8_t)(1 << bit);
			}
		for (int round = 0; round < 20000; round++) {
			struct ws_buf m = {0};

			ws_buf_put(&m, b.data, b.len);
			for (int k = 0; k < 4; k++)
				m.data[(unsigned)rand_r(&seed) % m.len] = (uint8_t)rand_r(&seed);
			decodes(rel, m.data, (unsigned)rand_r(&seed) % (m.len + 1));
			decodes(rel, m.data, m.len);
			ws_buf_free(&m);
		}
		ws_buf_free(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rel),
	    cmocka_unit_test(test_type),
	    cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests_name("catalog-shape", tests, NULL, NULL);
}
