/* Why a slot's WAL is not to be had: a replication connection is told that it is, and some
 * SQLSTATEs say it, but only pg_replication_slots says that the slot is lost, and since 17 by what.
 * It is asked on a session of its own, which an authentication rule may refuse: then what is known
 * already stands. */
#include <stdio.h>
#include <string.h>

#include "receiver.h"
#include "ws/log.h"
#include "ws/slot.h"

#define CONNECT_MS 10000

/* 1 lost, 0 not, -1 not known.  why: the server's word for the cause, "" before 17. */
static int
ask(const struct ws_pg_opts *conn, const char *slot, char *why, size_t n, struct ws_err *err)
{
	struct ws_pg_opts o = *conn;
	struct ws_slot s;
	int lost = -1;

	o.mode = WS_PG_SQL;
	o.timeout_ms = CONNECT_MS;
	struct ws_pg *c = ws_pg_open(&o, NULL, err);

	if (!c)
		return -1;
	if (ws_slot_look(c, slot, &s, err) == 1) {
		lost = ws_slot_is_lost(&s);
		snprintf(why, n, "%s", s.invalidation);
	}
	ws_pg_close(c);
	return lost;
}

int
receiver_slot_lost(const struct receiver *r, struct ws_err *err)
{
	struct ws_err ignored = {0};
	char why[64] = "";

	if (!r->o->slot || (strcmp(err->reason, "slot_lost") && strcmp(err->reason, "wal_missing")))
		return -1;
	int lost = ask(&r->o->conn, r->o->slot, why, sizeof why, &ignored);

	if (lost < 0)
		ws_debug("what became of the slot is not known: %s", ignored.msg);
	if (lost != 1)
		return -1;
	char was[300];

	snprintf(was, sizeof was, "%.299s", err->msg);
	return ws_err_op(err, "slot_lost",
					 "replication slot \"%s\" is lost%s%s: the source no longer keeps the WAL that "
					 "follows what was received; begin anew (%s)",
					 r->o->slot, *why ? ", cause " : "", why, was);
}
