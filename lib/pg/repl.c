/* Replication commands: IDENTIFY_SYSTEM, slots, timeline history; see ws/pgconn.h.  The stream
 * itself is in stream.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ws/history.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define MAJOR_MIN 16
#define MAJOR_MAX 18

static int
parse_u64(const char *s, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	if (*s < '0' || *s > '9')
		return -1;
	*out = strtoull(s, &end, 10);
	return errno || *end || *out > max ? -1 : 0;
}

static int
identify_system(struct ws_pg *c, struct ws_pg_source *s, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(c, "IDENTIFY_SYSTEM", "IDENTIFY_SYSTEM", err);
	uint64_t tli = 0;
	int rc = -1;

	if (!res)
		return -1;
	if (PQntuples(res) != 1 || PQnfields(res) < 3 ||
		parse_u64(PQgetvalue(res, 0, 0), UINT64_MAX, &s->system_id) != 0 ||
		parse_u64(PQgetvalue(res, 0, 1), UINT32_MAX, &tli) != 0 || tli == 0 ||
		ws_lsn_parse(PQgetvalue(res, 0, 2), &s->pos.lsn) != 0)
		ws_err_temp(err, "IDENTIFY_SYSTEM: unexpected answer");
	else
		rc = 0;
	s->pos.tli = (ws_tli)tli;
	PQclear(res);
	return rc;
}

/* "1min", "60s", "500ms", "0", as SHOW prints a duration in milliseconds. */
static int
parse_duration_ms(const char *s)
{
	double sec;
	char *end;
	long v = strtol(s, &end, 10);

	if (v >= 0 && !strcmp(end, "d"))
		return v > 24 ? INT32_MAX : (int)(v * 86400000);
	if (ws_parse_seconds(s, &sec) != 0 || sec > 2e6)
		return 0;
	return (int)(sec * 1000);
}

int
ws_pg_identify(struct ws_pg *c, struct ws_pg_source *s, struct ws_err *err)
{
	char text[64];
	uint64_t seg;

	*s = (struct ws_pg_source){0};
	s->major = ws_pg_version(c) / 10000;
	if (s->major < MAJOR_MIN || s->major > MAJOR_MAX)
		return ws_err_usage(err, "the server is PostgreSQL %d; supported are %d to %d", s->major,
							MAJOR_MIN, MAJOR_MAX);
	if (identify_system(c, s, err) != 0)
		return -1;
	if (ws_pg_show(c, "wal_segment_size", text, sizeof text, err) != 0)
		return -1;
	if (ws_parse_size(text, &seg) != 0 || seg > UINT32_MAX || !ws_segsize_ok((uint32_t)seg))
		return ws_err_temp(err, "SHOW wal_segment_size: unexpected answer \"%s\"", text);
	s->segsize = (uint32_t)seg;
	if (ws_pg_show(c, "wal_level", s->wal_level, sizeof s->wal_level, err) != 0)
		return -1;
	if (ws_pg_show(c, "wal_sender_timeout", text, sizeof text, err) != 0)
		return -1;
	s->wal_sender_timeout_ms = parse_duration_ms(text);
	return 0;
}

/* Slot names are [a-z0-9_]: nothing to quote, and anything else is refused here. */
int
ws_pg_slot_name_check(const char *name, struct ws_err *err)
{
	size_t n = strlen(name);

	if (n == 0 || n > 63 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != n)
		return ws_err_usage(err, "bad slot name \"%s\": up to 63 of a-z, 0-9 and _", name);
	return 0;
}

int
ws_pg_slot_create(struct ws_pg *c, const char *name, bool exists_ok, struct ws_err *err)
{
	char sql[160], what[100];
	struct ws_pos pos;

	if (ws_pg_slot_name_check(name, err) != 0)
		return -1;
	snprintf(sql, sizeof sql, "CREATE_REPLICATION_SLOT \"%s\" PHYSICAL (RESERVE_WAL)", name);
	snprintf(what, sizeof what, "cannot create replication slot \"%s\"", name);
	PGresult *res = ws_pg_exec(c, sql, what, err);

	PQclear(res);
	if (res)
		return 0;
	if (strcmp(c->sqlstate, "42710"))
		return -1;
	if (exists_ok)
		return ws_pg_slot_read(c, name, &pos, err); /* a logical one is an error */
	err->status = WS_EUSAGE;
	return -1;
}

