/* Connections by libpq: opening, commands, errors with SQLSTATE; see ws/pgconn.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ws/tool.h"

#define CONNECT_TIMEOUT_MS 60000
#define RESULT_TIMEOUT_MS  60000

void
pg_put_parameter(struct ws_buf *b, const char *key, const char *value)
{
	ws_buf_printf(b, b->len ? " %s='" : "%s='", key);
	for (; *value; value++) {
		if (*value == '\'' || *value == '\\')
			ws_buf_putc(b, '\\');
		ws_buf_putc(b, (uint8_t)*value);
	}
	ws_buf_putc(b, '\'');
}

static bool
is_config_state(const char *state)
{
	return !strncmp(state, "28", 2) || !strcmp(state, "42501") || !strcmp(state, "3D000");
}

/* libpq's messages end in newlines and may have several lines: one line, without the end. */
static void
one_line(char *s)
{
	size_t n = strlen(s);

	while (n && (s[n - 1] == '\n' || s[n - 1] == ' '))
		s[--n] = 0;
	for (char *p = s; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
}

int
pg_wait(struct ws_pg *c, bool out, int timeout_ms, struct ws_err *err)
{
	struct pollfd fds[2] = {{.fd = PQsocket(c->conn), .events = POLLIN},
							{.fd = ws_tool_signal_fd(), .events = POLLIN}};

	if (out)
		fds[0].events |= POLLOUT;
	for (;;) {
		if (ws_tool_stopping()) {
			ws_err_temp(err, "interrupted");
			return -1;
		}
		ws_tool_take_hup();
		int n = poll(fds, 2, timeout_ms);

		if (n > 0 && fds[0].revents)
			return 1;
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return ws_err_sys(err, "cannot poll the connection");
	}
}

/* A connection's failure has no result with fields: the SQLSTATE stands in the verbose text,
 * "FATAL:  28P01: password ..." (the severity's word may be translated), and the source's place
 * behind the message.  Takes both out of s. */
static void
take_sqlstate(char *s, char state[6])
{
	for (char *p = s; (p = strstr(p, ":  ")); p += 3) {
		char *code = p + 3;

		if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || strncmp(code + 5, ": ", 2))
			continue;
		memcpy(state, code, 5);
		state[5] = 0;
		memmove(code, code + 7, strlen(code + 7) + 1);
		char *place = strrchr(code, '\n');

		while (place && !place[1]) {
			*place = 0;
			place = strrchr(code, '\n');
		}
		if (place && strstr(place, ".c:"))
			*place = 0;
		return;
	}
}

static int
connect_failed(struct ws_pg *c, bool *needs_password, struct ws_err *err)
{
	char *msg = ws_strdup(PQerrorMessage(c->conn));

	take_sqlstate(msg, c->sqlstate);
	one_line(msg);
	if (needs_password)
		*needs_password = PQconnectionNeedsPassword(c->conn);
	if (is_config_state(c->sqlstate) || PQconnectionNeedsPassword(c->conn))
		ws_err_usage(err, "cannot connect: %s", msg);
	else if (c->sqlstate[0])
		ws_err_temp(err, "cannot connect: %s (SQLSTATE %s)", msg, c->sqlstate);
	else
		ws_err_temp(err, "cannot connect: %s", msg);
	free(msg);
	return -1;
}

static int
connect_wait(struct ws_pg *c, int timeout_ms, bool *needs_password, struct ws_err *err)
{
	PostgresPollingStatusType st = PGRES_POLLING_WRITING;
	uint64_t until = ws_now_us() + (uint64_t)timeout_ms * 1000;

	while (st != PGRES_POLLING_OK) {
		if (st == PGRES_POLLING_FAILED)
			return connect_failed(c, needs_password, err);
		struct pollfd fds[2] = {
			{.fd = PQsocket(c->conn), .events = st == PGRES_POLLING_READING ? POLLIN : POLLOUT},
			{.fd = ws_tool_signal_fd(), .events = POLLIN}};
		uint64_t now = ws_now_us();

		if (now >= until)
			return ws_err_temp(err, "cannot connect: no answer within %d s", timeout_ms / 1000);
		int n = poll(fds, 2, (int)((until - now) / 1000) + 1);

		if (n < 0 && errno != EINTR)
			return ws_err_sys(err, "cannot connect: poll");
		if (ws_tool_stopping())
			return ws_err_temp(err, "interrupted");
		ws_tool_take_hup();
		if (n > 0 && fds[0].revents)
			st = PQconnectPoll(c->conn);
	}
	return 0;
}

