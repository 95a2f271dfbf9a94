/* Keeping a slot on the standbys that may be promoted: rounds of visits, and what is said of them;
 * see ws/slot.h.  Each server has its own time: one that does not answer is tried again with
 * backoff while the others are visited as before. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slotensure.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/tool.h"

/* ---- what is said ---- */

/* Of host and port, for a label. */
static double *
metric(const struct peer *p, const char *name, const char *help)
{
	char label[200];

	snprintf(label, sizeof label, "host=\"%.180s\"", p->name);
	for (char *s = label + 6; *s && s[1]; s++)
		if (*s == '"' || *s == '\\')
			*s = '_';
	return ws_metric(ws_tool_metrics(), WS_GAUGE, name, label, help);
}

static void
put_line(const struct ensure *e, const struct peer *p, struct ws_buf *out)
{
	struct ws_slot_line l = {.out = out, .json = e->o->json};

	ws_slot_put_text(&l, "host", p->name);
	ws_slot_put_text(&l, "state", p->state ? p->state : "failed");
	if (p->has)
		ws_slot_put(&l, &p->slot);
	else
		ws_slot_put_text(&l, "slot", e->o->slot);
	ws_slot_put_lsn(&l, "target_lsn", e->target);
	if (p->c && p->now.standby)
		ws_slot_put_lsn(&l, "replay_lsn", p->now.end);
	ws_slot_put_text(&l, "reason", p->err.reason);
	ws_slot_put_text(&l, "error", p->err.msg);
	ws_slot_put_end(&l);
}

/* What makes a line different from the last one: not the target's or the replay's position alone,
 * nor that a slot which was made or moved is now left as it is. */
static char *
essence(const struct peer *p)
{
	const char *state = p->state ? p->state : "failed";

	if (!strcmp(state, "created") || !strcmp(state, "recreated") || !strcmp(state, "moved"))
		state = "kept";
	return ws_asprintf("%s %s %s " WS_LSN_FMT, state, *p->err.reason ? p->err.reason : p->err.msg,
					   p->slot.wal_status, WS_LSN_ARG(p->has ? p->slot.restart.lsn : 0));
}

static int
say(const struct ensure *e, struct peer *p, struct ws_err *err)
{
	struct ws_buf out = {0};
	char *now = essence(p);
	int rc = 0;

	if (!p->said || strcmp(p->said, now)) {
		put_line(e, p, &out);
		rc = ws_write_all(STDOUT_FILENO, out.data, out.len, err, "standard output");
		if (e->o->follow > 0 && p->err.status)
			ws_warn("%s: %s", p->name, p->err.msg);
	}
	free(p->said);
	p->said = now;
	ws_buf_free(&out);
	return rc;
}

static void
count(struct peer *p)
{
	*p->m_ok = p->err.status == 0;
	if (p->has)
		*p->m_restart = (double)p->slot.restart.lsn;
}

/* ---- rounds ---- */

/* The source first, so that what follows knows where it is. */
static int
round_of_visits(struct ensure *e, struct ws_err *err)
{
	char was[sizeof e->from.err.msg];

	if (e->from.conninfo && e->from.due <= ws_now_us()) {
		snprintf(was, sizeof was, "%s", e->from.err.msg);
		slot_visit_source(e);
		count(&e->from);
		*e->m_target = (double)e->target;
		if (e->o->follow > 0 && e->from.err.status && strcmp(was, e->from.err.msg))
			ws_warn("source %s: %s", e->from.name, e->from.err.msg);
		if (e->o->follow == 0 && e->from.err.status)
			return 0;
	}
	for (int i = 0; i < e->o->nhosts && !ws_tool_stopping(); i++) {
		struct peer *p = &e->hosts[i];

		if (p->due > ws_now_us())
			continue;
		slot_visit_host(e, p);
		count(p);
		if (!ws_tool_stopping() && say(e, p, err) != 0)
			return -1;
	}
	return 0;
}

static void
rest(const struct ensure *e)
{
	uint64_t now = ws_now_us(), due = now + (uint64_t)(e->o->follow * 1e6);
	struct pollfd fd = {.fd = ws_tool_signal_fd(), .events = POLLIN};

	if (e->from.conninfo && e->from.due < due)
		due = e->from.due;
	for (int i = 0; i < e->o->nhosts; i++)
		if (e->hosts[i].due < due)
			due = e->hosts[i].due;
	if (due > now)
		poll(&fd, 1, (int)((due - now) / 1000) + 1);
	ws_tool_take_hup();
}

/* The worst state of all as the exit status, the others' said before. */
static int
outcome(struct ensure *e, struct ws_err *err)
{
	const struct peer *worst = e->from.err.status ? &e->from : NULL;

	for (int i = 0; i < e->o->nhosts; i++)
		if (e->hosts[i].err.status > (worst ? worst->err.status : 0))
			worst = &e->hosts[i];
	for (int i = 0; i < e->o->nhosts && e->o->follow == 0; i++)
		if (e->hosts[i].err.msg[0] && &e->hosts[i] != worst)
			ws_warn("%s: %s", e->hosts[i].name, e->hosts[i].err.msg);
	if (!worst)
		return WS_OK;
	*err = worst->err;
	ws_err_prefix(err, "%s%s", worst == &e->from ? "source " : "", worst->name);
	return err->status;
}

static int
prepare(struct ensure *e, struct ws_err *err)
{
	const struct ws_slot_ensure_opts *o = e->o;

	e->target = o->from ? 0 : o->lsn;
	e->m_target = ws_metric(ws_tool_metrics(), WS_GAUGE, "walshadow_slot_target_lsn", "",
							"To where slots may be moved.");
	*e->m_target = (double)e->target;
	e->hosts = ws_calloc((size_t)o->nhosts, sizeof *e->hosts);
	if (o->from &&
		ws_slot_candidate(o->conninfo, o->from, &e->from.conninfo, &e->from.name, err) != 0)
		return -1;
	for (int i = -1; i < o->nhosts; i++) {
		struct peer *p = i < 0 ? &e->from : &e->hosts[i];

		if (i < 0 && !o->from)
			continue;
		if (i >= 0 && ws_slot_candidate(o->conninfo, o->hosts[i], &p->conninfo, &p->name, err) != 0)
			return ws_err_prefix(err, "host %d", i + 1);
		p->m_restart = metric(p, "walshadow_slot_restart_lsn", "Where the slot begins.");
		p->m_ok = metric(p, "walshadow_slot_ok", "Whether the slot keeps what the consumer needs.");
		ws_err_temp(&p->err, "it was not reached");
	}
	return 0;
}

static void
fini_peer(struct peer *p)
{
	ws_pg_close(p->c);
	free(p->conninfo);
	free(p->name);
	free(p->said);
}

int
ws_slot_ensure(const struct ws_slot_ensure_opts *o, struct ws_err *err)
{
	struct ensure e = {.o = o};
	int rc = prepare(&e, err);

	while (rc == 0 && !ws_tool_stopping()) {
		rc = round_of_visits(&e, err);
		if (ws_metrics_write(ws_tool_metrics(), 1, err) != 0)
			rc = -1;
		if (o->follow == 0 || rc != 0 || ws_tool_stopping())
			break;
		rest(&e);
	}
	rc = rc == 0 ? outcome(&e, err) : (int)err->status;
	for (int i = 0; i < o->nhosts && e.hosts; i++)
		fini_peer(&e.hosts[i]);
	fini_peer(&e.from);
	free(e.hosts);
	ws_history_fini(&e.hist);
	return rc;
}
