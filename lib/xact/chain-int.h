/* What the files of a chain's building share; see chain.h.  chain.c walks through the transaction,
 * chainend.c compares with the commit, chainask.c answers. */
#ifndef WS_CHAIN_INT_H
#define WS_CHAIN_INT_H

#include "chain.h"

/* A relation as the walk through the transaction finds it. */
struct rel {
	ws_oid oid;
	struct ws_chain_rel h;
	ws_oid cur;     /* file now */
	ws_lsn made;    /* inval that made it in this transaction, 0: older */
	ws_lsn birth;   /* of its first file, when made here */
	bool swapped;   /* has given its file away */
};

struct walk {
	const struct ws_chain_input *in;
	struct ws_chain *c;
	struct rel **rels;
	size_t nrels, rels_cap;
	uint32_t *index; /* into rels by oid, plus one; twice rels_cap slots */
	size_t *open;    /* births without an owner or a link yet, ascending */
	size_t nopen;
	bool *numbered;  /* births whose number some record names as a relation */
	ws_lsn last_inval;
};

int chain_rel_get(struct walk *w, ws_oid oid, struct rel **out, struct ws_err *err);
/* r has the file `to` from the record at `at` on. */
void chain_add_link(struct walk *w, struct rel *r, ws_oid to, ws_lsn at, bool swap);
/* The file's birth in this transaction, or NULL. */
const struct ws_birth *chain_birth_of(const struct ws_chain *c, ws_oid file);
/* For qsort and bsearch: what begins with an oid. */
int chain_by_oid(const void *a, const void *b);

/* ---- chainend.c ---- */
/* The walk's end against the files at the commit; then whose rows count. */
int chain_settle_ends(struct walk *w, struct ws_err *err);
int chain_forget_gone(struct walk *w, struct ws_err *err);
void chain_make_marks(struct walk *w);

static inline bool
chain_names(const struct ws_chain_inval *m, ws_oid oid)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->oids[i] == oid)
			return true;
	return false;
}

static inline bool
chain_is_table(const struct rel *r)
{
	return (r->h.before || r->h.after) && (r->h.kind == 'r' || r->h.kind == 'm');
}

static inline bool
chain_is_toast(const struct rel *r)
{
	return (r->h.before || r->h.after) && r->h.kind == 't';
}

#endif
