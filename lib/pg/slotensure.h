/* Keeping a slot on standbys: the servers and one visit to them (slotvisit.c), the rounds and what
 * is said (slotensure.c). */
#ifndef WS_PG_SLOTENSURE_H
#define WS_PG_SLOTENSURE_H

#include "ws/history.h"
#include "ws/slot.h"

struct peer {
	char *conninfo, *name;
	struct ws_pg *c;
	struct ws_slot_server now;
	bool has; /* slot is what was seen last */
	struct ws_slot slot;
	const char *state; /* of the last visit, NULL: it failed */
	struct ws_err err; /* of the last visit; status 0: all is well */
	uint64_t due;      /* of the next visit */
	int backoff_ms;
	char *said; /* what of the line shows that something has changed */
	double *m_restart, *m_ok;
};

struct ensure {
	const struct ws_slot_ensure_opts *o;
	struct peer from; /* conninfo NULL: there is none */
	struct peer *hosts;
	uint64_t system_id;     /* of the first server seen */
	struct ws_history hist; /* of from's timeline; tli 0: not known */
	double *m_target;
	ws_lsn target; /* no slot is moved past it; 0: not known yet */
};

/* One visit: connects when needed; p->state, p->slot and p->err say what came of it.  A visit that
 * was interrupted says nothing. */
void slot_visit_source(struct ensure *e);
void slot_visit_host(struct ensure *e, struct peer *p);

#endif
