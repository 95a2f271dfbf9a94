/* A commit that changed the catalog: shapes before and after, schema events, the chain.  Private
 * to lib/xact. */
#ifndef WS_DDL_H
#define WS_DDL_H

#include "decoder.h"

struct ws_ddl {
	struct ws_decoder *d;
	ws_lsn start, end; /* of the commit record */
	ws_lsn oldest;     /* first record of the transaction */
	struct ws_ddlrel {
		ws_oid oid;
		struct ws_shape *before, *after; /* NULL: did not exist */
		char what; /* C A D, 0: no schema event */
	} *rels;
	size_t nrels;
	struct ws_chain chain;
	bool has_chain;
	struct ws_arena arena;
};

/* Collects the changed relations, begins the shapes' next epoch.  mine: the commit is a boundary
 * of our database. */
int ws_ddl_init(struct ws_ddl *g, struct ws_decoder *d, const struct ws_xactrec *x, bool mine,
                struct ws_err *err);
/* Builds the chain, when there is something to be told by one. */
int ws_ddl_chain(struct ws_ddl *g, const struct ws_xactrec *x, struct ws_xtx **tx, size_t n,
                 struct ws_err *err);
int ws_ddl_schema(struct ws_ddl *g, struct ws_err *err);
/* Sends the replace marks that stand before lsn. */
int ws_ddl_marks(struct ws_ddl *g, ws_lsn lsn, struct ws_err *err);
void ws_ddl_fini(struct ws_ddl *g);

#endif
