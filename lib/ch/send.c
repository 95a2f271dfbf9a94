/* Batches on their way: when they are sealed, several at a time, retries, answers; see
 * lib/ch/emit.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"
#include "ws/tool.h"

/* History has nothing but its rows: after an unknown outcome they are counted.  1 all there, 0 to
 * be sent, -1 error. */
static int
history_there(struct ws_emit *e, struct ch_batch *b, struct ws_err *err)
{
	struct ws_buf where = {0}, out = {0};
	char lo[64], hi[64];
	int rc = -1;

	if (emit_gone(e, err) != 0)
		return -1;
	snprintf(lo, sizeof lo, "%" PRIu64, (uint64_t)(b->vmin >> 64));
	snprintf(hi, sizeof hi, "%" PRIu64, (uint64_t)(b->vmax >> 64));
	ch_quote_name(&where, b->tab->route.extra[WS_X_VERSION]);
	ws_buf_printf(&where, " >= bitOr(bitShiftLeft(toUInt128(%s), 64), toUInt128(%" PRIu64 ")) AND ",
				  lo, (uint64_t)b->vmin);
	ch_quote_name(&where, b->tab->route.extra[WS_X_VERSION]);
	ws_buf_printf(&where, " <= bitOr(bitShiftLeft(toUInt128(%s), 64), toUInt128(%" PRIu64 "))", hi,
				  (uint64_t)b->vmax);
	ch_leaf_where(b->tab, &where);
	ws_buf_cstr(&where);
	if (emit_sql(e, &out, err, "SELECT count() FROM %s WHERE %s", b->tab->target,
				 (char *)where.data) != 0)
		goto out;
	uint64_t n = strtoull((char *)out.data, NULL, 10);

	rc = n == b->rows;
	if (n && n != b->rows)
		rc = emit_sql(e, NULL, err, "ALTER TABLE %s DELETE WHERE %s SETTINGS mutations_sync = 2",
					  b->tab->target, (char *)where.data);
out:
	ws_buf_free(&where);
	ws_buf_free(&out);
	return rc;
}

static void
batch_done(struct ws_emit *e, struct ch_batch *b)
{
	*e->m_rows += (double)b->rows;
	*e->m_bytes += (double)b->bytes;
	*e->m_inserts += 1;
	*e->m_success = (double)ws_wall_us() / 1e6;
	ch_batch_free(e, b);
	emit_recovered(e);
}

static int
batch_start(struct ws_emit *e, struct ch_batch *b, struct ws_err *err)
{
	/* Everything taken in so far may be in it. */
	if (emit_sent_seen(e, err) != 0)
		return -1;
	if (b->attempt == 0 && ch_batch_pack(e, b, err) != 0)
		return -1;
	if (b->unknown && b->tab->history) {
		int there = history_there(e, b, err);

		if (there < 0)
			return -1;
		b->unknown = false;
		if (there) {
			batch_done(e, b);
			return 0;
		}
	}
	snprintf(b->query_id, sizeof b->query_id, "%s%" PRIu64 ".%" PRIu64, e->prefix, ws_wall_us(),
			 ++e->seq);
	b->req = (struct ch_req){.query_id = b->query_id,
							 .params = (char *)e->srv.insert_params.data,
							 .pieces = b->pieces,
							 .npieces = b->npieces,
							 .encoding = e->encoding,
							 .insert = true,
							 .rows = b->rows,
							 .url = -1,
							 .owner = b,
							 .body = b->req.body};
	if (ch_http_start(e->http, &b->req, err) != 0)
		return -1;
	b->state = CH_FLYING;
	e->queued--;
	e->flying++;
	return 0;
}

