/* Questions to a filenode chain once it is built; see chain.h. */
#include <stdlib.h>
#include <string.h>

#include "chain-int.h"

void
ws_chain_fini(struct ws_chain *c)
{
	free(c->links);
	free(c->marks);
	free(c->births);
	free(c->owner);
	free(c->by_file);
	free(c->dropped);
	memset(c, 0, sizeof *c);
}

int
chain_by_oid(const void *a, const void *b)
{
	ws_oid x = *(const ws_oid *)a, y = *(const ws_oid *)b;

	return x < y ? -1 : x > y;
}

/* c->by_file is sorted by file. */
const struct ws_birth *
chain_birth_of(const struct ws_chain *c, ws_oid file)
{
	const struct ws_chain_file *f =
		c->nbirths ? bsearch(&file, c->by_file, c->nbirths, sizeof *f, chain_by_oid) : NULL;

	return f ? &c->births[f->birth] : NULL;
}

bool
ws_chain_copied_after(const struct ws_chain *c, ws_oid rel, ws_lsn lsn)
{
	for (size_t i = 0; i < c->nlinks; i++)
		if (c->links[i].rel == rel && c->links[i].kind == WS_LINK_COPY && c->links[i].swap &&
		    c->links[i].at >= lsn)
			return true;
	return false;
}

enum ws_place
ws_chain_judge(const struct ws_chain *c, ws_oid file, ws_lsn lsn, ws_oid rel)
{
	const struct ws_link *last = NULL;

	for (size_t i = 0; i < c->nlinks; i++)
		if (c->links[i].rel == rel && c->links[i].kind == WS_LINK_REPLACE)
			last = &c->links[i];
	if (!last || lsn >= last->at || file == last->to)
		return WS_PLACE_KNOWN;
	return WS_PLACE_VOID;
}

enum ws_place
ws_chain_place(const struct ws_chain *c, ws_oid file, ws_lsn lsn, ws_oid *rel)
{
	const struct ws_link *now = NULL, *later = NULL;

	for (size_t i = 0; i < c->nlinks; i++) {
		if (c->links[i].to != file)
			continue;
		if (c->links[i].at <= lsn)
			now = &c->links[i];
		else if (!later)
			later = &c->links[i];
	}
	if (now) {
		*rel = now->rel;
		return ws_chain_judge(c, file, lsn, *rel);
	}
	const struct ws_birth *b = chain_birth_of(c, file);

	if (!b)
		return WS_PLACE_OLDER;
	/* Rows in a file before the relation took it over: what the rewrite wrote. */
	*rel = later ? later->rel : c->owner[b - c->births];
	if (*rel)
		return ws_chain_judge(c, file, lsn, *rel);
	return c->ndropped && bsearch(&file, c->dropped, c->ndropped, sizeof file, chain_by_oid)
	           ? WS_PLACE_GONE
	           : WS_PLACE_UNKNOWN;
}
