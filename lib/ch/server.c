/* Queries that are waited for, retries, what the server can do, and the proof that nothing of this
 * consumer still runs; see lib/ch/emit.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"
#include "ws/tool.h"

/* ---- answers ---- */

char *
ch_tsv_next(char **at, bool *eol)
{
	char *s = *at, *o = s, *p = s;

	if (!*s)
		return NULL;
	for (; *p && *p != '\t' && *p != '\n'; p++) {
		if (*p == '\\' && p[1]) {
			static const char from[] = "bfnrt0", to[] = "\b\f\n\r\t";
			const char *e = strchr(from, *++p);

			*o++ = e ? to[e - from] : *p;
		} else {
			*o++ = *p;
		}
	}
	*eol = *p != '\t';
	*at = *p ? p + 1 : p;
	*o = 0;
	return s;
}

/* ---- failing and going on ---- */

double
emit_delay(unsigned attempt)
{
	double d = 0.1 * (double)(1u << (attempt < 8 ? attempt : 8));

	return d > 15 ? 15 : d;
}

bool
emit_backoff(struct ws_emit *e, const struct ws_err *why, int url)
{
	uint64_t now = ws_now_us();

	if (!e->failing_us) {
		e->failing_us = now;
		e->failures = 0;
	}
	/* The first one, then less and less often. */
	if ((e->failures & (e->failures - 1)) == 0)
		ws_warn("destination: %s attempt=%u", why->msg, e->failures + 1);
	e->failures++;
	free(e->last_error);
	e->last_error = ws_strdup(why->msg);
	*e->m_retries += 1;
	*e->m_failing = 1;
	emit_status(e, "retrying", false);
	ch_http_next(e->http, url);
	if (e->o.no_loop) {
		e->fatal = *why;
		return false;
	}
	return true;
}

void
emit_recovered(struct ws_emit *e)
{
	if (!e->failing_us)
		return;
	ws_info("destination answers again after %.1f s", (double)(ws_now_us() - e->failing_us) / 1e6);
	e->failing_us = 0;
	*e->m_failing = 0;
	emit_status(e, "running", true);
}

