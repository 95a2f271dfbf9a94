/* Texts in the place of values, in frames that were already put. */
#include <string.h>

#include "oracle-int.h"
#include "ws/change.h"
#include "ws/cursor.h"

/* One frame with its fixes; *used of them. */
static int
patch_frame(const struct ws_buf *from, const struct oracle_fix *fix, size_t n, const uint8_t *texts,
			struct ws_buf *out, size_t *used, struct ws_err *err)
{
	size_t frame = fix->frame, at = frame, to = out->len;
	size_t end = frame + 4 + (size_t)ws_le32(from->data + frame);
	size_t i = 0;

	for (; i < n && fix[i].frame == frame; i++) {
		size_t len = ws_le32(from->data + fix[i].at);

		ws_buf_put(out, from->data + at, fix[i].at - at);
		ws_buf_putstr(out, (const char *)texts + fix[i].text, fix[i].len);
		at = fix[i].at + 4 + len;
	}
	ws_buf_put(out, from->data + at, end - at);
	size_t size = out->len - to - 4;

	if (size > WS_CHANGE_MAX_FRAME)
		return ws_err_op(err, "row_too_long", "the row at " WS_LSN_FMT " has %zu bytes as text",
						 WS_LSN_ARG(fix->lsn), size);
	ws_store32(out->data + to, (uint32_t)size);
	*used = i;
	return 0;
}

int
oracle_patch(const struct ws_buf *from, const struct oracle_fix *fix, size_t n,
			 const uint8_t *texts, struct ws_buf *out, struct ws_err *err)
{
	size_t at = 0, used = 0;

	out->len = 0;
	for (size_t i = 0; i < n; i += used) {
		ws_buf_put(out, from->data + at, fix[i].frame - at);
		if (patch_frame(from, fix + i, n - i, texts, out, &used, err) != 0)
			return -1;
		at = fix[i].frame + 4 + (size_t)ws_le32(from->data + fix[i].frame);
	}
	ws_buf_put(out, from->data + at, from->len - at);
	return 0;
}
