/* Files whose SMGR CREATE carries no xid: CREATE INDEX, and in a savepoint whatever moves a table
 * that is locked already (TRUNCATE, CLUSTER, SET TABLESPACE) makes the file first.  The commit or abort
 * that keeps or removes the file tells whose it was.  Private to lib/xact. */
#ifndef WS_ORPHAN_H
#define WS_ORPHAN_H

#include "ws/xactrec.h"
#include "xtx.h"

struct ws_orphan {
	struct ws_birth b;
	ws_xid limit;  /* once seen: the owner's xid is below it */
	unsigned seen; /* RUNNING_XACTS records since */
};

struct ws_orphans {
	struct ws_orphan *e; /* in WAL order */
	size_t n, cap;
};

struct ws_decoder;

void ws_orphans_fini(struct ws_orphans *o);
void ws_orphan_add(struct ws_orphans *o, const struct ws_birth *b);
struct ws_birth *ws_orphan_find(struct ws_orphans *o, ws_oid rel); /* by filenode, or NULL */
/* Those that an abort removes. */
void ws_orphans_abort(struct ws_orphans *o, ws_oid db, const struct ws_xactrec *x);
/* Those whose owner has ended are forgotten. */
void ws_orphans_running(struct ws_orphans *o, ws_xid next, ws_xid oldest);
/* Takes out those that the commit removes, or that belong to a relation from it on; an index is
 * forgotten.  out: room for
 * all of them, or NULL. */
int ws_orphans_claim(struct ws_decoder *d, const struct ws_xactrec *x, ws_lsn end, struct ws_birth *out, size_t *n,
                     struct ws_err *err);

/* The oldest one's place, 0: none. */
static inline ws_lsn
ws_orphans_first(const struct ws_orphans *o)
{
	return o->n ? o->e[0].b.lsn : 0;
}

#endif
