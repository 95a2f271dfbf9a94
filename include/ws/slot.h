/* Replication slots as a server describes them: looking, proofs, moving forward, and keeping slots
 * on standbys that may be promoted.  Creating, dropping and READ_REPLICATION_SLOT are
 * ws/pgconn.h's. */
#ifndef WS_SLOT_H
#define WS_SLOT_H

#include "ws/pgconn.h"

struct ws_slot {
	char name[64];
	bool logical;
	char plugin[64], database[256]; /* of a logical one */
	bool temporary;
	bool active;
	int pid;               /* who uses it, 0: nobody */
	struct ws_pos restart; /* lsn 0: reserves nothing; tli 0: not known, see ws_slot_timeline */
	ws_lsn confirmed;      /* of a logical one */
	char wal_status[16];   /* reserved, extended, unreserved, lost; "": none */
	char invalidation[40]; /* why the server gave it up, "": it did not, or is older than 17 */
	char inactive_since[40];
	bool has_safe, has_retained;
	int64_t safe;     /* bytes of WAL until it can be lost; has_safe: there is a limit */
	int64_t retained; /* bytes of WAL from restart to the server's end */
};

/* A connection for everything in this header: replication commands and SQL in one session, so that
 * both are one server's.  conninfo NULL: libpq's defaults.  The database is `postgres' when nothing
 * names one.  timeout_ms: for the connection to stand, and for each answer; 0: 60 s. */
struct ws_pg *ws_slot_connect(const char *conninfo, int timeout_ms, struct ws_err *err);

/* All slots, in order of their names; *slots (n) is the caller's to free.  Any session will do. */
int ws_slot_list(struct ws_pg *c, struct ws_slot **slots, size_t *n, struct ws_err *err);
/* 1: *s; 0: there is none of that name; -1. */
int ws_slot_look(struct ws_pg *c, const char *name, struct ws_slot *s, struct ws_err *err);
/* Reads restart again with its timeline, where s is a physical one.  1; 0: it is gone; -1. */
int ws_slot_timeline(struct ws_pg *c, struct ws_slot *s, struct ws_err *err);

/* Given up by the server.  (16 calls a slot that was given up unreserved while it is in use.) */
bool ws_slot_is_lost(const struct ws_slot *s);

/* Proves that s is physical, of no session, reserves WAL and was not given up: WS_EOPERATOR with
 * reason slot_wrong_type or slot_lost. */
int ws_slot_check_usable(const struct ws_slot *s, struct ws_err *err);
/* That, and that its WAL is kept now: not unreserved, which moving may heal.  With lsn not 0 also
 * that it begins at or below it: slot_too_new. */
int ws_slot_check(const struct ws_slot *s, ws_lsn lsn, struct ws_err *err);
/* The position is on the server's branch of history: else timeline_not_descendant,
 * resume_past_fork; temporary when the server may only be behind. */
int ws_slot_check_branch(struct ws_pg *c, struct ws_pos pos, struct ws_err *err);

/* What a server is at this moment, as far as moving a slot is concerned. */
struct ws_slot_server {
	uint64_t system_id;
	ws_tli tli;
	bool standby;
	ws_lsn end; /* flushed, on a standby replayed: a slot moves no further */
};
int ws_slot_server(struct ws_pg *c, struct ws_slot_server *s, struct ws_err *err);

/* Moves the slot to lsn, which is not below its restart; never further.  The server writes it down
 * at its next checkpoint.  *s is looked at again.  In use: temporary, naming the pid. */
int ws_slot_advance(struct ws_pg *c, struct ws_slot *s, ws_lsn lsn, struct ws_err *err);

/* Appends a line: key=value, or a JSON object.  The parts, for a line with more on it: begin, what
 * the slot has, end. */
struct ws_slot_line {
	struct ws_buf *out;
	bool json;
	bool more;
};
void ws_slot_put(struct ws_slot_line *l, const struct ws_slot *s);
void
ws_slot_put_text(struct ws_slot_line *l, const char *key, const char *text); /* NULL, "": none */
void ws_slot_put_lsn(struct ws_slot_line *l, const char *key, ws_lsn lsn);   /* 0: none */
void ws_slot_put_number(struct ws_slot_line *l, const char *key, bool has, int64_t n);
void ws_slot_put_bool(struct ws_slot_line *l, const char *key, bool v);
void ws_slot_put_end(struct ws_slot_line *l);

/* base and over are connection strings, URIs, database names or NULL; over's parameters win.  The
 * caller frees.  Never print it. */
char *ws_slot_conninfo(const char *base, const char *over, struct ws_err *err);
/* These as a connection string; NULL: not given.  The caller frees. */
char *ws_slot_parameters(const char *host, const char *port, const char *user);
/* HOST, HOST:PORT, [HOST]:PORT or a connection string, into a connection string with base's other
 * parameters, and a name to print, of host and port alone; the caller frees both. */
int ws_slot_candidate(const char *base, const char *host, char **conninfo, char **name,
					  struct ws_err *err);

struct ws_slot_ensure_opts {
	const char *slot;
	const char *conninfo; /* parameters of all hosts */
	const char *from;     /* the server whose slot of that name is followed; NULL: none */
	ws_lsn lsn;           /* a slot moves no further; 0: no such limit */
	const char **hosts;
	int nhosts;
	bool recreate;
	double follow; /* seconds between two visits; 0: one visit */
	bool json;
};
/* On each host that is a standby: the slot is there, begins at or below the target, and is moved
 * towards it.  Prints a line for each host.  The exit status, with *err filled. */
int ws_slot_ensure(const struct ws_slot_ensure_opts *o, struct ws_err *err);

#endif
