/* Which commits are catalog boundaries, and which objects their messages name; see ws/boundary.h.
 *
 * Messages are made in utils/cache/inval.c (PrepareInvalidateCacheTuple, CacheInvalidateRelcache*).
 * A change of pg_class, pg_attribute, pg_index and of foreign keys in pg_constraint always sends
 * the relcache message too, so the syscaches of those catalogs need no rule.  Snapshot, statistics
 * and role caches change no shape. */
#include <stdlib.h>

#include "ws/boundary.h"
#include "ws/mem.h"

/* The inverse of murmurhash32 (common/hashfn.h), a bijection: the syscache hash of a one-key cache
 * on an oid is murmurhash32(oid) (utils/cache/catcache.c: int4hashfast), so the hash is the oid. */
static ws_oid
oid_of_hash(uint32_t h)
{
	h ^= h >> 16;
	h *= 0x7ed1b41du; /* inverse of 0xc2b2ae35 modulo 2^32 */
	h ^= h >> 13 ^ h >> 26;
	h *= 0xa5cb9243u; /* inverse of 0x85ebca6b */
	h ^= h >> 16;
	return h;
}

static bool
is_commit(const struct ws_xactrec *x)
{
	return x->op == WS_XACT_COMMIT || x->op == WS_XACT_COMMIT_PREPARED;
}

static void
judge_catcache(struct ws_boundary *b, int id, const struct ws_walver *v)
{
	if (id == v->cache_type_oid || id == v->cache_type_name || id == v->cache_enum_oid ||
	    id == v->cache_enum_name || id == v->cache_range_type || id == v->cache_range_multi)
		b->types = true;
	else if (id == v->cache_namespace_oid || id == v->cache_namespace_name)
		b->namespaces = true;
	else if (id == v->cache_database_oid)
		b->every_db = true;
	else
		return;
	b->is = true;
}

struct ws_boundary
ws_boundary_of(const struct ws_xactrec *x, const struct ws_walver *ver)
{
	struct ws_boundary b = {0};

	if (!is_commit(x))
		return b;
	for (uint32_t i = 0; i < x->nmsgs; i++) {
		struct ws_inval m = ws_xactrec_msg(x, i);

		if (m.id >= 0) {
			judge_catcache(&b, m.id, ver);
		} else if (m.id == WS_INVAL_RELCACHE && m.value == 0) {
			b.is = b.all_rels = true;
			/* Sent with database 0: whoever has a relation cache must forget it. */
			b.every_db |= m.db == 0;
		} else if (m.id == WS_INVAL_RELCACHE && m.value >= WS_FIRST_NORMAL_OID) {
			b.is = true;
		}
	}
	b.db = x->has_db ? x->db : 0;
	/* A commit from before wal_level=logical may not say where it was made. */
	if (b.is && !x->has_db)
		b.every_db = true;
	return b;
}

static void
add(ws_oid **list, size_t *n, ws_oid oid)
{
	/* Messages of one object come in groups, and again with every command. */
	for (size_t i = *n; i > 0 && i + 4 > *n; i--)
		if ((*list)[i - 1] == oid)
			return;
	if ((*n & (*n - 1)) == 0)
		*list = ws_realloc(*list, (*n ? *n * 2 : 1) * sizeof **list);
	(*list)[(*n)++] = oid;
}

static int
by_oid(const void *a, const void *b)
{
	ws_oid x = *(const ws_oid *)a, y = *(const ws_oid *)b;

	return x < y ? -1 : x > y;
}

static void
sort_unique(ws_oid *list, size_t *n)
{
	size_t k = 0;

	if (!*n)
		return;
	qsort(list, *n, sizeof *list, by_oid);
	for (size_t i = 1; i < *n; i++)
		if (list[i] != list[k])
			list[++k] = list[i];
	*n = k + 1;
}

void
ws_boundary_ids(const struct ws_xactrec *x, const struct ws_walver *v, struct ws_boundary_ids *out)
{
	*out = (struct ws_boundary_ids){0};
	if (!is_commit(x))
		return;
	for (uint32_t i = 0; i < x->nmsgs; i++) {
		struct ws_inval m = ws_xactrec_msg(x, i);
		ws_oid oid = oid_of_hash(m.value);

		if (m.id == WS_INVAL_RELCACHE && m.value != 0)
			add(&out->rels, &out->nrels, m.value);
		else if (m.id < 0)
			continue;
		else if (m.id == v->cache_type_oid || m.id == v->cache_range_type || m.id == v->cache_range_multi)
			add(&out->types, &out->ntypes, oid);
		else if (m.id == v->cache_enum_oid)
			add(&out->labels, &out->nlabels, oid);
		else if (m.id == v->cache_namespace_oid)
			add(&out->namespaces, &out->nnamespaces, oid);
	}
	sort_unique(out->rels, &out->nrels);
	sort_unique(out->types, &out->ntypes);
	sort_unique(out->labels, &out->nlabels);
	sort_unique(out->namespaces, &out->nnamespaces);
}

void
ws_boundary_ids_fini(struct ws_boundary_ids *ids)
{
	free(ids->rels);
	free(ids->types);
	free(ids->labels);
	free(ids->namespaces);
	*ids = (struct ws_boundary_ids){0};
}
