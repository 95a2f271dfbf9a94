/* ws-emit's inside.
 *
 * Invariants.  A batch belongs to one table; `before` is the last position that was complete when
 * its first row came, so ack may go as far as the oldest live batch's `before`, or to `last` when
 * none is live.  Nothing is sent before `sent` covers it durably.  A statement that does not
 * commute with inserts runs only after emit_barrier: every batch durable, ack written, no query of
 * this consumer left on any server. */
#ifndef LIB_CH_EMIT_H
#define LIB_CH_EMIT_H

#include <uthash.h>

#include "lib/ch/http.h"
#include "ws/change.h"
#include "ws/emit.h"
#include "ws/log.h"
#include "ws/lsn.h"

/* ---- what a table's comment says (note.c) ---- */

/* OWN: the relation's rows are here.  LEFT: its table of earlier, nobody's now.  A table that
 * partitions share has one line a leaf behind one of its ROOT, which has no columns.  FILLING: the
 * relation's rows are being copied here from where they were; LEAVING: a leaf's are being removed.
 */
enum ch_note_state {
	CH_NOTE_OWN,
	CH_NOTE_LEFT,
	CH_NOTE_ROOT,
	CH_NOTE_FILLING,
	CH_NOTE_LEAVING,
	CH_NOTE_STATES
};

struct ch_note_col {
	int16_t attnum;
	ws_oid typid;
	int32_t typmod;
	bool notnull;
	char *name; /* at the destination */
};

struct ch_note {
	char *text; /* what stands beside ours */
	uint64_t system_id;
	ws_oid db, oid;
	char *consumer;
	enum ch_note_state state;
	ws_lsn shape; /* the boundary whose shape the table has */
	ws_lsn at;    /* the commit that last changed it */
	int ncols;
	struct ch_note_col *cols;
};

void ch_note_format(const struct ch_note *n, struct ws_buf *out);
/* 1 there is one, 0 there is none, -1 malformed. */
int ch_note_parse(const char *comment, struct ch_note *out);
/* The same for the line of one relation; the others' are in its text. */
int ch_note_parse_oid(const char *comment, ws_oid oid, struct ch_note *out);
/* Line by line, without texts. */
int ch_note_next(const char **at, struct ch_note *out);
/* In all lines of a text: another name for a column; to NULL: it is gone. */
void ch_notes_rename(char **text, const char *from, const char *to);
void ch_note_fini(struct ch_note *n);
struct ch_note_col *ch_note_find(const struct ch_note *n, int16_t attnum);
struct ch_note_col *ch_note_add(struct ch_note *n);

/* ---- tables ---- */

/* A column that inserts carry. */
struct ch_lcol {
	char *name;
	struct ch_type type;
	int extra;      /* enum ws_extra, or -1 */
	int16_t attnum; /* of the source */
	uint8_t kind, elem;
	uint8_t fast; /* enum ch_fast */
	bool key;     /* in the sort key */
};

/* What inserts into a table carry; immutable, shared by its batches. */
struct ch_layout {
	int refs;
	struct ws_arena arena;
	int n;
	struct ch_lcol *cols;
};

void ch_layout_unref(struct ch_layout *l);

struct ch_tab {
	ws_oid oid;
	UT_hash_handle hh;
	bool resolved, routed; /* by the routes in force */
	bool ready;            /* exists at the destination in this shape */
	bool told;             /* that it is not replicated */
	bool gone;             /* dropped at the source */
	struct ws_route route;
	const struct ws_c_relation *rel; /* the shape bound */
	char *db, *name;                 /* the destination's */
	char *target;                    /* where rows go, quoted: the table or its staging table */
	struct ch_note note;
	bool keyless; /* no key in the source */
	bool append;  /* keyless=append: sorted by version, inserts only */
	bool history; /* every change a row, no version to fall back on */
	bool retype;  /* a type changed beyond widening: a replace must follow, or a rebuild */
	struct ch_layout *layout;
	int *src; /* per layout column: index in rel->cols, -1 none */
	struct ch_batch *open;
	bool shared;                             /* a leaf in its root's table */
	ws_oid root;                             /* then: of that */
	bool stager;                             /* its staging table has the restaged leaves */
	unsigned __int128 replace;               /* version of the begin of a replacement in place */
	const struct ws_c_relation *resolved_as; /* the shape whose names were asked for */
	ws_lsn loaded; /* commits that end at or below are in the initial load */
	uint64_t flushed_us;
	enum { CH_ROWS, CH_REPLACE, CH_RESTAGE, CH_LOAD } phase;
	bool cut;         /* a history's rows after ack have been removed */
	uint64_t loadseq; /* rows of the snapshot so far, for append and history */
	struct ws_c_snapshot snap;
};

