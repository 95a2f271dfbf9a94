/* Where to start again after a restart; see ws/xact.h. */
#include <string.h>

#include "ws/xact.h"

#define FIRST_STEP (64u * 1024)

void
ws_floorq_init(struct ws_floorq *q)
{
	q->n = 0;
	q->step = FIRST_STEP;
}

/* Every second entry goes, the spacing doubles.  Who acknowledges a position in between gets the
 * lower neighbour's floor: more is read again, nothing is missed. */
static void
thin(struct ws_floorq *q)
{
	size_t k = 0;

	for (size_t i = 0; i < q->n; i += 2)
		q->e[k++] = q->e[i];
	q->n = k;
	q->step *= 2;
}

void
ws_floorq_push(struct ws_floorq *q, struct ws_pos at, struct ws_pos floor)
{
	/* The last entry may move up as long as it stays near the one before it: an idle stream's
	 * latest commit is always there. */
	if (q->n >= 2 && at.lsn - q->e[q->n - 2].at.lsn < q->step && at.tli == q->e[q->n - 2].at.tli) {
		q->e[q->n - 1] = (struct ws_floor){at, floor};
		return;
	}
	if (q->n == WS_FLOORQ_MAX)
		thin(q);
	q->e[q->n++] = (struct ws_floor){at, floor};
}

bool
ws_floorq_take(struct ws_floorq *q, ws_lsn ack, struct ws_pos *floor)
{
	size_t k = 0;

	while (k < q->n && q->e[k].at.lsn <= ack)
		k++;
	if (k == 0)
		return false;
	*floor = q->e[k - 1].floor;
	/* The one found stays: it serves acknowledgements up to the next. */
	memmove(q->e, q->e + (k - 1), (q->n - (k - 1)) * sizeof q->e[0]);
	q->n -= k - 1;
	if (q->n < WS_FLOORQ_MAX / 4)
		q->step = FIRST_STEP;
	return true;
}
