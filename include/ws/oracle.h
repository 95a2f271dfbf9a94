/* The oracle's client: values of types that are not decoded here, rendered by their own output
 * function in the shadow; the protocol is in ws-pgext(7).
 *
 * Rows are written into the change stream with the bytes on disk; the places are noted
 * (ws_oracle_defer), and before the stream goes out all of them are rendered together and replaced
 * by the text (ws_oracle_resolve).  Nothing is asked for a single value, and order is kept. */
#ifndef WS_ORACLE_H
#define WS_ORACLE_H

#include "ws/shape.h"

#define WS_ORACLE_MAGIC     "WSORACLE"
#define WS_ORACLE_VERSION   1
#define WS_ORACLE_MAX_FRAME (1100u * 1024 * 1024)
#define WS_ORACLE_MAX_BATCH 1000000u
#define WS_ORACLE_MAX_DEPTH 64

/* ---- descriptions: what the module needs to know of a type, taken from the history ---- */

struct ws_oracle_lookup {
	/* 1 found (lives until the description is made), 0 unknown, -1 error */
	int (*type)(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err);
	int (*rel)(void *arg, ws_oid oid, const struct ws_rel **r, struct ws_err *err);
	void *arg;
};

/* Appends the description of a type; domains are resolved.  -1 also when something is not in the
 * history (reason unknown_type). */
int ws_oracle_describe(ws_oid typid, const struct ws_oracle_lookup *l, struct ws_buf *out,
					   struct ws_err *err);

/* ---- frames (pure) ---- */

struct ws_oracle_frame {
	uint8_t type;
	const uint8_t *p; /* the body */
	size_t n;
	size_t size; /* of the whole frame */
};

/* 1 a frame at p, 0 more bytes are needed, -1 malformed. */
int
ws_oracle_frame_parse(const uint8_t *p, size_t n, struct ws_oracle_frame *f, struct ws_err *err);

struct ws_oracle_hello {
	uint16_t version, major;
	ws_oid db;
	char encoding[64];
};
int
ws_oracle_hello_parse(const uint8_t *p, size_t n, struct ws_oracle_hello *h, struct ws_err *err);
/* G, N, X: one text, cut to size bytes. */
int ws_oracle_text_parse(const uint8_t *p, size_t n, char *text, size_t size, struct ws_err *err);

/* R: the answers in order.  begin checks seq and count; next gives one: 1, or -1 malformed. */
struct ws_oracle_answers {
	const uint8_t *p, *end;
	uint32_t left;
};
int ws_oracle_answers_begin(const uint8_t *p, size_t n, uint32_t seq, uint32_t count,
							struct ws_oracle_answers *a, struct ws_err *err);
int ws_oracle_answers_next(struct ws_oracle_answers *a, bool *failed, const char **text,
						   uint32_t *len, struct ws_err *err);

/* ---- the client ---- */

struct ws_oracle;

struct ws_oracle_stats {
	uint64_t values, batches, bytes; /* rendered; bytes of text */
	uint64_t lost;                   /* connections that ended before their answer */
	uint64_t waited_us;              /* for answers and for the oracle to be there */
};

/* socket: of the launcher.  Connects when first needed. */
struct ws_oracle *ws_oracle_new(const char *socket, ws_oid db);
void ws_oracle_free(struct ws_oracle *o);

/* The number of a type with this description; the same bytes give the same number.  name: for
 * messages. */
uint32_t ws_oracle_type(struct ws_oracle *o, const uint8_t *desc, size_t n, const char *name);

/* A value of the type was put into the buffer that resolve will be given: its u32 length is at
 * `at`, in the frame at `frame`.  In ascending order.  lsn: of its row, for messages. */
void ws_oracle_defer(struct ws_oracle *o, size_t frame, size_t at, uint32_t type, ws_lsn lsn);
size_t ws_oracle_deferred(const struct ws_oracle *o);

/* Puts texts in the place of all deferred values.  1 done; 0 the oracle is not there (ws_oracle_why
 * says in which way): b is as it was, ask again; -1: a value has no text (reason oracle_value), or
 * ends the oracle (oracle_crash), or the other side is none (oracle_protocol). */
int ws_oracle_resolve(struct ws_oracle *o, struct ws_buf *b, struct ws_err *err);
const char *ws_oracle_why(const struct ws_oracle *o);
void ws_oracle_get_stats(const struct ws_oracle *o, struct ws_oracle_stats *s);

#endif
