/* A seeded random workload of several sessions at once, for comparing decoders:
 *   sqlmix CONNINFO SEED STEPS [HOOK]
 * The tables must exist (080-decode.t).  Statements run one at a time, on a random session each, so
 * a seed gives the same statements; whatever fails (a lock that another session holds, a duplicate
 * key) is rolled back, which is part of the mix.  HOOK is a command that runs after every commit
 * that may have changed a catalog. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#define SESSIONS 5
#define KEYS     60

static PGconn *conn[SESSIONS];
static bool in_tx[SESSIONS];
static int depth[SESSIONS];
static bool ddl[SESSIONS], ddl_prepared[64];
static const char *hook;
static uint64_t seed;
static int ngid, prepared[64], nprepared;
static long done, failed;

static unsigned
rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static bool __attribute__((format(printf, 2, 3)))
sql(int s, const char *fmt, ...)
{
	char *q;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&q, fmt, ap) < 0)
		exit(1);
	va_end(ap);
	PGresult *res = PQexec(conn[s], q);
	bool ok = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK ||
	          PQresultStatus(res) == PGRES_COPY_IN;

	if (!ok && getenv("SQLMIX_DEBUG"))
		fprintf(stderr, "%s: %s", q, PQresultErrorMessage(res));
	ok ? done++ : failed++;
	PQclear(res);
	free(q);
	return ok;
}

static void
run_hook(void)
{
	if (hook && system(hook) != 0) {
		fprintf(stderr, "sqlmix: the hook failed\n");
		exit(1);
	}
}

static void
end(int s, bool commit)
{
	sql(s, commit ? "COMMIT" : "ROLLBACK");
	in_tx[s] = false;
	depth[s] = 0;
	if (commit && ddl[s])
		run_hook();
	ddl[s] = false;
}

/* A statement failed. */
static void
recover(int s)
{
	if (!in_tx[s])
		return;
	if (depth[s] && rnd(2))
		sql(s, "ROLLBACK TO s%d", depth[s]);
	else
		end(s, false);
}

static void
copy(int s, const char *table, unsigned rows)
{
	char line[128];

	if (!sql(s, "COPY %s FROM STDIN", table)) {
		recover(s);
		return;
	}
	for (unsigned i = 0; i < rows; i++) {
		int n = snprintf(line, sizeof line, "%u\tcopied %u\n", 1000 + rnd(100000), rnd(1000));

		PQputCopyData(conn[s], line, n);
	}
	PQputCopyEnd(conn[s], NULL);
	PGresult *res;
	bool ok = true;

	while ((res = PQgetResult(conn[s]))) {
		ok &= PQresultStatus(res) == PGRES_COMMAND_OK;
		PQclear(res);
	}
	if (!ok)
		recover(s);
}

static const char *const small[] = {"m_def", "m_full", "m_idx", "m_none", "m_def2"};

/* What gives files or columns to tables. */
static bool
structural(int s, const char *t)
{
	ddl[s] = true;
	switch (rnd(4)) {
	case 0:
		return sql(s, "ALTER TABLE %s ADD COLUMN x%ld int DEFAULT %u", t, done, rnd(100));
	case 1:
		return sql(s, "TRUNCATE %s, m_part RESTART IDENTITY CASCADE", t);
	default:
		return sql(s, "TRUNCATE %s", t);
	}
}

