/* A visit to a server on which a slot is kept: proofs first, then the slot is made where it is
 * missing and moved.  What makes that safe: a slot moves to a position that the consumer has
 * confirmed at the source and that this standby has replayed, so that a promotion forks at or above
 * it. */
#include <inttypes.h>
#include <string.h>

#include "slotensure.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define ANSWER_MS        10000
#define BACKOFF_FIRST_MS 200
#define BACKOFF_LAST_MS  10000

/* ---- proofs ---- */

static int
check_system(struct ensure *e, const struct peer *p, struct ws_err *err)
{
	if (!e->system_id)
		e->system_id = p->now.system_id;
	if (e->system_id != p->now.system_id)
		return ws_err_op(err, "system_id_changed",
						 "this is another cluster: system identifier %" PRIu64 ", not %" PRIu64,
						 p->now.system_id, e->system_id);
	return 0;
}

/* Is p on the source's branch?  1: yes; 0: not known now, *err says why; -1: it is not. */
static int
check_lineage(const struct ensure *e, const struct peer *p, struct ws_err *err)
{
	ws_tli source = e->hist.tli, tli = p->now.tli;

	if (!source || tli == source)
		return 1;
	if (tli > source && e->from.c && e->from.now.tli == source && !e->from.now.standby)
		return ws_err_op(err, "timeline_not_descendant",
						 "it is on timeline %u, the source on %u: another branch, or the source is "
						 "an old primary",
						 tli, source);
	if (tli > source) {
		ws_err_temp(err,
					"it is on timeline %u, the source was last seen on %u: not moved until the "
					"source shows that one",
					tli, source);
		return 0;
	}
	/* Ahead of the fork, or on a sibling of the source's branch. */
	if (ws_history_prove(&e->hist, tli, p->now.end, err) != 0)
		return ws_err_prefix(err, "what it has replayed is not the source's");
	return 1;
}

static int
look(const struct ensure *e, struct peer *p, struct ws_err *err)
{
	int rc = ws_slot_look(p->c, e->o->slot, &p->slot, err);

	p->has = rc == 1;
	return rc;
}

/* ---- the source ---- */

static int
read_history(struct ensure *e, struct ws_err *err)
{
	struct ws_history h = {0};
	struct ws_buf b = {0};
	ws_tli tli = e->from.now.tli;

	if (tli == e->hist.tli)
		return 0;
	int rc = tli > 1 ? ws_pg_history(e->from.c, tli, &b, err) : 0;

	if (rc == 0)
		rc = ws_history_parse(tli, (const char *)b.data, b.len, &h, err);
	ws_buf_free(&b);
	if (rc != 0)
		return -1;
	ws_history_fini(&e->hist);
	e->hist = h;
	return 0;
}

static int
source_visit(struct ensure *e, struct peer *p, struct ws_err *err)
{
	int found = read_history(e, err) == 0 ? look(e, p, err) : -1;

	if (found == 0)
		ws_err_op(err, "slot_missing", "replication slot \"%s\" does not exist on the source",
				  e->o->slot);
	if (found != 1 || ws_slot_check_usable(&p->slot, err) != 0)
		return -1;
	e->target = p->slot.restart.lsn;
	if (e->o->lsn && e->o->lsn < e->target)
		e->target = e->o->lsn;
	p->state = "source";
	return 0;
}

/* ---- a host ---- */

static int
create(const struct ensure *e, struct peer *p, struct ws_err *err)
{
	if (ws_pg_slot_create(p->c, e->o->slot, false, err) != 0)
		return -1;
	if (look(e, p, err) == 1)
		return 0;
	return err->msg[0]
			   ? -1
			   : ws_err_temp(err, "replication slot \"%s\" was dropped meanwhile", e->o->slot);
}

/* On a standby, that is.  Where it was promoted meanwhile the slot begins at its head, and goes
 * again. */
static int
create_on_standby(const struct ensure *e, struct peer *p, struct ws_err *err)
{
	if (create(e, p, err) != 0 || ws_slot_server(p->c, &p->now, err) != 0)
		return -1;
	if (p->now.standby)
		return 0;
	if (ws_pg_slot_drop(p->c, e->o->slot, err) != 0)
		return -1;
	p->has = false;
	return ws_err_temp(err, "it was promoted while the slot was made: the slot was dropped again");
}

static int
recreate(const struct ensure *e, struct peer *p, struct ws_err *err)
{
	struct ws_slot was = p->slot;

	if (was.active)
		return ws_err_op(err, "slot_lost", "replication slot \"%s\" is lost, and pid %d uses it",
						 was.name, was.pid);
	if (ws_pg_slot_drop(p->c, was.name, err) != 0)
		return -1;
	ws_warn("%s: replication slot \"%s\" was lost%s%s and was dropped; making it anew", p->name,
			was.name, *was.invalidation ? ", cause " : "", was.invalidation);
	if (create_on_standby(e, p, err) != 0)
		return -1;
	ws_warn("%s: replication slot \"%s\" was made anew, at " WS_LSN_FMT, p->name, was.name,
			WS_LSN_ARG(p->slot.restart.lsn));
	return 0;
}

