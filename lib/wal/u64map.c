/* The hash of u64map.h. */
#include <stdlib.h>
#include <string.h>

#include "u64map.h"

static void
insert(struct ws_u64map *m, uint64_t key, uint32_t val)
{
	uint32_t i = ws_u64map_slot(m, key);

	while (m->keys[i])
		i = (i + 1) & (m->cap - 1);
	m->keys[i] = key;
	m->vals[i] = val;
	m->n++;
}

static void
grow(struct ws_u64map *m)
{
	struct ws_u64map old = *m;

	m->cap = old.cap ? old.cap * 2 : 64;
	m->keys = ws_calloc(m->cap, sizeof *m->keys);
	m->vals = ws_calloc(m->cap, sizeof *m->vals);
	m->n = 0;
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.keys[i])
			insert(m, old.keys[i], old.vals[i]);
	ws_u64map_free(&old);
}

void
ws_u64map_put(struct ws_u64map *m, uint64_t key, uint32_t val)
{
	uint32_t *v = ws_u64map_get(m, key);

	if (v) {
		*v = val;
		return;
	}
	if ((uint64_t)m->n * 2 >= m->cap)
		grow(m);
	insert(m, key, val);
}

bool
ws_u64map_del(struct ws_u64map *m, uint64_t key)
{
	uint32_t *v = ws_u64map_get(m, key), mask = m->cap - 1;

	if (!v)
		return false;
	uint32_t hole = (uint32_t)(v - m->vals);

	/* Entries behind the hole move into it unless their own slot lies between. */
	for (uint32_t i = (hole + 1) & mask; m->keys[i]; i = (i + 1) & mask) {
		uint32_t home = ws_u64map_slot(m, m->keys[i]);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->keys[hole] = m->keys[i];
		m->vals[hole] = m->vals[i];
		hole = i;
	}
	m->keys[hole] = 0;
	m->n--;
	return true;
}

void
ws_u64map_free(struct ws_u64map *m)
{
	free(m->keys);
	free(m->vals);
	memset(m, 0, sizeof *m);
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t *
ws_u64map_sorted(const struct ws_u64map *m)
{
	uint64_t *keys = ws_malloc((size_t)m->n * sizeof *keys);
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->cap; i++)
		if (m->keys[i])
			keys[n++] = m->keys[i];
	qsort(keys, n, sizeof *keys, compare);
	return keys;
}
