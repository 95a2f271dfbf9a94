/* Where a transaction's TOAST chunks are; see toastmap.h. */
#include <string.h>

#include "toastmap.h"

#define MIN_SLOTS 64u
#define KEEP      4096u /* slots and chunks that survive a reset */

void
ws_toastmap_fini(struct ws_toastmap *m)
{
	const char *dir = m->dir;

	ws_bigarray_free(&m->vals);
	ws_bigarray_free(&m->chunks);
	memset(m, 0, sizeof *m);
	m->dir = dir;
}

void
ws_toastmap_reset(struct ws_toastmap *m)
{
	if (!m->used)
		return;
	if (m->mask >= KEEP || m->chunks.bytes > KEEP * sizeof(ws_lsn)) {
		ws_toastmap_fini(m);
		return;
	}
	memset(m->vals.p, 0, (m->mask + 1) * sizeof(struct ws_toastval));
	m->used = 0;
	m->n = 0;
}

static struct ws_toastval *
probe(struct ws_toastval *vals, uint32_t mask, ws_oid rel, ws_oid id)
{
	uint32_t i = (id ^ rel * 2654435761u) & mask;

	while (vals[i].id && (vals[i].id != id || vals[i].rel != rel))
		i = (i + 1) & mask;
	return &vals[i];
}

static int
grow(struct ws_toastmap *m, struct ws_err *err)
{
	const struct ws_toastval *old = m->vals.p;
	uint32_t n = old ? m->mask + 1 : 0, mask = n ? n * 2 - 1 : MIN_SLOTS - 1;
	struct ws_bigarray vals = {0};

	if (ws_bigarray_grow(&vals, ((size_t)mask + 1) * sizeof *old, m->dir, err) != 0)
		return -1;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].id)
			*probe(vals.p, mask, old[i].rel, old[i].id) = old[i];
	ws_bigarray_free(&m->vals);
	m->vals = vals;
	m->mask = mask;
	return 0;
}

int
ws_toastmap_add(struct ws_toastmap *m, ws_oid rel, ws_oid id, int32_t seq, ws_lsn at,
                struct ws_err *err)
{
	if ((!m->vals.p || ((uint64_t)m->used + 1) * 4 > (uint64_t)m->mask * 3) && grow(m, err) != 0)
		return -1;
	struct ws_toastval *v = probe(m->vals.p, m->mask, rel, id);

	if (seq == 0) {
		if (!v->id)
			m->used++;
		*v = (struct ws_toastval){rel, id, 0, m->n};
	}
	if (!v->id || seq < 0 || v->n != (uint32_t)seq || v->first + v->n != m->n)
		return 0;
	size_t need = (m->n + 1) * sizeof(ws_lsn), have = m->chunks.bytes;

	if (need > have &&
	    ws_bigarray_grow(&m->chunks, have ? have * 2 : MIN_SLOTS * sizeof(ws_lsn), m->dir, err) != 0)
		return -1;
	((ws_lsn *)m->chunks.p)[m->n++] = at;
	v->n++;
	return 1;
}

const struct ws_toastval *
ws_toastmap_find(const struct ws_toastmap *m, ws_oid rel, ws_oid id)
{
	const struct ws_toastval *v = m->vals.p ? probe(m->vals.p, m->mask, rel, id) : NULL;

	return v && v->id ? v : NULL;
}
