/* What the files of lib/pg share about a connection. */
#ifndef WS_PG_CONN_H
#define WS_PG_CONN_H

#include <libpq-fe.h>

#include "ws/pgconn.h"

struct ws_pg {
	PGconn *conn;
	char sqlstate[6];
	int answer_ms;
	ws_tli tli; /* that was asked for by START_REPLICATION */
	bool unsent;
};

/* Appends KEY='VALUE' to a connection string. */
void pg_put_parameter(struct ws_buf *b, const char *key, const char *value);
/* Waits until the socket is readable (or writable too, with out), at most timeout_ms (< 0: without
 * limit).  1: ready, 0: timeout, -1: told to stop. */
int pg_wait(struct ws_pg *c, bool out, int timeout_ms, struct ws_err *err);
/* The next result as PQgetResult, but the wait can be interrupted: -1 then. */
int pg_result(struct ws_pg *c, PGresult **res, int timeout_ms, struct ws_err *err);
/* Remembers res's SQLSTATE and fills err (temporary; class 28 and 42501 usage). */
int pg_error(struct ws_pg *c, const PGresult *res, const char *what, struct ws_err *err);

#endif
