/* The follower of standbys, for hold-back (ws/hold.h): a thread of the receiver that asks the server which
 * is streamed what the named standbys have flushed, and writes pos/hold.LABEL.
 *
 * It asks over an ordinary connection to the same address, and only while WAL is received that the position
 * does not cover.  That both connections are one server's is proved: the walsender that streams is among its
 * processes.  A server that is not a primary moves nothing. */
#ifndef WS_PG_RECVHOLD_H
#define WS_PG_RECVHOLD_H

#include "ws/hold.h"
#include "ws/pgconn.h"

struct recvhold;

/* Takes the position that is there, removes those of other sets, starts.  set NULL: only removes; NULL is
 * given, which everything below takes. */
int recvhold_start(const char *state, const struct ws_hold *set, const struct ws_pg_opts *conn,
				   struct recvhold **out, struct ws_err *err);
void recvhold_stop(struct recvhold *h);

/* c streams from the server s from now on; NULL, NULL: nothing does. */
void recvhold_session(struct recvhold *h, struct ws_pg *c, const struct ws_pg_source *s);
/* What this session made durable, or found to be what the server has; 0: nothing yet. */
void recvhold_received(struct recvhold *h, ws_lsn lsn);
/* Timeline tli has ended at lsn: nothing above counts. */
int recvhold_cut(struct recvhold *h, ws_tli tli, ws_lsn lsn, struct ws_err *err);
/* Metrics, and what is waited for once a minute. */
void recvhold_look(struct recvhold *h);

#endif
