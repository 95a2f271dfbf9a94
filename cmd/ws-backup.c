/* ws-backup: the source's base backup, cut down to its catalogs, as the shadow's data directory.
 * See ws-backup(1). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/basebackup.h"
#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/pos.h"
#include "ws/tool.h"

static char *opt_state, *opt_conninfo, *opt_dir, *opt_checkpoint, *opt_rate, *opt_bindir;

static const struct poptOption options[] = {
    {"state", 0, POPT_ARG_STRING, &opt_state, 0, "state directory", "DIR"},
    {"dbname", 'd', POPT_ARG_STRING, &opt_conninfo, 0, "how to connect to the source", "CONNSTR"},
    {"directory", 'D', POPT_ARG_STRING, &opt_dir, 0, "data directory to make (STATE/shadow)", "DIR"},
    {"bindir", 0, POPT_ARG_STRING, &opt_bindir, 0, "where the shadow's server program is", "DIR"},
    {"checkpoint", 'c', POPT_ARG_STRING, &opt_checkpoint, 0, "fast (default) or spread", "fast|spread"},
    {"max-rate", 'r', POPT_ARG_STRING, &opt_rate, 0, "take at most this much a second", "SIZE"},
    POPT_TABLEEND};

#define SOCKET_PATH_MAX 90 /* sun_path has 108 bytes, the socket's name takes some */
#define FILTER_WARN_US  10000000u

struct run {
	char *state, *dir, *rundir;
	struct ws_pg *conn;
	struct ws_pg_source source;
	struct ws_shadowdir *shadow;
	struct ws_filter *filter;
	int origins;
	uint64_t expected, got, shown_us;
};

static char *
in_state(const struct run *r, const char *name)
{
	return ws_asprintf("%s/%s", r->state, name);
}

static void
show_progress(struct run *r, bool last)
{
	uint64_t now = ws_now_us();

	if (!ws_tool_progress() || (!last && now - r->shown_us < 500000))
		return;
	r->shown_us = now;
	fprintf(stderr, "\r%llu of about %llu MB read, %llu MB kept%s", (unsigned long long)(r->got >> 20),
	        (unsigned long long)(r->expected >> 20), (unsigned long long)(ws_shadowdir_kept(r->shadow) >> 20),
	        last ? "\n" : "");
}

/* The server waits in the meantime: the filter must know the catalogs as of the start. */
static int
wait_filter(struct run *r, ws_lsn start, struct ws_err *err)
{
	char *path = in_state(r, "filtered/state");
	uint64_t since = ws_now_us(), id;
	bool told = false;
	struct ws_pos pos;
	int rc;

	for (;;) {
		ws_filter_free(r->filter);
		r->filter = ws_filter_new();
		rc = ws_filter_read(r->filter, path, &pos, &id, err);
		if (rc < 0 || (rc == 1 && pos.lsn >= start))
			break;
		if (ws_tool_stopping()) {
			rc = ws_err_temp(err, "interrupted");
			break;
		}
		if (!told && ws_now_us() - since > FILTER_WARN_US) {
			ws_warn("waiting for ws-filter to reach the backup's start: lsn=" WS_LSN_FMT, WS_LSN_ARG(start));
			told = true;
		}
		usleep(20000);
	}
	if (rc == 1 && id != r->source.system_id)
		rc = ws_err_op(err, "system_id_changed", "%s: of another cluster than the source", path);
	free(path);
	return rc == 1 ? 0 : -1;
}

static int
on_start(void *arg, struct ws_pos start, uint64_t expected, struct ws_err *err)
{
	struct run *r = arg;
	char *path = in_state(r, "pos/backup.start");

	r->expected = expected;
	ws_info("base backup: start=" WS_LSN_FMT, WS_LSN_ARG(start.lsn));
	int rc = ws_pos_write(path, start, true, err);

	free(path);
	if (rc != 0 || wait_filter(r, start.lsn, err) != 0)
		return -1;
	ws_debug("catalog files beyond the fixed rules: %zu", ws_filter_kept_count(r->filter));
	ws_shadowdir_filter(r->shadow, r->filter);
	return 0;
}

static int
on_archive(void *arg, const char *name, const char *path, struct ws_err *err)
{
	struct run *r = arg;

	ws_debug("archive %s %s", name, path);
	return ws_shadowdir_archive(r->shadow, name, err);
}

static int
on_bytes(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct run *r = arg;

	r->got += n;
	show_progress(r, false);
	return ws_shadowdir_bytes(r->shadow, p, n, err);
}

static int
on_archive_end(void *arg, struct ws_err *err)
{
	struct run *r = arg;

	return ws_shadowdir_archive_end(r->shadow, err);
}

/* ---- before anything is asked of the source's disk ---- */

/* Boundaries between the captures and a new backup could never be seen. */
static int
check_captures(struct run *r, struct ws_err *err)
{
	char *path = in_state(r, "pos");
	DIR *d = opendir(path);
	struct dirent *e;
	int rc = 0;

	while (rc == 0 && d && (e = readdir(d)))
		if (!strncmp(e->d_name, "captured.", 9))
			rc = ws_err_op(err, "backup_above_captured",
			               "%s/%s: catalogs were captured already, a new backup would leave a gap; "
			               "restore the shadow from %s/shadow.keep",
			               path, e->d_name, r->state);
	if (d)
		closedir(d);
	free(path);
	return rc;
}

