/* lib/pg: messages of the replication protocol, both sides; pg_control; the lowest position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/pg/recvdir.h"
#include "lib/pg/replmsg.h"
#include "lib/pg/servermsg.h"
#include "ws/crc.h"
#include "ws/cursor.h"
#include "ws/lsn.h"
#include "ws/pgcontrol.h"
#include "ws/statepos.h"

static void
test_stream_messages(void **state)
{
	uint8_t b[REPL_WAL_HDR + 3] = "w", r[REPL_REPLY_LEN];
	struct repl_msg m;

	(void)state;
	put_be64(b + 1, 0x123456789abcdef0ull);
	put_be64(b + 9, 0x123456789abcdf00ull);
	assert_int_equal(repl_msg_parse(b, sizeof b, &m), 0);
	assert_true(m.kind == 'w' && m.start == 0x123456789abcdef0ull &&
				m.end == 0x123456789abcdf00ull);
	assert_true(m.n == 3 && m.p == b + REPL_WAL_HDR);
	for (size_t n = 0; n < REPL_WAL_HDR; n++)
		assert_int_equal(repl_msg_parse(b, n, &m), -1);
	put_be64(b + 1, UINT64_MAX - 1); /* its end would wrap */
	assert_int_equal(repl_msg_parse(b, sizeof b, &m), -1);

	repl_reply_build(r, 1, 2, 3, 4, true);
	assert_int_equal(repl_msg_parse(r, sizeof r, &m), 0);
	assert_true(m.kind == 'r' && m.write == 1 && m.flush == 2 && m.apply == 3 && m.reply);
	assert_int_equal(repl_msg_parse(r, sizeof r - 1, &m), -1);
	assert_int_equal(repl_msg_parse((const uint8_t *)"x", 1, &m), -1);
	assert_true(repl_time(946684800000000ull) == 0);
}

static int
parse_start(const void *p, size_t n, struct startup *s)
{
	return startup_parse(p, n, s);
}

static void
test_startup(void **state)
{
	static const char v3[] =
		"\0\3\0\2user\0me\0replication\0true\0application_name\0wal\x01receiver\0_pq_.x\0y\0";
	struct startup s;

	(void)state;
	assert_int_equal(parse_start("\x04\xd2\x16\x2f", 4, &s), 0);
	assert_int_equal(s.kind, STARTUP_SSL);
	assert_int_equal(parse_start("\x04\xd2\x16\x30", 4, &s), 0);
	assert_int_equal(s.kind, STARTUP_GSS);
	assert_int_equal(parse_start("\0\2\0\0", 4, &s), 0);
	assert_int_equal(s.kind, STARTUP_OTHER);
	assert_int_equal(parse_start(v3, sizeof v3, &s), 0);
	assert_int_equal(s.kind, STARTUP_V3);
	assert_true(s.replication && !s.database && s.extensions && s.minor == 2);
	assert_string_equal(s.application, "wal?receiver");
	for (size_t n = 0; n < sizeof v3 - 1; n++) /* without its final NUL it is malformed */
		if (n != 4)
			assert_int_equal(parse_start(v3, n, &s), -1);
	assert_int_equal(parse_start("\0\3\0\0\0", 5, &s), 0);
	assert_false(s.replication);
}

static void
test_commands(void **state)
{
	struct repl_cmd c;

	(void)state;
	assert_int_equal(
		repl_cmd_parse("START_REPLICATION SLOT \"a b\" PHYSICAL 1/A000000 TIMELINE 3", &c), 0);
	assert_true(c.kind == CMD_START && c.lsn == 0x10a000000ull && c.tli == 3);
	assert_int_equal(repl_cmd_parse("  start_replication 0/1;", &c), 0);
	assert_true(c.kind == CMD_START && c.lsn == 1 && c.tli == 0);
	assert_int_equal(repl_cmd_parse("START_REPLICATION SLOT x LOGICAL 0/0 (a 'b')", &c), 0);
	assert_int_equal(c.kind, CMD_LOGICAL);
	assert_int_equal(repl_cmd_parse("SHOW Wal_Segment_Size", &c), 0);
	assert_string_equal(c.name, "wal_segment_size");
	assert_int_equal(repl_cmd_parse("TIMELINE_HISTORY 12", &c), 0);
	assert_true(c.kind == CMD_HISTORY && c.tli == 12);
	assert_int_equal(repl_cmd_parse("", &c), 0);
	assert_int_equal(c.kind, CMD_EMPTY);
	assert_int_equal(repl_cmd_parse("SELECT 1", &c), 0);
	assert_int_equal(c.kind, CMD_UNKNOWN);
	const char *bad[] = {"START_REPLICATION",
						 "START_REPLICATION SLOT",
						 "START_REPLICATION SLOT x",
						 "START_REPLICATION 0",
						 "START_REPLICATION 0/1 TIMELINE",
						 "START_REPLICATION 0/1 TIMELINE 0",
						 "START_REPLICATION 0/1 TIMELINE 4294967296",
						 "START_REPLICATION 0/1 x",
						 "TIMELINE_HISTORY",
						 "TIMELINE_HISTORY -1",
						 "SHOW",
						 "IDENTIFY_SYSTEM x",
						 "START_REPLICATION SLOT \"x 0/1"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(repl_cmd_parse(bad[i], &c), -1);
}

static void
test_builders(void **state)
{
	static const struct column col = {"a", 20};
	static const char *const null[] = {NULL};
	static const uint8_t rows[] =
		"T\0\0\0\x1a\0\1a\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0";
	static const uint8_t row[] = "D\0\0\0\x0a\0\1\xff\xff\xff\xff";
	struct ws_buf b = {0};

	(void)state;
	msg_rows(&b, &col, 1);
	assert_true(b.len == sizeof rows - 1 && !memcmp(b.data, rows, b.len));
	b.len = 0;
	msg_row(&b, null, NULL, 1);
	assert_true(b.len == sizeof row - 1 && !memcmp(b.data, row, b.len));
	b.len = 0;
	msg_keepalive(&b, 5, 6, true);
	assert_true(b.len == 5 + 18 && b.data[0] == 'd' && be32(b.data + 1) == 22 && b.data[22] == 1);
	ws_buf_free(&b);
}

static void
make_control(uint8_t *p, uint32_t version, size_t crc_at)
{
	memset(p, 0, 512);
	ws_store64(p, 77);
	ws_store32(p + 8, version);
	ws_store64(p + 40, 0x3000028);
	ws_store32(p + 48, 4);
	ws_store32(p + 180, 123);
	ws_store32(p + 228, 1u << 20);
	ws_store32(p + crc_at, WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, p, crc_at)));
}

