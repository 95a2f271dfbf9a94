/* lib/wal/history.c: which bytes and positions a timeline history holds, and which it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "history.h"
#include "ws/text.h"

static void
proved(const struct ws_history *h, ws_tli tli, ws_lsn lsn)
{
	struct ws_err err = {0};

	if (ws_history_prove(h, tli, lsn, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
refused(const struct ws_history *h, ws_tli tli, ws_lsn lsn, const char *reason)
{
	struct ws_err err = {0};

	assert_int_equal(ws_history_prove(h, tli, lsn, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_string_equal(err.reason, reason);
	assert_int_equal(ws_history_prove(h, tli, lsn, NULL), -1);
}

/* Several forks, ids with gaps, comments, a reason of two lines; before, at and after each fork. */
static void
test_forks(void **state)
{
	static const struct {
		ws_tli tli;
		ws_lsn begin, end;
	} want[] = {{1, 0, 0xC79E98}, {3, 0xC79E98, 0xCFE520}, {9, 0xCFE520, 0x2000000ABull}, {14, 0x2000000ABull, UINT64_MAX}};
	struct ws_history h = history(14, "# a comment\n"
	                                "1\t0/C79E98\tno recovery target specified\n\n"
	                                "  # another\n"
	                                "3\t0/CFE520\tbefore 2026-11-30 12:00:00+00\n\n\n"
	                                "9\t2/AB\tat restore point \"a b\"\n");

	(void)state;
	assert_int_equal(h.n, 3);
	assert_string_equal(h.entries[0].reason, "no recovery target specified");
	assert_string_equal(h.entries[1].reason, "before 2026-11-30 12:00:00+00");
	assert_string_equal(h.entries[2].reason, "at restore point \"a b\"");
	for (size_t i = 0; i < 4; i++) {
		struct ws_history_range r = ws_history_range(&h, i);
		ws_tli t = want[i].tli;

		assert_true(r.tli == t && r.begin == want[i].begin && r.end == want[i].end);
		assert_true(ws_history_end(&h, t) == r.end);
		assert_int_equal(ws_history_tli_at(&h, r.begin), t);
		assert_int_equal(ws_history_tli_at(&h, r.end - 1), t);
		proved(&h, t, 1);
		proved(&h, t, r.begin);
		proved(&h, t, r.begin + 1);
		proved(&h, t, r.end - 1);
		proved(&h, t, r.end);
		if (i == 3)
			continue;
		assert_int_equal(ws_history_tli_at(&h, r.end), want[i + 1].tli);
		struct ws_pos next = ws_history_next(&h, t);

		assert_true(next.tli == want[i + 1].tli && next.lsn == r.end);
		refused(&h, t, r.end + 1, "resume_past_fork");
		refused(&h, t, UINT64_MAX, "resume_past_fork");
	}
	/* The ids between, above and below are no ancestors, wherever the position is. */
	static const ws_tli others[] = {0, 2, 4, 8, 10, 13, 15, UINT32_MAX};

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		refused(&h, others[i], 1, "timeline_not_descendant");
		refused(&h, others[i], 0x300000000ull, "timeline_not_descendant");
		assert_true(ws_history_end(&h, others[i]) == 0);
	}
	ws_history_fini(&h);
}

/* More generations than anybody has had. */
static void
test_many(void **state)
{
	struct ws_buf b = {0};
	struct ws_err err;
	struct ws_history h;

	(void)state;
	for (unsigned i = 1; i <= 20000; i++)
		ws_buf_printf(&b, "%u\t%X/%X\tno recovery target specified\n\n", i * 3, i >> 8, (i & 255) << 24 | 0x28);
	assert_true(b.len < WS_HISTORY_MAX);
	assert_int_equal(ws_history_parse(70000, (char *)b.data, b.len, &h, &err), 0);
	assert_int_equal(h.n, 20000);
	for (unsigned i = 1; i <= 20000; i += 777) {
		ws_lsn end = (ws_lsn)i << 24 | 0x28;

		assert_true(ws_history_end(&h, i * 3) == end);
		proved(&h, i * 3, end - 1);
		proved(&h, i * 3, end);
		refused(&h, i * 3, end + 1, "resume_past_fork");
		refused(&h, i * 3 + 1, end, "timeline_not_descendant");
		assert_int_equal(ws_history_tli_at(&h, end - 1), i * 3);
		assert_int_equal(ws_history_tli_at(&h, end), i == 20000 ? 70000 : i * 3 + 3);
	}
	ws_history_fini(&h);
	ws_buf_free(&b);
}

