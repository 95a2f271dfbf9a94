/* Capturing: following raw/ ahead of all consumers, and reading the shadow at every boundary.
 *
 * Everything is in the state directory (ws-catalog(1)): raw/ is read; pos/received and pos/backup are
 * read; catalog/ and pos/captured.DBOID are written.  The databases followed are those of
 * consumer/NAME/config and those that have a pos/captured file. */
#ifndef WS_CAPTURE_H
#define WS_CAPTURE_H

#include "ws/err.h"

struct ws_capture_opts {
	const char *state;
	const char *shadow; /* connection string without a database; NULL: host=STATE/run port=5433 */
	double timeout;     /* seconds without any progress of the shadow before giving up */
};

/* Runs until the tool is told to stop (0), or -1. */
int ws_capture_run(const struct ws_capture_opts *o, struct ws_err *err);

/* Goes back to a fork: deletes every database's history above `to`, and sets its position there when it
 * is beyond, and floor, ack and read of every consumer.  For a state in which neither a capture nor a
 * consumer is at work.  Refused before anything moves: WS_EOPERATOR reason=published_past_fork (a consumer has
 * published beyond), prepared_xact_present (its ack is beyond, and transactions were prepared there),
 * fork_before_capture; temporary while raw/ does not tell yet what was prepared there. */
int ws_capture_rewind(const char *state, struct ws_pos to, struct ws_err *err);

/* The kept copy of the shadow (STATE/shadow.keep/LSN, 16 hex digits) to restore: the newest that is not past
 * the gate, the first boundary above a captured position, or past `limit` (0: no other limit).  *path is
 * malloc'd.  None: WS_EOPERATOR reason=no_kept_copy, with a limit shadow_transition_failed. */
int ws_capture_restorable(const char *state, ws_lsn limit, char **path, struct ws_err *err);

#endif
