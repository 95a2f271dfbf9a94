/* Relations by SQL: pg_class, pg_attribute, their keys and partitions; see catq.h. */
#include <stdlib.h>
#include <string.h>

#include "catq.h"

/* Columns of the relation query, in order. */
enum {
	R_OID, R_NS, R_NSPNAME, R_NAME, R_KIND, R_PERSISTENCE, R_REPLIDENT, R_FILENODE, R_SPC, R_TOAST,
	R_TOAST_OF, R_PARENT, R_ROOT, R_RELTYPE, R_NATTS, R_IDENT, R_PKEY
};

/* pg_relation_filenode knows mapped relations; it takes no lock.
 * A partition whose detach is pending takes no rows any more (DETACH CONCURRENTLY) and counts as
 * detached, as for pg_partition_root.  When a partitioned table moves, its descendants are
 * invalidated, but not their indexes: those get no parent.
 * A TOAST table depends on its owner; those of catalogs are older than pg_depend.
 * Keys as "COUNT COL COL ...": the index's key columns come first in indkey.  Which index can be an
 * identity: utils/cache/relcache.c, RelationGetIndexList. */
static const char rel_sql[] =
    "PREPARE ws_rels (oid[]) AS SELECT c.oid, c.relnamespace, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, "
    "CASE WHEN c.relfilenode <> 0 THEN c.relfilenode ELSE pg_relation_filenode(c.oid) END, c.reltablespace, "
    "c.reltoastrelid, "
    "CASE WHEN c.relkind <> 't' THEN 0::oid WHEN c.oid >= 16384 THEN (SELECT d.refobjid FROM pg_depend d "
    "WHERE d.classid = 1259 AND d.objid = c.oid AND d.objsubid = 0 AND d.refclassid = 1259 AND d.deptype = 'i') "
    "ELSE (SELECT o.oid FROM pg_class o WHERE o.oid < 16384 AND o.reltoastrelid = c.oid) END, "
    "CASE WHEN c.relispartition AND c.relkind <> 'i' THEN (SELECT h.inhparent FROM pg_inherits h WHERE h.inhrelid = c.oid "
    "AND NOT h.inhdetachpending) END, "
    "CASE WHEN c.relispartition AND c.relkind <> 'i' THEN nullif(pg_partition_root(c.oid), c.oid) END, c.reltype, "
    "CASE WHEN c.relkind = 'i' THEN 0 ELSE c.relnatts END, "
    "(SELECT i.indnkeyatts || ' ' || i.indkey::text FROM pg_index i WHERE i.indrelid = c.oid AND i.indislive "
    "AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND "
    "CASE c.relreplident WHEN 'd' THEN i.indisprimary AND (i.indisvalid OR c.relkind = 'p') "
    "WHEN 'i' THEN i.indisreplident AND i.indisvalid ELSE false END LIMIT 1), "
    "(SELECT i.indnkeyatts || ' ' || i.indkey::text FROM pg_index i WHERE i.indrelid = c.oid AND i.indislive "
    "AND i.indisprimary AND i.indimmediate AND (i.indisvalid OR c.relkind = 'p') LIMIT 1) "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE " CATQ_KEPT " AND c.oid = ANY ($1) ORDER BY c.oid";

enum {
	A_RELID, A_NUM, A_NAME, A_TYPID, A_TYPMOD, A_LEN, A_ALIGN, A_STORAGE, A_BYVAL, A_DROPPED, A_NOTNULL,
	A_GENERATED, A_MISSING, A_TYPNAME
};

/* From 18 attnotnull is set by constraints that are not validated yet, too (catalog/pg_attribute.h):
 * rows may still hold NULL there. */
static const char att_sql[] =
    "PREPARE ws_atts (oid[]) AS SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attlen, a.attalign, a.attstorage, "
    "a.attbyval, a.attisdropped, a.attnotnull%s, a.attgenerated, "
    "CASE WHEN a.atthasmissing THEN a.attmissingval::text END, "
    "CASE WHEN a.attisdropped THEN '' ELSE format_type(a.atttypid, a.atttypmod) END "
    "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE a.attnum > 0 AND c.relkind <> 'i' AND " CATQ_KEPT
    " AND a.attrelid = ANY ($1) ORDER BY a.attrelid, a.attnum";