/* As PostgreSQL writes it when recovery towards timeline 2 stops before the fork to it. */
static void
test_not_ascending(void **state)
{
	struct ws_history h = history(3, "1\t0/3000\tx\n\n2\t0/2000\tbefore 2026-11-30 12:00:00+00\n");
	struct ws_history_range r;

	(void)state;
	assert_true(ws_history_end(&h, 1) == 0x2000); /* and not 0x3000: from there on it is another branch */
	assert_int_equal(ws_history_tli_at(&h, 0x1fff), 1);
	assert_int_equal(ws_history_tli_at(&h, 0x2000), 3);
	assert_int_equal(ws_history_tli_at(&h, 0x3000), 3);
	r = ws_history_range(&h, 1);
	assert_true(r.tli == 2 && r.begin >= r.end);
	proved(&h, 1, 0x2000);
	refused(&h, 1, 0x2001, "resume_past_fork");
	refused(&h, 1, 0x3000, "resume_past_fork");
	proved(&h, 2, 0x2000);
	refused(&h, 2, 0x3000, "resume_past_fork");
	proved(&h, 3, 0x2001);
	/* A server sends timeline 1 up to 0x3000. */
	struct ws_err err = {0};

	assert_int_equal(ws_history_ascends(&h, 1, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_string_equal(err.reason, "history_malformed");
	assert_int_equal(ws_history_ascends(&h, 2, NULL), 0);
	ws_history_fini(&h);
	h = history(6, "1\t0/3000\tx\n2\t0/2000\tx\n3\t0/2000\tx\n5\t0/4000\tx\n");
	assert_int_equal(ws_history_ascends(&h, 1, NULL), -1);
	for (ws_tli t = 2; t <= 6; t++)
		assert_int_equal(ws_history_ascends(&h, t, NULL), 0);
	ws_history_fini(&h);

	/* Of every byte the owner by the ranges is the owner by ws_history_tli_at. */
	h = history(8, "1\t0/A\tx\n2\t0/5\tx\n4\t0/7\tx\n5\t0/7\tx\n7\t0/C\n");
	for (ws_lsn p = 0; p < 16; p++) {
		int owners = 0;

		for (size_t i = 0; i <= h.n; i++) {
			r = ws_history_range(&h, i);
			if (p < r.begin || p >= r.end)
				continue;
			owners++;
			assert_int_equal(r.tli, ws_history_tli_at(&h, p));
		}
		assert_int_equal(owners, 1);
	}
	/* From byte to byte, timeline to timeline. */
	struct ws_pos at = {1, 0};
	static const ws_tli walked[] = {4, 7, 8};

	for (size_t i = 0; i < 3; i++) {
		ws_lsn end = ws_history_end(&h, at.tli);

		at = ws_history_next(&h, at.tli);
		assert_int_equal(at.tli, walked[i]);
		assert_int_equal(at.lsn, end);
	}
	assert_string_equal(h.entries[4].reason, "");
	ws_history_fini(&h);
}

/* Reasons are what a user may have written: a restore point's name goes over several lines. */
static void
test_reasons(void **state)
{
	static const struct {
		const char *text;
		size_t n; /* 0: malformed */
	} cases[] = {{"1\t0/10\tat restore point \"a\n# b\"\n", 1},
	             {"1\t0/10\tat restore point \"a\n\n\n\"\n", 0},
	             {"1\t0/10\tat restore point \"a\nb\"\n", 0},
	             {"1\t0/10\tat restore point \"evil\n7\t0/10\tx\"\n", 0},
	             {"1\t0/10\tat restore point \"evil\n1\t0/10\tx\"\n", 0},
	             {"1\t0/10\tat restore point \"sly\n2\t0/20\tx\"\n", 2},
	             {"1\t0/10\tafter LSN 0/10\n\n", 1},
	             {"1 0/10", 1},
	             {"1 0 /10 x", 0},
	             {"1 0/ 10\x1b[2J", 1},
	             {"0\t0/10\tx", 0}};
	struct ws_history h;
	struct ws_err err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int rc = ws_history_parse(5, cases[i].text, strlen(cases[i].text), &h, &err);

		assert_int_equal(rc, cases[i].n ? 0 : -1);
		assert_int_equal(h.n, cases[i].n);
		if (rc)
			assert_string_equal(err.reason, "history_malformed");
		ws_history_fini(&h);
	}
	/* A NUL ends a line's text, as it does for the server. */
	assert_int_equal(ws_history_parse(5, "1\t0/10\ta\0b\n2\t0/11\n", 18, &h, &err), 0);
	assert_string_equal(h.entries[0].reason, "a");
	assert_int_equal(h.n, 2);
	ws_history_fini(&h);
}

static void
test_alone(void **state)
{
	struct ws_history h = history(1, "");

	(void)state;
	proved(&h, 1, 1);
	proved(&h, 1, UINT64_MAX);
	refused(&h, 2, 1, "timeline_not_descendant");
	ws_history_fini(&h);
	h = history(7, "# nothing is known\n");
	proved(&h, 7, 1);
	refused(&h, 1, 1, "timeline_not_descendant");
	assert_int_equal(ws_history_tli_at(&h, 0), 7);
	ws_history_fini(&h);
}

/* Reasons are foreign text; what is said for a terminal has no control characters, what is said in JSON is
 * UTF-8. */
static void
test_show(void **state)
{
	struct ws_history h = history(5, "1\t2/A\tat \"\x1b[2J\\x\xc3\xa9\xff\xc2\x9b\"\n3\t2/8\tbefore\n4\t3/0\n");
	struct ws_buf b = {0};

	(void)state;
	ws_history_show(&h, false, &b);
	assert_string_equal(ws_buf_cstr(&b), "1        0/00000000        2/0000000A        at \"\\x1b[2J\\x5cx\xc3\xa9\\xff\\xc2\\x9b\"\n"
	                                     "3        2/0000000A        2/00000008        before\n"
	                                     "4        2/00000008        3/00000000\n"
	                                     "5        3/00000000        open\n");
	b.len = 0;
	ws_history_show(&h, true, &b);
	assert_string_equal(ws_buf_cstr(&b),
	                    "{\"timeline\":1,\"begin\":\"0/00000000\",\"end\":\"2/0000000A\",\"reason\":"
	                    "\"at \\\"\\u001b[2J\\\\x\xc3\xa9\\ufffd\xc2\x9b\\\"\"}\n"
	                    "{\"timeline\":3,\"begin\":\"2/0000000A\",\"end\":\"2/00000008\",\"reason\":\"before\"}\n"
	                    "{\"timeline\":4,\"begin\":\"2/00000008\",\"end\":\"3/00000000\",\"reason\":\"\"}\n"
	                    "{\"timeline\":5,\"begin\":\"3/00000000\",\"end\":null}\n");
	b.len = 0;
	ws_history_path(&h, 0, UINT64_MAX, false, &b);
	assert_string_equal(ws_buf_cstr(&b), "1 0/00000000 2/00000008\n4 2/00000008 3/00000000\n5 3/00000000 open\n");
	b.len = 0;
	ws_history_path(&h, 1, 0x200000008ull, true, &b);
	ws_history_path(&h, 9, 9, true, &b);
	assert_string_equal(ws_buf_cstr(&b), "{\"timeline\":1,\"begin\":\"0/00000001\",\"end\":\"2/00000008\"}\n");
	b.len = 0;
	/* Overlong, surrogate, past U+10FFFF, cut short. */
	ws_text_json(&b, "\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xf0\x9f\x90\x98\xe2\x82");
	assert_string_equal(ws_buf_cstr(&b), "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\xf0\x9f\x90\x98\\ufffd\\ufffd\"");
	ws_buf_free(&b);
	ws_history_fini(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_forks),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_not_ascending),
	    cmocka_unit_test(test_reasons),
	    cmocka_unit_test(test_alone),
	    cmocka_unit_test(test_show),
	};

	return cmocka_run_group_tests_name("wal-history", tests, NULL, NULL);
}
