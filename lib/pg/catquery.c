/* Shapes by SQL: the session, what a commit's messages ask for, one snapshot; see ws/catquery.h.
 * The rows themselves are read in catqrel.c and catqtype.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catq.h"
#include "ws/lsn.h"

void
catq_add(struct catq_oids *o, ws_oid oid)
{
	if ((o->n & (o->n - 1)) == 0)
		o->v = ws_realloc(o->v, (o->n ? o->n * 2 : 1) * sizeof *o->v);
	o->v[o->n++] = oid;
}

void
catq_free(struct catq_oids *o)
{
	free(o->v);
	*o = (struct catq_oids){0};
}

static int
by_oid(const void *a, const void *b)
{
	ws_oid x = *(const ws_oid *)a, y = *(const ws_oid *)b;

	return x < y ? -1 : x > y;
}

void
catq_sort(struct catq_oids *o)
{
	if (o->n)
		qsort(o->v, o->n, sizeof *o->v, by_oid);
}

bool
catq_has(const struct catq_oids *o, ws_oid oid)
{
	return o->n && bsearch(&oid, o->v, o->n, sizeof *o->v, by_oid);
}

void
catq_array(struct ws_buf *sql, const ws_oid *v, size_t n)
{
	ws_buf_puts(sql, "'{");
	for (size_t i = 0; i < n; i++)
		ws_buf_printf(sql, i ? ",%u" : "%u", v[i]);
	ws_buf_puts(sql, "}'::pg_catalog.oid[]");
}

ws_oid
catq_oid(const PGresult *res, int row, int col)
{
	return (ws_oid)strtoul(PQgetvalue(res, row, col), NULL, 10);
}

int
catq_int(const PGresult *res, int row, int col)
{
	return (int)strtol(PQgetvalue(res, row, col), NULL, 10);
}

char
catq_char(const PGresult *res, int row, int col)
{
	return PQgetvalue(res, row, col)[0];
}

bool
catq_bool(const PGresult *res, int row, int col)
{
	return PQgetvalue(res, row, col)[0] == 't';
}

char *
catq_conninfo(const char *conninfo, const char *dbname, struct ws_err *err)
{
	struct ws_buf b = {0};
	PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);

	/* Anything else is the name of a database, as for psql -d. */
	if (!opts && (strchr(conninfo, '=') || strstr(conninfo, "://"))) {
		ws_err_usage(err, "malformed connection string");
		return NULL;
	}
	for (PQconninfoOption *o = opts; o && o->keyword; o++)
		if (o->val && strcmp(o->keyword, "dbname"))
			pg_put_parameter(&b, o->keyword, o->val);
	PQconninfoFree(opts);
	pg_put_parameter(&b, "dbname", dbname);
	return ws_buf_cstr(&b);
}

int
catq_fetch_oids(struct ws_pg *c, const char *sql, const char *what, struct catq_oids *out, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(c, sql, what, err);

	if (!res)
		return -1;
	for (int i = 0; i < PQntuples(res); i++)
		catq_add(out, catq_oid(res, i, 0));
	PQclear(res);
	return 0;
}

int
catq_command(struct ws_pg *c, const char *sql, const char *what, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(c, sql, what, err);

	PQclear(res);
	return res ? 0 : -1;
}

PGresult *
catq_execute(struct ws_pg *c, const char *statement, const ws_oid *v, size_t n, const char *what,
             struct ws_err *err)
{
	struct ws_buf sql = {0};

	ws_buf_printf(&sql, "EXECUTE %s (", statement);
	catq_array(&sql, v, n);
	ws_buf_puts(&sql, ")");
	PGresult *res = ws_pg_exec(c, ws_buf_cstr(&sql), what, err);

	ws_buf_free(&sql);
	return res;
}

/* Types named by messages ($1), by their labels ($2), by their schema ($3). */
static const char touched_types_sql[] =
    "PREPARE ws_touched_types (oid[], oid[], oid[]) AS SELECT unnest($1) "
    "UNION SELECT enumtypid FROM pg_enum WHERE oid = ANY ($2) "
    "UNION SELECT oid FROM pg_type WHERE cardinality($3) > 0 AND typnamespace = ANY ($3) ORDER BY 1";

/* Relations named by messages ($1), the tables of named indexes, what lies in a renamed schema ($3),
 * and the users of touched types ($2) and of their arrays: a column's type name is part of the shape.
 * 1259 and 1247 are pg_class and pg_type. */
