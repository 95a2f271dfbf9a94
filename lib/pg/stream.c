/* The replication stream, client side: START_REPLICATION and what comes out of it.  How a stream
 * ends decides what the receiver does next, so each end is an event of its own; see ws/pgconn.h. */
#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "replmsg.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define START_TIMEOUT_MS 60000
#define END_TIMEOUT_MS   10000

/* Errors of a stream: what an operator must see is told from what a retry may heal.  Texts are
 * translatable and XX000 has many meanings, so only SQLSTATEs decide, and only sure ones. */
static int
stream_error(struct ws_pg *c, const PGresult *res, const char *what, struct ws_err *err)
{
	static const struct {
		const char *state, *reason;
	} map[] = {{"58P01", "wal_missing"}, {"42704", "slot_missing"}, {"55000", "slot_lost"}};

	pg_error(c, res, what, err);
	for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
		if (!strcmp(c->sqlstate, map[i].state)) {
			char msg[sizeof err->msg];

			snprintf(msg, sizeof msg, "%s", err->msg);
			return ws_err_op(err, map[i].reason, "%s", msg);
		}
	return -1;
}

/* The row that ends a timeline: next_tli int8, next_tli_startpos text. */
static int
parse_next(const PGresult *res, ws_tli finished, struct ws_pos *next, struct ws_err *err)
{
	if (PQntuples(res) != 1 || PQnfields(res) != 2 ||
		ws_tli_parse(PQgetvalue(res, 0, 0), &next->tli) != 0 || next->tli <= finished ||
		ws_lsn_parse(PQgetvalue(res, 0, 1), &next->lsn) != 0 || next->lsn == 0)
		return ws_err_temp(err, "end of timeline %u: malformed answer", finished);
	return 0;
}

/* Everything up to ReadyForQuery: an optional row (1 when it came), two CommandCompletes, of which the
 * row's result has one. */
static int
finish_results(struct ws_pg *c, PGresult *res, struct ws_pos *next, struct ws_err *err)
{
	int completes = 0, rows = 0, rc = 0;

	for (;;) {
		ExecStatusType st = PQresultStatus(res);

		if (rc != 0) {
			/* the rest is only read */
		} else if (st == PGRES_TUPLES_OK) {
			rc = parse_next(res, c->tli, next, err);
			rows++;
		} else if (st == PGRES_COMMAND_OK) {
			completes++;
		} else {
			rc = stream_error(c, res, "the stream broke", err);
		}
		PQclear(res);
		if (pg_result(c, &res, END_TIMEOUT_MS, err) != 0)
			return -1;
		if (!res)
			break;
	}
	if (rc == 0 && (rows > 1 || rows + completes != 2 || PQstatus(c->conn) != CONNECTION_OK))
		return ws_err_temp(err, "the end of the stream is incomplete");
	return rc != 0 ? -1 : rows;
}

int
ws_pg_stream_start(struct ws_pg *c, const char *slot, struct ws_pos pos, struct ws_pos *next,
				   struct ws_err *err)
{
	char sql[200], what[80];
	PGresult *res;

	snprintf(sql, sizeof sql, "START_REPLICATION %s%s%s PHYSICAL " WS_LSN_FMT " TIMELINE %u",
			 slot ? "SLOT \"" : "", slot ? slot : "", slot ? "\"" : "", WS_LSN_ARG(pos.lsn),
			 pos.tli);
	snprintf(what, sizeof what, "cannot stream from " WS_LSN_FMT " on timeline %u",
			 WS_LSN_ARG(pos.lsn), pos.tli);
	c->tli = pos.tli;
	if (!PQsendQuery(c->conn, sql))
		return pg_error(c, NULL, what, err);
	if (pg_result(c, &res, START_TIMEOUT_MS, err) != 0)
		return ws_err_prefix(err, "%s", what);
	if (PQresultStatus(res) == PGRES_COPY_BOTH) {
		PQclear(res);
		if (PQsetnonblocking(c->conn, 1) != 0)
			return pg_error(c, NULL, what, err);
		return 0;
	}
	if (PQresultStatus(res) != PGRES_TUPLES_OK) {
		stream_error(c, res, what, err);
		PQclear(res);
		return -1;
	}
	int rc = finish_results(c, res, next, err);

