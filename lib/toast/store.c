/* The TOAST store's environment: opening, transactions, durability; see ws/toaststore.h.
 *
 * One write transaction serves everything, reading too.  It is committed when much is dirty,
 * without waiting for the meta page (LMDB keeps its integrity, only the last transaction may be
 * lost), and with it when the caller wants things durable. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "toast-int.h"
#include "ws/file.h"
#include "ws/mem.h"

/* Room for the map, not disk: the file grows with what is written. */
#define MAP_FIRST (256ull * 1024 * 1024)
#define MAP_ROOM  (128ull * 1024 * 1024) /* free at the begin of a transaction */
/* Idle WAL after which the position is written for its own sake. */
#define APPLIED_BYTES (64ull * 1024 * 1024)

/* LMDB calls a short write an input/output error: mostly the disk is full. */
static bool
disk_full(const struct ws_toaststore *s)
{
	struct statvfs v;

	return statvfs(s->dir, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < TS_OP_LIMIT * 4ull;
}

int
ts_fail(const struct ws_toaststore *s, int rc, struct ws_err *err, const char *what)
{
	if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID ||
	    rc == MDB_VERSION_MISMATCH || rc == MDB_CURSOR_FULL)
		return ws_err_op(err, "toast_store_corrupt",
		                 "%s: %s: %s; remove it and load the tables again", s->dir, what,
		                 mdb_strerror(rc));
	if (rc < 0)
		return ws_err_temp(err, "%s: %s: %s", s->dir, what, mdb_strerror(rc));
	errno = rc == EIO && disk_full(s) ? ENOSPC : rc;
	return ws_err_sys(err, "%s: %s", s->dir, what);
}

/* ---- transactions ---- */

static uint64_t
used(const struct ws_toaststore *s)
{
	MDB_envinfo info;
	MDB_stat st;

	mdb_env_info(s->env, &info);
	mdb_env_stat(s->env, &st);
	return ((uint64_t)info.me_last_pgno + 1) * st.ms_psize;
}

/* A map that is too small would fail a transaction: it grows before one begins. */
static int
grow_map(struct ws_toaststore *s, struct ws_err *err)
{
	MDB_envinfo info;
	uint64_t need = used(s) + MAP_ROOM, size;

	mdb_env_info(s->env, &info);
	for (size = info.me_mapsize; size < need; size *= 2)
		;
	if (size == info.me_mapsize)
		return 0;
	int rc = mdb_env_set_mapsize(s->env, size);

	return rc ? ts_fail(s, rc, err, "cannot enlarge the map") : 0;
}

static int
txn_begin(struct ws_toaststore *s, struct ws_err *err)
{
	int rc;

	if (s->txn)
		return 0;
	if (grow_map(s, err) != 0)
		return -1;
	if ((rc = mdb_txn_begin(s->env, NULL, 0, &s->txn)) != 0) {
		s->txn = NULL;
		return ts_fail(s, rc, err, "cannot begin");
	}
	if ((rc = mdb_cursor_open(s->txn, s->dbi, &s->rd)) != 0 ||
	    (rc = mdb_cursor_open(s->txn, s->dbi, &s->wr)) != 0)
		return ts_fail(s, rc, err, "cannot open a cursor");
	return 0;
}

static void
put_meta(const struct ts_meta *m, uint8_t *b)
{
	ws_store32(b, m->applied.tli);
	ws_store64(b + 4, m->applied.lsn);
	ws_store64(b + 12, m->busy);
}

static int
txn_commit(struct ws_toaststore *s, struct ws_err *err)
{
	struct ts_key k = ts_key('M');
	uint8_t b[20];

	put_meta(&s->meta, b);
	MDB_val key = {k.n, k.b}, v = {sizeof b, b};
	int rc = mdb_put(s->txn, s->dbi, &key, &v, 0);

	if (rc)
		return ts_fail(s, rc, err, "cannot write");
	rc = mdb_txn_commit(s->txn);
	s->txn = NULL;
	s->rd = s->wr = NULL;
	s->dirty = false;
	s->cost = 0;
	if (rc)
		return ts_fail(s, rc, err, "cannot commit");
	s->saved = s->meta;
	s->unsynced = true;
	return 0;
}

