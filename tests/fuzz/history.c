/* Fuzz target: timeline history files. */
#include "ws/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	ws_history_fini(&h);
	(void)sum;
	return 0;
}
