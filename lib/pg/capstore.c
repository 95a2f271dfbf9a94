/* From the shadow into the history: one read, one durable transaction; see capture.h. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define RETRY_S 60 /* of failed reads while the shadow is parked, before an operator is asked */

struct store {
	struct ws_cathist *hist;
	ws_oid db;
	struct catq_oids rels, types; /* that were found; types: ascending when asked */
	struct catq_oids used, missing; /* types that what was found uses; of these, what was asked for last */
};

static void
use(struct store *s, ws_oid type)
{
	if (type >= WS_FIRST_NORMAL_OID)
		catq_add(&s->used, type);
}

static int
store_rel(void *arg, const struct ws_rel *r, struct ws_err *err)
{
	struct store *s = arg;

	catq_add(&s->rels, r->oid);
	for (int i = 0; i < r->natts; i++)
		if (!(r->attrs[i].flags & WS_ATT_DROPPED))
			use(s, r->attrs[i].typid);
	return ws_cathist_put_rel(s->hist, r, err);
}

static int
store_type(void *arg, const struct ws_type *t, struct ws_err *err)
{
	struct store *s = arg;

	catq_add(&s->types, t->oid);
	use(s, t->elem);
	use(s, t->base);
	use(s, t->subtype);
	return ws_cathist_put_type(s->hist, t, err);
}

static int
drop_rel(void *arg, ws_oid oid, struct ws_err *err)
{
	return ws_cathist_drop_rel(((struct store *)arg)->hist, oid, err);
}

static int
drop_type(void *arg, ws_oid oid, struct ws_err *err)
{
	return ws_cathist_drop_type(((struct store *)arg)->hist, oid, err);
}

/* What the history has, as committed before, and did not come. */
static int
drop_others(ws_oid *had, size_t n, const struct catq_oids *seen,
            int (*drop)(void *arg, ws_oid oid, struct ws_err *err), void *arg, struct ws_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		if (!catq_has(seen, had[i]))
			rc = drop(arg, had[i], err);
	free(had);
	return rc;
}

static int
all_rels(void *arg, struct ws_err *err)
{
	struct store *s = arg;
	ws_oid *had;
	size_t n;

	if (ws_cathist_list(s->hist, s->db, UINT64_MAX, &had, &n, err) != 0)
		return -1;
	return drop_others(had, n, &s->rels, drop_rel, s, err);
}

static int
all_types(void *arg, struct ws_err *err)
{
	struct store *s = arg;
	ws_oid *had;
	size_t n;

	if (ws_cathist_types(s->hist, s->db, UINT64_MAX, &had, &n, err) != 0)
		return -1;
	return drop_others(had, n, &s->types, drop_type, s, err);
}

static int
types_missing(void *arg, const ws_oid **oids, size_t *n, struct ws_err *err)
{
	struct store *s = arg;

	catq_sort(&s->types);
	catq_sort(&s->used);
	s->missing.n = 0;
	for (size_t i = 0; i < s->used.n; i++) {
		struct ws_type *t = NULL;

		if (catq_has(&s->types, s->used.v[i]) || (i && s->used.v[i] == s->used.v[i - 1]))
			continue;
		int rc = ws_cathist_type(s->hist, s->db, s->used.v[i], UINT64_MAX, &t, err);

		ws_type_free(t);
		if (rc < 0)
			return -1;
		if (rc == 0)
			catq_add(&s->missing, s->used.v[i]);
	}
	s->used.n = 0;
	*oids = s->missing.v;
	*n = s->missing.n;
	return 0;
}

static int
attempt(struct cap *c, struct cap_db *db, struct ws_pos at, const struct ws_catquery_want *want,
        struct ws_err *err)
{
	struct store s = {.hist = c->hist, .db = db->oid};
	const struct ws_catquery_sink sink = {store_rel, store_type, drop_rel, drop_type, all_rels, all_types, types_missing, &s};

	if (ws_cathist_begin(c->hist, db->oid, at, err) != 0)
		return -1;
	int rc = ws_catquery_read(db->conn, want, at.lsn, &sink, err);

	if (rc == 0)
		rc = ws_cathist_commit(c->hist, err);
	else
		ws_cathist_abort(c->hist);
	if (rc == 0)
		ws_debug("database %u at " WS_LSN_FMT ": relations=%zu types=%zu", db->oid, WS_LSN_ARG(at.lsn), s.rels.n,
		         s.types.n);
	catq_free(&s.rels);
	catq_free(&s.types);
	catq_free(&s.used);
	catq_free(&s.missing);
	return rc;
}

int
cap_capture(struct cap *c, struct cap_db *db, struct ws_pos at, const struct ws_catquery_want *want,
            struct ws_err *err)
{
	uint64_t failing = 0;

	for (unsigned tries = 0;; tries++) {
		if (cap_wait_parked(c, db, at.lsn, err) != 0)
			return -1;
		if (db->dropped)
			return 0;
		uint64_t start = ws_now_us();

		if (attempt(c, db, at, want, err) == 0) {
			*c->m_capture += (double)(ws_now_us() - start) / 1e6;
			++*c->m_captures;
			return 0;
		}
		if (err->status == WS_EOPERATOR || ws_tool_stopping())
			return -1;
		++*c->m_retries;
		if (!cap_usable(db)) {
			/* The shadow went away: waiting for it has a bound of its own. */
			cap_disconnect(db);
			failing = 0;
		} else if (!failing) {
			failing = start;
		} else if (start - failing > RETRY_S * 1000000ull) {
			struct ws_err e = *err;

			return ws_err_op(err, "capture_failed", "the parked shadow cannot be read: %.900s", e.msg);
		}
		ws_warn("reading the shadow again: %s", err->msg);
		cap_sleep_us(tries < 5 ? 5000 : 500000);
	}
}
