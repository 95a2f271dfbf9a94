/* Catalog boundaries: commits whose invalidation messages can change what a table looks like.
 * Decided from the commit record alone, so that ws-walsend, ws-catalog and ws-decode agree
 * without talking to each other, also after a restart.  Pure. */
#ifndef WS_BOUNDARY_H
#define WS_BOUNDARY_H

#include "ws/xactrec.h"

struct ws_boundary {
	bool is;          /* is a boundary */
	bool every_db;    /* belongs to every followed database (database cache message, shared relcache) */
	ws_oid db;        /* the commit's database otherwise */
	bool all_rels;    /* relcache of everything: re-read all relations */
	bool types;       /* type, enum, range caches: re-read types */
	bool namespaces;  /* namespace caches: re-read names */
};

/* x is a COMMIT or COMMIT_PREPARED; anything else is no boundary. */
struct ws_boundary ws_boundary_of(const struct ws_xactrec *x, const struct ws_walver *ver);
static inline bool
ws_boundary_for(const struct ws_boundary *b, ws_oid db)
{
	return b->is && (b->every_db || b->db == db);
}

#endif
