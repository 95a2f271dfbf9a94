/* The oracle's client: texts put in place, and what it does when the other side fails.  That side
 * is a child of this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ws/change.h"
#include "ws/cursor.h"
#include "ws/oracle.h"

/* ---- another side ---- */

static char dir[] = "/tmp/ws-oracle-XXXXXX";
static char path[64];
static pid_t server;

static void
put_all(int fd, const struct ws_buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n <= 0)
			_exit(1);
		at += (size_t)n;
	}
}

static size_t
begin(struct ws_buf *b, char type)
{
	size_t at = b->len;

	ws_buf_put32(b, 0);
	ws_buf_putc(b, (uint8_t)type);
	return at;
}

static void
end(struct ws_buf *b, size_t at)
{
	ws_store32(b->data + at, (uint32_t)(b->len - at - 4));
}

static void
say_hello(int fd, ws_oid db)
{
	struct ws_buf b = {0};
	size_t at = begin(&b, 'H');

	ws_buf_put(&b, "WSORACLE", 8);
	ws_buf_put16(&b, 1);
	ws_buf_put16(&b, 17);
	ws_buf_put32(&b, db);
	ws_buf_putstr(&b, "UTF8", 4);
	end(&b, at);
	put_all(fd, &b);
	ws_buf_free(&b);
}

static bool
read_all(int fd, void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = read(fd, (uint8_t *)p + at, n - at);

		if (k <= 0)
			return false;
		at += (size_t)k;
	}
	return true;
}

/* Text of a value: its bytes between <>.  "bad" fails, "die" ends the connection, "busy" has the
 * whole asked again unless it is alone. */
static bool
serve_values(int fd, const uint8_t *p, size_t n)
{
	struct ws_cursor c = ws_cursor(p, n);
	struct ws_buf b = {0};
	size_t at = begin(&b, 'R'), len;
	uint32_t seq = ws_cur_u32(&c), count = ws_cur_u32(&c);

	ws_buf_put32(&b, seq);
	ws_buf_put32(&b, count);
	for (uint32_t i = 0; i < count; i++) {
		ws_cur_u32(&c);
		const char *s = ws_cur_str(&c, &len);

		if (len == 3 && !memcmp(s, "die", 3))
			return false;
		if (len == 4 && !memcmp(s, "busy", 4) && count > 1) {
			b.len = at;
			at = begin(&b, 'N');
			ws_buf_putstr(&b, "later", 5);
			break;
		}
		bool bad = len == 3 && !memcmp(s, "bad", 3);

		ws_buf_putc(&b, bad);
		ws_buf_put32(&b, (uint32_t)len + 2);
		ws_buf_putc(&b, '<');
		ws_buf_put(&b, s, len);
		ws_buf_putc(&b, '>');
	}
	if (c.bad)
		_exit(1);
	end(&b, at);
	put_all(fd, &b);
	ws_buf_free(&b);
	return true;
}

static void
worker(int fd)
{
	uint8_t head[5];

	say_hello(fd, 5);
	while (read_all(fd, head, 5)) {
		size_t n = ws_le32(head) - 1;
		uint8_t *body = ws_malloc(n + 1);

		if (!read_all(fd, body, n))
			_exit(1);
		bool ok = head[4] == 'T' || serve_values(fd, body, n);

		free(body);
		if (!ok)
			break;
	}
	close(fd);
}

static int
listen_on(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", dir, name);
	unlink(a.sun_path);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 8) != 0)
		_exit(1);
	return fd;
}

static void
serve(int ready)
{
	int l = listen_on("socket"), w = listen_on("db.5");
	struct ws_buf b = {0};
	size_t at = begin(&b, 'G');
	uint8_t ask[9];

	ws_buf_putstr(&b, "db.5", 4);
	end(&b, at);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	for (;;) {
		int fd = accept(l, NULL, NULL);

		say_hello(fd, 0);
		if (read_all(fd, ask, 9)) {
			put_all(fd, &b);
			close(fd);
			worker(accept(w, NULL, NULL));
		}
	}
}

static int
start(void **state)
{
	int p[2];
	char c;

	(void)state;
	if (!mkdtemp(dir) || pipe(p) != 0)
		return -1;
	snprintf(path, sizeof path, "%s/socket", dir);
	server = fork();
	if (server == 0)
		serve(p[1]);
	return server > 0 && read(p[0], &c, 1) == 1 ? 0 : -1;
}

static int
stop(void **state)
{
	char cmd[64];

	(void)state;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	snprintf(cmd, sizeof cmd, "%s/socket", dir);
	unlink(cmd);
	snprintf(cmd, sizeof cmd, "%s/db.5", dir);
	unlink(cmd);
	return rmdir(dir);
}

/* ---- texts ---- */

/* Rows of three columns, as ws-decode puts them: an int, a raw value, another raw value. */
static void
put_row(struct ws_oracle *o, uint32_t type, struct ws_buf *b, int i, const char *x, const char *y)
{
	struct ws_value v[3] = {
		{.state = WS_V_VALUE, .kind = WS_K_INT4, .i = i},
		{.state = x ? WS_V_VALUE : WS_V_NULL,
		 .kind = WS_K_OTHER,
		 .len = x ? (uint32_t)strlen(x) : 0,
		 .p = (const uint8_t *)x},
		{.state = WS_V_VALUE,
		 .kind = WS_K_OTHER,
		 .len = (uint32_t)strlen(y),
		 .p = (const uint8_t *)y},
	};
	size_t frame = b->len, at = frame + WS_CHANGE_ROW_HEAD + 1 + 4;

	ws_change_put_row(b, 'I', 1, (uint64_t)i, 3, v, NULL, false);
	if (x)
		ws_oracle_defer(o, frame, at, type, 16);
	ws_oracle_defer(o, frame, at + (x ? 4 + strlen(x) : 0), type, 16);
}

