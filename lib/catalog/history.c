/* The history of shapes: opening it and asking it; see ws/shape.h, layout in hist.h.
 *
 * Readers are any number of processes and never wait for the writer, nor it for them (LMDB's
 * copy-on-write pages); a reader's snapshot lasts one call.  Writing is histwrite.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hist.h"
#include "ws/cursor.h"
#include "ws/file.h"

static void
put_be(struct hist_key *k, uint64_t v, int bytes)
{
	while (bytes--)
		k->b[k->n++] = (uint8_t)(v >> 8 * bytes);
}

static uint64_t
get_be(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

struct hist_key
hist_key_meta(ws_oid db)
{
	struct hist_key k = {{'M'}, 1};

	put_be(&k, db, 4);
	return k;
}

struct hist_key
hist_key_object(char kind, ws_oid db, uint32_t id, ws_lsn lsn)
{
	struct hist_key k = {{(uint8_t)kind}, 1};

	put_be(&k, db, 4);
	put_be(&k, id, 4);
	put_be(&k, ~lsn, 8);
	return k;
}

struct hist_key
hist_key_change(ws_oid db, ws_lsn lsn, ws_oid oid)
{
	struct hist_key k = {{'C'}, 1};

	put_be(&k, db, 4);
	put_be(&k, lsn, 8);
	put_be(&k, oid, 4);
	return k;
}

ws_lsn
hist_key_lsn(const uint8_t *key)
{
	return ~get_be(key + 9, 8);
}

uint32_t
hist_key_id(const uint8_t *key)
{
	return (uint32_t)get_be(key + 5, 4);
}

MDB_val
hist_val(const struct hist_key *k)
{
	return (MDB_val){k->n, (void *)k->b};
}

int
hist_fail(const struct ws_cathist *h, int rc, struct ws_err *err, const char *what)
{
	if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH)
		return ws_err_op(err, "catalog_corrupt", "%s: %s: %s", h->dir, what, mdb_strerror(rc));
	if (rc == MDB_MAP_FULL)
		return ws_err_op(err, "catalog_full", "%s: %s: %s", h->dir, what, mdb_strerror(rc));
	return ws_err_temp(err, "%s: %s: %s", h->dir, what, mdb_strerror(rc));
}

static int
check_format(struct ws_cathist *h, MDB_txn *txn, bool writer, struct ws_err *err)
{
	uint8_t want[sizeof HIST_MAGIC - 1 + 4];
	MDB_val k = {1, (void *)"V"}, v;
	int rc = mdb_get(txn, h->dbi, &k, &v);

	memcpy(want, HIST_MAGIC, sizeof HIST_MAGIC - 1);
	ws_store32(want + sizeof HIST_MAGIC - 1, HIST_VERSION);
	if (rc == MDB_NOTFOUND && writer) {
		v = (MDB_val){sizeof want, want};
		rc = mdb_put(txn, h->dbi, &k, &v, 0);
		return rc ? hist_fail(h, rc, err, "cannot write") : 0;
	}
	if (rc == MDB_NOTFOUND)
		return ws_err_temp(err, "%s: the history is empty: ws-catalog has not started it yet", h->dir);
	if (rc)
		return hist_fail(h, rc, err, "cannot read");
	if (v.mv_size != sizeof want || memcmp(v.mv_data, want, sizeof want))
		return ws_err_op(err, "catalog_version", "%s: not a history of format %d", h->dir, HIST_VERSION);
	return 0;
}

static int
open_env(struct ws_cathist *h, bool writer, struct ws_err *err)
{
	MDB_txn *txn = NULL;
	int rc, dead;

	if ((rc = mdb_env_create(&h->env)) != 0 || (rc = mdb_env_set_mapsize(h->env, HIST_MAP_SIZE)) != 0 ||
	    (rc = mdb_env_set_maxreaders(h->env, HIST_READERS)) != 0)
		return hist_fail(h, rc, err, "cannot set up");
	rc = mdb_env_open(h->env, h->dir, MDB_NOTLS | MDB_NORDAHEAD | (writer ? 0 : MDB_RDONLY), 0600);
	if (rc)
		return hist_fail(h, rc, err, "cannot open");
	/* Slots of readers that died. */
	mdb_reader_check(h->env, &dead);
	if ((rc = mdb_txn_begin(h->env, NULL, writer ? 0 : MDB_RDONLY, &txn)) != 0)
		return hist_fail(h, rc, err, "cannot begin");
	if ((rc = mdb_dbi_open(txn, NULL, 0, &h->dbi)) != 0) {
		mdb_txn_abort(txn);
		return hist_fail(h, rc, err, "cannot open");
	}
	if (check_format(h, txn, writer, err) != 0) {
		mdb_txn_abort(txn);
		return -1;
	}
	if ((rc = mdb_txn_commit(txn)) != 0)
		return hist_fail(h, rc, err, "cannot commit");
	return 0;
}

