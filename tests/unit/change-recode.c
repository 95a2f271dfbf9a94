/* lib/change: a reader that wants UTF-8: texts, arrays of texts, names and labels of other
 * encodings, what is not valid in them, and what is none of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/change.h"

static const char *labels[] = {"gr\xfcn", "rot"};
static struct ws_c_column cols[] = {
	{.name = "k",
	 .attnum = 1,
	 .kind = WS_K_TEXT,
	 .flags = WS_COL_PKEY | WS_COL_IDENTITY,
	 .typid = 25,
	 .typname = "text"},
	{.name = "gr\xf6\xdf"
			 "e",
	 .attnum = 2,
	 .kind = WS_K_OTHER,
	 .flags = WS_COL_MISSING,
	 .typid = 9,
	 .typname = "st\xfc"
				"ck",
	 .missing = "gr\xfcn",
	 .nlabels = 2,
	 .labels = labels},
	{.name = "a",
	 .attnum = 3,
	 .kind = WS_K_ARRAY,
	 .elem_kind = WS_K_TEXT,
	 .typid = 1009,
	 .typname = "text[]"},
	{.name = "b", .attnum = 4, .kind = WS_K_BYTES, .typid = 17, .typname = "bytea"},
	{.name = "i",
	 .attnum = 5,
	 .kind = WS_K_ARRAY,
	 .elem_kind = WS_K_INT4,
	 .typid = 1007,
	 .typname = "integer[]"},
};

struct got {
	struct ws_buf text; /* of everything, a line each */
	struct ws_err err;
	int rc;
};

static void
line(struct got *g, const char *s)
{
	ws_buf_puts(&g->text, s);
	ws_buf_putc(&g->text, '\n');
}

static void
take_row(struct got *g, const struct ws_c_row *row)
{
	for (int i = 0; i < row->rel->ncols; i++) {
		if (row->new_[i].state == WS_V_VALUE)
			ws_value_text(&row->new_[i], &g->text);
		ws_buf_putc(&g->text, '\n');
	}
}

/* A relation and one row, with these texts, in that encoding. */
static struct got
read_one(const char *encoding, const char *key, const char *other, const char *array,
		 uint16_t ncols)
{
	static const uint8_t raw[] = {0xff, 0xfe};
	struct ws_c_relation rel = {.handle = 1,
								.oid = 16385,
								.relkind = 'r',
								.replident = 'd',
								.nspname = "s",
								.name = "t\xe4",
								.root_nspname = "",
								.root_name = "",
								.ncols = ncols,
								.cols = cols};
	static struct ws_c_column plain[5];
	struct ws_arena a = {0};
	struct ws_value v[5] = {0};
	struct ws_buf b = {0};
	struct got g = {0};

	memcpy(plain, cols, sizeof plain);
	plain[1].name = plain[1].typname = "o";
	plain[1].flags = 0;
	plain[1].nlabels = 0;
	if (ncols < 5) {
		rel.name = "t";
		rel.cols = plain;
	}
	assert_int_equal(ws_value_from_text(WS_K_TEXT, 0, key, strlen(key), &a, &v[0], &g.err), 0);
	assert_int_equal(ws_value_from_text(WS_K_OTHER, 0, other, strlen(other), &a, &v[1], &g.err), 0);
	assert_int_equal(
		ws_value_from_text(WS_K_ARRAY, WS_K_TEXT, array, strlen(array), &a, &v[2], &g.err), 0);
	v[3] = (struct ws_value){.state = WS_V_VALUE, .kind = WS_K_BYTES, .len = 2, .p = raw};
	assert_int_equal(ws_value_from_text(WS_K_ARRAY, WS_K_INT4, "{-1,NULL}", 9, &a, &v[4], &g.err),
					 0);
	ws_change_put_header(&b);
	ws_change_put(&b, &(struct ws_change){.type = WS_C_IDENTITY,
										  .identity = {1, 1, 5, 17, "db\xe4", encoding}});
	ws_change_put(&b, &(struct ws_change){.type = WS_C_RELATION, .relation = &rel});
	ws_change_put(&b, &(struct ws_change){.type = WS_C_BEGIN, .begin = {7, 100, 140, 1, 0}});
	ws_change_put_row(&b, 'I', 1, 1, ncols, v, NULL, false);

	struct ws_change_reader *r = ws_change_reader_new();
	struct ws_change c;

	ws_change_reader_utf8(r);
	memcpy(ws_change_reader_room(r, b.len), b.data, b.len);
	ws_change_reader_fed(r, b.len);
	while ((g.rc = ws_change_next(r, &c, &g.err)) == 1) {
		if (c.type == WS_C_IDENTITY)
			line(&g, c.identity.dbname);
		if (c.type == WS_C_RELATION && ncols == 5) {
			line(&g, c.relation->name);
			line(&g, c.relation->cols[1].name);
			line(&g, c.relation->cols[1].missing);
			line(&g, c.relation->cols[1].labels[0]);
		}
		if (c.type == WS_C_ROW && c.row.invalid) {
			g.rc = ws_err_op(&g.err, "invalid_encoding", "%s", c.row.invalid);
			break;
		}
		if (c.type == WS_C_ROW)
			take_row(&g, &c.row);
	}
	ws_buf_cstr(&g.text);
	ws_change_reader_free(r);
	ws_buf_free(&b);
	ws_arena_free(&a);
	return g;
}

