/* Types as the oracle wants them described: from the history, as they were when a row was written,
 * down to output functions.  The layout is in ws-pgext(7). */
#include <string.h>

#include "oracle-int.h"

struct walk {
	const struct ws_oracle_lookup *l;
	struct ws_buf *out;
	struct ws_err *err;
};

static int describe(struct walk *w, ws_oid oid, int depth);

static void
put_text(struct ws_buf *b, const char *s)
{
	ws_buf_putstr(b, s, strlen(s));
}

static int
unknown(ws_oid oid, struct ws_err *err)
{
	return ws_err_op(err, "unknown_type", "type %u is not in the catalog history", oid);
}

static bool
prints_by(const struct ws_type *t, const char *sym)
{
	return !*t->out_lib && !strcmp(t->out_sym, sym);
}

static int
find(struct walk *w, ws_oid oid, const struct ws_type **t)
{
	int rc = w->l->type(w->l->arg, oid, t, w->err);

	if (rc == 0)
		return unknown(oid, w->err);
	return rc < 0 ? -1 : 0;
}

/* Follows domains. */
static int
resolve(struct walk *w, ws_oid oid, const struct ws_type **t)
{
	for (int i = 0; i < WS_ORACLE_MAX_DEPTH; i++) {
		if (find(w, oid, t) != 0)
			return -1;
		if ((*t)->typtype != 'd')
			return 0;
		oid = (*t)->base;
	}
	return ws_err_op(w->err, "unknown_type", "type %u: its domains have no end", oid);
}

static int
put_base(struct walk *w, const struct ws_type *t)
{
	struct ws_buf *b = w->out;

	ws_buf_putc(b, 'b');
	ws_buf_put32(b, t->oid);
	ws_buf_put16(b, (uint16_t)t->len);
	ws_buf_putc(b, t->byval);
	ws_buf_putc(b, (uint8_t)t->align);
	put_text(b, t->out_lib);
	put_text(b, t->out_sym);
	return 0;
}

static int
put_enum(struct walk *w, const struct ws_type *t)
{
	ws_buf_putc(w->out, 'e');
	ws_buf_put32(w->out, (uint32_t)t->nlabels);
	for (int i = 0; i < t->nlabels; i++) {
		ws_buf_put32(w->out, t->labels[i].oid);
		put_text(w->out, t->labels[i].label);
	}
	return 0;
}

static int
put_array(struct walk *w, const struct ws_type *t, int depth)
{
	const struct ws_type *e;

	/* The delimiter is the element type's (arrayfuncs.c). */
	if (find(w, t->elem, &e) != 0)
		return -1;
	ws_buf_putc(w->out, 'a');
	ws_buf_putc(w->out, (uint8_t)t->align);
	ws_buf_putc(w->out, (uint8_t)e->delim);
	return describe(w, t->elem, depth + 1);
}

static int
put_attribute(struct walk *w, const struct ws_attr *a, int depth)
{
	bool missing = a->flags & WS_ATT_MISSING && a->missing;

	if (a->flags & WS_ATT_DROPPED) {
		ws_buf_putc(w->out, 0);
		ws_buf_put16(w->out, (uint16_t)a->len);
		ws_buf_putc(w->out, a->flags & WS_ATT_BYVAL ? 1 : 0);
		ws_buf_putc(w->out, (uint8_t)a->align);
		return 0;
	}
	ws_buf_putc(w->out, missing ? 2 : 1);
	if (missing)
		put_text(w->out, a->missing);
	return describe(w, a->typid, depth + 1);
}

static int
put_composite(struct walk *w, const struct ws_type *t, int depth)
{
	const struct ws_rel *r;
	int rc = w->l->rel(w->l->arg, t->relid, &r, w->err);

	if (rc != 1)
		return rc < 0 ? -1 : unknown(t->oid, w->err);
	ws_buf_putc(w->out, 'c');
	ws_buf_put16(w->out, (uint16_t)r->natts);
	for (int i = 0; i < r->natts; i++)
		if (put_attribute(w, &r->attrs[i], depth) != 0)
			return -1;
	return 0;
}

static int
put_range(struct walk *w, const struct ws_type *t, const struct ws_type *range, int depth)
{
	ws_buf_putc(w->out, (uint8_t)t->typtype);
	ws_buf_putc(w->out, (uint8_t)t->align);
	ws_buf_put32(w->out, range->oid);
	return describe(w, range->subtype, depth + 1);
}

static int
describe(struct walk *w, ws_oid oid, int depth)
{
	const struct ws_type *t, *range;

	if (depth >= WS_ORACLE_MAX_DEPTH)
		return ws_err_op(w->err, "unknown_type", "type %u: too deep", oid);
	if (resolve(w, oid, &t) != 0)
		return -1;
	switch (t->typtype) {
	case 'e':
		return put_enum(w, t);
	case 'c':
		return put_composite(w, t, depth);
	case 'r':
		return put_range(w, t, t, depth);
	case 'm':
		if (find(w, t->subtype, &range) != 0)
			return -1;
		return put_range(w, t, range, depth);
	default:
		return t->elem && prints_by(t, "array_out") ? put_array(w, t, depth) : put_base(w, t);
	}
}

int
ws_oracle_describe(ws_oid typid, const struct ws_oracle_lookup *l, struct ws_buf *out,
				   struct ws_err *err)
{
	struct walk w = {l, out, err};
	size_t at = out->len;

	if (describe(&w, typid, 0) == 0)
		return 0;
	out->len = at;
	return -1;
}
