/* lib/wal/histdir.c, histcheck.c: histories in a directory, the segment of a position, what does not go
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tmpdir.h"
#include "walmake.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/lsn.h"
#include "ws/waldir.h"
#include "ws/walread.h"

#define SEG (1u << 20)

static char found[8192];

static void
put(const char *name, const void *p, size_t n)
{
	assert_int_equal(ws_file_replace(path(name), p, n, 0600, false, NULL), 0);
}

static void
put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

/* A segment's first n bytes. */
static void
put_segment(ws_tli tli, ws_lsn lsn, const char *suffix, size_t n)
{
	struct walmake m;
	char name[WS_WALNAME_MAX];

	wm_init(&m, ws_seg_start(lsn, SEG), SEG, 0xD116);
	m.tli = tli;
	while (m.b.len < n)
		wm_record(&m, WS_RM_HEAP, 0, 700, 500, 1);
	ws_seg_name(name, tli, lsn, SEG);
	strcat(name, suffix);
	put(name, m.b.data, n);
	ws_buf_free(&m.b);
}

static void
note(void *arg, const struct ws_histdir_finding *f)
{
	size_t n = strlen(found);
	const char *base = strrchr(f->path, '/') + 1;

	(void)arg;
	assert_true(!strncmp(f->path, dir, strlen(dir)));
	snprintf(found + n, sizeof found - n, "%s %s: %s\n", f->reason, base, f->text);
}

static const char *
check(const char *spec)
{
	struct ws_err err = {0};

	found[0] = 0;
	if (ws_histdir_check(spec, note, NULL, &err) != 0)
		fail_msg("%s", err.msg);
	return found;
}

static ws_tli
load(const char *spec, ws_tli tli, size_t ancestors)
{
	struct ws_history h;
	struct ws_err err = {0};

	if (ws_histdir_load(spec, tli, &h, &err) != 0)
		fail_msg("%s", err.msg);
	ws_tli got = h.tli;

	assert_int_equal(h.n, ancestors);
	ws_history_fini(&h);
	return got;
}

static void
load_fails(const char *spec, ws_tli tli, int status, const char *reason)
{
	struct ws_history h;
	struct ws_err err = {0};

	assert_int_equal(ws_histdir_load(spec, tli, &h, &err), -1);
	assert_int_equal(err.status, status);
	assert_string_equal(err.reason, reason);
	assert_int_equal(h.n, 0);
}

static void
test_load(void **state)
{
	(void)state;
	load_fails(path("none"), 0, WS_EUSAGE, "");
	load_fails(dir, 0, WS_EOPERATOR, "history_missing");
	put_segment(1, 0x500000, "", SEG);
	assert_int_equal(load(dir, 0, 0), 1);
	put_text("00000002.history", "1\t0/580000\tx\n");
	put_text("0000000A.history", "1\t0/580000\tx\n2\t0/680000\tx\n");
	assert_int_equal(load(dir, 0, 2), 10);
	assert_int_equal(load(dir, 2, 1), 2);
	assert_int_equal(load(dir, 1, 0), 1);
	load_fails(dir, 3, WS_EOPERATOR, "history_missing");
	assert_int_equal(load(path("0000000A.history"), 0, 2), 10);
	load_fails(path("0000000A.history"), 2, WS_EUSAGE, "");
	put_text("copy", "1\t0/580000\tx\n");
	load_fails(path("copy"), 0, WS_EUSAGE, "");
	assert_int_equal(load(path("copy"), 4, 1), 4);
	/* The newest has segments only. */
	put_segment(11, 0x700000, ".partial", 100);
	load_fails(dir, 0, WS_EOPERATOR, "history_missing");
	put_text("0000000B.history", "1\t0/580000\tevil\n17\t0/10\tx\n");
	load_fails(dir, 0, WS_EOPERATOR, "history_malformed");
	char *big = ws_calloc(1, WS_HISTORY_MAX + 1);

	put("0000000B.history", big, WS_HISTORY_MAX + 1);
	free(big);
	load_fails(dir, 0, WS_EOPERATOR, "history_malformed");
}

