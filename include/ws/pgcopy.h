/* Reading a table's rows under an exported snapshot: a temporary logical slot that gives the
 * snapshot and its consistent point, and COPY TO STDOUT without blocking. */
#ifndef WS_PGCOPY_H
#define WS_PGCOPY_H

#include "ws/pgconn.h"

struct ws_pg_snapshot {
	ws_lsn lsn;    /* the snapshot holds exactly the transactions whose commit ends at or below */
	char name[64]; /* for SET TRANSACTION SNAPSHOT */
};

/* Takes all timeouts away that could end a session which waits or idles inside a transaction. */
int ws_pg_no_timeouts(struct ws_pg *c, struct ws_err *err);
int ws_pg_backend_pid(const struct ws_pg *c);

/* Starts to make a temporary logical slot (plugin pgoutput) on c, a connection of mode
 * WS_PG_DATABASE.  The server answers once all transactions that are open now have ended. */
int ws_pg_snapshot_start(struct ws_pg *c, const char *slot, struct ws_err *err);
/* 1: *s is there and stays good until the next command on c; 0: not within timeout_ms; -1 error. */
int ws_pg_snapshot_wait(struct ws_pg *c, int timeout_ms, struct ws_pg_snapshot *s, struct ws_err *err);

/* The progress of commands on a connection. */
struct ws_pg_copy {
	struct ws_pg *c;
	bool rows;      /* inside COPY */
	char *row;      /* given out */
};

enum ws_pg_copy_event { WS_PG_COPY_WAIT, WS_PG_COPY_ROW, WS_PG_COPY_DONE };

/* Sends SQL (also several commands, one of which may be COPY ... TO STDOUT). */
int ws_pg_copy_send(struct ws_pg_copy *s, struct ws_pg *c, const char *sql, struct ws_err *err);
/* Never waits.  ROW: *row, n bytes, may be changed, lives until the next call.  WAIT: poll the
 * socket first.  DONE: all commands are through.  -1: one failed (see ws_pg_sqlstate); the
 * connection is good for nothing but closing. */
int ws_pg_copy_next(struct ws_pg_copy *s, char **row, size_t *n, struct ws_err *err);
void ws_pg_copy_fini(struct ws_pg_copy *s);

/* Pages and rows of relations as pg_class has them (0 when unknown): each is called for those found. */
int ws_pg_table_sizes(struct ws_pg *c, const ws_oid *oids, size_t n,
                      void (*each)(void *arg, ws_oid oid, double pages, double rows), void *arg, struct ws_err *err);
/* What sessions a snapshot export is waiting for, as "PID (application), ..." into out; "" none. */
int ws_pg_blockers(struct ws_pg *c, int pid, char *out, size_t n, struct ws_err *err);
/* The database's oid and encoding (encoding: 32 bytes). */
int ws_pg_database(struct ws_pg *c, ws_oid *db, char *encoding, struct ws_err *err);

/* Appends an SQL identifier in quotes; a string literal. */
void ws_pg_quote_name(struct ws_buf *out, const char *name);
void ws_pg_quote_text(struct ws_buf *out, const char *text);

#endif
