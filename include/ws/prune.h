/* Pruning of a state directory: WAL and shapes that nothing can need again. */
#ifndef WS_PRUNE_H
#define WS_PRUNE_H

#include <stdio.h>
#include "ws/err.h"

struct ws_prune_result {
	unsigned raw_segments, filtered_segments;
	uint64_t bytes;
	bool catalog; /* the history was pruned */
};

/* Plans and removes.
 *
 * raw/: min(all floors, captured of all databases, filtered), before the first capture the backup's
 * end.  filtered/: min(REDO of shadow/ and of every kept copy, captured).  catalog/: min(floors).  From raw/
 * and catalog/ goes nothing that a promotion may take us back to (ws/undo.h).
 * A position past the end of its timeline, by raw/'s newest history, counts as that end.  From raw/ and
 * filtered/ goes nothing that the filter needs to begin the cut's segment again (filtered/states/).
 * Anything that is there and cannot be read is an error: then nothing is removed.
 *
 * With dry_run nothing is removed; list (may be NULL) gets a line for each file. */
int ws_prune_run(const char *state, bool dry_run, FILE *list, struct ws_prune_result *r, struct ws_err *err);

#endif
