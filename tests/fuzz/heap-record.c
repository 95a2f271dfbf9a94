/* Fuzz target: the body of a heap record.  Byte 0: resource manager, byte 1: info, byte 2: length
 * of the main data; the rest is block 0's data. */
#include <string.h>

#include "ws/heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_rec rec = {0};
	static struct ws_record r;
	struct ws_heaprec h;
	struct ws_tuple t;

	if (size < 3 || (size_t)data[2] + 3 > size)
		return 0;
	rec.rmid = data[0] & 1 ? WS_RM_HEAP : WS_RM_HEAP2;
	rec.info = data[1];
	memset(&r, 0, sizeof r);
	r.rec = &rec;
	r.main = data + 3;
	r.main_len = data[2];
	size -= 3u + data[2];
	r.nblocks = data[0] >> 1 & 1;
	r.blocks[0].data_len = (uint16_t)(size > UINT16_MAX ? UINT16_MAX : size);
	r.blocks[0].data = size ? data + 3 + data[2] : NULL;
	if (ws_heaprec_parse(&r, &h, NULL) != 1)
		return 0;
	for (uint32_t i = 0; h.op == WS_HEAP_TRUNCATE && i < h.noids; i++)
		(void)ws_heaprec_oid(&h, i);
	if (h.op == WS_HEAP_MULTI_INSERT && h.flags & WS_HR_NEW) {
		struct ws_heap_multi m = ws_heap_multi(&h);

		while (ws_heap_multi_next(&m, &t, NULL, NULL) == 1)
			;
	}
	return 0;
}