/* ---- batches (batch.c) ---- */

enum ch_bstate { CH_OPEN, CH_QUEUED, CH_FLYING, CH_WAITING };

struct ch_batch {
	struct ch_batch *prev, *next; /* live ones, by age */
	struct ch_tab *tab;
	struct ch_layout *layout;
	enum ch_bstate state;
	struct ch_col *cols;
	uint64_t rows, bytes;
	uint64_t opened_us, retry_us;
	int64_t time; /* commit time of its first row */
	struct ws_pos before;
	unsigned __int128 vmin, vmax;
	unsigned attempt;
	bool unknown; /* an attempt may have been executed */
	char query_id[200];
	struct ws_buf head, packed;
	struct ch_piece *pieces;
	int npieces;
	struct ch_req req;
};

struct ch_server {
	struct ch_limits lim;
	bool known; /* asked once */
	struct ws_buf insert_params, query_params;
};

struct ch_known { /* a relation of this consumer in a table found at the destination */
	struct ch_known *next;
	char *db, *name;
	bool shared; /* with other leaves */
	struct ch_note note;
};

struct ch_version { /* rules, for commits that end above from */
	ws_lsn from;
	struct ws_buf text;
	struct ws_routes *routes;
};

struct ws_emit {
	struct ws_emit_opts o;
	struct ws_routes *routes;    /* in force; one of versions, or NULL until a transaction begins */
	struct ch_version *versions; /* by from; at least one once open */
	size_t nversions;
	struct ws_buf routes_text; /* the file at the start, until versions are open */
	struct ws_routes *routes_read;
	struct ch_http *http;
	struct ch_server srv;
	enum ch_encoding encoding;
	struct ws_c_identity id;
	char *dbname, *prefix; /* of query ids: walshadow/SYSTEM/CONSUMER/ */
	bool started;
	/* tables */
	struct ch_tab *tabs;     /* by oid */
	struct ch_tab **handles; /* by handle */
	uint32_t nhandles;
	struct ch_known *known;
	const struct ws_c_relation **dropped; /* partitions and roots, in this transaction */
	int ndropped;
	/* the stream's place */
	bool in_tx, ended;
	bool skip_tx; /* it was acknowledged before this run */
	struct ws_c_begin tx;
	ws_tli tli;
	struct ws_pos last; /* everything at or below has been taken in */
	ws_lsn seen;        /* highest end of a transaction begun */
	struct ws_pos ack, sent, start_ack;
	bool have_ack, have_sent;
	uint64_t ack_us;
	ws_lsn load_lo, load_hi;
	ws_tli load_tli;
	/* batches */
	struct ch_batch *oldest, *newest;
	int flying, queued;
	uint64_t held; /* bytes in live batches */
	uint64_t seq;  /* of query ids */
	bool stale;    /* queries of an earlier life or without an answer may still run */
	bool *host_stale;
	/* failing */
	struct ws_err fatal; /* set: nothing more is sent */
	unsigned failures;
	uint64_t failing_us, next_us;
	char *last_error;
	uint64_t status_us;
	struct ws_metrics *metrics;
	double *m_rows, *m_bytes, *m_inserts, *m_retries, *m_policy, *m_lag, *m_ack, *m_sent,
		*m_success;
	double *m_live, *m_held, *m_failing, *m_skipped, *m_unsupported, *m_statements, *m_dropped;
};

int ch_batch_row(struct ws_emit *e, struct ch_tab *t, char op, const struct ws_value *vals,
				 const struct ws_value *fallback, uint64_t ordinal, bool deleted, bool keyonly,
				 size_t size, struct ws_err *err);
