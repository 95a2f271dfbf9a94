/* The shadow's side of a capture: a warm connection a database, and waiting until replay stands
 * exactly at a boundary; see capture.h.
 *
 * No transaction is open while replay runs.  A restart of the shadow, a cancelled query, a refused
 * connection are part of life: they are waited out, up to the timeout without any progress. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define SAY_EVERY_US    10000000u
#define REFUSED_AFTER_S 30 /* parked where it should be, and still refusing connections */
#define REFUSED_FIRST_S 2  /* where the gate can move */

void
cap_sleep_us(unsigned us)
{
	struct pollfd p = {.fd = ws_tool_signal_fd(), .events = POLLIN};
	struct timespec ts = {us / 1000000, (long)(us % 1000000) * 1000};

	ppoll(&p, 1, &ts, NULL);
}

void
cap_disconnect(struct cap_db *db)
{
	ws_pg_close(db->conn);
	db->conn = NULL;
}

bool
cap_usable(const struct cap_db *db)
{
	return PQstatus(db->conn->conn) == CONNECTION_OK && PQtransactionStatus(db->conn->conn) == PQTRANS_IDLE;
}

static struct ws_pg *
open_as(struct cap *c, const char *dbname, const char *user, struct ws_err *err)
{
	char *info = catq_conninfo(c->shadow, dbname, err);
	struct ws_pg_opts o = {.conninfo = info, .user = user, .appname = "ws-catalog", .timeout_ms = 10000};
	struct ws_pg *pg = info ? ws_pg_open(&o, NULL, err) : NULL;

	free(info);
	if (pg && ws_catquery_setup(pg, err) != 0) {
		ws_pg_close(pg);
		return NULL;
	}
	return pg;
}

/* The shadow has the source's roles.  Unless the connection string or PGUSER names one, the
 * system user's name is tried, then the usual name of the first superuser. */
static struct ws_pg *
open_database(struct cap *c, const char *dbname, struct ws_err *err)
{
	struct ws_pg *pg = open_as(c, dbname, NULL, err);

	if (!pg && strstr(err->msg, "SQLSTATE 28") == NULL && err->status != WS_EUSAGE)
		return NULL;
	if (!pg && !getenv("PGUSER") && !strstr(c->shadow, "user=")) {
		struct ws_err second = {0};

		if ((pg = open_as(c, dbname, "postgres", &second)))
			err->msg[0] = 0;
		else if (second.status == WS_ETEMP)
			*err = second; /* it went away meanwhile */
	}
	return pg;
}

/* The login was refused: was the database renamed, or dropped?  0: db->name or db->dropped is
 * updated; -1 the error stays. */
static int
find_by_oid(struct cap *c, struct cap_db *db, struct ws_err *err)
{
	const char *names[3] = {NULL, "postgres", "template1"};
	int rc = -1;

	for (size_t i = 0; i < c->ndbs; i++)
		if (c->dbs[i].conn)
			names[0] = c->dbs[i].name;
	for (int i = 0; i < 3 && rc != 0; i++) {
		struct ws_err e = {0};
		struct ws_pg *pg = names[i] && *names[i] ? open_database(c, names[i], &e) : NULL;
		char sql[80];

		snprintf(sql, sizeof sql, "SELECT datname FROM pg_database WHERE oid = %u", db->oid);
		PGresult *res = pg ? ws_pg_exec(pg, sql, "cannot read pg_database", &e) : NULL;

		if (res && PQntuples(res) == 0) {
			if (db->has)
				ws_warn("database %u (%s) was dropped on the source: its history ends here", db->oid, db->name);
			db->dropped = true;
			rc = 0;
		} else if (res && strcmp(PQgetvalue(res, 0, 0), db->name)) {
			free(db->name);
			db->name = ws_strdup(PQgetvalue(res, 0, 0));
			rc = 0;
		}
		PQclear(res);
		ws_pg_close(pg);
	}
	if (rc == 0 && err)
		err->msg[0] = 0;
	return rc;
}

static int
check_oid(struct cap_db *db, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(db->conn, "SELECT oid FROM pg_database WHERE datname = current_database()",
	                           "cannot read pg_database", err);
	ws_oid oid = res ? catq_oid(res, 0, 0) : 0;

	PQclear(res);
	if (!res)
		return -1;
	/* Another database took the name. */
	return oid == db->oid ? 0 : ws_err_usage(err, "database %s has oid %u, not %u", db->name, oid, db->oid);
}

/* 0: connected, or known to be dropped. */
static int
connect_db(struct cap *c, struct cap_db *db, struct ws_err *err)
{
	if (*db->name) {
		db->conn = open_database(c, db->name, err);
		if (db->conn && check_oid(db, err) == 0)
			return 0;
		cap_disconnect(db);
		if (err->status != WS_EUSAGE)
			return -1;
	} else {
		ws_err_temp(err, "no name is known for database %u", db->oid);
	}
	if (find_by_oid(c, db, err) != 0)
		return -1;
	if (db->dropped)
		return 0;
	return ws_err_temp(err, "database %u is called %s now", db->oid, db->name);
}

