/* The way through an archive; see ws/arcpath.h.
 * The rule is xlogrecovery.c's, XLogFileReadAnyTLI: a timeline counts from the segment that holds
 * its beginning on. */
#include <stdlib.h>

#include "ws/arcpath.h"
#include "ws/lsn.h"
#include "ws/mem.h"

ws_tli
ws_arcpath_tli(const struct ws_history *h, uint64_t segno, uint32_t segsize)
{
	return ws_history_name_of(h, segno * segsize, segsize);
}

bool
ws_arcpath_required(const struct ws_history *h, uint64_t segno, uint32_t segsize)
{
	return h->n && segno < ws_segno(h->entries[h->n - 1].end, segsize);
}

static int
by_segno(const void *a, const void *b)
{
	const struct ws_arcseg *x = a, *y = b;

	if (x->segno != y->segno)
		return x->segno < y->segno ? -1 : 1;
	return (x->tli > y->tli) - (x->tli < y->tli);
}

void
ws_arcpath_sort(struct ws_arcseg *segs, size_t n)
{
	if (n)
		qsort(segs, n, sizeof *segs, by_segno);
}

/* Appends first..last, cut where h changes its timeline. */
static void
add_span(const struct ws_history *h, uint32_t segsize, uint64_t first, uint64_t last,
		 struct ws_arcspan **spans, size_t *n)
{
	while (first <= last) {
		ws_tli tli = ws_arcpath_tli(h, first, segsize);
		uint64_t to = last;

		/* The nearest beginning of another timeline that lies in between. */
		for (size_t i = 0; i < h->n; i++) {
			uint64_t begin = ws_segno(h->entries[i].end, segsize);

			if (begin > first && begin <= to)
				to = begin - 1;
		}
		if (*n && (*spans)[*n - 1].tli == tli && (*spans)[*n - 1].last + 1 == first) {
			(*spans)[*n - 1].last = to;
		} else {
			*spans = ws_realloc(*spans, (*n + 1) * sizeof **spans);
			(*spans)[(*n)++] = (struct ws_arcspan){tli, first, to};
		}
		first = to + 1;
	}
}

void
ws_arcpath_check(const struct ws_history *h, uint32_t segsize, struct ws_arcseg *segs, size_t n,
				 uint64_t from, struct ws_arccheck *out)
{
	uint64_t next = from; /* the segment that must come; UINT64_MAX: any */

	*out = (struct ws_arccheck){0};
	ws_arcpath_sort(segs, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t s = segs[i].segno;

		if (segs[i].tli != ws_arcpath_tli(h, s, segsize)) {
			out->off_path++;
			continue;
		}
		if (next != UINT64_MAX && s < next)
			continue;
		if (next != UINT64_MAX && s > next)
			add_span(h, segsize, next, s - 1, &out->missing, &out->nmissing);
		add_span(h, segsize, s, s, &out->there, &out->nthere);
		next = s + 1;
	}
	if (next != UINT64_MAX && ws_arcpath_required(h, next, segsize))
		add_span(h, segsize, next, ws_segno(h->entries[h->n - 1].end, segsize) - 1, &out->missing,
				 &out->nmissing);
}

void
ws_arccheck_fini(struct ws_arccheck *c)
{
	free(c->there);
	free(c->missing);
	*c = (struct ws_arccheck){0};
}
