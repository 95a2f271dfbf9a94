/* lib/change: what the writer writes the reader reads, in any chunking; every cut and every
 * flipped byte gives an event or an error, never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/change.h"

static struct ws_c_column cols[] = {
    {.name = "id", .attnum = 1, .kind = WS_K_INT8, .flags = WS_COL_PKEY | WS_COL_IDENTITY | WS_COL_NOTNULL, .typid = 20, .typmod = -1, .typname = "bigint"},
    {.name = "v", .attnum = 3, .kind = WS_K_TEXT, .flags = WS_COL_MISSING, .typid = 25, .typmod = -1, .typname = "text", .missing = "none"},
    {.name = "f", .attnum = 4, .kind = WS_K_FLOAT4, .typid = 700, .typmod = -1, .typname = "real"},
    {.name = "b", .attnum = 5, .kind = WS_K_BOOL, .typid = 16, .typmod = -1, .typname = "boolean"},
    {.name = "u", .attnum = 6, .kind = WS_K_UUID, .typid = 2950, .typmod = -1, .typname = "uuid"},
};
static struct ws_c_relation rel = {.handle = 1, .oid = 16385, .relkind = 'r', .replident = 'd', .nspname = "public",
                                   .name = "t", .root_nspname = "", .root_name = "", .lsn = 77, .ncols = 5, .cols = cols};

static void
put(struct ws_buf *b, struct ws_change c)
{
	ws_change_put(b, &c);
}

static void
make_stream(struct ws_buf *b)
{
	static const uint8_t uuid[16] = {1, 2, 3};
	struct ws_value v[5] = {{.state = WS_V_VALUE, .kind = WS_K_INT8, .i = -5},
	                        {.state = WS_V_VALUE, .kind = WS_K_TEXT, .len = 3, .p = (const uint8_t *)"abc"},
	                        {.state = WS_V_VALUE, .kind = WS_K_FLOAT4, .f4 = 1.5f},
	                        {.state = WS_V_NULL, .kind = WS_K_BOOL},
	                        {.state = WS_V_VALUE, .kind = WS_K_UUID, .p = uuid}};
	struct ws_value key[5] = {{.state = WS_V_VALUE, .kind = WS_K_INT8, .i = 1}};
	uint32_t handles[1] = {1};

	for (int i = 1; i < 5; i++)
		key[i].state = WS_V_ABSENT;
	ws_change_put_header(b);
	put(b, (struct ws_change){.type = WS_C_IDENTITY, .identity = {1234567, 1, 5, 17, "db", "UTF8"}});
	put(b, (struct ws_change){.type = WS_C_RELATION, .relation = &rel});
	put(b, (struct ws_change){.type = WS_C_SNAPSHOT_BEGIN, .snapshot = {1, 90, 1, 0, true}});
	ws_change_put_row(b, 'I', 1, 0, 5, v, NULL, false);
	put(b, (struct ws_change){.type = WS_C_SNAPSHOT_END, .snapshot = {1, 90, 1, 1, true}});
	put(b, (struct ws_change){.type = WS_C_PROGRESS, .progress = {1, 95}});
	put(b, (struct ws_change){.type = WS_C_BEGIN, .begin = {7, 100, 140, 1, 0}});
	ws_change_put_row(b, 'I', 1, 1, 5, v, NULL, false);
	ws_change_put_row(b, 'U', 1, 2, 5, v, key, false);
	ws_change_put_row(b, 'D', 1, 3, 5, NULL, v, true);
	put(b, (struct ws_change){.type = WS_C_TRUNCATE, .truncate = {4, WS_TRUNCATE_CASCADE, 1, handles}});
	put(b, (struct ws_change){.type = WS_C_REPLACE_BEGIN, .replace = {5, 1}});
	put(b, (struct ws_change){.type = WS_C_REPLACE_END, .replace = {6, 1}});
	put(b, (struct ws_change){.type = WS_C_MESSAGE, .message = {7, true, 99, "pfx", (const uint8_t *)"a\0b", 3}});
	put(b, (struct ws_change){.type = WS_C_SCHEMA, .schema = {8, 'D', 16385, 1, 0}});
	put(b, (struct ws_change){.type = WS_C_COMMIT, .commit = {7, 100, 140, 1, 8}});
	put(b, (struct ws_change){.type = WS_C_SEQUENCE, .sequence = {0, 150, 9, "public", "s", 33, true}});
	put(b, (struct ws_change){.type = WS_C_TIMELINE, .timeline = {1, 2, 160}});
	put(b, (struct ws_change){.type = WS_C_END, .end = {2, 200}});
}

/* Reads all, fed in pieces of step bytes; the events' types go to got.  1 complete, 0 cut, -1. */
static int
read_all(const uint8_t *p, size_t n, size_t step, char *got, size_t room)
{
	struct ws_change_reader *r = ws_change_reader_new();
	struct ws_change c;
	struct ws_err err = {0};
	size_t k = 0;
	int rc = 0;

	for (size_t at = 0; at < n && rc >= 0; at += step) {
		size_t m = n - at < step ? n - at : step;

		memcpy(ws_change_reader_room(r, m), p + at, m);
		ws_change_reader_fed(r, m);
		while ((rc = ws_change_next(r, &c, &err)) == 1)
			if (k + 1 < room)
				got[k++] = (char)c.type;
	}
	got[k] = 0;
	if (rc == 0)
		rc = ws_change_ended(r);
	ws_change_reader_free(r);
	return rc;
}

