/* Prometheus text written to a file (--metrics FILE), replaced atomically, for the
 * textfile collector.  A handle of a closed set is a no-op, so that callers need no condition. */
#ifndef WS_METRICS_H
#define WS_METRICS_H

#include "ws/err.h"

struct ws_metrics;

enum ws_metric_kind { WS_COUNTER, WS_GAUGE };

/* path NULL: values are kept, nothing is written. */
struct ws_metrics *ws_metrics_new(const char *path);
void ws_metrics_free(struct ws_metrics *m);
const char *ws_metrics_path(const struct ws_metrics *m); /* may be NULL */

/* Returns the place of the value (valid until ws_metrics_free): add to it directly.  name without
 * labels, e.g. "walshadow_received_bytes_total"; labels "" or `reason="x"`; help one sentence. */
double *ws_metric(struct ws_metrics *m, enum ws_metric_kind kind, const char *name, const char *labels,
                  const char *help);

/* Writes when at least interval seconds have passed since the last write (0: now). */
int ws_metrics_write(struct ws_metrics *m, double interval, struct ws_err *err);

#endif
