/* Prometheus text; see ws/metrics.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/metrics.h"
#include "ws/tool.h"

struct metric {
	struct metric *next;
	enum ws_metric_kind kind;
	char *name, *labels, *help;
	double value;
};

struct ws_metrics {
	char *path;
	struct metric *first, **last;
	uint64_t written_us;
};

struct ws_metrics *
ws_metrics_new(const char *path)
{
	struct ws_metrics *m = ws_calloc(1, sizeof *m);

	m->path = path ? ws_strdup(path) : NULL;
	m->last = &m->first;
	return m;
}

const char *
ws_metrics_path(const struct ws_metrics *m)
{
	return m->path;
}

void
ws_metrics_free(struct ws_metrics *m)
{
	if (!m)
		return;
	for (struct metric *x = m->first, *next; x; x = next) {
		next = x->next;
		free(x->name);
		free(x->labels);
		free(x->help);
		free(x);
	}
	free(m->path);
	free(m);
}

double *
ws_metric(struct ws_metrics *m, enum ws_metric_kind kind, const char *name, const char *labels,
          const char *help)
{
	for (struct metric *x = m->first; x; x = x->next)
		if (!strcmp(x->name, name) && !strcmp(x->labels, labels))
			return &x->value;
	struct metric *x = ws_calloc(1, sizeof *x);

	x->kind = kind;
	x->name = ws_strdup(name);
	x->labels = ws_strdup(labels);
	x->help = ws_strdup(help);
	/* Samples of one name stay together, as the format wants. */
	struct metric **at = m->last;

	for (struct metric *y = m->first; y; y = y->next)
		if (!strcmp(y->name, name))
			at = &y->next;
	x->next = *at;
	*at = x;
	if (at == m->last)
		m->last = &x->next;
	return &x->value;
}

int
ws_metrics_write(struct ws_metrics *m, double interval, struct ws_err *err)
{
	struct ws_buf b = {0};
	uint64_t now = ws_now_us();
	const char *prev = "";

	if (!m->path || (interval > 0 && m->written_us && (double)(now - m->written_us) < interval * 1e6))
		return 0;
	m->written_us = now;
	for (struct metric *x = m->first; x; x = x->next) {
		if (strcmp(prev, x->name))
			ws_buf_printf(&b, "# HELP %s %s\n# TYPE %s %s\n", x->name, x->help, x->name,
			              x->kind == WS_COUNTER ? "counter" : "gauge");
		prev = x->name;
		ws_buf_printf(&b, "%s%s%s%s %.17g\n", x->name, *x->labels ? "{" : "", x->labels,
		              *x->labels ? "}" : "", x->value);
	}
	int rc = ws_file_replace(m->path, b.data ? (void *)b.data : "", b.len, 0644, false, err);

	ws_buf_free(&b);
	return rc;
}