static void
no_notice(void *arg, const PGresult *res)
{
	(void)arg;
	ws_debug("server: %s", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
}

/* What libpq takes for a connection string and not for a database's name. */
static bool
is_conninfo(const char *s)
{
	return strchr(s, '=') || !strncmp(s, "postgresql://", 13) || !strncmp(s, "postgres://", 11);
}

struct ws_pg *
ws_pg_open(const struct ws_pg_opts *o, bool *needs_password, struct ws_err *err)
{
	const char *keys[9], *vals[9];
	int n = 0;
	static const char *const modes[] = {
		[WS_PG_SQL] = NULL, [WS_PG_PHYSICAL] = "true", [WS_PG_DATABASE] = "database"};
	const struct {
		const char *key, *val;
	} all[] = {{"dbname", o->conninfo},
			   {"host", o->host},
			   {"port", o->port},
			   {"user", o->user},
			   {"password", o->password},
			   {"replication", modes[o->mode]},
			   {"fallback_application_name", o->appname}};

	if (needs_password)
		*needs_password = false;
	if (o->conninfo && is_conninfo(o->conninfo)) {
		/* libpq's own message could quote a part of a password. */
		PQconninfoOption *opts = PQconninfoParse(o->conninfo, NULL);

		if (!opts) {
			ws_err_usage(err, "malformed connection string");
			return NULL;
		}
		PQconninfoFree(opts);
	}
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i].val) {
			keys[n] = all[i].key;
			vals[n++] = all[i].val;
		}
	keys[n] = vals[n] = NULL;
	struct ws_pg *c = ws_calloc(1, sizeof *c);

	c->answer_ms = o->answer_ms ? o->answer_ms : RESULT_TIMEOUT_MS;
	c->conn = PQconnectStartParams(keys, vals, 1);
	if (!c->conn) {
		ws_err_temp(err, "cannot connect: out of memory");
		goto fail;
	}
	if (PQstatus(c->conn) == CONNECTION_BAD) {
		/* Nothing was sent yet: an option is wrong, or the socket could not be made. */
		connect_failed(c, needs_password, err);
		goto fail;
	}
	PQsetErrorVerbosity(c->conn, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(c->conn, no_notice, NULL);
	if (connect_wait(c, o->timeout_ms ? o->timeout_ms : CONNECT_TIMEOUT_MS, needs_password, err) !=
		0)
		goto fail;
	PQsetErrorVerbosity(c->conn, PQERRORS_DEFAULT);
	return c;
fail:
	ws_pg_close(c);
	return NULL;
}

void
ws_pg_close(struct ws_pg *c)
{
	if (!c)
		return;
	PQfinish(c->conn);
	free(c);
}

const char *
ws_pg_sqlstate(const struct ws_pg *c)
{
	return c->sqlstate;
}

int
ws_pg_version(const struct ws_pg *c)
{
	return PQserverVersion(c->conn);
}

int
ws_pg_socket(const struct ws_pg *c)
{
	return PQsocket(c->conn);
}

struct pg_conn *
ws_pg_raw(struct ws_pg *c)
{
	return c->conn;
}

int
pg_error(struct ws_pg *c, const PGresult *res, const char *what, struct ws_err *err)
{
	const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
	const char *primary = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *detail = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;

	snprintf(c->sqlstate, sizeof c->sqlstate, "%s", state ? state : "");
	if (!primary) {
		char *msg = ws_strdup(PQerrorMessage(c->conn));

		one_line(msg);
		ws_err_temp(err, "%s: %s", what, *msg ? msg : "the connection was closed");
		free(msg);
	} else if (is_config_state(c->sqlstate)) {
		ws_err_usage(err, "%s: %s (SQLSTATE %s)", what, primary, c->sqlstate);
	} else {
		ws_err_temp(err, "%s: %s%s%s (SQLSTATE %s)", what, primary, detail ? ": " : "",
					detail ? detail : "", c->sqlstate);
	}
	return -1;
}

int
pg_result(struct ws_pg *c, PGresult **res, int timeout_ms, struct ws_err *err)
{
	uint64_t until = ws_now_us() + (uint64_t)timeout_ms * 1000;

	while (PQflush(c->conn) > 0 || PQisBusy(c->conn)) {
		uint64_t now = ws_now_us();

		if (now >= until)
			return ws_err_temp(err, "no answer from the server within %d s", timeout_ms / 1000);
		int rc = pg_wait(c, PQflush(c->conn) > 0, (int)((until - now) / 1000) + 1, err);

		if (rc < 0)
			return -1;
		/* A failure shows in the result that follows. */
		if (rc > 0 && !PQconsumeInput(c->conn))
			break;
	}
	*res = PQgetResult(c->conn);
	return 0;
}

struct pg_result *
ws_pg_exec(struct ws_pg *c, const char *sql, const char *what, struct ws_err *err)
{
	PGresult *last = NULL, *res;

	if (!PQsendQuery(c->conn, sql)) {
		pg_error(c, NULL, what, err);
		return NULL;
	}
	for (;;) {
		if (pg_result(c, &res, c->answer_ms, err) != 0) {
			ws_err_prefix(err, "%s", what);
			PQclear(last);
			return NULL;
		}
		if (!res)
			break;
		/* An error stays; later results do not hide it. */
		if (last && PQresultStatus(last) == PGRES_FATAL_ERROR) {
			PQclear(res);
		} else {
			PQclear(last);
			last = res;
		}
	}
	ExecStatusType st = PQresultStatus(last);

	if (st != PGRES_TUPLES_OK && st != PGRES_COMMAND_OK) {
		pg_error(c, last, what, err);
		PQclear(last);
		return NULL;
	}
	return last;
}

int
ws_pg_show(struct ws_pg *c, const char *name, char *out, size_t n, struct ws_err *err)
{
	char *sql = ws_asprintf("SHOW %s", name);
	PGresult *res = ws_pg_exec(c, sql, sql, err);
	int rc = -1;

	if (!res)
		goto out;
	if (PQntuples(res) != 1 || PQnfields(res) != 1 || strlen(PQgetvalue(res, 0, 0)) >= n) {
		ws_err_temp(err, "%s: unexpected answer", sql);
		goto out;
	}
	strcpy(out, PQgetvalue(res, 0, 0));
	rc = 0;
out:
	PQclear(res);
	free(sql);
	return rc;
}
