/* Shapes read by SQL: from the shadow parked at a boundary, or from any server.
 *
 * Plain reads of catalogs only, in one REPEATABLE READ snapshot: nothing that takes a lock on a user
 * relation or asks for an expression's text, so nothing that a writer's lock could block. */
#ifndef WS_CATQUERY_H
#define WS_CATQUERY_H

#include "ws/boundary.h"
#include "ws/pgconn.h"
#include "ws/shape.h"

/* Prepares a session for exact text: UTC, ISO, hex, round-trip floats, the database's own encoding,
 * pg_catalog alone on the search path (so that type names are qualified), timeouts. */
int ws_catquery_setup(struct ws_pg *c, struct ws_err *err);

/* Replay position of a standby; lsn 0 when nothing was replayed yet.  WS_EOPERATOR reason=not_a_standby
 * when the server is no standby (any more). */
int ws_catquery_replay(struct ws_pg *c, ws_lsn *lsn, struct ws_err *err);

/* What to read: everything, or what the messages of one commit touch (b and ids). */
struct ws_catquery_want {
	bool everything;
	const struct ws_boundary *boundary;
	const struct ws_boundary_ids *ids;
};

/* Gets what was found, each struct alive during the call; db and lsn are left 0.  0 or -1. */
struct ws_catquery_sink {
	int (*rel)(void *arg, const struct ws_rel *r, struct ws_err *err);
	int (*type)(void *arg, const struct ws_type *t, struct ws_err *err);
	/* Asked for by oid and not there: dropped. */
	int (*rel_gone)(void *arg, ws_oid oid, struct ws_err *err);
	int (*type_gone)(void *arg, ws_oid oid, struct ws_err *err);
	/* All relations or all types were read: whatever did not come is gone.  May be NULL. */
	int (*rels_all)(void *arg, struct ws_err *err);
	int (*types_all)(void *arg, struct ws_err *err);
	/* Types that what came uses and nobody has; asked until there are none (*n 0).  May be NULL. */
	int (*types_missing)(void *arg, const ws_oid **oids, size_t *n, struct ws_err *err);
	void *arg;
};

/* Reads in one snapshot.  at != 0: the server is a standby whose replay must stand exactly there, at
 * the start and at the end; else WS_ETEMP.  On -1 the session is out of the transaction, or broken. */
int ws_catquery_read(struct ws_pg *c, const struct ws_catquery_want *want, ws_lsn at,
                     const struct ws_catquery_sink *sink, struct ws_err *err);

/* The only element of a one-element array's text, as attmissingval is written: in place.  -1: not such
 * a text.  Pure; the element's own delimiter does not matter. */
int ws_catquery_unarray(char *s);

/* The kept list of an attach (ws-filter --kept): waits until no catalog is being rewritten, at most
 * timeout_s.  out gets the file's text.  conninfo of any database of the source, a primary. */
int ws_catquery_kept(const char *conninfo, int timeout_s, struct ws_buf *out, struct ws_err *err);

#endif
