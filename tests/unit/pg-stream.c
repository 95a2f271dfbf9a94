/* lib/pg: how a replication stream ends.  A server that says what the test wants it to, through libpq. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/pg/replmsg.h"
#include "lib/pg/servermsg.h"
#include "tmpdir.h"
#include "ws/pgconn.h"

#define FORK 0x4000110ull

/* ---- the server ---- */

/* Answers the query with `first`, and the client's CopyDone with `then`, when there is any. */
struct script {
	int listening;
	struct ws_buf first, then;
	bool wants_done; /* waits for CopyDone before `then` and the end */
	pthread_t thread;
};

static void
all(int fd, void *p, size_t n, bool out)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = out ? write(fd, (char *)p + done, n - done) : read(fd, (char *)p + done, n - done);

		if (k <= 0)
			return;
		done += (size_t)k;
	}
}

/* The next message of the client's; its type, or 0 at the end. */
static int
message(int fd, bool typed)
{
	uint8_t head[5] = {0}, rest[4096];
	size_t at = typed ? 0 : 1;

	all(fd, head + at, 5 - at, false);
	uint32_t n = be32(head + 1);

	if (n < 4 || n - 4 > sizeof rest)
		return 0;
	all(fd, rest, n - 4, false);
	return typed ? head[0] : 'S';
}

static void *
serve(void *arg)
{
	struct script *s = arg;
	struct ws_buf hello = {0};
	int fd = accept(s->listening, NULL, NULL), type;

	(void)message(fd, false);
	msg_auth_ok(&hello);
	msg_parameter(&hello, "server_version", "17.2");
	msg_ready(&hello);
	all(fd, hello.data, hello.len, true);
	ws_buf_free(&hello);
	if (message(fd, true) == 'Q') {
		all(fd, s->first.data, s->first.len, true);
		while (s->wants_done && (type = message(fd, true)) && type != 'c')
			;
		all(fd, s->then.data, s->then.len, true);
	}
	shutdown(fd, SHUT_WR);
	while (message(fd, true))
		;
	close(fd);
	return NULL;
}

