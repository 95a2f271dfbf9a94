/* Runs what sqlgen made:
 *   sqlrun CONNINFO [-p] <SCRIPT
 * Lines are a session's number, a tab and SQL.  One at a time in the order given, or with -p each
 * session on its own, side by side, once session 0 is through.  Whatever fails in a transaction is
 * undone: to its last savepoint or as a whole.  At the end whatever is prepared is decided. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#define SESSIONS 10

struct line {
	unsigned session;
	char *sql;
};

static struct line *lines;
static size_t nlines;
static const char *conninfo;
static PGconn *conn[SESSIONS];
static char savepoint[SESSIONS][32];
static long done, failed;

static void
quiet(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

static bool
run(PGconn *c, const char *sql)
{
	PGresult *res = PQexec(c, sql);
	ExecStatusType st = PQresultStatus(res);
	bool ok = st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK || st == PGRES_EMPTY_QUERY;

	if (!ok && getenv("SQLRUN_DEBUG"))
		fprintf(stderr, "%s\n  %s", sql, PQresultErrorMessage(res));
	PQclear(res);
	if (PQstatus(c) != CONNECTION_OK) {
		fprintf(stderr, "sqlrun: the connection is lost at: %s\n", sql);
		exit(1);
	}
	return ok;
}

static PGconn *
connection(unsigned s, bool alone)
{
	if (conn[s])
		return conn[s];
	conn[s] = PQconnectdb(conninfo);
	if (PQstatus(conn[s]) != CONNECTION_OK) {
		fprintf(stderr, "sqlrun: %s", PQerrorMessage(conn[s]));
		exit(1);
	}
	PQsetNoticeProcessor(conn[s], quiet, NULL);
	run(conn[s],
		"SET client_min_messages = error; SET deadlock_timeout = '20ms'; SET timezone = 'UTC'");
	run(conn[s], alone ? "SET lock_timeout = '15ms'" : "SET lock_timeout = '300ms'");
	return conn[s];
}

static void
execute(const struct line *l, bool alone)
{
	PGconn *c = connection(l->session, alone);
	char *save = savepoint[l->session], undo[64];
	bool ok = run(c, l->sql);

	ok ? done++ : failed++;
	if (ok && !strncmp(l->sql, "SAVEPOINT ", 10))
		snprintf(save, sizeof savepoint[0], "%s", l->sql + 10);
	else if (PQtransactionStatus(c) == PQTRANS_IDLE || !strncmp(l->sql, "RELEASE", 7))
		*save = 0;
	if (PQtransactionStatus(c) != PQTRANS_INERROR)
		return;
	snprintf(undo, sizeof undo, "ROLLBACK TO %s", save);
	if (!*save || !run(c, undo)) {
		run(c, "ROLLBACK");
		*save = 0;
	}
}

static void
read_lines(void)
{
	char *buf = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&buf, &cap, stdin)) > 0) {
		char *tab = strchr(buf, '\t');
		unsigned s = (unsigned)atoi(buf);

		if (buf[n - 1] == '\n')
			buf[n - 1] = 0;
		if (!tab || s >= SESSIONS) {
			fprintf(stderr, "sqlrun: not a line: %s\n", buf);
			exit(2);
		}
		lines = realloc(lines, (nlines + 1) * sizeof *lines);
		lines[nlines++] = (struct line){s, strdup(tab + 1)};
	}
	free(buf);
}

/* What is left over. */
static void
decide(void)
{
	PGconn *c = connection(0, false);
	PGresult *res = PQexec(
		c, "SELECT format('%s PREPARED %L', CASE WHEN transaction::text::bigint % 3 = 0 THEN "
		   "'ROLLBACK' ELSE 'COMMIT' END, gid) FROM pg_prepared_xacts WHERE database = "
		   "current_database()");

	for (int i = 0; i < PQntuples(res); i++)
		run(c, PQgetvalue(res, i, 0));
	PQclear(res);
}

static int
side_by_side(void)
{
	int status, bad = 0;

	for (unsigned s = 1; s < SESSIONS; s++) {
		if (fork() != 0)
			continue;
		for (size_t i = 0; i < nlines; i++)
			if (lines[i].session == s)
				execute(&lines[i], false);
		if (conn[s])
			PQfinish(conn[s]);
		if (done + failed)
			printf("session=%u statements=%ld failed=%ld\n", s, done, failed);
		fflush(stdout);
		_exit(0);
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad;
}

int
main(int argc, char **argv)
{
	bool parallel = argc == 3 && !strcmp(argv[2], "-p");

	if (argc < 2 || argc > 3 || (argc == 3 && !parallel)) {
		fprintf(stderr, "usage: sqlrun CONNINFO [-p] <SCRIPT\n");
		return 2;
	}
	conninfo = argv[1];
	read_lines();
	for (size_t i = 0; i < nlines; i++) {
		if (lines[i].session != 0 && parallel)
			continue;
		execute(&lines[i], true);
		if (lines[i].session == 0 && failed) {
			fprintf(stderr, "sqlrun: setup failed: %s\n%s", lines[i].sql, PQerrorMessage(conn[0]));
			return 1;
		}
	}
	if (conn[0])
		PQfinish(conn[0]);
	conn[0] = NULL;
	if (parallel) {
		fflush(stdout);
		done = failed = 0;
		if (side_by_side() != 0)
			return 1;
	}
	for (unsigned s = 0; s < SESSIONS; s++)
		if (conn[s])
			PQfinish(conn[s]), conn[s] = NULL;
	decide();
	PQfinish(conn[0]);
	if (!parallel)
		printf("statements=%ld failed=%ld\n", done, failed);
	return 0;
}
