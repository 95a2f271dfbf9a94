/* The positions that the gate of a state directory is made of. */
#ifndef WS_PG_GATEPOS_H
#define WS_PG_GATEPOS_H

#include "ws/boundary.h"

struct followed {
	ws_oid db;
	struct ws_pos captured;
};

/* STATE/pos/captured.DBOID files; 0 or -1, and *dbs is the caller's.  One that is empty hides a
 * position: none counts until ws-catalog has written it anew. */
int gatepos_read(const char *state, struct followed **dbs, size_t *n, struct ws_err *err);
/* The lowest of them; lsn UINT64_MAX when there is none. */
struct ws_pos gatepos_min(const struct followed *dbs, size_t n);
/* Does one of them wait for this boundary, which ends there? */
bool gatepos_holds(const struct followed *dbs, size_t n, const struct ws_boundary *b, ws_lsn end);

#endif
