/* Files made before their transaction had an xid; see orphan.h. */
#include <stdlib.h>

#include "decoder.h"

/* RUNNING_XACTS records after which the owner surely has its xid: they come seconds apart. */
#define SETTLED 2

void
ws_orphans_fini(struct ws_orphans *o)
{
	free(o->e);
	*o = (struct ws_orphans){0};
}

void
ws_orphan_add(struct ws_orphans *o, const struct ws_birth *b)
{
	if (o->n == o->cap) {
		o->cap = o->cap ? o->cap * 2 : 4;
		o->e = ws_realloc(o->e, o->cap * sizeof *o->e);
	}
	o->e[o->n++] = (struct ws_orphan){.b = *b};
}

struct ws_birth *
ws_orphan_find(struct ws_orphans *o, ws_oid rel)
{
	for (size_t i = o->n; i-- > 0;)
		if (o->e[i].b.rel == rel)
			return &o->e[i].b;
	return NULL;
}

static void
forget(struct ws_orphans *o, size_t i)
{
	for (o->n--; i < o->n; i++)
		o->e[i] = o->e[i + 1];
}

static bool
removes(const struct ws_xactrec *x, ws_oid db, ws_oid rel)
{
	for (uint32_t i = 0; i < x->nrels; i++) {
		struct ws_locator loc = ws_xactrec_rel(x, i);

		if (loc.db == db && loc.rel == rel)
			return true;
	}
	return false;
}

/* A new relation has its first file's number for its oid. */
static bool
names(const struct ws_xactrec *x, ws_oid rel)
{
	for (uint32_t i = 0; i < x->nmsgs; i++) {
		struct ws_inval m = ws_xactrec_msg(x, i);

		if (m.id == WS_INVAL_RELCACHE && m.value == rel)
			return true;
	}
	return false;
}

void
ws_orphans_abort(struct ws_orphans *o, ws_oid db, const struct ws_xactrec *x)
{
	for (size_t i = o->n; i-- > 0;)
		if (removes(x, db, o->e[i].b.rel))
			forget(o, i);
}

void
ws_orphans_running(struct ws_orphans *o, ws_xid next, ws_xid oldest)
{
	for (size_t i = o->n; i-- > 0;) {
		struct ws_orphan *p = &o->e[i];

		if (p->seen < SETTLED) {
			if (++p->seen == SETTLED)
				p->limit = next;
		} else if ((int32_t)(oldest - p->limit) >= 0) {
			forget(o, i);
		}
	}
}

int
ws_orphans_claim(struct ws_decoder *d, const struct ws_xactrec *x, ws_lsn end, struct ws_birth *out, size_t *n,
                 struct ws_err *err)
{
	struct ws_orphans *o = &d->orphans;
	size_t k = 0;

	*n = 0;
	for (size_t i = 0; i < o->n; i++) {
		ws_oid owner;
		int rc = removes(x, d->o.db, o->e[i].b.rel);

		if (rc == 0)
			rc = ws_cathist_filenode(d->o.cat, d->o.db, o->e[i].b.rel, end, &owner, err);
		if (rc < 0)
			return -1;
		if (rc == 0 && !names(x, o->e[i].b.rel))
			o->e[k++] = o->e[i];
		else if (rc == 1 && out)
			out[(*n)++] = o->e[i].b;
	}
	o->n = k;
	return 0;
}
