/* Shapes in use: relations and files as of the commit being decoded, with what reads their tuples
 * and the handle that names them in the change stream.  Private to lib/xact.
 *
 * The cache holds one shape a relation, valid for the present epoch: the stretch of WAL between
 * two boundaries.  ws_shapes_epoch begins the next one; entries are then compared with the
 * history when they are asked for again, and kept when neither the relation nor its types
 * changed.  A shape is counted: whoever keeps one over an epoch takes a reference. */
#ifndef WS_SHAPES_H
#define WS_SHAPES_H

#include "ws/change.h"
#include "ws/heap.h"
#include "ws/oracle.h"
#include "ws/shape.h"

enum ws_relclass {
	WS_REL_USER,    /* an ordinary, permanent user table: its rows are sent */
	WS_REL_ROOT,    /* a partitioned table: described, has no rows */
	WS_REL_TOAST,
	WS_REL_SEQUENCE,
	WS_REL_CATALOG,
	WS_REL_UNLOGGED, /* an unlogged table */
	WS_REL_OTHER     /* materialized views, indexes, temporary: not sent */
};

#define WS_RAW_BYTES UINT32_MAX /* nobody has the text */

struct ws_shape {
	uint32_t refs;
	uint32_t epoch; /* found to be right in this epoch */
	ws_lsn as_of;   /* where it was found or last seen to be right: its types are looked up there */
	enum ws_relclass cls;
	uint32_t handle; /* in the stream, 0 not described yet */
	struct ws_rel *rel;
	struct ws_rel *root;      /* of a partition */
	struct ws_heapdesc *desc; /* of USER and ROOT, made when first wanted */
	struct ws_type **types;   /* looked up for desc */
	size_t ntypes, types_cap;
	struct ws_rel **parts; /* composite types, for the oracle's descriptions */
	size_t nparts;
	/* Columns that are not decoded, and the oracle's number of their types (0 without one). */
	struct ws_rawcol {
		uint16_t col;
		uint32_t type; /* the oracle's, or WS_RAW_BYTES */
	} *raw;
	uint16_t nraw;
	uint32_t keep_epoch; /* of a TOAST table: in that epoch, are its chunks kept? */
	bool keep;
	uint64_t rows;
};

struct ws_shapes {
	struct ws_cathist *cat;
	ws_oid db;
	uint32_t epoch;
	ws_lsn as_of;        /* lookups are as of this position */
	struct ws_oracle *oracle; /* NULL: none */
	uint32_t next_handle;
	struct ws_shapeslot {
		ws_oid key;
		uint32_t epoch; /* of a file: found in this epoch */
		struct ws_shape *shape; /* NULL: no such relation */
	} *rels, *files;
	uint32_t rels_mask, rels_used, files_mask, files_used;
};

void ws_shapes_init(struct ws_shapes *s, struct ws_cathist *cat, ws_oid db);
void ws_shapes_fini(struct ws_shapes *s);
/* Lookups are as of lsn from now on. */
static inline void
ws_shapes_as_of(struct ws_shapes *s, ws_lsn lsn)
{
	s->as_of = lsn;
}
/* A boundary was passed: nothing found before counts without a look. */
static inline void
ws_shapes_epoch(struct ws_shapes *s)
{
	s->epoch++;
}

/* The relation as of s->as_of.  1 found (*out lives until the next epoch, or longer by reference),
 * 0 there is none, -1 error. */
int ws_shapes_rel(struct ws_shapes *s, ws_oid oid, struct ws_shape **out, struct ws_err *err);
/* The relation that a file belongs to; the tablespace must fit. */
int ws_shapes_file(struct ws_shapes *s, const struct ws_locator *loc, struct ws_shape **out,
                   struct ws_err *err);
/* Makes desc. */
int ws_shapes_desc(struct ws_shapes *s, struct ws_shape *sh, struct ws_err *err);
/* What reads tuples as rel, a relation with sh's types that outlives it; the caller's. */
struct ws_heapdesc *ws_shapes_reader(struct ws_shapes *s, struct ws_shape *sh,
                                     const struct ws_rel *rel, struct ws_err *err);
/* A type as of sh->as_of, kept with sh: 1, 0 unknown, -1. */
int ws_shapes_type(struct ws_shapes *s, struct ws_shape *sh, ws_oid oid, const struct ws_type **t,
                   struct ws_err *err);
/* raw.c: fills raw; sh->desc is there. */
int ws_shapes_raw(struct ws_shapes *s, struct ws_shape *sh, struct ws_err *err);
/* Appends the relation frame when the shape has no handle yet. */
int ws_shapes_describe(struct ws_shapes *s, struct ws_shape *sh, struct ws_buf *out,
                       struct ws_err *err);
/* True when consumers could not tell the two apart; both are made readable for it. */
int ws_shapes_same(struct ws_shapes *s, struct ws_shape *a, struct ws_shape *b, bool *same,
                   struct ws_err *err);

struct ws_shape *ws_shape_ref(struct ws_shape *sh);
void ws_shape_unref(struct ws_shape *sh);

#endif
