/* TOAST values written by the transaction being decoded: where their chunks are.  Private to
 * lib/xact.
 *
 * Chunks of a value are written one after the other, before the row that points to them; a later
 * row of the transaction may point to them again (an UPDATE that leaves the column alone), so they
 * are kept, by position, until the transaction's end: 24 bytes a value and 8 a chunk, in a file
 * when they are many. */
#ifndef WS_TOASTMAP_H
#define WS_TOASTMAP_H

#include "bigarray.h"
#include "ws/types.h"

struct ws_toastval {
	ws_oid rel, id; /* TOAST table's oid, chunk_id; 0: empty slot */
	uint32_t n;     /* chunks */
	uint64_t first; /* index of the first in chunks */
};

struct ws_toastmap {
	const char *dir; /* for what does not fit into memory; NULL: TMPDIR */
	struct ws_bigarray vals, chunks;
	uint32_t mask, used;
	uint64_t n; /* chunks */
};

void ws_toastmap_fini(struct ws_toastmap *m);
/* Empties it, keeps a little memory. */
void ws_toastmap_reset(struct ws_toastmap *m);
/* The chunk seq of (rel, id) is in the record at lsn.  A value that begins again replaces its
 * predecessor.  1; 0: the chunk does not follow; -1. */
int ws_toastmap_add(struct ws_toastmap *m, ws_oid rel, ws_oid id, int32_t seq, ws_lsn at,
                    struct ws_err *err);
/* NULL: not in the transaction. */
const struct ws_toastval *ws_toastmap_find(const struct ws_toastmap *m, ws_oid rel, ws_oid id);

static inline ws_lsn
ws_toastmap_chunk(const struct ws_toastmap *m, const struct ws_toastval *v, uint32_t i)
{
	return ((const ws_lsn *)m->chunks.p)[v->first + i];
}

#endif
