/* Shapes by SQL: the session, what a commit's messages ask for, one snapshot; see ws/catquery.h.
 * The rows themselves are read in catqrel.c and catqtype.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catq.h"
#include "ws/lsn.h"

/* Oids of catalogs (catalog/pg_class.dat, pg_type.dat: their own rows in pg_class). */
#define PG_TYPE_OID  1247u
#define PG_CLASS_OID 1259u

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

/* A value of a connection string, quoted. */
static void
put_quoted(struct ws_buf *b, const char *key, const char *value)
{
	ws_buf_printf(b, "%s='", key);
	for (const char *p = value; *p; p++) {
		if (*p == '\'' || *p == '\\')
			ws_buf_putc(b, '\\');
		ws_buf_putc(b, (uint8_t)*p);
	}
	ws_buf_puts(b, "' ");
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
			put_quoted(&b, o->keyword, o->val);
	PQconninfoFree(opts);
	put_quoted(&b, "dbname", dbname);
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

static int
command(struct ws_pg *c, const char *sql, const char *what, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(c, sql, what, err);

	PQclear(res);
	return res ? 0 : -1;
}

int
ws_catquery_setup(struct ws_pg *c, struct ws_err *err)
{
	static const char sql[] =
	    "SET search_path = pg_catalog; SET timezone = 'UTC'; SET datestyle = 'ISO'; "
	    "SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 1; "
	    "SET jit = off; SET max_parallel_workers_per_gather = 0; SET statement_timeout = '55s'; "
	    "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '60s'; "
	    "SELECT set_config('client_encoding', getdatabaseencoding(), false)";

	if (command(c, sql, "cannot prepare the session", err) != 0)
		return -1;
	if (ws_pg_version(c) < 150000)
		return ws_err_usage(err, "PostgreSQL %d is not supported", ws_pg_version(c) / 10000);
	return 0;
}

int
ws_catquery_replay(struct ws_pg *c, ws_lsn *lsn, struct ws_err *err)
{
	PGresult *res = ws_pg_exec(c,
	                           "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn()",
	                           "cannot read the replay position", err);
	int rc = 0;

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

static int
check_replay(struct ws_pg *c, ws_lsn at, const char *when, struct ws_err *err)
{
	ws_lsn replay;

	if (!at)
		return 0;
	if (ws_catquery_replay(c, &replay, err) != 0)
		return -1;
	if (replay != at)
		return ws_err_temp(err, "replay stands at " WS_LSN_FMT " %s, not at " WS_LSN_FMT, WS_LSN_ARG(replay),
		                   when, WS_LSN_ARG(at));
	return 0;
}

/* Everything that has a place in the history.  Views and foreign tables have neither files nor
 * decoded rows; a temporary table is nobody's but its session's. */
static int
all_rels(struct ws_pg *c, struct catq_oids *out, struct ws_err *err)
{
	return catq_fetch_oids(c,
	                       "SELECT oid FROM pg_catalog.pg_class WHERE relkind IN ('r','i','S','t','m','p','c') "
	                       "AND relpersistence <> 't' ORDER BY oid",
	                       "cannot list relations", out, err);
}

static int
all_types(struct ws_pg *c, struct catq_oids *out, struct ws_err *err)
{
	return catq_fetch_oids(c, "SELECT oid FROM pg_catalog.pg_type ORDER BY oid", "cannot list types", out, err);
}

/* Types named by messages, directly, by an enum's label or by their schema's name. */
static int
touched_types(struct ws_pg *c, const struct ws_boundary_ids *ids, struct catq_oids *out, struct ws_err *err)
{
	struct ws_buf sql = {0};

	ws_buf_puts(&sql, "SELECT unnest(");
	catq_array(&sql, ids->types, ids->ntypes);
	ws_buf_puts(&sql, ")");
	if (ids->nlabels) {
		ws_buf_puts(&sql, " UNION SELECT enumtypid FROM pg_catalog.pg_enum WHERE oid = ANY (");
		catq_array(&sql, ids->labels, ids->nlabels);
		ws_buf_puts(&sql, ")");
	}
	if (ids->nnamespaces) {
		ws_buf_puts(&sql, " UNION SELECT oid FROM pg_catalog.pg_type WHERE typnamespace = ANY (");
		catq_array(&sql, ids->namespaces, ids->nnamespaces);
		ws_buf_puts(&sql, ")");
	}
	ws_buf_puts(&sql, " ORDER BY 1");
	int rc = catq_fetch_oids(c, ws_buf_cstr(&sql), "cannot list types", out, err);

	ws_buf_free(&sql);
	return rc;
}

/* Relations named by messages, the tables of named indexes, what lies in a renamed schema, and the
 * users of touched types and of their arrays (a column's type name is part of the shape). */
static int
touched_rels(struct ws_pg *c, const struct ws_boundary_ids *ids, const struct catq_oids *types,
             struct catq_oids *out, struct ws_err *err)
{
	struct ws_buf sql = {0};

	ws_buf_puts(&sql, "SELECT unnest(");
	catq_array(&sql, ids->rels, ids->nrels);
	ws_buf_puts(&sql, ") UNION SELECT indrelid FROM pg_catalog.pg_index WHERE indexrelid = ANY (");
	catq_array(&sql, ids->rels, ids->nrels);
	ws_buf_puts(&sql, ")");
	if (ids->nnamespaces) {
		ws_buf_puts(&sql, " UNION SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = ANY (");
		catq_array(&sql, ids->namespaces, ids->nnamespaces);
		ws_buf_puts(&sql, ")");
	}
	if (types->n) {
		ws_buf_printf(&sql,
		              " UNION SELECT objid FROM pg_catalog.pg_depend WHERE classid = %u AND objsubid > 0 "
		              "AND refclassid = %u AND refobjid IN (SELECT unnest(a) FROM (SELECT ARRAY[oid, typarray] "
		              "FROM pg_catalog.pg_type WHERE oid = ANY (",
		              PG_CLASS_OID, PG_TYPE_OID);
		catq_array(&sql, types->v, types->n);
		ws_buf_puts(&sql, ")) x(a))");
	}
	ws_buf_puts(&sql, " ORDER BY 1");
	int rc = catq_fetch_oids(c, ws_buf_cstr(&sql), "cannot list relations", out, err);

	ws_buf_free(&sql);
	return rc;
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
	int rc = command(c, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "cannot begin", err);

	if (rc != 0)
		return -1;
	rc = check_replay(c, at, "before the read", err);
	if (rc == 0)
		rc = read_snapshot(c, want, sink, err);
	/* Some of the functions used look beyond the snapshot: nothing may have moved. */
	if (rc == 0)
		rc = check_replay(c, at, "after the read", err);
	if (rc == 0)
		return command(c, "COMMIT", "cannot end the snapshot", err);
	command(c, "ROLLBACK", "cannot roll back", NULL);
	return -1;
}
