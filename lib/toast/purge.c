/* Removing from the TOAST store: the dead below the floor, a lost timeline, a table that is loaded
 * anew; see ws/toaststore.h. */
#include <string.h>

#include "toast-int.h"

/* ---- the dead ---- */

/* Deletes keys with the prefix, at most *left.  1 all gone, 0 the budget is used up, -1. */
static int
del_prefix(struct ws_toaststore *s, const struct ts_key *k, unsigned *left, struct ws_err *err)
{
	MDB_val key, v;
	int rc = 0;

	while (*left && (rc = ts_room(s, err)) == 0 &&
	       (rc = ts_seek(s, k, k->n, &key, &v, err)) == 1) {
		if (ts_del(s, err) != 0)
			return -1;
		--*left;
		s->st.purged += k->b[0] == 'C';
	}
	return *left ? (rc < 0 ? -1 : 1) : 0;
}

/* Values of the table that were born below lsn. */
static int
del_rel(struct ws_toaststore *s, ws_oid rel, ws_lsn lsn, unsigned *left, struct ws_err *err)
{
	struct ts_key k = ts_key_chunk(rel, 0, UINT64_MAX, 0);
	MDB_val key, v;
	int rc = 0;

	if (s->resume_at == lsn && s->resume.n && !memcmp(s->resume.b, k.b, TS_CHUNK_REL))
		k = s->resume;
	while (*left && (rc = ts_room(s, err)) == 0 &&
	       (rc = ts_seek(s, &k, TS_CHUNK_REL, &key, &v, err)) == 1) {
		const uint8_t *p = key.mv_data;

		if (key.mv_size != TS_CHUNK_LEN)
			return ts_fail(s, MDB_CORRUPTED, err, "a chunk's key");
		memcpy(k.b, p, k.n = key.mv_size);
		--*left;
		if (~ts_be(p + TS_CHUNK_ID, 8) < lsn) {
			if (ts_del(s, err) != 0)
				return -1;
			s->st.purged++;
			continue;
		}
		/* Past this generation. */
		memset(k.b + TS_CHUNK_GEN, 0xff, 4);
	}
	s->resume = k;
	s->resume_at = lsn;
	if (*left)
		s->resume.n = 0;
	return *left ? (rc < 0 ? -1 : 1) : 0;
}

/* A table that is gone, unless its oid was given away again and loaded. */
static int
forget_rel(struct ws_toaststore *s, ws_oid rel, ws_lsn lsn, struct ws_err *err)
{
	struct ts_key k = ts_key('R');
	struct ts_rel *r;
	MDB_val key, v;

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (r->loaded > lsn || r->from > lsn)
		return 0;
	ts_key_be(&k, rel, 4);
	*r = (struct ts_rel){0};
	int rc = ts_seek(s, &k, k.n, &key, &v, err);

	return rc == 1 ? ts_del(s, err) : rc;
}

static int
bury(struct ws_toaststore *s, const uint8_t *p, ws_lsn lsn, unsigned *left, struct ws_err *err)
{
	uint32_t a = (uint32_t)ts_be(p + 10, 4), b = (uint32_t)ts_be(p + 14, 4);
	ws_lsn born = ts_be(p + 18, 8);
	struct ts_key k;
	int rc;

	switch (p[9]) {
	case 'v':
		k = ts_key_chunk(a, b, born, 0);
		k.n = TS_CHUNK_GEN;
		return del_prefix(s, &k, left, err);
	case 'f':
		k = ts_key('D');
		ts_key_be(&k, a, 4);
		return del_prefix(s, &k, left, err);
	case 'g':
		rc = del_rel(s, a, lsn, left, err);
		return rc == 1 && forget_rel(s, a, lsn, err) != 0 ? -1 : rc;
	default:
		return del_rel(s, a, lsn, left, err);
	}
}

