/* Shapes in use; see shapes.h. */
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

#define MIN_SLOTS 256u

void
ws_shapes_init(struct ws_shapes *s, struct ws_cathist *cat, ws_oid db)
{
	memset(s, 0, sizeof *s);
	s->cat = cat;
	s->db = db;
	s->epoch = 1;
	s->next_handle = 1;
	s->rels_mask = s->files_mask = MIN_SLOTS - 1;
	s->rels = ws_calloc(MIN_SLOTS, sizeof *s->rels);
	s->files = ws_calloc(MIN_SLOTS, sizeof *s->files);
}

struct ws_shape *
ws_shape_ref(struct ws_shape *sh)
{
	if (sh)
		sh->refs++;
	return sh;
}

void
ws_shape_unref(struct ws_shape *sh)
{
	if (!sh || --sh->refs > 0)
		return;
	ws_heapdesc_free(sh->desc);
	for (size_t i = 0; i < sh->ntypes; i++)
		ws_type_free(sh->types[i]);
	free(sh->types);
	for (size_t i = 0; i < sh->nparts; i++)
		ws_rel_free(sh->parts[i]);
	free(sh->parts);
	free(sh->raw);
	ws_rel_free(sh->rel);
	ws_rel_free(sh->root);
	free(sh);
}

void
ws_shapes_fini(struct ws_shapes *s)
{
	for (uint32_t i = 0; s->rels && i <= s->rels_mask; i++)
		ws_shape_unref(s->rels[i].shape);
	for (uint32_t i = 0; s->files && i <= s->files_mask; i++)
		ws_shape_unref(s->files[i].shape);
	free(s->rels);
	free(s->files);
	memset(s, 0, sizeof *s);
}

/* ---- the two tables: oids and filenodes, never removed from ---- */

static struct ws_shapeslot *
probe(struct ws_shapeslot *slots, uint32_t mask, ws_oid key)
{
	uint32_t i = key * 2654435761u >> 7 & mask;

	while (slots[i].key && slots[i].key != key)
		i = (i + 1) & mask;
	return &slots[i];
}

static struct ws_shapeslot *
slot(struct ws_shapeslot **slots, uint32_t *mask, uint32_t *used, ws_oid key)
{
	struct ws_shapeslot *p = probe(*slots, *mask, key);

	if (p->key)
		return p;
	if ((*used + 1) * 2 > *mask) {
		struct ws_shapeslot *old = *slots;
		uint32_t n = *mask + 1;

		*slots = ws_calloc((size_t)n * 2, sizeof *old);
		*mask = n * 2 - 1;
		for (uint32_t i = 0; i < n; i++)
			if (old[i].key)
				*probe(*slots, *mask, old[i].key) = old[i];
		free(old);
		p = probe(*slots, *mask, key);
	}
	++*used;
	p->key = key;
	return p;
}

/* ---- relations ---- */

static enum ws_relclass
classify(const struct ws_rel *r)
{
	if (r->oid < WS_FIRST_NORMAL_OID)
		return WS_REL_CATALOG;
	if (r->kind == 't')
		return WS_REL_TOAST;
	if (r->persistence == 't')
		return WS_REL_OTHER;
	if (r->kind == 'S')
		return WS_REL_SEQUENCE;
	if (r->kind == 'p')
		return WS_REL_ROOT;
	if (r->kind != 'r')
		return WS_REL_OTHER;
	return r->persistence == 'p' ? WS_REL_USER : WS_REL_UNLOGGED;
}

/* Is the relation still the one that was read?  1, 0, -1. */
static int
same_rel(struct ws_shapes *s, const struct ws_rel *was, struct ws_err *err)
{
	struct ws_rel *r = NULL;
	int rc = ws_cathist_rel(s->cat, s->db, was->oid, s->as_of, &r, err);
	bool same = rc == 1 && r->lsn == was->lsn;

	ws_rel_free(r);
	return rc < 0 ? -1 : same;
}

static int
same_type(struct ws_shapes *s, const struct ws_type *was, struct ws_err *err)
{
	struct ws_type *t = NULL;
	int rc = ws_cathist_type(s->cat, s->db, was->oid, s->as_of, &t, err);
	bool same = rc == 1 && ws_type_same(t, was);

	ws_type_free(t);
	return rc < 0 ? -1 : same;
}

/* Are the things beside the relation that sh was made from still as they were?  1, 0, -1. */
static int
still_right(struct ws_shapes *s, const struct ws_shape *sh, struct ws_err *err)
{
	int rc = sh->root ? same_rel(s, sh->root, err) : 1;

	for (size_t i = 0; i < sh->nparts && rc == 1; i++)
		rc = same_rel(s, sh->parts[i], err);
	for (size_t i = 0; i < sh->ntypes && rc == 1; i++)
		rc = same_type(s, sh->types[i], err);
	return rc;
}

static int
shape_new(struct ws_shapes *s, struct ws_rel *rel, struct ws_shape **out, struct ws_err *err)
{
	struct ws_shape *sh = ws_calloc(1, sizeof *sh);

	sh->refs = 1;
	sh->rel = rel;
	sh->cls = classify(rel);
	sh->epoch = s->epoch;
	sh->as_of = s->as_of;
	if (rel->root && rel->root != rel->oid &&
	    ws_cathist_rel(s->cat, s->db, rel->root, s->as_of, &sh->root, err) < 0) {
		ws_shape_unref(sh);
		return -1;
	}
	*out = sh;
	return 1;
}

