/* Relations and types as bytes, and back; see ws/shape.h, and ws-catalog(5) for the layout.
 * Pure and total: any bytes are either a whole shape or refused. */
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/shape.h"

#define REL_VERSION  1
#define TYPE_VERSION 1
#define MAX_ATTRS    1664 /* access/htup_details.h: MaxTupleAttributeNumber */

void
ws_rel_free(struct ws_rel *r)
{
	free(r);
}

void
ws_type_free(struct ws_type *t)
{
	if (t)
		ws_rel_free(t->row);
	free(t);
}

bool
ws_type_same(const struct ws_type *a, const struct ws_type *b)
{
	return a->lsn == b->lsn && (a->row ? a->row->lsn : 0) == (b->row ? b->row->lsn : 0);
}

static void
put_text(struct ws_buf *b, const char *s)
{
	ws_buf_putstr(b, s ? s : "", s ? strlen(s) : 0);
}

/* Where the decoder's single allocation is filled: arrays first, then strings. */
struct place {
	struct ws_cursor c;
	char *text; /* next free byte for a string; all fit, each length having been read from c */
};

/* A string without a NUL inside, copied behind the struct. */
static char *
get_text(struct place *p)
{
	size_t n;
	const char *s = ws_cur_str(&p->c, &n);
	char *d = p->text;

	if (!s || memchr(s, 0, n)) {
		p->c.bad = true;
		return NULL;
	}
	memcpy(d, s, n);
	d[n] = 0;
	p->text += n + 1;
	return d;
}

static void
put_attr(struct ws_buf *b, const struct ws_attr *a)
{
	put_text(b, a->name);
	ws_buf_put32(b, a->typid);
	ws_buf_put32(b, (uint32_t)a->typmod);
	ws_buf_put16(b, (uint16_t)a->attnum);
	ws_buf_put16(b, (uint16_t)a->len);
	ws_buf_putc(b, (uint8_t)a->align);
	ws_buf_putc(b, (uint8_t)a->storage);
	ws_buf_putc(b, a->missing ? a->flags | WS_ATT_MISSING : a->flags & ~WS_ATT_MISSING);
	put_text(b, a->typname);
	if (a->missing)
		put_text(b, a->missing);
}

#define ATTR_MIN 23 /* bytes of an attribute with empty texts */

static void
get_attr(struct place *p, struct ws_attr *a, int index)
{
	a->name = get_text(p);
	a->typid = ws_cur_u32(&p->c);
	a->typmod = (int32_t)ws_cur_u32(&p->c);
	a->attnum = (int16_t)ws_cur_u16(&p->c);
	a->len = (int16_t)ws_cur_u16(&p->c);
	a->align = (char)ws_cur_u8(&p->c);
	a->storage = (char)ws_cur_u8(&p->c);
	a->flags = ws_cur_u8(&p->c);
	a->typname = get_text(p);
	a->missing = a->flags & WS_ATT_MISSING ? get_text(p) : NULL;
	if (a->attnum != index + 1)
		p->c.bad = true;
}

static void
put_nums(struct ws_buf *b, const int16_t *v, int n)
{
	ws_buf_put16(b, (uint16_t)n);
	for (int i = 0; i < n; i++)
		ws_buf_put16(b, (uint16_t)v[i]);
}

/* Attribute numbers: each must be a column of the relation. */
static int
get_nums(struct place *p, int16_t *v, int max, int natts)
{
	int n = ws_cur_u16(&p->c);

	if (n > max) {
		p->c.bad = true;
		return 0;
	}
	for (int i = 0; i < n; i++) {
		v[i] = (int16_t)ws_cur_u16(&p->c);
		if (v[i] < 1 || v[i] > natts)
			p->c.bad = true;
	}
	return n;
}

