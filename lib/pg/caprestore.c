/* The kept copy that may take the place of a lost shadow; see ws/capture.h. */
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
	const char *reason = limit ? "shadow_transition_failed" : "no_kept_copy";
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
		rc = ws_err_op(err, reason, "%s has no copy that is not past " WS_LSN_FMT, dir, WS_LSN_ARG(limit));
	else if (rc == 0)
		*path = ws_asprintf("%s/%016llX", dir, best);
	free(dir);
	return rc;
}
