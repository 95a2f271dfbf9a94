/* The kept copy that may take the place of a lost shadow; see ws/capture.h. */
#include <stdlib.h>

#include "capture.h"
#include "gatepos.h"
#include "ws/gate.h"
#include "ws/mem.h"
#include "ws/undo.h"

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
	ws_lsn best;

	*path = NULL;
	int rc = find_gate(state, &limit, err);

	if (rc == 0)
		rc = ws_undo_copies(state, limit, NULL, &best, err);
	if (rc == 0)
		return ws_err_op(err, reason, "%s/shadow.keep has no copy that is not past " WS_LSN_FMT, state,
		                 WS_LSN_ARG(limit));
	if (rc == 1)
		*path = ws_asprintf("%s/shadow.keep/%016llX", state, (unsigned long long)best);
	return rc < 0 ? -1 : 0;
}