void ch_batch_seal(struct ws_emit *e, struct ch_batch *b);
void ch_batch_seal_all(struct ws_emit *e);
void ch_batch_drop_all(struct ws_emit *e);
void ch_batch_free(struct ws_emit *e, struct ch_batch *b);
/* Compresses the body, before it is sent the first time. */
int ch_batch_pack(struct ws_emit *e, struct ch_batch *b, struct ws_err *err);
/* Seals by age and idleness, starts what is queued. */
int ch_batch_tick(struct ws_emit *e, bool idle, struct ws_err *err);
/* Moves requests on; waits at most ms when nothing is to do.  fd -1: the input is not waited for.
 * Sets *readable. */
int emit_pump(struct ws_emit *e, int fd, int ms, bool *readable, struct ws_err *err);
/* Milliseconds until a batch is due, at most most. */
int ch_batch_due(const struct ws_emit *e, int most);

/* ---- positions (ack.c) ---- */
int emit_positions_open(struct ws_emit *e, struct ws_err *err);
int emit_sent(struct ws_emit *e, struct ws_pos p, struct ws_err *err);
/* Covers everything that was taken in: called before a batch or a statement leaves. */
int emit_sent_seen(struct ws_emit *e, struct ws_err *err);
/* Moves ack as far as batches allow; now: whatever the time since the last write. */
int emit_ack(struct ws_emit *e, bool now, struct ws_err *err);
int emit_loaded_read(struct ws_emit *e, ws_oid oid, ws_lsn *lsn, struct ws_err *err);
int
emit_loaded_write(struct ws_emit *e, const struct ch_tab *t, struct ws_pos p, struct ws_err *err);

/* ---- positions of several destinations (common.c); nothing without ---- */
int emit_common_sent(const struct ws_emit *e, struct ws_pos p, struct ws_err *err);
int emit_common_ack(const struct ws_emit *e, struct ws_err *err);
int emit_common_loaded(const struct ws_emit *e, ws_oid oid, struct ws_pos p,
					   const struct ws_buf *text, struct ws_err *err);
int emit_common_check(const struct ws_emit *e, struct ws_err *err);

/* ---- versions of the routes (version.c) ---- */
/* The file as it is now must be good: before anything is written. */
int emit_routes_check(struct ws_emit *e, struct ws_err *err);
/* After the positions: the versions in use, and the file as the newest where it has changed. */
int emit_routes_open(struct ws_emit *e, struct ws_err *err);
/* The rules for the commit that ends there are in force. */
int emit_routes_at(struct ws_emit *e, ws_lsn end, struct ws_err *err);
/* Outside a transaction: the file has changed.  A bad one is told and changes nothing. */
int emit_routes_reload(struct ws_emit *e, struct ws_err *err);
/* The run ends for the operator: other rules may begin before what stopped it. */
void emit_routes_stopped(struct ws_emit *e);
void emit_routes_close(struct ws_emit *e);

/* ---- the server (server.c) ---- */
/* One query, tried until it is answered; the answer is appended to out (may be NULL).  done (may be
 * NULL) is asked before a retry whose first try may have been executed: 1 it was, 0 not, -1. */
struct ch_stmt {
	const char *sql;
	int (*done)(struct ws_emit *e, void *arg, struct ws_err *err);
	void *arg;
};
int emit_query(struct ws_emit *e, const struct ch_stmt *s, struct ws_buf *out, struct ws_err *err);
int emit_sql(struct ws_emit *e, struct ws_buf *out, struct ws_err *err, const char *fmt, ...)
	WS_PRINTF(4, 5);
int emit_start(struct ws_emit *e, struct ws_err *err);
/* Every batch durable, ack written. */
int emit_flush(struct ws_emit *e, struct ws_err *err);
int emit_barrier(struct ws_emit *e, struct ws_err *err);
/* Waits until no query of this consumer is left anywhere. */
int emit_gone(struct ws_emit *e, struct ws_err *err);
/* After a failure: false when it is to be given up (the error is then the run's). */
bool emit_backoff(struct ws_emit *e, const struct ws_err *why, int url);
void emit_recovered(struct ws_emit *e);
double emit_delay(unsigned attempt);
/* Cuts a TabSeparated answer: the next field of *at, unescaped in place, or NULL at its end. *eol
 * tells that it was the line's last. */