struct ws_cathist *
ws_cathist_open(const char *dir, bool writer, struct ws_err *err)
{
	struct ws_cathist *h = ws_calloc(1, sizeof *h);
	char *path = ws_asprintf("%s/%s", dir, writer ? ".lock" : "data.mdb");

	h->dir = ws_strdup(dir);
	h->lock = -1;
	if (writer) {
		if (ws_mkdir_p(dir, 0700, err) != 0 || (h->lock = ws_lock_file(path, err)) < 0)
			goto fail;
	} else if (access(path, F_OK) != 0) {
		if (errno == ENOENT)
			ws_err_temp(err, "%s: no history here: ws-catalog has not started it yet", dir);
		else
			ws_err_sys(err, "%s: cannot open", path);
		goto fail;
	}
	if (open_env(h, writer, err) != 0)
		goto fail;
	/* The environment's directory entries are part of durability. */
	if (writer && ws_fsync_path(dir, err) != 0)
		goto fail;
	free(path);
	return h;
fail:
	free(path);
	ws_cathist_close(h);
	return NULL;
}

void
ws_cathist_close(struct ws_cathist *h)
{
	if (!h)
		return;
	ws_cathist_abort(h);
	if (h->rtxn)
		mdb_txn_abort(h->rtxn);
	if (h->env)
		mdb_env_close(h->env);
	if (h->lock >= 0)
		close(h->lock);
	free(h->dir);
	free(h);
}

/* The snapshot of one call. */
static MDB_txn *
read_begin(struct ws_cathist *h, struct ws_err *err)
{
	int rc, dead;

	if (h->rtxn) {
		rc = mdb_txn_renew(h->rtxn);
	} else {
		rc = mdb_txn_begin(h->env, NULL, MDB_RDONLY, &h->rtxn);
		if (rc == MDB_READERS_FULL) {
			mdb_reader_check(h->env, &dead);
			rc = mdb_txn_begin(h->env, NULL, MDB_RDONLY, &h->rtxn);
		}
	}
	if (rc) {
		hist_fail(h, rc, err, "cannot begin to read");
		return NULL;
	}
	return h->rtxn;
}

static void
read_end(struct ws_cathist *h)
{
	mdb_txn_reset(h->rtxn);
}

int
hist_newest(const struct ws_cathist *h, MDB_txn *txn, char kind, ws_oid db, uint32_t id, ws_lsn lsn,
            MDB_val *v, struct ws_err *err)
{
	struct hist_key want = hist_key_object(kind, db, id, lsn);
	MDB_val k = hist_val(&want);
	MDB_cursor *c;
	int rc = mdb_cursor_open(txn, h->dbi, &c);

	if (rc)
		return hist_fail(h, rc, err, "cannot read");
	rc = mdb_cursor_get(c, &k, v, MDB_SET_RANGE);
	mdb_cursor_close(c);
	if (rc && rc != MDB_NOTFOUND)
		return hist_fail(h, rc, err, "cannot read");
	/* Kind, database and object are the first 9 bytes. */
	return !rc && k.mv_size == want.n && !memcmp(k.mv_data, want.b, 9);
}

int
hist_meta_get(const struct ws_cathist *h, MDB_txn *txn, ws_oid db, struct hist_meta *m, struct ws_err *err)
{
	struct hist_key key = hist_key_meta(db);
	MDB_val k = hist_val(&key), v;
	int rc = mdb_get(txn, h->dbi, &k, &v);

	*m = (struct hist_meta){0};
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc)
		return hist_fail(h, rc, err, "cannot read");
	struct ws_cursor c = ws_cursor(v.mv_data, v.mv_size);

	m->first.tli = ws_cur_u32(&c);
	m->first.lsn = ws_cur_u64(&c);
	m->last.tli = ws_cur_u32(&c);
	m->last.lsn = ws_cur_u64(&c);
	m->pruned = ws_cur_u64(&c);
	if (c.bad || ws_cur_left(&c))
		return ws_err_op(err, "catalog_corrupt", "%s: database %u: malformed positions", h->dir, db);
	return 1;
}

/* Below the pruned position an answer would be a guess. */
static int
check_pruned(struct ws_cathist *h, MDB_txn *txn, ws_oid db, ws_lsn lsn, struct ws_err *err)
{
	struct hist_meta m;

	if (hist_meta_get(h, txn, db, &m, err) < 0)
		return -1;
	if (lsn < m.pruned)
		return ws_err_op(err, "catalog_pruned",
		                 "%s: asked for database %u as of " WS_LSN_FMT ", but the history is pruned below " WS_LSN_FMT,
		                 h->dir, db, WS_LSN_ARG(lsn), WS_LSN_ARG(m.pruned));
	return 0;
}

