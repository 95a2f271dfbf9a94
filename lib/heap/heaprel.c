/* A shape as the change stream describes it, for everybody who writes one. */
#include <string.h>

#include "ws/change.h"
#include "heap-int.h"

static uint8_t
column_flags(const struct ws_attr *a)
{
	static const struct {
		uint8_t att, col;
	} map[] = {{WS_ATT_NOTNULL, WS_COL_NOTNULL}, {WS_ATT_IDENTITY, WS_COL_IDENTITY}, {WS_ATT_PKEY, WS_COL_PKEY},
	           {WS_ATT_STORED, WS_COL_GENERATED}, {WS_ATT_VIRTUAL, WS_COL_GENERATED}};
	uint8_t flags = a->flags & WS_ATT_MISSING && a->missing ? WS_COL_MISSING : 0;

	for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
		if (a->flags & map[i].att)
			flags |= map[i].col;
	return flags;
}

/* ---- what the text of a key depends on beside the value ---- */

struct labels {
	struct ws_arena *arena;
	const char **v;
	size_t n;
};

#define MAX_LABELS UINT16_MAX

static void
add_label(struct labels *l, const char *s)
{
	if (l->n == MAX_LABELS)
		return;
	if ((l->n & (l->n - 1)) == 0) {
		const char **v = ws_arena_alloc(l->arena, (l->n ? l->n * 2 : 1) * sizeof *v);

		if (l->n)
			memcpy(v, l->v, l->n * sizeof *v);
		l->v = v;
	}
	l->v[l->n++] = s;
}

/* Labels of enums, and for a composite a text of its attributes' types: if one that was there is missing
 * later, values are written in another way. */
static void
collect(const struct ws_heaptype *t, struct labels *l)
{
	const struct ws_type *e = t->enum_;

	for (int i = 0; e && i < e->nlabels; i++)
		add_label(l, e->labels[i].label);
	if (t->row) {
		struct ws_buf s = {0};

		ws_buf_puts(&s, "(");
		for (int i = 0; i < t->row->natts; i++)
			if (!(t->row->attrs[i].flags & WS_ATT_DROPPED))
				ws_buf_printf(&s, "%s%u", s.len > 1 ? "," : "", t->row->attrs[i].typid);
		ws_buf_puts(&s, ")");
		add_label(l, ws_arena_strdup(l->arena, ws_buf_cstr(&s)));
		ws_buf_free(&s);
		for (int i = 0; i < t->row->natts; i++)
			if (t->sub[i].codec)
				collect(&t->sub[i], l);
	} else if (t->sub && !e) {
		collect(t->sub, l);
	}
}

static void
column(const struct ws_heapcol *c, struct ws_arena *a, struct ws_c_column *out)
{
	const struct ws_type *e = c->type.enum_;
	struct labels found = {.arena = a};

	out->name = c->attr->name;
	out->attnum = c->attnum;
	out->kind = (uint8_t)c->type.kind;
	out->elem_kind = (uint8_t)c->type.elem;
	out->flags = column_flags(c->attr);
	out->typid = c->attr->typid;
	out->typmod = c->attr->typmod;
	out->typname = c->attr->typname;
	out->missing = c->attr->missing;
	if (!e) {
		collect(&c->type, &found);
		out->nlabels = (uint16_t)found.n;
		out->labels = found.v;
	}
	if (!e)
		return;
	out->nlabels = (uint16_t)e->nlabels;
	out->labels = ws_arena_alloc(a, out->nlabels * sizeof *out->labels);
	for (uint16_t i = 0; i < out->nlabels; i++)
		out->labels[i] = e->labels[i].label;
}

void
ws_heapdesc_relation(const struct ws_heapdesc *d, const struct ws_rel *root, uint32_t handle, struct ws_arena *a,
                     struct ws_c_relation *out)
{
	const struct ws_rel *r = d->rel;

	*out = (struct ws_c_relation){
	    .handle = handle,
	    .oid = r->oid,
	    .relkind = r->kind,
	    .replident = r->replident,
	    .nspname = r->nspname,
	    .name = r->name,
	    .root = root ? root->oid : 0,
	    .root_nspname = root ? root->nspname : "",
	    .root_name = root ? root->name : "",
	    .lsn = r->lsn,
	    .ncols = d->ncols,
	};
	out->cols = ws_arena_zalloc(a, d->ncols * sizeof *out->cols);
	for (uint16_t i = 0; i < d->ncols; i++)
		column(&d->cols[i], a, &out->cols[i]);
}