static void
change(int s)
{
	const char *t = small[rnd(5)];
	unsigned a = rnd(KEYS), b = rnd(KEYS), len = rnd(4) ? rnd(40) : 3000 + rnd(9000);
	bool ok = true;

	switch (rnd(16)) {
	case 0:
	case 1:
		ok = sql(s, "INSERT INTO %s VALUES (%u, 'v%u')", t, a, b);
		break;
	case 2:
		ok = sql(s, "INSERT INTO %s SELECT g, 'r' || g FROM generate_series(%u, %u) g", t,
		         200 + a * 50, 200 + a * 50 + b);
		break;
	case 3:
	case 4:
		ok = sql(s, "UPDATE %s SET v = 'u%u' WHERE id = %u", t, b, a);
		break;
	case 5:
		ok = sql(s, "UPDATE %s SET id = %u WHERE id = %u", t, b, a);
		break;
	case 6:
		ok = sql(s, "DELETE FROM %s WHERE id = %u", t, a);
		break;
	case 7:
		ok = sql(s, "DELETE FROM %s WHERE id > %u", t, 200 + a * 40);
		break;
	case 8:
		ok = sql(s, "INSERT INTO m_def VALUES (%u, 'c') ON CONFLICT (id) DO %s", a,
		         rnd(2) ? "NOTHING" : "UPDATE SET v = m_def.v || '+'");
		break;
	case 9:
		copy(s, rnd(2) ? "m_none" : "m_full", 1 + rnd(300));
		break;
	case 10:
		ok = sql(s, "INSERT INTO m_part VALUES (%u, 'p', repeat(md5('%u'), %u))", rnd(300), b,
		         len / 32);
		break;
	case 11:
		ok = sql(s, "UPDATE m_part SET id = %u WHERE id = %u", rnd(300), rnd(300));
		break;
	case 12:
		ok =
			sql(s,
		        "INSERT INTO m_toast VALUES (%u, (SELECT string_agg(md5(g::text || '%u'), '') FROM "
		        "generate_series(1, %u) g), 'k', 1)",
		        a, b, len / 32);
		break;
	case 13:
		ok = rnd(2)
		         ? sql(s, "UPDATE m_toast SET n = n + 1 WHERE id = %u", a)
		         : sql(s, "UPDATE m_toast SET v = v || '%u', k = 'k%u' WHERE id < %u", b, b, a / 8);
		break;
	case 14:
		ok = sql(s, "DELETE FROM m_toast WHERE id = %u", a);
		break;
	case 15:
		ok = rnd(6) ? sql(s, "SELECT pg_logical_emit_message(%s, 'mix', 'm%u')",
		                  rnd(2) ? "true" : "false", a)
		            : structural(s, t);
		break;
	}
	if (!ok)
		recover(s);
	else if (ddl[s] && !in_tx[s])
		ddl[s] = (run_hook(), false);
}

static void
finish(int s)
{
	if (rnd(6) == 0 && nprepared < 60) {
		if (sql(s, "PREPARE TRANSACTION 'g%d'", ngid)) {
			ddl_prepared[nprepared] = ddl[s];
			prepared[nprepared++] = ngid;
			in_tx[s] = ddl[s] = false;
			depth[s] = 0;
		} else {
			end(s, false);
		}
		ngid++;
	} else {
		end(s, rnd(5) != 0);
	}
}

static void
decide(int s)
{
	if (!nprepared || in_tx[s])
		return;
	int i = (int)rnd((unsigned)nprepared);
	bool commit = rnd(4);

	sql(s, "%s PREPARED 'g%d'", commit ? "COMMIT" : "ROLLBACK", prepared[i]);
	if (commit && ddl_prepared[i])
		run_hook();
	prepared[i] = prepared[--nprepared];
	ddl_prepared[i] = ddl_prepared[nprepared];
}

static void
step(void)
{
	int s = (int)rnd(SESSIONS);
	unsigned what = rnd(20);

	if (!in_tx[s] && what < 8) {
		in_tx[s] = sql(s, "BEGIN");
	} else if (in_tx[s] && what < 3) {
		finish(s);
	} else if (in_tx[s] && what < 6) {
		if (sql(s, "SAVEPOINT s%d", depth[s] + 1))
			depth[s]++;
	} else if (in_tx[s] && depth[s] && what < 8) {
		sql(s, "%s s%d", rnd(2) ? "ROLLBACK TO" : "RELEASE", depth[s]);
		depth[s]--;
	} else if (what == 8 && rnd(2)) {
		decide(s);
	} else if (what == 9 && rnd(6) == 0) {
		sql(s, "CHECKPOINT");
	} else {
		change(s);
	}
}

static void
quiet(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

int
main(int argc, char **argv)
{
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: sqlmix CONNINFO SEED STEPS [HOOK]\n");
		return 2;
	}
	hook = argc > 4 ? argv[4] : NULL;
	seed = strtoull(argv[2], NULL, 10) * 2654435761u + 1;
	for (int s = 0; s < SESSIONS; s++) {
		conn[s] = PQconnectdb(argv[1]);
		if (PQstatus(conn[s]) != CONNECTION_OK) {
			fprintf(stderr, "sqlmix: %s", PQerrorMessage(conn[s]));
			return 1;
		}
		PQsetNoticeProcessor(conn[s], quiet, NULL);
		sql(s, "SET lock_timeout = '15ms'");
		sql(s, "SET client_min_messages = error");
	}
	done = failed = 0;
	for (long i = strtol(argv[3], NULL, 10); i > 0; i--)
		step();
	for (int s = 0; s < SESSIONS; s++)
		if (in_tx[s])
			end(s, rnd(2));
	while (nprepared)
		decide(0);
	printf("statements=%ld failed=%ld\n", done, failed);
	for (int s = 0; s < SESSIONS; s++)
		PQfinish(conn[s]);
	return 0;
}
