/* (Sub)transactions that are known by their xid alone: too many to keep a list for each.  Private
 * to lib/xact.
 *
 * Xids come in groups of 65536 neighbours: a bit for each that has written something, and the WAL
 * pages on which any of them did.  Xids are handed out in order, so a group's pages lie together.
 * When one of them commits, these pages are looked at again for its records; what aborted costs
 * nothing.  A group that is empty again goes with its pages. */
#ifndef WS_SPILL_H
#define WS_SPILL_H

#include "pagemap.h"

#define WS_SPILL_XIDS 65536u

struct ws_spillgroup {
	uint32_t no;      /* xid / WS_SPILL_XIDS */
	uint32_t n, taken; /* xids; of these, of the commit at hand */
	ws_lsn first;     /* of any record of theirs, or below it */
	uint64_t has[WS_SPILL_XIDS / 64], mine[WS_SPILL_XIDS / 64]; /* mine: of the commit at hand */
	struct ws_pagemap pages;
};

struct ws_spill {
	struct ws_spillgroup **by_no; /* NULL: never used */
	struct ws_spillgroup **groups;
	size_t ngroups, cap;
	size_t n, taken; /* xids in all groups */
	ws_lsn first;    /* 0: none */
	size_t bytes;
};

void ws_spill_fini(struct ws_spill *s);
/* A position of xid, whose first one is at first or above. */
void ws_spill_put(struct ws_spill *s, ws_xid xid, ws_lsn first, ws_lsn at);
/* It ended.  False: not here. */
bool ws_spill_drop(struct ws_spill *s, ws_xid xid);
/* xid belongs to the commit at hand.  False: not here. */
bool ws_spill_take(struct ws_spill *s, ws_xid xid);
/* Those taken: the pages of all their groups (m is empty before), and the oldest. */
void ws_spill_pages(const struct ws_spill *s, struct ws_pagemap *m);
ws_lsn ws_spill_taken_first(const struct ws_spill *s);
/* The commit is over: those taken go. */
void ws_spill_done(struct ws_spill *s);
/* As ws_xtab_reap. */
size_t ws_spill_reap(struct ws_spill *s, ws_xid oldest);
/* As ws_xtab_abandon. */
size_t ws_spill_abandon(struct ws_spill *s, const ws_xid *keep, size_t n);

static inline bool
ws_spill_bit(const uint64_t *bits, ws_xid xid)
{
	return bits[xid % WS_SPILL_XIDS / 64] >> xid % 64 & 1;
}

static inline bool
ws_spill_has(const struct ws_spill *s, ws_xid xid)
{
	const struct ws_spillgroup *g = s->n ? s->by_no[xid / WS_SPILL_XIDS] : NULL;

	return g && ws_spill_bit(g->has, xid);
}

static inline bool
ws_spill_is_taken(const struct ws_spill *s, ws_xid xid)
{
	const struct ws_spillgroup *g = s->n ? s->by_no[xid / WS_SPILL_XIDS] : NULL;

	return g && ws_spill_bit(g->mine, xid);
}

#endif
