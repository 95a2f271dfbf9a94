/* The positions of the gate, and where it stands for somebody who asks once; see ws/gate.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gatepos.h"
#include "ws/gate.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/pos.h"

int
gatepos_read(const char *state, struct followed **dbs, size_t *n, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/pos", state);
	DIR *d = opendir(dir);
	struct dirent *e;
	bool hidden = false;
	int rc = 0;

	*dbs = NULL;
	*n = 0;
	if (!d && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot open", dir);
	while (rc == 0 && d && (e = readdir(d))) {
		char *end;
		struct ws_pos pos;

		if (strncmp(e->d_name, "captured.", 9) || e->d_name[9] < '0' || e->d_name[9] > '9')
			continue;
		unsigned long db = strtoul(e->d_name + 9, &end, 10);

		if (*end || db == 0 || db > UINT32_MAX)
			continue;
		char *path = ws_asprintf("%s/%s", dir, e->d_name);

		rc = ws_pos_read(path, &pos, err);
		free(path);
		if (rc == 1) {
			*dbs = ws_realloc(*dbs, (*n + 1) * sizeof **dbs);
			(*dbs)[(*n)++] = (struct followed){(ws_oid)db, pos};
			rc = 0;
		} else if (rc < 0 && err->status == WS_ETEMP && !err->sys) {
			ws_warn("%s", err->msg);
			hidden = true;
			rc = 0;
		}
	}
	if (hidden)
		*n = 0;
	if (d)
		closedir(d);
	free(dir);
	return rc;
}

struct ws_pos
gatepos_min(const struct followed *dbs, size_t n)
{
	struct ws_pos low = {0, UINT64_MAX};

	for (size_t i = 0; i < n; i++)
		if (dbs[i].captured.lsn < low.lsn)
			low = dbs[i].captured;
	return low;
}

bool
gatepos_holds(const struct followed *dbs, size_t n, const struct ws_boundary *b, ws_lsn end)
{
	for (size_t i = 0; i < n; i++)
		if (ws_boundary_for(b, dbs[i].db) && dbs[i].captured.lsn < end)
			return true;
	return false;
}

struct looking {
	const struct followed *dbs;
	size_t n;
	ws_lsn held; /* 0: not found */
};

static int
first_that_holds(void *arg, const struct ws_boundary_at *b, struct ws_err *err)
{
	struct looking *l = arg;

	(void)err;
	if (!gatepos_holds(l->dbs, l->n, &b->b, b->end.lsn))
		return 0;
	l->held = b->end.lsn;
	return 1;
}

/* Along the histories of raw/.  A position may lie inside a record: so from the segment before on,
 * when that is still there. */
static int
look(const char *state, const struct followed *dbs, size_t n, ws_lsn need, ws_lsn *limit,
	 struct ws_err *err)
{
	struct looking l = {dbs, n, 0};
	struct ws_cluster c;
	ws_lsn reached = 0;
	int rc = ws_cluster_read(state, &c, err);

	if (rc != 1)
		return rc < 0 ? -1 : ws_err_usage(err, "%s: no state directory", state);
	struct ws_pos from = {0, ws_seg_start(*limit, c.segsize)};
	char *raw = ws_asprintf("%s/raw", state);

	from.lsn -= from.lsn > c.segsize ? c.segsize : 0;
	rc = ws_boundary_scan_to(raw, from, need, &reached, first_that_holds, &l, err);
	if (rc < 0 && !strcmp(err->reason, "wal_missing")) {
		from.lsn = ws_seg_start(*limit, c.segsize);
		rc = ws_boundary_scan_to(raw, from, need, &reached, first_that_holds, &l, err);
	}
	free(raw);
	if (rc < 0)
		return -1;
	if (reached > *limit)
		*limit = reached;
	if (l.held)
		*limit = l.held;
	return 0;
}

int
ws_gate_ask(const char *state, ws_lsn need, ws_lsn *limit, struct ws_err *err)
{
	struct followed *dbs;
	struct ws_pos backup;
	size_t n;
	int rc = gatepos_read(state, &dbs, &n, err);

	*limit = 0;
	if (rc == 0 && n > 0) {
		*limit = gatepos_min(dbs, n).lsn;
		if (*limit < need)
			rc = look(state, dbs, n, need, limit, err);
	} else if (rc == 0) {
		char *path = ws_asprintf("%s/pos/backup", state);

		if ((rc = ws_pos_read(path, &backup, err)) == 1)
			*limit = backup.lsn;
		free(path);
	}
	free(dbs);
	return rc < 0 ? -1 : 0;
}
