/* Can the shadow's server program replay this source?  Asked before the backup; see
 * ws/basebackup.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn.h"
#include "shadowdir.h"
#include "ws/file.h"
#include "ws/log.h"

/* Runs argv and gives its exit status; out gets what it wrote to stdout and stderr. */
static int
capture(const char *const *argv, char *out, size_t size, int *status, struct ws_err *err)
{
	int fds[2];
	size_t n = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		return ws_err_sys(err, "%s: cannot run", argv[0]);
	if (pid == 0) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(fds[1]);
	for (;;) {
		char junk[512];
		ssize_t k = n < size - 1 ? read(fds[0], out + n, size - 1 - n) : read(fds[0], junk, sizeof junk);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		if (n < size - 1)
			n += (size_t)k;
	}
	close(fds[0]);
	out[n] = 0;
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return ws_err_sys(err, "%s: cannot wait", argv[0]);
	*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128;
	return 0;
}

static int
pgbin_major(const char *bindir, int *major, struct ws_err *err)
{
	char *prog = ws_asprintf("%s/postgres", bindir), out[256];
	const char *argv[] = {prog, "--version", NULL};
	int status, rc = capture(argv, out, sizeof out, &status, err);
	const char *v = rc == 0 ? strstr(out, "(PostgreSQL) ") : NULL;

	if (rc == 0 && (status != 0 || !v || (*major = atoi(v + 13)) < 10))
		rc = ws_err_usage(err, "%s: no PostgreSQL server program (--bindir)", prog);
	free(prog);
	return rc;
}

/* `postgres -C` reads the configuration and stops: it refuses a value that the build lacks. */
static int
pgbin_compression(const char *bindir, const char *dir, const char *value, bool *ok, struct ws_err *err)
{
	char *prog = ws_asprintf("%s/postgres", bindir), *set = ws_asprintf("wal_compression=%s", value);
	char *conf = ws_asprintf("%s/postgresql.conf", dir), out[1024];
	const char *argv[] = {prog, "-C", "wal_compression", "-D", dir, "-c", set, NULL};
	int status;
	int rc = ws_file_replace(conf, "", 0, 0600, false, err);

	if (rc == 0)
		rc = capture(argv, out, sizeof out, &status, err);
	if (rc == 0)
		*ok = status == 0;
	free(prog);
	free(set);
	free(conf);
	return rc;
}

/* One compression method: used and unreadable is an error, possible and unreadable a warning. */
static int
check_method(struct ws_pg *sql, const char *bindir, const char *dir, const char *method, struct ws_err *err)
{
	char *q = ws_asprintf("SELECT setting = '%s' OR EXISTS (SELECT FROM pg_catalog.pg_db_role_setting,"
	                      " pg_catalog.unnest(setconfig) c WHERE c = 'wal_compression=%s'),"
	                      " '%s' = ANY (enumvals) FROM pg_catalog.pg_settings"
	                      " WHERE name = 'wal_compression'",
	                      method, method, method);
	PGresult *res = ws_pg_exec(sql, q, "wal_compression", err);
	bool one = res && PQntuples(res) == 1, ok = true;
	bool used = one && *PQgetvalue(res, 0, 0) == 't', possible = one && *PQgetvalue(res, 0, 1) == 't';
	int rc = !res || (possible && pgbin_compression(bindir, dir, method, &ok, err) != 0) ? -1 : 0;

	if (rc == 0 && !ok && used)
		rc = ws_err_usage(err, "the source compresses WAL by %s, which the server in %s cannot read", method,
		                  bindir);
	else if (rc == 0 && !ok)
		ws_warn("the source could compress WAL by %s, which the shadow's server cannot read: never set "
		        "wal_compression to it",
		        method);
	PQclear(res);
	free(q);
	return rc;
}

int
ws_backup_check_programs(const char *conninfo, const char *bindir, int major, const struct ws_shadowdir *d,
                         struct ws_err *err)
{
	struct ws_pg_opts o = {.mode = WS_PG_SQL, .conninfo = conninfo, .appname = "ws-backup"};
	char *bin = bindir ? ws_strdup(bindir) : ws_asprintf("/usr/lib/postgresql/%d/bin", major);
	struct ws_pg *sql = NULL;
	int have = 0, rc = pgbin_major(bin, &have, err);

	if (rc == 0 && have != major)
		rc = ws_err_usage(err, "%s is PostgreSQL %d, the source is %d: the shadow needs the same major", bin,
		                  have, major);
	if (rc == 0 && !(sql = ws_pg_open(&o, NULL, err)))
		rc = -1;
	if (rc == 0)
		rc = check_method(sql, bin, shadowdir_tmp(d), "lz4", err);
	if (rc == 0)
		rc = check_method(sql, bin, shadowdir_tmp(d), "zstd", err);
	ws_pg_close(sql);
	free(bin);
	return rc;
}
