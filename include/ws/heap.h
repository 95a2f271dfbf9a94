/* Heap records and heap tuples: WAL record bodies taken apart (access/heapam_xlog.h), tuples
 * turned into values without any knowledge of the catalog but a relation's shape.
 *
 * Everything here is pure (bytes in, structs out) and total (any input gives a result or an
 * error).  Structs point into the bytes they were made from.
 *
 *   ws_heaprec_parse      record -> what it does, with its tuples
 *   ws_heapdesc_new       shape  -> how to read its tuples; made once for a shape
 *   ws_heap_decode        tuple  -> one ws_value for each live column
 *
 * A record of the heap resource managers concerns the relation of its block 0, whatever other
 * blocks it has (newer minor releases register visibility map pages). */
#ifndef WS_HEAP_H
#define WS_HEAP_H

#include "ws/record.h"
#include "ws/shape.h"
#include "ws/value.h"

/* ---- tuples ---- */

/* A heap tuple without the fixed 23 bytes of its header (access/htup_details.h). */
struct ws_tuple {
	const uint8_t *body; /* the bytes after the fixed header: NULL bitmap, padding, columns */
	uint32_t len;        /* of body */
	uint16_t infomask2, infomask;
	uint8_t hoff; /* offset of the columns from the header's start: body + hoff - 23 */
};

#define WS_TUPLE_NATTS(t) ((t)->infomask2 & 0x07FFu)

/* A tuple on a page: p is its header.  -1: too short. */
int ws_tuple_from_page(const uint8_t *p, size_t len, struct ws_tuple *t);

/* ---- record bodies ---- */

enum ws_heap_op {
	WS_HEAP_INSERT = 1,
	WS_HEAP_UPDATE, /* also HOT */
	WS_HEAP_DELETE,
	WS_HEAP_MULTI_INSERT,
	WS_HEAP_TRUNCATE,
	WS_HEAP_CONFIRM
};

/* Flags of ws_heaprec: the same bits for all operations and PostgreSQL versions. */
#define WS_HR_NEW            0x0001 /* the new tuple (the tuples) is in the record */
#define WS_HR_OLD_KEY        0x0002 /* the old tuple holds the key columns, all others are NULL */
#define WS_HR_OLD_FULL       0x0004 /* the old tuple is whole */
#define WS_HR_SPECULATIVE    0x0008 /* insert that counts only once confirmed */
#define WS_HR_SUPER          0x0010 /* delete that takes a speculative insert back */
#define WS_HR_TOAST          0x0020 /* insert into a TOAST table */
#define WS_HR_LAST_IN_MULTI  0x0040 /* last record of one flush of a multi-insert */
#define WS_HR_PARTITION_MOVE 0x0080 /* delete half of an update that changes the partition */
#define WS_HR_INIT_PAGE      0x0100
#define WS_HR_DELTA          0x0200 /* update logged against its old version: not decodable */
#define WS_HR_CASCADE        0x0400 /* TRUNCATE */
#define WS_HR_RESTART_SEQS   0x0800

struct ws_heaprec {
	enum ws_heap_op op;
	uint16_t flags;
	struct ws_locator loc; /* of block 0's relation; zero for TRUNCATE */
	uint32_t blkno;        /* of block 0: where the new tuple is (DELETE, CONFIRM: the tuple) */
	uint16_t off;          /* line pointer there; the first tuple's for MULTI_INSERT, 0 with INIT_PAGE */
	uint32_t old_blkno;    /* UPDATE: where the old version is */
	uint16_t old_off;
	struct ws_tuple new_;  /* with WS_HR_NEW, not MULTI_INSERT */
	struct ws_tuple old;   /* with WS_HR_OLD_* */
	uint16_t ntuples;      /* MULTI_INSERT: take them with ws_heap_multi_next */
	const uint8_t *multi;  /* their bytes */
	uint32_t multi_len;
	const uint8_t *multi_offs; /* u16 line pointers; NULL with INIT_PAGE (1, 2, 3, ...) */
	ws_oid truncate_db;    /* TRUNCATE: relations as oids, read with ws_heaprec_oid */
	uint32_t noids;
	const uint8_t *oids;
};

/* 1: a row change, truncate or confirmation; 0: a heap record without any (LOCK, INPLACE, PRUNE,
 * NEW_CID ...) or of another resource manager; -1: malformed. */
int ws_heaprec_parse(const struct ws_record *r, struct ws_heaprec *out, struct ws_err *err);
ws_oid ws_heaprec_oid(const struct ws_heaprec *h, uint32_t i);

struct ws_heap_multi {
	const struct ws_heaprec *rec;
	const uint8_t *at;
	uint16_t next; /* index of the next tuple */
};

/* The tuples of a MULTI_INSERT with WS_HR_NEW, in order.  1 a tuple (*off its line pointer; off
 * may be NULL), 0 no more (and no byte left over), -1 malformed. */
static inline struct ws_heap_multi
ws_heap_multi(const struct ws_heaprec *rec)
{
	struct ws_heap_multi m = {rec, rec->multi, 0};

	return m;
}
int ws_heap_multi_next(struct ws_heap_multi *m, struct ws_tuple *t, uint16_t *off, struct ws_err *err);

/* ---- TOAST ---- */

enum ws_compression { WS_COMPRESS_NONE, WS_COMPRESS_PGLZ, WS_COMPRESS_LZ4 };