/* Makes sure that a usable slot is there. */
static int
provide(const struct ensure *e, struct peer *p, bool proven, struct ws_err *err)
{
	p->state = "kept";
	if (!p->has) {
		if (!proven || !e->target)
			return err->msg[0]
					   ? -1
					   : ws_err_temp(
							 err,
							 "the slot is missing, and the source's position is not known yet");
		p->state = "created";
		return create_on_standby(e, p, err);
	}
	struct ws_err why = {0};

	if (ws_slot_check_usable(&p->slot, &why) == 0)
		return 0;
	if (!e->o->recreate || strcmp(why.reason, "slot_lost") || !proven || !e->target) {
		*err = why;
		return -1;
	}
	p->state = "recreated";
	return recreate(e, p, err);
}

/* To the target, as far as it was replayed.  Where there is nothing to move the slot is still taken
 * and released: from 18 on a server gives up slots that were idle for too long. */
static int
move(const struct ensure *e, struct peer *p, bool proven, struct ws_err *err)
{
	ws_lsn at = p->slot.restart.lsn, to = e->target < p->now.end ? e->target : p->now.end;
	bool further = proven && to > at;

	if (p->slot.active) {
		p->state = "in_use";
		return 0;
	}
	if (!further && at > p->now.end)
		return 0;
	if (ws_slot_advance(p->c, &p->slot, further ? to : at, err) != 0)
		return -1;
	if (further && !strcmp(p->state, "kept"))
		p->state = "moved";
	return 0;
}

/* 0 also when the slot begins too high: that passes when the source's slot moves on, and *err says
 * it. */
static int
judge(const struct ensure *e, struct peer *p, struct ws_err *err)
{
	struct ws_err why = {0};
	int rc = ws_slot_timeline(p->c, &p->slot, err);

	if (rc == 0)
		ws_err_op(err, "slot_missing", "replication slot \"%s\" was dropped meanwhile", e->o->slot);
	if (rc != 1)
		return -1;
	if (ws_slot_check(&p->slot, e->target, &why) == 0)
		return 0;
	*err = why;
	if (strcmp(why.reason, "slot_too_new"))
		return -1;
	if (!p->now.standby)
		return -1;
	err->status = WS_ETEMP;
	return 0;
}

static int
host_visit(struct ensure *e, struct peer *p, struct ws_err *err)
{
	int proven = check_lineage(e, p, err);

	if (proven < 0 || look(e, p, err) < 0)
		return -1;
	if (!p->now.standby) {
		/* A slot that is made here now would begin at the head: no continuation, so it is not made.
		 */
		if (!p->has)
			return ws_err_op(
				err, "slot_missing",
				"this is a primary, and replication slot \"%s\" does not exist on it: none is "
				"made, WAL below its end would be missing",
				e->o->slot);
		p->state = "primary";
		return judge(e, p, err);
	}
	if (provide(e, p, proven, err) != 0 || move(e, p, proven, err) != 0)
		return -1;
	return judge(e, p, err);
}

/* ---- connections ---- */

static void
close_peer(struct peer *p)
{
	ws_pg_close(p->c);
	p->c = NULL;
}

static int
meet(struct ensure *e, struct peer *p, struct ws_err *err)
{
	p->has = false;
	if (!p->c && !(p->c = ws_slot_connect(p->conninfo, ANSWER_MS, err)))
		return -1;
	if (ws_slot_server(p->c, &p->now, err) != 0)
		return -1;
	return check_system(e, p, err);
}

static void
visit(struct ensure *e, struct peer *p, int (*fn)(struct ensure *, struct peer *, struct ws_err *))
{
	struct ws_err err = {0};
	struct peer was = *p;
	int rc = meet(e, p, &err) == 0 ? fn(e, p, &err) : -1;

	if (rc != 0 && ws_tool_stopping()) {
		was.c = p->c;
		*p = was;
		return;
	}
	p->err = err;
	if (rc != 0)
		p->state = NULL;
	/* What an operator must see to is no fault of the connection. */
	if (rc == 0 || err.status == WS_EOPERATOR) {
		p->due = ws_now_us() + (uint64_t)(e->o->follow * 1e6);
		p->backoff_ms = 0;
		return;
	}
	close_peer(p);
	p->backoff_ms = p->backoff_ms ? p->backoff_ms * 2 : BACKOFF_FIRST_MS;
	if (p->backoff_ms > BACKOFF_LAST_MS)
		p->backoff_ms = BACKOFF_LAST_MS;
	p->due = ws_now_us() + (uint64_t)p->backoff_ms * 1000;
}

void
slot_visit_source(struct ensure *e)
{
	visit(e, &e->from, source_visit);
}

void
slot_visit_host(struct ensure *e, struct peer *p)
{
	visit(e, p, host_visit);
}