char *ch_tsv_next(char **at, bool *eol);

/* ---- tables at the destination (table.c, describe.c, layout.c, shape.c, ddl.c) ---- */
struct ch_tab *emit_tab(struct ws_emit *e, const struct ws_c_relation *rel);
/* Without a key, which its route refuses? */
bool emit_tab_refused(const struct ch_tab *t, const struct ws_c_relation *rel);
/* Makes the destination fit for this shape's rows. */
int emit_tab_ready(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
				   struct ws_err *err);
struct ch_place {
	const char *db, *name;
};
/* Decides where the relation's table is, and makes it when it is nowhere (locate.c). */
int emit_locate(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
				struct ws_err *err);
void emit_tabs_forget_routes(struct ws_emit *e);
void emit_tab_free(struct ch_tab *t);
int emit_tab_bind(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
				  struct ws_err *err);
int emit_known_read(struct ws_emit *e, struct ws_err *err);
/* Whether a table's note names this consumer of this database. */
bool emit_note_ours(const struct ws_emit *e, const struct ch_note *n);
/* Where the relation's own table is, the shared table of a root, a leaf in a shared table. */
struct ch_known *emit_known_find(struct ws_emit *e, ws_oid oid);
struct ch_known *emit_known_root(struct ws_emit *e, ws_oid oid);
struct ch_known *emit_known_leaf(struct ws_emit *e, ws_oid oid);
struct ch_known *emit_known_add(struct ws_emit *e, const char *db, const char *name, ws_oid oid,
								enum ch_note_state state, bool shared);
void emit_known_forget(struct ws_emit *e, struct ch_known *k);

/* A destination column as the server tells it. */
struct ch_dcol {
	char *name, *type, *kind; /* kind: default_kind */
	bool key, part;
};
struct ch_desc {
	bool exists;
	struct ws_arena arena;
	char *engine, *engine_full, *sorting_key, *uuid, *comment;
	int n;
	struct ch_dcol *cols;
};
int emit_describe(struct ws_emit *e, const char *db, const char *name, struct ch_desc *out,
				  struct ws_err *err);
void ch_desc_fini(struct ch_desc *d);
struct ch_dcol *ch_desc_find(const struct ch_desc *d, const char *name);

/* The columns of the source's usable key; false without one. */
/* The column with this attnum, or NULL. */
const struct ws_c_column *ch_rel_column(const struct ws_c_relation *rel, int16_t attnum);
bool ch_rel_key(const struct ws_c_relation *rel, bool *key);
void ch_create_sql(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
				   const char *db, const char *name, const struct ch_desc *old,
				   const struct ch_note *note, struct ws_buf *out);
void ch_note_of(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
				struct ch_note *out);
void
ch_column_name(const struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *rel,
			   const struct ws_c_column *col, struct ws_route_column *out);
int emit_layout(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
				const struct ch_desc *d, struct ws_err *err);
int ch_check_engine(const struct ch_tab *t, const struct ch_desc *d, struct ws_err *err);
/* After a commit that changed a shape: values that are there must still be written as they are. */
int ch_check_text(const struct ws_emit *e, const struct ch_tab *t,
				  const struct ws_c_relation *before, const struct ws_c_relation *after, struct ws_err *err);
int ch_check_table(const struct ch_tab *t, const struct ws_c_relation *rel, const struct ch_desc *d,
				   struct ws_err *err);
void ch_full_name(struct ws_buf *b, const char *db, const char *name);
const char *ch_on_cluster(const struct ch_tab *t, struct ws_buf *scratch);

/* One step towards the shape: 1 a statement (and the note that it writes), 0 nothing to do. */
struct ch_step {
	struct ws_buf sql; /* "ADD COLUMN ..., MODIFY COMMENT ..." without ALTER TABLE */
	struct ch_note note;
	bool retype; /* types differ beyond widening */
};
int ch_shape_step(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel,
				  const struct ch_desc *d, struct ch_step *out, struct ws_err *err);
