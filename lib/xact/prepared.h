/* Prepared transactions that wait for their COMMIT or ROLLBACK PREPARED.  Private to lib/xact. */
#ifndef WS_PREPARED_H
#define WS_PREPARED_H

#include "ws/xactrec.h"
#include "xtx.h"

struct ws_prepared {
	ws_xid xid;
	ws_oid db;
	ws_lsn first; /* at or below what it wrote first; 0: it wrote nothing that is remembered */
	ws_lsn at;    /* its PREPARE record */
	int64_t time; /* of PREPARE, microseconds since 2000 */
	char *gid;
	ws_xid *subxids; /* its committed subtransactions */
	uint32_t nsubxids;
};

struct ws_prepset {
	struct ws_prepared *e; /* in the order of their PREPARE */
	size_t n, cap;
};

void ws_prepset_fini(struct ws_prepset *s);
/* A PREPARE record at `at`; t knows what the transaction and its children wrote. */
void ws_prepset_add(struct ws_prepset *s, struct ws_xtab *t, const struct ws_xactrec *x, ws_lsn at);
/* Decided: false when it was not here. */
bool ws_prepset_drop(struct ws_prepset *s, ws_xid xid);

#endif
