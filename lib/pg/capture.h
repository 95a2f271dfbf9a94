/* Private to lib/pg/cap*.c: the state of a capture. */
#ifndef WS_PG_CAPTURE_H
#define WS_PG_CAPTURE_H

#include "catq.h"
#include "ws/capture.h"
#include "ws/cluster.h"

struct cap_db {
	ws_oid oid;
	char *name;        /* as last known; "" when only the oid is known yet */
	bool has;          /* captured is known: the first capture is done */
	bool dropped;      /* on the source; its history is complete */
	struct ws_pos captured;
	struct ws_pg *conn;
	double *m_captured;
};

struct cap {
	const struct ws_capture_opts *o;
	char *shadow; /* connection string without a database */
	struct ws_cathist *hist;
	struct cap_db *dbs;
	size_t ndbs;
	bool first; /* nothing is captured yet: a shadow that refuses connections need not be waited for long */
	double *m_boundaries, *m_temporary, *m_captures, *m_wait, *m_capture, *m_replay, *m_lag_bytes, *m_lag_seconds, *m_retries;
};

void cap_metrics(struct cap *c);

/* ---- capdb.c: databases and their positions ---- */
/* Brings dbs up to date with the state directory; new ones may lack `has`. */
int cap_scan(struct cap *c, struct ws_err *err);
/* Writes captured when it is beyond; sync as for ws_pos_write. */
int cap_move(struct cap *c, struct cap_db *db, struct ws_pos to, bool sync, struct ws_err *err);
int cap_pos(struct cap *c, const char *name, struct ws_pos *pos, struct ws_err *err);
/* Lowest floor of the consumers of db; 0 when one of them has none yet. */
int cap_floor(struct cap *c, ws_oid db, ws_lsn *floor, struct ws_err *err);
void cap_fini(struct cap *c);

/* ---- capshadow.c ---- */
/* 0: db->conn is open and replay stands exactly at `at` (or the database is dropped by then). */
int cap_wait_parked(struct cap *c, struct cap_db *db, ws_lsn at, struct ws_err *err);
/* Sleeps unless a signal comes. */
void cap_sleep_us(unsigned us);
void cap_disconnect(struct cap_db *db);
/* After a failure: is the open connection idle and whole? */
bool cap_usable(const struct cap_db *db);

/* ---- capfirst.c ---- */
/* Everything of one database at `at`, where the shadow stands. */
int cap_first(struct cap *c, struct cap_db *db, struct ws_pos at, struct ws_err *err);
/* Of all databases, none of which was captured before.  A shadow that lets nobody in at *at moves *at and
 * the gate on. */
int cap_first_all(struct cap *c, struct ws_pos *at, struct ws_err *err);

/* ---- capprepared.c ---- */
/* A consumer's ack is past the fork: may its floor go back there?  -1: reason prepared_xact_present, or
 * temporary. */
int cap_check_prepared(struct cap *c, const char *consumer, struct ws_pos fork, struct ws_pos ack,
                       struct ws_err *err);

/* ---- capstore.c ---- */
/* Reads what the boundary touches (or everything) and makes it durable in the history; retries. */
int cap_capture(struct cap *c, struct cap_db *db, struct ws_pos at, const struct ws_catquery_want *want,
                struct ws_err *err);

/* ---- captemp.c ---- */
struct ws_temprels;
struct ws_temprels *cap_temp_new(struct cap *c, struct ws_err *err);
/* To be called after each capture: where the rows are that go into pg_class and pg_type. */
int cap_temp_files(struct cap *c, struct ws_temprels *t, const struct cap_db *db,
                   struct ws_err *err);
/* 1: the boundary touches temporary relations alone, which the history does not have: nothing to
 * capture.  0; -1.  A database that joins waits for any boundary. */
int cap_temporary(struct cap *c, struct ws_temprels *t, const struct ws_boundary *b,
                  const struct ws_boundary_ids *ids, struct ws_err *err);
/* Moves every position on to such a boundary, durably: the gate lets the shadow past it, and after a
 * crash it is not known again unless what was made before it is read again. */
int cap_pass(struct cap *c, struct ws_pos at, struct ws_err *err);

#endif
