/* A transaction's positions in order; see merge.h. */
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "ws/cursor.h"

/* Where the first record of a page begins; at or past its end when a record fills it. */
static int
page_enter(struct ws_merge *m, struct ws_source *s, struct ws_err *err)
{
	const uint8_t *p = ws_posread_at(&m->rd, s->page, err);

	if (!p)
		return -1;
	/* XLogPageHeaderData: info @2, rem_len @16 */
	uint16_t info = ws_le16(p + 2);
	ws_lsn at = s->page + (info & WS_PAGE_LONG_HEADER ? WS_PAGE_HDR_LONG : WS_PAGE_HDR_SHORT);

	if (info & WS_PAGE_FIRST_IS_CONTRECORD)
		at += ((ws_lsn)ws_le32(p + 16) + 7) & ~(ws_lsn)7;
	s->at = at;
	return 0;
}

static bool
is_of(const struct ws_merge *m, const struct ws_source *s, ws_xid xid)
{
	return s->tx ? xid == s->tx->xid : ws_spill_is_taken(&m->d->tab.spill, xid);
}

/* The next record on the page map's pages that is this (sub)transaction's and wanted. */
static int
pages_next(struct ws_merge *m, struct ws_source *s, struct ws_err *err)
{
	for (;;) {
		ws_lsn end = s->page + WS_PAGE_SIZE;

		while (s->at && s->at < end && s->at < m->limit) {
			ws_lsn at = s->at;

			if (end - at < 8)
				return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": no record can begin here", WS_LSN_ARG(at));
			if (ws_posread_rec(&m->rd, at, err) != 0)
				return -1;
			s->at = at + (((ws_lsn)m->rd.rec.tot_len + 7) & ~(ws_lsn)7);
			if (!is_of(m, s, m->rd.rec.xid))
				continue;
			int rc = ws_skim_wanted(m->d, &m->rd.rec, err);

			if (rc < 0)
				return -1;
			if (rc > 0) {
				s->cur = at;
				return 0;
			}
		}
		s->page = ws_pagemap_next(s->pages, s->page ? s->page + WS_PAGE_SIZE : 0);
		if (s->page == UINT64_MAX || s->page >= m->limit) {
			s->cur = 0;
			return 0;
		}
		if (page_enter(m, s, err) != 0)
			return -1;
	}
}

static int
advance(struct ws_merge *m, struct ws_source *s, struct ws_err *err)
{
	if (s->pages)
		return pages_next(m, s, err);
	s->cur = ws_positer_next(&s->list);
	return 0;
}

static void
sift_down(struct ws_merge *m, size_t i)
{
	struct ws_source s = m->src[i];

	for (size_t k; (k = 2 * i + 1) < m->n; i = k) {
		if (k + 1 < m->n && m->src[k + 1].cur < m->src[k].cur)
			k++;
		if (s.cur <= m->src[k].cur)
			break;
		m->src[i] = m->src[k];
	}
	m->src[i] = s;
}

static int
add_source(struct ws_merge *m, const struct ws_xtx *tx, const struct ws_pagemap *pages,
           struct ws_err *err)
{
	struct ws_source *s = &m->src[m->n];

	*s = (struct ws_source){.tx = tx, .pages = pages};
	if (tx)
		ws_positer_init(&s->list, tx);
	if (advance(m, s, err) != 0)
		return -1;
	if (s->cur)
		m->n++;
	return 0;
}

int
ws_merge_init(struct ws_merge *m, struct ws_decoder *d, struct ws_xtx **tx, size_t n, ws_lsn limit,
              struct ws_err *err)
{
	memset(m, 0, sizeof *m);
	m->d = d;
	m->limit = limit;
	m->src = ws_malloc((n + 1) * sizeof *m->src);
	ws_posread_init(&m->rd, &d->place);
	for (size_t i = 0; i < n; i++)
		if (!tx[i]->spilled && add_source(m, tx[i], tx[i]->pages, err) != 0)
			return -1;
	if (d->tab.spill.taken) {
		ws_spill_pages(&d->tab.spill, &m->spilled);
		if (add_source(m, NULL, &m->spilled, err) != 0)
			return -1;
	}
	for (size_t i = m->n / 2; i-- > 0;)
		sift_down(m, i);
	return 0;
}

int
ws_merge_next(struct ws_merge *m, ws_lsn *at, struct ws_err *err)
{
	if (!m->n)
		return 0;
	struct ws_source *s = &m->src[0];

	*at = s->cur;
	if (advance(m, s, err) != 0)
		return -1;
	if (!s->cur)
		m->src[0] = m->src[--m->n];
	if (m->n > 1)
		sift_down(m, 0);
	return 1;
}

void
ws_merge_fini(struct ws_merge *m)
{
	ws_posread_fini(&m->rd);
	ws_pagemap_fini(&m->spilled);
	free(m->src);
	memset(m, 0, sizeof *m);
}
