/* Metrics, and run/ws-emit.NAME.status for people and the supervisor; see lib/ch/emit.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"
#include "ws/file.h"
#include "ws/tool.h"

#define STATUS_INTERVAL_US 1000000

void
emit_status_init(struct ws_emit *e)
{
	struct ws_metrics *m = e->metrics;

	e->m_rows = ws_metric(m, WS_COUNTER, "walshadow_emit_rows_total", "",
						  "Rows that the destination confirmed.");
	e->m_bytes = ws_metric(m, WS_COUNTER, "walshadow_emit_bytes_total", "",
						   "Bytes of inserts that the destination confirmed.");
	e->m_inserts = ws_metric(m, WS_COUNTER, "walshadow_emit_inserts_total", "",
							 "INSERTs that the destination confirmed.");
	e->m_statements = ws_metric(m, WS_COUNTER, "walshadow_emit_statements_total", "",
								"DDL, TRUNCATE and EXCHANGE statements run.");
	e->m_retries = ws_metric(m, WS_COUNTER, "walshadow_emit_retries_total", "",
							 "Requests that had to be tried again.");
	e->m_policy = ws_metric(m, WS_COUNTER, "walshadow_emit_unfit_values_total", "",
							"Values that a policy clamped or replaced.");
	e->m_unsupported = ws_metric(m, WS_COUNTER, "walshadow_emit_unsupported_values_total", "",
								 "Values of types that are not decoded.");
	e->m_skipped = ws_metric(m, WS_COUNTER, "walshadow_emit_skipped_rows_total", "",
							 "Row changes of tables that the routes leave out.");
	e->m_dropped = ws_metric(m, WS_COUNTER, "walshadow_emit_dropped_tables_total", "",
							 "Tables dropped at the source that stay by drop-table=warn.");
	e->m_lag = ws_metric(m, WS_GAUGE, "walshadow_emit_lag_seconds", "",
						 "Age of the oldest commit that is not durable at the destination.");
	e->m_ack = ws_metric(m, WS_GAUGE, "walshadow_emit_ack_lsn", "",
						 "Position up to which everything is durable at the destination.");
	e->m_sent = ws_metric(m, WS_GAUGE, "walshadow_emit_sent_lsn", "",
						  "Position above which nothing was ever sent.");
	e->m_success = ws_metric(m, WS_GAUGE, "walshadow_emit_last_success_seconds", "",
							 "Unix time of the last confirmed INSERT.");
	e->m_live = ws_metric(m, WS_GAUGE, "walshadow_emit_live_batches", "",
						  "Batches that are filled, queued or in flight.");
	e->m_held = ws_metric(m, WS_GAUGE, "walshadow_emit_live_bytes", "", "Bytes in those batches.");
	e->m_failing = ws_metric(m, WS_GAUGE, "walshadow_emit_failing", "",
							 "1 while the destination does not take data.");
}

/* One line of the file: no newline may come in. */
static void
put_line(struct ws_buf *b, const char *key, const char *value)
{
	ws_buf_printf(b, "%s=", key);
	for (; *value; value++)
		ws_buf_putc(b, *value == '\n' ? ' ' : (uint8_t)*value);
	ws_buf_putc(b, '\n');
}

void
emit_status(struct ws_emit *e, const char *state, bool now)
{
	uint64_t us = ws_now_us();
	struct ws_buf b = {0};
	struct ws_err err;
	int live = 0;

	if (!now && us - e->status_us < STATUS_INTERVAL_US)
		return;
	e->status_us = us;
	for (const struct ch_batch *x = e->oldest; x; x = x->next)
		live++;
	*e->m_live = live;
	*e->m_held = (double)e->held;
	/* The oldest change that is not durable; its commit's clock is the source's. */
	*e->m_lag = 0;
	if (e->oldest && e->oldest->time) {
		double lag = (double)ws_wall_us() / 1e6 - 946684800.0 - (double)e->oldest->time / 1e6;

		*e->m_lag = lag > 0 ? lag : 0;
	}
	put_line(&b, "STATE", state);
	ws_buf_printf(&b,
				  "ACK=" WS_LSN_FMT "\nSENT=" WS_LSN_FMT
				  "\nLIVE_BATCHES=%d\nROWS=%.0f\nLAG_SECONDS=%.3f\n",
				  WS_LSN_ARG(e->ack.lsn), WS_LSN_ARG(e->sent.lsn), live, *e->m_rows, *e->m_lag);
	if (e->failing_us)
		ws_buf_printf(&b, "FAILING_SECONDS=%.0f\nATTEMPTS=%u\n", (double)(us - e->failing_us) / 1e6,
					  e->failures);
	if (e->last_error)
		put_line(&b, "LAST_ERROR", e->last_error);
	char *path = ws_asprintf("%s/run/ws-emit.%s.status", e->o.state, e->o.consumer);

	if (ws_file_replace(path, b.data, b.len, 0600, false, &err) != 0)
		ws_debug("%s", err.msg);
	free(path);
	ws_buf_free(&b);
	if (ws_metrics_write(e->metrics, now ? 0 : 1, &err) != 0)
		ws_debug("%s", err.msg);
}
