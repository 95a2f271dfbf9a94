/* The history's one writer: a transaction a boundary, pruning, rewinding; see ws/shape.h. */
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "ws/cursor.h"

int
hist_meta_put(struct ws_cathist *h, MDB_txn *txn, ws_oid db, const struct hist_meta *m, struct ws_err *err)
{
	struct hist_key key = hist_key_meta(db);
	struct ws_buf b = {0};

	ws_buf_put32(&b, m->first.tli);
	ws_buf_put64(&b, m->first.lsn);
	ws_buf_put32(&b, m->last.tli);
	ws_buf_put64(&b, m->last.lsn);
	ws_buf_put64(&b, m->pruned);
	MDB_val k = hist_val(&key), v = {b.len, b.data};
	int rc = mdb_put(txn, h->dbi, &k, &v, 0);

	ws_buf_free(&b);
	return rc ? hist_fail(h, rc, err, "cannot write") : 0;
}

static int
begin(struct ws_cathist *h, struct ws_err *err)
{
	int dead, rc;

	if (h->lock < 0)
		return ws_err_usage(err, "%s: opened for reading only", h->dir);
	/* Pages that a dead reader's snapshot still holds can be used again. */
	mdb_reader_check(h->env, &dead);
	rc = mdb_txn_begin(h->env, NULL, 0, &h->wtxn);
	return rc ? hist_fail(h, rc, err, "cannot begin to write") : 0;
}

int
ws_cathist_begin(struct ws_cathist *h, ws_oid db, struct ws_pos at, struct ws_err *err)
{
	if (begin(h, err) != 0)
		return -1;
	int rc = hist_meta_get(h, h->wtxn, db, &h->meta, err);

	if (rc == 1 && h->meta.last.lsn > at.lsn)
		rc = ws_err_op(err, "catalog_ahead",
		               "%s: database %u was captured at " WS_LSN_FMT " already, cannot write at " WS_LSN_FMT,
		               h->dir, db, WS_LSN_ARG(h->meta.last.lsn), WS_LSN_ARG(at.lsn));
	if (rc < 0) {
		ws_cathist_abort(h);
		return -1;
	}
	h->db = db;
	h->at = at;
	/* Repeating the first capture, after a crash before its position was written, is one too. */
	h->initial = rc == 0 || h->meta.first.lsn == at.lsn;
	if (rc == 0)
		h->meta.first = at;
	h->meta.last = at;
	return 0;
}

/* Stores an object's new content at h->at (n 0: dropped).  1 stored, 0 it was so already. */
static int
put(struct ws_cathist *h, char kind, ws_oid oid, const uint8_t *p, size_t n, struct ws_err *err)
{
	MDB_val v;
	int rc = hist_newest(h, h->wtxn, kind, h->db, oid, h->at.lsn, &v, err);

	if (rc < 0)
		return -1;
	/* Equal but for the LSN in front; dropped, or never there. */
	if (rc == 0 ? n == 0
	            : v.mv_size == n && (n < 8 || !memcmp((uint8_t *)v.mv_data + 8, p + 8, n - 8)))
		return 0;
	struct hist_key key = hist_key_object(kind, h->db, oid, h->at.lsn);
	MDB_val k = hist_val(&key);

	v = (MDB_val){n, (void *)p};
	rc = mdb_put(h->wtxn, h->dbi, &k, &v, 0);
	return rc ? hist_fail(h, rc, err, "cannot write") : 1;
}

static int
put_change(struct ws_cathist *h, ws_oid oid, struct ws_err *err)
{
	struct hist_key key = hist_key_change(h->db, h->at.lsn, oid);
	MDB_val k = hist_val(&key), v = {0, NULL};

	if (h->initial)
		return 0;
	int rc = mdb_put(h->wtxn, h->dbi, &k, &v, 0);

	return rc ? hist_fail(h, rc, err, "cannot write") : 0;
}

static int
put_filenode(struct ws_cathist *h, ws_oid filenode, ws_oid oid, struct ws_err *err)
{
	struct hist_key key = hist_key_object('F', h->db, filenode, h->at.lsn);
	uint8_t b[4];
	MDB_val k = hist_val(&key), v = {sizeof b, b};

	ws_store32(b, oid);
	int rc = mdb_put(h->wtxn, h->dbi, &k, &v, 0);

	return rc ? hist_fail(h, rc, err, "cannot write") : 0;
}

/* oid has left filenode: nobody's from now on, unless another relation took it (a swap puts both
 * relations in either order). */
static int
release_filenode(struct ws_cathist *h, ws_oid filenode, ws_oid oid, struct ws_err *err)
{
	MDB_val v;
	int rc = hist_newest(h, h->wtxn, 'F', h->db, filenode, h->at.lsn, &v, err);

	if (rc < 0)
		return -1;
	if (rc == 0 || v.mv_size != 4 || ws_le32(v.mv_data) != oid)
		return 0;
	return put_filenode(h, filenode, 0, err);
}

