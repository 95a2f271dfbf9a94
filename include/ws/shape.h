/* Shapes: what a relation and its types look like as of a catalog boundary. */
#ifndef WS_SHAPE_H
#define WS_SHAPE_H

#include "ws/err.h"
#include "ws/mem.h"

/* Bits of ws_attr.flags */
#define WS_ATT_DROPPED   0x01
#define WS_ATT_NOTNULL   0x02
#define WS_ATT_BYVAL     0x04
#define WS_ATT_MISSING   0x08 /* missing holds attmissingval's text */
#define WS_ATT_STORED    0x10 /* generated always as stored */
#define WS_ATT_VIRTUAL   0x20 /* 18: virtual; always NULL in the tuple */
#define WS_ATT_IDENTITY  0x40 /* part of the usable replica identity (see ws_rel.ident) */
#define WS_ATT_PKEY      0x80 /* part of the non-deferrable primary key */

struct ws_attr {
	char *name;
	ws_oid typid; /* 0 when dropped */
	int32_t typmod;
	int16_t attnum; /* from 1; attrs[i].attnum == i + 1 */
	int16_t len;    /* attlen: > 0, -1 varlena, -2 cstring */
	char align;     /* c s i d */
	char storage;   /* p e m x */
	uint8_t flags;
	char *typname;  /* format_type(atttypid, atttypmod), "" when dropped */
	char *missing;  /* text under the settings of ws_value_text; NULL without */
};

struct ws_rel {
	ws_oid db, oid;
	ws_lsn lsn;          /* boundary of which it was read */
	ws_oid ns;
	char *nspname, *name;
	char kind;           /* relkind */
	char persistence;    /* p u t */
	char replident;      /* d n f i, as in pg_class */
	ws_oid filenode;     /* pg_relation_filenode (mapped ones too); 0 without storage */
	ws_oid spc;          /* reltablespace; 0 = the database's default */
	ws_oid toast;        /* reltoastrelid, 0 none */
	ws_oid toast_of;     /* for kind t: the table; 0 */
	ws_oid parent, root; /* of a table that is a partition: immediate parent, topmost; 0 otherwise */
	ws_oid reltype;
	int natts;           /* relnatts, dropped ones included; 0 for an index */
	struct ws_attr *attrs;
	/* Identity key columns as attnums in index order: the identity index (non-deferrable
	 * primary key for 'd', the named index for 'i'), empty for f, n and without one. */
	int nident, npkey;
	int16_t *ident, *pkey;
};

struct ws_enum_label {
	ws_oid oid;
	char *label;
};

struct ws_type {
	ws_oid db, oid;
	ws_lsn lsn;
	char *nspname, *name;
	char typtype;    /* b c d e p r m */
	char category;
	int16_t len;
	bool byval;
	char align, storage, delim;
	ws_oid elem;     /* element type when this is a true array (array_subscript_handler), else 0 */
	ws_oid base;     /* domain: base type (typbasetype) */
	int32_t base_typmod;
	ws_oid relid;    /* composite: its pg_class oid */
	ws_oid subtype;  /* range: rngsubtype; multirange: the range type */
	char *out_lib, *out_sym; /* output function: pg_proc.probin ("" when internal), prosrc */
	int nlabels;
	struct ws_enum_label *labels; /* enum, in sort order */
	/* composite: its relation as of the same position, with its attributes.  Not part of the byte
	 * form: who looks a type up gets it (ws_cathist_type); freed with the type. */
	struct ws_rel *row;
};

/* Whether values of the type look the same by both: neither it nor its row has changed. */
bool ws_type_same(const struct ws_type *a, const struct ws_type *b);

/* What the decoder makes is one allocation, strings and arrays included: free it only with these. */
void ws_rel_free(struct ws_rel *r);
void ws_type_free(struct ws_type *t);

/* ---- the history (LMDB in catalog/): one writer, any number of readers ---- */
struct ws_cathist;

struct ws_cathist *ws_cathist_open(const char *dir, bool writer, struct ws_err *err);
void ws_cathist_close(struct ws_cathist *h);

/* The newest entry captured at or below lsn.  1 found (*out is the caller's, free it), 0 none or
 * dropped by then, -1 error.  Below the pruned position every question without an exact answer is
 * an error (reason=catalog_pruned), never a 0. */