/* A request of a batch is done. */
static void
batch_answer(struct ws_emit *e, struct ch_batch *b)
{
	struct ws_err why = {0};
	enum ch_outcome o = ch_req_outcome(e->http, &b->req, &why);

	if (o == CH_OK) {
		b->state = CH_FLYING;
		batch_done(e, b);
		return;
	}
	e->flying--;
	e->queued++;
	b->state = CH_WAITING;
	if (o == CH_REFUSED || o == CH_BUG) {
		ws_err_prefix(&why, "insert of %" PRIu64 " rows into %s", b->rows, b->tab->target);
		if (!e->fatal.msg[0])
			e->fatal = why;
		return;
	}
	/* Blocks of several partitions can be there in part even when the server said no. */
	b->unknown = true;
	if (o == CH_UNKNOWN)
		e->host_stale[b->req.used_url] = e->stale = true;
	emit_backoff(e, &why, b->req.used_url);
	b->retry_us = ws_now_us() + (uint64_t)(emit_delay(b->attempt++) * 1e6);
}

int
ch_batch_tick(struct ws_emit *e, bool idle, struct ws_err *err)
{
	uint64_t now = ws_now_us();

	if (e->fatal.msg[0]) {
		*err = e->fatal;
		return -1;
	}
	for (struct ch_batch *b = e->oldest, *next; b; b = next) {
		next = b->next;
		if (b->state == CH_OPEN) {
			struct ch_tab *t = b->tab;
			bool room = e->flying + e->queued < e->o.connections;
			bool due = (double)(now - b->opened_us) >= e->o.flush_interval * 1e6;
			bool early = idle && !e->in_tx && e->flying == 0 &&
						 (double)(now - t->flushed_us) >= e->o.flush_gap * 1e6;

			/* While all connections are busy a batch may as well grow. */
			if (b->rows >= e->o.batch_rows || b->bytes >= e->o.batch_bytes ||
				(room && (due || early)))
				ch_batch_seal(e, b);
			continue;
		}
	}
	for (struct ch_batch *b = e->oldest, *next; b && e->flying < e->o.connections; b = next) {
		next = b->next;
		if (b->state == CH_QUEUED || (b->state == CH_WAITING && b->retry_us <= now)) {
			if (batch_start(e, b, err) != 0)
				return -1;
			next = e->oldest; /* it may have waited, and others come to their end */
		}
	}
	return 0;
}

int
ch_batch_due(const struct ws_emit *e, int most)
{
	uint64_t now = ws_now_us();
	int64_t wait = (int64_t)most * 1000;

	for (const struct ch_batch *b = e->oldest; b; b = b->next) {
		int64_t at = wait;

		if (b->state == CH_OPEN) {
			int64_t gap =
				(int64_t)(b->tab->flushed_us + (uint64_t)(e->o.flush_gap * 1e6)) - (int64_t)now;

			at = (int64_t)(b->opened_us + (uint64_t)(e->o.flush_interval * 1e6)) - (int64_t)now;
			if (e->flying == 0 && !e->in_tx && gap < at)
				at = gap;
			if (e->flying + e->queued >= e->o.connections)
				continue; /* an answer wakes us */
		} else if (b->state == CH_WAITING) {
			at = (int64_t)b->retry_us - (int64_t)now;
		}
		if (at < wait)
			wait = at;
	}
	return wait <= 0 ? 0 : (int)((wait + 999) / 1000);
}

int
emit_pump(struct ws_emit *e, int fd, int ms, bool *readable, struct ws_err *err)
{
	struct curl_waitfd fds[2] = {{ws_tool_signal_fd(), CURL_WAIT_POLLIN, 0},
								 {fd, CURL_WAIT_POLLIN, 0}};
	/* The signal pipe stays readable once a stop is asked for. */
	unsigned skip = ws_tool_stopping();
	struct ch_req *r;
	bool moved = false;

	if (readable)
		*readable = false;
	while ((r = ch_http_step(e->http))) {
		moved = true;
		if (r->owner)
			batch_answer(e, r->owner);
	}
	if (e->fatal.msg[0]) {
		*err = e->fatal;
		return -1;
	}
	if (moved)
		return 0;
	ch_http_wait(e->http, fds + skip, (fd >= 0 ? 2 : 1) - skip, ms);
	if (readable && fd >= 0)
		*readable = fds[1].revents != 0;
	while ((r = ch_http_step(e->http)))
		if (r->owner)
			batch_answer(e, r->owner);
	if (e->fatal.msg[0]) {
		*err = e->fatal;
		return -1;
	}
	return 0;
}