/* Files of the shared catalogs belong to no database and are not indexed. */
static ws_oid
indexed_filenode(const struct ws_rel *r)
{
	return r && r->spc != WS_GLOBALTABLESPACE_OID ? r->filenode : 0;
}

/* What the relation looked like before this transaction touched it; *old NULL when it was not. */
static int
previous(struct ws_cathist *h, ws_oid oid, struct ws_rel **old, struct ws_err *err)
{
	MDB_val v;
	int rc = hist_newest(h, h->wtxn, 'R', h->db, oid, h->at.lsn, &v, err);

	*old = NULL;
	if (rc <= 0 || !v.mv_size)
		return rc;
	*old = ws_rel_decode(v.mv_data, v.mv_size, err);
	return *old ? 0 : ws_err_prefix(err, "%s", h->dir);
}

static int
replace_rel(struct ws_cathist *h, ws_oid oid, const struct ws_rel *r, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_rel *old = NULL;
	int rc = previous(h, oid, &old, err);

	if (rc < 0)
		goto out;
	if (r)
		ws_rel_encode(r, &b);
	if ((rc = put(h, 'R', oid, b.data, b.len, err)) <= 0)
		goto out;
	ws_oid was = indexed_filenode(old), now = indexed_filenode(r);

	rc = put_change(h, oid, err);
	if (rc == 0 && now && now != was)
		rc = put_filenode(h, now, oid, err);
	if (rc == 0 && was && now != was)
		rc = release_filenode(h, was, oid, err);
out:
	ws_rel_free(old);
	ws_buf_free(&b);
	return rc;
}

int
ws_cathist_put_rel(struct ws_cathist *h, const struct ws_rel *r, struct ws_err *err)
{
	struct ws_rel copy = *r;

	copy.db = h->db;
	copy.lsn = h->at.lsn;
	return replace_rel(h, r->oid, &copy, err);
}

int
ws_cathist_drop_rel(struct ws_cathist *h, ws_oid oid, struct ws_err *err)
{
	return replace_rel(h, oid, NULL, err);
}

int
ws_cathist_put_type(struct ws_cathist *h, const struct ws_type *t, struct ws_err *err)
{
	struct ws_type copy = *t;
	struct ws_buf b = {0};

	copy.db = h->db;
	copy.lsn = h->at.lsn;
	ws_type_encode(&copy, &b);
	int rc = put(h, 'T', t->oid, b.data, b.len, err);

	ws_buf_free(&b);
	return rc < 0 ? -1 : 0;
}

int
ws_cathist_drop_type(struct ws_cathist *h, ws_oid oid, struct ws_err *err)
{
	return put(h, 'T', oid, NULL, 0, err) < 0 ? -1 : 0;
}

static int
commit(struct ws_cathist *h, struct ws_err *err)
{
	MDB_txn *txn = h->wtxn;

	h->wtxn = NULL;
	int rc = mdb_txn_commit(txn);

	return rc ? hist_fail(h, rc, err, "cannot commit") : 0;
}

int
ws_cathist_commit(struct ws_cathist *h, struct ws_err *err)
{
	if (hist_meta_put(h, h->wtxn, h->db, &h->meta, err) != 0) {
		ws_cathist_abort(h);
		return -1;
	}
	return commit(h, err);
}

void
ws_cathist_abort(struct ws_cathist *h)
{
	if (h->wtxn)
		mdb_txn_abort(h->wtxn);
	h->wtxn = NULL;
}

/* Walks every entry of (kind, db) and deletes those for which doomed says so. */
static int
sweep(struct ws_cathist *h, char kind, ws_oid db, bool (*doomed)(void *arg, const MDB_val *k, const MDB_val *v),
      void *arg, struct ws_err *err)
{
	/* The smallest key of a kind: all numbers 0 (an inverted LSN is 0 for the highest). */
	struct hist_key from = hist_key_object(kind, db, 0, UINT64_MAX);
	MDB_val k = hist_val(&from), v;
	MDB_cursor *c;
	int rc = mdb_cursor_open(h->wtxn, h->dbi, &c);

	if (rc)
		return hist_fail(h, rc, err, "cannot write");
	rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE);
	while (!rc && k.mv_size == from.n && !memcmp(k.mv_data, from.b, 5)) {
		if (doomed(arg, &k, &v) && (rc = mdb_cursor_del(c, 0)) != 0)
			break;
		rc = mdb_cursor_get(c, &k, &v, MDB_NEXT);
	}
	mdb_cursor_close(c);
	return rc && rc != MDB_NOTFOUND ? hist_fail(h, rc, err, "cannot write") : 0;
}

