/* Transactions known by xid and page; see spill.h. */
#include <stdlib.h>
#include <string.h>

#include "spill.h"
#include "ws/mem.h"

#define NGROUPS 65536u /* all there can be */
#define NWORDS  (WS_SPILL_XIDS / 64)

static void
group_free(struct ws_spill *s, size_t i)
{
	struct ws_spillgroup *g = s->groups[i];

	s->by_no[g->no] = NULL;
	s->bytes -= sizeof *g + g->pages.bytes;
	ws_pagemap_fini(&g->pages);
	free(g);
	s->groups[i] = s->groups[--s->ngroups];
}

static void
find_first(struct ws_spill *s)
{
	s->first = 0;
	for (size_t i = 0; i < s->ngroups; i++)
		if (!s->first || s->groups[i]->first < s->first)
			s->first = s->groups[i]->first;
}

/* Groups without xids go. */
static void
sweep(struct ws_spill *s)
{
	for (size_t i = s->ngroups; i-- > 0;)
		if (!s->groups[i]->n)
			group_free(s, i);
	find_first(s);
}

void
ws_spill_fini(struct ws_spill *s)
{
	while (s->ngroups)
		group_free(s, s->ngroups - 1);
	free(s->groups);
	free(s->by_no);
	memset(s, 0, sizeof *s);
}

static struct ws_spillgroup *
group_of(struct ws_spill *s, ws_xid xid, ws_lsn first)
{
	struct ws_spillgroup *g;

	if (!s->by_no) {
		s->by_no = ws_calloc(NGROUPS, sizeof(void *));
		s->bytes += NGROUPS * sizeof(void *);
	}
	if ((g = s->by_no[xid / WS_SPILL_XIDS]))
		return g;
	if (s->ngroups == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->groups = ws_realloc(s->groups, s->cap * sizeof(void *));
	}
	g = ws_calloc(1, sizeof *g);
	g->no = xid / WS_SPILL_XIDS;
	g->first = first;
	s->bytes += sizeof *g;
	s->groups[s->ngroups++] = g;
	return s->by_no[g->no] = g;
}

void
ws_spill_put(struct ws_spill *s, ws_xid xid, ws_lsn first, ws_lsn at)
{
	struct ws_spillgroup *g = group_of(s, xid, first);

	if (!ws_spill_bit(g->has, xid)) {
		g->has[xid % WS_SPILL_XIDS / 64] |= UINT64_C(1) << xid % 64;
		g->n++;
		s->n++;
	}
	if (first < g->first)
		g->first = first;
	if (!s->first || first < s->first)
		s->first = first;
	s->bytes -= g->pages.bytes;
	ws_pagemap_set(&g->pages, at);
	s->bytes += g->pages.bytes;
}

bool
ws_spill_drop(struct ws_spill *s, ws_xid xid)
{
	if (!ws_spill_has(s, xid))
		return false;
	struct ws_spillgroup *g = s->by_no[xid / WS_SPILL_XIDS];

	g->has[xid % WS_SPILL_XIDS / 64] &= ~(UINT64_C(1) << xid % 64);
	s->n--;
	if (!--g->n)
		sweep(s);
	return true;
}

bool
ws_spill_take(struct ws_spill *s, ws_xid xid)
{
	if (!ws_spill_has(s, xid))
		return false;
	struct ws_spillgroup *g = s->by_no[xid / WS_SPILL_XIDS];

	g->mine[xid % WS_SPILL_XIDS / 64] |= UINT64_C(1) << xid % 64;
	g->taken++;
	s->taken++;
	return true;
}

void
ws_spill_pages(const struct ws_spill *s, struct ws_pagemap *m)
{
	for (size_t i = 0; i < s->ngroups; i++)
		if (s->groups[i]->taken)
			ws_pagemap_add(m, &s->groups[i]->pages);
}

ws_lsn
ws_spill_taken_first(const struct ws_spill *s)
{
	ws_lsn first = 0;

	for (size_t i = 0; i < s->ngroups; i++)
		if (s->groups[i]->taken && (!first || s->groups[i]->first < first))
			first = s->groups[i]->first;
	return first;
}

void
ws_spill_done(struct ws_spill *s)
{
	if (!s->taken)
		return;
	for (size_t i = 0; i < s->ngroups; i++) {
		struct ws_spillgroup *g = s->groups[i];

		if (!g->taken)
			continue;
		for (size_t k = 0; k < NWORDS; k++)
			g->has[k] &= ~g->mine[k];
		memset(g->mine, 0, sizeof g->mine);
		g->n -= g->taken;
		s->n -= g->taken;
		g->taken = 0;
	}
	s->taken = 0;
	sweep(s);
}

static size_t
group_reap(struct ws_spillgroup *g, ws_xid oldest)
{
	uint32_t before = g->n;

	for (uint32_t i = 0; i < WS_SPILL_XIDS && g->n; i++) {
		ws_xid xid = g->no * WS_SPILL_XIDS + i;

		if (ws_spill_bit(g->has, xid) && (int32_t)(xid - oldest) < 0) {
			g->has[i / 64] &= ~(UINT64_C(1) << i % 64);
			g->n--;
		}
	}
	return before - g->n;
}

size_t
ws_spill_reap(struct ws_spill *s, ws_xid oldest)
{
	size_t n = 0;

	if (!s->n)
		return 0;
	for (size_t i = 0; i < s->ngroups; i++)
		if ((int32_t)(s->groups[i]->no * WS_SPILL_XIDS - oldest) < 0)
			n += group_reap(s->groups[i], oldest);
	s->n -= n;
	if (n)
		sweep(s);
	return n;
}

size_t
ws_spill_abandon(struct ws_spill *s, const ws_xid *keep, size_t n)
{
	size_t before = s->n;

	if (!before)
		return 0;
	/* As for a commit: what is kept is taken, and then the rest goes. */
	for (size_t i = 0; i < n; i++)
		(void)ws_spill_take(s, keep[i]);
	for (size_t i = 0; i < s->ngroups; i++) {
		struct ws_spillgroup *g = s->groups[i];

		memcpy(g->has, g->mine, sizeof g->has);
		memset(g->mine, 0, sizeof g->mine);
		s->n -= g->n - g->taken;
		g->n = g->taken;
		g->taken = 0;
	}
	s->taken = 0;
	sweep(s);
	return before - s->n;
}
