/* The server side of the frontend/backend protocol, as much as a replication client needs
 * (protocol documentation, "Message Formats"; replication/repl_gram.y).  Pure: bytes in, structs
 * out; builders append to a buffer. */
#ifndef WS_PG_SERVERMSG_H
#define WS_PG_SERVERMSG_H

#include "ws/mem.h"

#define STARTUP_MAX 10000u /* libpq/pqcomm.h: MAX_STARTUP_PACKET_LENGTH */
#define MESSAGE_MAX 65536u /* nothing that a replication client sends is longer */

enum startup_kind { STARTUP_SSL, STARTUP_GSS, STARTUP_CANCEL, STARTUP_V3, STARTUP_OTHER };

struct startup {
	enum startup_kind kind;
	uint32_t minor;
	bool replication, database; /* replication=... given and true; "database" */
	char application[64];
	bool extensions; /* asks for protocol extensions (_pq_.) */
};

/* p is the packet behind its length word.  -1: malformed. */
int startup_parse(const uint8_t *p, size_t n, struct startup *s);

enum repl_cmd_kind {
	CMD_IDENTIFY,
	CMD_SHOW,
	CMD_HISTORY,
	CMD_START,
	CMD_READ_SLOT,
	CMD_SEARCH_PATH,
	CMD_SLOT,
	CMD_EMPTY,
	CMD_LOGICAL,
	CMD_UNKNOWN
};

struct repl_cmd {
	enum repl_cmd_kind kind;
	char name[64]; /* SHOW's parameter, lower case */
	ws_lsn lsn;    /* START_REPLICATION */
	ws_tli tli;    /* START_REPLICATION (0: none given), TIMELINE_HISTORY */
};

/* A command's text.  -1: syntax error. */
int repl_cmd_parse(const char *text, struct repl_cmd *c);

/* ---- builders ---- */
struct column {
	const char *name;
	uint32_t type; /* 25 text, 20 int8, 23 int4, 17 bytea */
};

void msg_begin(struct ws_buf *b, char type, size_t *mark);
void msg_end(struct ws_buf *b, size_t mark);
void msg_auth_ok(struct ws_buf *b);
void msg_parameter(struct ws_buf *b, const char *name, const char *value);
void msg_negotiate(struct ws_buf *b);
void msg_ready(struct ws_buf *b);
void msg_rows(struct ws_buf *b, const struct column *cols, size_t n);
/* values NULL: a NULL field; lens may be NULL (strlen). */
void msg_row(struct ws_buf *b, const char *const *values, const size_t *lens, size_t n);
void msg_complete(struct ws_buf *b, const char *tag);
void msg_copy_both(struct ws_buf *b);
void msg_copy_done(struct ws_buf *b);
void msg_error(struct ws_buf *b, const char *severity, const char *sqlstate, const char *text);
void msg_keepalive(struct ws_buf *b, ws_lsn end, int64_t now, bool reply);

#endif
