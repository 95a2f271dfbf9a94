/* The receiver's parts: sessions (receive.c), and what they report and wait for (recvstate.c). */
#ifndef WS_PG_RECEIVER_H
#define WS_PG_RECEIVER_H

#include "recvhold.h"
#include "recvout.h"
#include "ws/receive.h"

/* How a session ended, beside errors. */
enum outcome {
	ENDPOS = 1,
	STOPPING,
	SHUTDOWN,
	TIMELINE_END,
	SERVER_STOPPED,
	NO_ROOM,
	BLOCKED,
	NO_PREVIOUS
};

struct receiver {
	const struct ws_receive_opts *o;
	struct ws_pg *c;
	struct ws_pg_source src;
	struct recvout *out;
	struct recvhold *hold; /* NULL: no hold-back */
	bool streamed;      /* WAL came in this session: the backoff starts anew */
	bool ever;          /* a session came to streaming */
	bool skip_previous; /* the segment before is gone on the server: do not compare it */
	bool warned_level;
	bool more;      /* libpq may hold messages: do not wait for the socket */
	bool local;     /* the error is of this machine: connecting again does not help */
	ws_lsn pushed;  /* end of what was handed to the output */
	ws_lsn checked; /* pushed when room was looked for last */
	ws_lsn server_end;
	uint64_t interval_us; /* of status messages, 0: none */
	uint64_t last_status, last_limit, blocked_since;
	ws_lsn reported; /* flush in the last status */
	struct ws_pos next; /* after TIMELINE_END: the timeline that follows, and the switch */
	ws_tli tli;         /* that is streamed */
	char last_msg[sizeof((struct ws_err *)0)->msg];
	uint64_t last_msg_us;
	double *m_bytes, *m_received, *m_source, *m_lag, *m_reconnects, *m_verified, *m_tli, *m_unread;
	double *m_switches, *m_switch_lsn, *m_transition, *m_abandoned;
};

void receiver_metrics_init(struct receiver *r);
void receiver_metrics_update(struct receiver *r);

/* Waits ms; false when told to stop. */
bool receiver_nap(struct receiver *r, int ms);

/* *err says that WAL of the slot is not there: asks the server whether the slot is lost, and says so in
 * *err.  Returns -1. */
int receiver_slot_lost(const struct receiver *r, struct ws_err *err);

/* The slot must hold what we are going to ask for: START_REPLICATION never compares. */
int receiver_check_slot(struct receiver *r, struct ws_pos kept, struct ws_pos *restart, struct ws_err *err);

/* ---- recvfork.c ---- */
/* The server's timeline must come from that of *kept.  What lies past the fork counts no longer, when
 * nothing of it was sent: *kept goes back. */
int receiver_lineage(struct receiver *r, struct ws_pos *kept, struct ws_err *err);
/* After TIMELINE_END: proves, keeps the history, goes on with the next timeline.  0 it streams; an outcome
 * or -1. */
int receiver_switch(struct receiver *r, struct ws_err *err);
/* Nothing is kept: where to begin so that lsn comes, with that timeline's history kept. */
int receiver_first(struct receiver *r, ws_lsn lsn, struct ws_pos *start, struct ws_err *err);

/* Tells the server what is written and durable. */
int receiver_status(struct receiver *r, struct ws_err *err);

/* 1: room, 0: none, -1.  Counts what the slowest consumer has not read. */
int receiver_room(struct receiver *r, bool reconnecting, struct ws_err *err);
/* Wait until there is room, and until the output has taken everything: 0, STOPPING or -1. */
int receiver_wait_room(struct receiver *r, struct ws_err *err);
int receiver_wait_idle(struct receiver *r, struct ws_err *err);

#endif
