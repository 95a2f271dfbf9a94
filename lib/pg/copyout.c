/* Exported snapshots and COPY TO STDOUT; see ws/pgcopy.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ws/lsn.h"
#include "ws/pgcopy.h"

int
ws_pg_no_timeouts(struct ws_pg *c, struct ws_err *err)
{
	/* Not every major has all of them. */
	PGresult *res = ws_pg_exec(c,
	                           "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name IN "
	                           "('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', "
	                           "'idle_session_timeout', 'transaction_timeout')",
	                           "cannot prepare the session", err);

	PQclear(res);
	return res ? 0 : -1;
}

int
ws_pg_backend_pid(const struct ws_pg *c)
{
	return PQbackendPID(c->conn);
}

int
ws_pg_snapshot_start(struct ws_pg *c, const char *slot, struct ws_err *err)
{
	char *sql = ws_asprintf("CREATE_REPLICATION_SLOT \"%s\" TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')", slot);
	int rc = PQsendQuery(c->conn, sql) ? 0 : pg_error(c, NULL, "cannot make a temporary slot", err);

	free(sql);
	return rc;
}

static int
snapshot_row(struct ws_pg *c, PGresult *res, struct ws_pg_snapshot *s, struct ws_err *err)
{
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		return pg_error(c, res, "cannot make a temporary slot", err);
	/* slot_name, consistent_point, snapshot_name, output_plugin */
	if (PQntuples(res) != 1 || PQnfields(res) < 4 || ws_lsn_parse(PQgetvalue(res, 0, 1), &s->lsn) != 0 ||
	    strlen(PQgetvalue(res, 0, 2)) >= sizeof s->name || !*PQgetvalue(res, 0, 2))
		return ws_err_temp(err, "CREATE_REPLICATION_SLOT: unexpected answer");
	strcpy(s->name, PQgetvalue(res, 0, 2));
	return 1;
}

int
ws_pg_snapshot_wait(struct ws_pg *c, int timeout_ms, struct ws_pg_snapshot *s, struct ws_err *err)
{
	if (PQisBusy(c->conn)) {
		int rc = pg_wait(c, false, timeout_ms, err);

		if (rc <= 0)
			return rc;
		if (!PQconsumeInput(c->conn))
			return pg_error(c, NULL, "cannot make a temporary slot", err);
		if (PQisBusy(c->conn))
			return 0;
	}
	PGresult *res = PQgetResult(c->conn);
	int rc = snapshot_row(c, res, s, err);

	PQclear(res);
	/* Nothing but the end of the command is left; anything more would end the snapshot. */
	while (rc == 1 && (res = PQgetResult(c->conn)))
		PQclear(res);
	return rc;
}

int
ws_pg_copy_send(struct ws_pg_copy *s, struct ws_pg *c, const char *sql, struct ws_err *err)
{
	ws_pg_copy_fini(s);
	s->c = c;
	s->rows = false;
	return PQsendQuery(c->conn, sql) ? 0 : pg_error(c, NULL, "cannot send a query", err);
}

void
ws_pg_copy_fini(struct ws_pg_copy *s)
{
	if (s->row)
		PQfreemem(s->row);
	s->row = NULL;
}

/* A result of a command other than the rows of COPY: 0 to go on, -1. */
static int
take_result(struct ws_pg_copy *s, PGresult *res, struct ws_err *err)
{
	int rc = 0;

	switch (PQresultStatus(res)) {
	case PGRES_COPY_OUT:
		s->rows = true;
		break;
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
		break;
	default:
		rc = pg_error(s->c, res, "cannot read the table", err);
	}
	PQclear(res);
	return rc;
}