static int
connect_source(struct run *r, struct ws_err *err)
{
	struct ws_pg_opts o = {.mode = WS_PG_PHYSICAL, .conninfo = opt_conninfo, .appname = "ws-backup"};
	char value[32];

	r->conn = ws_pg_open(&o, NULL, err);
	if (!r->conn || ws_pg_identify(r->conn, &r->source, err) != 0)
		return -1;
	struct ws_cluster cluster = {r->source.system_id, r->source.major, r->source.segsize};

	if (ws_cluster_claim(r->state, &cluster, err) != 0 ||
	    ws_pg_show(r->conn, r->source.major >= 18 ? "max_active_replication_origins" : "max_replication_slots",
	               value, sizeof value, err) != 0)
		return -1;
	r->origins = atoi(value);
	return 0;
}

static int
announce(struct run *r, struct ws_pos end, struct ws_err *err)
{
	char *path = in_state(r, "pos/backup");
	int rc = ws_pos_write(path, end, true, err);

	if (rc == 0)
		ws_info("the shadow's data directory is complete: directory=%s end=" WS_LSN_FMT, r->dir,
		        WS_LSN_ARG(end.lsn));
	free(path);
	return rc;
}

static int
backup(struct run *r, unsigned rate_kb, struct ws_err *err)
{
	static const struct ws_basebackup_events ev = {on_start, on_archive, on_bytes, on_archive_end};
	struct ws_basebackup_opts o = {.label = "walshadow",
	                               .fast = !opt_checkpoint || !strcmp(opt_checkpoint, "fast"),
	                               .max_rate_kb = rate_kb,
	                               .progress = ws_tool_progress()};
	struct ws_pos end;
	int rc = ws_shadowdir_end(r->dir, &end, err);

	/* Died between the rename and the announcement. */
	if (rc != 0)
		return rc < 0 ? -1 : announce(r, end, err);
	if (connect_source(r, err) != 0)
		return -1;
	r->shadow = ws_shadowdir_new(r->dir, err);
	if (!r->shadow || ws_backup_check_programs(opt_conninfo, opt_bindir, r->source.major, r->shadow, err) != 0)
		return -1;
	if (ws_basebackup_run(r->conn, &o, &ev, r, &end, err) != 0)
		return -1;
	show_progress(r, true);
	struct ws_shadowconf conf = {r->rundir, r->source.major, r->origins};

	if (ws_shadowdir_finish(r->shadow, &conf, end, err) != 0)
		return -1;
	ws_info("read=%llu kept=%llu", (unsigned long long)r->got,
	        (unsigned long long)ws_shadowdir_kept(r->shadow));
	*ws_metric(ws_tool_metrics(), WS_GAUGE, "walshadow_backup_kept_bytes", "",
	           "Bytes of the base backup in the shadow's data directory.") =
	    (double)ws_shadowdir_kept(r->shadow);
	return announce(r, end, err);
}

/* The directories, absolute: the shadow is started from anywhere. */
static int
resolve(struct run *r, struct ws_err *err)
{
	char *path;
	int rc;

	r->state = realpath(opt_state, NULL);
	if (!r->state)
		return ws_err_arg(err, "%s: no state directory", opt_state);
	r->rundir = in_state(r, "run");
	r->dir = opt_dir ? ws_strdup(opt_dir) : in_state(r, "shadow");
	size_t n = strlen(r->dir);

	while (n > 1 && r->dir[n - 1] == '/')
		r->dir[--n] = 0;
	if (strlen(r->rundir) > SOCKET_PATH_MAX)
		return ws_err_usage(err, "%s: too long for the path of a socket", r->rundir);
	path = in_state(r, "pos");
	rc = ws_mkdir_p(r->rundir, 0700, err) == 0 && ws_mkdir_p(path, 0700, err) == 0 ? 0 : -1;
	free(path);
	return rc;
}

static int
check_usage(int argc, uint64_t *rate, struct ws_err *err)
{
	if (argc)
		return ws_err_usage(err, "no operands are taken");
	if (!(opt_state = ws_tool_state(opt_state)))
		return ws_err_usage(err, "--state DIR is needed");
	if (opt_checkpoint && strcmp(opt_checkpoint, "fast") && strcmp(opt_checkpoint, "spread"))
		return ws_err_usage(err, "--checkpoint is fast or spread, not %s", opt_checkpoint);
	if (opt_rate && (ws_parse_size(opt_rate, rate) != 0 || *rate < 32768 || *rate > 1073741824))
		return ws_err_usage(err, "--max-rate: not between 32kB and 1GB: %s", opt_rate);
	return 0;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	struct run r = {0};
	uint64_t rate = 0;
	int lock = -1, rc = -1;

	(void)argv;
	if (check_usage(argc, &rate, err) != 0)
		return err->status;
	if (resolve(&r, err) == 0) {
		char *path = in_state(&r, "run/ws-backup.lock");

		lock = ws_lock_file(path, err);
		free(path);
	}
	if (lock >= 0 && check_captures(&r, err) == 0)
		rc = backup(&r, (unsigned)(rate / 1024), err);
	ws_shadowdir_free(r.shadow);
	ws_pg_close(r.conn);
	ws_filter_free(r.filter);
	free(r.state);
	free(r.dir);
	free(r.rundir);
	if (lock >= 0)
		close(lock);
	return rc == 0 ? 0 : (int)err->status;
}

static const struct ws_tool tool = {"ws-backup", "[OPTION...]", options, run};

int
main(int argc, char **argv)
{
	return ws_tool_main(&tool, argc, argv);
}
