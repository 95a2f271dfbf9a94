/* What the files of lib/copy share. */
#ifndef WS_COPY_INT_H
#define WS_COPY_INT_H

#include "ws/change.h"
#include "ws/copy.h"
#include "ws/heap.h"
#include "ws/pgcopy.h"
#include "ws/toaststore.h"

enum copy_state { COPY_WAITS, COPY_RUNS, COPY_DONE, COPY_CHANGED };

/* One table of a round: its shape as of P, and how far it is. */
struct copy_table {
	enum copy_state state;
	bool with_rows;
	struct ws_rel *rel, *root;
	struct ws_rel *toast;   /* its TOAST table, or NULL */
	struct ws_type **types;
	size_t ntypes;
	struct ws_heapdesc *desc;
	uint8_t *cols;          /* enum ws_copy_column */
	uint32_t handle;
	double pages, tuples;   /* as the source's pg_class says; 0 unknown */
	uint64_t rows;
};

struct copy_oids {
	ws_oid *v;
	size_t n;
};

struct copy {
	const struct ws_copy_opts *o;
	struct ws_cathist *hist;
	struct ws_toaststore *store;
	struct ws_pg *control;  /* reads catalogs with fresh snapshots */
	struct ws_pg *exporter; /* holds the snapshot */
	struct ws_pg_snapshot snap;
	ws_tli tli;
	ws_lsn lowest;          /* P of the earliest load of the consumer's tables, this run's included */
	uint32_t handles;
	bool began;             /* header and identity are out */
	struct copy_table *tables; /* of this round */
	size_t ntables;
	struct copy_oids redo;  /* left to the next round */
	/* progress */
	uint64_t started, shown, rows, bytes;
	size_t done, total;
	double pages_done, pages_total;
};

/* plan.c: the tables of a round, shaped as of snap.lsn; only those in `only` unless that is NULL. */
int copy_plan(struct copy *c, const struct copy_oids *only, struct ws_err *err);
/* raw.c: is the server's text of columns that the oracle renders the same?  -1 it is not. */
int copy_check_raw(struct copy *c, const struct copy_table *t, struct ws_err *err);
void copy_plan_free(struct copy *c);
void copy_oids_add(struct copy_oids *o, ws_oid oid);
bool copy_oids_has(const struct copy_oids *o, ws_oid oid);

/* check.c: is the table on the source now as in the history at P?  Takes what it needs to know about
 * t while its lock is held.  1, 0, -1. */
int copy_check(struct copy *c, const struct copy_table *t, struct ws_err *err);

/* work.c: reads the round's tables. */
int copy_work(struct copy *c, struct ws_err *err);
/* An SQL session on the consumer's database of the source. */
struct ws_pg *copy_session(struct copy *c, struct ws_err *err);

/* toast.c: the table's TOAST values into the store.  begin forgets what is there of it; row takes
 * one of the rows that query asks for. */
int copy_toast_begin(struct copy *c, const struct copy_table *t, struct ws_err *err);
void copy_toast_query(const struct copy_table *t, struct ws_buf *sql);
int copy_toast_row(struct copy *c, const struct copy_table *t, char *row, size_t n, struct ws_buf *tmp,
                   struct ws_err *err);

/* progress.c */
void copy_progress(struct copy *c, bool now);
void copy_progress_end(struct copy *c);

int copy_put(struct copy *c, const struct ws_buf *b, struct ws_err *err);

#endif