int ch_missing_sql(struct ws_emit *e, const struct ws_c_column *col, const char *type,
				   struct ws_buf *out, struct ws_err *err);

/* ---- partitions in their root's table (leaf.c, restage.c) ---- */
/* For a leaf in a shared table: appends the condition that finds its rows. */
void ch_leaf_where(const struct ch_tab *t, struct ws_buf *where);
/* Removes the leaf's rows with a version below; 0: all. */
int
emit_leaf_empty(struct ws_emit *e, struct ch_tab *t, unsigned __int128 below, struct ws_err *err);
/* A leaf's initial load: its rows go in beside what is there, which goes when they all are. */
int emit_leaf_load(struct ws_emit *e, struct ch_tab *t, struct ws_err *err);
int emit_leaf_loaded(struct ws_emit *e, struct ch_tab *t, struct ws_err *err);
/* Where the relation's rows are, when that is not where they belong now; or NULL. */
struct ch_known *emit_place_before(struct ws_emit *e, const struct ch_tab *t);
/* Copies them when that is still to be done, and clears their old place. */
int emit_move(struct ws_emit *e, struct ch_tab *t, const struct ch_desc *d, struct ws_err *err);
int emit_retire(struct ws_emit *e, struct ch_tab *t, struct ch_known *k, struct ws_err *err);
/* A replacement of a leaf whose new type the shared table does not hold. */
bool emit_restaging(struct ws_emit *e, const struct ch_tab *t);
int emit_restage(struct ws_emit *e, struct ch_tab *t, struct ws_err *err);
/* At the commit: staged leaves take their place; dropped ones go. */
int emit_leaves_commit(struct ws_emit *e, struct ws_err *err);
/* A leaf, or a root, was dropped: done at the commit. */
void emit_leaf_dropped(struct ws_emit *e, const struct ws_c_relation *rel);

/* ---- statements (stmt.c) ---- */
int emit_truncate(struct ws_emit *e, struct ch_tab *t, uint64_t ordinal, struct ws_err *err);
int emit_stage(struct ws_emit *e, struct ch_tab *t, const char *what, struct ws_err *err);
int emit_exchange(struct ws_emit *e, struct ch_tab *t, struct ws_err *err);
int emit_rebuild(struct ws_emit *e, struct ch_tab *t, struct ws_err *err);
int emit_drop(struct ws_emit *e, struct ch_tab *t, struct ws_err *err);
int emit_drop_staging(struct ws_emit *e, struct ws_err *err);
void ch_staging_name(const struct ws_emit *e, ws_oid oid, struct ws_buf *out);

/* ---- events (events.c, load.c) ---- */
enum ch_bind {
	BIND_NOT,    /* as it is */
	BIND_SCHEMA, /* to the shape, if it can have rows: one without a key may still get it */
	BIND_ROWS    /* to the shape */
};
/* The table of a handle, bound to that shape; *out NULL when its changes are not wanted. */
int emit_table_for(struct ws_emit *e, uint32_t handle, const struct ws_c_relation *rel,
				   enum ch_bind bind, struct ch_tab **out, struct ws_err *err);
int emit_event(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r,
			   struct ws_err *err);
int emit_snapshot_begin(struct ws_emit *e, const struct ws_c_snapshot *s,
						const struct ws_change_reader *r, struct ws_err *err);
int emit_snapshot_end(struct ws_emit *e, const struct ws_c_snapshot *s,
					  const struct ws_change_reader *r, struct ws_err *err);
/* The end of a load's stream: the first one makes the positions. */
int emit_load_ended(struct ws_emit *e, struct ws_pos end, struct ws_err *err);

/* ---- changes into rows (row.c) ---- */
int emit_row(struct ws_emit *e, struct ch_tab *t, const struct ws_c_row *row, size_t size,
			 struct ws_err *err);

/* ---- status (status.c) ---- */
void emit_status_init(struct ws_emit *e);
void emit_status(struct ws_emit *e, const char *state, bool now);

#endif
