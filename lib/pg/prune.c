/* Pruning; see ws/prune.h.  The whole plan is made before the first file goes, oldest segments go
 * first, and a segment goes only when all of it lies below the cut. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/filterstates.h"
#include "ws/histdir.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/pgcontrol.h"
#include "ws/pos.h"
#include "ws/prune.h"
#include "ws/shape.h"
#include "ws/statepos.h"
#include "ws/undo.h"
#include "ws/waldir.h"

/* What bounds a removal, and how far it may go.  lsn 0: nothing may go yet. */
struct prune_cut {
	ws_lsn lsn;
	char why[300]; /* the position that decides, as text: "pos/floor.*", "REDO of shadow" */
};

/* What a plan looks at. */
struct planner {
	const char *state;
	const struct ws_cluster *cl;
	struct ws_history h; /* of the newest timeline in raw/ */
	bool known;          /* there is one */
};

/* A cut that is being made: the lowest of all that bound it. */
struct cutting {
	const struct planner *p;
	struct prune_cut *cut;
	const char *why;
	unsigned n; /* bounds */
};

static void
lower(struct cutting *c, ws_lsn lsn, const char *why)
{
	if (c->n++ && c->cut->lsn <= lsn)
		return;
	c->cut->lsn = lsn;
	snprintf(c->cut->why, sizeof c->cut->why, "%s", why);
}

/* A position on a branch that was left says nothing about what lies past the fork. */
static void
lower_to(struct cutting *c, struct ws_pos pos, const char *why)
{
	ws_lsn end = c->p->known ? ws_history_end(&c->p->h, pos.tli) : UINT64_MAX;

	lower(c, pos.lsn < end ? pos.lsn : end, why);
}

static int
lower_each(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	struct cutting *c = arg;

	(void)name;
	(void)err;
	lower_to(c, pos, c->why);
	return 0;
}

/* By all of STATE/pos/PREFIX*.  How many there are, or -1. */
static int
lower_family(struct cutting *c, const char *prefix, const char *why, struct ws_err *err)
{
	unsigned before = c->n;

	c->why = why;
	if (ws_statepos_each(c->p->state, prefix, lower_each, c, err) != 0)
		return -1;
	return (int)(c->n - before);
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
bound_by_capture(struct cutting *c, struct ws_err *err)
{
	struct ws_pos pos;
	int rc = lower_family(c, "captured.", "pos/captured.*", err);

	if (rc != 0)
		return rc < 0 ? -1 : 1;
	rc = read_pos(c->p->state, "backup", &pos, err);
	if (rc == 1)
		lower_to(c, pos, "pos/backup");
	return rc;
}

/* A fork above the cut takes the filter back to the state of a segment, whose knowledge ends before it. */
static int
bound_by_states(struct cutting *c, struct ws_err *err)
{
	uint32_t segsize = c->p->cl->segsize;
	char *dir = ws_asprintf("%s/filtered", c->p->state);
	struct ws_buf b = {0};
	struct ws_pos pos;
	int rc = ws_filterstates_find(dir, segsize, c->p->known ? &c->p->h : NULL,
								   ws_seg_start(c->cut->lsn, segsize), &b, &pos, err);

	if (rc == 1)
		lower(c, pos.lsn, "filtered/states/");
	ws_buf_free(&b);
	free(dir);
	return rc < 0 ? -1 : 0;
}

/* A promotion may take back what only went along, and all is read again from its fork on. */
static int
bound_by_undo(struct cutting *c, struct ws_err *err)
{
	ws_lsn lsn;
	int rc = ws_undo_lowest(c->p->state, &lsn, err);

	if (rc == 1)
		lower(c, lsn, "pos/sent.*, shadow.keep/");
	return rc < 0 ? -1 : 0;
}

static int
plan_raw(const struct planner *p, struct prune_cut *cut, struct ws_err *err)
{
	struct cutting c = {.p = p, .cut = cut};
	struct ws_pos pos;
	int rc = bound_by_capture(&c, err);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		cut->lsn = 0;
		snprintf(cut->why, sizeof cut->why, "nothing was captured yet");
		return 0;
	}
	rc = read_pos(p->state, "filtered", &pos, err);
	if (rc == 1)
		lower_to(&c, pos, "pos/filtered");
	else if (rc == 0)
		lower(&c, 0, "pos/filtered");
	if (rc < 0 || lower_family(&c, "floor.", "pos/floor.*", err) < 0 || bound_by_undo(&c, err) != 0)
		return -1;
	return bound_by_states(&c, err);
}

/* 1: a data directory, its REDO lowered into c; 0: none there. */
static int
bound_by_shadow(struct cutting *c, const char *name, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/%s", c->p->state, name), why[300];
	struct ws_pgcontrol ctl;
	int rc = ws_pgcontrol_read(dir, &ctl, err);

	if (rc == 1 && ctl.system_id != c->p->cl->system_id)
		rc = ws_err_op(err, "system_id_changed", "%s belongs to another cluster", dir);
	/* A directory without the file is half made or half removed: do not guess. */
	if (rc == 0 && access(dir, F_OK) == 0)
		rc = ws_err_op(err, "control_malformed", "%s has no global/pg_control", dir);
	if (rc == 1) {
		snprintf(why, sizeof why, "REDO of %.200s", name);
		lower_to(c, ctl.redo, why);
	}
	free(dir);
	return rc;
}