static const char not_validated[] =
    " AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'n' "
    "AND NOT k.convalidated AND k.conkey[1] = a.attnum)";

int
ws_catquery_unarray(char *s)
{
	size_t n = strlen(s), o = 0;

	if (n < 2 || s[0] != '{' || s[n - 1] != '}')
		return -1;
	if (s[1] != '"') {
		memmove(s, s + 1, n - 2);
		s[n - 2] = 0;
		/* Nothing, or a bare NULL, is no element. */
		return n == 2 || !strcmp(s, "NULL") ? -1 : 0;
	}
	if (n < 4 || s[n - 2] != '"')
		return -1;
	for (size_t i = 2; i < n - 2; i++) {
		if (s[i] == '"')
			return -1;
		if (s[i] == '\\' && ++i == n - 2)
			return -1;
		s[o++] = s[i];
	}
	s[o] = 0;
	return 0;
}

/* "2 3 1 7" -> {3, 1}: count, then more numbers than that. */
static int
parse_key(const char *s, int16_t *out, int max)
{
	char *end;
	long n = strtol(s, &end, 10);

	for (long i = 0; i < n; i++) {
		long v = strtol(end, &end, 10);

		if (i >= max || v < 1)
			return -1;
		out[i] = (int16_t)v;
	}
	return (int)n;
}

static int
fill_attr(const PGresult *res, int row, int index, struct ws_attr *a, struct ws_err *err)
{
	*a = (struct ws_attr){
	    .name = PQgetvalue(res, row, A_NAME),
	    .typid = catq_oid(res, row, A_TYPID),
	    .typmod = catq_int(res, row, A_TYPMOD),
	    .attnum = (int16_t)catq_int(res, row, A_NUM),
	    .len = (int16_t)catq_int(res, row, A_LEN),
	    .align = catq_char(res, row, A_ALIGN),
	    .storage = catq_char(res, row, A_STORAGE),
	    .typname = PQgetvalue(res, row, A_TYPNAME),
	};
	if (a->attnum != index + 1)
		return ws_err_temp(err, "relation %u: attribute %d instead of %d", catq_oid(res, row, A_RELID),
		                   a->attnum, index + 1);
	char generated = catq_char(res, row, A_GENERATED);

	a->flags = (uint8_t)((catq_bool(res, row, A_DROPPED) ? WS_ATT_DROPPED : 0) |
	                     (catq_bool(res, row, A_NOTNULL) ? WS_ATT_NOTNULL : 0) |
	                     (catq_bool(res, row, A_BYVAL) ? WS_ATT_BYVAL : 0) |
	                     (generated == 's' ? WS_ATT_STORED : 0) | (generated == 'v' ? WS_ATT_VIRTUAL : 0));
	if (!PQgetisnull(res, row, A_MISSING)) {
		a->missing = PQgetvalue(res, row, A_MISSING);
		a->flags |= WS_ATT_MISSING;
		if (ws_catquery_unarray(a->missing) != 0)
			return ws_err_temp(err, "relation %u attribute %d: malformed missing value",
			                   catq_oid(res, row, A_RELID), a->attnum);
	}
	return 0;
}

/* Flags the columns of a key; -1 when a number is no column. */
static int
flag_key(struct ws_rel *r, const int16_t *key, int n, uint8_t flag)
{
	for (int i = 0; i < n; i++) {
		if (key[i] > r->natts)
			return -1;
		r->attrs[key[i] - 1].flags |= flag;
	}
	return 0;
}

static int
fill_keys(const PGresult *res, int row, struct ws_rel *r, struct ws_err *err)
{
	r->nident = r->npkey = 0;
	if (!PQgetisnull(res, row, R_IDENT))
		r->nident = parse_key(PQgetvalue(res, row, R_IDENT), r->ident, r->natts);
	if (!PQgetisnull(res, row, R_PKEY))
		r->npkey = parse_key(PQgetvalue(res, row, R_PKEY), r->pkey, r->natts);
	if (r->nident < 0 || r->npkey < 0 || flag_key(r, r->ident, r->nident, WS_ATT_IDENTITY) != 0 ||
	    flag_key(r, r->pkey, r->npkey, WS_ATT_PKEY) != 0)
		return ws_err_temp(err, "relation %u: malformed key columns", r->oid);
	return 0;
}

