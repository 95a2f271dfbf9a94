/* What the receiver reports and waits for; see receiver.h. */
#include <inttypes.h>
#include <poll.h>

#include "receiver.h"
#include "ws/pos.h"
#include "ws/statepos.h"
#include "ws/tool.h"

#define LIMIT_POLL_MS 250

void
receiver_metrics_init(struct receiver *r)
{
	struct ws_metrics *m = ws_tool_metrics();

	r->m_bytes = ws_metric(m, WS_COUNTER, "walshadow_receive_bytes_total", "",
						   "WAL bytes received from the source.");
	r->m_received = ws_metric(m, WS_GAUGE, "walshadow_receive_lsn", "",
							  "End of the durable WAL copy, as a number.");
	r->m_source = ws_metric(m, WS_GAUGE, "walshadow_source_lsn", "",
							"End of WAL on the source as last reported.");
	r->m_lag = ws_metric(m, WS_GAUGE, "walshadow_receive_lag_bytes", "",
						 "WAL on the source that is not received yet.");
	r->m_reconnects = ws_metric(m, WS_COUNTER, "walshadow_receive_reconnects_total", "",
								"Connections after the first.");
	r->m_verified = ws_metric(m, WS_COUNTER, "walshadow_timeline_prefix_bytes_verified_total", "",
							  "Kept bytes found equal to the server's after a reconnect.");
	r->m_tli = ws_metric(m, WS_GAUGE, "walshadow_source_timeline", "", "Timeline of the source.");
	r->m_switches = ws_metric(m, WS_COUNTER, "walshadow_timeline_switches_total", "",
							  "Switches to a following timeline.");
	r->m_switch_lsn = ws_metric(m, WS_GAUGE, "walshadow_timeline_switch_lsn", "",
								"Where the last switch was, as a number.");
	r->m_transition = ws_metric(m, WS_GAUGE, "walshadow_timeline_transition_seconds", "",
								"From the end of the last timeline to the start of the next one's stream.");
	r->m_abandoned = ws_metric(m, WS_COUNTER, "walshadow_timeline_abandoned_bytes_total", "",
							   "WAL received past a fork, which does not count any more.");
	r->m_restored = ws_metric(m, WS_COUNTER, "walshadow_receive_restored_segments_total", "",
							  "Segments that came from the archive.");
	r->m_unread = ws_metric(m, WS_GAUGE, "walshadow_receive_unread_bytes", "",
							"Received WAL that the slowest consumer has not read.");
}

void
receiver_metrics_update(struct receiver *r)
{
	ws_lsn written = 0, synced = 0;
	struct ws_err err;

	if (r->out) {
		recvout_positions(r->out, &written, &synced);
		*r->m_verified = (double)recvout_verified(r->out);
	}
	if (synced)
		*r->m_received = (double)synced;
	*r->m_source = (double)r->server_end;
	*r->m_lag = r->server_end > written && written ? (double)(r->server_end - written) : 0;
	recvhold_look(r->hold);
	*r->m_tli = r->tli > r->src.pos.tli ? r->tli : r->src.pos.tli;
	if (ws_metrics_write(ws_tool_metrics(), 1, &err) != 0)
		ws_log_err(&err);
}

/* Waits ms, or for the output; false when told to stop. */
bool
receiver_nap(struct receiver *r, int ms)
{
	uint64_t until = ws_now_us() + (uint64_t)ms * 1000, now;

	while (!ws_tool_stopping() && (now = ws_now_us()) < until) {
		struct pollfd p = {.fd = ws_tool_signal_fd(), .events = POLLIN};
		uint64_t left = (until - now) / 1000 + 1;

		poll(&p, 1, left < 1000 ? (int)left : 1000);
		ws_tool_take_hup();
		receiver_metrics_update(r);
	}
	return !ws_tool_stopping();
}

/* ---- what may be confirmed, and whether there is room ---- */

