/* Promotions: a newer timeline on the server, and the step from a timeline to the one after it.
 *
 * What is decided here is decided from history files, never from a server's errors: what was received
 * must lie on the server's history, and nothing that went to a destination may lie beyond a fork on the
 * branch that was left.  Everything is proved before anything is written. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "receiver.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/published.h"
#include "ws/text.h"
#include "ws/tool.h"

/* ---- what is told ---- */

struct step {
	struct ws_pos from, to; /* the switch, on both timelines */
	struct ws_pos resume;   /* what was here when it came */
	struct ws_pos published;
	uint64_t abandoned;
	const char *history; /* whose it is */
};

/* One line of STATE/log/timelines.log, as ws-receive(1) says.  A disk that takes none is said. */
static void
note(struct receiver *r, const struct step *s, const struct ws_err *failure)
{
	struct ws_buf b = {0};
	time_t now = time(NULL);
	struct tm tm;
	char at[32];

	if (!r->o->state)
		return;
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	ws_buf_printf(&b, "{\"time\":\"%s\",\"event\":\"%s\",\"system_id\":\"%" PRIu64 "\",\"old_timeline\":%u,"
				  "\"new_timeline\":%u,\"switch_lsn\":\"" WS_LSN_FMT "\",\"resume_lsn\":\"" WS_LSN_FMT
				  "\",\"published_lsn\":\"" WS_LSN_FMT "\",\"abandoned_bytes\":%" PRIu64,
				  at, failure ? "refused" : "switched", r->src.system_id, s->from.tli, s->to.tli, WS_LSN_ARG(s->to.lsn),
				  WS_LSN_ARG(s->resume.lsn), WS_LSN_ARG(s->published.lsn), s->abandoned);
	ws_buf_puts(&b, ",\"slot\":");
	ws_text_json(&b, r->o->slot ? r->o->slot : "");
	ws_buf_printf(&b, ",\"history\":\"%s\"", s->history);
	if (failure) {
		ws_buf_printf(&b, ",\"reason\":\"%s\",\"message\":", failure->reason);
		ws_text_json(&b, failure->msg);
	}
	ws_buf_puts(&b, "}\n");
	char *dir = ws_asprintf("%s/log", r->o->state), *path = ws_asprintf("%s/timelines.log", dir);
	struct ws_err err;
	int fd = ws_mkdir_p(dir, 0700, &err) == 0 ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0 || write(fd, b.data, b.len) != (ssize_t)b.len)
		ws_warn("%s: cannot write what happened", path);
	if (fd >= 0)
		close(fd);
	free(dir);
	free(path);
	ws_buf_free(&b);
}

/* Counts and notes a refusal for good; what may pass, or the archive may give, is only an error. */
static int
refuse(struct receiver *r, const struct step *s, const struct ws_err *err)
{
	if (err->status == WS_EOPERATOR && !receiver_asks_archive(r, err)) {
		char label[60];

		snprintf(label, sizeof label, "reason=\"%s\"", err->reason);
		*ws_metric(ws_tool_metrics(), WS_COUNTER, "walshadow_timeline_switch_failures_total", label,
				   "Switches of timeline that were refused.") += 1;
		note(r, s, err);
	}
	return -1;
}

/* ---- the server's timeline at the start of a session ---- */

int
receiver_lineage(struct receiver *r, struct ws_pos *kept, struct ws_err *err)
{
	struct step s = {.from = {kept->tli, 0}, .to = {r->src.pos.tli, 0}, .resume = *kept, .history = "server"};
	struct ws_buf b = {0};
	struct ws_history h;
	int rc = -1;

	if (kept->tli > r->src.pos.tli) {
		ws_err_op(err, "timeline_not_descendant", "the server is on timeline %u, the WAL kept on %u",
				  r->src.pos.tli, kept->tli);
		return refuse(r, &s, err);
	}
	if (kept->tli == r->src.pos.tli) {
		if (receiver_same_history(r, kept->tli, false, err) != 0)
			return refuse(r, &s, err);
		return ws_published_unfence(r->o->state, kept->tli, err);
	}
	if (receiver_history(r, r->src.pos.tli, &h, &b, &s.history, err) != 0)
		goto out;
	ws_lsn end = ws_history_end(&h, kept->tli);

	s.from.lsn = s.to.lsn = end;
	if (!end) {
		ws_err_op(err, "timeline_not_descendant",
				  "the server's timeline %u does not come from timeline %u, which the WAL kept is of", h.tli,
				  kept->tli);
		goto out;
	}
	if (ws_history_ascends(&h, kept->tli, err) != 0 ||
		ws_published_fence(r->o->state, &h, kept->tli, &s.published, err) != 0)
		goto out;
	if (kept->lsn > end) {
		ws_warn("received past the fork, nothing of it was sent: timeline=%u received=" WS_LSN_FMT
				" switch=" WS_LSN_FMT,
				kept->tli, WS_LSN_ARG(kept->lsn), WS_LSN_ARG(end));
		recvout_cut_back(r->out, end);
		kept->lsn = end;
	}
	rc = r->o->restore_command ? receiver_history_learn(r, &h, kept->tli, err) : 0;
out:
	ws_history_fini(&h);
	ws_buf_free(&b);
	return rc != 0 ? refuse(r, &s, err) : 0;
}

/* ---- the end of a timeline ---- */

