/* The initial load by COPY: tables read in parallel under the exported snapshot of a temporary
 * logical slot, written as a change stream.
 *
 * Rounds: a slot gives a snapshot and its consistent point P; once the catalog history has reached P,
 * each table is locked (ACCESS SHARE), its shape compared with the history at P, and read.  A
 * table that differs is left to the next round, which has a P of its own. */
#ifndef WS_COPY_H
#define WS_COPY_H

#include "ws/hold.h"
#include "ws/shape.h"

enum ws_copy_column {
	WS_COPY_VALUE,    /* as it is; of a type that is not decoded: the load stops at a value */
	WS_COPY_EXCLUDED, /* the destination does not have it: absent */
	WS_COPY_AS_NULL   /* of a type that is not decoded: the destination has NULL for it anyway */
};

struct ws_copy_opts {
	const char *state, *consumer;
	const char *conninfo;  /* of the source; may lack the database */
	ws_oid db;             /* which it must be */
	const char *dbname;
	int jobs;              /* tables read side by side */
	uint32_t max_value;    /* bytes of a value; 0: PostgreSQL's limit */
	const char **tables;   /* names; none: all that are routed */
	int ntables;
	bool oracle;           /* the stream has text of types that are not decoded: so has the load */
	int out;               /* descriptor of the stream */
	const struct ws_hold *hold; /* no snapshot that these standbys have not flushed; NULL: any */
	bool no_toast;         /* TOAST values stay unknown to the consumer's store */
	/* 1: the table is replicated (*rows: its rows are to be copied), 0 not, -1 error. */
	int (*route)(void *arg, const struct ws_rel *rel, const struct ws_rel *root, bool *rows,
	             struct ws_err *err); /* root: of a partition, else NULL */
	/* unsupported: the column's type is not decoded. */
	enum ws_copy_column (*column)(void *arg, const struct ws_rel *rel, const struct ws_rel *root,
	                              const struct ws_attr *a, bool unsupported);
	void *arg;
};

/* Writes pos/floor.CONSUMER when absent, then the stream up to its end frame. */
int ws_copy_run(const struct ws_copy_opts *o, struct ws_err *err);

#endif
