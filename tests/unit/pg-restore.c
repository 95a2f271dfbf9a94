/* lib/pg: restore commands, what their status says, and how they end; the receiver's output where a
 * stream breaks between two timelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/pg/recvout.h"
#include "lib/pg/restorecmd.h"
#include "tmpdir.h"
#include "ws/file.h"
#include "ws/receive.h"

static const char *
expanded(const char *command)
{
	static struct ws_buf b;
	struct ws_err err = {0};

	b.len = 0;
	if (restorecmd_expand(command, "NAME", "to/PATH", &b, &err) == 0)
		return ws_buf_cstr(&b);
	assert_int_equal(err.status, WS_EUSAGE);
	return err.status == WS_EUSAGE ? NULL : "";
}

static void
test_expand(void **state)
{
	(void)state;
	assert_string_equal(expanded("cp /a/%f %p"), "cp /a/NAME to/PATH");
	assert_string_equal(expanded("%f%f\"%p\""), "NAMENAME\"to/PATH\"");
	assert_string_equal(expanded("echo 100%% %%f"), "echo 100% %f");
	assert_string_equal(expanded(""), "");
	assert_null(expanded("cp %f %"));
	assert_null(expanded("pg_standby %r"));
	assert_null(expanded("% f"));
	assert_int_equal(ws_receive_restore_command_check("cp %f %p", NULL), 0);
	assert_int_equal(ws_receive_restore_command_check("cp %F %p", NULL), -1);
}

static void
no_idle(void *arg)
{
	(void)arg;
}

/* What running it says: 1, 0, or -1 with the status. */
static int
ran(const char *command, enum ws_status *status)
{
	struct ws_err err = {0};
	int rc = restorecmd_run(command, dir, "000000010000000000000001", "out", no_idle, NULL, &err);

	*status = err.status;
	if (rc < 0)
		assert_non_null(strstr(err.msg, "000000010000000000000001"));
	return rc;
}

static void
test_status(void **state)
{
	enum ws_status status;

	(void)state;
	assert_int_equal(ran("echo %f >%p", &status), 1);
	assert_int_equal(access(path("out"), F_OK), 0);
	assert_int_equal(ran("exit 1", &status), 0);
	assert_int_equal(ran("exit 125", &status), 0);
	assert_int_equal(ran("exit 126", &status), -1);
	assert_int_equal(status, WS_EUSAGE);
	assert_int_equal(ran("/nowhere/at/all 2>/dev/null", &status), -1);
	assert_int_equal(status, WS_EUSAGE);
	assert_int_equal(ran("exit 128", &status), -1);
	assert_int_equal(status, WS_ETEMP);
	assert_int_equal(ran("exit 255", &status), -1);
	assert_int_equal(status, WS_ETEMP);
	assert_int_equal(ran("kill -KILL $$", &status), -1);
	assert_int_equal(status, WS_ETEMP);
	/* Neither our input nor our output is its own; signals that we ignore are not ignored there. */
	assert_int_equal(ran("read x || test $? = 1", &status), 1);
	assert_int_equal(ran("kill -PIPE $$", &status), -1);
}

/* ---- the output ---- */

#define SEG   (1u << 20)
#define START ((ws_lsn)2 * SEG)
#define FORK  (START + 300000)

static uint8_t bytes[2 * SEG];

static void
settle(struct recvout *o)
{
	struct ws_err err;

	while (!recvout_idle(o)) {
		assert_int_equal(recvout_check(o, &err), 0);
		usleep(1000);
	}
	assert_int_equal(recvout_check(o, &err), 0);
}

static void
push(struct recvout *o, ws_lsn from, ws_lsn to)
{
	recvout_push_copy(o, from, bytes + (from - START), (size_t)(to - from));
	settle(o);
}

/* The ancestor to its end, then the first bytes of the next timeline. */
static void
switch_to_2(struct recvout *o, ws_lsn from, ws_lsn to)
{
	static const char history[] = "1\t0/2493E0\tx\n";
	struct ws_history h;
	uint64_t abandoned;
	struct ws_err err;

	assert_int_equal(ws_history_parse(2, history, strlen(history), &h, &err), 0);
	recvout_begin(o, (struct ws_pos){1, START}, "the server's");
	push(o, from, FORK);
	assert_int_equal(recvout_history(o, 2, history, strlen(history), &err), 0);
	assert_int_equal(recvout_timeline_end(o, &h, FORK, &abandoned, &err), 0);
	ws_history_fini(&h);
	recvout_begin_fork(o, (struct ws_pos){2, START});
	if (to > START)
		push(o, START, to);
}

static void
kept_is(struct recvout *o, ws_tli tli, ws_lsn lsn)
{
	struct ws_pos kept = recvout_kept(o);

	assert_int_equal(kept.tli, tli);
	assert_int_equal(kept.lsn, lsn);
}

static void
test_break_at_fork(void **state)
{
	char *raw = path("raw"), *pos = path("received");
	struct recvout_opts opts = {.dir = raw, .pos_path = pos, .cluster = {1, 17, SEG}, .no_sync = true};
	struct ws_err err;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	struct recvout *o = recvout_open(&opts, &err);

	assert_non_null(o);
	/* It breaks before a byte of timeline 2 has come, then below the switch, then past it. */
	switch_to_2(o, START, START);
	kept_is(o, 1, FORK);
	switch_to_2(o, START, FORK - 1000);
	kept_is(o, 1, FORK);
	switch_to_2(o, START, FORK + 1000);
	kept_is(o, 2, FORK + 1000);
	recvout_begin(o, (struct ws_pos){2, START}, "the archive's");
	push(o, START, START + SEG);
	kept_is(o, 2, START + SEG);
	assert_int_equal(recvout_close(o, true, 1000, &err), 0);
	struct ws_buf b = {0};
	char *seg = path("raw/000000020000000000000002");

	assert_int_equal(ws_file_read(seg, SEG, &b, &err), 1);
	assert_int_equal(b.len, SEG);
	assert_memory_equal(b.data, bytes, SEG);
	ws_buf_free(&b);
	/* Another prefix is another branch. */
	opts.dir = path("raw");
	o = recvout_open(&opts, &err);
	assert_non_null(o);
	/* Nothing is waited for before anything has begun. */
	assert_true(recvout_idle(o));
	recvout_begin(o, (struct ws_pos){2, START}, "the archive's");
	bytes[5] ^= 1;
	recvout_push_copy(o, START, bytes, 1000);
	while (recvout_check(o, &err) == 0)
		usleep(1000);
	assert_string_equal(err.reason, "sibling_branch");
	assert_non_null(strstr(err.msg, "the archive's"));
	recvout_close(o, false, 1000, &err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expand),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
		cmocka_unit_test_setup_teardown(test_break_at_fork, setup, teardown),
	};

	return cmocka_run_group_tests_name("pg-restore", tests, NULL, NULL);
}
