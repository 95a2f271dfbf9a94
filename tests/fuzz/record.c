/* Fuzz target: a record taken apart, its images restored, its transaction record parsed. */
#include <stdlib.h>
#include <string.h>

#include "ws/pglz.h"
#include "ws/xactrec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches what the result points at. */
static unsigned
touch(const uint8_t *p, size_t n)
{
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_rec rec = {.start = 0x1000028, .data = data, .tot_len = (uint32_t)size};
	struct ws_record d;
	uint8_t page[8192];
	volatile unsigned sum = 0;

	if (size >= WS_REC_HDR_SIZE) {
		rec.info = data[16];
		rec.rmid = data[17];
	}
	if (ws_record_parse(&rec, &d, NULL) != 0)
		return 0;
	sum += touch(d.main, d.main_len);
	for (int i = 0; i < d.nblocks; i++) {
		const struct ws_block *b = &d.blocks[i];

		if (b->data)
			sum += touch(b->data, b->data_len);
		if (b->img && ws_fpi_restore(b, page, NULL) == 0)
			sum += touch(page, sizeof page);
		if (ws_record_block(&d, b->id) != b)
			abort();
	}
	(void)sum;
	return 0;
}