void
ws_rel_encode(const struct ws_rel *r, struct ws_buf *out)
{
	ws_buf_put64(out, r->lsn);
	ws_buf_putc(out, REL_VERSION);
	ws_buf_put32(out, r->db);
	ws_buf_put32(out, r->oid);
	ws_buf_put32(out, r->ns);
	put_text(out, r->nspname);
	put_text(out, r->name);
	ws_buf_putc(out, (uint8_t)r->kind);
	ws_buf_putc(out, (uint8_t)r->persistence);
	ws_buf_putc(out, (uint8_t)r->replident);
	ws_buf_put32(out, r->filenode);
	ws_buf_put32(out, r->spc);
	ws_buf_put32(out, r->toast);
	ws_buf_put32(out, r->toast_of);
	ws_buf_put32(out, r->parent);
	ws_buf_put32(out, r->root);
	ws_buf_put32(out, r->reltype);
	ws_buf_put16(out, (uint16_t)r->natts);
	for (int i = 0; i < r->natts; i++)
		put_attr(out, &r->attrs[i]);
	put_nums(out, r->ident, r->nident);
	put_nums(out, r->pkey, r->npkey);
}

static void
get_rel(struct place *p, struct ws_rel *r)
{
	r->db = ws_cur_u32(&p->c);
	r->oid = ws_cur_u32(&p->c);
	r->ns = ws_cur_u32(&p->c);
	r->nspname = get_text(p);
	r->name = get_text(p);
	r->kind = (char)ws_cur_u8(&p->c);
	r->persistence = (char)ws_cur_u8(&p->c);
	r->replident = (char)ws_cur_u8(&p->c);
	r->filenode = ws_cur_u32(&p->c);
	r->spc = ws_cur_u32(&p->c);
	r->toast = ws_cur_u32(&p->c);
	r->toast_of = ws_cur_u32(&p->c);
	r->parent = ws_cur_u32(&p->c);
	r->root = ws_cur_u32(&p->c);
	r->reltype = ws_cur_u32(&p->c);
	r->natts = ws_cur_u16(&p->c);
}

/* The encoded text lengths are 4 bytes each and become 1 NUL each, so n bytes hold all strings. */
struct ws_rel *
ws_rel_decode(const uint8_t *b, size_t n, struct ws_err *err)
{
	struct place p = {ws_cursor(b, n), NULL}, head;
	ws_lsn lsn = ws_cur_u64(&p.c);
	uint8_t version = ws_cur_u8(&p.c);
	struct ws_rel h = {0}, *r;
	char *scratch = ws_malloc(n + 1);

	/* Twice over the head: its attribute count sizes the allocation. */
	head = p;
	head.text = scratch;
	get_rel(&head, &h);
	bool bad = head.c.bad || h.natts > MAX_ATTRS || ws_cur_left(&head.c) / ATTR_MIN < (size_t)h.natts;

	free(scratch);
	if (version != REL_VERSION || bad) {
		ws_err_op(err, "catalog_corrupt", "not an encoded relation (%zu bytes)", n);
		return NULL;
	}
	size_t nums = (size_t)h.natts * sizeof(int16_t);

	r = ws_calloc(1, sizeof *r + (size_t)h.natts * sizeof *r->attrs + 2 * nums + n + 1);
	r->attrs = (struct ws_attr *)(r + 1);
	r->ident = (int16_t *)(r->attrs + h.natts);
	r->pkey = r->ident + h.natts;
	p.text = (char *)(r->pkey + h.natts);
	get_rel(&p, r);
	r->lsn = lsn;
	for (int i = 0; i < r->natts && !p.c.bad; i++)
		get_attr(&p, &r->attrs[i], i);
	r->nident = get_nums(&p, r->ident, r->natts, r->natts);
	r->npkey = get_nums(&p, r->pkey, r->natts, r->natts);
	if (p.c.bad || ws_cur_left(&p.c)) {
		ws_err_op(err, "catalog_corrupt", "relation %u: malformed encoding", r->oid);
		ws_rel_free(r);
		return NULL;
	}
	return r;
}

