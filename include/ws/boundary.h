/* Catalog boundaries: commits whose invalidation messages can change what a table looks like.
 * Decided from the commit record alone, so that ws-walsend, ws-catalog and ws-decode agree
 * without talking to each other, also after a restart.  Pure. */
#ifndef WS_BOUNDARY_H
#define WS_BOUNDARY_H

#include "ws/xactrec.h"

#define WS_OID_PG_TYPE  1247u
#define WS_OID_PG_CLASS 1259u

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

/* The objects that a commit's messages name, each list sorted and without doubles.  A relcache
 * message holds its oid; a syscache of one oid holds murmurhash32(oid), which can be undone. */
struct ws_boundary_ids {
	ws_oid *rels;       /* relations, catalogs included */
	ws_oid *types;      /* types, ranges, multiranges */
	ws_oid *labels;     /* rows of pg_enum */
	ws_oid *namespaces;
	size_t nrels, ntypes, nlabels, nnamespaces;
};

/* Fills *out (memory owned by it); empty unless x is a commit. */
void ws_boundary_ids(const struct ws_xactrec *x, const struct ws_walver *ver, struct ws_boundary_ids *out);
void ws_boundary_ids_fini(struct ws_boundary_ids *ids);

/* A boundary and where it is: end is what positions and the gate mean. */
struct ws_boundary_at {
	ws_lsn start;
	struct ws_pos end;
	ws_xid xid;
	struct ws_boundary b;
	struct ws_boundary_ids ids;
};

/* Reads a WAL directory, a segment file or "-" from start (0: the oldest byte) to its end and calls
 * each for every boundary; each returns 0 to go on.  Zeros behind the last record are the end. */
int ws_boundary_scan(const char *wal, struct ws_pos start,
                     int (*each)(void *arg, const struct ws_boundary_at *b, struct ws_err *err), void *arg,
                     struct ws_err *err);
/* The same, but reading ends when what lies below stop has been seen.  *reached: every boundary that
 * ends there or below was seen, unless each stopped it. */
int ws_boundary_scan_to(const char *wal, struct ws_pos start, ws_lsn stop, ws_lsn *reached,
                        int (*each)(void *arg, const struct ws_boundary_at *b, struct ws_err *err), void *arg,
                        struct ws_err *err);

#endif
