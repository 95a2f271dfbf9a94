/* The filter's kept set: relation files above the fixed rules; see filterpriv.h. */
#include <stdlib.h>

#include "filterpriv.h"

struct ws_filter *
ws_filter_new(void)
{
	return ws_calloc(1, sizeof(struct ws_filter));
}

void
ws_filter_free(struct ws_filter *f)
{
	if (!f)
		return;
	ws_u64map_free(&f->kept);
	ws_xidruns_free(&f->subs);
	free(f->locks);
	free(f->copies);
	free(f->moves);
	free(f);
}

bool
ws_filter_keeps(const struct ws_filter *f, ws_oid db, ws_oid rel)
{
	return !db || (rel < WS_FIRST_NORMAL_OID ? filter_catalog_oid(rel)
	                                         : ws_u64map_get(&f->kept, filter_key(db, rel)) != NULL);
}

size_t
ws_filter_kept_count(const struct ws_filter *f)
{
	return f->kept.n;
}

void
filter_keep(struct ws_filter *f, ws_oid db, ws_oid rel, bool provisional)
{
	uint64_t key = filter_key(db, rel);
	uint32_t *v = ws_u64map_get(&f->kept, key);

	if (!db || rel < WS_FIRST_NORMAL_OID)
		return;
	if (v && *v == KEPT_PROVISIONAL)
		f->nprovisional--;
	ws_u64map_put(&f->kept, key, provisional ? KEPT_PROVISIONAL : KEPT);
	f->nprovisional += provisional;
	f->seen[filter_slot(key)] = 0;
}

void
filter_bury(struct ws_filter *f, ws_oid db, ws_oid rel)
{
	uint64_t key = filter_key(db, rel);
	uint32_t *v = ws_u64map_get(&f->kept, key);

	if (!v)
		return;
	if (*v == KEPT_PROVISIONAL)
		f->nprovisional--;
	ws_u64map_del(&f->kept, key);
	f->seen[filter_slot(key)] = 0;
}

/* The numbers kept in db, in a new array. */
static ws_oid *
rels_of(const struct ws_filter *f, ws_oid db, uint32_t *n)
{
	ws_oid *rels = ws_malloc((size_t)f->kept.n * sizeof *rels);

	*n = 0;
	for (uint32_t i = 0; i < f->kept.cap; i++)
		if (f->kept.keys[i] && f->kept.keys[i] >> 32 == db)
			rels[(*n)++] = (ws_oid)f->kept.keys[i];
	return rels;
}

void
filter_bury_db(struct ws_filter *f, ws_oid db)
{
	uint32_t n;
	ws_oid *rels = rels_of(f, db, &n);

	for (uint32_t i = 0; i < n; i++)
		filter_bury(f, db, rels[i]);
	free(rels);
}

void
filter_inherit(struct ws_filter *f, ws_oid db, ws_oid from)
{
	uint32_t n;
	ws_oid *rels = rels_of(f, from, &n);

	for (uint32_t i = 0; i < n; i++)
		filter_keep(f, db, rels[i], false);
	free(rels);
}

/* File numbers come from one counter for the whole cluster, so a number that is kept in one database
 * is that catalog's copy in every other. */
bool
filter_kept_anywhere(const struct ws_filter *f, ws_oid rel)
{
	for (uint32_t i = 0; i < f->kept.cap; i++)
		if (f->kept.keys[i] && (ws_oid)f->kept.keys[i] == rel)
			return true;
	return false;
}
