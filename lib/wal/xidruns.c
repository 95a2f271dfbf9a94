/* Runs of subtransactions; see xidruns.h. */
#include <stdlib.h>
#include <string.h>

#include "xidruns.h"

void
ws_xidruns_free(struct ws_xidruns *s)
{
	free(s->r);
	*s = (struct ws_xidruns){0};
}

/* The first run that ends at or after xid. */
static uint32_t
at(const struct ws_xidruns *s, ws_xid xid)
{
	uint32_t lo = 0, hi = s->n;

	/* Most are asked for in the order in which they were handed out. */
	if (s->n && s->r[s->n - 1].last < xid)
		return s->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->r[mid].last < xid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
holds(const struct ws_xidruns *s, uint32_t i, ws_xid xid)
{
	return i < s->n && s->r[i].first <= xid;
}

ws_xid
ws_xidruns_find(const struct ws_xidruns *s, ws_xid xid)
{
	uint32_t i = at(s, xid);

	return holds(s, i, xid) ? s->r[i].top : 0;
}

static void
insert(struct ws_xidruns *s, uint32_t i, struct ws_xidrun run)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->r = ws_realloc(s->r, s->cap * sizeof *s->r);
	}
	memmove(s->r + i + 1, s->r + i, (s->n - i) * sizeof *s->r);
	s->r[i] = run;
	s->n++;
}

void
ws_xidruns_del(struct ws_xidruns *s, ws_xid xid)
{
	uint32_t i = at(s, xid);
	struct ws_xidrun *r = s->r + i;

	if (!holds(s, i, xid) || !r->top)
		return;
	if (r->first == r->last) {
		r->top = 0;
		if (++s->dead > 64 && s->dead > s->n / 2)
			ws_xidruns_tidy(s);
	} else if (r->first == xid) {
		r->first++;
	} else if (r->last == xid) {
		r->last--;
	} else {
		struct ws_xidrun rest = {xid + 1, r->last, r->top};

		r->last = xid - 1;
		insert(s, i + 1, rest);
	}
}

void
ws_xidruns_put(struct ws_xidruns *s, ws_xid xid, ws_xid top)
{
	uint32_t i = at(s, xid);

	if (holds(s, i, xid)) {
		if (s->r[i].top == top)
			return;
		if (s->r[i].first == s->r[i].last) {
			s->dead -= !s->r[i].top;
			s->r[i].top = top;
			return;
		}
		/* Another answer than before, in the middle of a run. */
		ws_xidruns_del(s, xid);
		i = at(s, xid);
	}
	struct ws_xidrun *before = i ? &s->r[i - 1] : NULL;

	if (before && before->top == top && before->last + 1 == xid)
		before->last = xid;
	else if (i < s->n && s->r[i].top == top && s->r[i].first == xid + 1)
		s->r[i].first = xid;
	else
		insert(s, i, (struct ws_xidrun){xid, xid, top});
}

void
ws_xidruns_tidy(struct ws_xidruns *s)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		if (!s->r[i].top)
			continue;
		if (k && s->r[k - 1].top == s->r[i].top && s->r[k - 1].last + 1 == s->r[i].first)
			s->r[k - 1].last = s->r[i].last;
		else
			s->r[k++] = s->r[i];
	}
	s->n = k;
	s->dead = 0;
}

static bool
precedes(ws_xid a, ws_xid b)
{
	return (int32_t)(a - b) < 0;
}

void
ws_xidruns_reap(struct ws_xidruns *s, ws_xid oldest)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct ws_xidrun *r = &s->r[i];

		if (!r->top || !precedes(r->first, oldest))
			continue;
		if (precedes(r->last, oldest))
			r->top = 0;
		else
			r->first = oldest;
	}
	ws_xidruns_tidy(s);
}

bool
ws_xidruns_through(struct ws_xidruns *s, ws_xid xid, ws_xid last)
{
	uint32_t i = at(s, xid);

	if (!holds(s, i, xid) || last < s->r[i].last || (i + 1 < s->n && s->r[i + 1].first <= last))
		return false;
	s->r[i].last = last;
	return true;
}
