/* Private to lib/pg/catq*.c: sets of oids as SQL, rows as values. */
#ifndef WS_PG_CATQ_H
#define WS_PG_CATQ_H

#include "conn.h"
#include "ws/catquery.h"

struct catq_oids {
	ws_oid *v;
	size_t n;
};

#define CATQ_BATCH 1000 /* relations or types whose rows are fetched by one query */

void catq_add(struct catq_oids *o, ws_oid oid);
void catq_free(struct catq_oids *o);
void catq_sort(struct catq_oids *o);
bool catq_has(const struct catq_oids *sorted, ws_oid oid);
/* `'{1,2}'::oid[]` */
void catq_array(struct ws_buf *sql, const ws_oid *v, size_t n);
/* A command without rows. */
int catq_command(struct ws_pg *c, const char *sql, const char *what, struct ws_err *err);
/* Statements are prepared once a session: planning costs more than running them. */
int catq_prepare_rels(struct ws_pg *c, struct ws_err *err);
int catq_prepare_types(struct ws_pg *c, struct ws_err *err);
/* EXECUTE statement (oids). */
PGresult *catq_execute(struct ws_pg *c, const char *statement, const ws_oid *v, size_t n, const char *what,
                       struct ws_err *err);

/* pg_class c: what has a place in the history.  Views and foreign tables have neither files nor decoded
 * rows, a temporary table is nobody's but its session's; indexes of catalogs change without a
 * boundary, and nothing needs them. */
#define CATQ_KEPT \
	"c.relkind IN ('r','i','S','t','m','p','c') AND c.relpersistence <> 't' AND (c.relkind <> 'i' OR c.oid >= 16384)"

/* Runs sql and adds its only column. */
int catq_fetch_oids(struct ws_pg *c, const char *sql, const char *what, struct catq_oids *out, struct ws_err *err);

/* conninfo with another database; malloc'd.  NULL: malformed. */
char *catq_conninfo(const char *conninfo, const char *dbname, struct ws_err *err);

ws_oid catq_oid(const PGresult *res, int row, int col);   /* NULL: 0 */
int catq_int(const PGresult *res, int row, int col);      /* NULL: 0 */
char catq_char(const PGresult *res, int row, int col);    /* NULL or empty: 0 */
bool catq_bool(const PGresult *res, int row, int col);

/* Relations (not temporary) by oid, sorted ascending; those not there are skipped.  found gets the oids. */
int catq_read_rels(struct ws_pg *c, const struct catq_oids *want, const struct ws_catquery_sink *sink,
                   struct catq_oids *found, struct ws_err *err);
int catq_read_types(struct ws_pg *c, const struct catq_oids *want, const struct ws_catquery_sink *sink,
                    struct catq_oids *found, struct ws_err *err);

#endif