int
ws_pg_copy_next(struct ws_pg_copy *s, char **row, size_t *n, struct ws_err *err)
{
	PGconn *conn = s->c->conn;
	bool read = false;

	ws_pg_copy_fini(s);
	for (;;) {
		int got = s->rows ? PQgetCopyData(conn, &s->row, 1) : 0;

		if (got > 0) {
			*row = s->row;
			*n = (size_t)got;
			return WS_PG_COPY_ROW;
		}
		if (got == -2)
			return pg_error(s->c, NULL, "cannot read the table", err);
		if (got == -1)
			s->rows = false;
		if (got == 0 && (s->rows || PQisBusy(conn))) {
			if (read)
				return WS_PG_COPY_WAIT;
			read = true;
			if (!PQconsumeInput(conn))
				return pg_error(s->c, NULL, "cannot read the table", err);
			continue;
		}
		if (PQisBusy(conn))
			continue;
		PGresult *res = PQgetResult(conn);

		if (!res)
			return WS_PG_COPY_DONE;
		if (take_result(s, res, err) != 0)
			return -1;
	}
}

int
ws_pg_table_sizes(struct ws_pg *c, const ws_oid *oids, size_t n,
                  void (*each)(void *arg, ws_oid oid, double pages, double rows), void *arg, struct ws_err *err)
{
	struct ws_buf sql = {0};

	ws_buf_puts(&sql, "SELECT oid, relpages, greatest(reltuples, 0) FROM pg_catalog.pg_class WHERE oid = ANY ('{");
	for (size_t i = 0; i < n; i++)
		ws_buf_printf(&sql, i ? ",%u" : "%u", oids[i]);
	ws_buf_puts(&sql, "}')");
	PGresult *res = ws_pg_exec(c, ws_buf_cstr(&sql), "cannot read the tables' sizes", err);

	ws_buf_free(&sql);
	if (!res)
		return -1;
	for (int i = 0; i < PQntuples(res); i++)
		each(arg, (ws_oid)strtoul(PQgetvalue(res, i, 0), NULL, 10), strtod(PQgetvalue(res, i, 1), NULL),
		     strtod(PQgetvalue(res, i, 2), NULL));
	PQclear(res);
	return 0;
}

int
ws_pg_blockers(struct ws_pg *c, int pid, char *out, size_t n, struct ws_err *err)
{
	char *sql = ws_asprintf("SELECT string_agg(CASE p WHEN 0 THEN 'a prepared transaction' ELSE 'session ' || p || "
	                        "coalesce(' (' || nullif(application_name, '') || ')', '') END, ', ') "
	                        "FROM unnest(pg_catalog.pg_blocking_pids(%d)) p LEFT JOIN pg_catalog.pg_stat_activity ON pid = p",
	                        pid);
	PGresult *res = ws_pg_exec(c, sql, "cannot see what the slot waits for", err);

	free(sql);
	if (!res)
		return -1;
	snprintf(out, n, "%s", PQntuples(res) == 1 ? PQgetvalue(res, 0, 0) : "");
	PQclear(res);
	return 0;
}

int
ws_pg_database(struct ws_pg *c, ws_oid *db, char *encoding, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(c,
	                           "SELECT oid, pg_catalog.getdatabaseencoding() FROM pg_catalog.pg_database "
	                           "WHERE datname = pg_catalog.current_database()",
	                           "cannot identify the database", err);

	if (!res)
		return -1;
	*db = PQntuples(res) == 1 ? (ws_oid)strtoul(PQgetvalue(res, 0, 0), NULL, 10) : 0;
	snprintf(encoding, 32, "%s", PQntuples(res) == 1 ? PQgetvalue(res, 0, 1) : "");
	PQclear(res);
	return 0;
}

void
ws_pg_quote_name(struct ws_buf *out, const char *name)
{
	ws_buf_putc(out, '"');
	for (; *name; name++) {
		if (*name == '"')
			ws_buf_putc(out, '"');
		ws_buf_putc(out, (uint8_t)*name);
	}
	ws_buf_putc(out, '"');
}

void
ws_pg_quote_text(struct ws_buf *out, const char *text)
{
	ws_buf_puts(out, strchr(text, '\\') ? " E'" : "'");
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			ws_buf_putc(out, (uint8_t)*text);
		ws_buf_putc(out, (uint8_t)*text);
	}
	ws_buf_putc(out, '\'');
}