struct sweep_arg {
	ws_lsn lsn;
	bool covered; /* the object `id` has a newer entry at or below lsn */
	bool any;
	uint32_t id;
};

static bool
is_nothing(const MDB_val *k, const MDB_val *v)
{
	bool file = *(const char *)k->mv_data == 'F';

	return file ? v->mv_size == 4 && ws_le32(v->mv_data) == 0 : v->mv_size == 0;
}

/* Entries come newest first: the first at or below lsn stays (unless it says "nothing"). */
static bool
below(void *arg, const MDB_val *k, const MDB_val *v)
{
	struct sweep_arg *a = arg;
	uint32_t id = hist_key_id(k->mv_data);

	if (!a->any || id != a->id) {
		a->any = true;
		a->id = id;
		a->covered = false;
	}
	if (hist_key_lsn(k->mv_data) > a->lsn)
		return false;
	bool doomed = a->covered || is_nothing(k, v);

	a->covered = true;
	return doomed;
}

static ws_lsn
change_lsn(const MDB_val *k)
{
	const uint8_t *p = k->mv_data;
	ws_lsn l = 0;

	for (int i = 5; i < 13; i++)
		l = l << 8 | p[i];
	return l;
}

static bool
change_below(void *arg, const MDB_val *k, const MDB_val *v)
{
	(void)v;
	return change_lsn(k) < ((struct sweep_arg *)arg)->lsn;
}

static bool
above(void *arg, const MDB_val *k, const MDB_val *v)
{
	(void)v;
	return hist_key_lsn(k->mv_data) > ((struct sweep_arg *)arg)->lsn;
}

static bool
change_above(void *arg, const MDB_val *k, const MDB_val *v)
{
	(void)v;
	return change_lsn(k) > ((struct sweep_arg *)arg)->lsn;
}

static int
sweep_all(struct ws_cathist *h, ws_oid db, ws_lsn lsn, bool prune, struct ws_err *err)
{
	for (const char *kind = "RTFC"; *kind; kind++) {
		struct sweep_arg a = {.lsn = lsn};
		bool change = *kind == 'C';

		if (sweep(h, *kind, db, prune ? (change ? change_below : below) : (change ? change_above : above),
		          &a, err) != 0)
			return -1;
	}
	return 0;
}

int
ws_cathist_prune(struct ws_cathist *h, ws_oid db, ws_lsn lsn, struct ws_err *err)
{
	struct hist_meta m;

	if (begin(h, err) != 0)
		return -1;
	int rc = hist_meta_get(h, h->wtxn, db, &m, err);

	/* Never past what is captured: the newest entries must stay the newest. */
	if (rc == 1 && lsn > m.last.lsn)
		lsn = m.last.lsn;
	if (rc <= 0 || lsn <= m.pruned || lsn <= m.first.lsn) {
		ws_cathist_abort(h);
		return rc < 0 ? -1 : 0;
	}
	m.pruned = lsn;
	if (sweep_all(h, db, lsn, true, err) != 0 || hist_meta_put(h, h->wtxn, db, &m, err) != 0) {
		ws_cathist_abort(h);
		return -1;
	}
	return commit(h, err);
}

int
ws_cathist_rewind(struct ws_cathist *h, ws_oid db, ws_lsn lsn, struct ws_err *err)
{
	struct hist_meta m;
	struct hist_key key = hist_key_meta(db);
	MDB_val k = hist_val(&key);

	if (begin(h, err) != 0)
		return -1;
	int rc = hist_meta_get(h, h->wtxn, db, &m, err);

	if (rc == 1 && lsn < m.pruned && lsn >= m.first.lsn)
		rc = ws_err_op(err, "catalog_pruned",
		               "%s: cannot go back to " WS_LSN_FMT ": the history is pruned below " WS_LSN_FMT, h->dir,
		               WS_LSN_ARG(lsn), WS_LSN_ARG(m.pruned));
	if (rc <= 0 || (lsn >= m.last.lsn && lsn >= m.first.lsn)) {
		ws_cathist_abort(h);
		return rc < 0 ? -1 : 0;
	}
	rc = sweep_all(h, db, lsn, false, err);
	m.last.lsn = lsn;
	if (rc == 0 && lsn < m.first.lsn) {
		/* Before the first capture there is nothing. */
		rc = mdb_del(h->wtxn, h->dbi, &k, NULL);
		rc = rc ? hist_fail(h, rc, err, "cannot write") : 0;
	} else if (rc == 0) {
		rc = hist_meta_put(h, h->wtxn, db, &m, err);
	}
	if (rc != 0) {
		ws_cathist_abort(h);
		return -1;
	}
	return commit(h, err);
}