/* Where byte lsn is, "" nowhere. */
static const char *
where(const struct ws_history *h, ws_lsn lsn)
{
	static char name[128];
	char *path;
	int rc = ws_histdir_segment(dir, h, lsn, SEG, &path, NULL);

	assert_in_range(rc, 0, 1);
	assert_true((rc == 1) == (path != NULL));
	snprintf(name, sizeof name, "%s", path ? strrchr(path, '/') + 1 : "");
	free(path);
	return name;
}

static void
test_segment(void **state)
{
	char name[WS_WALNAME_MAX];
	struct ws_history h;
	static const char text[] = "1\t0/580000\tx\n2\t0/5C0000\tx\n4\t0/800000\tx\n";

	(void)state;
	assert_int_equal(ws_history_parse(7, text, sizeof text - 1, &h, NULL), 0);
	ws_histdir_name(&h, 0x4FFFFF, SEG, name);
	assert_string_equal(name, "000000010000000000000004");
	ws_histdir_name(&h, 0x500000, SEG, name);
	assert_string_equal(name, "000000040000000000000005");
	ws_histdir_name(&h, 0x7FFFFF, SEG, name);
	assert_string_equal(name, "000000040000000000000007");
	ws_histdir_name(&h, 0x800000, SEG, name); /* the fork is the segment's start */
	assert_string_equal(name, "000000070000000000000008");

	uint32_t segsize;

	assert_int_equal(ws_histdir_segsize(dir, &segsize, NULL), 0);
	assert_string_equal(where(&h, 0x500000), "");
	/* The ancestor's file has what is below its end, and nothing of the descendants. */
	put_segment(1, 0x500000, ".partial", 0x90000);
	assert_int_equal(ws_histdir_segsize(dir, &segsize, NULL), 1);
	assert_int_equal(segsize, SEG);
	assert_string_equal(where(&h, 0x57FFFF), "000000010000000000000005.partial");
	assert_string_equal(where(&h, 0x580000), "");
	put_segment(2, 0x500000, ".gz", SEG);
	assert_string_equal(where(&h, 0x500000), "000000020000000000000005.gz");
	assert_string_equal(where(&h, 0x580000), "000000020000000000000005.gz");
	assert_string_equal(where(&h, 0x5C0000), "");
	/* One that grows has what it has. */
	put_segment(4, 0x500000, ".partial", 0x20000);
	assert_string_equal(where(&h, 0x51FFFF), "000000040000000000000005.partial");
	assert_string_equal(where(&h, 0x520000), "000000020000000000000005.gz");
	put_segment(4, 0x500000, "", SEG);
	assert_string_equal(where(&h, 0x5FFFFF), "000000040000000000000005");
	assert_string_equal(where(&h, 0x500000), "000000040000000000000005");
	/* Of no timeline on the way. */
	put_segment(3, 0x600000, "", SEG);
	put_segment(1, 0x600000, "", SEG);
	put_segment(7, 0x600000, "", SEG);
	assert_string_equal(where(&h, 0x600000), "");
	put_segment(4, 0x800000, "", SEG);
	assert_string_equal(where(&h, 0x800000), "");
	assert_string_equal(where(&h, UINT64_MAX), "");
	ws_history_fini(&h);
}

static void
test_check_histories(void **state)
{
	(void)state;
	assert_string_equal(check(dir), "");
	/* Gaps, comments, empty lines, a comment in the place of an id that does not exist. */
	put_text("00000003.history", "# c\n1\t0/580000\tbefore 2026-11-30\n\n");
	put_text("00000005.history", "1\t0/580000\tbefore 2026-11-30\n\n\n3\t0/600000\tat restore point \"a\n# b\"\n");
	put_text("00000004.history", "# no timeline of this number\n");
	put_text("README", "1\tx\n");
	assert_string_equal(check(dir), "");
	/* A malformed one is said once, and nothing is compared with it. */
	put_text("00000006.history", "1\t0/580000\tx\n3\t0/600000\tevil\n7\t0/10\tx\n");
	put_text("00000007.history", "1\t0/580000\tx\n3\t0/600000\tx\n6\t0/610000\tx\n");
	assert_string_equal(check(dir),
	                    "history_malformed 00000006.history: line 3: an ancestor's id is not below the timeline's own\n");
	assert_string_equal(check(path("00000007.history")), "");
	put_text("00000006.history", "1\t0/580000\tx\nnews\n");
	assert_string_equal(check(path("00000006.history")),
	                    "history_malformed 00000006.history: line 2: a numeric timeline id was expected\n");
	unlink(path("00000006.history"));
	unlink(path("00000007.history"));
	/* Another switch, a line that is missing, one too many. */
	put_text("00000008.history", "1\t0/580008\tx\n3\t0/600000\tx\n");
	put_text("00000009.history", "3\t0/600000\tx\n");
	put_text("0000000A.history", "1\t0/580000\tx\n2\t0/590000\tx\n3\t0/600000\tx\n");
	assert_string_equal(
	    check(dir),
	    "history_conflict 00000008.history: timeline 1 ends at 0/00580008, by its ancestor's 00000003.history at 0/00580000\n"
	    "history_conflict 00000009.history: lacks timeline 1, which its ancestor's 00000003.history has\n"
	    "history_conflict 0000000A.history: has timeline 2, which its ancestor's 00000003.history lacks\n");
	assert_string_equal(check(path("0000000A.history")),
	                    "history_conflict 0000000A.history: has timeline 2, which its ancestor's 00000003.history lacks\n");
	assert_string_equal(check(path("00000005.history")), "");
}

