/* Families of position files of a state directory: pos/floor.*, pos/read.*, pos/captured.*. */
#ifndef WS_STATEPOS_H
#define WS_STATEPOS_H

#include "ws/pos.h"

/* Every position among STATE/pos/PREFIX*; each returns 0 to go on.  A file that cannot be read is an
 * error. */
int ws_statepos_each(const char *state, const char *prefix,
					 int (*each)(void *arg, const char *name, struct ws_pos pos, struct ws_err *err),
					 void *arg, struct ws_err *err);
/* The same, but one that is empty, as a power failure leaves it, is passed over. */
int ws_statepos_known(const char *state, const char *prefix,
					  int (*each)(void *arg, const char *name, struct ws_pos pos, struct ws_err *err),
					  void *arg, struct ws_err *err);
/* The lowest of them.  *count says how many there are; 0 leaves *min alone. */
int ws_statepos_min(const char *state, const char *prefix, struct ws_pos *min, int *count,
					struct ws_err *err);

#endif
