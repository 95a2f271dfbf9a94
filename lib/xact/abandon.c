/* A timeline begins: what was unfinished on the one before has ended, without a record that says so.  Only
 * what was prepared goes on. */
#include <stdlib.h>

#include "decoder.h"

static int
by_number(const void *a, const void *b)
{
	ws_xid x = *(const ws_xid *)a, y = *(const ws_xid *)b;

	return (x > y) - (x < y);
}

void
ws_abandon(struct ws_decoder *d)
{
	const struct ws_prepset *s = &d->prepared;
	size_t n = 0, k = 0;

	for (size_t i = 0; i < s->n; i++)
		n += 1 + s->e[i].nsubxids;
	ws_xid *keep = ws_malloc((n + 1) * sizeof *keep);

	for (size_t i = 0; i < s->n; i++) {
		keep[k++] = s->e[i].xid;
		for (uint32_t j = 0; j < s->e[i].nsubxids; j++)
			keep[k++] = s->e[i].subxids[j];
	}
	qsort(keep, n, sizeof *keep, by_number);
	d->st.abandoned += ws_xtab_abandon(&d->tab, keep, n);
	free(keep);
	/* Files whose owner is not known may be a prepared one's; without any they are nobody's. */
	if (!n)
		ws_orphans_fini(&d->orphans);
}