static void
test_check_order(void **state)
{
	(void)state;
	put_text("00000002.history", "1\t0/580000\tx\n");
	put_text("00000003.history", "1\t0/580000\tx\n2\t0/570000\tbefore\n");
	put_text("00000004.history", "1\t0/580000\tx\n2\t0/580000\tbefore\n");
	put_text("00000005.history", "1\t0/0\tx\n");
	assert_string_equal(
	    check(dir),
	    "history_not_ascending 00000003.history: timeline 2 ends at 0/00570000, which is not past the end of timeline 1, "
	    "0/00580000\n"
	    "history_not_ascending 00000004.history: timeline 2 ends at 0/00580000, which is not past the end of timeline 1, "
	    "0/00580000\n"
	    "history_not_ascending 00000005.history: timeline 1 ends at 0/0\n");
}

static void
test_check_segments(void **state)
{
	(void)state;
	put_text("00000003.history", "1\t0/580000\tx\n");
	put_text("00000005.history", "1\t0/580000\tx\n3\t0/700000\tx\n");
	put_segment(1, 0x400000, ".lz4", SEG);
	put_segment(1, 0x500000, ".partial", SEG);
	put_segment(3, 0x500000, "", SEG);
	put_segment(3, 0x600000, "", SEG);
	put_segment(5, 0x700000, "", SEG);
	put_segment(5, 0x900000, ".partial", 100);
	put_segment(1, 0x300000, "", SEG);
	assert_string_equal(check(dir), "");
	put_segment(1, 0x600000, "", SEG);
	put_segment(3, 0x400000, "", SEG);
	put_segment(3, 0x700000, ".partial", SEG);
	put_segment(5, 0x600000, ".zst", SEG);
	put_segment(4, 0x600000, "", SEG);
	put_segment(4, 0x700000, "", SEG);
	assert_string_equal(check(dir),
	                    "wal_off_path 000000010000000000000006: on no path: timeline 1 ends at 0/00580000\n"
	                    "wal_off_path 000000030000000000000004: on no path: timeline 3 begins at 0/00580000\n"
	                    "wal_off_path 000000030000000000000007.partial: on no path: timeline 3 ends at 0/00700000\n"
	                    "history_missing 00000004.history: absent, and there are segments of timeline 4\n"
	                    "wal_off_path 000000050000000000000006.zst: on no path: timeline 5 begins at 0/00700000\n");
	/* A sibling that left later keeps its ancestor's. */
	put_text("00000004.history", "1\t0/680000\tx\n");
	assert_string_equal(check(dir),
	                    "wal_off_path 000000030000000000000004: on no path: timeline 3 begins at 0/00580000\n"
	                    "wal_off_path 000000030000000000000007.partial: on no path: timeline 3 ends at 0/00700000\n"
	                    "wal_off_path 000000050000000000000006.zst: on no path: timeline 5 begins at 0/00700000\n");
	/* Of a timeline whose history is malformed nothing is known, and that is said already. */
	put_text("00000005.history", "x\n");
	assert_string_equal(check(dir),
	                    "history_malformed 00000005.history: line 1: a numeric timeline id was expected\n"
	                    "wal_off_path 000000030000000000000004: on no path: timeline 3 begins at 0/00580000\n");
	put("000000010000000000000002", "no WAL", 6);
	struct ws_err err = {0};

	assert_int_equal(ws_histdir_check(dir, note, NULL, &err), -1);
	assert_string_equal(err.reason, "not_wal");
}

