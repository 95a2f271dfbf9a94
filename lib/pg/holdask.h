/* What standbys have flushed, as the server that is streamed from says; for recvhold.c. */
#ifndef WS_PG_HOLDASK_H
#define WS_PG_HOLDASK_H

#include "ws/hold.h"
#include "ws/pgconn.h"

/* The session that is asked about. */
struct hold_session {
	unsigned id; /* 0: none; each has another */
	int pid;     /* of its walsender */
	uint64_t system_id;
	char *conninfo; /* of an ordinary connection to the same address */
	const char *password;
};

struct hold_answer {
	struct ws_pos pos; /* lsn 0: nothing to go by */
	unsigned present;
	char why[sizeof((struct ws_err *)0)->msg]; /* then why */
};

/* Asks over *c, which is opened when it is NULL, and closed and NULL after an error. */
int hold_ask(struct ws_pg **c, const struct ws_hold *set, const struct hold_session *s, struct hold_answer *a,
			 struct ws_err *err);

#endif
