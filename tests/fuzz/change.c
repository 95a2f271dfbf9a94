/* Fuzz target: the change stream's reader, as it is and with texts in UTF-8, and the JSON form of
 * whatever it accepted. */
#include <string.h>

#include "ws/change.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_all(const uint8_t *data, size_t size, bool utf8)
{
	struct ws_change_reader *r = ws_change_reader_new();
	struct ws_buf out = {0};
	struct ws_change c;
	struct ws_err err;

	if (utf8)
		ws_change_reader_utf8(r);
	if (size > 0)
		memcpy(ws_change_reader_room(r, size), data, size);
	ws_change_reader_fed(r, size);
	while (ws_change_next(r, &c, &err) == 1) {
		out.len = 0;
		ws_change_json(&c, r, &out);
	}
	ws_buf_free(&out);
	ws_change_reader_free(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_all(data, size, false);
	read_all(data, size, true);
	return 0;
}