/* Begins a snapshot and looks an object up in it; the caller ends it unless -1 came. */
static int
lookup(struct ws_cathist *h, char kind, ws_oid db, uint32_t id, ws_lsn lsn, MDB_val *v, struct ws_err *err)
{
	MDB_txn *txn = read_begin(h, err);

	if (!txn)
		return -1;
	int rc = hist_newest(h, txn, kind, db, id, lsn, v, err);

	if (rc == 0)
		rc = check_pruned(h, txn, db, lsn, err);
	if (rc < 0)
		read_end(h);
	return rc;
}

int
ws_cathist_rel(struct ws_cathist *h, ws_oid db, ws_oid oid, ws_lsn lsn, struct ws_rel **out, struct ws_err *err)
{
	MDB_val v;
	int rc = lookup(h, 'R', db, oid, lsn, &v, err);

	*out = NULL;
	if (rc < 0)
		return -1;
	if (rc > 0 && v.mv_size) {
		*out = ws_rel_decode(v.mv_data, v.mv_size, err);
		rc = *out ? 1 : ws_err_prefix(err, "%s", h->dir);
	} else {
		rc = 0;
	}
	read_end(h);
	return rc;
}

int
ws_cathist_type(struct ws_cathist *h, ws_oid db, ws_oid oid, ws_lsn lsn, struct ws_type **out, struct ws_err *err)
{
	MDB_val v;
	int rc = lookup(h, 'T', db, oid, lsn, &v, err);

	*out = NULL;
	if (rc < 0)
		return -1;
	if (rc > 0 && v.mv_size) {
		*out = ws_type_decode(v.mv_data, v.mv_size, err);
		rc = *out ? 1 : ws_err_prefix(err, "%s", h->dir);
	} else {
		rc = 0;
	}
	read_end(h);
	if (rc == 1 && (*out)->typtype == 'c' &&
		ws_cathist_rel(h, db, (*out)->relid, lsn, &(*out)->row, err) < 0) {
		ws_type_free(*out);
		*out = NULL;
		rc = -1;
	}
	return rc;
}

int
ws_cathist_filenode(struct ws_cathist *h, ws_oid db, ws_oid filenode, ws_lsn lsn, ws_oid *reloid,
                    struct ws_err *err)
{
	MDB_val v;
	int rc = lookup(h, 'F', db, filenode, lsn, &v, err);

	*reloid = 0;
	if (rc < 0)
		return -1;
	if (rc > 0)
		*reloid = v.mv_size == 4 ? ws_le32(v.mv_data) : 0;
	read_end(h);
	return *reloid != 0;
}

static int
open_cursor(struct ws_cathist *h, MDB_txn *txn, MDB_cursor **c, struct ws_err *err)
{
	int rc = mdb_cursor_open(txn, h->dbi, c);

	return rc ? hist_fail(h, rc, err, "cannot read") : 0;
}

static void
add_oid(ws_oid **oids, size_t *n, ws_oid oid)
{
	if ((*n & (*n - 1)) == 0)
		*oids = ws_realloc(*oids, (*n ? *n * 2 : 1) * sizeof **oids);
	(*oids)[(*n)++] = oid;
}

int
ws_cathist_changes(struct ws_cathist *h, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err)
{
	struct hist_key from = hist_key_change(db, lsn, 0);
	MDB_val k = hist_val(&from), v;
	MDB_txn *txn = read_begin(h, err);
	MDB_cursor *c;
	int rc;

	*oids = NULL;
	*n = 0;
	if (!txn)
		return -1;
	rc = check_pruned(h, txn, db, lsn, err);
	if (rc == 0 && (rc = open_cursor(h, txn, &c, err)) == 0) {
		rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE);
		for (; !rc && k.mv_size == from.n && !memcmp(k.mv_data, from.b, 13);
		     rc = mdb_cursor_get(c, &k, &v, MDB_NEXT))
			add_oid(oids, n, (ws_oid)get_be((uint8_t *)k.mv_data + 13, 4));
		mdb_cursor_close(c);
		rc = rc && rc != MDB_NOTFOUND ? hist_fail(h, rc, err, "cannot read") : 0;
	}
	read_end(h);
	return rc;
}

/* One seek an object: from it to the newest entry at or below lsn, then to the next object. */
static int
list(struct ws_cathist *h, MDB_cursor *c, char kind, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n,
     struct ws_err *err)
{
	uint64_t id = 0;

	while (id <= UINT32_MAX) {
		struct hist_key want = hist_key_object(kind, db, (uint32_t)id, lsn);
		MDB_val k = hist_val(&want), v;
		int rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE);