int ws_cathist_rel(struct ws_cathist *h, ws_oid db, ws_oid oid, ws_lsn lsn, struct ws_rel **out, struct ws_err *err);
int ws_cathist_type(struct ws_cathist *h, ws_oid db, ws_oid oid, ws_lsn lsn, struct ws_type **out, struct ws_err *err);

/* Which relation a file belonged to as of lsn.  spc 1663 or the database's default both as given
 * in WAL: the history stores filenodes by (db, rel) with the tablespace checked by the caller.
 * 1 found, 0 no, -1 error.  Catalogs are in the history too (oid < 16384). */
int ws_cathist_filenode(struct ws_cathist *h, ws_oid db, ws_oid filenode, ws_lsn lsn, ws_oid *reloid, struct ws_err *err);

/* Relations whose entry changed exactly at lsn (new, altered, dropped): for schema events.  The first
 * capture changes nothing. */
int ws_cathist_changes(struct ws_cathist *h, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err);
/* All relations alive at lsn (malloc'd oids). */
int ws_cathist_list(struct ws_cathist *h, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err);

/* All types alive at lsn, and the databases that have a history. */
int ws_cathist_types(struct ws_cathist *h, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err);
int ws_cathist_databases(struct ws_cathist *h, ws_oid **dbs, size_t *n, struct ws_err *err);

/* Every entry of a database in key order: kind 'R' (p is an encoded relation), 'T' (an encoded type),
 * 'F' (id is a filenode, oid its relation, 0 nobody), 'C' (relation id changed at lsn).  n == 0 of R and
 * T: dropped at lsn.  each returns 0 to go on. */
struct ws_cathist_entry {
	char kind;
	uint32_t id;
	ws_lsn lsn;
	ws_oid oid;
	const uint8_t *p;
	size_t n;
};
int ws_cathist_walk(struct ws_cathist *h, ws_oid db,
                    int (*each)(void *arg, const struct ws_cathist_entry *e, struct ws_err *err), void *arg,
                    struct ws_err *err);

/* Shapes as text for a person, or as one line of JSON; appended. */
void ws_rel_text(const struct ws_rel *r, struct ws_buf *out);
void ws_rel_json(const struct ws_rel *r, struct ws_buf *out);
void ws_type_json(const struct ws_type *t, struct ws_buf *out);

/* Highest captured position stored with the history itself, and the first (C0).  1/0/-1. */
int ws_cathist_captured(struct ws_cathist *h, ws_oid db, struct ws_pos *first, struct ws_pos *last, struct ws_err *err);

/* Writer: one transaction a boundary.  put_* store only what differs from the newest entry. */
int ws_cathist_begin(struct ws_cathist *h, ws_oid db, struct ws_pos at, struct ws_err *err);
int ws_cathist_put_rel(struct ws_cathist *h, const struct ws_rel *r, struct ws_err *err);
int ws_cathist_put_type(struct ws_cathist *h, const struct ws_type *t, struct ws_err *err);
int ws_cathist_drop_rel(struct ws_cathist *h, ws_oid oid, struct ws_err *err);
int ws_cathist_drop_type(struct ws_cathist *h, ws_oid oid, struct ws_err *err);
int ws_cathist_commit(struct ws_cathist *h, struct ws_err *err); /* durable */
void ws_cathist_abort(struct ws_cathist *h);
/* Keeps each object's newest entry at or below lsn; deletes above, for a fork (rewind). */
int ws_cathist_prune(struct ws_cathist *h, ws_oid db, ws_lsn lsn, struct ws_err *err);
int ws_cathist_rewind(struct ws_cathist *h, ws_oid db, ws_lsn lsn, struct ws_err *err);

/* Byte forms (pure, total), used by the history and its tests. */
void ws_rel_encode(const struct ws_rel *r, struct ws_buf *out);
struct ws_rel *ws_rel_decode(const uint8_t *p, size_t n, struct ws_err *err);
void ws_type_encode(const struct ws_type *t, struct ws_buf *out);
struct ws_type *ws_type_decode(const uint8_t *p, size_t n, struct ws_err *err);

#endif
