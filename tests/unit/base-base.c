/* lib/base: LSNs, names, positions, cursor, sizes, files. */
#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ws/cluster.h"
#include "ws/cursor.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/tool.h"

static void
test_lsn(void **state)
{
	ws_lsn l;

	(void)state;
	assert_int_equal(ws_lsn_parse("5/6B123456", &l), 0);
	assert_true(l == 0x56B123456ull);
	const char *bad[] = {"", "/", "1/", "/1", "1", "123456789/0", "0/123456789", "0/1 ", " 0/1", "g/0", "1/2/3"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(ws_lsn_parse(bad[i], &l), -1);
}

static void
test_segment_names(void **state)
{
	static const uint32_t sizes[] = {1u << 20, 16u << 20, 64u << 20, 1u << 30};
	char name[WS_WALNAME_MAX];
	ws_tli tli;
	ws_lsn start;

	(void)state;
	ws_seg_name(name, 1, 0x1000000, 16u << 20);
	assert_string_equal(name, "000000010000000000000001");
	ws_seg_name(name, 3, 0x2ff000000ull, 16u << 20);
	assert_string_equal(name, "0000000300000002000000FF");
	for (size_t i = 0; i < 4; i++)
		for (ws_lsn l = 0x1fffff123ull; l < 0x300000000ull; l += 0x7654321ull) {
			ws_seg_name(name, 7, l, sizes[i]);
			assert_int_equal(ws_seg_parse(name, sizes[i], &tli, &start), 0);
			assert_int_equal(tli, 7);
			assert_true(start == ws_seg_start(l, sizes[i]));
		}
	assert_int_equal(ws_seg_parse("000000010000000000000100", 16u << 20, &tli, &start), -1);
	assert_int_equal(ws_seg_parse("000000010000000000000001.partial", 16u << 20, &tli, &start), -1);
	assert_int_equal(ws_history_name_parse("00000002.history", &tli), 0);
	assert_int_equal(tli, 2);
	assert_int_equal(ws_history_name_parse("0000002.history", &tli), -1);
}

static void
test_positions(void **state)
{
	char dir[] = "/tmp/ws-unit-XXXXXX", path[64];
	struct ws_pos p = {5, 0x6B123456}, q;
	struct ws_err err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/p", dir);
	assert_int_equal(ws_pos_read(path, &q, &err), 0);
	assert_int_equal(ws_pos_write(path, p, true, &err), 0);
	assert_int_equal(ws_pos_read(path, &q, &err), 1);
	assert_int_equal(q.tli, 5);
	assert_true(q.lsn == p.lsn);
	static const char *bad[] = {"", "5", "5 ", "0 0/1", "-1 0/1", "5 0/1\n0", "5  0/1", "x 0/1", "4294967296 0/1"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(ws_pos_parse(bad[i], &q), -1);
	assert_int_equal(ws_file_replace(path, "garbage", 7, 0600, false, &err), 0);
	assert_int_equal(ws_pos_read(path, &q, &err), -1);
	assert_int_equal(ws_file_replace(path, "", 0, 0600, false, &err), 0);
	assert_int_equal(ws_pos_read(path, &q, &err), -1);
	assert_int_equal(err.status, WS_ETEMP);
	assert_int_equal(err.sys, 0);
	/* With other words behind it. */
	assert_int_equal(ws_pos_read_first("no/such/file", &q, &err), 0);
	assert_int_equal(ws_file_replace(path, "7 0/ABC `a`.`b c`\n", 18, 0600, false, &err), 0);
	assert_int_equal(ws_pos_read_first(path, &q, &err), 1);
	assert_int_equal(q.tli, 7);
	assert_int_equal(q.lsn, 0xABC);
	assert_int_equal(ws_pos_read(path, &q, &err), -1);
	assert_int_equal(ws_file_replace(path, "7\n", 2, 0600, false, &err), 0);
	assert_int_equal(ws_pos_read_first(path, &q, &err), -1);
	assert_string_equal(err.reason, "position_malformed");
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_int_equal(ws_mkdir_p("", 0700, &err), -1);
	unlink(path);
	rmdir(dir);
}

/* Which system errors a restart may heal. */
static void
test_system_errors(void **state)
{
	static const int passing[] = {ENOSPC, EIO, EAGAIN, ENOMEM, EMFILE, ENFILE, EDQUOT, EINTR, EPIPE, ENOENT};
	static const struct {
		int sys;
		const char *reason;
	} lasting[] = {{EACCES, "permission_denied"}, {EPERM, "permission_denied"}, {EROFS, "read_only"},
	               {ENOTDIR, "bad_path"},         {EISDIR, "bad_path"},         {ELOOP, "bad_path"},
	               {ENAMETOOLONG, "bad_path"}};
	struct ws_err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
		errno = passing[i];
		assert_int_equal(ws_err_sys(&err, "%s: cannot write", "raw"), -1);
		assert_int_equal(err.status, WS_ETEMP);
		assert_int_equal(err.sys, passing[i]);
		assert_string_equal(err.reason, "");
		assert_non_null(strstr(err.msg, strerror(passing[i])));
	}
	for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
		errno = lasting[i].sys;
		ws_err_sys(&err, "x");
		assert_int_equal(err.status, WS_EOPERATOR);
		assert_string_equal(err.reason, lasting[i].reason);
		errno = lasting[i].sys;
		ws_err_arg(&err, "x");
		assert_int_equal(err.status, WS_EUSAGE);
	}
	errno = ENOENT;
	ws_err_missing(&err, "x");
	assert_string_equal(err.reason, "path_missing");
	errno = ENOENT;
	ws_err_arg(&err, "x");
	assert_int_equal(err.status, WS_EUSAGE);
	errno = ENOSPC;
	ws_err_missing(&err, "x");
	assert_int_equal(err.status, WS_ETEMP);
	errno = EIO;
	ws_err_arg(&err, "x");
	assert_int_equal(err.status, WS_ETEMP);
	errno = EACCES;
	assert_int_equal(ws_err_sys(NULL, "x"), -1);
	/* As files meet them. */
	assert_int_equal(ws_file_replace("no/such/folder/file", "", 0, 0600, false, &err), -1);
	assert_string_equal(err.reason, "path_missing");
	assert_int_equal(ws_file_replace("/dev/null/file", "", 0, 0600, false, &err), -1);
	assert_string_equal(err.reason, "bad_path");
	assert_int_equal(ws_lock_file("no/such/folder/lock", &err), -1);
	assert_string_equal(err.reason, "path_missing");
	assert_int_equal(ws_mkdir_p("/dev/null/x", 0700, &err), -1);
	assert_string_equal(err.reason, "bad_path");
}

