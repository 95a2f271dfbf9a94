/* Pruning; see ws/prune.h.  The whole plan is made before the first file goes, oldest segments go
 * first, and a segment goes only when all of it lies below the cut. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statepos.h"
#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/pgcontrol.h"
#include "ws/pos.h"
#include "ws/prune.h"
#include "ws/shape.h"

static void
lower(struct ws_prune_cut *c, bool *have, ws_lsn lsn, const char *why)
{
	if (*have && c->lsn <= lsn)
		return;
	*have = true;
	c->lsn = lsn;
	snprintf(c->why, sizeof c->why, "%s", why);
}

/* pos/NAME: 1 there, 0 not, -1. */
static int
read_pos(const char *state, const char *name, struct ws_pos *pos, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/%s", state, name);
	int rc = ws_pos_read(path, pos, err);

	free(path);
	return rc;
}

/* The databases' captured, before the first capture the backup's end; 0 when there is neither. */
static int
bound_by_capture(const char *state, struct ws_prune_cut *c, bool *have, struct ws_err *err)
{
	struct ws_pos pos;
	int n;

	if (statepos_min(state, "captured.", &pos, &n, err) != 0)
		return -1;
	if (n > 0) {
		lower(c, have, pos.lsn, "pos/captured.*");
		return 1;
	}
	int rc = read_pos(state, "backup", &pos, err);

	if (rc == 1)
		lower(c, have, pos.lsn, "pos/backup");
	return rc;
}

static int
plan_raw(const char *state, struct ws_prune_cut *c, struct ws_err *err)
{
	struct ws_pos pos;
	bool have = false;
	int n, rc = bound_by_capture(state, c, &have, err);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		c->lsn = 0;
		snprintf(c->why, sizeof c->why, "nothing was captured yet");
		return 0;
	}
	rc = read_pos(state, "filtered", &pos, err);
	if (rc < 0)
		return -1;
	lower(c, &have, rc ? pos.lsn : 0, "pos/filtered");
	if (statepos_min(state, "floor.", &pos, &n, err) != 0)
		return -1;
	if (n > 0)
		lower(c, &have, pos.lsn, "pos/floor.*");
	return 0;
}

/* 1: a data directory, its REDO lowered into c; 0: none there. */
static int
bound_by_shadow(const char *state, const char *name, uint64_t system_id, struct ws_prune_cut *c,
				bool *have, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/%s", state, name), why[300];
	struct ws_pgcontrol ctl;
	int rc = ws_pgcontrol_read(dir, &ctl, err);

	if (rc == 1 && ctl.system_id != system_id)
		rc = ws_err_op(err, "system_id_changed", "%s belongs to another cluster", dir);
	/* A directory without the file is half made or half removed: do not guess. */
	if (rc == 0 && access(dir, F_OK) == 0)
		rc = ws_err_op(err, "control_malformed", "%s has no global/pg_control", dir);
	if (rc == 1) {
		snprintf(why, sizeof why, "REDO of %.200s", name);
		lower(c, have, ctl.redo.lsn, why);
	}
	free(dir);
	return rc;
}

static int
plan_filtered(const char *state, uint64_t system_id, struct ws_prune_cut *c, struct ws_err *err)
{
	char *keep = ws_asprintf("%s/shadow.keep", state);
	DIR *d = opendir(keep);
	struct dirent *e;
	bool have = false;
	int rc = bound_by_shadow(state, "shadow", system_id, c, &have, err);

	if (rc >= 0 && !d && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot open", keep);
	while (rc >= 0 && d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		char name[300];

		/* NAME.tmp is a copy being made of one that is counted itself. */
		if (e->d_name[0] == '.' || (n > 4 && !strcmp(e->d_name + n - 4, ".tmp")))
			continue;
		snprintf(name, sizeof name, "shadow.keep/%s", e->d_name);
		rc = bound_by_shadow(state, name, system_id, c, &have, err);
	}
	if (d)
		closedir(d);
	free(keep);
	if (rc < 0)
		return -1;
	/* ws-walsend looks for the next boundary from the lowest captured position on. */
	if (have && (rc = bound_by_capture(state, c, &have, err)) == 0)
		have = false;
	if (rc < 0)
		return -1;
	if (!have) {
		c->lsn = 0;
		snprintf(c->why, sizeof c->why, "there is no shadow, or nothing was captured yet");
	}
	return 0;
}

static int
plan_catalog(const char *state, struct ws_prune_cut *c, struct ws_err *err)
{
	struct ws_pos pos;
	int n;

	if (statepos_min(state, "floor.", &pos, &n, err) != 0)
		return -1;
	c->lsn = n ? pos.lsn : 0;
	snprintf(c->why, sizeof c->why, n ? "pos/floor.*" : "there is no floor");
	return 0;
}

static int
plan(const char *state, const struct ws_cluster *cl, struct ws_prune_cut *raw,
	 struct ws_prune_cut *filtered, struct ws_prune_cut *catalog, struct ws_err *err)
{
	if (plan_raw(state, raw, err) != 0 || plan_filtered(state, cl->system_id, filtered, err) != 0)
		return -1;
	return plan_catalog(state, catalog, err);
}

static int
read_cluster(const char *state, struct ws_cluster *cl, struct ws_err *err)
{
	int rc = ws_cluster_read(state, cl, err);

	if (rc == 0)
		return ws_err_usage(err, "%s: no state directory (there is no file `cluster`)", state);
	return rc < 0 ? -1 : 0;
}

int
ws_prune_plan(const char *state, struct ws_prune_cut *raw, struct ws_prune_cut *filtered,
			  struct ws_prune_cut *catalog, struct ws_err *err)
{
	struct ws_cluster cl;

	return read_cluster(state, &cl, err) == 0 ? plan(state, &cl, raw, filtered, catalog, err) : -1;
}

/* ---- removing ---- */

struct segment {
	ws_lsn start;
	char name[WS_SEGNAME_LEN + 1];
};

static int
by_start(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1) : strcmp(x->name, y->name);
}

