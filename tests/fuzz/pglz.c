/* Fuzz target: pglz decompression; the first two bytes are the length wanted. */
#include <stdlib.h>

#include "ws/pglz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t n = data[0] + 256u * data[1];
	uint8_t *out = malloc(n + 1);

	ws_pglz_decompress(data + 2, size - 2, out, n);
	free(out);
	return 0;
}
