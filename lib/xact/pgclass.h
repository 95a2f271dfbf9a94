/* Did a command give a relation a certain file?  Private to lib/xact. */
#ifndef WS_PGCLASS_H
#define WS_PGCLASS_H

#include "decoder.h"

/* The record updates pg_class (the caller knows that) and sets rel's relfilenode to file, as far as
 * the record shows.  Pure. */
bool ws_pgclass_sets(const struct ws_record *r, ws_oid rel, ws_oid file);

struct ws_pgclass {
	ws_lsn from, to; /* the invalidation record before, and the one at hand */
	ws_lsn oldest;   /* nothing below it is read */
	ws_oid db, class_before, class_after; /* pg_class's file before and after the transaction */
};

/* Walks back from where->to.  1 yes, 0 no, 2 cannot be told, -1. */
int ws_pgclass_find(struct ws_posread *rd, const struct ws_pgclass *where, ws_oid rel, ws_oid file,
                    struct ws_err *err);

#endif
