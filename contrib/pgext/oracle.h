/* What the files of the oracle share.  The protocol is in ws-pgext(7).
 *
 *   oracle.c  the module: settings, the launcher that starts a worker for a database
 *   worker.c  a worker: its connections, one request at a time
 *   batch.c   a request's values, each with its own errors and limits
 *   node.c    descriptions of types as the client sends them
 *   render.c  a value's text by its description
 *   conn.c    frames on sockets */
#ifndef WALSHADOW_ORACLE_H
#define WALSHADOW_ORACLE_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/typcache.h"

#define ORACLE_MAGIC     "WSORACLE"
#define ORACLE_VERSION   1
#define ORACLE_MAX_FRAME (1100u * 1024 * 1024)
#define ORACLE_MAX_BATCH 1000000u
#define ORACLE_MAX_DEPTH 64

/* ---- settings ---- */
extern char *oracle_directory;
extern int oracle_value_timeout; /* s */
extern int oracle_memory_limit;  /* MB */

/* ---- conn.c ---- */

/* A reader of received bytes: past their end `bad` is set and everything is 0. */
typedef struct Cursor {
	const char *p, *end;
	bool bad;
} Cursor;

extern uint8 cur_u8(Cursor *c);
extern uint16 cur_u16(Cursor *c);
extern uint32 cur_u32(Cursor *c);
extern const char *cur_bytes(Cursor *c, size_t n);
/* u32 length and bytes; palloc'd, NUL-terminated.  A NUL inside is bad. */
extern char *cur_str(Cursor *c);

/* A growing buffer that may pass 1 GB. */
typedef struct Bytes {
	char *data;
	size_t len, cap;
} Bytes;

extern void buf_reserve(Bytes *b, size_t more);
extern void buf_put(Bytes *b, const void *p, size_t n);
extern void buf_u8(Bytes *b, uint8 v);
extern void buf_u16(Bytes *b, uint16 v);
extern void buf_u32(Bytes *b, uint32 v);
extern void buf_str(Bytes *b, const char *s, size_t n);
extern void buf_free(Bytes *b);
/* Frames: begin returns what end wants. */
extern size_t frame_begin(Bytes *b, char type);
extern void frame_end(Bytes *b, size_t at);
extern void frame_hello(Bytes *b, Oid db, const char *encoding);

/* The path of a socket in the directory; complains when it is too long. */
extern void socket_path(char *path, const char *name);
/* A listening socket that appears under its name when it takes connections. */
extern int socket_listen(const char *name);
/* -1: none is waiting, or it is of another user. */
extern int socket_accept(int fd);
/* Sends all; waits at most 60 s for the other side to take something.  False: it is gone. */
extern bool socket_send(int fd, const char *p, size_t n);

/* ---- node.c ---- */

enum LeafKind {
	LEAF_FUNCTION, /* its output function */
	LEAF_REG,      /* reg*: the oid, since names are in the catalogs */
	LEAF_ACLITEM   /* roles as oids, for the same reason */
};

typedef struct Desc {
	char kind; /* b e a c r m; d: of a dropped attribute */
	Oid oid;
	int16 len;
	bool byval;
	char align;
	/* b */
	enum LeafKind leaf;
	char *lib, *sym;
	FmgrInfo fn;
	bool ready; /* fn is set */
	/* a c r m: what it is made of */
	int n;
	struct Desc **kids;
	/* e */
	Oid *label_oids;
	char **labels;
	/* a */
	char delim;
	/* c */
	char **missing; /* of values older than the attribute; NULL elements */
	/* r m */
	TypeCacheEntry *range;
} Desc;

/* Reads a description in the current memory context; NULL: malformed. */
extern Desc *node_read(Cursor *c, int depth);
/* Finds the functions; an error when one is not there. */
extern void node_prepare(Desc *n);
/* After an error: what functions keep between calls is not trusted. */
extern void node_forget(Desc *n);

/* ---- render.c ---- */

/* A value's text, palloc'd.  p: its bytes on disk without varlena header, never external. */
extern char *render_bytes(Desc *n, const char *p, uint32 len);

/* ---- batch.c ---- */

typedef struct Types {
	MemoryContext cxt;
	Desc **v;
	uint32 n, cap;
} Types;

/* The body of a V frame into an R or N frame.  False: malformed. */
extern bool batch_run(Types *types, Cursor *c, Bytes *out);
extern void batch_init(void);

/* ---- worker.c ---- */
extern PGDLLEXPORT void oracle_worker_main(Datum arg);
/* ---- oracle.c ---- */
extern PGDLLEXPORT void oracle_launcher_main(Datum arg);

#endif
