/* The gate: how far a WAL directory may be served to the shadow.
 *
 * With pos/captured.DB files: up to and including the first catalog boundary of one of these
 * databases above its position.  Without one: up to pos/backup.  Without a state directory: all.
 * The limit is always a record's end or a page boundary (a walreceiver that is given a part of a
 * page's record reads stale bytes behind it and starts again). */
#ifndef WS_GATE_H
#define WS_GATE_H

#include "ws/cluster.h"
#include "ws/err.h"
#include "ws/history.h"

struct ws_gate;

/* state NULL: nothing is held back. */
struct ws_gate *ws_gate_open(const char *dir, const char *state, const struct ws_cluster *c, ws_tli tli,
                             struct ws_err *err);
void ws_gate_close(struct ws_gate *g);

/* Reads the positions again; call it when one of pos/captured.* or pos/backup changed. */
int ws_gate_reload(struct ws_gate *g, struct ws_err *err);

/* Reads ahead through the WAL, some at a time.  1: call again, there is more; 0: nothing more for
 * now; -1: error. */
int ws_gate_scan(struct ws_gate *g, struct ws_err *err);

/* WAL may be served up to here. */
ws_lsn ws_gate_limit(const struct ws_gate *g);
/* The timeline that is served, the descendant's as soon as all below the fork may be. */
ws_tli ws_gate_tli(const struct ws_gate *g);
/* Where timeline tli of the way ends, and the one that follows; UINT64_MAX for the one that is served; 0:
 * it is not on the way. */
ws_lsn ws_gate_end_of(const struct ws_gate *g, ws_tli tli, ws_tli *next);
/* The timeline in the name of the segment that holds lsn. */
ws_tli ws_gate_name_of(const struct ws_gate *g, ws_lsn lsn);
/* The boundary that holds, or pos/backup; 0 when only the end of the WAL does. */
ws_lsn ws_gate_held(const struct ws_gate *g);

/* Where the gate of a state directory stands, for somebody who asks once.  WAL below *limit may be
 * served: it is the end of the boundary that holds, or how far raw/ was looked through, which is no
 * further than to need. */
int ws_gate_ask(const char *state, ws_lsn need, ws_lsn *limit, struct ws_err *err);

/* May the shadow have it, from an archive?  The segment of tli that starts there: when all of it is
 * below the gate; a history: when its last switch is.  Only of the branch that raw/ follows.  1, 0 not
 * (yet), -1; *limit: where the gate stands, 0 when the branch is another one or unknown. */
int ws_gate_segment(const char *state, uint32_t segsize, ws_tli tli, ws_lsn start, ws_lsn *limit,
                    struct ws_err *err);
int ws_gate_history(const char *state, const struct ws_history *of, ws_lsn *limit, struct ws_err *err);

#endif
