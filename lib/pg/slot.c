/* Replication slots: what the server says of them, what can be proved, moving one forward; see
 * ws/slot.h.  pg_replication_slots has more columns with each major: those that may be missing are
 * asked for by name in the row as JSON, where a column that is not there is NULL. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ws/history.h"
#include "ws/lsn.h"
#include "ws/pgcopy.h"
#include "ws/slot.h"

enum {
	C_NAME,
	C_TYPE,
	C_PLUGIN,
	C_DATABASE,
	C_TEMPORARY,
	C_ACTIVE,
	C_PID,
	C_RESTART,
	C_CONFIRMED,
	C_STATUS,
	C_SAFE,
	C_RETAINED,
	C_INVALIDATION,
	C_INACTIVE,
	C_COUNT
};

#define OPTIONAL(name) "pg_catalog.jsonb_extract_path_text(pg_catalog.to_jsonb(s), '" name "')"

/* The end of WAL is asked for in the select list of each row: it is never below that row's
 * restart_lsn but on a standby whose replay has begun again behind it. */
#define QUERY                                                                                      \
	"SELECT s.slot_name, s.slot_type, s.plugin, s.database, s.temporary, s.active, s.active_pid,"  \
	" s.restart_lsn, s.confirmed_flush_lsn, s.wal_status, s.safe_wal_size,"                        \
	" pg_catalog.pg_wal_lsn_diff(CASE WHEN pg_catalog.pg_is_in_recovery()"                         \
	" THEN pg_catalog.pg_last_wal_replay_lsn() ELSE pg_catalog.pg_current_wal_lsn() END,"          \
	" s.restart_lsn), " OPTIONAL(                                                                  \
		"invalidation_reason") ","                                                                 \
							   " pg_catalog.to_char(pg_catalog.timezone('UTC', (" OPTIONAL(        \
								   "inactive_since") ")::pg_catalog.timestamptz), "                \
													 "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"           \
													 " FROM pg_catalog.pg_replication_slots s "    \
													 "ORDER BY s.slot_name"

static int
get_lsn(const PGresult *res, int row, int col, ws_lsn *lsn)
{
	*lsn = 0;
	return PQgetisnull(res, row, col) ? 0 : ws_lsn_parse(PQgetvalue(res, row, col), lsn);
}

static bool
get_bool(const PGresult *res, int row, int col)
{
	return *PQgetvalue(res, row, col) == 't';
}

static bool
get_number(const PGresult *res, int row, int col, int64_t *n)
{
	*n = strtoll(PQgetvalue(res, row, col), NULL, 10);
	return !PQgetisnull(res, row, col);
}

static int
get_slot(const PGresult *res, int row, struct ws_slot *s)
{
	int64_t pid;

	*s = (struct ws_slot){0};
	snprintf(s->name, sizeof s->name, "%s", PQgetvalue(res, row, C_NAME));
	s->logical = strcmp(PQgetvalue(res, row, C_TYPE), "physical") != 0;
	snprintf(s->plugin, sizeof s->plugin, "%s", PQgetvalue(res, row, C_PLUGIN));
	snprintf(s->database, sizeof s->database, "%s", PQgetvalue(res, row, C_DATABASE));
	snprintf(s->wal_status, sizeof s->wal_status, "%s", PQgetvalue(res, row, C_STATUS));
	snprintf(s->invalidation, sizeof s->invalidation, "%s", PQgetvalue(res, row, C_INVALIDATION));
	snprintf(s->inactive_since, sizeof s->inactive_since, "%s", PQgetvalue(res, row, C_INACTIVE));
	s->temporary = get_bool(res, row, C_TEMPORARY);
	s->active = get_bool(res, row, C_ACTIVE);
	get_number(res, row, C_PID, &pid);
	s->pid = (int)pid;
	s->has_safe = get_number(res, row, C_SAFE, &s->safe);
	s->has_retained = get_number(res, row, C_RETAINED, &s->retained);
	return get_lsn(res, row, C_RESTART, &s->restart.lsn) |
		   get_lsn(res, row, C_CONFIRMED, &s->confirmed);
}

int
ws_slot_list(struct ws_pg *c, struct ws_slot **slots, size_t *n, struct ws_err *err)
{
	static const char what[] = "cannot read pg_replication_slots";
	PGresult *res = ws_pg_exec(c, QUERY, what, err);
	int rc = res ? 0 : -1;

	*slots = NULL;
	*n = 0;
	if (res && PQnfields(res) != C_COUNT)
		rc = ws_err_temp(err, "%s: unexpected answer", what);
	if (rc == 0)
		*slots = ws_calloc((size_t)PQntuples(res) + 1, sizeof **slots);
	for (int i = 0; rc == 0 && i < PQntuples(res); i++)
		if (get_slot(res, i, &(*slots)[(*n)++]) != 0)
			rc = ws_err_temp(err, "%s: unexpected answer", what);
	PQclear(res);
	if (rc != 0) {
		free(*slots);
		*slots = NULL;
		*n = 0;
	}
	return rc;
}

int
ws_slot_look(struct ws_pg *c, const char *name, struct ws_slot *s, struct ws_err *err)
{
	struct ws_slot *all;
	size_t n;
	int found = 0;

	if (ws_slot_list(c, &all, &n, err) != 0)
		return -1;
	for (size_t i = 0; i < n && !found; i++)
		if (!strcmp(all[i].name, name)) {
			*s = all[i];
			found = 1;
		}
	free(all);
	return found;
}

