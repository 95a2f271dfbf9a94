/* Fuzz target: timeline history files.  However they are made, every byte has one owner, and a position
 * is proved on a timeline up to its end and no further. */
#include <stdlib.h>

#include "ws/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_range(const struct ws_history *h, size_t i)
{
	struct ws_history_range r = ws_history_range(h, i);

	if (r.begin < r.end &&
	    (ws_history_tli_at(h, r.begin) != r.tli || ws_history_tli_at(h, r.end - 1) != r.tli))
		abort();
	if (ws_history_end(h, r.tli) != r.end || ws_history_prove(h, r.tli, r.end, NULL) != 0)
		abort();
	if (r.end != UINT64_MAX && ws_history_prove(h, r.tli, r.end + 1, NULL) == 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_history h;
	volatile ws_lsn sum = 0;

	if (ws_history_parse(1000, (const char *)data, size, &h, NULL) != 0)
		return 0;
	for (size_t i = 0; i < h.n; i++) {
		sum += ws_history_end(&h, h.entries[i].tli);
		sum += ws_history_tli_at(&h, h.entries[i].end);
	}
	for (size_t i = 0; i <= h.n && i < 100; i++)
		check_range(&h, i);
	ws_history_fini(&h);
	(void)sum;
	return 0;
}
