/* The WAL receiver: streams a server's WAL into a WAL directory (or, framed, to stdout), keeps
 * pos/received, answers the server, reconnects.  One thread talks to the server, another writes,
 * so that a slow disk or a blocked pipe never leaves a keepalive unanswered. */
#ifndef WS_RECEIVE_H
#define WS_RECEIVE_H

#include "ws/hold.h"
#include "ws/pgconn.h"

struct ws_receive_opts {
	struct ws_pg_opts conn;
	const char *slot;       /* NULL: none */
	const char *state;      /* state directory, or NULL */
	const char *dir;        /* WAL directory; NULL: framed stream to stdout */
	const struct ws_hold *hold; /* standbys whose position is kept in pos/; NULL: none */
	bool confirm_floor;     /* confirm min(received, all floors) instead of received */
	bool synchronous;       /* fsync and answer after every write */
	bool no_sync, no_loop;
	ws_lsn startpos, endpos; /* 0: none; startpos only with the framed stream */
	uint64_t raw_limit;      /* bytes that no consumer has read yet; 0: none */
	const char *restore_command; /* PostgreSQL's; NULL: none.  Needs dir */
	double status_interval;  /* seconds, 0: only when asked */
	double sync_interval;    /* seconds */
};

/* -1: WS_EUSAGE, this is no restore command. */
int ws_receive_restore_command_check(const char *command, struct ws_err *err);

/* Runs until endpos, a signal or an error.  Returns an exit status, *err filled when not 0. */
int ws_receive_run(const struct ws_receive_opts *o, struct ws_err *err);

#endif