static int
plan_filtered(const struct planner *p, struct prune_cut *cut, struct ws_err *err)
{
	struct cutting c = {.p = p, .cut = cut};
	char *keep = ws_asprintf("%s/shadow.keep", p->state);
	DIR *d = opendir(keep);
	struct dirent *e;
	int rc = bound_by_shadow(&c, "shadow", err);

	if (rc >= 0 && !d && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot open", keep);
	while (rc >= 0 && d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		char name[300];

		/* NAME.tmp is a copy being made of one that is counted itself. */
		if (e->d_name[0] == '.' || (n > 4 && !strcmp(e->d_name + n - 4, ".tmp")))
			continue;
		snprintf(name, sizeof name, "shadow.keep/%s", e->d_name);
		rc = bound_by_shadow(&c, name, err);
	}
	if (d)
		closedir(d);
	free(keep);
	/* ws-walsend looks for the next boundary from the lowest captured position on. */
	if (rc >= 0 && c.n && (rc = bound_by_capture(&c, err)) == 1)
		return bound_by_states(&c, err);
	if (rc < 0)
		return -1;
	cut->lsn = 0;
	snprintf(cut->why, sizeof cut->why, "there is no shadow, or nothing was captured yet");
	return 0;
}

static int
plan_catalog(const struct planner *p, struct prune_cut *cut, struct ws_err *err)
{
	struct cutting c = {.p = p, .cut = cut};

	cut->lsn = 0;
	snprintf(cut->why, sizeof cut->why, "there is no floor");
	int n = lower_family(&c, "floor.", "pos/floor.*", err);

	return n > 0 ? bound_by_undo(&c, err) : n;
}

/* The way that positions are to be on; without WAL in raw/ there is none, which is no error. */
static int
find_way(struct planner *p, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/raw", p->state);
	uint32_t segsize;
	int rc = 0;

	if (access(dir, F_OK) == 0) {
		p->known = ws_histdir_load(dir, 0, &p->h, err) == 0;
		if (!p->known) {
			struct ws_err why = *err;

			if (strcmp(why.reason, "history_missing") || ws_histdir_segsize(dir, &segsize, err) != 0) {
				*err = why;
				rc = -1;
			}
		}
	}
	free(dir);
	return rc;
}

static int
plan(const char *state, const struct ws_cluster *cl, struct prune_cut *raw, struct prune_cut *filtered,
	 struct prune_cut *catalog, struct ws_err *err)
{
	struct planner p = {.state = state, .cl = cl};
	int rc = find_way(&p, err);

	if (rc == 0 && (plan_raw(&p, raw, err) != 0 || plan_filtered(&p, filtered, err) != 0 ||
					plan_catalog(&p, catalog, err) != 0))
		rc = -1;
	ws_history_fini(&p.h);
	return rc;
}

static int
read_cluster(const char *state, struct ws_cluster *cl, struct ws_err *err)
{
	int rc = ws_cluster_read(state, cl, err);

	if (rc == 0)
		return ws_err_usage(err, "%s: no state directory (there is no file `cluster`)", state);
	return rc < 0 ? -1 : 0;
}

/* ---- removing ---- */

struct segment {
	ws_lsn start;
	char name[WS_WALNAME_MAX];
};

static int
by_start(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1) : strcmp(x->name, y->name);
}

/* The segments of dir that end at or below lsn: complete ones, those that a timeline ended in, and those that
 * were set aside. */
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

		if (!ws_waldir_segment(e->d_name, segsize, &tli, &start) || start + segsize > lsn)
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
prune_dir(const char *state, const char *sub, const struct prune_cut *cut,
		  const struct ws_cluster *cl, bool dry, FILE *list, unsigned *count, uint64_t *bytes,
		  struct ws_err *err)
{
	char *dir = ws_asprintf("%s/%s", state, sub);
	struct segment *segs;
	size_t n;
	int rc = list_below(dir, cl->segsize, cut->lsn, &segs, &n, err);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		char *path = ws_asprintf("%s/%s", dir, segs[i].name);
		struct stat st = {0};

		if ((stat(path, &st) != 0 || (!dry && unlink(path) != 0)) && errno != ENOENT)
			rc = ws_err_sys(err, "%s: cannot remove", path);
		else if (list)
			fprintf(list, "%s/%s\n", sub, segs[i].name);
		free(path);
		if (rc == 0) {
			*count += 1;
			*bytes += (uint64_t)st.st_size;
		}
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
prune_catalog(const char *state, const struct prune_cut *cut, bool *done, struct ws_err *err)
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
	struct prune_cut raw = {0}, filtered = {0}, catalog = {0};
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
		prune_dir(state, "raw", &raw, &cl, dry_run, list, &r->raw_segments, &r->bytes, err) == 0 &&
		prune_dir(state, "filtered", &filtered, &cl, dry_run, list, &r->filtered_segments, &r->bytes,
				  err) == 0)
		rc = dry_run || catalog.lsn == 0 ? 0 : prune_catalog(state, &catalog, &r->catalog, err);
	close(lock);
	return rc;
}