/* An external pointer (varatt.h: varatt_external). */
struct ws_toast_ptr {
	ws_oid valueid;    /* chunk_id */
	ws_oid toastrelid; /* pg_class oid of the TOAST table */
	uint32_t rawsize;  /* of the value, without header */
	uint32_t extsize;  /* of all its chunks together */
	enum ws_compression method; /* of the stored bytes */
};

/* Gives the extsize bytes of the value's chunks, put together in order and still as stored
 * (decompressing is done here).  They must live as long as the arena or the tuple.  1 given, 0 not
 * known: the value becomes absent, -1 error: the decode fails. */
typedef int (*ws_toast_fn)(void *arg, const struct ws_toast_ptr *p, struct ws_arena *a,
                           const uint8_t **data, struct ws_err *err);

/* A row of a TOAST table: chunk_id oid, chunk_seq int4, chunk_data bytea (always inline, never
 * compressed).  -1: not such a tuple. */
struct ws_toast_chunk {
	ws_oid id;
	int32_t seq;
	const uint8_t *data;
	uint32_t len;
};
int ws_toast_chunk_parse(const struct ws_tuple *t, struct ws_toast_chunk *c, struct ws_err *err);

/* ---- types ---- */

/* Looks a type up as of the shape's boundary.  1 found (*t lives as long as the desc),
 * 0 unknown, -1 error.  Not called for the types that are built in here. */
typedef int (*ws_type_fn)(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err);

/* What values of a type are in the change stream, and how they are read from disk. */
struct ws_heaptype {
	enum ws_kind kind, elem; /* elem: of an array, else 0 */
	const struct ws_type *enum_; /* enum, domain over or array of one: its labels; else NULL */
	bool reg; /* regclass and its like, or an array: an oid here, a name in the server's text */
	/* private */
	uint8_t mask;                 /* alignment - 1 */
	int16_t len;                  /* attlen */
	char delim;                   /* between elements of an array of this */
	const struct ws_codec *codec; /* NULL when unsupported */
	const struct ws_heaptype
		*sub; /* of an array, a range, a multirange; of a composite one an attribute */
	const struct ws_rel *row; /* of a composite */
};

/* Domains are resolved to their base.  A type that is not known or not decoded, or made of such,
 * gives WS_K_UNSUPPORTED and 0.  -1 only when lookup fails.  Types in types are in the arena. */
int ws_heaptype_of(ws_oid typid, ws_type_fn lookup, void *arg, struct ws_arena *a,
				   struct ws_heaptype *out, struct ws_err *err);

/* ---- descriptors ---- */

struct ws_heapcol {
	int16_t attnum;
	const struct ws_attr *attr;
	struct ws_heaptype type;
	uint64_t unsupported; /* values handed out as WS_K_UNSUPPORTED so far */
	bool raw; /* for the oracle, see ws_heapdesc_oracle */
};

struct ws_heapdesc {
	const struct ws_rel *rel;
	uint16_t ncols; /* live columns, in attnum order */
	struct ws_heapcol *cols;
	/* private */
	uint16_t natts;       /* dropped ones included */
	uint16_t nfast;       /* leading attributes with a fixed offset when no NULL comes before */
	struct ws_heapatt *atts;
	struct ws_value *missing; /* one for each column */
	struct ws_arena arena;
};

/* rel and the types that lookup gives must outlive the desc.  A missing value (attmissingval) that
 * cannot be read is an error.  Not thread safe (counters). */
struct ws_heapdesc *ws_heapdesc_new(const struct ws_rel *rel, ws_type_fn lookup, void *arg, struct ws_err *err);
void ws_heapdesc_free(struct ws_heapdesc *d);
/* Columns of types that are not decoded are to be text, which the oracle makes: the columns' kind
 * becomes WS_K_OTHER and raw is set.  ws_heap_decode goes on to give bytes as they are on disk, in
 * values of kind WS_K_UNSUPPORTED; missing values are text and of kind WS_K_OTHER. */
void ws_heapdesc_oracle(struct ws_heapdesc *d);

/* The desc's relation as the change stream describes it; root: of a partition, else NULL.  Strings
 * belong to the shape, the rest to the arena. */
struct ws_c_relation;
void ws_heapdesc_relation(const struct ws_heapdesc *d, const struct ws_rel *root, uint32_t handle,
                          struct ws_arena *a, struct ws_c_relation *out);

/* Flags of ws_heap_decode */
#define WS_DECODE_KEY 0x1 /* an OLD_KEY tuple: what is NULL in it is not in it, thus absent */

struct ws_heapenv {
	struct ws_arena *arena; /* for values that are not in the tuple as they are */
	ws_toast_fn toast;      /* NULL: external values are absent */
	void *toast_arg;
	uint32_t max_value; /* bytes of a value, stored or decoded; 0: WS_VALUE_MAX */
};

/* Fills out[0 .. desc->ncols - 1].  Values point into the tuple, the arena, the desc or the bytes
 * that the TOAST callback gave.  Columns that the tuple is too old for have their missing value or
 * NULL; virtual generated ones are NULL.  -1: the tuple does not fit the shape or is corrupt: no
 * value is guessed. */
int ws_heap_decode(struct ws_heapdesc *desc, const struct ws_tuple *t, unsigned flags,
                   const struct ws_heapenv *env, struct ws_value *out, struct ws_err *err);

#endif