static void
gives(const char *encoding, const char *key, const char *other, const char *array, uint16_t ncols,
	  const char *want)
{
	struct got g = read_one(encoding, key, other, array, ncols);

	if (g.rc != 0)
		fail_msg("%s: %s", encoding, g.err.msg);
	assert_string_equal((char *)g.text.data, want);
	ws_buf_free(&g.text);
}

static void
stops(const char *encoding, const char *key, const char *other, const char *array,
	  const char *reason)
{
	struct got g = read_one(encoding, key, other, array, 1);

	if (g.rc == 0) {
		ws_buf_free(&g.text);
		g = read_one(encoding, key, other, array, 3);
	}
	assert_int_equal(g.rc, -1);
	assert_string_equal(g.err.reason, reason);
	ws_buf_free(&g.text);
}

static void
test_converted(void **state)
{
	(void)state;
	gives("LATIN1", "k\xe9", "\xa4", "[0:2]={\xff,NULL,\"a\xe4\\\"\"}", 5,
		  "dbä\ntä\ngröße\ngrün\ngrün\nké\n¤\n[0:2]={ÿ,NULL,\"aä\\\"\"}\n\\xfffe\n{-1,NULL}\n");
	gives("LATIN9", "a", "\xa4", "{}", 2, "dbä\na\n€\n");
	gives("EUC_JP", "\xc6\xfc\xcb\xdc", "\x8e\xb1", "{\x8f\xb0\xa1}", 3, "db\xe4\n日本\nｱ\n{丂}\n");
	gives("KOI8R", "\xf2\xd5\xd3", "x", "{}", 1, "db\xd0\x94\nРус\n");
	gives("WIN1251", "\xd0\xf3\xf1", "x", "{}", 1, "dbд\nРус\n");
}

static void
test_left_alone(void **state)
{
	(void)state;
	gives("UTF8", "k\xc3\xa9", "x", "{}", 2, "db\xe4\nké\nx\n");
	gives("SQL_ASCII", "k\xe9\xff", "\x80", "{\xff}", 3, "db\xe4\nk\xe9\xff\n\x80\n{\xff}\n");
}

static void
test_stops(void **state)
{
	(void)state;
	stops("EUC_JP", "\xc6", "x", "{}", "invalid_encoding"); /* cut */
	stops("EUC_JP", "x", "\xff\xff", "{}", "invalid_encoding");
	stops("EUC_JP", "x", "x", "{a,\xff}", "invalid_encoding");
	stops("WIN1252", "x", "\x81", "{}", "invalid_encoding"); /* no such character */
	stops("EUC_TW", "\x8e\xa1\xa4\xa1", "x", "{}",
		  "invalid_encoding"); /* a second form of another key */
	stops("MULE_INTERNAL", "x", "x", "{}", "encoding");
	stops("NOSUCH", "x", "x", "{}", "encoding");
}

/* Every encoding of PostgreSQL's servers is known to the C library here. */
static void
test_known(void **state)
{
	static const char *const all[] = {
		"EUC_JP",  "EUC_CN",     "EUC_KR",     "EUC_TW",     "EUC_JIS_2004", "LATIN1",  "LATIN2",
		"LATIN3",  "LATIN4",     "LATIN5",     "LATIN6",     "LATIN7",       "LATIN8",  "LATIN9",
		"LATIN10", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8",   "WIN1250", "WIN1251",
		"WIN1252", "WIN1253",    "WIN1254",    "WIN1255",    "WIN1256",      "WIN1257", "WIN1258",
		"WIN866",  "WIN874",     "KOI8R",      "KOI8U"};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct got g = read_one(all[i], "plain", "plain", "{plain}", 3);

		if (g.rc != 0)
			fail_msg("%s: %s", all[i], g.err.msg);
		ws_buf_free(&g.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_converted),
									   cmocka_unit_test(test_left_alone),
									   cmocka_unit_test(test_stops), cmocka_unit_test(test_known)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