int
ws_slot_timeline(struct ws_pg *c, struct ws_slot *s, struct ws_err *err)
{
	struct ws_err e = {0};
	struct ws_pos restart;

	if (s->logical || !s->restart.lsn)
		return 1;
	if (ws_pg_slot_read(c, s->name, &restart, &e) != 0) {
		if (!strcmp(e.reason, "slot_missing"))
			return 0;
		*err = e;
		return -1;
	}
	/* Position and timeline are of one moment.  A slot that was given up keeps what the list said.
	 */
	if (restart.lsn)
		s->restart = restart;
	return 1;
}

/* ---- proofs ---- */

bool
ws_slot_is_lost(const struct ws_slot *s)
{
	return !strcmp(s->wal_status, "lost") || *s->invalidation;
}

int
ws_slot_check_usable(const struct ws_slot *s, struct ws_err *err)
{
	if (s->logical)
		return ws_err_op(err, "slot_wrong_type", "replication slot \"%s\" is not a physical one",
						 s->name);
	if (s->temporary)
		return ws_err_op(err, "slot_wrong_type",
						 "replication slot \"%s\" is a temporary one, of the session of pid %d",
						 s->name, s->pid);
	if (ws_slot_is_lost(s))
		return ws_err_op(err, "slot_lost",
						 "replication slot \"%s\" is lost%s%s: the server no longer keeps its WAL",
						 s->name, *s->invalidation ? ", cause " : "", s->invalidation);
	if (!s->restart.lsn)
		return ws_err_op(err, "slot_lost", "replication slot \"%s\" reserves no WAL", s->name);
	return 0;
}

int
ws_slot_check(const struct ws_slot *s, ws_lsn lsn, struct ws_err *err)
{
	if (ws_slot_check_usable(s, err) != 0)
		return -1;
	if (!strcmp(s->wal_status, "unreserved"))
		return ws_err_op(err, "slot_lost",
						 "replication slot \"%s\" is unreserved: the server no longer keeps its "
						 "WAL, which the next checkpoint removes if none has done so",
						 s->name);
	if (lsn && s->restart.lsn > lsn)
		return ws_err_op(err, "slot_too_new",
						 "replication slot \"%s\" begins at " WS_LSN_FMT ", above " WS_LSN_FMT
						 ": WAL between may be missing",
						 s->name, WS_LSN_ARG(s->restart.lsn), WS_LSN_ARG(lsn));
	return 0;
}

int
ws_slot_check_branch(struct ws_pg *c, struct ws_pos pos, struct ws_err *err)
{
	struct ws_slot_server now;
	struct ws_history h = {0};
	struct ws_buf b = {0};

	if (ws_slot_server(c, &now, err) != 0)
		return -1;
	if (pos.tli == now.tli)
		return 0;
	if (pos.tli > now.tli && now.standby)
		return ws_err_temp(err, "the server is a standby on timeline %u and may come to %u",
						   now.tli, pos.tli);
	int rc = now.tli > 1 ? ws_pg_history(c, now.tli, &b, err) : 0;

	if (rc == 0)
		rc = ws_history_parse(now.tli, (const char *)b.data, b.len, &h, err);
	if (rc == 0)
		rc = ws_history_prove(&h, pos.tli, pos.lsn, err);
	ws_history_fini(&h);
	ws_buf_free(&b);
	return rc;
}

/* ---- moving ---- */

int
ws_slot_server(struct ws_pg *c, struct ws_slot_server *s, struct ws_err *err)
{
	static const char what[] = "cannot ask the server for its position";
	struct ws_pg_source src;

	*s = (struct ws_slot_server){0};
	if (ws_pg_identify(c, &src, err) != 0)
		return -1;
	s->system_id = src.system_id;
	s->tli = src.pos.tli;
	PGresult *res = ws_pg_exec(c,
							   "SELECT r, CASE WHEN r THEN pg_catalog.pg_last_wal_replay_lsn()"
							   " ELSE pg_catalog.pg_current_wal_flush_lsn() END"
							   " FROM (SELECT pg_catalog.pg_is_in_recovery()) AS x(r)",
							   what, err);
	int rc = res ? 0 : -1;

	if (res && (PQntuples(res) != 1 || get_lsn(res, 0, 1, &s->end) != 0))
		rc = ws_err_temp(err, "%s: unexpected answer", what);
	if (rc == 0)
		s->standby = get_bool(res, 0, 0);
	PQclear(res);
	return rc;
}

int
ws_slot_advance(struct ws_pg *c, struct ws_slot *s, ws_lsn lsn, struct ws_err *err)
{
	struct ws_buf sql = {0};
	ws_lsn end = 0;
	int rc = -1;
	char *what = ws_asprintf("cannot advance replication slot \"%s\"", s->name);

	ws_buf_puts(&sql, "SELECT end_lsn FROM pg_catalog.pg_replication_slot_advance(");
	ws_pg_quote_text(&sql, s->name);
	ws_buf_printf(&sql, ", '" WS_LSN_FMT "')", WS_LSN_ARG(lsn));
	PGresult *res = ws_pg_exec(c, ws_buf_cstr(&sql), what, err);

	if (res && (PQntuples(res) != 1 || get_lsn(res, 0, 0, &end) != 0))
		ws_err_temp(err, "%s: unexpected answer", what);
	else if (res && end != lsn)
		ws_err_temp(err, "%s: it came to " WS_LSN_FMT " instead of " WS_LSN_FMT, what,
					WS_LSN_ARG(end), WS_LSN_ARG(lsn));
	else if (res && (rc = ws_slot_look(c, s->name, s, err)) == 0)
		ws_err_op(err, "slot_missing", "replication slot \"%s\" was dropped meanwhile", s->name);
	PQclear(res);
	ws_buf_free(&sql);
	free(what);
	return rc == 1 ? 0 : -1;
}