int
ts_room(struct ws_toaststore *s, struct ws_err *err)
{
	if (s->txn && s->cost >= TS_OP_LIMIT && txn_commit(s, err) != 0)
		return -1;
	s->cost += TS_OP_COST;
	return txn_begin(s, err);
}

int
ws_toaststore_sync(struct ws_toaststore *s, struct ws_err *err)
{
	if (ts_flush(s, err) != 0)
		return -1;
	bool moved = s->meta.applied.lsn != s->saved.applied.lsn;

	if (moved && txn_begin(s, err) != 0)
		return -1;
	if ((s->dirty || moved) && txn_commit(s, err) != 0)
		return -1;
	if (!s->unsynced)
		return 0;
	int rc = mdb_env_sync(s->env, 1);

	if (rc)
		return ts_fail(s, rc, err, "cannot sync");
	s->unsynced = false;
	return 0;
}

int
ws_toaststore_tend(struct ws_toaststore *s, struct ws_err *err)
{
	if (s->meta.applied.lsn - s->saved.applied.lsn < APPLIED_BYTES)
		return 0;
	return ws_toaststore_sync(s, err);
}

struct ws_pos
ws_toaststore_applied(const struct ws_toaststore *s)
{
	return s->meta.applied;
}

/* ---- single keys ---- */

int
ts_put(struct ws_toaststore *s, const struct ts_key *k, const void *p, size_t n,
       struct ws_err *err)
{
	MDB_val key = {k->n, (void *)k->b}, v = {n, (void *)(uintptr_t)p};
	int rc;

	if (ts_room(s, err) != 0)
		return -1;
	s->dirty = true;
	rc = mdb_cursor_put(s->wr, &key, &v, 0);
	return rc ? ts_fail(s, rc, err, "cannot write") : 0;
}

int
ts_get(struct ws_toaststore *s, const struct ts_key *k, MDB_val *v, struct ws_err *err)
{
	MDB_val key = {k->n, (void *)k->b};

	if (txn_begin(s, err) != 0)
		return -1;
	int rc = mdb_get(s->txn, s->dbi, &key, v);

	if (rc == MDB_NOTFOUND)
		return 0;
	return rc ? ts_fail(s, rc, err, "cannot read") : 1;
}

static int
move(struct ws_toaststore *s, MDB_cursor_op op, const struct ts_key *k, size_t prefix, MDB_val *key,
     MDB_val *v, struct ws_err *err)
{
	int rc = mdb_cursor_get(s->rd, key, v, op);

	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc)
		return ts_fail(s, rc, err, "cannot read");
	return key->mv_size >= prefix && !memcmp(key->mv_data, k->b, prefix);
}

int
ts_seek(struct ws_toaststore *s, const struct ts_key *k, size_t prefix, MDB_val *key, MDB_val *v,
        struct ws_err *err)
{
	if (txn_begin(s, err) != 0)
		return -1;
	*key = (MDB_val){k->n, (void *)k->b};
	return move(s, MDB_SET_RANGE, k, prefix, key, v, err);
}

int
ts_next(struct ws_toaststore *s, const struct ts_key *k, size_t prefix, MDB_val *key, MDB_val *v,
        struct ws_err *err)
{
	return move(s, MDB_NEXT, k, prefix, key, v, err);
}

int
ts_del(struct ws_toaststore *s, struct ws_err *err)
{
	int rc;

	/* No commit here: the cursor would be gone. */
	s->cost += TS_OP_COST;
	s->dirty = true;
	rc = mdb_cursor_del(s->rd, 0);
	return rc ? ts_fail(s, rc, err, "cannot delete") : 0;
}

/* ---- opening ---- */

/* Pages at the end that a transaction took and gave back were never written: the file may be
 * shorter than its own account says.  It is made that long, so that a page which is missing, since
 * somebody cut the file, is one of zeros, which LMDB refuses, and not a bus error. */
static int
full_length(struct ws_toaststore *s, struct ws_err *err)
{
	char *path = ws_asprintf("%s/data.mdb", s->dir);
	struct stat st;
	int rc = stat(path, &st);

	if (rc == 0 && st.st_size && (uint64_t)st.st_size < used(s))
		rc = truncate(path, (off_t)used(s));
	if (rc != 0)
		ws_err_sys(err, "%s", path);
	free(path);
	return rc;
}

