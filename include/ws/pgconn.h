/* A connection to PostgreSQL by libpq, and the replication protocol's client side on it.
 *
 * Waits end early when the tool is told to stop (WS_ETEMP with the message "interrupted").  Errors
 * of the server keep their SQLSTATE, see ws_pg_sqlstate.  Nothing here prints a connection string. */
#ifndef WS_PGCONN_H
#define WS_PGCONN_H

#include "ws/mem.h"
#include "ws/err.h"

struct ws_pg;

enum ws_pg_mode {
	WS_PG_SQL,      /* an ordinary session */
	WS_PG_PHYSICAL, /* replication=true: replication commands and SHOW, no SQL */
	WS_PG_DATABASE  /* replication=database: both */
};

struct ws_pg_opts {
	enum ws_pg_mode mode;
	const char *conninfo; /* connection string, URI or database name; NULL: libpq's defaults */
	const char *host, *port, *user; /* override conninfo's; NULL: not given */
	const char *password;           /* typed in by the user; NULL: none */
	const char *appname;            /* fallback_application_name */
	int timeout_ms;                 /* for the connection to stand; 0: 60 s */
	int answer_ms;                  /* for each answer to ws_pg_exec; 0: 60 s */
};

/* Opens a connection.  A refused login (class 28, 42501, 3D000) or a malformed string is
 * WS_EUSAGE, everything else temporary.  needs_password (may be NULL) is set when the server
 * asked for a password that nobody gave. */
struct ws_pg *ws_pg_open(const struct ws_pg_opts *o, bool *needs_password, struct ws_err *err);
/* The same where somebody may type the password: at once with always, else when the server wants one,
 * none was given, stderr is a terminal and it is not never.  o->password then stays set for the next time. */
struct ws_pg *ws_pg_open_asking(struct ws_pg_opts *o, bool always, bool never, struct ws_err *err);
void ws_pg_close(struct ws_pg *c);

/* SQLSTATE of the last error that the server reported on c, "" when there was none. */
const char *ws_pg_sqlstate(const struct ws_pg *c);
int ws_pg_version(const struct ws_pg *c); /* server_version_num */
int ws_pg_socket(const struct ws_pg *c);
/* The libpq connection, for the other files of lib/pg. */
struct pg_conn *ws_pg_raw(struct ws_pg *c);

/* Sends one command and gives its last result, which must be rows or a plain success; the caller
 * clears it by PQclear.  NULL: error; what begins the message. */
struct pg_result *ws_pg_exec(struct ws_pg *c, const char *sql, const char *what, struct ws_err *err);

/* SHOW name into out (n bytes). */
int ws_pg_show(struct ws_pg *c, const char *name, char *out, size_t n, struct ws_err *err);

/* ---- replication ---- */

/* What a server is, as far as a receiver must know. */
struct ws_pg_source {
	uint64_t system_id;
	int major;
	uint32_t segsize;
	struct ws_pos pos; /* IDENTIFY_SYSTEM: timeline and flush (on a standby: replay) position */
	char wal_level[16];
	int wal_sender_timeout_ms; /* 0: none */
};

/* IDENTIFY_SYSTEM and the settings.  A major that is not supported is WS_EUSAGE. */
int ws_pg_identify(struct ws_pg *c, struct ws_pg_source *s, struct ws_err *err);

/* A slot's name by PostgreSQL's rules, else WS_EUSAGE. */
int ws_pg_slot_name_check(const char *name, struct ws_err *err);
/* Physical slots.  create with exists_ok: a physical slot of that name is no error. */
int ws_pg_slot_create(struct ws_pg *c, const char *name, bool exists_ok, struct ws_err *err);
int ws_pg_slot_drop(struct ws_pg *c, const char *name, struct ws_err *err);
/* restart: its restart_lsn and that LSN's timeline; {0,0} when the slot holds nothing (lost, or
 * made without reserving WAL).  Missing: WS_EOPERATOR slot_missing. */
int ws_pg_slot_read(struct ws_pg *c, const char *name, struct ws_pos *restart, struct ws_err *err);

/* Appends the bytes of timeline tli's history file.  Absent: WS_EOPERATOR history_missing. */
int ws_pg_history(struct ws_pg *c, ws_tli tli, struct ws_buf *out, struct ws_err *err);

enum ws_pg_event_kind {
	WS_PG_NOTHING,     /* no message is there yet */
	WS_PG_WAL,         /* bytes of WAL; take or drop them by ws_pg_free */
	WS_PG_KEEPALIVE,
	WS_PG_TIMELINE_END,/* the server ended the timeline: next, or switch unknown when next.tli is 0 */
	WS_PG_SHUTDOWN,    /* the server ended the stream in order */
	WS_PG_STOPPED      /* our own CopyDone was answered */
};

struct ws_pg_event {
	enum ws_pg_event_kind kind;
	void *owner; /* of the bytes: ws_pg_free */
	const uint8_t *p;
	size_t n;
	ws_lsn lsn;        /* of the first byte */
	ws_lsn server_end; /* WAL and keepalive: the end of WAL on the server as sent */
	bool reply;        /* keepalive: an answer is wanted at once */
	struct ws_pos next; /* timeline end: next timeline and the switch */
};

/* START_REPLICATION.  0: streaming.  1: pos is exactly the end of that timeline, *next says where it
 * goes on.  -1: error, with reasons wal_missing, slot_missing, slot_lost. */
int ws_pg_stream_start(struct ws_pg *c, const char *slot, struct ws_pos pos, struct ws_pos *next,
                       struct ws_err *err);
/* Never waits for WAL (WS_PG_NOTHING instead), except for the rows that end a timeline, at most
 * some seconds.  -1: the stream is broken; temporary unless err says otherwise. */
int ws_pg_stream_next(struct ws_pg *c, struct ws_pg_event *ev, struct ws_err *err);
void ws_pg_free(void *owner);
/* Standby status; queued and flushed as far as the socket takes it.  A server that is gone is no
 * failure here: ws_pg_stream_next tells how the stream ended. */
int ws_pg_stream_status(struct ws_pg *c, ws_lsn write, ws_lsn flush, ws_lsn apply, struct ws_err *err);
/* True when something queued could not be sent yet: poll for POLLOUT, then ws_pg_stream_flush. */
bool ws_pg_stream_unsent(const struct ws_pg *c);
int ws_pg_stream_flush(struct ws_pg *c, struct ws_err *err);

#endif
