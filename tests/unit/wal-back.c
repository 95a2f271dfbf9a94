/* lib/wal: what is needed to go back to a fork: segments set aside, what was published, states of
 * segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "history.h"
#include "tmpdir.h"
#include "ws/file.h"
#include "ws/filter.h"
#include "ws/filterstates.h"
#include "ws/lsn.h"
#include "ws/published.h"
#include "ws/waldir.h"

#define SEG (1u << 20)

static void
put(const char *name, const char *text, size_t n)
{
	char *p = ws_calloc(1, n + 1);

	memcpy(p, text, strlen(text) < n ? strlen(text) : n);
	assert_int_equal(ws_file_replace(path(name), p, n, 0600, false, NULL), 0);
	free(p);
}

static bool
is_there(const char *name)
{
	return access(path(name), F_OK) == 0;
}

/* Sets aside by 1 -> 2 at 5.5 MB, 2 -> 3 at 7 MB. */
static uint64_t
set_aside(bool ends)
{
	struct ws_history h = history(3, "1\t0/580000\tx\n2\t0/700000\tx\n");
	struct ws_err err;
	uint64_t bytes;

	if (ws_waldir_set_aside(dir, SEG, &h, ends, &bytes, &err) != 0)
		fail_msg("%s", err.msg);
	ws_history_fini(&h);
	return bytes;
}

static void
test_set_aside(void **state)
{
	static const char *const stay[] = {
	    "000000010000000000000004", "000000020000000000000006", "000000030000000000000007",
	    "000000030000000000000009.partial", "000000040000000000000009", "00000003.history", "000000010000000000000008.other",
	    "000000020000000000000005.partial" /* below its end */};
	static const char *const go[] = {
	    "000000010000000000000006", "000000010000000000000007.partial", "000000010000000000000008.gz",
	    "000000020000000000000007"};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
		put(stay[i], "", 100);
	for (size_t i = 0; i < sizeof go / sizeof *go; i++)
		put(go[i], "", 200);
	put("000000010000000000000005", "", 100); /* a whole one reaches above */
	assert_int_equal(set_aside(false), 3 * SEG + 200);
	for (size_t i = 0; i < sizeof go / sizeof *go; i++) {
		snprintf(name, sizeof name, "%s.abandoned", go[i]);
		assert_true(!is_there(go[i]) && is_there(name));
	}
	assert_int_equal(set_aside(false), 0);
	assert_true(is_there("000000010000000000000005"));
	put("000000010000000000000005.partial", "", 0x80000); /* up to its end */
	assert_int_equal(set_aside(true), SEG);
	assert_true(!is_there("000000010000000000000005") && is_there("000000010000000000000005.partial"));
	put("000000010000000000000005.partial", "", 0x80001);
	assert_int_equal(set_aside(true), 0x80001);
	assert_true(is_there("000000010000000000000005.partial.abandoned"));
	for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
		assert_true(is_there(stay[i]));

	struct ws_history h = history(3, "1\t0/580000\tx\n");
	struct ws_err err;
	uint64_t bytes;

	assert_int_equal(ws_waldir_set_aside(path("none"), SEG, &h, true, &bytes, &err), -1);
	ws_history_fini(&h);
}

static void
test_names(void **state)
{
	static const char *const bad[] = {"", ".abandoned", "00000001000000000000000", "00000003.history", "00000003.history.abandoned",
	                                  "000000010000000000000005.tmp", "000000010000000000000005.abandoned.partial",
	                                  "000000010000000000000005.abandoned.abandoned", "000000010000000000001000",
	                                  "000000010000000000000005.partial.partial.partial.partial.partial.abandoned"};
	static const char *const good[] = {"", ".partial", ".gz", ".abandoned", ".partial.abandoned"};
	ws_tli tli;
	ws_lsn start;
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(ws_waldir_segment(bad[i], SEG, &tli, &start));
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		snprintf(name, sizeof name, "0000000A0000000000000005%s", good[i]);
		assert_true(ws_waldir_segment(name, SEG, &tli, &start));
		assert_true(tli == 10 && start == 0x500000);
	}
}