static int
confirm_floor(struct receiver *r, ws_lsn synced, ws_lsn *flush, struct ws_err *err)
{
	struct ws_pos floor;
	int n;

	if (ws_statepos_min(r->o->state, "floor.", &floor, &n, err) != 0)
		return -1;
	*flush = n == 0 ? 0 : floor.lsn < synced ? floor.lsn : synced;
	return 0;
}

/* A status.  With --confirm floor the slot is moved by one message with the floor in it, and a
 * second one with flush 0 follows: a walsender that shuts down waits for flush == sent, or, when
 * the last flush was 0, for write == sent (walsender.c, WalSndDone).  Until the kept bytes were
 * compared nothing is confirmed: the server may be the wrong one. */
int
receiver_status(struct receiver *r, struct ws_err *err)
{
	ws_lsn written, synced, flush;

	recvout_positions(r->out, &written, &synced);
	if (r->o->dir && synced == 0)
		written = 0;
	flush = synced;
	if (r->o->confirm_floor) {
		if (confirm_floor(r, synced, &flush, err) != 0)
			return -1;
		if (flush > r->reported) {
			if (ws_pg_stream_status(r->c, synced, flush, 0, err) != 0)
				return -1;
			r->reported = flush;
		}
		written = synced;
		flush = 0;
	}
	r->last_status = ws_now_us();
	if (!r->o->confirm_floor)
		r->reported = flush;
	return ws_pg_stream_status(r->c, written, flush, 0, err);
}

/* 1: room, 0: none.  Counts what the slowest consumer has not read. */
int
receiver_room(struct receiver *r, bool reconnecting, struct ws_err *err)
{
	struct ws_pos low, kept = recvout_kept(r->out);
	uint64_t limit = r->o->raw_limit;
	int n;

	if (limit == 0 || !r->o->state)
		return 1;
	/* An empty file is one that its ws-decode has not written again. */
	if (ws_statepos_min(r->o->state, "read.", &low, &n, err) != 0)
		return err->status == WS_ETEMP && !err->sys ? 1 : -1;
	ws_lsn end = kept.lsn > r->pushed ? kept.lsn : r->pushed;
	uint64_t unread = n && end > low.lsn ? end - low.lsn : 0;

	*r->m_unread = (double)unread;
	/* Coming back only with a quarter free, not for every segment. */
	return unread < (reconnecting ? limit - limit / 4 : limit);
}

int
receiver_wait_room(struct receiver *r, struct ws_err *err)
{
	bool said = false;
	int rc;

	while ((rc = receiver_room(r, r->ever, err)) == 0) {
		if (!said)
			ws_warn("raw limit reached, disconnected until the consumers have read: limit=%" PRIu64
					" unread=%.0f",
					r->o->raw_limit, *r->m_unread);
		said = true;
		if (!receiver_nap(r, LIMIT_POLL_MS))
			return STOPPING;
	}
	if (said && rc == 1)
		ws_info("room again: unread=%.0f", *r->m_unread);
	return rc < 0 ? -1 : 0;
}

static bool
is_busy(struct recvout *o)
{
	return !recvout_idle(o);
}

static int
wait_while(struct receiver *r, bool (*so)(struct recvout *o), struct ws_err *err)
{
	while (so(r->out)) {
		struct pollfd p[2] = {{.fd = recvout_fd(r->out), .events = POLLIN},
							  {.fd = ws_tool_signal_fd(), .events = POLLIN}};

		if (ws_tool_stopping())
			return STOPPING;
		poll(p, 2, 100);
		ws_tool_take_hup();
		if (recvout_check(r->out, err) != 0)
			return -1;
		receiver_metrics_update(r);
	}
	return recvout_check(r->out, err);
}

int
receiver_wait_idle(struct receiver *r, struct ws_err *err)
{
	return wait_while(r, is_busy, err);
}

int
receiver_wait_taken(struct receiver *r, struct ws_err *err)
{
	return wait_while(r, recvout_full, err);
}