/* The other side does not look into descriptions. */
static uint32_t
type_of(struct ws_oracle *o, const char *desc)
{
	return ws_oracle_type(o, (const uint8_t *)desc, strlen(desc), "a type");
}

static int
resolve(struct ws_oracle *o, struct ws_buf *b, struct ws_err *err)
{
	int rc = 0;

	for (int i = 0; i < 100 && rc == 0; i++)
		rc = ws_oracle_resolve(o, b, err);
	return rc;
}

static void
texts_in_place(void **state)
{
	struct ws_oracle *o = ws_oracle_new(path, 5);
	struct ws_buf b = {0}, want = {0};
	struct ws_change c = {.type = WS_C_PROGRESS, .progress = {1, 77}};
	struct ws_err err;
	struct ws_oracle_stats st;
	char x[40], y[40];

	(void)state;
	uint32_t t = type_of(o, "x"), u = type_of(o, "xy");

	assert_int_not_equal(t, u);
	assert_int_equal(t, type_of(o, "x"));
	for (int round = 0; round < 2; round++) {
		struct ws_oracle *none = ws_oracle_new("/nowhere", 1);

		b.len = want.len = 0;
		ws_change_put(&b, &c);
		ws_change_put(&want, &c);
		for (int i = 0; i < 20000; i++) {
			snprintf(x, sizeof x, "%d", i * i);
			snprintf(y, sizeof y, "<%d>", i * i);
			put_row(o, i % 2 ? t : u, &b, i, i % 3 ? x : NULL, "");
			put_row(none, 0, &want, i, i % 3 ? y : NULL, "<>");
			if (i % 1000 == 0) {
				ws_change_put(&b, &c);
				ws_change_put(&want, &c);
			}
		}
		ws_oracle_free(none);
		assert_int_equal(resolve(o, &b, &err), 1);
		assert_int_equal(b.len, want.len);
		assert_memory_equal(b.data, want.data, want.len);
		assert_int_equal(ws_oracle_deferred(o), 0);
	}
	ws_oracle_get_stats(o, &st);
	assert_int_equal(st.values, 2 * (20000 + 20000 - 6667));
	assert_int_equal(st.lost, 0);
	assert_true(st.batches >= 4 && st.batches < 10);
	ws_oracle_free(o);
	ws_buf_free(&b);
	ws_buf_free(&want);
}

static void
asked_again(void **state)
{
	struct ws_oracle *o = ws_oracle_new(path, 5);
	struct ws_buf b = {0};
	struct ws_err err;

	(void)state;
	uint32_t t = type_of(o, "x");

	for (int i = 0; i < 10; i++)
		put_row(o, t, &b, i, i == 7 ? "busy" : "a", "b");
	assert_int_equal(ws_oracle_resolve(o, &b, &err), 0);
	assert_string_equal(ws_oracle_why(o), "later");
	assert_int_equal(resolve(o, &b, &err), 1);
	ws_oracle_free(o);
	ws_buf_free(&b);
}

static void
no_text(void **state)
{
	struct ws_oracle *o = ws_oracle_new(path, 5);
	struct ws_buf b = {0};
	struct ws_err err;

	(void)state;
	uint32_t t = type_of(o, "x");

	put_row(o, t, &b, 1, "a", "b");
	put_row(o, t, &b, 2, "a", "bad");
	assert_int_equal(resolve(o, &b, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_string_equal(err.reason, "oracle_value");
	assert_non_null(strstr(err.msg, "a type in the row at 0/00000010 has no text: <bad>"));
	ws_oracle_free(o);
	ws_buf_free(&b);
}

static void
deadly(void **state)
{
	struct ws_oracle *o = ws_oracle_new(path, 5);
	struct ws_buf b = {0};
	struct ws_err err;
	struct ws_oracle_stats st;

	(void)state;
	uint32_t t = type_of(o, "x");

	for (int i = 0; i < 1000; i++)
		put_row(o, t, &b, i, "a", i == 617 ? "die" : "b");
	assert_int_equal(resolve(o, &b, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_string_equal(err.reason, "oracle_crash");
	ws_oracle_get_stats(o, &st);
	/* all before it were rendered, the one was found by halving */
	assert_int_equal(st.values, 2 * 617 + 1);
	assert_true(st.lost < 20);
	ws_oracle_free(o);
	ws_buf_free(&b);
}

static void
not_there(void **state)
{
	struct ws_oracle *o = ws_oracle_new("/nowhere/socket", 5), *other = ws_oracle_new(path, 6);
	struct ws_buf b = {0};
	struct ws_err err;

	(void)state;
	assert_int_equal(ws_oracle_resolve(o, &b, &err), 1); /* nothing to ask */
	put_row(o, type_of(o, "x"), &b, 1, "a", "b");
	assert_int_equal(ws_oracle_resolve(o, &b, &err), 0);
	assert_non_null(strstr(ws_oracle_why(o), "/nowhere/socket"));
	b.len = 0;
	/* a worker of another database */
	put_row(other, type_of(other, "x"), &b, 1, "a", "b");
	assert_int_equal(resolve(other, &b, &err), -1);
	assert_string_equal(err.reason, "oracle_protocol");
	ws_oracle_free(o);
	ws_oracle_free(other);
	ws_buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_in_place), cmocka_unit_test(asked_again), cmocka_unit_test(no_text),
		cmocka_unit_test(deadly),         cmocka_unit_test(not_there),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, stop);
}