void
ws_type_encode(const struct ws_type *t, struct ws_buf *out)
{
	ws_buf_put64(out, t->lsn);
	ws_buf_putc(out, TYPE_VERSION);
	ws_buf_put32(out, t->db);
	ws_buf_put32(out, t->oid);
	put_text(out, t->nspname);
	put_text(out, t->name);
	ws_buf_putc(out, (uint8_t)t->typtype);
	ws_buf_putc(out, (uint8_t)t->category);
	ws_buf_put16(out, (uint16_t)t->len);
	ws_buf_putc(out, t->byval);
	ws_buf_putc(out, (uint8_t)t->align);
	ws_buf_putc(out, (uint8_t)t->storage);
	ws_buf_putc(out, (uint8_t)t->delim);
	ws_buf_put32(out, t->elem);
	ws_buf_put32(out, t->base);
	ws_buf_put32(out, (uint32_t)t->base_typmod);
	ws_buf_put32(out, t->relid);
	ws_buf_put32(out, t->subtype);
	put_text(out, t->out_lib);
	put_text(out, t->out_sym);
	ws_buf_put32(out, (uint32_t)t->nlabels);
	for (int i = 0; i < t->nlabels; i++) {
		ws_buf_put32(out, t->labels[i].oid);
		put_text(out, t->labels[i].label);
	}
}

static uint32_t
get_type(struct place *p, struct ws_type *t)
{
	t->db = ws_cur_u32(&p->c);
	t->oid = ws_cur_u32(&p->c);
	t->nspname = get_text(p);
	t->name = get_text(p);
	t->typtype = (char)ws_cur_u8(&p->c);
	t->category = (char)ws_cur_u8(&p->c);
	t->len = (int16_t)ws_cur_u16(&p->c);
	uint8_t byval = ws_cur_u8(&p->c);

	t->byval = byval == 1;
	p->c.bad |= byval > 1;
	t->align = (char)ws_cur_u8(&p->c);
	t->storage = (char)ws_cur_u8(&p->c);
	t->delim = (char)ws_cur_u8(&p->c);
	t->elem = ws_cur_u32(&p->c);
	t->base = ws_cur_u32(&p->c);
	t->base_typmod = (int32_t)ws_cur_u32(&p->c);
	t->relid = ws_cur_u32(&p->c);
	t->subtype = ws_cur_u32(&p->c);
	t->out_lib = get_text(p);
	t->out_sym = get_text(p);
	return ws_cur_u32(&p->c);
}

struct ws_type *
ws_type_decode(const uint8_t *b, size_t n, struct ws_err *err)
{
	struct place p = {ws_cursor(b, n), NULL}, head;
	ws_lsn lsn = ws_cur_u64(&p.c);
	uint8_t version = ws_cur_u8(&p.c);
	struct ws_type h = {0}, *t;
	char *scratch = ws_malloc(n + 1);

	head = p;
	head.text = scratch;
	uint32_t nlabels = get_type(&head, &h);
	bool bad = head.c.bad || ws_cur_left(&head.c) / 8 < nlabels;

	free(scratch);
	if (version != TYPE_VERSION || bad) {
		ws_err_op(err, "catalog_corrupt", "not an encoded type (%zu bytes)", n);
		return NULL;
	}
	t = ws_calloc(1, sizeof *t + nlabels * sizeof *t->labels + n + 1);
	t->labels = (struct ws_enum_label *)(t + 1);
	p.text = (char *)(t->labels + nlabels);
	get_type(&p, t);
	t->lsn = lsn;
	t->nlabels = (int)nlabels;
	for (uint32_t i = 0; i < nlabels && !p.c.bad; i++) {
		t->labels[i].oid = ws_cur_u32(&p.c);
		t->labels[i].label = get_text(&p);
	}
	if (p.c.bad || ws_cur_left(&p.c)) {
		ws_err_op(err, "catalog_corrupt", "type %u: malformed encoding", t->oid);
		ws_type_free(t);
		return NULL;
	}
	return t;
}
