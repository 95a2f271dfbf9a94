/* Fuzz target: text into a value.  What is accepted must survive text -> value -> text -> value. */
#include <stdlib.h>
#include <string.h>

#include "ws/copytext.h"
#include "ws/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_arena arena = {0};
	struct ws_buf text = {0}, one = {0}, two = {0};
	struct ws_value v, w;

	if (size < 2)
		return 0;
	enum ws_kind kind = data[0] % WS_K_COUNT, elem = data[1] % WS_K_COUNT;

	if (ws_value_from_text(kind, elem, (const char *)data + 2, size - 2, &arena, &v, NULL) == 0) {
		ws_value_text(&v, &text);
		if (ws_value_from_text(kind, elem, text.len ? (char *)text.data : "", text.len, &arena, &w, NULL) != 0)
			abort();
		ws_value_put(&one, &v);
		ws_value_put(&two, &w);
		if (one.len != two.len || (one.len && memcmp(one.data, two.data, one.len) != 0))
			abort();
	}
	struct ws_copyfield f[4];
	char *row = malloc(size);

	memcpy(row, data, size);
	(void)ws_copytext_split(row, size, f, data[0] & 3);
	free(row);
	ws_buf_free(&text);
	ws_buf_free(&one);
	ws_buf_free(&two);
	ws_arena_free(&arena);
	return 0;
}
