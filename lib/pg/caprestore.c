/* Going back: a history that was captured past a fork, a shadow that was lost; see ws/capture.h.
 * Both are for a state in which no capture runs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "gatepos.h"
#include "ws/gate.h"
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

/* Where the gate stands: no shadow may be restored that is past it. */
static int
find_gate(const char *state, ws_lsn *limit, struct ws_err *err)
{
	struct followed *dbs;
	ws_lsn gate = 0;
	size_t n;
	int rc = gatepos_read(state, &dbs, &n, err);

	free(dbs);
	if (rc == 0 && !n)
		rc = ws_err_temp(err, "%s: nothing is captured yet", state);
	if (rc == 0)
		rc = ws_gate_ask(state, *limit ? *limit : UINT64_MAX, &gate, err);
	if (rc == 0 && (!*limit || gate < *limit))
		*limit = gate;
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
