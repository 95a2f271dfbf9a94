/* Filenode chains; see chain.h. */
#include <stdlib.h>
#include <string.h>

#include "chain-int.h"
#include "ws/lsn.h"

/* ---- relations met ---- */

static uint32_t *
rel_slot(const struct walk *w, ws_oid oid)
{
	size_t mask = w->rels_cap * 2 - 1, i = oid * 2654435761u & mask;

	while (w->index[i] && w->rels[w->index[i] - 1]->oid != oid)
		i = (i + 1) & mask;
	return &w->index[i];
}

static void
rels_grow(struct walk *w)
{
	w->rels_cap = w->rels_cap ? w->rels_cap * 2 : 16;
	w->rels = ws_realloc(w->rels, w->rels_cap * sizeof(void *));
	free(w->index);
	w->index = ws_calloc(w->rels_cap * 2, sizeof *w->index);
	for (size_t i = 0; i < w->nrels; i++)
		*rel_slot(w, w->rels[i]->oid) = (uint32_t)i + 1;
}

int
chain_rel_get(struct walk *w, ws_oid oid, struct rel **out, struct ws_err *err)
{
	if (w->nrels == w->rels_cap)
		rels_grow(w);
	uint32_t *slot = rel_slot(w, oid);

	if (*slot) {
		*out = w->rels[*slot - 1];
		return 0;
	}
	struct rel *r = ws_calloc(1, sizeof *r);

	r->oid = oid;
	w->rels[w->nrels++] = r;
	*slot = (uint32_t)w->nrels;
	*out = r;
	if (w->in->rel(w->in->arg, oid, &r->h, err) < 0)
		return -1;
	if (r->h.before)
		r->cur = r->h.file_before;
	return 0;
}

/* Made by this transaction and gone at its end. */
static bool
is_transient(const struct rel *r)
{
	return r->made && !r->h.after && !r->h.before;
}

static bool
in_list(const ws_oid *list, size_t n, ws_oid oid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == oid)
			return true;
	return false;
}

/* ---- links ---- */

static enum ws_linkkind
link_kind(const struct ws_birth *b, bool swap, ws_lsn at)
{
	if (!b)
		return WS_LINK_TAKEN;
	if (b->unlogged)
		return WS_LINK_UNLOGGED;
	if (!swap)
		return WS_LINK_COPY;
	if (b->first_row && b->first_row < at)
		return WS_LINK_REPLACE;
	return b->first_image && b->first_image < at ? WS_LINK_COPY : WS_LINK_REPLACE;
}

void
chain_add_link(struct walk *w, struct rel *r, ws_oid to, ws_lsn at, bool swap)
{
	struct ws_chain *c = w->c;
	const struct ws_birth *b = chain_birth_of(c, to);

	if (c->nlinks == c->links_cap) {
		c->links_cap = c->links_cap ? c->links_cap * 2 : 8;
		c->links = ws_realloc(c->links, c->links_cap * sizeof *c->links);
	}
	/* TOAST chunks stay what they are wherever they lie: CLUSTER copies them as rows. */
	enum ws_linkkind kind = chain_is_toast(r) ? WS_LINK_COPY : link_kind(b, swap, at);

	c->links[c->nlinks++] = (struct ws_link){
		.at = at,
		.rel = r->oid,
		.from = r->cur,
		.to = to,
		.kind = kind,
		.swap = swap,
		.birth = b ? b->lsn : 0,
	};
	r->cur = to;
}

/* Takes the births that are settled out of the open ones. */
static void
open_compact(struct walk *w, const bool *settled, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < w->nopen; i++)
		if (i >= n || !settled[i])
			w->open[k++] = w->open[i];
	w->nopen = k;
}

/* The open births at or before the record. */
static size_t
open_until(const struct walk *w, ws_lsn at)
{
	size_t n = 0;

	while (n < w->nopen && w->c->births[w->open[n]].lsn <= at)
		n++;
	return n;
}

