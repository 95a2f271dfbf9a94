/* The receiver's parts: sessions (receive.c), what they report and wait for (recvstate.c), promotions
 * (recvfork.c), hold-back (recvhold.c), and the archive (recvarc.c asks it, recvrestore.c goes on from it). */
#ifndef WS_PG_RECEIVER_H
#define WS_PG_RECEIVER_H

#include "recvhold.h"
#include "recvout.h"
#include "ws/history.h"
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
	NO_PREVIOUS,
	RESTORED /* something came from the archive */
};

/* A timeline's history file as a server, or the archive, gave it. */
struct recv_history {
	ws_tli tli;
	bool archive;
	struct ws_buf bytes;
};

struct receiver {
	const struct ws_receive_opts *o;
	struct ws_pg *c;
	struct ws_pg_source src;
	struct recvout *out;
	struct recvhold *hold; /* NULL: no hold-back */
	bool connected;     /* this session's connection stood */
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
	struct recv_history *hist; /* of timelines newer than ours, while we are not there */
	size_t nhist;
	bool swept;          /* receiver_archive_sweep has been here */
	ws_lsn absent;       /* the archive does not have what follows, */
	uint64_t absent_since; /* since then */
	char last_msg[sizeof((struct ws_err *)0)->msg];
	uint64_t last_msg_us;
	double *m_bytes, *m_received, *m_source, *m_lag, *m_reconnects, *m_verified, *m_tli, *m_unread;
	double *m_switches, *m_switch_lsn, *m_transition, *m_abandoned, *m_restored;
};

void receiver_metrics_init(struct receiver *r);
void receiver_metrics_update(struct receiver *r);

/* Waits ms; false when told to stop. */
bool receiver_nap(struct receiver *r, int ms);

/* *err says that WAL of the slot is not there: asks the server whether the slot is lost, and says so in
 * *err.  Returns -1. */
int receiver_slot_lost(const struct receiver *r, struct ws_err *err);

/* The output, when r->src says which cluster it is of; opened once. */
int receiver_open_output(struct receiver *r, struct ws_err *err);

/* The slot must hold what we are going to ask for: START_REPLICATION never compares. */
int receiver_check_slot(struct receiver *r, struct ws_pos kept, struct ws_pos *restart, struct ws_err *err);

/* ---- recvfork.c ---- */
/* The server's timeline must come from that of *kept.  What lies past the fork counts no longer, when
 * nothing of it was sent: *kept goes back. */
int receiver_lineage(struct receiver *r, struct ws_pos *kept, struct ws_err *err);
/* After TIMELINE_END: proves, keeps the history, goes on with the next timeline.  0 it streams; an outcome
 * or -1. */
int receiver_switch(struct receiver *r, struct ws_err *err);
/* The same step without a server's word: r->tli ends where next begins, and r->pushed is there.  0, an
 * outcome or -1; then bytes of next.tli are to come, from r->pushed on. */
int receiver_switch_restored(struct receiver *r, struct ws_pos next, struct ws_err *err);
/* Nothing is kept: where to begin so that lsn comes, with that timeline's history kept. */
int receiver_first(struct receiver *r, ws_lsn lsn, struct ws_pos *start, struct ws_err *err);

#define RESTORE_PIECE 262144u /* of a restored file that is read at once */

/* ---- recvarc.c ---- */
/* The history of tli and, appended to *bytes, its file: the connected server's, else the archive's when
 * the server has none.  *source ("server", "archive") says whose it is.  Between two streams no server
 * waits for an answer of ours, however long the archive takes. */
int receiver_history(struct receiver *r, ws_tli tli, struct ws_history *h, struct ws_buf *bytes,
					 const char **source, struct ws_err *err);
/* Keeps what the server says of the timelines of h that are newer than tli, for when it is gone. */
int receiver_history_learn(struct receiver *r, const struct ws_history *h, ws_tli tli, struct ws_err *err);
/* The newest timeline that the archive knows, from *tli on: PostgreSQL's rule, an id that is missing ends
 * the search. */
int receiver_archive_newest(struct receiver *r, ws_tli *tli, struct ws_err *err);
/* The history of tli that the archive has, or the connected server, must be the one that is kept: else
 * sibling_branch, the same timeline id by another promotion.  Where one of the two has none, bytes alone tell. */
int receiver_same_history(struct receiver *r, ws_tli tli, bool archive, struct ws_err *err);
/* The segment that begins at seg on h, open and looked through.  1, 0 the archive does not have it, -1. */
int receiver_archive_segment(struct receiver *r, const struct ws_history *h, ws_lsn seg, int *fd,
							 struct ws_err *err);
/* Removes what a receiver that was killed has left of one.  The directory is ours. */
void receiver_archive_sweep(struct receiver *r);
void receiver_archive_fini(struct receiver *r);

/* ---- recvrestore.c ---- */
/* A session ended by *err: is it for the archive to go on? */
bool receiver_asks_archive(const struct receiver *r, const struct ws_err *err);
/* Goes on from the archive as far as it gets.  RESTORED, ENDPOS, STOPPING or -1: *err is then why the
 * session ended, or what went wrong here. */
int receiver_restore(struct receiver *r, struct ws_err *err);

/* Tells the server what is written and durable. */
int receiver_status(struct receiver *r, struct ws_err *err);

/* 1: room, 0: none, -1.  Counts what the slowest consumer has not read. */
int receiver_room(struct receiver *r, bool reconnecting, struct ws_err *err);
/* Wait until there is room, until the output has taken everything, and while it is full: 0, STOPPING or -1. */
int receiver_wait_room(struct receiver *r, struct ws_err *err);
int receiver_wait_idle(struct receiver *r, struct ws_err *err);
int receiver_wait_taken(struct receiver *r, struct ws_err *err);

#endif