static void
test_published(void **state)
{
	struct ws_history h = history(3, "1\t0/580000\tx\n2\t0/700000\tx\n");
	struct ws_pos most = {9, 9};
	struct ws_err err = {0};

	(void)state;
	assert_int_equal(ws_published_check(NULL, &h, &most, &err), 0);
	assert_true(most.lsn == 0);
	assert_int_equal(ws_published_check(dir, &h, &most, &err), 0);
	assert_int_equal(mkdir(path("pos"), 0700), 0);
	put("pos/sent.a", "1 0/580000\n", 11);
	put("pos/sent.b", "2 0/6FFFFF\n", 11);
	put("pos/ack.a", "1 0/680000\n", 11);
	assert_int_equal(ws_published_check(dir, &h, &most, &err), 0);
	assert_true(most.tli == 2 && most.lsn == 0x6FFFFF);
	put("pos/sent.c", "3 1/0\n", 6);
	assert_int_equal(ws_published_check(dir, &h, NULL, &err), 0);
	put("pos/sent.a", "1 0/580008\n", 11);
	assert_int_equal(ws_published_check(dir, &h, NULL, &err), -1);
	assert_string_equal(err.reason, "published_past_fork");
	assert_non_null(strstr(err.msg, "consumer a "));
	put("pos/sent.a", "4 0/8\n", 6); /* of a timeline that is not on the way */
	assert_int_equal(ws_published_check(dir, &h, NULL, &err), -1);
	assert_string_equal(err.reason, "published_past_fork");
	put("pos/sent.a", "torn", 4);
	assert_int_equal(ws_published_check(dir, &h, NULL, &err), -1);
	assert_string_equal(err.reason, "position_malformed");
	ws_history_fini(&h);
}

static void
put_state(const char *name, ws_tli tli, ws_lsn lsn)
{
	struct ws_filter *f = ws_filter_new();
	struct ws_buf b = {0};
	char at[64];

	ws_filter_save(f, (struct ws_pos){tli, lsn}, 7, &b);
	snprintf(at, sizeof at, "states/%s", name);
	assert_int_equal(ws_file_replace(path(at), b.data, b.len, 0600, false, NULL), 0);
	ws_buf_free(&b);
	ws_filter_free(f);
}

/* Position of the state that is found; 0: none. */
static ws_lsn
find(const struct ws_history *h, ws_lsn lsn)
{
	struct ws_buf b = {0};
	struct ws_pos pos;
	struct ws_err err;
	int rc = ws_filterstates_find(dir, SEG, h, lsn, &b, &pos, &err);

	if (rc < 0)
		fail_msg("%s", err.msg);
	assert_true((b.len > 0) == (rc == 1));
	ws_buf_free(&b);
	return rc ? pos.lsn : 0;
}

static void
test_states(void **state)
{
	struct ws_history h = history(2, "1\t0/580000\tx\n");

	(void)state;
	assert_true(find(&h, 0x500000) == 0);
	assert_int_equal(mkdir(path("states"), 0700), 0);
	assert_true(find(&h, 0x500000) == 0);
	put_state("000000010000000000000003", 1, 0x2FFFF0);
	put_state("000000010000000000000004", 1, 0x400000);
	put_state("000000010000000000000005", 1, 0x4FFF00);
	put_state("000000010000000000000006", 1, 0x5FFF00); /* past the fork */
	put_state("000000030000000000000005", 3, 0x4FFFF0); /* of another branch */
	put_state("000000020000000000000006", 1, 0x5FFF08); /* one that cannot be */
	put("states/000000010000000000000004.tmp", "", 10);
	assert_true(find(&h, 0x500000) == 0x4FFF00);
	assert_true(find(&h, 0x600000) == 0x4FFF00);
	assert_true(find(NULL, 0x600000) == 0x5FFF08);
	assert_true(find(&h, 0x4FFFFF) == 0x400000);
	assert_true(find(&h, 0x300000) == 0x2FFFF0);
	assert_true(find(&h, 0x2FFFFF) == 0);
	/* One that is damaged is passed over. */
	put("states/000000010000000000000005", "walshadow filter state 1\n", 25);
	assert_true(find(&h, 0x500000) == 0x400000);
	put_state("000000020000000000000005", 2, 0x4FFF10);
	assert_true(find(&h, 0x500000) == 0x4FFF10);
	ws_history_fini(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_set_aside, setup, teardown),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test_setup_teardown(test_published, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_states, setup, teardown),
	};

	return cmocka_run_group_tests_name("wal-back", tests, NULL, NULL);
}
