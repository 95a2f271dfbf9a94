/* Fuzz target: the bytes of one varlena on disk, without header, as the type that the first byte
 * chooses: numeric, jsonb, arrays, inet. */
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ws_oid types[] = {1700, 3802, 1007, 1009, 3807, 1231, 869, 650, 1270, 1001};
	struct ws_attr attr = {.name = "c", .len = -1, .align = 'i', .typname = "t"};
	struct ws_rel rel = {.nspname = "s", .name = "r", .attrs = &attr, .natts = 1};
	struct ws_arena arena = {0};
	const struct ws_heapenv env = {.arena = &arena};
	struct ws_buf text = {0};
	struct ws_value v, w;

	if (size < 1)
		return 0;
	attr.typid = types[data[0] % (sizeof types / sizeof types[0])];
	uint8_t *body = malloc(size + 4); /* one byte of padding (hoff 24), header, bytes */

	body[0] = 0;
	ws_store32(body + 1, (uint32_t)(size + 3) << 2);
	memcpy(body + 5, data + 1, size - 1);
	const struct ws_tuple t = {body, (uint32_t)size + 4, 1, 0, 24};
	struct ws_heapdesc *d = ws_heapdesc_new(&rel, NULL, NULL, NULL);

	if (ws_heap_decode(d, &t, 0, &env, &v, NULL) == 0) {
		ws_value_text(&v, &text);
		/* What was decoded is what its text gives, but for text with bytes that no server sends. */
		if (attr.typid != 3807 && attr.typid != 1009 &&
		    ws_value_from_text(v.kind, d->cols[0].type.elem, (char *)text.data, text.len, &arena, &w, NULL) != 0)
			abort();
	}
	ws_buf_free(&text);
	ws_heapdesc_free(d);
	ws_arena_free(&arena);
	free(body);
	return 0;
}