int
ws_shapes_rel(struct ws_shapes *s, ws_oid oid, struct ws_shape **out, struct ws_err *err)
{
	struct ws_shapeslot *p = slot(&s->rels, &s->rels_mask, &s->rels_used, oid);
	struct ws_rel *rel = NULL;

	if (p->epoch == s->epoch) {
		*out = p->shape;
		return p->shape != NULL;
	}
	int rc = ws_cathist_rel(s->cat, s->db, oid, s->as_of, &rel, err);

	if (rc < 0)
		return -1;
	if (rc == 1 && p->shape && p->shape->rel->lsn == rel->lsn) {
		int ok = still_right(s, p->shape, err);

		if (ok != 0) {
			ws_rel_free(rel);
			if (ok < 0)
				return -1;
			p->epoch = p->shape->epoch = s->epoch;
			p->shape->as_of = s->as_of;
			*out = p->shape;
			return 1;
		}
	}
	struct ws_shape *sh = NULL;

	if (rc == 1 && shape_new(s, rel, &sh, err) < 0)
		return -1;
	ws_shape_unref(p->shape);
	p->shape = sh;
	p->epoch = s->epoch;
	*out = sh;
	return sh != NULL;
}

int
ws_shapes_file(struct ws_shapes *s, const struct ws_locator *loc, struct ws_shape **out,
               struct ws_err *err)
{
	struct ws_shapeslot *p = slot(&s->files, &s->files_mask, &s->files_used, loc->rel);
	struct ws_shape *sh = NULL;
	ws_oid oid = 0;

	if (p->epoch != s->epoch) {
		int rc = ws_cathist_filenode(s->cat, s->db, loc->rel, s->as_of, &oid, err);

		if (rc == 1)
			rc = ws_shapes_rel(s, oid, &sh, err);
		if (rc < 0)
			return -1;
		ws_shape_unref(p->shape);
		p->shape = ws_shape_ref(sh);
		p->epoch = s->epoch;
	}
	sh = p->shape;
	/* 0 is the database's default tablespace, which nobody here knows. */
	if (sh && sh->rel->spc && sh->rel->spc != loc->spc)
		sh = NULL;
	*out = sh;
	return sh != NULL;
}

int
ws_shapes_type(struct ws_shapes *s, struct ws_shape *sh, ws_oid oid, const struct ws_type **t,
               struct ws_err *err)
{
	struct ws_type *type = NULL;

	for (size_t i = 0; i < sh->ntypes; i++)
		if (sh->types[i]->oid == oid) {
			*t = sh->types[i];
			return 1;
		}
	int rc = ws_cathist_type(s->cat, s->db, oid, sh->as_of, &type, err);

	if (rc != 1)
		return rc;
	if (sh->ntypes == sh->types_cap) {
		sh->types_cap = sh->types_cap ? sh->types_cap * 2 : 4;
		sh->types = ws_realloc(sh->types, sh->types_cap * sizeof(void *));
	}
	sh->types[sh->ntypes++] = type;
	*t = type;
	return 1;
}

struct type_lookup {
	struct ws_shapes *s;
	struct ws_shape *sh;
};

static int
lookup_type(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err)
{
	struct type_lookup *l = arg;

	return ws_shapes_type(l->s, l->sh, oid, t, err);
}

struct ws_heapdesc *
ws_shapes_reader(struct ws_shapes *s, struct ws_shape *sh, const struct ws_rel *rel,
                 struct ws_err *err)
{
	struct type_lookup l = {s, sh};

	struct ws_heapdesc *desc = ws_heapdesc_new(rel, lookup_type, &l, err);

	if (desc && s->oracle)
		ws_heapdesc_oracle(desc);
	return desc;
}

int
ws_shapes_desc(struct ws_shapes *s, struct ws_shape *sh, struct ws_err *err)
{
	if (sh->desc)
		return 0;
	sh->desc = ws_shapes_reader(s, sh, sh->rel, err);
	if (!sh->desc)
		return -1;
	return ws_shapes_raw(s, sh, err);
}

/* ---- the relation frame ---- */

/* Without a handle: what counts when shapes are compared. */
static void
put_relation(const struct ws_shape *sh, uint32_t handle, struct ws_buf *out)
{
	struct ws_arena a = {0};
	struct ws_c_relation c;

	ws_heapdesc_relation(sh->desc, sh->root, handle, &a, &c);
	if (!handle) {
		c.lsn = 0;
		/* CLUSTER and VACUUM FULL forget missing values: nothing that a consumer must know. */
		for (uint16_t i = 0; i < c.ncols; i++)
			c.cols[i].flags &= (uint8_t)~WS_COL_MISSING;
	}
	struct ws_change ev = {.type = WS_C_RELATION, .relation = &c};

	ws_change_put(out, &ev);
	ws_arena_free(&a);
}

int
ws_shapes_describe(struct ws_shapes *s, struct ws_shape *sh, struct ws_buf *out, struct ws_err *err)
{
	if (sh->handle)
		return 0;
	if (ws_shapes_desc(s, sh, err) != 0)
		return -1;
	sh->handle = s->next_handle++;
	put_relation(sh, sh->handle, out);
	return 0;
}

int
ws_shapes_same(struct ws_shapes *s, struct ws_shape *a, struct ws_shape *b, bool *same,
               struct ws_err *err)
{
	struct ws_buf x = {0}, y = {0};

	if (ws_shapes_desc(s, a, err) != 0 || ws_shapes_desc(s, b, err) != 0)
		return -1;
	put_relation(a, 0, &x);
	put_relation(b, 0, &y);
	*same = x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
	ws_buf_free(&x);
	ws_buf_free(&y);
	return 0;
}
