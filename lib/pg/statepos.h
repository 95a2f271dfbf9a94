/* Families of position files of a state directory: pos/floor.*, pos/read.*, pos/captured.*. */
#ifndef WS_PG_STATEPOS_H
#define WS_PG_STATEPOS_H

#include "ws/pos.h"

/* The lowest position among STATE/pos/PREFIX*.  *count says how many there are; 0 leaves *min
 * alone.  A file that cannot be read is an error. */
int statepos_min(const char *state, const char *prefix, struct ws_pos *min, int *count,
				 struct ws_err *err);

#endif
