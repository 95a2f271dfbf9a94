/* Types by SQL: pg_type with its output function, ranges and enum labels; see catq.h. */
#include <stdlib.h>
#include <string.h>

#include "catq.h"

enum {
	T_OID, T_NSPNAME, T_NAME, T_TYPE, T_CATEGORY, T_LEN, T_BYVAL, T_ALIGN, T_STORAGE, T_DELIM, T_ELEM,
	T_BASE, T_TYPMOD, T_RELID, T_SUBTYPE, T_OUT_LIB, T_OUT_SYM
};

/* Temporary relations are not kept, nor are their row types and the arrays of these, unless a column of
 * another relation has it or its array.
 * A true array subscripts by array_subscript_handler; typelem alone also marks name, point and the
 * like (catalog/pg_type.h: IsTrueArrayType). */
static const char type_sql[] =
    "PREPARE ws_types (oid[]) AS SELECT t.oid, n.nspname, t.typname, t.typtype, t.typcategory, t.typlen, t.typbyval, t.typalign, "
    "t.typstorage, t.typdelim, "
    "CASE WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc THEN t.typelem ELSE 0::oid END, "
    "t.typbasetype, t.typtypmod, t.typrelid, "
    "CASE t.typtype WHEN 'r' THEN (SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid) "
    "WHEN 'm' THEN (SELECT r.rngtypid FROM pg_range r WHERE r.rngmultitypid = t.oid) END, "
    "p.probin, p.prosrc "
    "FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN pg_proc p ON p.oid = t.typoutput "
    "WHERE t.oid = ANY ($1) AND NOT EXISTS (SELECT FROM pg_class c WHERE c.relpersistence = 't' AND c.oid = "
    "CASE WHEN t.typrelid <> 0 THEN t.typrelid WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc "
    "THEN (SELECT e.typrelid FROM pg_type e WHERE e.oid = t.typelem) END "
    "AND NOT EXISTS (SELECT FROM pg_depend d JOIN pg_class u ON u.oid = d.objid WHERE d.refclassid = 1247 "
    "AND d.refobjid IN (t.oid, t.typarray) AND d.classid = 1259 AND u.relpersistence <> 't')) ORDER BY t.oid";

static const char label_sql[] =
    "PREPARE ws_labels (oid[]) AS SELECT enumtypid, oid, enumlabel FROM pg_enum WHERE enumtypid = ANY ($1) "
    "ORDER BY enumtypid, enumsortorder";

int
catq_prepare_types(struct ws_pg *c, struct ws_err *err)
{
	return catq_command(c, type_sql, "cannot prepare", err) != 0 ? -1
	                                                             : catq_command(c, label_sql, "cannot prepare", err);
}

static void
fill_type(const PGresult *res, int row, struct ws_type *t)
{
	*t = (struct ws_type){
	    .oid = catq_oid(res, row, T_OID),
	    .nspname = PQgetvalue(res, row, T_NSPNAME),
	    .name = PQgetvalue(res, row, T_NAME),
	    .typtype = catq_char(res, row, T_TYPE),
	    .category = catq_char(res, row, T_CATEGORY),
	    .len = (int16_t)catq_int(res, row, T_LEN),
	    .byval = catq_bool(res, row, T_BYVAL),
	    .align = catq_char(res, row, T_ALIGN),
	    .storage = catq_char(res, row, T_STORAGE),
	    .delim = catq_char(res, row, T_DELIM),
	    .elem = catq_oid(res, row, T_ELEM),
	    .base = catq_oid(res, row, T_BASE),
	    .base_typmod = catq_int(res, row, T_TYPMOD),
	    .relid = catq_oid(res, row, T_RELID),
	    .subtype = catq_oid(res, row, T_SUBTYPE),
	    .out_lib = PQgetvalue(res, row, T_OUT_LIB),
	    .out_sym = PQgetvalue(res, row, T_OUT_SYM),
	};
}

static bool
any_enum(const PGresult *types)
{
	for (int i = 0; i < PQntuples(types); i++)
		if (catq_char(types, i, T_TYPE) == 'e')
			return true;
	return false;
}

static int
read_batch(struct ws_pg *c, const ws_oid *v, size_t n, const struct ws_catquery_sink *sink,
           struct catq_oids *found, struct ws_err *err)
{
	struct ws_arena arena = {0};
	int rc = -1, at = 0, nlabels;
	PGresult *labels = NULL;
	PGresult *types = catq_execute(c, "ws_types", v, n, "cannot read pg_type", err);

	if (!types)
		return -1;
	if (any_enum(types) && !(labels = catq_execute(c, "ws_labels", v, n, "cannot read pg_enum", err)))
		goto out;
	nlabels = labels ? PQntuples(labels) : 0;
	for (int i = 0; i < PQntuples(types); i++) {
		struct ws_type t;
		int from = at;

		fill_type(types, i, &t);
		while (at < nlabels && catq_oid(labels, at, 0) == t.oid)
			at++;
		t.nlabels = at - from;
		t.labels = ws_arena_alloc(&arena, (size_t)t.nlabels * sizeof *t.labels);
		for (int k = 0; k < t.nlabels; k++) {
			t.labels[k].oid = catq_oid(labels, from + k, 1);
			t.labels[k].label = PQgetvalue(labels, from + k, 2);
		}
		if (sink->type(sink->arg, &t, err) != 0)
			goto out;
		catq_add(found, t.oid);
		ws_arena_reset(&arena);
	}
	rc = at == nlabels ? 0 : ws_err_temp(err, "labels of an unknown enum");
out:
	PQclear(types);
	PQclear(labels);
	ws_arena_free(&arena);
	return rc;
}

int
catq_read_types(struct ws_pg *c, const struct catq_oids *want, const struct ws_catquery_sink *sink,
                struct catq_oids *found, struct ws_err *err)
{
	for (size_t i = 0; i < want->n; i += CATQ_BATCH) {
		size_t n = want->n - i < CATQ_BATCH ? want->n - i : CATQ_BATCH;

		if (read_batch(c, want->v + i, n, sink, found, err) != 0)
			return -1;
	}
	return 0;
}
