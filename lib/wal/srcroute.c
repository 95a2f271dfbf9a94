/* The route of a WAL source across the timelines of its directory.
 *
 * `hist` is the history of the timeline read towards, the newest in the directory that descends from
 * the start's.  A segment is read under the name of the newest timeline of the route that has bytes
 * in it. */
#include <stdlib.h>

#include "walsrcpriv.h"
#include "ws/mem.h"

static int
descending(const void *a, const void *b)
{
	ws_tli x = *(const ws_tli *)a, y = *(const ws_tli *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Timelines of the directory, newest first, each maybe more than once.  Caller frees. */
static ws_tli *
timelines(const struct ws_walnames *l, size_t *n)
{
	ws_tli *t = ws_malloc((l->n + l->nhist + 1) * sizeof *t), last = 0;

	*n = 0;
	for (size_t i = 0; i < l->nhist; i++)
		t[(*n)++] = l->hist[i];
	for (size_t i = 0; i < l->n; i++)
		if (l->segs[i].tli != last)
			t[(*n)++] = last = l->segs[i].tli;
	qsort(t, *n, sizeof *t, descending);
	return t;
}

int
ws_srcroute_choose(struct ws_walsrc *s, const struct ws_walnames *l, ws_tli from, struct ws_err *err)
{
	size_t n;
	ws_tli *t = timelines(l, &n), last = 0;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		struct ws_history h;

		if (t[i] == last || t[i] < from)
			continue;
		last = t[i];
		if ((rc = ws_walnames_history(s->spec, t[i], &h, err)) < 0)
			break;
		rc = !from || ws_history_end(&h, from) != 0;
		if (rc) {
			ws_history_fini(&s->hist);
			s->hist = h;
			s->hist_known = true;
		} else {
			ws_history_fini(&h);
		}
	}
	free(t);
	if (rc == 0 && from) {
		ws_history_fini(&s->hist);
		s->hist = (struct ws_history){.tli = from};
		s->hist_known = true;
	}
	return rc < 0 ? -1 : 0;
}

ws_tli
ws_srcroute_tli(const struct ws_walsrc *s, ws_lsn seg)
{
	return ws_history_name_of(&s->hist, seg, s->segsize);
}

bool
ws_srcroute_has(const struct ws_walsrc *s, ws_tli tli, ws_lsn seg)
{
	ws_lsn end = ws_history_end(&s->hist, tli);

	return end > seg && tli <= ws_srcroute_tli(s, seg);
}
