/* Fills a catalog history from the source itself, for tests without a shadow:
 *   catfill CATALOG CONNINFO WALDIR
 * The server must be at rest: everything it has flushed is read.  The first call captures
 * everything at the flush position; each further one looks for boundaries since the last, and
 * captures at the newest, which therefore should be the only one that changed a shape. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "ws/boundary.h"
#include "ws/catquery.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/waldir.h"
#include "ws/walread.h"

static struct ws_cathist *hist;
static ws_oid db;
static struct ws_pos flush;

static int
put_rel(void *arg, const struct ws_rel *r, struct ws_err *err)
{
	ws_oid **seen = arg;

	seen[0] = ws_realloc(seen[0], (++seen[0][0] + 1) * sizeof(ws_oid));
	seen[0][seen[0][0]] = r->oid;
	return ws_cathist_put_rel(hist, r, err);
}

static int
put_type(void *arg, const struct ws_type *t, struct ws_err *err)
{
	ws_oid **seen = arg;

	seen[1] = ws_realloc(seen[1], (++seen[1][0] + 1) * sizeof(ws_oid));
	seen[1][seen[1][0]] = t->oid;
	return ws_cathist_put_type(hist, t, err);
}

static bool
has(const ws_oid *list, ws_oid oid)
{
	for (ws_oid i = 1; i <= list[0]; i++)
		if (list[i] == oid)
			return true;
	return false;
}

static int
rels_all(void *arg, struct ws_err *err)
{
	ws_oid **seen = arg, *had;
	size_t n;
	int rc = ws_cathist_list(hist, db, UINT64_MAX, &had, &n, err);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!has(seen[0], had[i]))
			rc = ws_cathist_drop_rel(hist, had[i], err);
	free(had);
	return rc;
}

static int
types_all(void *arg, struct ws_err *err)
{
	ws_oid **seen = arg, *had;
	size_t n;
	int rc = ws_cathist_types(hist, db, UINT64_MAX, &had, &n, err);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!has(seen[1], had[i]))
			rc = ws_cathist_drop_type(hist, had[i], err);
	free(had);
	return rc;
}

static int
none(void *arg, ws_oid oid, struct ws_err *err)
{
	(void)arg;
	(void)oid;
	(void)err;
	return 0;
}

static int
capture(struct ws_pg *c, struct ws_pos at, struct ws_err *err)
{
	ws_oid *seen[2] = {ws_calloc(1, sizeof(ws_oid)), ws_calloc(1, sizeof(ws_oid))};
	const struct ws_catquery_want want = {.everything = true};
	const struct ws_catquery_sink sink = {put_rel, put_type, none, none, rels_all, types_all, NULL, seen};

	if (ws_cathist_begin(hist, db, at, err) != 0 ||
	    ws_catquery_read(c, &want, 0, &sink, err) != 0 || ws_cathist_commit(hist, err) != 0)
		return -1;
	printf("captured " WS_LSN_FMT " relations=%" PRIu32 "\n", WS_LSN_ARG(at.lsn), seen[0][0]);
	free(seen[0]);
	free(seen[1]);
	return 0;
}

/* The end of the newest boundary between from and the flush position; lsn 0: none. */
static int
boundary(const char *dir, struct ws_pos from, struct ws_pos *at, struct ws_err *err)
{
	const struct ws_walsrc_opts o = {0};
	struct ws_walsrc *s = ws_walsrc_open(dir, (struct ws_pos){0, from.lsn}, &o, err);
	struct ws_walreader *r = ws_walreader_new(s ? ws_walsrc_segsize(s) : 0, 0, 0);
	struct ws_walchunk c;
	bool first = true;
	int rc;

	*at = (struct ws_pos){0, 0};
	if (!s)
		return -1;
	while ((rc = ws_walsrc_next(s, &c, err)) == 1) {
		struct ws_rec rec;

		if (first)
			ws_walreader_seek(r, c.lsn, from.lsn);
		first = false;
		if ((rc = ws_walreader_feed(r, c.lsn, c.p, c.n, err)) != 0)
			break;
		while ((rc = ws_walreader_next(r, &rec, err)) == 1 && rec.end <= flush.lsn) {
			const struct ws_walver *v = ws_walreader_ver(r);
			struct ws_record d;
			struct ws_xactrec x;

			if (ws_record_parse(&rec, &d, err) != 0 || (rc = ws_xactrec_parse(&d, v, &x, err)) < 0)
				return -1;
			if (rc == 0)
				continue;
			struct ws_boundary b = ws_boundary_of(&x, v);

			if (ws_boundary_for(&b, db))
				*at = (struct ws_pos){rec.tli, rec.end};
		}
		if (rc != 0)
			break;
	}
	if (rc < 0 && ws_walreader_torn(r))
		rc = 0;
	ws_walreader_free(r);
	ws_walsrc_close(s);
	return rc < 0 ? -1 : 0;
}

static int
fill(const char *conninfo, const char *dir, struct ws_err *err)
{
	const struct ws_pg_opts o = {.mode = WS_PG_SQL, .conninfo = conninfo};
	struct ws_pg *c = ws_pg_open(&o, NULL, err);
	struct ws_pos first, last, at = {0, 0};
	PGresult *res;

	if (!c || ws_catquery_setup(c, err) != 0)
		return -1;
	res = ws_pg_exec(c,
	                 "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), "
	                 "pg_current_wal_flush_lsn(), timeline_id FROM pg_control_checkpoint()",
	                 "position", err);
	if (!res)
		return -1;
	db = (ws_oid)strtoul(PQgetvalue(res, 0, 0), NULL, 10);
	(void)ws_lsn_parse(PQgetvalue(res, 0, 1), &flush.lsn);
	flush.tli = (ws_tli)strtoul(PQgetvalue(res, 0, 2), NULL, 10);
	PQclear(res);
	int rc = ws_cathist_captured(hist, db, &first, &last, err);

	if (rc == 0)
		rc = capture(c, flush, err);
	else if (rc == 1) {
		rc = boundary(dir, last, &at, err);
		if (rc == 0 && at.lsn)
			rc = capture(c, at, err);
	}
	ws_pg_close(c);
	return rc;
}

int
main(int argc, char **argv)
{
	struct ws_err err;

	if (argc != 4) {
		fprintf(stderr, "usage: catfill CATALOG CONNINFO WALDIR\n");
		return 2;
	}
	ws_log_init("catfill", WS_LOG_INFO, false);
	if (!(hist = ws_cathist_open(argv[1], true, &err)) || fill(argv[2], argv[3], &err) != 0) {
		ws_log_err(&err);
		return 1;
	}
	ws_cathist_close(hist);
	return 0;
}