/* A birth whose number the record names as a relation: that relation was made with it. */
static int
settle_made(struct walk *w, const struct ws_chain_inval *m, struct ws_err *err)
{
	size_t n = open_until(w, m->at);
	bool *settled = ws_calloc(n, sizeof *settled);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct ws_birth *b = &w->c->births[w->open[i]];
		struct rel *r;

		if (!chain_names(m, b->rel))
			continue;
		rc = chain_rel_get(w, b->rel, &r, err);
		settled[i] = true;
		w->c->owner[w->open[i]] = r->oid;
		r->cur = b->rel;
		r->made = m->at;
		r->birth = b->lsn;
	}
	open_compact(w, settled, n);
	free(settled);
	return rc;
}

/* Whose new file is this birth?  0: not told by this record. */
static int
new_file_owner(struct walk *w, const struct ws_chain_inval *m, ws_oid file, struct rel **out,
               struct ws_err *err)
{
	ws_oid owner = 0;
	size_t candidates = 0;
	struct rel *r;

	if (w->in->file(w->in->arg, file, true, &owner, err) < 0)
		return -1;
	for (size_t k = 0; k < m->n; k++) {
		if (chain_rel_get(w, m->oids[k], &r, err) != 0)
			return -1;
		if (in_list(m->oids, k, r->oid) || (owner ? r->oid != owner : r->made == m->at))
			continue;
		*out = r;
		candidates++;
	}
	/* Several: an index and its table.  A later record may name the owner alone. */
	return candidates == 1;
}

/* A birth that is no relation's own number: the new file of one that the record names. */
static int
settle_new_file(struct walk *w, const struct ws_chain_inval *m, struct ws_err *err)
{
	size_t n = open_until(w, m->at);
	bool *settled = ws_calloc(n, sizeof *settled);
	int rc = 0;

	for (size_t i = 0; i < n && rc >= 0; i++) {
		struct rel *r = NULL;

		if (w->numbered[w->open[i]])
			continue;
		rc = new_file_owner(w, m, w->c->births[w->open[i]].rel, &r, err);
		if (rc == 1) {
			settled[i] = true;
			chain_add_link(w, r, w->c->births[w->open[i]].rel, m->at, false);
		}
	}
	open_compact(w, settled, n);
	free(settled);
	return rc < 0 ? -1 : 0;
}

static int
by_birth(const void *a, const void *b)
{
	const struct rel *x = *(struct rel *const *)a, *y = *(struct rel *const *)b;

	return x->birth < y->birth ? -1 : x->birth > y->birth;
}

static void
exchange(struct walk *w, struct rel *t, struct rel *x, ws_lsn at)
{
	ws_oid old = t->cur;

	chain_add_link(w, t, x->cur, at, true);
	x->cur = old;
	x->swapped = true;
}

/* Was t given x's file by this record?  The history knows it of the last file; of those in between
 * only pg_class's own records do.  1, 0, -1. */
static int
takes(struct walk *w, const struct rel *t, const struct rel *x, ws_lsn at, struct ws_err *err)
{
	if (t->h.after && t->h.file_after == x->cur)
		return 1;
	int rc = w->in->sets_file(w->in->arg, w->last_inval, at, t->oid, x->cur, err);

	if (rc != 2)
		return rc;
	return ws_err_op(err, "filenode_chain",
	                 "whether %s (oid %u) took the file %u at " WS_LSN_FMT
	                 " cannot be told from the WAL",
	                 t->h.name ? t->h.name : "relation", t->oid, x->cur, WS_LSN_ARG(at));
}

/* The relation that takes over x's file: 1 and *out, 0 none, -1. */
static int
taker(struct walk *w, struct rel **t, size_t n, const struct rel *x, ws_lsn at, struct rel **out,
      struct ws_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		*out = t[i];
		rc = takes(w, t[i], x, at, err);
	}
	return rc;
}

/* Transient tables that the record names together with the relations they were made for.  A table
 * and its TOAST table can be exchanged by one record; the transient table is born first. */
