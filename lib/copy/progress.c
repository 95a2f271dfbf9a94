/* One line on a terminal: tables, rows, bytes, time left; and the same as metrics. */
#include <stdio.h>

#include "ws/tool.h"
#include "copy-int.h"

#define EVERY_US 500000

/* Share of the work that is done, by pages; of a running table by the rows that are expected. */
static double
share(const struct copy *c)
{
	double done = c->pages_done;

	for (size_t i = 0; i < c->ntables; i++) {
		const struct copy_table *t = &c->tables[i];

		if (t->state == COPY_RUNS && t->tuples > 0)
			done += (t->pages + 1) * ((double)t->rows < t->tuples ? (double)t->rows / t->tuples : 0.99);
	}
	return c->pages_total > 0 ? done / c->pages_total : 0;
}

static void
show(const struct copy *c, uint64_t now)
{
	double seconds = (double)(now - c->started) / 1e6, part = share(c), left = part > 0.001 ? seconds / part - seconds : -1;

	fprintf(stderr, "\r%zu of %zu tables, %llu rows, %.1f MB, %.1f MB/s", c->done, c->total, (unsigned long long)c->rows,
	        (double)c->bytes / 1e6, seconds > 0 ? (double)c->bytes / 1e6 / seconds : 0);
	if (left >= 0 && c->done < c->total)
		fprintf(stderr, ", %u:%02u:%02u left", (unsigned)left / 3600, (unsigned)left / 60 % 60, (unsigned)left % 60);
	fputs("\033[K", stderr);
}

void
copy_progress(struct copy *c, bool now)
{
	uint64_t us = ws_now_us();
	struct ws_metrics *m = ws_tool_metrics();

	if (!now && us - c->shown < EVERY_US)
		return;
	c->shown = us;
	*ws_metric(m, WS_GAUGE, "walshadow_copy_tables", "", "Tables of this load.") = (double)c->total;
	*ws_metric(m, WS_COUNTER, "walshadow_copy_tables_done_total", "", "Tables read.") = (double)c->done;
	*ws_metric(m, WS_COUNTER, "walshadow_copy_rows_total", "", "Rows read.") = (double)c->rows;
	*ws_metric(m, WS_COUNTER, "walshadow_copy_bytes_total", "", "Bytes of COPY text read.") = (double)c->bytes;
	(void)ws_metrics_write(m, 1, NULL);
	if (ws_tool_progress())
		show(c, us);
}

void
copy_progress_end(struct copy *c)
{
	copy_progress(c, true);
	if (ws_tool_progress())
		fputc('\n', stderr);
}