static void
test_cluster(void **state)
{
	char dir[] = "/tmp/ws-unit-XXXXXX", path[64];
	struct ws_cluster c = {7654321, 17, 16u << 20}, d = c, e;
	struct ws_err err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(ws_cluster_read(dir, &e, &err), 0);
	assert_int_equal(ws_cluster_claim(dir, &c, &err), 0);
	assert_int_equal(ws_cluster_claim(dir, &c, &err), 0);
	d.system_id++;
	assert_int_equal(ws_cluster_claim(dir, &d, &err), -1);
	assert_string_equal(err.reason, "system_id_changed");
	d = c;
	d.major = 18;
	assert_int_equal(ws_cluster_claim(dir, &d, &err), -1);
	assert_string_equal(err.reason, "major_changed");
	snprintf(path, sizeof path, "%s/cluster", dir);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

static void
test_cursor(void **state)
{
	uint8_t b[7] = {1, 2, 3, 4, 5, 6, 7};
	struct ws_cursor c = ws_cursor(b, sizeof b);

	(void)state;
	assert_int_equal(ws_cur_u32(&c), 0x04030201);
	assert_int_equal(ws_cur_u16(&c), 0x0605);
	assert_int_equal(ws_cur_u16(&c), 0);
	assert_true(c.bad);
	assert_int_equal(ws_cur_u8(&c), 0);
	assert_int_equal(ws_cur_left(&c), 0);
}

static void
test_units(void **state)
{
	uint64_t v;
	double d;

	(void)state;
	assert_int_equal(ws_parse_size("64kB", &v), 0);
	assert_true(v == 65536);
	assert_int_equal(ws_parse_size("1KB", &v), -1);
	assert_int_equal(ws_parse_size("-1", &v), -1);
	assert_int_equal(ws_parse_size("99999999999999TB", &v), -1);
	assert_int_equal(ws_parse_seconds("250ms", &d), 0);
	assert_true(d > 0.2499 && d < 0.2501);
	assert_int_equal(ws_parse_seconds("1 s", &d), -1);
	assert_int_equal(ws_parse_seconds("nan", &d), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lsn),     cmocka_unit_test(test_segment_names), cmocka_unit_test(test_positions),
	    cmocka_unit_test(test_system_errors),
	    cmocka_unit_test(test_cluster), cmocka_unit_test(test_cursor),        cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