/* The complete segments of dir that end at or below lsn. */
static int
list_below(const char *dir, uint32_t segsize, ws_lsn lsn, struct segment **out, size_t *n,
		   struct ws_err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	*out = NULL;
	*n = 0;
	if (!d)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", dir);
	while ((e = readdir(d))) {
		ws_tli tli;
		ws_lsn start;

		if (ws_seg_parse(e->d_name, segsize, &tli, &start) != 0 || start + segsize > lsn)
			continue;
		if ((*n & (*n + 1)) == 0) /* 0, 1, 3, 7, ...: double */
			*out = ws_realloc(*out, (*n * 2 + 1) * sizeof **out);
		(*out)[*n].start = start;
		strcpy((*out)[(*n)++].name, e->d_name);
	}
	closedir(d);
	if (*n)
		qsort(*out, *n, sizeof **out, by_start);
	return 0;
}

static int
prune_dir(const char *state, const char *sub, const struct ws_prune_cut *cut,
		  const struct ws_cluster *cl, bool dry, FILE *list, unsigned *count, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/%s", state, sub);
	struct segment *segs;
	size_t n;
	int rc = list_below(dir, cl->segsize, cut->lsn, &segs, &n, err);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		char *path = ws_asprintf("%s/%s", dir, segs[i].name);

		if (!dry && unlink(path) != 0 && errno != ENOENT)
			rc = ws_err_sys(err, "%s: cannot remove", path);
		else if (list)
			fprintf(list, "%s/%s\n", sub, segs[i].name);
		free(path);
		*count += rc == 0;
	}
	if (rc == 0 && n && !dry)
		rc = ws_fsync_path(dir, err);
	ws_debug("%s: cut=" WS_LSN_FMT " by=\"%s\" segments=%zu", sub, WS_LSN_ARG(cut->lsn), cut->why,
			 n);
	free(segs);
	free(dir);
	return rc;
}

/* While ws-catalog runs the history is its own, and it prunes it itself. */
static int
prune_catalog(const char *state, const struct ws_prune_cut *cut, bool *done, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/catalog", state), *data = ws_asprintf("%s/data.mdb", dir);
	struct ws_cathist *h = NULL;
	ws_oid *dbs = NULL;
	size_t n = 0;
	int rc = 0;

	if (access(data, F_OK) != 0)
		goto out;
	h = ws_cathist_open(dir, true, err);
	if (!h) {
		if (err->status != WS_ETEMP)
			rc = -1;
		else
			ws_debug("catalog/: left to its writer: %s", err->msg);
		goto out;
	}
	rc = ws_cathist_databases(h, &dbs, &n, err);
	for (size_t i = 0; rc >= 0 && i < n; i++)
		rc = ws_cathist_prune(h, dbs[i], cut->lsn, err);
	*done = rc >= 0;
out:
	ws_cathist_close(h);
	free(dbs);
	free(data);
	free(dir);
	return rc < 0 ? -1 : 0;
}

int
ws_prune_run(const char *state, bool dry_run, FILE *list, struct ws_prune_result *r,
			 struct ws_err *err)
{
	struct ws_prune_cut raw = {0}, filtered = {0}, catalog = {0};
	struct ws_cluster cl;
	int rc = -1;

	*r = (struct ws_prune_result){0};
	if (read_cluster(state, &cl, err) != 0)
		return -1;
	char *path = ws_asprintf("%s/.prune.lock", state);
	int lock = ws_lock_file(path, err);

	free(path);
	if (lock < 0)
		return -1;
	if (plan(state, &cl, &raw, &filtered, &catalog, err) == 0 &&
		prune_dir(state, "raw", &raw, &cl, dry_run, list, &r->raw_segments, err) == 0 &&
		prune_dir(state, "filtered", &filtered, &cl, dry_run, list, &r->filtered_segments, err) ==
			0)
		rc = dry_run || catalog.lsn == 0 ? 0 : prune_catalog(state, &catalog, &r->catalog, err);
	r->bytes = (uint64_t)(r->raw_segments + r->filtered_segments) * cl.segsize;
	close(lock);
	return rc;
}
