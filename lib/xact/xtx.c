/* The table of unfinished transactions; see xtx.h.  What the records say is left to skim.c, what
 * they become to commit.c. */
#include <stdlib.h>
#include <string.h>

#include "xtx.h"

#define MIN_SLOTS 1024u
/* A transaction's own memory, with its share of the slots. */
#define XTX_BYTES (sizeof(struct ws_xtx) + 3 * sizeof(struct ws_xslot))

/* Chunks come in three sizes, so that a small transaction costs little and a large one few. */
static const uint32_t chunk_cap[3] = {30, 510, 8190};

void
ws_xtab_init(struct ws_xtab *t, size_t budget)
{
	memset(t, 0, sizeof *t);
	t->slots = ws_calloc(MIN_SLOTS, sizeof *t->slots);
	t->mask = MIN_SLOTS - 1;
	t->budget = t->bar = budget;
}

static size_t
chunk_bytes(uint32_t cap)
{
	return sizeof(struct ws_poschunk) + cap * sizeof(ws_lsn);
}

static int
chunk_class(uint32_t cap)
{
	return cap == chunk_cap[0] ? 0 : cap == chunk_cap[1] ? 1 : 2;
}

/* Small chunks are kept for the next transaction; large ones go back. */
static void
chunks_free(struct ws_xtab *t, struct ws_poschunk *c)
{
	while (c) {
		struct ws_poschunk *next = c->next;
		int k = chunk_class(c->cap);

		t->bytes -= chunk_bytes(c->cap);
		if (k < 2) {
			c->next = t->free_chunk[k];
			t->free_chunk[k] = c;
		} else {
			free(c);
		}
		c = next;
	}
}

static void
pagemap_free(struct ws_xtab *t, struct ws_pagemap *m)
{
	if (!m)
		return;
	t->bytes -= m->bytes;
	ws_pagemap_fini(m);
	free(m);
}

static void
ddl_free(struct ws_xddl *d)
{
	if (!d)
		return;
	free(d->births);
	free(d->invals);
	free(d);
}

static void
tx_clear(struct ws_xtab *t, struct ws_xtx *tx)
{
	chunks_free(t, tx->head);
	pagemap_free(t, tx->pages);
	ddl_free(tx->ddl);
}

void
ws_xtab_fini(struct ws_xtab *t)
{
	while (t->oldest)
		ws_xtab_drop(t, t->oldest);
	while (t->free_tx) {
		struct ws_xtx *tx = t->free_tx;

		t->free_tx = tx->newer;
		free(tx);
	}
	for (int k = 0; k < 3; k++)
		while (t->free_chunk[k]) {
			struct ws_poschunk *c = t->free_chunk[k];

			t->free_chunk[k] = c->next;
			free(c);
		}
	ws_spill_fini(&t->spill);
	free(t->slots);
	memset(t, 0, sizeof *t);
}

static void keep_budget(struct ws_xtab *t, const struct ws_xtx *keep);

/* Xids are handed out in order: the low bits alone spread them, and neighbours share lines. */
static uint32_t
home(const struct ws_xtab *t, ws_xid xid)
{
	return xid & t->mask;
}

static uint32_t
probe(const struct ws_xtab *t, ws_xid xid)
{
	uint32_t i = home(t, xid);

	while (t->slots[i].xid && t->slots[i].xid != xid)
		i = (i + 1) & t->mask;
	return i;
}

struct ws_xtx *
ws_xtab_find_slow(struct ws_xtab *t, ws_xid xid)
{
	struct ws_xslot *s = &t->slots[probe(t, xid)];

	if (!s->xid)
		return NULL;
	t->last = s->tx;
	return s->tx;
}

static void
grow(struct ws_xtab *t)
{
	struct ws_xslot *old = t->slots;
	uint32_t n = t->mask + 1;

	t->slots = ws_calloc((size_t)n * 2, sizeof *t->slots);
	t->mask = n * 2 - 1;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].xid)
			t->slots[probe(t, old[i].xid)] = old[i];
	free(old);
}

static struct ws_xtx *
tx_new(struct ws_xtab *t, ws_xid xid, ws_lsn first)
{
	struct ws_xtx *tx = t->free_tx;

	if (tx)
		t->free_tx = tx->newer;
	else
		tx = ws_malloc(sizeof *tx);
	memset(tx, 0, offsetof(struct ws_xtx, at));
	tx->xid = xid;
	tx->first = first;
	if ((tx->spilled = ws_spill_has(&t->spill, xid)))
		tx->n = WS_XTX_INLINE; /* nothing is inline: appending takes the long way */
	t->bytes += XTX_BYTES;
	tx->older = t->newest;
	if (t->newest)
		t->newest->newer = tx;
	else
		t->oldest = tx;
	t->newest = tx;
	return tx;
}

