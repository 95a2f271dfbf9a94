/* The WAL server: the server side of PostgreSQL's physical replication protocol over a WAL
 * directory, on a Unix socket, for this user only, behind the gate (ws/gate.h). */
#ifndef WS_WALSEND_H
#define WS_WALSEND_H

#include "ws/err.h"

struct ws_walsend_opts {
	const char *state;     /* state directory; NULL: no gate, and the identity is taken from the WAL */
	const char *dir;       /* WAL directory to serve */
	const char *socketdir; /* gets .s.PGSQL.PORT */
	int port;
	bool no_gate;     /* with a state: serve everything all the same */
	double keepalive; /* seconds between keepalives while nothing is sent */
};

/* Runs until a signal or an error.  Returns an exit status, *err filled when not 0. */
int ws_walsend_run(const struct ws_walsend_opts *o, struct ws_err *err);

#endif