	if (rc == 0)
		return ws_err_temp(err, "%s: unexpected answer", what);
	return rc;
}

/* The server's CopyDone that we did not ask for.  After ours the row and the completes follow;
 * end of file instead says nothing: reconnect. */
static int
timeline_end(struct ws_pg *c, struct ws_pg_event *ev, struct ws_err *err)
{
	PGresult *res;

	PQsetnonblocking(c->conn, 0);
	if (PQputCopyEnd(c->conn, NULL) <= 0)
		return pg_error(c, NULL, "the stream broke", err);
	if (pg_result(c, &res, END_TIMEOUT_MS, err) != 0)
		return -1;
	if (!res)
		return ws_err_temp(err, "the end of the stream is incomplete");
	int rows = finish_results(c, res, &ev->next, err);

	if (rows < 0)
		return -1;
	ev->kind = rows ? WS_PG_TIMELINE_END : WS_PG_STOPPED;
	return 0;
}

static int
copy_ended(struct ws_pg *c, struct ws_pg_event *ev, struct ws_err *err)
{
	PGresult *res;

	if (pg_result(c, &res, END_TIMEOUT_MS, err) != 0)
		return -1;
	ExecStatusType st = PQresultStatus(res);
	int rc = 0;

	if (st == PGRES_COPY_IN)
		rc = timeline_end(c, ev, err);
	else if (st == PGRES_COMMAND_OK)
		ev->kind = WS_PG_SHUTDOWN; /* "COPY 0" without CopyDone: walsender's way to say goodbye */
	else
		rc = stream_error(c, res, "the stream broke", err);
	PQclear(res);
	return rc;
}

int
ws_pg_stream_next(struct ws_pg *c, struct ws_pg_event *ev, struct ws_err *err)
{
	char *buf = NULL;
	struct repl_msg m;

	*ev = (struct ws_pg_event){.kind = WS_PG_NOTHING};
	int n = PQgetCopyData(c->conn, &buf, 1);

	if (n == 0) {
		/* What came together with the end of file is still there: a shutdown's goodbye. */
		bool alive = PQconsumeInput(c->conn);

		n = PQgetCopyData(c->conn, &buf, 1);
		if (n == 0 && !alive)
			return pg_error(c, NULL, "the stream broke", err);
	}
	if (n == 0)
		return 0;
	if (n == -1)
		return copy_ended(c, ev, err);
	if (n < 0)
		return pg_error(c, NULL, "the stream broke", err);
	if (repl_msg_parse((uint8_t *)buf, (size_t)n, &m) != 0 || (m.kind != 'w' && m.kind != 'k')) {
		int kind = (unsigned char)buf[0];

		PQfreemem(buf);
		return ws_err_temp(err, "unexpected message in the stream: type 0x%02x, %d bytes", kind, n);
	}
	ev->server_end = m.end;
	if (m.kind == 'k') {
		ev->kind = WS_PG_KEEPALIVE;
		ev->reply = m.reply;
		PQfreemem(buf);
		return 0;
	}
	ev->kind = WS_PG_WAL;
	ev->owner = buf;
	ev->lsn = m.start;
	ev->p = m.p;
	ev->n = m.n;
	return 0;
}

void
ws_pg_free(void *owner)
{
	PQfreemem(owner);
}

int
ws_pg_stream_flush(struct ws_pg *c, struct ws_err *err)
{
	(void)err;
	/* A server that is gone takes nothing, but may have said how it ended: reading tells. */
	c->unsent = PQflush(c->conn) > 0;
	return 0;
}

int
ws_pg_stream_status(struct ws_pg *c, ws_lsn write, ws_lsn flush, ws_lsn apply, struct ws_err *err)
{
	uint8_t msg[REPL_REPLY_LEN];

	repl_reply_build(msg, write, flush, apply, repl_time(ws_wall_us()), false);
	int rc = PQputCopyData(c->conn, (char *)msg, sizeof msg);

	if (rc < 0)
		return 0; /* as in ws_pg_stream_flush */
	if (rc == 0) {
		/* The send buffer is full: the server does not read.  A later status says more. */
		c->unsent = true;
		return 0;
	}
	return ws_pg_stream_flush(c, err);
}

bool
ws_pg_stream_unsent(const struct ws_pg *c)
{
	return c->unsent;
}
