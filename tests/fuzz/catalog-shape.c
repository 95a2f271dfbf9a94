/* Bytes of the catalog history: a relation (first byte even) or a type (odd). */
#include <stdlib.h>
#include "ws/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ws_buf b = {0};

	if (n < 1)
		return 0;
	if (p[0] % 2) {
		struct ws_type *t = ws_type_decode(p + 1, n - 1, NULL);

		if (t)
			ws_type_encode(t, &b);
		ws_type_free(t);
	} else {
		struct ws_rel *r = ws_rel_decode(p + 1, n - 1, NULL);

		if (r)
			ws_rel_encode(r, &b);
		ws_rel_free(r);
	}
	/* What decodes encodes to the same bytes. */
	if (b.len && (b.len != n - 1 || __builtin_memcmp(b.data, p + 1, b.len)))
		abort();
	ws_buf_free(&b);
	return 0;
}
