/* One question about standbys, and what its answer is worth; see holdask.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "holdask.h"
#include "ws/lsn.h"

#define ANSWER_MS 5000
#define ROWS_MAX  256

static char *
query(const struct ws_hold *set, int pid)
{
	struct ws_buf b = {0};

	ws_buf_printf(&b,
				  "SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() THEN "
				  "pg_walfile_name(pg_current_wal_lsn()) END, (SELECT system_identifier FROM "
				  "pg_control_system()), EXISTS (SELECT FROM pg_stat_get_wal_senders() WHERE pid = %d), "
				  "application_name, state, flush_lsn, sent_lsn FROM (VALUES (1)) one "
				  "LEFT JOIN pg_stat_replication r ON r.pid <> %d AND lower(application_name) IN (",
				  pid, pid);
	/* Names have letters, digits and a few signs only. */
	for (unsigned i = 0; i < set->n; i++)
		ws_buf_printf(&b, i ? ", '%s'" : "'%s'", set->names[i]);
	ws_buf_puts(&b, ")");
	return ws_buf_cstr(&b);
}

static ws_lsn
lsn_of(const PGresult *res, int row, int col)
{
	ws_lsn lsn;

	return PQgetisnull(res, row, col) || ws_lsn_parse(PQgetvalue(res, row, col), &lsn) != 0 ? 0 : lsn;
}

static void
judge_rows(const struct ws_hold *set, const PGresult *res, ws_tli tli, struct hold_answer *a)
{
	struct ws_hold_row rows[ROWS_MAX];
	bool hidden = false;
	size_t got = 0;

	if (PQntuples(res) > ROWS_MAX) {
		snprintf(a->why, sizeof a->why, "more than %d standbys have these names", ROWS_MAX);
		return;
	}
	for (int i = 0; i < PQntuples(res); i++) {
		if (PQgetisnull(res, i, 4))
			continue;
		hidden |= PQgetisnull(res, i, 5);
		rows[got++] = (struct ws_hold_row){PQgetvalue(res, i, 4), lsn_of(res, i, 6), lsn_of(res, i, 7)};
	}
	ws_lsn lsn = ws_hold_flushed(set, rows, got, &a->present);

	if (lsn)
		a->pos = (struct ws_pos){tli, lsn};
	else if (hidden)
		snprintf(a->why, sizeof a->why,
				 "the role may not see what a standby has flushed: grant it pg_read_all_stats");
	else
		snprintf(a->why, sizeof a->why, "%u of %u standbys needed are connected", a->present,
				 set->need);
}

/* Everything is in one statement: on a primary the timeline is that of the rows. */
static void
judge(const struct ws_hold *set, const PGresult *res, const struct hold_session *s, struct hold_answer *a)
{
	ws_tli tli;
	const char *file = PQgetvalue(res, 0, 1);

	if (!strcmp(PQgetvalue(res, 0, 0), "t")) {
		snprintf(a->why, sizeof a->why,
				 "the server is a standby: it does not say what others have flushed");
	} else if (strtoull(PQgetvalue(res, 0, 2), NULL, 10) != s->system_id ||
			   strcmp(PQgetvalue(res, 0, 3), "t")) {
		snprintf(a->why, sizeof a->why,
				 "an ordinary connection to that address does not reach the server that is streamed");
	} else if (sscanf(file, "%8" SCNx32, &tli) != 1 || tli == 0) {
		snprintf(a->why, sizeof a->why, "the server's timeline is not known from \"%.40s\"", file);
	} else {
		judge_rows(set, res, tli, a);
	}
}

int
hold_ask(struct ws_pg **c, const struct ws_hold *set, const struct hold_session *s, struct hold_answer *a,
		 struct ws_err *err)
{
	const struct ws_pg_opts o = {.mode = WS_PG_SQL,
								 .conninfo = s->conninfo,
								 .password = s->password,
								 .appname = "ws-receive-hold",
								 .timeout_ms = ANSWER_MS,
								 .answer_ms = ANSWER_MS};

	*a = (struct hold_answer){0};
	if (!*c && !(*c = ws_pg_open(&o, NULL, err)))
		return -1;
	char *sql = query(set, s->pid);
	PGresult *res = ws_pg_exec(*c, sql, "pg_stat_replication", err);

	free(sql);
	if (!res) {
		ws_pg_close(*c);
		*c = NULL;
		return -1;
	}
	if (PQntuples(res) > 0 && PQnfields(res) == 8)
		judge(set, res, s, a);
	else
		snprintf(a->why, sizeof a->why, "unexpected answer");
	PQclear(res);
	return 0;
}
