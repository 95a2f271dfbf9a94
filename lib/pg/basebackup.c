/* BASE_BACKUP's protocol (protocol-replication in the manual; backup/basebackup_copy.c):
 * start row, tablespaces, one COPY of all archives, end row, and only then the verdict. */
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ws/basebackup.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/tool.h"

#define WAIT_MS (24 * 3600 * 1000) /* a spread checkpoint takes what checkpoint_timeout says */

struct backup {
	struct ws_pg *c;
	const struct ws_basebackup_events *ev;
	void *arg;
	bool in_archive;
};

static char *
command(struct ws_pg *c, const struct ws_basebackup_opts *o)
{
	struct ws_buf b = {0};
	char *label = PQescapeLiteral(c->conn, o->label, strlen(o->label));

	ws_buf_printf(&b,
	              "BASE_BACKUP (LABEL %s, CHECKPOINT '%s', WAIT 0, WAL 0, MANIFEST 'no', "
	              "VERIFY_CHECKSUMS 0, TARGET 'client'",
	              label ? label : "'walshadow'", o->fast ? "fast" : "spread");
	if (o->progress)
		ws_buf_puts(&b, ", PROGRESS 1");
	if (o->max_rate_kb)
		ws_buf_printf(&b, ", MAX_RATE %u", o->max_rate_kb);
	ws_buf_puts(&b, ")");
	PQfreemem(label);
	return ws_buf_cstr(&b);
}

/* The next result, which must have the status wanted. */
static int
expect(struct backup *b, ExecStatusType want, const char *what, PGresult **res, struct ws_err *err)
{
	if (pg_result(b->c, res, WAIT_MS, err) != 0)
		return -1;
	if (*res && PQresultStatus(*res) == want)
		return 0;
	if (!*res || PQresultStatus(*res) == PGRES_FATAL_ERROR)
		pg_error(b->c, *res, what, err);
	else
		ws_err_temp(err, "%s: unexpected answer", what);
	PQclear(*res);
	*res = NULL;
	return -1;
}

/* A row with an LSN and a timeline. */
static int
position(struct backup *b, const char *what, struct ws_pos *pos, struct ws_err *err)
{
	PGresult *res;
	int rc = 0;

	if (expect(b, PGRES_TUPLES_OK, what, &res, err) != 0)
		return -1;
	if (PQntuples(res) != 1 || PQnfields(res) < 2 || ws_lsn_parse(PQgetvalue(res, 0, 0), &pos->lsn) != 0 ||
	    !(pos->tli = (ws_tli)strtoul(PQgetvalue(res, 0, 1), NULL, 10)))
		rc = ws_err_temp(err, "%s: unexpected row", what);
	PQclear(res);
	return rc;
}

static int
tablespaces(struct backup *b, uint64_t *expected, struct ws_err *err)
{
	PGresult *res;

	if (expect(b, PGRES_TUPLES_OK, "base backup: list of tablespaces", &res, err) != 0)
		return -1;
	*expected = 0;
	for (int i = 0; i < PQntuples(res) && PQnfields(res) >= 3; i++)
		*expected += strtoull(PQgetvalue(res, i, 2), NULL, 10) * 1024;
	PQclear(res);
	return 0;
}

static int
end_archive(struct backup *b, struct ws_err *err)
{
	if (!b->in_archive)
		return 0;
	b->in_archive = false;
	return b->ev->archive_end(b->arg, err);
}

/* One CopyData: its first byte says what it is. */
static int
message(struct backup *b, const char *p, size_t n, struct ws_err *err)
{
	if (!n)
		return ws_err_temp(err, "base backup: empty message");
	switch (p[0]) {
	case 'n': {
		const char *path = memchr(p + 1, 0, n - 1);

		if (!path || !memchr(path + 1, 0, n - (size_t)(path + 1 - p)))
			return ws_err_temp(err, "base backup: malformed archive name");
		if (end_archive(b, err) != 0)
			return -1;
		b->in_archive = true;
		return b->ev->archive(b->arg, p + 1, path + 1, err);
	}
	case 'd':
		if (!b->in_archive)
			return ws_err_temp(err, "base backup: data outside an archive");
		return b->ev->bytes(b->arg, (const uint8_t *)p + 1, n - 1, err);
	case 'p':
		return 0;
	default:
		return ws_err_temp(err, "base backup: unknown message type 0x%02x", (unsigned char)p[0]);
	}
}

static int
archives(struct backup *b, struct ws_err *err)
{
	PGresult *res;

	if (expect(b, PGRES_COPY_OUT, "base backup", &res, err) != 0)
		return -1;
	PQclear(res);
	for (;;) {
		char *p = NULL;
		int n = PQgetCopyData(b->c->conn, &p, 1);

		if (n > 0) {
			int rc = message(b, p, (size_t)n, err);

			PQfreemem(p);
			if (rc != 0)
				return -1;
			if (ws_tool_stopping())
				return ws_err_temp(err, "interrupted");
			continue;
		}
		if (n == -1)
			return 0;
		if (n < -1)
			return pg_error(b->c, NULL, "base backup", err);
		if (pg_wait(b->c, false, -1, err) < 0)
			return -1;
		if (!PQconsumeInput(b->c->conn))
			return pg_error(b->c, NULL, "base backup", err);
	}
}

/* The end row is no success yet: checksum failures are reported behind it. */
static int
verdict(struct backup *b, struct ws_err *err)
{
	PGresult *res;

	if (expect(b, PGRES_COMMAND_OK, "base backup", &res, err) != 0)
		return -1;
	PQclear(res);
	if (pg_result(b->c, &res, WAIT_MS, err) != 0)
		return -1;
	if (!res)
		return PQstatus(b->c->conn) == CONNECTION_OK ? 0 : pg_error(b->c, NULL, "base backup", err);
	pg_error(b->c, res, "base backup", err);
	PQclear(res);
	return -1;
}

int
ws_basebackup_run(struct ws_pg *c, const struct ws_basebackup_opts *o, const struct ws_basebackup_events *ev,
                  void *arg, struct ws_pos *end, struct ws_err *err)
{
	struct backup b = {c, ev, arg, false};
	struct ws_pos start;
	uint64_t expected;
	char *sql = command(c, o);
	int sent = PQsendQuery(c->conn, sql);

	free(sql);
	if (!sent)
		return pg_error(c, NULL, "base backup", err);
	if (position(&b, "base backup: start", &start, err) != 0 || tablespaces(&b, &expected, err) != 0 ||
	    ev->started(arg, start, expected, err) != 0 || archives(&b, err) != 0)
		return -1;
	/* The copy may have ended by an error, which is the next result. */
	if (position(&b, "base backup: end", end, err) != 0 || verdict(&b, err) != 0)
		return -1;
	return end_archive(&b, err);
}