static const char touched_rels_sql[] =
    "PREPARE ws_touched_rels (oid[], oid[], oid[]) AS SELECT unnest($1) "
    "UNION SELECT indrelid FROM pg_index WHERE indexrelid = ANY ($1) "
    "UNION SELECT oid FROM pg_class WHERE cardinality($3) > 0 AND relnamespace = ANY ($3) "
    "UNION SELECT d.objid FROM pg_type t, LATERAL (VALUES (t.oid), (t.typarray)) x (o), pg_depend d "
    "WHERE t.oid = ANY ($2) AND d.refclassid = 1247 AND d.refobjid = x.o AND d.classid = 1259 AND d.objsubid > 0 "
    "ORDER BY 1";

int
ws_catquery_setup(struct ws_pg *c, struct ws_err *err)
{
	static const char sql[] =
		"SET search_path = pg_catalog; SET timezone = 'UTC'; SET datestyle = 'ISO'; "
		"SET intervalstyle = 'postgres'; SET lc_monetary = 'C'; SET bytea_output = 'hex'; SET "
		"extra_float_digits = 1; "
		"SET jit = off; SET plan_cache_mode = 'force_generic_plan'; SET "
		"max_parallel_workers_per_gather = 0; SET statement_timeout = '55s'; "
		"SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '60s'; "
		"SELECT set_config('client_encoding', getdatabaseencoding(), false)";

	if (ws_pg_version(c) < 150000)
		return ws_err_usage(err, "PostgreSQL %d is not supported", ws_pg_version(c) / 10000);
	if (catq_command(c, sql, "cannot prepare the session", err) != 0 ||
	    catq_command(c, touched_types_sql, "cannot prepare", err) != 0 ||
	    catq_command(c, touched_rels_sql, "cannot prepare", err) != 0)
		return -1;
	return catq_prepare_rels(c, err) != 0 ? -1 : catq_prepare_types(c, err);
}

/* Runs before, then asks for the replay position, in one message. */
static int
replay_after(struct ws_pg *c, const char *before, ws_lsn *lsn, struct ws_err *err)
{
	char *sql = ws_asprintf("%sSELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn()", before);
	PGresult *res = ws_pg_exec(c, sql, "cannot read the replay position", err);
	int rc = 0;

	free(sql);
	*lsn = 0;
	if (!res)
		return -1;
	if (!catq_bool(res, 0, 0))
		rc = ws_err_op(err, "not_a_standby", "the server is no standby: it does not replay WAL");
	else if (!PQgetisnull(res, 0, 1) && ws_lsn_parse(PQgetvalue(res, 0, 1), lsn) != 0)
		rc = ws_err_temp(err, "malformed replay position %s", PQgetvalue(res, 0, 1));
	PQclear(res);
	return rc;
}

int
ws_catquery_replay(struct ws_pg *c, ws_lsn *lsn, struct ws_err *err)
{
	return replay_after(c, "", lsn, err);
}

/* BEGIN or COMMIT, at the exact position. */
static int
snapshot_edge(struct ws_pg *c, const char *sql, ws_lsn at, struct ws_err *err)
{
	ws_lsn replay;

	if (!at)
		return catq_command(c, sql, sql, err);
	if (replay_after(c, sql, &replay, err) != 0)
		return -1;
	if (replay != at)
		return ws_err_temp(err, "replay stands at " WS_LSN_FMT ", not at " WS_LSN_FMT, WS_LSN_ARG(replay),
		                   WS_LSN_ARG(at));
	return 0;
}

static int
all_rels(struct ws_pg *c, struct catq_oids *out, struct ws_err *err)
{
	return catq_fetch_oids(c, "SELECT c.oid FROM pg_class c WHERE " CATQ_KEPT " ORDER BY c.oid",
	                       "cannot list relations", out, err);
}

static int
all_types(struct ws_pg *c, struct catq_oids *out, struct ws_err *err)
{
	return catq_fetch_oids(c, "SELECT oid FROM pg_type ORDER BY oid", "cannot list types", out, err);
}

static int
touched(struct ws_pg *c, const char *statement, const struct catq_oids *a, const struct catq_oids *b,
        const struct catq_oids *d, const char *what, struct catq_oids *out, struct ws_err *err)
{
	struct ws_buf sql = {0};

	ws_buf_printf(&sql, "EXECUTE %s (", statement);
	catq_array(&sql, a->v, a->n);
	ws_buf_puts(&sql, ",");
	catq_array(&sql, b->v, b->n);
	ws_buf_puts(&sql, ",");
	catq_array(&sql, d->v, d->n);
	ws_buf_puts(&sql, ")");
	int rc = catq_fetch_oids(c, ws_buf_cstr(&sql), what, out, err);

	ws_buf_free(&sql);
	return rc;
}