/* One relation: row of rels, its attributes from *at on in atts. */
static int
fill_rel(const PGresult *rels, int row, const PGresult *atts, int *at, struct ws_arena *arena, struct ws_rel *r,
         struct ws_err *err)
{
	*r = (struct ws_rel){
	    .oid = catq_oid(rels, row, R_OID),
	    .ns = catq_oid(rels, row, R_NS),
	    .nspname = PQgetvalue(rels, row, R_NSPNAME),
	    .name = PQgetvalue(rels, row, R_NAME),
	    .kind = catq_char(rels, row, R_KIND),
	    .persistence = catq_char(rels, row, R_PERSISTENCE),
	    .replident = catq_char(rels, row, R_REPLIDENT),
	    .filenode = catq_oid(rels, row, R_FILENODE),
	    .spc = catq_oid(rels, row, R_SPC),
	    .toast = catq_oid(rels, row, R_TOAST),
	    .toast_of = catq_oid(rels, row, R_TOAST_OF),
	    .parent = catq_oid(rels, row, R_PARENT),
	    .root = catq_oid(rels, row, R_ROOT),
	    .reltype = catq_oid(rels, row, R_RELTYPE),
	    .natts = catq_int(rels, row, R_NATTS),
	};
	r->attrs = ws_arena_zalloc(arena, (size_t)r->natts * sizeof *r->attrs);
	r->ident = ws_arena_zalloc(arena, (size_t)r->natts * sizeof *r->ident);
	r->pkey = ws_arena_zalloc(arena, (size_t)r->natts * sizeof *r->pkey);
	int n = 0;

	for (; *at < PQntuples(atts) && catq_oid(atts, *at, A_RELID) == r->oid; ++*at, n++)
		if (n >= r->natts || fill_attr(atts, *at, n, &r->attrs[n], err) != 0)
			return n >= r->natts ? ws_err_temp(err, "relation %u: more attributes than relnatts", r->oid)
			                     : -1;
	if (n != r->natts)
		return ws_err_temp(err, "relation %u: %d attributes, relnatts is %d", r->oid, n, r->natts);
	return fill_keys(rels, row, r, err);
}

int
catq_prepare_rels(struct ws_pg *c, struct ws_err *err)
{
	char *atts = ws_asprintf(att_sql, ws_pg_version(c) >= 180000 ? not_validated : "");
	int rc = catq_command(c, rel_sql, "cannot prepare", err);

	if (rc == 0)
		rc = catq_command(c, atts, "cannot prepare", err);
	free(atts);
	return rc;
}

static int
read_batch(struct ws_pg *c, const ws_oid *v, size_t n, const struct ws_catquery_sink *sink,
           struct catq_oids *found, struct ws_err *err)
{
	struct ws_arena arena = {0};
	int rc = -1, at = 0;
	PGresult *atts = NULL;
	PGresult *rels = catq_execute(c, "ws_rels", v, n, "cannot read pg_class", err);

	if (!rels)
		return -1;
	if (PQntuples(rels) == 0) {
		rc = 0;
		goto out;
	}
	atts = catq_execute(c, "ws_atts", v, n, "cannot read pg_attribute", err);
	if (!atts)
		goto out;
	for (int i = 0; i < PQntuples(rels); i++) {
		struct ws_rel r;

		if (fill_rel(rels, i, atts, &at, &arena, &r, err) != 0 || sink->rel(sink->arg, &r, err) != 0)
			goto out;
		catq_add(found, r.oid);
		ws_arena_reset(&arena);
	}
	rc = at == PQntuples(atts) ? 0 : ws_err_temp(err, "attributes of an unknown relation");
out:
	PQclear(rels);
	PQclear(atts);
	ws_arena_free(&arena);
	return rc;
}

int
catq_read_rels(struct ws_pg *c, const struct catq_oids *want, const struct ws_catquery_sink *sink,
               struct catq_oids *found, struct ws_err *err)
{
	for (size_t i = 0; i < want->n; i += CATQ_BATCH) {
		size_t n = want->n - i < CATQ_BATCH ? want->n - i : CATQ_BATCH;

		if (read_batch(c, want->v + i, n, sink, found, err) != 0)
			return -1;
	}
	return 0;
}
