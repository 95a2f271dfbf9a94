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

/* What is shown is a line each, without control characters. */
static void
check_shown(const struct ws_history *h, bool json)
{
	struct ws_buf b = {0};
	size_t lines = 0;

	ws_history_show(h, json, &b);
	for (size_t i = 0; i < b.len; i++) {
		lines += b.data[i] == '\n';
		if ((b.data[i] < 0x20 && b.data[i] != '\n') || b.data[i] == 0x7f)
			abort();
	}
	if (lines != h->n + 1)
		abort();
	ws_history_path(h, 1, UINT64_MAX, json, &b);
	ws_buf_free(&b);
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
	check_shown(&h, false);
	check_shown(&h, true);
	ws_history_fini(&h);
	(void)sum;
	return 0;
}