static void
test_control(void **state)
{
	static const struct {
		uint32_t version;
		int major;
		size_t crc;
	} v[] = {{1300, 16, 288}, {1700, 17, 288}, {1800, 18, 292}};
	uint8_t p[512];
	struct ws_pgcontrol c;
	struct ws_err err = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		make_control(p, v[i].version, v[i].crc);
		assert_int_equal(ws_pgcontrol_parse(p, sizeof p, &c, &err), 0);
		assert_true(c.major == v[i].major && c.system_id == 77 && c.redo.lsn == 0x3000028 &&
					c.redo.tli == 4);
		assert_true(c.max_connections == 123 && c.segsize == 1u << 20);
		assert_int_equal(ws_pgcontrol_parse(p, v[i].crc + 3, &c, &err), -1);
		p[100] ^= 1;
		assert_int_equal(ws_pgcontrol_parse(p, sizeof p, &c, &err), -1);
		assert_string_equal(err.reason, "control_malformed");
	}
	make_control(p, 1201, 288);
	assert_int_equal(ws_pgcontrol_parse(p, sizeof p, &c, &err), -1);
}

static void
put(const char *dir, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void
test_directories(void **state)
{
	char dir[] = "/tmp/ws-unit-XXXXXX", sub[64], cmd[96];
	struct ws_pos pos = {9, 9};
	struct ws_err err = {0};
	ws_lsn diff;
	int n;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof sub, "%s/pos", dir);
	assert_int_equal(ws_statepos_min(dir, "floor.", &pos, &n, &err), 0);
	assert_true(n == 0 && pos.lsn == 9);
	mkdir(sub, 0700);
	put(sub, "floor.a", "2 0/30\n");
	put(sub, "floor.b", "1 0/20\n");
	put(sub, "floor.c.tmp", "torn");
	put(sub, "read.a", "1 0/1\n");
	assert_int_equal(ws_statepos_min(dir, "floor.", &pos, &n, &err), 0);
	assert_true(n == 2 && pos.lsn == 0x20 && pos.tli == 1);
	put(sub, "floor.d", "nonsense");
	assert_int_equal(ws_statepos_min(dir, "floor.", &pos, &n, &err), -1);

	put(dir, "000000010000000000000003.partial", "hello");
	put(dir, "000000010000000000000003.other", "x");
	assert_int_equal(recvdir_end(dir, 1u << 20, 0, &pos, &err), 0);
	assert_true(pos.tli == 1 && pos.lsn == (3u << 20) + 5);
	assert_int_equal(
		recvdir_compare(dir, 1u << 20, 1, 3u << 20, (const uint8_t *)"hello", 5, &diff, &err), 1);
	assert_int_equal(
		recvdir_compare(dir, 1u << 20, 1, (3u << 20) + 1, (const uint8_t *)"elpo", 4, &diff, &err),
		0);
	assert_true(diff == (3u << 20) + 3);
	assert_int_equal(recvdir_cut(dir, 1u << 20, 1, diff, &err), 0);
	assert_int_equal(
		recvdir_compare(dir, 1u << 20, 1, 3u << 20, (const uint8_t *)"hello", 5, &diff, &err), 0);
	assert_true(diff == (3u << 20) + 3);
	put(dir, "000000010000000000000004", "short");
	assert_int_equal(recvdir_end(dir, 1u << 20, 0, &pos, &err), -1);
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream_messages), cmocka_unit_test(test_startup),
		cmocka_unit_test(test_commands),        cmocka_unit_test(test_builders),
		cmocka_unit_test(test_control),         cmocka_unit_test(test_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
