/* Going back: a history that was captured past a fork, a shadow that was lost; see ws/capture.h.
 * Both are for a state in which no capture runs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "ws/log.h"
#include "ws/pos.h"
#include "ws/tool.h"

static int
check_published(struct cap *c, const struct cap_consumer *k, void *arg, struct ws_err *err)
{
	const struct ws_pos *to = arg;
	struct ws_pos sent;
	char name[300];

	snprintf(name, sizeof name, "sent.%s", k->name);
	int rc = cap_pos(c, name, &sent, err);

	if (rc == 1 && sent.lsn > to->lsn)
		return ws_err_op(err, "published_past_fork",
		                 "consumer %s may have published up to " WS_LSN_FMT ", past " WS_LSN_FMT, k->name,
		                 WS_LSN_ARG(sent.lsn), WS_LSN_ARG(to->lsn));
	return rc < 0 ? -1 : 0;
}

/* The history first: after a crash between, the position is still beyond and both are repeated. */
static int
rewind_db(struct cap *c, struct cap_db *db, struct ws_pos to, struct ws_err *err)
{
	struct ws_pos first, last;

	if (!db->has || db->captured.lsn <= to.lsn)
		return 0;
	if (ws_cathist_captured(c->hist, db->oid, &first, &last, err) < 0)
		return -1;
	if (to.lsn < first.lsn)
		return ws_err_op(err, "fork_before_capture",
		                 "database %u was first captured at " WS_LSN_FMT ", after " WS_LSN_FMT, db->oid,
		                 WS_LSN_ARG(first.lsn), WS_LSN_ARG(to.lsn));
	if (ws_cathist_rewind(c->hist, db->oid, to.lsn, err) != 0)
		return -1;
	db->has = false;
	if (cap_move(c, db, to, true, err) != 0)
		return -1;
	ws_info("database %u: back to " WS_LSN_FMT, db->oid, WS_LSN_ARG(to.lsn));
	return 0;
}

int
ws_capture_rewind(const char *state, struct ws_pos to, struct ws_err *err)
{
	const struct ws_capture_opts o = {.state = state};
	struct cap c = {.o = &o};
	char *dir = ws_asprintf("%s/catalog", state);
	int rc = -1;

	if (!(c.hist = ws_cathist_open(dir, true, err)) || cap_each_consumer(&c, check_published, &to, err) != 0 ||
	    cap_scan(&c, err) != 0)
		goto out;
	for (size_t i = 0; i < c.ndbs; i++)
		if (rewind_db(&c, &c.dbs[i], to, err) != 0)
			goto out;
	rc = 0;
out:
	free(dir);
	cap_fini(&c);
	return rc;
}

struct gate {
	struct cap_pos_of *dbs;
	size_t n;
	ws_lsn end; /* 0: no boundary found */
};

struct cap_pos_of {
	ws_oid db;
	struct ws_pos captured;
};

static int
first_boundary(void *arg, const struct ws_boundary_at *b, struct ws_err *err)
{
	struct gate *g = arg;

	(void)err;
	for (size_t i = 0; i < g->n; i++)
		if (b->end.lsn > g->dbs[i].captured.lsn && ws_boundary_for(&b->b, g->dbs[i].db)) {
			g->end = b->end.lsn;
			return 1;
		}
	return 0;
}

static int
read_captured(const char *state, struct gate *g, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos", state);
	DIR *d = opendir(path);
	struct dirent *e;
	int rc = d ? 0 : ws_err_sys(err, "%s: cannot open", path);

	while (d && rc == 0 && (e = readdir(d))) {
		struct cap_pos_of p;
		char junk, *file;

		if (sscanf(e->d_name, "captured.%u%c", &p.db, &junk) != 1)
			continue;
		file = ws_asprintf("%s/%s", path, e->d_name);
		int got = ws_pos_read(file, &p.captured, err);

		free(file);
		if (got < 0)
			rc = -1;
		if (got != 1)
			continue;
		g->dbs = ws_realloc(g->dbs, (g->n + 1) * sizeof *g->dbs);
		g->dbs[g->n++] = p;
	}
	if (d)
		closedir(d);
	free(path);
	return rc;
}

/* Where the gate stands: no shadow may be restored that is past it. */
static int
find_gate(const char *state, ws_lsn *limit, struct ws_err *err)
{
	struct gate g = {0};
	struct ws_pos from = {0};
	char *raw = ws_asprintf("%s/raw", state);
	int rc = read_captured(state, &g, err);

	if (rc == 0 && !g.n)
		rc = ws_err_temp(err, "%s: nothing is captured yet", state);
	for (size_t i = 0; i < g.n; i++)
		if (!from.lsn || g.dbs[i].captured.lsn < from.lsn)
			from = g.dbs[i].captured;
	if (rc == 0 && ws_boundary_scan(raw, from, first_boundary, &g, err) < 0)
		rc = -1;
	if (rc == 0 && g.end && (!*limit || g.end < *limit))
		*limit = g.end;
	free(g.dbs);
	free(raw);
	return rc;
}

int
ws_capture_restorable(const char *state, ws_lsn limit, char **path, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/shadow.keep", state);
	unsigned long long best = 0;
	bool any = false;
	struct dirent *e;

	*path = NULL;
	int rc = find_gate(state, &limit, err);
	DIR *d = rc == 0 ? opendir(dir) : NULL;

	if (rc == 0 && !d && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot open", dir);
	while (d && (e = readdir(d))) {
		char *end;
		unsigned long long lsn = strtoull(e->d_name, &end, 16);

		if (strspn(e->d_name, "0123456789ABCDEF") != 16 || e->d_name[16] || (limit && lsn > limit))
			continue;
		if (!any || lsn > best)
			best = lsn;
		any = true;
	}
	if (d)
		closedir(d);
	if (rc == 0 && !any)
		rc = ws_err_op(err, "no_kept_copy", "%s has no copy that is not past " WS_LSN_FMT, dir, WS_LSN_ARG(limit));
	else if (rc == 0)
		*path = ws_asprintf("%s/%016llX", dir, best);
	free(dir);
	return rc;
}