int
ws_toaststore_purge(struct ws_toaststore *s, ws_lsn floor, unsigned most, struct ws_err *err)
{
	struct ts_key first = ts_key('P'), k = {.n = TS_DEAD_LEN};
	MDB_val key, v;
	int rc;

	while (most) {
		if (ts_room(s, err) != 0)
			return -1;
		rc = ts_seek(s, &first, 1, &key, &v, err);
		if (rc <= 0)
			return rc;
		if (key.mv_size != TS_DEAD_LEN)
			return ts_fail(s, MDB_CORRUPTED, err, "the queue of the dead");
		memcpy(k.b, key.mv_data, TS_DEAD_LEN);
		ws_lsn lsn = ts_be(k.b + 1, 8);

		if (lsn > floor)
			return 0;
		rc = bury(s, k.b, lsn, &most, err);
		if (rc == 1)
			rc = ts_seek(s, &k, k.n, &key, &v, err);
		if (rc < 0 || (rc == 1 && ts_del(s, err) != 0))
			return -1;
		most -= most > 0;
	}
	return 1;
}

/* ---- a timeline that is left ---- */

/* The commit that made the entry; *rel: of which table, 0 of none. */
static ws_lsn
made_at(const MDB_val *key, const MDB_val *v, ws_oid *rel)
{
	const uint8_t *k = key->mv_data;

	*rel = 0;
	if (k[0] == 'C' && key->mv_size == TS_CHUNK_LEN) {
		*rel = (ws_oid)ts_be(k + 1, 4);
		return ~ts_be(k + TS_CHUNK_ID, 8);
	}
	if (k[0] == 'D' && v->mv_size == TS_PLACE_VAL) {
		*rel = ws_le32(v->mv_data);
		return ws_le64((uint8_t *)v->mv_data + 8);
	}
	return k[0] == 'P' && key->mv_size == TS_DEAD_LEN ? ts_be(k + 1, 8) : 0;
}

static int
forget_above(struct ws_toaststore *s, char kind, ws_lsn keep, ws_lsn fork, struct ws_err *err)
{
	struct ts_key k = ts_key(kind);
	MDB_val key, v;
	int rc = ts_seek(s, &k, 1, &key, &v, err);

	while (rc == 1) {
		struct ts_rel none = {0}, *r = &none;
		ws_oid rel;
		ws_lsn lsn = made_at(&key, &v, &rel);

		memcpy(k.b, key.mv_data, k.n = key.mv_size);
		if (lsn > keep && rel && ts_rel(s, rel, &r, err) != 0)
			return -1;
		if (lsn <= keep || (lsn == r->loaded && lsn <= fork)) {
			rc = ts_next(s, &k, 1, &key, &v, err);
			continue;
		}
		if (ts_del(s, err) != 0 || ts_room(s, err) != 0)
			return -1;
		rc = ts_seek(s, &k, 1, &key, &v, err);
	}
	return rc;
}

int
ws_toaststore_fork(struct ws_toaststore *s, ws_tli tli, ws_lsn keep, ws_lsn fork,
                   struct ws_err *err)
{
	if (s->meta.applied.lsn <= keep && s->meta.busy <= keep)
		return 0;
	if (forget_above(s, 'C', keep, fork, err) != 0 || forget_above(s, 'D', keep, fork, err) != 0 ||
	    forget_above(s, 'P', keep, fork, err) != 0)
		return -1;
	s->meta = (struct ts_meta){{tli, keep < s->meta.applied.lsn ? keep : s->meta.applied.lsn}, 0};
	s->dirty = true;
	return ws_toaststore_sync(s, err);
}

/* ---- the initial load ---- */

static int
del_all(struct ws_toaststore *s, const struct ts_key *k, struct ws_err *err)
{
	int rc = 0;

	while (rc == 0) {
		unsigned some = 1000;

		if (ts_room(s, err) != 0)
			return -1;
		rc = del_prefix(s, k, &some, err);
	}
	return rc < 0 ? -1 : 0;
}

int
ws_toaststore_load(struct ws_toaststore *s, ws_oid rel, ws_oid file, ws_lsn p, struct ws_err *err)
{
	struct ts_key chunks = ts_key('C'), places = ts_key('D');
	struct ts_rel *r;

	ts_key_be(&chunks, rel, 4);
	ts_key_be(&places, file, 4);
	if (del_all(s, &chunks, err) != 0 || del_all(s, &places, err) != 0 ||
	    ts_rel(s, rel, &r, err) != 0)
		return -1;
	*r = (struct ts_rel){.rel = rel, .loaded = p};
	return ts_rel_put(s, r, err);
}