struct ws_xtx *
ws_xtab_get_slow(struct ws_xtab *t, ws_xid xid, ws_lsn first)
{
	struct ws_xtx *tx = ws_xtab_find_slow(t, xid);

	if (tx)
		return tx;
	if ((t->used + 1) * 2 > t->mask)
		grow(t);
	tx = tx_new(t, xid, first);
	t->slots[probe(t, xid)] = (struct ws_xslot){xid, tx};
	t->used++;
	t->last = tx;
	if (t->bytes > t->bar)
		keep_budget(t, tx);
	return tx;
}

/* Empties slot i and moves back what had to step over it. */
static void
slot_remove(struct ws_xtab *t, uint32_t i)
{
	uint32_t hole = i;

	for (;;) {
		i = (i + 1) & t->mask;
		if (!t->slots[i].xid)
			break;
		if (((i - home(t, t->slots[i].xid)) & t->mask) >= ((i - hole) & t->mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole] = (struct ws_xslot){0, NULL};
	t->used--;
}

void
ws_xtab_drop(struct ws_xtab *t, struct ws_xtx *tx)
{
	slot_remove(t, probe(t, tx->xid));
	if (t->last == tx)
		t->last = NULL;
	if (tx->older)
		tx->older->newer = tx->newer;
	else
		t->oldest = tx->newer;
	if (tx->newer)
		tx->newer->older = tx->older;
	else
		t->newest = tx->older;
	tx_clear(t, tx);
	t->bytes -= XTX_BYTES;
	tx->newer = t->free_tx;
	t->free_tx = tx;
	if (t->bytes < t->budget)
		t->bar = t->budget;
}

bool
ws_xtab_end(struct ws_xtab *t, ws_xid xid)
{
	struct ws_xtx *tx = ws_xtab_find(t, xid);
	bool spilled = ws_spill_drop(&t->spill, xid);

	if (tx)
		ws_xtab_drop(t, tx);
	return tx || spilled;
}

ws_lsn
ws_xtab_first(const struct ws_xtab *t)
{
	ws_lsn tx = t->oldest ? t->oldest->first : 0;

	return t->spill.first && (!tx || t->spill.first < tx) ? t->spill.first : tx;
}

ws_lsn
ws_xtab_first_of(const struct ws_xtab *t, ws_xid xid)
{
	const struct ws_xslot *s = &t->slots[probe(t, xid)];

	if (ws_spill_has(&t->spill, xid))
		return t->spill.by_no[xid / WS_SPILL_XIDS]->first;
	return s->xid ? s->tx->first : 0;
}

size_t
ws_xtab_reap(struct ws_xtab *t, ws_xid oldest)
{
	size_t n = ws_spill_reap(&t->spill, oldest);

	for (struct ws_xtx *tx = t->oldest, *next; tx; tx = next) {
		next = tx->newer;
		if ((int32_t)(tx->xid - oldest) < 0) {
			ws_xtab_drop(t, tx);
			n++;
		}
	}
	return n;
}

static bool
is_kept(const ws_xid *keep, size_t n, ws_xid xid)
{
	while (n) {
		size_t half = n / 2;

		if (keep[half] == xid)
			return true;
		if (keep[half] < xid) {
			keep += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return false;
}

size_t
ws_xtab_abandon(struct ws_xtab *t, const ws_xid *keep, size_t n)
{
	size_t gone = 0;

	for (struct ws_xtx *tx = t->oldest, *next; tx; tx = next) {
		next = tx->newer;
		if (!is_kept(keep, n, tx->xid)) {
			ws_xid xid = tx->xid;

			ws_xtab_drop(t, tx);
			(void)ws_spill_drop(&t->spill, xid);
			gone++;
		}
	}
	return gone + ws_spill_abandon(&t->spill, keep, n);
}

/* ---- positions ---- */

/* The list becomes a page map. */
static void
tx_merge(struct ws_xtab *t, struct ws_xtx *tx)
{
	struct ws_positer it;
	ws_lsn at;
	struct ws_pagemap *m = ws_calloc(1, sizeof *m);

	ws_positer_init(&it, tx);
	while ((at = ws_positer_next(&it)))
		ws_pagemap_set(m, at);
	t->bytes += m->bytes;
	chunks_free(t, tx->head);
	tx->head = tx->tail = NULL;
	tx->pages = m;
	t->merges++;
}

/* Its xid and its pages remain. */
static void
tx_spill(struct ws_xtab *t, struct ws_xtx *tx)
{
	struct ws_positer it;
	ws_lsn at;

	if (!tx->spilled) {
		ws_positer_init(&it, tx);
		while ((at = ws_positer_next(&it)))
			ws_spill_put(&t->spill, tx->xid, tx->first, at);
		t->spills++;
	}
	ws_xtab_drop(t, tx);
}

/* The oldest first, down to three quarters.  Files made are remembered with their transaction. */
static void
spill(struct ws_xtab *t, const struct ws_xtx *keep)
{
	for (struct ws_xtx *tx = t->oldest, *next; tx && t->bytes > t->budget / 4 * 3; tx = next) {
		next = tx->newer;
		if (tx != keep && !tx->pages && !tx->ddl && (tx->n || tx->spilled))
			tx_spill(t, tx);
	}
}

/* Makes room below the budget: the longest lists first. */
static void
keep_budget(struct ws_xtab *t, const struct ws_xtx *keep)
{
	while (t->bytes > t->budget) {
		struct ws_xtx *most = NULL;

		for (struct ws_xtx *tx = t->oldest; tx; tx = tx->newer)
			if (!tx->pages && tx->head && (!most || tx->n > most->n))
				most = tx;
		/* A list of a few chunks is no larger than the map that would replace it. */
		if (!most || most->n < 2 * chunk_cap[1]) {
			spill(t, keep);
			break;
		}
		tx_merge(t, most);
	}
	/* What cannot be made smaller is not looked at with every record. */
	t->bar = t->bytes > t->budget ? t->bytes + t->budget / 8 : t->budget;
}

static struct ws_poschunk *
chunk_new(struct ws_xtab *t, uint64_t have)
{
	int k = have < WS_XTX_INLINE + chunk_cap[0] ? 0 : have < 4 * chunk_cap[1] ? 1 : 2;
	struct ws_poschunk *c = t->free_chunk[k];

	if (c)
		t->free_chunk[k] = c->next;
	else
		c = ws_malloc(chunk_bytes(chunk_cap[k]));
	c->next = NULL;
	c->n = 0;
	c->cap = chunk_cap[k];
	t->bytes += chunk_bytes(c->cap);
	return c;
}

void
ws_xtx_append_slow(struct ws_xtab *t, struct ws_xtx *tx, ws_lsn at)
{
	tx->n++;
	if (tx->spilled) {
		ws_spill_put(&t->spill, tx->xid, tx->first, at);
	} else if (tx->pages) {
		t->bytes -= tx->pages->bytes;
		ws_pagemap_set(tx->pages, at);
		t->bytes += tx->pages->bytes;
	} else {
		struct ws_poschunk *c = chunk_new(t, tx->n - 1);

		if (tx->tail)
			tx->tail->next = c;
		else
			tx->head = c;
		tx->tail = c;
		c->at[c->n++] = at;
		if (t->bytes > t->bar)
			keep_budget(t, tx);
	}
}

void
ws_positer_init(struct ws_positer *it, const struct ws_xtx *tx)
{
	*it = (struct ws_positer){.tx = tx, .inl = true};
}

/* ---- DDL ---- */

static struct ws_xddl *
ddl_of(struct ws_xtx *tx)
{
	if (!tx->ddl)
		tx->ddl = ws_calloc(1, sizeof *tx->ddl);
	return tx->ddl;
}

struct ws_birth *
ws_xtx_birth(struct ws_xtx *tx, ws_oid rel)
{
	struct ws_xddl *d = tx->ddl;

	if (!d || !d->nbirths)
		return NULL;
	if (d->births[d->last_birth].rel == rel)
		return &d->births[d->last_birth];
	if (d->last_miss == rel)
		return NULL;
	for (size_t i = d->nbirths; i-- > 0;)
		if (d->births[i].rel == rel) {
			d->last_birth = i;
			return &d->births[i];
		}
	d->last_miss = rel;
	return NULL;
}

struct ws_birth *
ws_xtx_add_birth(struct ws_xtx *tx)
{
	struct ws_xddl *d = ddl_of(tx);

	if (d->nbirths == d->births_cap) {
		d->births_cap = d->births_cap ? d->births_cap * 2 : 4;
		d->births = ws_realloc(d->births, d->births_cap * sizeof *d->births);
	}
	d->last_birth = d->nbirths;
	d->last_miss = 0;
	d->births[d->nbirths] = (struct ws_birth){0};
	return &d->births[d->nbirths++];
}

void
ws_xtx_add_inval(struct ws_xtx *tx, ws_lsn at)
{
	struct ws_xddl *d = ddl_of(tx);

	if (d->ninvals == d->invals_cap) {
		d->invals_cap = d->invals_cap ? d->invals_cap * 2 : 8;
		d->invals = ws_realloc(d->invals, d->invals_cap * sizeof *d->invals);
	}
	d->invals[d->ninvals++] = at;
}
