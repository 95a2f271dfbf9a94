/* Hold-back: of a primary's WAL only what standbys that are named have flushed is published.
 *
 * STATE/pos/hold.LABEL is written by ws-receive: on that timeline everything that ends at or below the
 * position was received here, and is durable on the standbys of the set.  It is never above
 * pos/received.  The set is in the file's name, so that a position can not be taken for another set's. */
#ifndef WS_HOLD_H
#define WS_HOLD_H

#include "ws/err.h"
#include "ws/history.h"

#define WS_HOLD_NAMES_MAX 16

struct ws_hold {
	unsigned need; /* so many of them must have it */
	unsigned n;
	char *names[WS_HOLD_NAMES_MAX]; /* application_name, in lower case, as PostgreSQL compares it */
	char *label; /* `a', `a,b' for all of them, `1:a,b' for any one */
};

/* NAME[,NAME...]: all of them; ANY n (NAME, ...): n of them.  Else WS_EUSAGE, beginning with option. */
int ws_hold_parse(const char *option, const char *text, struct ws_hold *h, struct ws_err *err);
void ws_hold_fini(struct ws_hold *h);
/* STATE/pos/hold.LABEL; the caller frees. */
char *ws_hold_path(const char *state, const struct ws_hold *h);

/* A standby's row in pg_stat_replication; 0: not told. */
struct ws_hold_row {
	const char *name;
	ws_lsn flush, sent;
};
/* What `need' of the set have of what this server sent them; 0 when fewer are there: *present says how
 * many are.  Of rows with one name the lowest counts.  A standby that is ahead on a branch that was left
 * may report more than it was sent. */
ws_lsn ws_hold_flushed(const struct ws_hold *h, const struct ws_hold_row *rows, size_t n,
                       unsigned *present);

/* How far timeline tli is covered by pos; newer is the history of the newer timeline of the two, not used
 * when they are the same.  0: not at all. */
ws_lsn ws_hold_limit(struct ws_pos pos, ws_tli tli, const struct ws_history *newer);

#endif
