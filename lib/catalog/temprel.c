/* Commits that touch temporary relations alone; see ws/temprel.h. */
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "ws/cursor.h"
#include "ws/mem.h"
#include "ws/record.h"
#include "ws/temprel.h"

/* access/heapam_xlog.h: XLOG_HEAP_OPMASK, XLOG_HEAP_INSERT, SizeOfHeapHeader */
#define OPMASK      0x70
#define HEAP_INSERT 0x00
#define TUPLE_HDR   5u
/* catalog/pg_class.h; relpersistence moves with the columns before it */
#define CLASS_OID 0u
/* catalog/pg_type.h */
#define TYPE_OID    0u
#define TYPE_RELID  84u
#define TYPE_SUBSCRIPT 88u
#define TYPE_ELEM   92u
#define TYPE_NEEDED 96u
#define ARRAY_SUBSCRIPT_HANDLER 6179u /* catalog/pg_proc.dat: of true arrays */
/* Objects of transactions that roll back stay: more are forgotten. */
#define MOST 65536u

struct object {
	uint64_t key; /* database, oid */
	ws_oid rel;   /* a type: the relation whose row it is, or 0 */
	ws_oid elem;  /* ... or the type of which it is an array */
	bool passed;  /* a commit named it */
	UT_hash_handle hh;
};

struct files {
	ws_oid db, class_file, type_file;
};

struct ws_temprels {
	struct object *rels, *types;
	struct files *files;
	size_t nfiles;
};

static void
forget_all(struct object **set)
{
	struct object *o, *next;

	HASH_ITER (hh, *set, o, next) {
		HASH_DEL(*set, o);
		free(o);
	}
}

struct ws_temprels *
ws_temprels_new(void)
{
	return ws_calloc(1, sizeof(struct ws_temprels));
}

void
ws_temprels_free(struct ws_temprels *t)
{
	if (!t)
		return;
	forget_all(&t->rels);
	forget_all(&t->types);
	free(t->files);
	free(t);
}

void
ws_temprels_files(struct ws_temprels *t, ws_oid db, ws_oid class_file, ws_oid type_file)
{
	struct files *f = NULL;

	for (size_t i = 0; i < t->nfiles; i++)
		if (t->files[i].db == db)
			f = &t->files[i];
	if (!f) {
		t->files = ws_realloc(t->files, (t->nfiles + 1) * sizeof *f);
		f = &t->files[t->nfiles++];
	}
	*f = (struct files){db, class_file, type_file};
}

static uint64_t
key_of(ws_oid db, ws_oid oid)
{
	return (uint64_t)db << 32 | oid;
}

static struct object *
find(struct object *set, ws_oid db, ws_oid oid)
{
	uint64_t key = key_of(db, oid);
	struct object *o;

	HASH_FIND(hh, set, &key, sizeof key, o);
	return o;
}

static void
forget(struct object **set, struct object *o)
{
	if (!o)
		return;
	HASH_DEL(*set, o);
	free(o);
}

static void
note(struct object **set, ws_oid db, ws_oid oid, ws_oid rel, ws_oid elem)
{
	struct object *o;

	forget(set, find(*set, db, oid));
	if (HASH_COUNT(*set) >= MOST)
		forget_all(set);
	o = ws_calloc(1, sizeof *o);
	o->key = key_of(db, oid);
	o->rel = rel;
	o->elem = elem;
	HASH_ADD(hh, *set, key, sizeof o->key, o);
}

/* ---- records ---- */

/* The columns of the row that an INSERT adds, in the record or in the page's image. */
static bool
inserted(const struct ws_record *r, uint8_t *page, const uint8_t **row, size_t *n)
{
	const struct ws_block *b = ws_record_block(r, 0);

	if (!b || r->main_len < 3)
		return false;
	if (!b->data)
		return ws_fpi_row(b, ws_le16(r->main), page, row, n);
	/* xl_heap_header: infomask2, infomask, hoff; then from the end of the fixed header on */
	size_t skip = TUPLE_HDR;

	if (b->data_len < skip || b->data[4] < WS_TUPLE_HDR_SIZE)
		return false;
	skip += b->data[4] - WS_TUPLE_HDR_SIZE;
	if (b->data_len < skip)
		return false;
	*row = b->data + skip;
	*n = b->data_len - skip;
	return true;
}

void
ws_temprels_record(struct ws_temprels *t, const struct ws_rec *rec, const struct ws_walver *ver)
{
	struct ws_locator loc;
	struct ws_record r;
	struct ws_err ignored;
	uint8_t page[WS_PAGE_SIZE];
	const uint8_t *row;
	size_t n;
	const struct files *f = NULL;

	if (rec->rmid != WS_RM_HEAP || (rec->info & OPMASK) != HEAP_INSERT ||
	    !ws_rec_locator(rec->data, rec->tot_len, &loc))
		return;
	for (size_t i = 0; i < t->nfiles && !f; i++)
		if (t->files[i].db == loc.db && loc.rel &&
		    (t->files[i].class_file == loc.rel || t->files[i].type_file == loc.rel))
			f = &t->files[i];
	if (!f)
		return;
	bool is_type = loc.rel == f->type_file;

	if (ws_record_parse(rec, &r, &ignored) != 0 || !inserted(&r, page, &row, &n) ||
	    n < (is_type ? TYPE_NEEDED : ver->class_persistence + 1u)) {
		/* A row that could be any object's. */
		forget_all(&t->rels);
		forget_all(&t->types);
	} else if (is_type) {
		note(&t->types, f->db, ws_le32(row + TYPE_OID), ws_le32(row + TYPE_RELID),
		     ws_le32(row + TYPE_SUBSCRIPT) == ARRAY_SUBSCRIPT_HANDLER ? ws_le32(row + TYPE_ELEM) : 0);
	} else {
		ws_oid oid = ws_le32(row + CLASS_OID);

		if (row[ver->class_persistence] == 't')
			note(&t->rels, f->db, oid, 0, 0);
		else
			forget(&t->rels, find(t->rels, f->db, oid));
	}
}

/* ---- commits ---- */

static struct object *
temporary_type(const struct ws_temprels *t, ws_oid db, ws_oid oid)
{
	struct object *o = find(t->types, db, oid), *of = o;

	if (o && !o->rel && o->elem)
		of = find(t->types, db, o->elem);
	return of && of->rel && find(t->rels, db, of->rel) ? o : NULL;
}

static void
pass(struct object **set, struct object *o)
{
	if (!o)
		return;
	if (o->passed)
		forget(set, o);
	else
		o->passed = true;
}

bool
ws_temprels_only(struct ws_temprels *t, ws_oid db, const struct ws_boundary *b,
                 const struct ws_boundary_ids *ids)
{
	bool only = !b->every_db && !b->all_rels && !b->namespaces && !ids->nlabels && !ids->nnamespaces &&
	            (!b->types || ids->ntypes);

	for (size_t i = 0; i < ids->ntypes && only; i++)
		only = temporary_type(t, db, ids->types[i]) != NULL;
	for (size_t i = 0; i < ids->nrels && only; i++)
		only = find(t->rels, db, ids->rels[i]) != NULL;
	for (size_t i = 0; i < ids->ntypes; i++)
		pass(&t->types, find(t->types, db, ids->types[i]));
	for (size_t i = 0; i < ids->nrels; i++)
		pass(&t->rels, find(t->rels, db, ids->rels[i]));
	return only;
}
