/* Sets of WAL pages; see pagemap.h. */
#include <stdlib.h>
#include <string.h>

#include "pagemap.h"
#include "ws/mem.h"
#include "ws/walpage.h"

void
ws_pagemap_fini(struct ws_pagemap *m)
{
	for (size_t i = 0; i < m->nblocks; i++)
		free(m->blocks[i]);
	free(m->blocks);
	*m = (struct ws_pagemap){0};
}

/* Room for the block, after or before those there are. */
static void
reach(struct ws_pagemap *m, uint64_t block)
{
	uint64_t first = m->nblocks && m->first < block ? m->first : block;
	uint64_t end = m->nblocks && m->first + m->nblocks > block ? m->first + m->nblocks : block + 1;
	size_t n = (size_t)(end - first), before = m->nblocks ? (size_t)(m->first - first) : 0;

	if (n == m->nblocks)
		return;
	m->blocks = ws_realloc(m->blocks, n * sizeof *m->blocks);
	memmove(m->blocks + before, m->blocks, m->nblocks * sizeof *m->blocks);
	memset(m->blocks, 0, before * sizeof *m->blocks);
	memset(m->blocks + before + m->nblocks, 0, (n - before - m->nblocks) * sizeof *m->blocks);
	m->bytes += (n - m->nblocks) * sizeof *m->blocks;
	m->first = first;
	m->nblocks = n;
}

static uint64_t *
block_of(struct ws_pagemap *m, uint64_t block)
{
	reach(m, block);
	uint64_t **b = &m->blocks[block - m->first];

	if (!*b) {
		*b = ws_calloc(1, WS_PAGEMAP_BITS / 8);
		m->bytes += WS_PAGEMAP_BITS / 8;
	}
	return *b;
}

void
ws_pagemap_set(struct ws_pagemap *m, ws_lsn at)
{
	uint64_t page = at / WS_PAGE_SIZE;
	uint32_t bit = page % WS_PAGEMAP_BITS;

	block_of(m, page / WS_PAGEMAP_BITS)[bit / 64] |= UINT64_C(1) << bit % 64;
}

void
ws_pagemap_add(struct ws_pagemap *m, const struct ws_pagemap *other)
{
	for (size_t i = 0; i < other->nblocks; i++) {
		if (!other->blocks[i])
			continue;
		uint64_t *b = block_of(m, other->first + i);

		for (size_t k = 0; k < WS_PAGEMAP_BITS / 64; k++)
			b[k] |= other->blocks[i][k];
	}
}

ws_lsn
ws_pagemap_next(const struct ws_pagemap *m, ws_lsn from)
{
	uint64_t page = from / WS_PAGE_SIZE;

	if (page < m->first * WS_PAGEMAP_BITS)
		page = m->first * WS_PAGEMAP_BITS;
	for (;;) {
		uint64_t block = page / WS_PAGEMAP_BITS - m->first;
		uint32_t bit = page % WS_PAGEMAP_BITS;

		if (block >= m->nblocks)
			return UINT64_MAX;
		if (!m->blocks[block]) {
			page += WS_PAGEMAP_BITS - bit;
			continue;
		}
		uint64_t w = m->blocks[block][bit / 64] >> bit % 64;

		if (w)
			return (page + (unsigned)__builtin_ctzll(w)) * WS_PAGE_SIZE;
		page += 64 - bit % 64;
	}
}
