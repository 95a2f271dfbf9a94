/* Boundaries that need no capture, since temporary relations alone were touched; see capture.h. */
#include "capture.h"
#include "ws/temprel.h"

/* Where the WAL shows rows of pg_class and pg_type, as of the last capture. */
int
cap_temp_files(struct cap *c, struct ws_temprels *t, const struct cap_db *db, struct ws_err *err)
{
	const ws_oid oids[2] = {WS_OID_PG_CLASS, WS_OID_PG_TYPE};
	ws_oid files[2] = {0};

	for (int i = 0; i < 2; i++) {
		struct ws_rel *r;
		int rc = ws_cathist_rel(c->hist, db->oid, oids[i], UINT64_MAX, &r, err);

		if (rc < 0)
			return -1;
		if (rc > 0) {
			files[i] = r->filenode;
			ws_rel_free(r);
		}
	}
	ws_temprels_files(t, db->oid, files[0], files[1]);
	return 0;
}

struct ws_temprels *
cap_temp_new(struct cap *c, struct ws_err *err)
{
	struct ws_temprels *t = ws_temprels_new();

	for (size_t i = 0; i < c->ndbs; i++)
		if (c->dbs[i].has && cap_temp_files(c, t, &c->dbs[i], err) != 0) {
			ws_temprels_free(t);
			return NULL;
		}
	return t;
}

/* Does the history have one of the objects?  The row type of a temporary relation that a column of
 * another has: what is done to it can change that relation's shape. */
static int
in_history(struct cap *c, ws_oid db, const struct ws_boundary_ids *ids, struct ws_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < ids->ntypes && rc == 0; i++) {
		struct ws_type *type = NULL;

		rc = ws_cathist_type(c->hist, db, ids->types[i], UINT64_MAX, &type, err);
		ws_type_free(type);
	}
	for (size_t i = 0; i < ids->nrels && rc == 0; i++) {
		struct ws_rel *r = NULL;

		rc = ws_cathist_rel(c->hist, db, ids->rels[i], UINT64_MAX, &r, err);
		ws_rel_free(r);
	}
	return rc;
}

int
cap_temporary(struct cap *c, struct ws_temprels *t, const struct ws_boundary *b,
              const struct ws_boundary_ids *ids, struct ws_err *err)
{
	bool joining = false;

	for (size_t i = 0; i < c->ndbs; i++)
		joining |= !c->dbs[i].has;
	if (!ws_temprels_only(t, b->db, b, ids) || joining)
		return 0;
	int rc = in_history(c, b->db, ids, err);

	return rc < 0 ? -1 : rc == 0;
}

int
cap_pass(struct cap *c, struct ws_pos at, struct ws_err *err)
{
	for (size_t i = 0; i < c->ndbs; i++) {
		struct cap_db *db = &c->dbs[i];

		if (!db->has || db->captured.lsn >= at.lsn)
			continue;
		if (ws_cathist_begin(c->hist, db->oid, at, err) != 0 || ws_cathist_commit(c->hist, err) != 0 ||
		    cap_move(c, db, at, false, err) != 0)
			return -1;
	}
	return 0;
}