static int
touched_types(struct ws_pg *c, const struct ws_boundary_ids *ids, struct catq_oids *out, struct ws_err *err)
{
	const struct catq_oids types = {ids->types, ids->ntypes}, labels = {ids->labels, ids->nlabels},
	                       spaces = {ids->namespaces, ids->nnamespaces};

	if (!types.n && !labels.n && !spaces.n)
		return 0;
	return touched(c, "ws_touched_types", &types, &labels, &spaces, "cannot list types", out, err);
}

static int
touched_rels(struct ws_pg *c, const struct ws_boundary_ids *ids, const struct catq_oids *types,
             struct catq_oids *out, struct ws_err *err)
{
	const struct catq_oids rels = {ids->rels, ids->nrels}, spaces = {ids->namespaces, ids->nnamespaces};

	if (!rels.n && !types->n && !spaces.n)
		return 0;
	return touched(c, "ws_touched_rels", &rels, types, &spaces, "cannot list relations", out, err);
}

static int
report_gone(const struct catq_oids *want, const struct catq_oids *found,
            int (*gone)(void *arg, ws_oid oid, struct ws_err *err), void *arg, struct ws_err *err)
{
	for (size_t i = 0; i < want->n; i++)
		if (!catq_has(found, want->v[i]) && gone(arg, want->v[i], err) != 0)
			return -1;
	return 0;
}

/* A commit does not name the types that a new relation uses, which are older, and known but for row types
 * of temporary tables. */
static int
missing_types(struct ws_pg *c, const struct ws_catquery_sink *sink, struct ws_err *err)
{
	struct catq_oids found = {0};
	const ws_oid *oids;
	size_t n;
	int rc = 0;

	while (rc == 0 && sink->types_missing && (rc = sink->types_missing(sink->arg, &oids, &n, err)) == 0 && n) {
		const struct catq_oids want = {(ws_oid *)(uintptr_t)oids, n};

		rc = catq_read_types(c, &want, sink, &found, err);
	}
	catq_free(&found);
	return rc;
}

static int
read_snapshot(struct ws_pg *c, const struct ws_catquery_want *w, const struct ws_catquery_sink *sink,
              struct ws_err *err)
{
	struct catq_oids rels = {0}, types = {0}, found_rels = {0}, found_types = {0};
	const struct ws_boundary *b = w->boundary;
	const struct ws_boundary_ids *ids = w->ids;
	/* A flag whose objects are not known by oid asks for all of them. */
	bool every_type = w->everything || (b->types && !ids->ntypes && !ids->nlabels);
	bool every_rel = w->everything || b->all_rels || (b->namespaces && !ids->nnamespaces);
	int rc;

	every_type |= !w->everything && b->namespaces && !ids->nnamespaces;
	rc = every_type ? all_types(c, &types, err) : touched_types(c, ids, &types, err);
	if (rc == 0)
		rc = every_rel ? all_rels(c, &rels, err) : touched_rels(c, ids, &types, &rels, err);
	if (rc == 0)
		rc = catq_read_types(c, &types, sink, &found_types, err);
	if (rc == 0)
		rc = catq_read_rels(c, &rels, sink, &found_rels, err);
	if (rc == 0)
		rc = missing_types(c, sink, err);
	if (rc == 0)
		rc = report_gone(&types, &found_types, sink->type_gone, sink->arg, err);
	if (rc == 0)
		rc = report_gone(&rels, &found_rels, sink->rel_gone, sink->arg, err);
	if (rc == 0 && every_type && sink->types_all)
		rc = sink->types_all(sink->arg, err);
	if (rc == 0 && every_rel && sink->rels_all)
		rc = sink->rels_all(sink->arg, err);
	catq_free(&rels);
	catq_free(&types);
	catq_free(&found_rels);
	catq_free(&found_types);
	return rc;
}

int
ws_catquery_read(struct ws_pg *c, const struct ws_catquery_want *want, ws_lsn at,
                 const struct ws_catquery_sink *sink, struct ws_err *err)
{
	int rc = snapshot_edge(c, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;", at, err);

	if (rc == 0)
		rc = read_snapshot(c, want, sink, err);
	/* Some of the functions used look beyond the snapshot: nothing may have moved meanwhile. */
	if (rc == 0)
		rc = snapshot_edge(c, "COMMIT;", at, err);
	if (rc != 0)
		catq_command(c, "ROLLBACK", "cannot roll back", NULL);
	return rc;
}