/* Key V: magic, system identifier, database. */
static int
check_owner(struct ws_toaststore *s, uint64_t system_id, ws_oid db, struct ws_err *err)
{
	struct ts_key k = ts_key('V');
	uint8_t want[8 + 8 + 4];
	MDB_val v;
	int rc = ts_get(s, &k, &v, err);

	memcpy(want, TS_MAGIC, 8);
	ws_store64(want + 8, system_id);
	ws_store32(want + 16, db);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return ts_put(s, &k, want, sizeof want, err);
	if (v.mv_size != sizeof want || memcmp(v.mv_data, want, 8))
		return ws_err_op(err, "toast_store_version", "%s: not a TOAST store of this version",
		                 s->dir);
	if (memcmp(v.mv_data, want, sizeof want))
		return ws_err_op(err, "toast_store_foreign",
		                 "%s: of cluster %llu, database %u; here it is cluster %llu, database %u",
		                 s->dir, (unsigned long long)ws_le64((uint8_t *)v.mv_data + 8),
		                 ws_le32((uint8_t *)v.mv_data + 16), (unsigned long long)system_id, db);
	return 0;
}

static int
read_meta(struct ws_toaststore *s, struct ws_err *err)
{
	struct ts_key k = ts_key('M');
	MDB_val v;
	int rc = ts_get(s, &k, &v, err);

	if (rc <= 0)
		return rc;
	if (v.mv_size != 20)
		return ts_fail(s, MDB_CORRUPTED, err, "its position");
	s->meta.applied.tli = ws_le32(v.mv_data);
	s->meta.applied.lsn = ws_le64((uint8_t *)v.mv_data + 4);
	s->meta.busy = ws_le64((uint8_t *)v.mv_data + 12);
	s->saved = s->meta;
	return 0;
}

static int
open_env(struct ws_toaststore *s, struct ws_err *err)
{
	MDB_txn *txn;
	int rc, dead;

	if ((rc = mdb_env_create(&s->env)) != 0 || (rc = mdb_env_set_mapsize(s->env, MAP_FIRST)) != 0)
		return ts_fail(s, rc, err, "cannot set up");
	rc = mdb_env_open(s->env, s->dir, MDB_NOTLS | MDB_NORDAHEAD | MDB_NOMETASYNC, 0600);
	if (rc)
		return ts_fail(s, rc, err, "cannot open");
	if (full_length(s, err) != 0)
		return -1;
	mdb_reader_check(s->env, &dead);
	if ((rc = mdb_txn_begin(s->env, NULL, 0, &txn)) != 0)
		return ts_fail(s, rc, err, "cannot begin");
	if ((rc = mdb_dbi_open(txn, NULL, 0, &s->dbi)) != 0) {
		mdb_txn_abort(txn);
		return ts_fail(s, rc, err, "cannot open");
	}
	if ((rc = mdb_txn_commit(txn)) != 0)
		return ts_fail(s, rc, err, "cannot commit");
	return 0;
}

struct ws_toaststore *
ws_toaststore_open(const char *dir, uint64_t system_id, ws_oid db, struct ws_err *err)
{
	struct ws_toaststore *s = ws_calloc(1, sizeof *s);
	char *lock = ws_asprintf("%s/.lock", dir);

	s->dir = ws_strdup(dir);
	s->lock = -1;
	if (ws_mkdir_p(dir, 0700, err) == 0 && (s->lock = ws_lock_file(lock, err)) >= 0 &&
	    open_env(s, err) == 0 && check_owner(s, system_id, db, err) == 0 &&
	    read_meta(s, err) == 0 && ws_toaststore_sync(s, err) == 0 &&
	    ws_fsync_path(dir, err) == 0) {
		free(lock);
		return s;
	}
	free(lock);
	ws_toaststore_close(s);
	return NULL;
}

void
ws_toaststore_close(struct ws_toaststore *s)
{
	if (!s)
		return;
	if (s->txn)
		mdb_txn_abort(s->txn);
	if (s->env)
		mdb_env_close(s->env);
	if (s->lock >= 0)
		close(s->lock);
	free(s->dir);
	free(s);
}

void
ws_toaststore_get_stats(struct ws_toaststore *s, struct ws_toaststore_stats *st)
{
	*st = s->st;
	st->disk = used(s);
}
