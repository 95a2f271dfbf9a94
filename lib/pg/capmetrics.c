/* The metrics of a capture; see capture.h. */
#include "capture.h"
#include "ws/metrics.h"
#include "ws/tool.h"

void
cap_metrics(struct cap *c)
{
	struct ws_metrics *m = ws_tool_metrics();

	c->m_boundaries = ws_metric(m, WS_COUNTER, "walshadow_catalog_boundaries_total", "",
	                            "Catalog boundaries of followed databases that were captured");
	c->m_temporary = ws_metric(m, WS_COUNTER, "walshadow_catalog_temporary_boundaries_total", "",
	                           "Catalog boundaries that touched temporary relations alone: nothing to capture");
	c->m_captures = ws_metric(m, WS_COUNTER, "walshadow_catalog_captures_total", "",
	                          "Reads of the shadow that were stored");
	c->m_retries = ws_metric(m, WS_COUNTER, "walshadow_catalog_read_retries_total", "",
	                         "Reads of the shadow that failed and were repeated");
	c->m_wait = ws_metric(m, WS_COUNTER, "walshadow_catalog_wait_seconds_total", "",
	                      "Time spent waiting for the shadow to reach a boundary");
	c->m_capture = ws_metric(m, WS_COUNTER, "walshadow_catalog_capture_seconds_total", "",
	                         "Time spent reading the shadow and storing what it showed");
	c->m_replay = ws_metric(m, WS_GAUGE, "walshadow_catalog_shadow_replay_lsn", "",
	                        "Replay position of the shadow when it was last asked");
	c->m_lag_bytes = ws_metric(m, WS_GAUGE, "walshadow_catalog_replay_lag_bytes", "",
	                           "WAL that the shadow must still replay to the boundary waited for");
	c->m_lag_seconds = ws_metric(m, WS_GAUGE, "walshadow_catalog_replay_lag_seconds", "",
	                             "How long the boundary at hand has been waited for");
}