static void
test_chunks(void **state)
{
	struct ws_buf b = {0};
	char got[64];

	(void)state;
	make_stream(&b);
	for (size_t step = 1; step <= b.len; step += step < 64 ? 1 : 97) {
		assert_int_equal(read_all(b.data, b.len, step, got, sizeof got), 1);
		assert_string_equal(got, "IRNWnKBWWWTPpMSCQLE");
	}
	ws_buf_free(&b);
}

static void
test_values(void **state)
{
	struct ws_buf b = {0};
	struct ws_change_reader *r = ws_change_reader_new();
	struct ws_change c;
	struct ws_err err = {0};
	int rows = 0;

	(void)state;
	make_stream(&b);
	memcpy(ws_change_reader_room(r, b.len), b.data, b.len);
	ws_change_reader_fed(r, b.len);
	while (ws_change_next(r, &c, &err) == 1) {
		if (c.type != WS_C_ROW)
			continue;
		rows++;
		assert_string_equal(c.row.rel->name, "t");
		if (c.row.new_) {
			assert_int_equal(c.row.new_[0].i, -5);
			assert_int_equal(c.row.new_[1].len, 3);
			assert_memory_equal(c.row.new_[1].p, "abc", 3);
			assert_true(c.row.new_[2].f4 == 1.5f);
			assert_int_equal(c.row.new_[3].state, WS_V_NULL);
			assert_int_equal(c.row.new_[4].p[2], 3);
		}
		if (c.row.op == 'U') {
			assert_int_equal(c.row.old[0].i, 1);
			assert_int_equal(c.row.old[1].state, WS_V_ABSENT);
		}
	}
	assert_int_equal(rows, 4);
	assert_true(ws_change_ended(r));
	ws_change_reader_free(r);
	ws_buf_free(&b);
}

static void
test_damage(void **state)
{
	struct ws_buf b = {0};
	char got[64];

	(void)state;
	make_stream(&b);
	for (size_t n = 0; n < b.len; n++)
		assert_int_not_equal(read_all(b.data, n, 4096, got, sizeof got), 1);
	for (size_t i = 0; i < b.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			b.data[i] ^= (uint8_t)(1 << bit);
			read_all(b.data, b.len, 4096, got, sizeof got);
			b.data[i] ^= (uint8_t)(1 << bit);
		}
	ws_buf_free(&b);
}

static void
expect_bad(struct ws_change first, struct ws_change second)
{
	struct ws_buf b = {0};
	char got[64];

	ws_change_put_header(&b);
	put(&b, (struct ws_change){.type = WS_C_IDENTITY, .identity = {1, 1, 5, 17, "db", "UTF8"}});
	put(&b, (struct ws_change){.type = WS_C_RELATION, .relation = &rel});
	put(&b, first);
	put(&b, second);
	assert_int_equal(read_all(b.data, b.len, b.len, got, sizeof got), -1);
	ws_buf_free(&b);
}

static void
test_order(void **state)
{
	struct ws_change begin = {.type = WS_C_BEGIN, .begin = {7, 100, 140, 1, 0}};
	struct ws_change progress = {.type = WS_C_PROGRESS, .progress = {1, 95}};
	struct ws_change end = {.type = WS_C_END, .end = {1, 95}};

	(void)state;
	expect_bad(begin, begin);
	expect_bad(begin, progress);
	expect_bad(begin, end);
	expect_bad(begin, (struct ws_change){.type = WS_C_COMMIT, .commit = {8, 100, 140, 1, 0}});
	expect_bad(progress, (struct ws_change){.type = WS_C_COMMIT, .commit = {7, 100, 140, 1, 0}});
	expect_bad(progress, (struct ws_change){.type = WS_C_REPLACE_BEGIN, .replace = {1, 1}});
	expect_bad(begin, (struct ws_change){.type = WS_C_REPLACE_BEGIN, .replace = {1, 2}});
	expect_bad(progress, (struct ws_change){.type = WS_C_SNAPSHOT_END, .snapshot = {1, 1, 1, 1, true}});
	expect_bad(progress, (struct ws_change){.type = WS_C_RELATION, .relation = &rel});
	expect_bad(end, progress);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_chunks), cmocka_unit_test(test_values),
	                                   cmocka_unit_test(test_damage), cmocka_unit_test(test_order)};

	return cmocka_run_group_tests_name("change", tests, NULL, NULL);
}
