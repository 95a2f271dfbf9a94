/* A history for people and programs; see ws/history.h. */
#include <stdio.h>

#include "ws/history.h"
#include "ws/text.h"

static void
put_json_lsn(struct ws_buf *out, const char *key, ws_lsn lsn)
{
	if (lsn == UINT64_MAX)
		ws_buf_printf(out, ",\"%s\":null", key);
	else
		ws_buf_printf(out, ",\"%s\":\"" WS_LSN_FMT "\"", key, WS_LSN_ARG(lsn));
}

static void
put_range_json(struct ws_buf *out, const struct ws_history_range *r, const char *reason)
{
	ws_buf_printf(out, "{\"timeline\":%u", r->tli);
	put_json_lsn(out, "begin", r->begin);
	put_json_lsn(out, "end", r->end);
	if (reason) {
		ws_buf_puts(out, ",\"reason\":");
		ws_text_json(out, reason);
	}
	ws_buf_puts(out, "}\n");
}

void
ws_history_show(const struct ws_history *h, bool json, struct ws_buf *out)
{
	for (size_t i = 0; i <= h->n; i++) {
		const struct ws_history_entry *e = i < h->n ? &h->entries[i] : NULL;
		/* What the file has, not what follows from it. */
		struct ws_history_range r = {e ? e->tli : h->tli, i ? h->entries[i - 1].end : 0,
		                             e ? e->end : UINT64_MAX};
		char begin[32], end[32] = "open";

		if (json) {
			put_range_json(out, &r, e ? e->reason : NULL);
			continue;
		}
		snprintf(begin, sizeof begin, WS_LSN_FMT, WS_LSN_ARG(r.begin));
		if (e)
			snprintf(end, sizeof end, WS_LSN_FMT, WS_LSN_ARG(r.end));
		bool more = e && *e->reason;

		ws_buf_printf(out, "%-8u %-17s %-*s", r.tli, begin, more ? 18 : 0, end);
		if (more)
			ws_text_line(out, e->reason);
		ws_buf_putc(out, '\n');
	}
}

void
ws_history_path(const struct ws_history *h, ws_lsn from, ws_lsn to, bool json, struct ws_buf *out)
{
	for (size_t i = 0; i <= h->n; i++) {
		struct ws_history_range r = ws_history_range(h, i);

		r.begin = r.begin > from ? r.begin : from;
		r.end = r.end < to ? r.end : to;
		if (r.begin >= r.end)
			continue;
		if (json) {
			put_range_json(out, &r, NULL);
			continue;
		}
		ws_buf_printf(out, "%u " WS_LSN_FMT " ", r.tli, WS_LSN_ARG(r.begin));
		ws_buf_printf(out, r.end == UINT64_MAX ? "open\n" : WS_LSN_FMT "\n", WS_LSN_ARG(r.end));
	}
}