static struct ws_pg *
open_server(struct script *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct ws_pg_opts o = {.mode = WS_PG_PHYSICAL, .host = dir, .port = "5432", .user = "x"};
	struct ws_err err = {0};

	strcpy(a.sun_path, path(".s.PGSQL.5432"));
	unlink(a.sun_path);
	s->listening = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(s->listening, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(s->listening, 1), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	struct ws_pg *c = ws_pg_open(&o, NULL, &err);

	if (!c)
		fail_msg("%s", err.msg);
	return c;
}

static void
close_server(struct script *s, struct ws_pg *c)
{
	ws_pg_close(c);
	pthread_join(s->thread, NULL);
	close(s->listening);
	ws_buf_free(&s->first);
	ws_buf_free(&s->then);
}

/* ---- what it says ---- */

static void
wal(struct ws_buf *b, ws_lsn at, const char *bytes)
{
	uint8_t h[REPL_WAL_HDR] = "w";
	size_t m;

	put_be64(h + 1, at);
	put_be64(h + 9, at + strlen(bytes));
	msg_begin(b, 'd', &m);
	ws_buf_put(b, h, sizeof h);
	ws_buf_puts(b, bytes);
	msg_end(b, m);
}

static const struct column next_cols[] = {{"next_tli", 20}, {"next_tli_startpos", 25}, {"more", 25}};

static void
row(struct ws_buf *b, const char *tli, const char *lsn)
{
	const char *vals[] = {tli, lsn};

	msg_rows(b, next_cols, 2);
	msg_row(b, vals, NULL, 2);
}

static void
completes(struct ws_buf *b, int n)
{
	for (int i = 0; i < n; i++)
		msg_complete(b, i ? "START_REPLICATION" : "START_STREAMING");
	msg_ready(b);
}

static void
notice(struct ws_buf *b)
{
	size_t m;

	msg_begin(b, 'N', &m);
	ws_buf_put(b, "SNOTICE\0C00000\0Mhear\0\0", 22);
	msg_end(b, m);
}

/* ---- the client ---- */

static int
start(struct ws_pg *c, struct ws_pos *next, struct ws_err *err)
{
	*err = (struct ws_err){0};
	return ws_pg_stream_start(c, NULL, (struct ws_pos){4, FORK - 3}, next, err);
}

/* Events until the stream has ended; those with WAL or keepalives are counted. */
static int
end(struct ws_pg *c, struct ws_pg_event *ev, int *wals, int *keepalives, struct ws_err *err)
{
	*wals = *keepalives = 0;
	for (;;) {
		if (ws_pg_stream_next(c, ev, err) != 0)
			return -1;
		if (ev->kind == WS_PG_WAL) {
			assert_true(ev->lsn == FORK - 3 && ev->n == 3 && !memcmp(ev->p, "abc", 3));
			ws_pg_free(ev->owner);
			++*wals;
		} else if (ev->kind == WS_PG_KEEPALIVE) {
			++*keepalives;
		} else if (ev->kind != WS_PG_NOTHING) {
			return 0;
		}
	}
}

/* Streams s; the stream's end must be ev, or a failure that a new connection may heal. */
static struct ws_pg_event
stream(struct script *s, bool fails, const char *what)
{
	struct ws_pg_event ev;
	struct ws_pos next;
	struct ws_err err;
	struct ws_pg *c = open_server(s);
	int wals, keepalives;

	if (start(c, &next, &err) != 0)
		fail_msg("%s: %s", what, err.msg);
	int rc = end(c, &ev, &wals, &keepalives, &err);

	if ((rc != 0) != fails)
		fail_msg("%s: %s", what, rc ? err.msg : "accepted");
	if (fails)
		assert_int_equal(err.status, WS_ETEMP);
	assert_int_equal(wals, 1);
	close_server(s, c);
	return ev;
}

static struct script
streaming(bool done)
{
	struct script s = {.wants_done = done};

	msg_copy_both(&s.first);
	wal(&s.first, FORK - 3, "abc");
	if (done)
		msg_copy_done(&s.first);
	return s;
}

/* The row that ends a timeline, with all that may stand between. */
static void
test_timeline_end(void **state)
{
	struct script s = streaming(true);

	(void)state;
	msg_keepalive(&s.first, FORK, 0, false);
	row(&s.then, "5", "0/4000110");
	completes(&s.then, 2);
	struct ws_pg_event ev = stream(&s, false, "end of timeline");

	assert_int_equal(ev.kind, WS_PG_TIMELINE_END);
	assert_true(ev.next.tli == 5 && ev.next.lsn == FORK);

	s = streaming(false);
	s.wants_done = true;
	msg_keepalive(&s.first, FORK, 0, true);
	notice(&s.first);
	msg_parameter(&s.first, "in_hot_standby", "on");
	msg_copy_done(&s.first);
	notice(&s.then);
	row(&s.then, "7", "1/0");
	msg_parameter(&s.then, "in_hot_standby", "off");
	completes(&s.then, 2);
	ev = stream(&s, false, "with notices and parameters");
	assert_int_equal(ev.kind, WS_PG_TIMELINE_END);
	assert_true(ev.next.tli == 7 && ev.next.lsn == 0x100000000ull);
}

/* CopyDone, and no row: the server ended the stream, not the timeline. */
static void
test_controlled_end(void **state)
{
	struct script s = streaming(true);

	(void)state;
	completes(&s.then, 2);
	assert_int_equal(stream(&s, false, "without a row").kind, WS_PG_STOPPED);
	/* CommandComplete without CopyDone, then end of file: a shutdown. */
	s = streaming(false);
	msg_complete(&s.first, "COPY 0");
	assert_int_equal(stream(&s, false, "shutdown").kind, WS_PG_SHUTDOWN);
	s = streaming(false);
	stream(&s, true, "end of file");
	s = streaming(true);
	stream(&s, true, "CopyDone and end of file");
	s = streaming(false);
	msg_error(&s.first, "ERROR", "57014", "canceling statement due to user request");
	msg_ready(&s.first);
	stream(&s, true, "an error");
}

/* Everything that is not the row, once, with both CommandCompletes. */
static void
test_malformed_ends(void **state)
{
	static const struct {
		const char *what, *tli, *lsn;
		int rows, completes, fields;
	} cases[] = {
		{"no CommandComplete", "5", "0/4000110", 1, 0, 2},
		{"one CommandComplete", "5", "0/4000110", 1, 1, 2},
		{"one CommandComplete without a row", NULL, NULL, 0, 1, 0},
		{"none at all", NULL, NULL, 0, 0, 0},
		{"no row in the set", "5", "0/4000110", 0, 2, 2},
		{"two rows in the set", "5", "0/4000110", 2, 2, 2},
		{"a missing field", "5", "0/4000110", 1, 2, 1},
		{"a field more", "5", "0/4000110", 1, 2, 3},
		{"no timeline", NULL, "0/4000110", 1, 2, 2},
		{"no position", "5", NULL, 1, 2, 2},
		{"an empty timeline", "", "0/4000110", 1, 2, 2},
		{"a timeline that is none", "5x", "0/4000110", 1, 2, 2},
		{"a negative timeline", "-5", "0/4000110", 1, 2, 2},
		{"a timeline too large", "4294967301", "0/4000110", 1, 2, 2},
		{"white space before the timeline", " 5", "0/4000110", 1, 2, 2},
		{"timeline 0", "0", "0/4000110", 1, 2, 2},
		{"the same timeline", "4", "0/4000110", 1, 2, 2},
		{"an older timeline", "3", "0/4000110", 1, 2, 2},
		{"half a position", "5", "0/", 1, 2, 2},
		{"a position with more behind", "5", "0/4000110 ", 1, 2, 2},
		{"a position that is none", "5", "4000110", 1, 2, 2},
		{"a position too large", "5", "0/100000000", 1, 2, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct script s = streaming(true);
		const char *vals[] = {cases[i].tli, cases[i].lsn, "more"};

		if (cases[i].fields)
			msg_rows(&s.then, next_cols, (size_t)cases[i].fields);
		for (int k = 0; k < cases[i].rows; k++)
			msg_row(&s.then, vals, NULL, (size_t)cases[i].fields);
		completes(&s.then, cases[i].completes);
		stream(&s, true, cases[i].what);
	}
	/* Two sets. */
	struct script s = streaming(true);

	row(&s.then, "5", "0/4000110");
	msg_complete(&s.then, "START_STREAMING");
	row(&s.then, "6", "0/4000110");
	completes(&s.then, 2);
	stream(&s, true, "two answers");
	/* The connection is gone behind the row. */
	s = streaming(true);
	row(&s.then, "5", "0/4000110");
	msg_complete(&s.then, "START_STREAMING");
	stream(&s, true, "end of file behind the row");
}

/* Asked for exactly the fork: the row at once, and no CopyBoth. */
static void
test_immediate_end(void **state)
{
	static const struct {
		const char *tli, *lsn;
		int completes, rc;
	} cases[] = {{"5", "0/4000110", 2, 1}, {"9", "0/4000110", 2, 1}, {"5", "0/4000110", 1, -1},
	             {"4", "0/4000110", 2, -1}, {"5", "x", 2, -1}, {NULL, NULL, 2, -1}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct script s = {0};
		struct ws_pos next = {0};
		struct ws_err err;

		if (cases[i].tli)
			row(&s.first, cases[i].tli, cases[i].lsn);
		completes(&s.first, cases[i].completes);
		struct ws_pg *c = open_server(&s);

		assert_int_equal(start(c, &next, &err), cases[i].rc);
		if (cases[i].rc == 1)
			assert_true(next.tli == (ws_tli)atoi(cases[i].tli) && next.lsn == FORK);
		else
			assert_int_equal(err.status, WS_ETEMP);
		close_server(&s, c);
	}
}

/* Errors: only what no retry heals is for an operator; lineage is never told by them. */
static void
test_errors(void **state)
{
	static const struct {
		const char *sqlstate, *reason;
	} cases[] = {{"58P01", "wal_missing"}, {"42704", "slot_missing"}, {"55000", "slot_lost"},
	             {"XX000", ""}, {"57014", ""}, {"55006", ""}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct script s = {0};
		struct ws_pos next;
		struct ws_err err;

		msg_error(&s.first, "ERROR", cases[i].sqlstate, "not in this server's history");
		msg_ready(&s.first);
		struct ws_pg *c = open_server(&s);

		assert_int_equal(start(c, &next, &err), -1);
		assert_int_equal(err.status, cases[i].reason[0] ? WS_EOPERATOR : WS_ETEMP);
		assert_string_equal(err.reason, cases[i].reason);
		assert_string_equal(ws_pg_sqlstate(c), cases[i].sqlstate);
		close_server(&s, c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_timeline_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_controlled_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_malformed_ends, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_immediate_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
	};

	return cmocka_run_group_tests_name("pg-stream", tests, NULL, NULL);
}
