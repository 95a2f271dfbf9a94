/* Which files of catalogs have numbers that only the source can tell apart from user files: the kept
 * list of an attach; see ws/catquery.h. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catq.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/tool.h"

/* A rewrite of a catalog that began before L0 was born unseen; so were the files of a database
 * that is being copied (CREATE DATABASE holds its template by a share lock). */
static const char busy_sql[] =
    "SELECT count(*) FROM pg_locks WHERE granted AND "
    "((locktype = 'relation' AND relation < 16384 AND mode = 'AccessExclusiveLock') OR "
    "(locktype = 'object' AND classid = 1262 AND mode IN ('ShareLock', 'AccessExclusiveLock')))";

/* pg_largeobject and its index hold user data. */
static const char files_sql[] =
    "SELECT CASE WHEN relisshared THEN 0::oid ELSE (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "END, f FROM (SELECT relisshared, pg_relation_filenode(oid) AS f FROM pg_class WHERE oid < 16384 "
    "AND oid NOT IN (2613, 2683) AND relkind IN ('r','i','t','S','m')) x WHERE f >= 16384 ORDER BY 1, 2";

static const char databases_sql[] = "SELECT oid, datname FROM pg_database WHERE datallowconn ORDER BY oid";

static int
pause_ms(int ms)
{
	struct pollfd p = {.fd = ws_tool_signal_fd(), .events = POLLIN};

	poll(&p, 1, ms);
	return 0;
}

static struct ws_pg *
open_session(const char *conninfo, struct ws_err *err)
{
	struct ws_pg_opts o = {.mode = WS_PG_SQL, .conninfo = conninfo, .appname = "ws-catalog"};
	struct ws_pg *c = ws_pg_open(&o, NULL, err);

	if (c && ws_catquery_setup(c, err) != 0) {
		ws_pg_close(c);
		return NULL;
	}
	return c;
}

/* Waits until no catalog is being rewritten and writes `# TLI LSN`, the position from before the
 * look: whatever starts later is seen in the WAL. */
static int
quiet_position(struct ws_pg *c, uint64_t until, struct ws_buf *out, struct ws_err *err)
{
	bool said = false;

	for (;;) {
		/* Two statements: the position is taken before the locks are looked at. */
		PGresult *res = ws_pg_exec(c, "SELECT pg_walfile_name(l), l FROM pg_current_wal_insert_lsn() l",
		                           "cannot read the WAL position", err);

		if (!res)
			return -1;
		char tli[9] = "";
		ws_lsn lsn;

		snprintf(tli, sizeof tli, "%.8s", PQgetvalue(res, 0, 0));
		int bad = ws_lsn_parse(PQgetvalue(res, 0, 1), &lsn);

		PQclear(res);
		if (bad)
			return ws_err_temp(err, "malformed WAL position");
		res = ws_pg_exec(c, busy_sql, "cannot read pg_locks", err);
		if (!res)
			return -1;
		int busy = catq_int(res, 0, 0);

		PQclear(res);
		if (!busy) {
			ws_buf_printf(out, "# %lu " WS_LSN_FMT "\n", strtoul(tli, NULL, 16), WS_LSN_ARG(lsn));
			return 0;
		}
		if (ws_now_us() >= until)
			return ws_err_temp(err, "a catalog is still being rewritten (AccessExclusiveLock), or a database "
			                        "copied, on the source: gave up waiting");
		if (!said)
			ws_info("waiting for the end of a catalog's rewrite or a database's copy on the source");
		said = true;
		pause_ms(100);
		if (ws_tool_stopping())
			return ws_err_temp(err, "interrupted");
	}
}

static int
list_files(const char *conninfo, const char *dbname, bool shared, struct ws_buf *out, struct ws_err *err)
{
	char *full = catq_conninfo(conninfo, dbname, err);
	struct ws_pg *c = full ? open_session(full, err) : NULL;
	PGresult *res = c ? ws_pg_exec(c, files_sql, "cannot read pg_class", err) : NULL;
	int rc = res ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(res); i++)
		if (shared || catq_oid(res, i, 0))
			ws_buf_printf(out, "%s %s\n", PQgetvalue(res, i, 0), PQgetvalue(res, i, 1));
	if (rc != 0)
		ws_err_prefix(err, "database %s", dbname);
	PQclear(res);
	ws_pg_close(c);
	free(full);
	return rc;
}

static bool
same_rows(const PGresult *a, const PGresult *b)
{
	if (PQntuples(a) != PQntuples(b))
		return false;
	for (int i = 0; i < PQntuples(a); i++)
		if (strcmp(PQgetvalue(a, i, 0), PQgetvalue(b, i, 0)) || strcmp(PQgetvalue(a, i, 1), PQgetvalue(b, i, 1)))
			return false;
	return true;
}

/* 1 done, 0 the databases changed meanwhile: again, -1 error. */
static int
attempt(struct ws_pg *c, const char *conninfo, uint64_t until, struct ws_buf *out, struct ws_err *err)
{
	PGresult *dbs = NULL, *again = NULL;
	int rc = -1;

	out->len = 0;
	if (quiet_position(c, until, out, err) != 0)
		return -1;
	if (!(dbs = ws_pg_exec(c, databases_sql, "cannot read pg_database", err)))
		return -1;
	for (int i = 0; i < PQntuples(dbs); i++)
		if (list_files(conninfo, PQgetvalue(dbs, i, 1), i == 0, out, err) != 0) {
			/* Dropped meanwhile, or a lock that came after our look: once more. */
			if (err->status == WS_EOPERATOR || ws_tool_stopping() || ws_now_us() >= until)
				goto out;
			ws_info("again: %s", err->msg);
			rc = pause_ms(200);
			goto out;
		}
	if ((again = ws_pg_exec(c, databases_sql, "cannot read pg_database", err)))
		rc = same_rows(dbs, again);
out:
	PQclear(dbs);
	PQclear(again);
	return rc;
}

int
ws_catquery_kept(const char *conninfo, int timeout_s, struct ws_buf *out, struct ws_err *err)
{
	uint64_t until = ws_now_us() + (uint64_t)timeout_s * 1000000;
	struct ws_pg *c = open_session(conninfo, err);
	int rc = 0;

	if (!c)
		return -1;
	while (rc == 0) {
		rc = attempt(c, conninfo, until, out, err);
		if (rc == 0 && ws_now_us() >= until)
			rc = ws_err_temp(err, "databases come and go on the source: gave up waiting");
	}
	ws_pg_close(c);
	return rc < 0 ? -1 : 0;
}