		if (rc == MDB_NOTFOUND)
			break;
		if (rc)
			return hist_fail(h, rc, err, "cannot read");
		if (k.mv_size != want.n || memcmp(k.mv_data, want.b, 5))
			break;
		uint32_t found = hist_key_id(k.mv_data);

		if (found == id || hist_key_lsn(k.mv_data) <= lsn) {
			if (v.mv_size)
				add_oid(oids, n, found);
			id = (uint64_t)found + 1;
		} else {
			/* Another object, whose newest entry may be above lsn. */
			id = found;
		}
	}
	return 0;
}

static int
list_kind(struct ws_cathist *h, char kind, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err)
{
	MDB_txn *txn = read_begin(h, err);
	MDB_cursor *c;
	int rc;

	*oids = NULL;
	*n = 0;
	if (!txn)
		return -1;
	rc = check_pruned(h, txn, db, lsn, err);
	if (rc == 0 && (rc = open_cursor(h, txn, &c, err)) == 0) {
		rc = list(h, c, kind, db, lsn, oids, n, err);
		mdb_cursor_close(c);
	}
	read_end(h);
	return rc;
}

int
ws_cathist_list(struct ws_cathist *h, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err)
{
	return list_kind(h, 'R', db, lsn, oids, n, err);
}

int
ws_cathist_types(struct ws_cathist *h, ws_oid db, ws_lsn lsn, ws_oid **oids, size_t *n, struct ws_err *err)
{
	return list_kind(h, 'T', db, lsn, oids, n, err);
}

int
ws_cathist_captured(struct ws_cathist *h, ws_oid db, struct ws_pos *first, struct ws_pos *last, struct ws_err *err)
{
	MDB_txn *txn = read_begin(h, err);
	struct hist_meta m;

	if (!txn)
		return -1;
	int rc = hist_meta_get(h, txn, db, &m, err);

	read_end(h);
	if (first)
		*first = m.first;
	if (last)
		*last = m.last;
	return rc;
}

int
ws_cathist_databases(struct ws_cathist *h, ws_oid **dbs, size_t *n, struct ws_err *err)
{
	MDB_txn *txn = read_begin(h, err);
	MDB_cursor *c;
	MDB_val k = {1, (void *)"M"}, v;
	int rc;

	*dbs = NULL;
	*n = 0;
	if (!txn)
		return -1;
	if ((rc = open_cursor(h, txn, &c, err)) == 0) {
		rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE);
		for (; !rc && k.mv_size == 5 && *(char *)k.mv_data == 'M'; rc = mdb_cursor_get(c, &k, &v, MDB_NEXT))
			add_oid(dbs, n, (ws_oid)get_be((uint8_t *)k.mv_data + 1, 4));
		mdb_cursor_close(c);
		rc = rc && rc != MDB_NOTFOUND ? hist_fail(h, rc, err, "cannot read") : 0;
	}
	read_end(h);
	return rc;
}

static int
walk_kind(struct ws_cathist *h, MDB_cursor *c, char kind, ws_oid db,
          int (*each)(void *arg, const struct ws_cathist_entry *e, struct ws_err *err), void *arg,
          struct ws_err *err)
{
	struct hist_key from = hist_key_object(kind, db, 0, UINT64_MAX);
	MDB_val k = hist_val(&from), v;
	int rc = mdb_cursor_get(c, &k, &v, MDB_SET_RANGE), stop = 0;

	while (!rc && !stop && k.mv_size == from.n && !memcmp(k.mv_data, from.b, 5)) {
		const uint8_t *p = k.mv_data;
		struct ws_cathist_entry e = {.kind = kind, .p = v.mv_data, .n = v.mv_size};

		e.id = kind == 'C' ? (uint32_t)get_be(p + 13, 4) : hist_key_id(p);
		e.lsn = kind == 'C' ? get_be(p + 5, 8) : hist_key_lsn(p);
		e.oid = kind == 'F' && v.mv_size == 4 ? ws_le32(v.mv_data) : 0;
		stop = each(arg, &e, err);
		rc = mdb_cursor_get(c, &k, &v, MDB_NEXT);
	}
	if (stop)
		return stop;
	return rc && rc != MDB_NOTFOUND ? hist_fail(h, rc, err, "cannot read") : 0;
}

int
ws_cathist_walk(struct ws_cathist *h, ws_oid db,
                int (*each)(void *arg, const struct ws_cathist_entry *e, struct ws_err *err), void *arg,
                struct ws_err *err)
{
	MDB_txn *txn = read_begin(h, err);
	MDB_cursor *c;

	if (!txn)
		return -1;
	int rc = open_cursor(h, txn, &c, err);

	if (rc == 0) {
		for (const char *kind = "CFRT"; *kind && rc == 0; kind++)
			rc = walk_kind(h, c, *kind, db, each, arg, err);
		mdb_cursor_close(c);
	}
	read_end(h);
	return rc;
}
