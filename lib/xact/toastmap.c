/* Where a transaction's TOAST chunks are; see toastmap.h. */
#include <stdlib.h>
#include <string.h>

#include "toastmap.h"

#define MIN_SLOTS 64u
#define KEEP      4096u /* slots and chunks that survive a reset */

void
ws_toastmap_fini(struct ws_toastmap *m)
{
	free(m->vals);
	free(m->chunks);
	memset(m, 0, sizeof *m);
}

void
ws_toastmap_reset(struct ws_toastmap *m)
{
	if (!m->used)
		return;
	if (m->mask >= KEEP || m->cap > KEEP) {
		ws_toastmap_fini(m);
		return;
	}
	memset(m->vals, 0, (m->mask + 1) * sizeof *m->vals);
	m->used = 0;
	m->n = 0;
}

static struct ws_toastval *
probe(const struct ws_toastmap *m, ws_oid rel, ws_oid id)
{
	uint32_t i = (id ^ rel * 2654435761u) & m->mask;

	while (m->vals[i].id && (m->vals[i].id != id || m->vals[i].rel != rel))
		i = (i + 1) & m->mask;
	return &m->vals[i];
}

static void
grow(struct ws_toastmap *m)
{
	struct ws_toastval *old = m->vals;
	uint32_t n = old ? m->mask + 1 : 0;

	m->mask = n ? n * 2 - 1 : MIN_SLOTS - 1;
	m->vals = ws_calloc(m->mask + 1, sizeof *m->vals);
	for (uint32_t i = 0; i < n; i++)
		if (old[i].id)
			*probe(m, old[i].rel, old[i].id) = old[i];
	free(old);
}

bool
ws_toastmap_add(struct ws_toastmap *m, ws_oid rel, ws_oid id, int32_t seq, ws_lsn at)
{
	if (!m->vals || (m->used + 1) * 4 > m->mask * 3)
		grow(m);
	struct ws_toastval *v = probe(m, rel, id);

	if (seq == 0) {
		if (!v->id)
			m->used++;
		*v = (struct ws_toastval){rel, id, 0, m->n};
	}
	if (!v->id || seq < 0 || v->n != (uint32_t)seq || v->first + v->n != m->n)
		return false;
	if (m->n == m->cap) {
		m->cap = m->cap ? m->cap * 2 : MIN_SLOTS;
		m->chunks = ws_realloc(m->chunks, m->cap * sizeof *m->chunks);
	}
	m->chunks[m->n++] = at;
	v->n++;
	return true;
}

const struct ws_toastval *
ws_toastmap_find(const struct ws_toastmap *m, ws_oid rel, ws_oid id)
{
	const struct ws_toastval *v = m->vals ? probe(m, rel, id) : NULL;

	return v && v->id ? v : NULL;
}