/* Waits while requests move on.  -1 when the wait is to end: a stop, or a fatal error. */
static int
pause_ms(struct ws_emit *e, double seconds, struct ws_err *err)
{
	uint64_t until = ws_now_us() + (uint64_t)(seconds * 1e6), now;

	while ((now = ws_now_us()) < until) {
		if (ws_tool_stopping())
			return ws_err_temp(err, "stopped while waiting for the destination: %s",
							   e->last_error ? e->last_error : "");
		emit_status(e, "retrying", false);
		if (emit_pump(e, -1, (int)((until - now) / 1000) + 1, NULL, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- queries ---- */

/* One attempt.  url -1: the current server.  kind "ask" for questions, "do" for statements: only
 * the latter count as queries that could still change something. */
static enum ch_outcome
attempt(struct ws_emit *e, const char *sql, bool ask, int url, struct ws_buf *out, int *used,
		struct ws_err *err)
{
	char id[200];
	struct ch_piece piece = {sql, strlen(sql)};
	struct ch_req r = {.query_id = id,
					   .pieces = &piece,
					   .npieces = 1,
					   .url = url,
					   .params =
						   e->srv.known ? (char *)e->srv.query_params.data : "wait_end_of_query=1",
					   .timeout = ask ? 0 : -1};
	enum ch_outcome o;

	snprintf(id, sizeof id, "%s%s%" PRIu64 ".%" PRIu64, ask ? "ask-" : "", e->prefix, ws_wall_us(),
			 ++e->seq);
	if (ch_http_start(e->http, &r, err) != 0)
		return CH_TEMP;
	while (!r.done) {
		if (ws_tool_stopping() && e->failing_us)
			break;
		if (emit_pump(e, -1, 1000, NULL, err) != 0)
			break;
	}
	if (!r.done) {
		ch_http_cancel(e->http, &r);
		if (!e->fatal.msg[0])
			ws_err_temp(err, "stopped while waiting for the destination");
		o = CH_UNKNOWN;
	} else {
		o = ch_req_outcome(e->http, &r, err);
	}
	*used = r.used_url;
	if (o == CH_UNKNOWN && !ask)
		e->host_stale[*used] = e->stale = true;
	if (o == CH_OK && out)
		ws_buf_put(out, r.body.data, r.body.len);
	ch_req_fini(&r);
	return o;
}

/* Questions and statements with retries. */
static int
query(struct ws_emit *e, const struct ch_stmt *s, bool ask, int url, struct ws_buf *out,
	  struct ws_err *err)
{
	size_t start = out ? out->len : 0;
	int used = 0;

	for (unsigned n = 0;; n++) {
		enum ch_outcome o = attempt(e, s->sql, ask, url, out, &used, err);

		if (o == CH_OK) {
			emit_recovered(e);
			if (out)
				ws_buf_cstr(out);
			return 0;
		}
		if (out)
			out->len = start;
		if (o == CH_REFUSED || o == CH_BUG)
			return ws_err_prefix(err, "%.120s", s->sql);
		struct ws_err why = *err;

		if (!emit_backoff(e, &why, used) || pause_ms(e, emit_delay(n), err) != 0)
			return -1;
		/* A cluster's timeout is no answer either: it may have happened, or go on. */
		if (!ask) {
			if (o == CH_UNKNOWN && emit_gone(e, err) != 0)
				return -1;
			int done = s->done ? s->done(e, s->arg, err) : 0;

			if (done != 0)
				return done > 0 ? 0 : -1;
		}
	}
}

int
emit_query(struct ws_emit *e, const struct ch_stmt *s, struct ws_buf *out, struct ws_err *err)
{
	if (!out) {
		if (emit_sent_seen(e, err) != 0)
			return -1;
		*e->m_statements += 1;
		ws_info("statement: %.200s", s->sql);
	}
	return query(e, s, out != NULL, -1, out, err);
}

int
emit_sql(struct ws_emit *e, struct ws_buf *out, struct ws_err *err, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	struct ch_stmt s = {.sql = text};
	int rc = emit_query(e, &s, out, err);

	free(text);
	return rc;
}

/* ---- nothing left running ---- */

static int
gone_from(struct ws_emit *e, int url, struct ws_err *err)
{
	struct ws_buf sql = {0}, out = {0}, prefix = {0};
	int rc = -1;

	ch_quote_text(&prefix, e->prefix, strlen(e->prefix));
	ws_buf_printf(&sql, "SELECT count() FROM system.processes WHERE startsWith(query_id, %s)",
				  ws_buf_cstr(&prefix));
	struct ch_stmt ask = {.sql = ws_buf_cstr(&sql)};

	for (unsigned n = 0;; n++) {
		out.len = 0;
		if (query(e, &ask, true, url, &out, err) != 0)
			break;
		unsigned long left = strtoul((char *)out.data, NULL, 10);

		if (left == 0) {
			rc = 0;
			break;
		}
		ws_info("waiting for %lu earlier queries to end: url=%s", left, ch_http_url(e->http, url));
		struct ws_buf kill = {0};

		ws_buf_printf(&kill, "KILL QUERY WHERE startsWith(query_id, %s) ASYNC",
					  ws_buf_cstr(&prefix));
		struct ch_stmt k = {.sql = ws_buf_cstr(&kill)};
		int killed = query(e, &k, true, url, NULL, err);

		ws_buf_free(&kill);
		if (killed != 0 || pause_ms(e, n < 5 ? 0.1 : 1, err) != 0)
			break;
	}
	ws_buf_free(&sql);
	ws_buf_free(&out);
	ws_buf_free(&prefix);
	return rc;
}

/* At the start a server that does not answer is left for later: late inserts of keyed rows do no
 * harm, and whatever they could harm asks again. */
static int
gone_at_start(struct ws_emit *e, struct ws_err *err)
{
	bool any = false;

	for (int i = 0; i < e->o.nurls; i++) {
		int used;
		enum ch_outcome o = attempt(e, "SELECT 1", true, i, NULL, &used, err);

		if (o == CH_REFUSED || o == CH_BUG)
			return -1;
		if (o != CH_OK) {
			ws_warn("destination: %s", err->msg);
			any = true;
			continue;
		}
		if (gone_from(e, i, err) != 0)
			return -1;
		e->host_stale[i] = false;
	}
	e->stale = any;
	return 0;
}

int
emit_gone(struct ws_emit *e, struct ws_err *err)
{
	for (int i = 0; i < e->o.nurls && e->stale; i++) {
		if (!e->host_stale[i])
			continue;
		if (gone_from(e, i, err) != 0)
			return -1;
		e->host_stale[i] = false;
	}
	e->stale = false;
	return 0;
}

int
emit_flush(struct ws_emit *e, struct ws_err *err)
{
	ch_batch_seal_all(e);
	while (e->oldest) {
		if (ws_tool_stopping() && e->failing_us)
			return ws_err_temp(err, "stopped while waiting for the destination: %s", e->last_error);
		if (ch_batch_tick(e, false, err) != 0 || emit_pump(e, -1, 1000, NULL, err) != 0)
			return -1;
	}
	return emit_ack(e, true, err);
}

int
emit_barrier(struct ws_emit *e, struct ws_err *err)
{
	return emit_flush(e, err) != 0 ? -1 : emit_gone(e, err);
}

/* ---- what the server is ---- */

/* Sent with each insert: a profile may have changed any default.  clickhouse's silent conversions
 * are all off. */
static const char *const insert_settings[][2] = {
	{"async_insert", "0"},
	{"wait_for_async_insert", "1"},
	{"input_format_skip_unknown_fields", "0"},
	{"input_format_null_as_default", "0"},
	{"input_format_native_allow_types_conversion", "0"},
	{"min_insert_block_size_rows", "0"},
	{"min_insert_block_size_bytes", "1000000000000"},
	{"max_partitions_per_insert_block", "0"},
	{"deduplicate_insert", "disable"},
	{"insert_deduplicate", "0"},
	{"max_execution_time", "0"},
	{"optimize_on_insert", "1"},
	{"distributed_foreground_insert", "1"},
	{"insert_distributed_sync", "1"},
	{"send_progress_in_http_headers", "0"},
	{"enable_time_time64_type", "1"},
};
static const char *const query_settings[][2] = {
	{"http_write_exception_in_output_format", "0"},
	{"send_progress_in_http_headers", "0"},
	{"max_execution_time", "0"},
	{"alter_sync", "1"},
	{"mutations_sync", "1"},
	{"async_insert", "0"},
	{"min_insert_block_size_rows", "0"},
	{"max_partitions_per_insert_block", "0"},
	{"deduplicate_insert", "disable"},
	{"insert_deduplicate", "0"},
	{"enable_time_time64_type", "1"},
};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static bool
has_line(const char *lines, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = lines; (s = strstr(s, word)); s += n)
		if ((s == lines || s[-1] == '\n') && (s[n] == '\n' || s[n] == 0))
			return true;
	return false;
}

static int
read_settings(struct ws_emit *e, struct ws_err *err)
{
	struct ws_buf sql = {0}, out = {0};

	ws_buf_puts(&sql, "SELECT name FROM system.settings WHERE name IN (''");
	for (size_t i = 0; i < COUNT(insert_settings); i++)
		ws_buf_printf(&sql, ",'%s'", insert_settings[i][0]);
	for (size_t i = 0; i < COUNT(query_settings); i++)
		ws_buf_printf(&sql, ",'%s'", query_settings[i][0]);
	ws_buf_puts(&sql, ")");
	struct ch_stmt s = {.sql = ws_buf_cstr(&sql)};
	int rc = emit_query(e, &s, &out, err);

	if (rc == 0) {
		for (size_t i = 0; i < COUNT(insert_settings); i++)
			if (has_line((char *)out.data, insert_settings[i][0]))
				ch_param(&e->srv.insert_params, insert_settings[i][0], insert_settings[i][1]);
		for (int i = 0; i < e->o.nsettings; i++) {
			char *name = ws_strdup(e->o.settings[i]), *eq = strchr(name, '=');

			*eq = 0; /* checked by the tool */
			ch_param(&e->srv.insert_params, name, eq + 1);
			free(name);
		}
		ws_buf_puts(&e->srv.query_params, "wait_end_of_query=1");
		for (size_t i = 0; i < COUNT(query_settings); i++)
			if (has_line((char *)out.data, query_settings[i][0]))
				ch_param(&e->srv.query_params, query_settings[i][0], query_settings[i][1]);
		ws_buf_cstr(&e->srv.insert_params);
		ws_buf_cstr(&e->srv.query_params);
	}
	ws_buf_free(&sql);
	ws_buf_free(&out);
	return rc;
}

#define DAYS_0001 (-719162)
#define DAYS_9999 2932896
#define DAYS_1900 (-25567)
#define DAYS_2299 120529

/* Ranges differ between versions, and what is beyond them reads back as something else: ask. */
static int
read_limits(struct ws_emit *e, struct ws_err *err)
{
	struct ws_buf out = {0};
	struct ch_limits *l = &e->srv.lim;
	static const char sql[] =
		"SELECT version(), toString(addDays(toDate32('1970-01-01'), 2932896)) = '9999-12-31' AND "
		"toString(addDays(toDate32('1970-01-01'), -719162)) = '0001-01-01', "
		"toString(addDays(toDateTime64('1970-01-01 00:00:00', 6, 'UTC'), 2932896)) = '9999-12-31 "
		"00:00:00.000000' AND "
		"toString(addDays(toDateTime64('1970-01-01 00:00:00', 6, 'UTC'), -719162)) = '0001-01-01 "
		"00:00:00.000000', "
		"(SELECT count() FROM system.data_type_families WHERE name = 'Time64')";

	if (emit_sql(e, &out, err, "%s", sql) != 0) {
		ws_buf_free(&out);
		return -1;
	}
	char *at = (char *)out.data, *version, *dates, *stamps, *time64;
	bool eol;

	version = ch_tsv_next(&at, &eol);
	dates = ch_tsv_next(&at, &eol);
	stamps = ch_tsv_next(&at, &eol);
	time64 = ch_tsv_next(&at, &eol);
	if (!time64) {
		ws_buf_free(&out);
		return ws_err_op(err, "destination_answer", "%s: not ClickHouse",
						 ch_http_url(e->http, ch_http_current(e->http)));
	}
	l->day_lo = *dates == '1' ? DAYS_0001 : DAYS_1900;
	l->day_hi = *dates == '1' ? DAYS_9999 : DAYS_2299;
	l->us_lo = (*stamps == '1' ? DAYS_0001 : DAYS_1900) * INT64_C(86400000000);
	l->us_hi = ((*stamps == '1' ? DAYS_9999 : DAYS_2299) + 1) * INT64_C(86400000000) - 1;
	l->has_time64 = *time64 != '0';
	ws_info("destination: ClickHouse %s url=%s", version,
			ch_http_url(e->http, ch_http_current(e->http)));
	ws_buf_free(&out);
	return 0;
}

int
emit_start(struct ws_emit *e, struct ws_err *err)
{
	e->stale = true;
	for (int i = 0; i < e->o.nurls; i++)
		e->host_stale[i] = true;
	if (read_settings(e, err) != 0 || read_limits(e, err) != 0)
		return -1;
	e->srv.known = true;
	if (gone_at_start(e, err) != 0 || emit_known_read(e, err) != 0 ||
		emit_drop_staging(e, err) != 0)
		return -1;
	e->started = true;
	return 0;
}
