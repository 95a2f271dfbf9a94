/* A set of WAL pages, 1 bit each: where records of a transaction begin whose positions take too
 * much room.  Private to lib/xact. */
#ifndef WS_PAGEMAP_H
#define WS_PAGEMAP_H

#include "ws/types.h"

/* Blocks of 4 kB, each 32768 pages (256 MB of WAL). */
#define WS_PAGEMAP_BITS 32768u

struct ws_pagemap {
	uint64_t first; /* block number of blocks[0] */
	size_t nblocks;
	uint64_t **blocks; /* NULL: no page of it */
	size_t bytes;
};

void ws_pagemap_fini(struct ws_pagemap *m);
void ws_pagemap_set(struct ws_pagemap *m, ws_lsn at);
void ws_pagemap_add(struct ws_pagemap *m, const struct ws_pagemap *other);
/* First page address >= from that is set; UINT64_MAX when none. */
ws_lsn ws_pagemap_next(const struct ws_pagemap *m, ws_lsn from);

#endif