struct wait {
	uint64_t start, said, progress, refused; /* refused: since when, 0 not */
	ws_lsn at, replay;
	struct ws_err why; /* the last failure, msg "" when none */
};

static int
look(struct cap *c, struct cap_db *db, struct wait *w, struct ws_err *err)
{
	uint64_t now = ws_now_us();

	w->why.msg[0] = 0;
	if (!db->conn && connect_db(c, db, &w->why) != 0) {
		bool refused = strstr(w->why.msg, "SQLSTATE 57P03") != NULL;

		w->refused = !refused ? 0 : w->refused ? w->refused : now;
		return w->why.status == WS_EUSAGE ? (*err = w->why, -1) : 0;
	}
	w->refused = 0;
	if (db->dropped)
		return 1;
	ws_lsn replay;

	if (ws_catquery_replay(db->conn, &replay, &w->why) != 0) {
		if (w->why.status == WS_EOPERATOR) {
			*err = w->why;
			return -1;
		}
		/* A cancelled query; or the shadow went away, or does not answer. */
		if (!cap_usable(db))
			cap_disconnect(db);
		return 0;
	}
	if (replay != w->replay)
		w->progress = now;
	w->replay = replay;
	*c->m_replay = (double)replay;
	*c->m_lag_bytes = replay < w->at ? (double)(w->at - replay) : 0;
	if (replay > w->at)
		return ws_err_op(err, "shadow_ahead",
		                 "the shadow has replayed up to " WS_LSN_FMT ", past the boundary at " WS_LSN_FMT
		                 " of database %u that was not captured yet",
		                 WS_LSN_ARG(replay), WS_LSN_ARG(w->at), db->oid);
	return replay == w->at;
}

/* Nothing moves any more, and connections are refused: with overflowed subtransactions the snapshot
 * that would let them in is behind the gate. */
static int
check_refused(struct cap *c, const struct wait *w, struct ws_err *err)
{
	struct ws_pos replay = {0};

	if (!w->refused || ws_now_us() - w->refused < (c->first ? REFUSED_FIRST_S : REFUSED_AFTER_S) * 1000000ull)
		return 0;
	if (cap_pos(c, "shadow.replay", &replay, err) < 0)
		return -1;
	if (replay.lsn < w->at)
		return 0;
	return ws_err_op(err, "shadow_refuses_connections",
	                 "the shadow stands at the boundary " WS_LSN_FMT " and refuses connections: %s",
	                 WS_LSN_ARG(w->at), w->why.msg);
}

static void
say(const struct wait *w, const struct cap_db *db, uint64_t now)
{
	if (w->why.msg[0])
		ws_info("waiting for the shadow to replay up to " WS_LSN_FMT " (database %u) for=%us: %s",
		        WS_LSN_ARG(w->at), db->oid, (unsigned)((now - w->start) / 1000000), w->why.msg);
	else
		ws_info("waiting for the shadow to replay up to " WS_LSN_FMT " (database %u) for=%us replay=" WS_LSN_FMT,
		        WS_LSN_ARG(w->at), db->oid, (unsigned)((now - w->start) / 1000000), WS_LSN_ARG(w->replay));
}

/* Tight at first: a boundary takes below a millisecond when the shadow is there. */
static unsigned
pause_us(const struct wait *w, uint64_t now)
{
	if (w->why.msg[0])
		return 50000;
	if (now - w->start < 10000)
		return 50;
	if (now - w->progress > 5000000)
		return 50000;
	return w->at - w->replay < 4u * 1024 * 1024 ? 500 : 10000;
}

int
cap_wait_parked(struct cap *c, struct cap_db *db, ws_lsn at, struct ws_err *err)
{
	uint64_t now = ws_now_us();
	struct wait w = {.start = now, .said = now, .progress = now, .at = at};
	int rc;

	while ((rc = look(c, db, &w, err)) == 0) {
		now = ws_now_us();
		if (ws_tool_stopping()) {
			rc = ws_err_temp(err, "interrupted");
			break;
		}
		if ((rc = check_refused(c, &w, err)) != 0)
			break;
		if ((double)(now - w.progress) > c->o->timeout * 1e6) {
			rc = ws_err_temp(err, "the shadow did not come to " WS_LSN_FMT " (replay " WS_LSN_FMT ") for %.0f s%s%s",
			                 WS_LSN_ARG(at), WS_LSN_ARG(w.replay), c->o->timeout, w.why.msg[0] ? ": " : "",
			                 w.why.msg);
			break;
		}
		if (now - w.said >= SAY_EVERY_US) {
			w.said = now;
			say(&w, db, now);
		}
		*c->m_lag_seconds = (double)(now - w.start) / 1e6;
		if (ws_metrics_write(ws_tool_metrics(), 1, &w.why) != 0)
			ws_warn("%s", w.why.msg);
		cap_sleep_us(pause_us(&w, now));
		ws_tool_take_hup();
	}
	*c->m_wait += (double)(ws_now_us() - w.start) / 1e6;
	if (rc >= 0)
		*c->m_lag_seconds = *c->m_lag_bytes = 0;
	return rc < 0 ? -1 : 0;
}