static int
settle_swaps(struct walk *w, const struct ws_chain_inval *m, struct ws_err *err)
{
	struct rel **x = ws_calloc(m->n * 3 + 1, sizeof(void *)), **t = x + m->n, **s = t + m->n;
	size_t nx = 0, nt = 0, ns = 0;
	struct rel *r;
	int rc = 0;

	for (size_t i = 0; i < m->n && rc == 0; i++) {
		rc = chain_rel_get(w, m->oids[i], &r, err);
		if (rc != 0 || in_list(m->oids, i, r->oid) || r->made == m->at)
			continue;
		if (is_transient(r)) {
			if (!r->swapped)
				x[nx++] = r;
		} else if (chain_is_table(r)) {
			t[nt++] = r;
		} else if (chain_is_toast(r)) {
			s[ns++] = r;
		}
	}
	if (rc != 0 || !nx)
		goto out;
	qsort(x, nx, sizeof(void *), by_birth);
	if ((rc = taker(w, t, nt, x[0], m->at, &r, err)) != 1)
		goto out;
	exchange(w, r, x[0], m->at);
	if (nx > 1 && (rc = taker(w, s, ns, x[1], m->at, &r, err)) == 1)
		exchange(w, r, x[1], m->at);
out:
	free(x);
	return rc < 0 ? -1 : 0;
}

static void
copy_input(struct walk *w)
{
	const struct ws_chain_input *in = w->in;
	struct ws_chain *c = w->c;

	memset(c, 0, sizeof *c);
	c->nbirths = in->nbirths;
	c->births = ws_malloc(in->nbirths * sizeof *c->births);
	c->by_file = ws_malloc(in->nbirths * sizeof *c->by_file);
	c->owner = ws_calloc(in->nbirths, sizeof *c->owner);
	c->ndropped = in->ndropped;
	c->dropped = ws_malloc(in->ndropped * sizeof *c->dropped);
	w->open = ws_malloc(in->nbirths * sizeof *w->open);
	w->nopen = in->nbirths;
	for (size_t i = 0; i < in->nbirths; i++) {
		c->births[i] = in->births[i];
		c->by_file[i] = (struct ws_chain_file){in->births[i].rel, (uint32_t)i};
		w->open[i] = i;
	}
	if (in->ndropped)
		memcpy(c->dropped, in->dropped, in->ndropped * sizeof *c->dropped);
	qsort(c->by_file, c->nbirths, sizeof *c->by_file, chain_by_oid);
	qsort(c->dropped, c->ndropped, sizeof *c->dropped, chain_by_oid);
	w->numbered = ws_calloc(in->nbirths, sizeof *w->numbered);
	for (size_t i = 0; i < in->ninvals; i++)
		for (size_t k = 0; k < in->invals[i].n; k++) {
			const struct ws_birth *b = chain_birth_of(c, in->invals[i].oids[k]);

			if (b)
				w->numbered[b - c->births] = true;
		}
}

int
ws_chain_build(const struct ws_chain_input *in, struct ws_chain *c, struct ws_err *err)
{
	struct walk w = {.in = in, .c = c};
	int rc = 0;

	copy_input(&w);
	for (size_t i = 0; i < in->ninvals && rc == 0; i++) {
		rc = settle_made(&w, &in->invals[i], err);
		if (rc == 0)
			rc = settle_new_file(&w, &in->invals[i], err);
		if (rc == 0)
			rc = settle_swaps(&w, &in->invals[i], err);
		w.last_inval = in->invals[i].at;
	}
	if (rc == 0)
		rc = chain_settle_ends(&w, err);
	if (rc == 0)
		rc = chain_forget_gone(&w, err);
	if (rc == 0)
		chain_make_marks(&w);
	for (size_t i = 0; i < w.nrels; i++)
		free(w.rels[i]);
	free(w.rels);
	free(w.index);
	free(w.open);
	free(w.numbered);
	if (rc != 0)
		ws_chain_fini(c);
	return rc;
}
