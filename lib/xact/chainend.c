/* The ends of filenode chains: what the commit says against what the walk found, and the marks that
 * come of it; see chain-int.h. */
#include <stdlib.h>

#include "chain-int.h"
#include "ws/lsn.h"

/* A relation has another file at the commit than the walk found. */
static int
settle_end(struct walk *w, struct rel *r, struct ws_err *err)
{
	const struct ws_chain_input *in = w->in;
	ws_oid owner = 0;
	ws_lsn at = in->commit;

	int rc = in->file(in->arg, r->h.file_after, false, &owner, err);

	if (rc < 0)
		return -1;
	const struct ws_birth *b = chain_birth_of(w->c, r->h.file_after);

	if (!b && rc == 0 && r->h.pers_after != 'p')
		return 0; /* its files are not in the WAL */
	/* Made in this transaction, but no record named it. */
	if (rc == 0 && !r->h.before && !r->made) {
		r->cur = r->h.file_after;
		return 0;
	}
	if (rc == 0 || owner == r->oid)
		return ws_err_op(err, b ? "filenode_chain" : "unknown_relation",
		                 "%s (oid %u) has file %u at the commit that ends at " WS_LSN_FMT
		                 ", but how it came to it is not in the transaction",
		                 r->h.name ? r->h.name : "relation", r->oid, r->h.file_after,
		                 WS_LSN_ARG(in->commit));
	if (!in->trust_swaps)
		return ws_err_op(
			err, "filenode_swap",
			"%s (oid %u) took over the file of relation %u in the commit that ends at " WS_LSN_FMT
			" (pg_repack?): load the table again, or trust it by --trust-swaps",
			r->h.name ? r->h.name : "relation", r->oid, owner, WS_LSN_ARG(in->commit));
	for (size_t i = 0; i < in->ninvals; i++)
		if (chain_names(&in->invals[i], r->oid) && chain_names(&in->invals[i], owner)) {
			at = in->invals[i].at;
			break;
		}
	chain_add_link(w, r, r->h.file_after, at, false);
	return 0;
}

int
chain_settle_ends(struct walk *w, struct ws_err *err)
{
	struct rel *r;

	for (size_t i = 0; i < w->in->nchanged; i++)
		if (chain_rel_get(w, w->in->changed[i], &r, err) != 0)
			return -1;
	for (size_t i = 0; i < w->nrels; i++) {
		r = w->rels[i];
		if (!chain_is_table(r) || !r->h.after || r->h.file_after == r->cur)
			continue;
		if (r->h.kind == 'r' && settle_end(w, r, err) != 0)
			return -1;
	}
	return 0;
}

/* Only relations that live at the commit own the files they were made with. */
int
chain_forget_gone(struct walk *w, struct ws_err *err)
{
	struct rel *r;

	for (size_t i = 0; i < w->c->nbirths; i++) {
		if (!w->c->owner[i])
			continue;
		if (chain_rel_get(w, w->c->owner[i], &r, err) != 0)
			return -1;
		if (!r->h.after)
			w->c->owner[i] = 0;
	}
	return 0;
}

/* ---- marks ---- */

static bool
is_last_replace(const struct ws_chain *c, size_t i)
{
	if (c->links[i].kind != WS_LINK_REPLACE)
		return false;
	for (size_t k = i + 1; k < c->nlinks; k++)
		if (c->links[k].rel == c->links[i].rel && c->links[k].kind == WS_LINK_REPLACE)
			return false;
	return true;
}

static int
by_at(const void *a, const void *b)
{
	const struct ws_mark *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* A rewrite of an empty, permanent table by a transaction without rows changes nothing; but columns of
 * other types are easier made for a table that is replaced. */
static bool
changes_nothing(const struct walk *w, const struct ws_link *l)
{
	struct rel *r = NULL;
	struct ws_err ignored;

	if (!w->in->no_rows || chain_rel_get((struct walk *)(uintptr_t)w, l->rel, &r, &ignored) != 0)
		return false;
	if (!r->h.before || r->h.pers_before != 'p' || !r->h.same_types)
		return false;
	for (size_t i = 0; i < w->c->nbirths; i++)
		if (w->c->births[i].unlogged)
			return false;
	return true;
}

void
chain_make_marks(struct walk *w)
{
	struct ws_chain *c = w->c;

	for (size_t i = 0; i < c->nlinks; i++)
		if (c->links[i].kind == WS_LINK_REPLACE && changes_nothing(w, &c->links[i]))
			c->links[i].kind = WS_LINK_COPY;
	c->marks = ws_calloc(c->nlinks * 2 + 1, sizeof *c->marks);
	for (size_t i = 0; i < c->nlinks; i++) {
		const struct ws_link *l = &c->links[i];

		if (!is_last_replace(c, i))
			continue;
		c->marks[c->nmarks++] = (struct ws_mark){l->birth, l->rel, true};
		c->marks[c->nmarks++] = (struct ws_mark){l->at, l->rel, false};
	}
	qsort(c->marks, c->nmarks, sizeof *c->marks, by_at);
}