/* Eight processes store tli's history at once, two contents; returns how many could. */
static int
store_at_once(ws_tli tli, char text[2][20000])
{
	struct ws_err err = {0};
	int gate[2], status, ok = 0;
	char c;

	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			close(gate[1]);
			int rc = read(gate[0], &c, 1) == 0 ? ws_histdir_store(dir, tli, text[i % 2], 20000, false, &err) : 9;

			_exit(rc == 0 ? 0 : strcmp(err.reason, "history_changed") ? 2 : 1);
		}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_in_range(WEXITSTATUS(status), 0, 1);
		ok += WEXITSTATUS(status) == 0;
	}
	return ok;
}

/* It is there whole from the start, and only one content stays. */
static void
test_store(void **state)
{
	struct ws_err err = {0};
	static char text[2][20000];

	(void)state;
	memset(text[0], '#', sizeof text[0]);
	memset(text[1], ' ', sizeof text[1]);
	for (ws_tli tli = 50; tli > 1; tli--) {
		assert_int_equal(store_at_once(tli, text), 4);
		char name[WS_WALNAME_MAX];

		ws_history_name(name, tli);
		if (tli > 2)
			unlink(path(name));
	}
	struct ws_buf b = {0};

	assert_int_equal(ws_file_read(path("00000002.history"), WS_HISTORY_MAX, &b, NULL), 1);
	assert_int_equal(b.len, sizeof text[0]);
	int which = b.data[0] == ' ';

	assert_memory_equal(b.data, text[which], b.len);
	ws_buf_free(&b);
	assert_int_equal(ws_histdir_store(dir, 2, text[which], sizeof text[0], true, &err), 0);
	assert_int_equal(ws_histdir_store(dir, 2, text[which], 5, true, &err), -1);
	assert_string_equal(err.reason, "history_changed");
	assert_int_equal(ws_histdir_store(dir, 3, "", 0, true, &err), 0);
	assert_int_equal(ws_histdir_store(path("none"), 3, "", 0, true, &err), -1);
	assert_string_equal(err.reason, "path_missing");
	/* Nothing else is left there. */
	char cmd[256];

	snprintf(cmd, sizeof cmd, "test \"$(ls -A %s)\" = \"$(printf '00000002.history\\n00000003.history')\"", dir);
	assert_int_equal(system(cmd), 0);
}

/* Where the later switch is the lower one a reader leaves the ancestor there, although its file goes on. */
static void
test_reader_leaves_at_lower_switch(void **state)
{
	struct ws_walsrc_opts o = {0};
	struct ws_walchunk c;
	struct ws_err err = {0};
	ws_lsn end = 0;
	int rc;

	(void)state;
	put_text("00000003.history", "1\t0/680000\tx\n2\t0/540000\tbefore\n");
	put_segment(1, 0x400000, "", SEG);
	put_segment(1, 0x500000, "", SEG);
	put_segment(1, 0x600000, "", SEG);
	struct ws_walsrc *s = ws_walsrc_open(dir, (struct ws_pos){1, 0x400000}, &o, &err);

	assert_non_null(s);
	while ((rc = ws_walsrc_next(s, &c, &err)) == 1) {
		assert_int_equal(c.tli, 1);
		end = c.lsn + c.n;
	}
	assert_true(end == 0x540000);
	assert_int_equal(rc, 0);
	ws_walsrc_close(s);
	assert_null(ws_walsrc_open(dir, (struct ws_pos){1, 0x580000}, &o, &err));
	assert_string_equal(err.reason, "past_fork");
	/* Nor is what the file has beyond it taken for the descendant's. */
	s = ws_walsrc_open(dir, (struct ws_pos){3, 0x600000}, &o, &err);
	assert_non_null(s);
	assert_int_equal(ws_walsrc_next(s, &c, &err), 0);
	ws_walsrc_close(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_load, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_segment, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_check_histories, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_check_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_check_segments, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_store, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_reader_leaves_at_lower_switch, setup, teardown),
	};

	return cmocka_run_group_tests_name("wal-histdir", tests, NULL, NULL);
}
