/* Fuzz target: the record reader.  The first bytes of the input say how the rest is cut. */
#include <stdlib.h>
#include <string.h>

#include "ws/walread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
feed(const uint8_t *data, size_t size, ws_lsn at, size_t chunk)
{
	/* CRCs are trusted, so that a mutated record gets past its header. */
	struct ws_walreader *r = ws_walreader_new(0, 0, WS_READ_NO_CRC);
	struct ws_rec rec;
	struct ws_record d;

	ws_walreader_seek(r, at, at + 50);
	for (size_t done = 0; done < size;) {
		size_t n = size - done < chunk ? size - done : chunk;
		uint8_t *copy = malloc(n); /* exactly as long, for the address sanitizer */

		memcpy(copy, data + done, n);
		if (ws_walreader_feed(r, at + done, copy, n, NULL) != 0)
			abort();
		int rc;

		while ((rc = ws_walreader_next(r, &rec, NULL)) == 1)
			ws_record_parse(&rec, &d, NULL);
		free(copy);
		if (rc < 0)
			break;
		done += n;
	}
	ws_walreader_free(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 18)
		return 0;
	uint64_t at = 0;

	memcpy(&at, data + 2 + 8, 8); /* the first page's own address */
	feed(data + 2, size - 2, at & ~(uint64_t)8191, data[0] * 64u + data[1] + 1u);
	return 0;
}
