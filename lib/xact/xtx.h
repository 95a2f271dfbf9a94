/* Unfinished transactions: what a (sub)transaction has written, by position in the WAL.  Private
 * to lib/xact.
 *
 * A (sub)transaction is an ws_xtx, found by its xid.  Its records are a list of LSNs, 8 bytes
 * each; past the table's budget the longest list becomes a bitmap of WAL pages (1 bit per 8 kB)
 * whose records are looked at again, by xid, when the list is read (merge.c).  When no list is long
 * and there are still too many (sub)transactions, the oldest are spilled: xid and pages alone
 * remain (spill.h).  Nothing here reads a record.  Invariants:
 *   - positions of one xtx ascend, and were appended in the order of the WAL;
 *   - the table's list of transactions is in the order of their first record, so its head is the
 *     oldest WAL that is still needed. */
#ifndef WS_XTX_H
#define WS_XTX_H

#include "spill.h"
#include "ws/mem.h"
#include "ws/types.h"

#define WS_XTX_INLINE 4 /* positions without a chunk: most transactions are small */

struct ws_poschunk {
	struct ws_poschunk *next;
	uint32_t n, cap;
	ws_lsn at[];
};

/* A main-fork file (or the init fork of an unlogged one) that this (sub)transaction made. */
struct ws_birth {
	ws_lsn lsn;
	ws_oid spc, rel;
	bool unlogged;      /* only its init fork was logged */
	ws_lsn first_row;   /* of a row in it, 0 none */
	ws_lsn first_image; /* of a page image in it, 0 none */
	bool toast_rows;    /* rows of a TOAST table */
};

/* What DDL left in this (sub)transaction; most have none. */
struct ws_xddl {
	struct ws_birth *births;
	size_t nbirths, births_cap, last_birth;
	ws_oid last_miss; /* a filenode looked for in vain */
	ws_lsn *invals; /* XLOG_XACT_INVALIDATIONS records that name relations */
	size_t ninvals, invals_cap;
};

struct ws_xtx {
	ws_xid xid;
	bool spilled;          /* its positions are in the table's spill: only ddl is its own */
	ws_lsn first;          /* start of its first remembered record */
	struct ws_xtx *older, *newer;
	uint64_t n;            /* positions remembered, also those in the page map */
	struct ws_poschunk *head, *tail;
	struct ws_pagemap *pages;
	struct ws_xddl *ddl;
	ws_lsn at[WS_XTX_INLINE];
};

struct ws_xtab {
	struct ws_xslot {
		ws_xid xid; /* 0: empty */
		struct ws_xtx *tx;
	} *slots;
	uint32_t mask, used;
	struct ws_xtx *oldest, *newest;
	struct ws_xtx *last; /* the one found last */
	struct ws_xtx *free_tx;
	struct ws_poschunk *free_chunk[3];
	struct ws_spill spill;
	size_t bytes, budget; /* of transactions and positions, but for the spill's */
	size_t bar;           /* where the budget is looked after */
	uint64_t merges;      /* lists turned into page maps */
	uint64_t spills;      /* transactions spilled */
};

void ws_xtab_init(struct ws_xtab *t, size_t budget);
void ws_xtab_fini(struct ws_xtab *t);

struct ws_xtx *ws_xtab_find_slow(struct ws_xtab *t, ws_xid xid);
/* Found or made; `first` is for a new one. */
struct ws_xtx *ws_xtab_get_slow(struct ws_xtab *t, ws_xid xid, ws_lsn first);
void ws_xtab_drop(struct ws_xtab *t, struct ws_xtx *tx);
/* By xid, spilled or not.  False: there is none. */
bool ws_xtab_end(struct ws_xtab *t, ws_xid xid);
/* At or below the first position of each, or of xid's; 0 none. */
ws_lsn ws_xtab_first(const struct ws_xtab *t);
ws_lsn ws_xtab_first_of(const struct ws_xtab *t, ws_xid xid);
/* Drops every transaction older than `oldest` (modulo 2^32): they crashed.  Returns how many. */
size_t ws_xtab_reap(struct ws_xtab *t, ws_xid oldest);

/* Drops every transaction but those in keep, whose n xids ascend as numbers.  Returns how many. */
size_t ws_xtab_abandon(struct ws_xtab *t, const ws_xid *keep, size_t n);

void ws_xtx_append_slow(struct ws_xtab *t, struct ws_xtx *tx, ws_lsn at);
struct ws_birth *ws_xtx_birth(struct ws_xtx *tx, ws_oid rel); /* by filenode, or NULL */
struct ws_birth *ws_xtx_add_birth(struct ws_xtx *tx);
void ws_xtx_add_inval(struct ws_xtx *tx, ws_lsn at);

static inline struct ws_xtx *
ws_xtab_find(struct ws_xtab *t, ws_xid xid)
{
	return t->last && t->last->xid == xid ? t->last : ws_xtab_find_slow(t, xid);
}

static inline struct ws_xtx *
ws_xtab_get(struct ws_xtab *t, ws_xid xid, ws_lsn first)
{
	return t->last && t->last->xid == xid ? t->last : ws_xtab_get_slow(t, xid, first);
}

static inline void
ws_xtx_append(struct ws_xtab *t, struct ws_xtx *tx, ws_lsn at)
{
	if (tx->n < WS_XTX_INLINE && !tx->pages)
		tx->at[tx->n++] = at;
	else if (tx->tail && tx->tail->n < tx->tail->cap) {
		tx->tail->at[tx->tail->n++] = at;
		tx->n++;
	} else {
		ws_xtx_append_slow(t, tx, at);
	}
}

/* ---- reading positions ---- */

/* Positions of one xtx in order, from the list; page maps are merge.c's. */
struct ws_positer {
	const struct ws_xtx *tx;
	const struct ws_poschunk *chunk;
	uint32_t i;
	bool inl; /* still among the inline ones */
};

void ws_positer_init(struct ws_positer *it, const struct ws_xtx *tx);
/* 0 at the end. */
static inline ws_lsn
ws_positer_next(struct ws_positer *it)
{
	if (it->inl) {
		if (it->i < it->tx->n && it->i < WS_XTX_INLINE)
			return it->tx->at[it->i++];
		it->inl = false;
		it->chunk = it->tx->head;
		it->i = 0;
	}
	while (it->chunk) {
		if (it->i < it->chunk->n)
			return it->chunk->at[it->i++];
		it->chunk = it->chunk->next;
		it->i = 0;
	}
	return 0;
}

#endif