/* Everything that can be known before something is changed. */
static int
prove(struct receiver *r, struct step *s, const struct ws_history *h, struct ws_err *err)
{
	ws_lsn end = ws_history_end(h, s->from.tli);

	if (r->pushed < s->to.lsn)
		return ws_err_temp(err, "timeline %u ends at " WS_LSN_FMT ", the server stopped at " WS_LSN_FMT, s->from.tli,
						   WS_LSN_ARG(s->to.lsn), WS_LSN_ARG(r->pushed));
	if (!end)
		return ws_err_op(err, "timeline_not_descendant", "timeline %u does not come from timeline %u", h->tli,
						 s->from.tli);
	if (end != s->to.lsn)
		return ws_err_op(err, "history_malformed",
						 "the server ends timeline %u at " WS_LSN_FMT ", its history of timeline %u at " WS_LSN_FMT,
						 s->from.tli, WS_LSN_ARG(s->to.lsn), h->tli, WS_LSN_ARG(end));
	return ws_published_fence(r->o->state, h, s->from.tli, &s->published, err);
}

static int
begin_next(struct receiver *r, const struct step *s, struct ws_err *err)
{
	const struct ws_pos start = {s->to.tli, ws_seg_start(s->to.lsn, r->src.segsize)};
	struct ws_pos restart;

	if (receiver_check_slot(r, s->from, &restart, err) != 0)
		return -1;
	int rc = ws_pg_stream_start(r->c, r->o->slot, start, &r->next, err);

	if (rc < 0)
		return -1;
	recvout_begin_fork(r->out, start);
	r->tli = start.tli;
	r->pushed = r->checked = start.lsn;
	r->last_status = r->last_limit = ws_now_us();
	return rc ? TIMELINE_END : 0;
}

/* What is the same whoever says that the timeline ends: all of it is here, the next one's history is, and
 * what lies past the switch is set aside.  0, STOPPING or -1. */
static int
leave(struct receiver *r, struct step *s, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_history h = {0};
	int rc = receiver_wait_idle(r, err);

	if (rc != 0)
		return rc;
	if (receiver_history(r, s->to.tli, &h, &b, &s->history, err) != 0 || prove(r, s, &h, err) != 0 ||
		recvout_history(r->out, s->to.tli, b.data, b.len, err) != 0 ||
		recvhold_cut(r->hold, s->from.tli, s->to.lsn, err) != 0 ||
		recvout_timeline_end(r->out, &h, s->to.lsn, &s->abandoned, err) != 0)
		rc = -1;
	ws_history_fini(&h);
	ws_buf_free(&b);
	return rc;
}

static void
switched(struct receiver *r, const struct step *s, uint64_t since)
{
	note(r, s, NULL);
	*r->m_switches += 1;
	*r->m_switch_lsn = (double)s->to.lsn;
	*r->m_abandoned += (double)s->abandoned;
	*r->m_transition = (double)(ws_now_us() - since) / 1e6;
	ws_info("timeline switch: system_id=%" PRIu64 " old_timeline=%u new_timeline=%u switch=" WS_LSN_FMT
			" resume=" WS_LSN_FMT " published=" WS_LSN_FMT " abandoned_bytes=%" PRIu64 " history=%s%s%s",
			r->src.system_id, s->from.tli, s->to.tli, WS_LSN_ARG(s->to.lsn), WS_LSN_ARG(s->resume.lsn),
			WS_LSN_ARG(s->published.lsn), s->abandoned, s->history, r->o->slot ? " slot=" : "",
			r->o->slot ? r->o->slot : "");
}

static struct step
step_to(const struct receiver *r, struct ws_pos next)
{
	return (struct step){
		.from = {r->tli, next.lsn}, .to = next, .resume = {r->tli, r->pushed}, .history = "server"};
}

int
receiver_switch(struct receiver *r, struct ws_err *err)
{
	struct step s = step_to(r, r->next);
	uint64_t since = ws_now_us();
	int rc = leave(r, &s, err);

	if (rc == 0 && (rc = begin_next(r, &s, err)) >= 0)
		switched(r, &s, since);
	return rc < 0 ? refuse(r, &s, err) : rc;
}

int
receiver_switch_restored(struct receiver *r, struct ws_pos next, struct ws_err *err)
{
	struct step s = step_to(r, next);
	uint64_t since = ws_now_us();
	int rc = leave(r, &s, err);

	if (rc == 0) {
		r->tli = next.tli;
		r->pushed = ws_seg_start(next.lsn, r->src.segsize);
		recvout_begin_fork(r->out, (struct ws_pos){r->tli, r->pushed});
		switched(r, &s, since);
	}
	return rc < 0 ? refuse(r, &s, err) : rc;
}

/* Where WAL of lsn on begins on the server's history, when nothing is kept: an older timeline's segment
 * has its own name. */
int
receiver_first(struct receiver *r, ws_lsn lsn, struct ws_pos *start, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_history h;
	const char *source;
	int rc = receiver_history(r, r->src.pos.tli, &h, &b, &source, err);

	if (rc == 0) {
		*start = (struct ws_pos){ws_history_name_of(&h, lsn, r->src.segsize), ws_seg_start(lsn, r->src.segsize)};
		rc = ws_history_ascends(&h, start->tli, err);
		if (rc == 0 && start->tli != h.tli) {
			b.len = 0;
			ws_history_fini(&h);
			rc = receiver_history(r, start->tli, &h, &b, &source, err);
		}
	}
	if (rc == 0 && start->tli > 1)
		rc = recvout_history(r->out, start->tli, b.data, b.len, err);
	ws_history_fini(&h);
	ws_buf_free(&b);
	return rc;
}
