/* Positions of a whole transaction in the order of the WAL: its own and those of its
 * subtransactions, from lists and page maps, and of those that are spilled.  Private to lib/xact. */
#ifndef WS_MERGE_H
#define WS_MERGE_H

#include "decoder.h"

struct ws_source {
	ws_lsn cur; /* next position; 0: exhausted */
	const struct ws_xtx *tx; /* NULL: all that are taken in the spill */
	const struct ws_pagemap *pages; /* NULL: a list */
	struct ws_positer list;
	ws_lsn page, at; /* of a page map: the page at hand, the next record on it (0: none) */
};

struct ws_merge {
	struct ws_decoder *d;
	struct ws_source *src; /* a heap by cur */
	size_t n;
	struct ws_pagemap spilled;
	ws_lsn limit; /* start of the commit record: nothing at or above is looked at */
	struct ws_posread rd;
};

int ws_merge_init(struct ws_merge *m, struct ws_decoder *d, struct ws_xtx **tx, size_t n,
                  ws_lsn limit, struct ws_err *err);
/* 1 a position, 0 no more, -1. */
int ws_merge_next(struct ws_merge *m, ws_lsn *at, struct ws_err *err);
void ws_merge_fini(struct ws_merge *m);

#endif
