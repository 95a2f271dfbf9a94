/* A filter that went past a fork is taken back, in a state in which it does not run. */
#ifndef WS_FILTERBACK_H
#define WS_FILTERBACK_H

#include "ws/filterdir.h"

/* The way is the newest history of the WAL directory `input`.  What the output directory of o has past the
 * fork of its timeline is set aside; state and position file, when they are past it, go back to the state
 * that the fork's segment begins with, or an older one.  After a kill it may be repeated; when nothing is
 * past a fork nothing is done.
 *
 * Refused before anything moves: WS_EOPERATOR reason=published_past_fork (by state's pos/sent.*; NULL:
 * nothing was sent), timeline_not_descendant, history_missing, filter_state_missing, wal_missing (what lies
 * from there on is gone, here or in input).  A filter that runs is WS_ETEMP. */
int ws_filterback(const struct ws_filterdir_opts *o, const char *input, const char *state, uint32_t segsize,
                  struct ws_err *err);

#endif