int
ws_pg_slot_drop(struct ws_pg *c, const char *name, struct ws_err *err)
{
	char sql[160], what[100];

	if (ws_pg_slot_name_check(name, err) != 0)
		return -1;
	snprintf(sql, sizeof sql, "DROP_REPLICATION_SLOT \"%s\"", name);
	snprintf(what, sizeof what, "cannot drop replication slot \"%s\"", name);
	PGresult *res = ws_pg_exec(c, sql, what, err);

	PQclear(res);
	if (res)
		return 0;
	if (!strcmp(c->sqlstate, "42704"))
		ws_err_op(err, "slot_missing", "replication slot \"%s\" does not exist on the server",
				  name);
	return -1;
}

int
ws_pg_slot_read(struct ws_pg *c, const char *name, struct ws_pos *restart, struct ws_err *err)
{
	char sql[160], what[100];
	uint64_t tli = 0;
	int rc = -1;

	*restart = (struct ws_pos){0, 0};
	if (ws_pg_slot_name_check(name, err) != 0)
		return -1;
	snprintf(sql, sizeof sql, "READ_REPLICATION_SLOT \"%s\"", name);
	snprintf(what, sizeof what, "cannot read replication slot \"%s\"", name);
	PGresult *res = ws_pg_exec(c, sql, what, err);

	if (!res) {
		if (!strcmp(c->sqlstate, "0A000") || !strcmp(c->sqlstate, "55000"))
			ws_err_usage(err, "replication slot \"%s\" is not a physical one", name);
		return -1;
	}
	if (PQntuples(res) != 1 || PQnfields(res) < 3) {
		ws_err_temp(err, "%s: unexpected answer", what);
	} else if (PQgetisnull(res, 0, 0)) {
		ws_err_op(err, "slot_missing", "replication slot \"%s\" does not exist on the server",
				  name);
	} else if (strcmp(PQgetvalue(res, 0, 0), "physical")) {
		ws_err_usage(err, "replication slot \"%s\" is not a physical one", name);
	} else if (PQgetisnull(res, 0, 1)) {
		rc = 0;
	} else if (ws_lsn_parse(PQgetvalue(res, 0, 1), &restart->lsn) != 0 ||
			   (!PQgetisnull(res, 0, 2) &&
				parse_u64(PQgetvalue(res, 0, 2), UINT32_MAX, &tli) != 0)) {
		ws_err_temp(err, "%s: unexpected answer", what);
	} else {
		restart->tli = (ws_tli)tli;
		rc = 0;
	}
	PQclear(res);
	return rc;
}

int
ws_pg_history(struct ws_pg *c, ws_tli tli, struct ws_buf *out, struct ws_err *err)
{
	char sql[64];
	int rc = -1;

	snprintf(sql, sizeof sql, "TIMELINE_HISTORY %u", tli);
	PGresult *res = ws_pg_exec(c, sql, sql, err);

	if (!res) {
		if (!strcmp(c->sqlstate, "58P01"))
			ws_err_op(err, "history_missing", "the server has no history file of timeline %u", tli);
		return -1;
	}
	if (PQntuples(res) != 1 || PQnfields(res) != 2 ||
		PQgetlength(res, 0, 1) > (int)WS_HISTORY_MAX) {
		ws_err_temp(err, "%s: unexpected answer", sql);
	} else {
		/* Declared as text, yet the bytes are the file's. */
		ws_buf_put(out, PQgetvalue(res, 0, 1), (size_t)PQgetlength(res, 0, 1));
		rc = 0;
	}
	PQclear(res);
	return rc;
}
