/* A hash of nonzero 64-bit keys to 32-bit values: open addressing, linear probing, deletion by
 * moving back.  Zero-initialised is empty.  Private to lib/wal. */
#ifndef WS_U64MAP_H
#define WS_U64MAP_H

#include "ws/mem.h"

struct ws_u64map {
	uint64_t *keys; /* 0: free */
	uint32_t *vals;
	uint32_t cap; /* a power of two, or 0 */
	uint32_t n;
};

static inline uint32_t
ws_u64map_slot(const struct ws_u64map *m, uint64_t key)
{
	return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (m->cap - 1);
}

static inline uint32_t *
ws_u64map_get(const struct ws_u64map *m, uint64_t key)
{
	if (!m->n)
		return NULL;
	for (uint32_t i = ws_u64map_slot(m, key); m->keys[i]; i = (i + 1) & (m->cap - 1))
		if (m->keys[i] == key)
			return &m->vals[i];
	return NULL;
}

void ws_u64map_put(struct ws_u64map *m, uint64_t key, uint32_t val);
bool ws_u64map_del(struct ws_u64map *m, uint64_t key);
void ws_u64map_free(struct ws_u64map *m);
/* All keys ascending, in a new array of m->n. */
uint64_t *ws_u64map_sorted(const struct ws_u64map *m);

#endif
