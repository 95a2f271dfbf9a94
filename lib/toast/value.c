/* Values in the TOAST store: a commit's changes, and looking values up; see ws/toaststore.h. */
#include <string.h>

#include "toast-int.h"
#include "ws/crc.h"
#include "ws/lsn.h"

/* ---- keys ---- */

struct ts_key
ts_key(char kind)
{
	return (struct ts_key){{(uint8_t)kind}, 1};
}

void
ts_key_be(struct ts_key *k, uint64_t v, int bytes)
{
	while (bytes--)
		k->b[k->n++] = (uint8_t)(v >> 8 * bytes);
}

uint64_t
ts_be(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

struct ts_key
ts_key_chunk(ws_oid rel, ws_oid id, ws_lsn born, uint32_t seq)
{
	struct ts_key k = ts_key('C');

	ts_key_be(&k, rel, 4);
	ts_key_be(&k, id, 4);
	ts_key_be(&k, ~born, 8);
	ts_key_be(&k, seq, 4);
	return k;
}

struct ts_key
ts_key_place(const struct ws_toastplace *at)
{
	struct ts_key k = ts_key('D');

	ts_key_be(&k, at->file, 4);
	ts_key_be(&k, at->blkno, 4);
	ts_key_be(&k, at->off, 2);
	return k;
}

struct ts_key
ts_key_dead(ws_lsn lsn, char kind, uint32_t a, uint32_t b, ws_lsn born)
{
	struct ts_key k = ts_key('P');

	ts_key_be(&k, lsn, 8);
	k.b[k.n++] = (uint8_t)kind;
	ts_key_be(&k, a, 4);
	ts_key_be(&k, b, 4);
	ts_key_be(&k, born, 8);
	return k;
}

/* ---- tables ---- */

int
ts_rel(struct ws_toaststore *s, ws_oid rel, struct ts_rel **out, struct ws_err *err)
{
	struct ts_rel *r = &s->rels[rel % TS_RELS];
	struct ts_key k = ts_key('R');
	MDB_val v;

	*out = r;
	if (r->rel == rel)
		return 0;
	ts_key_be(&k, rel, 4);
	int rc = ts_get(s, &k, &v, err);

	if (rc < 0)
		return -1;
	*r = (struct ts_rel){.rel = rel};
	if (rc == 0)
		return 0;
	if (v.mv_size != 17) {
		r->rel = 0;
		return ts_fail(s, MDB_CORRUPTED, err, "a table's record");
	}
	r->loaded = ws_le64(v.mv_data);
	r->from = ws_le64((uint8_t *)v.mv_data + 8);
	r->unwanted = ((uint8_t *)v.mv_data)[16] != 0;
	r->stored = true;
	return 0;
}

int
ts_rel_put(struct ws_toaststore *s, struct ts_rel *r, struct ws_err *err)
{
	struct ts_key k = ts_key('R');
	uint8_t b[17];

	ts_key_be(&k, r->rel, 4);
	ws_store64(b, r->loaded);
	ws_store64(b + 8, r->from);
	b[16] = r->unwanted;
	r->stored = true;
	return ts_put(s, &k, b, sizeof b, err);
}

/* Is there any chunk of the table?  1, 0, -1. */
static int
has_any(struct ws_toaststore *s, ws_oid rel, struct ws_err *err)
{
	struct ts_key k = ts_key('C');
	MDB_val key, v;

	ts_key_be(&k, rel, 4);
	return ts_seek(s, &k, TS_CHUNK_REL, &key, &v, err);
}

int
ws_toaststore_want(struct ws_toaststore *s, ws_oid rel, bool wanted, struct ws_err *err)
{
	struct ts_rel *r;

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (s->at <= r->loaded)
		return 0;
	if (r->unwanted == !wanted)
		return 1;
	if (!wanted) {
		int rc = has_any(s, rel, err);

		/* Of nothing nothing can be mistaken. */
		if (rc <= 0)
			return rc == 0 ? 1 : -1;
		struct ts_key dead = ts_key_dead(s->at, 'r', rel, 0, 0);

		if (ts_put(s, &dead, NULL, 0, err) != 0)
			return -1;
	}
	r->unwanted = !wanted;
	r->from = s->at;
	return ts_rel_put(s, r, err) == 0 ? 1 : -1;
}

/* ---- a commit's changes ---- */

bool
ws_toaststore_has(const struct ws_toaststore *s, ws_lsn end)
{
	return end <= s->meta.applied.lsn;
}

bool
ws_toaststore_begin(struct ws_toaststore *s, ws_tli tli, ws_lsn end)
{
	if (end <= s->meta.applied.lsn)
		return false;
	s->at = s->meta.busy = end;
	s->meta.applied.tli = tli;
	return true;
}

int
ws_toaststore_end(struct ws_toaststore *s, struct ws_err *err)
{
	if (ts_flush(s, err) != 0)
		return -1;
	s->meta.applied.lsn = s->at;
	s->meta.busy = 0;
	return 0;
}

static uint32_t
checksum(const struct ts_key *k, const uint8_t *data, size_t len)
{
	return WS_CRC_FIN(ws_crc32c(ws_crc32c(WS_CRC_INIT, k->b, k->n), data, len));
}

static int
put_place(struct ws_toaststore *s, ws_oid rel, ws_oid id, ws_lsn born,
          const struct ws_toastplace *at, struct ws_err *err)
{
	struct ts_key k = ts_key_place(at);
	uint8_t b[TS_PLACE_VAL];

	ws_store32(b, rel);
	ws_store32(b + 4, id);
	ws_store64(b + 8, born);
	return ts_put(s, &k, b, sizeof b, err);
}

/* Stores n bytes that hold one chunk, or two: the first of `first` bytes. */
static int
store(struct ws_toaststore *s, const struct ts_chunk *c, uint32_t first, const uint8_t *data,
      uint32_t n, struct ws_err *err)
{
	struct ts_key k = ts_key_chunk(c->rel, c->id, c->born, c->seq);
	uint32_t crc = checksum(&k, data, n);
	MDB_val key = {k.n, k.b}, v = {n + 8, NULL};
	int rc;

	if (ts_room(s, err) != 0)
		return -1;
	s->dirty = true;
	rc = mdb_cursor_put(s->wr, &key, &v, MDB_RESERVE);
	if (rc)
		return ts_fail(s, rc, err, "cannot write");
	ws_store32(v.mv_data, crc);
	ws_store32((uint8_t *)v.mv_data + 4, first);
	memcpy((uint8_t *)v.mv_data + 8, data, n);
	return 0;
}

int
ts_flush(struct ws_toaststore *s, struct ws_err *err)
{
	uint32_t n = s->half.len;

	s->half.len = 0;
	return n ? store(s, &s->half, n, s->half.data, n, err) : 0;
}

static int
put_chunk(struct ws_toaststore *s, ws_oid rel, ws_oid id, ws_lsn born, int32_t seq,
          const uint8_t *data, uint32_t len, const struct ws_toastplace *at, struct ws_err *err)
{
	struct ts_chunk *h = &s->half;
	uint32_t n = (uint32_t)seq;
	bool fits = len && len <= TS_CHUNK_MAX;
	int rc;

	s->st.chunks++;
	s->st.bytes += len;
	if (seq == 0 && put_place(s, rel, id, born, at, err) != 0)
		return -1;
	if (h->len && h->rel == rel && h->id == id && h->born == born && h->seq + 1 == n && fits) {
		uint32_t first = h->len;

		memcpy(h->data + first, data, len);
		h->len = 0;
		return store(s, h, first, h->data, first + len, err);
	}
	if ((rc = ts_flush(s, err)) != 0)
		return rc;
	h->rel = rel;
	h->id = id;
	h->born = born;
	h->seq = n;
	if (n % 2 || !fits)
		return store(s, h, len, data, len, err);
	h->len = len;
	memcpy(h->data, data, len);
	return 0;
}

int
ws_toaststore_put(struct ws_toaststore *s, ws_oid rel, ws_oid id, int32_t seq, const uint8_t *data,
                  uint32_t len, const struct ws_toastplace *at, struct ws_err *err)
{
	struct ts_rel *r;

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (s->at <= r->loaded)
		return 0;
	return put_chunk(s, rel, id, s->at, seq, data, len, at, err);
}

/* The newest value of that id at the commit.  1 *key, *v is its first chunk found; 0; -1. */
static int
newest(struct ws_toaststore *s, ws_oid rel, ws_oid id, ws_lsn end, MDB_val *key, MDB_val *v,
       ws_lsn *born, struct ws_err *err)
{
	struct ts_key k = ts_key_chunk(rel, id, end, 0);
	int rc = ts_seek(s, &k, TS_CHUNK_ID, key, v, err);

	if (rc == 1 && key->mv_size != TS_CHUNK_LEN)
		return ts_fail(s, MDB_CORRUPTED, err, "a chunk's key");
	if (rc == 1)
		*born = ~ts_be((uint8_t *)key->mv_data + TS_CHUNK_ID, 8);
	return rc;
}

int
ws_toaststore_move(struct ws_toaststore *s, ws_oid rel, ws_oid id, const struct ws_toastplace *at,
                   struct ws_err *err)
{
	struct ts_rel *r;
	MDB_val key, v;
	ws_lsn born;

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (s->at <= r->loaded)
		return 0;
	if (ts_flush(s, err) != 0)
		return -1;
	int rc = newest(s, rel, id, s->at, &key, &v, &born, err);

	return rc <= 0 ? rc : put_place(s, rel, id, born, at, err);
}

int
ws_toaststore_delete(struct ws_toaststore *s, const struct ws_toastplace *at, struct ws_err *err)
{
	struct ts_key k = ts_key_place(at);
	struct ts_rel *r;
	MDB_val v;
	int rc = ts_get(s, &k, &v, err);

	/* Another chunk than the first, or of a value that is not kept. */
	if (rc <= 0)
		return rc;
	if (v.mv_size != TS_PLACE_VAL)
		return ts_fail(s, MDB_CORRUPTED, err, "a chunk's place");
	ws_oid rel = ws_le32(v.mv_data), id = ws_le32((uint8_t *)v.mv_data + 4);
	ws_lsn born = ws_le64((uint8_t *)v.mv_data + 8);

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (s->at <= r->loaded)
		return 0;
	struct ts_key dead = ts_key_dead(s->at, 'v', rel, id, born);

	s->st.dead++;
	return ts_put(s, &dead, NULL, 0, err);
}

int
ws_toaststore_void(struct ws_toaststore *s, ws_oid rel, bool gone, struct ws_err *err)
{
	struct ts_key dead = ts_key_dead(s->at, gone ? 'g' : 'r', rel, 0, 0);
	struct ts_rel *r;
	int rc;

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (s->at <= r->loaded)
		return 0;
	rc = r->stored ? 1 : has_any(s, rel, err);
	return rc <= 0 ? rc : ts_put(s, &dead, NULL, 0, err);
}

int
ws_toaststore_drop_file(struct ws_toaststore *s, ws_oid file, struct ws_err *err)
{
	struct ts_key k = ts_key('D'), dead = ts_key_dead(s->at, 'f', file, 0, 0);
	MDB_val key, v;

	ts_key_be(&k, file, 4);
	int rc = ts_seek(s, &k, TS_PLACE_FILE, &key, &v, err);

	return rc <= 0 ? rc : ts_put(s, &dead, NULL, 0, err);
}

int
ws_toaststore_load_put(struct ws_toaststore *s, ws_oid rel, ws_lsn p, ws_oid id, int32_t seq,
                       const uint8_t *data, uint32_t len, const struct ws_toastplace *at,
                       struct ws_err *err)
{
	return put_chunk(s, rel, id, p, seq, data, len, at, err);
}

/* ---- asking ---- */

static int
bad_chunk(const struct ws_toaststore *s, ws_oid rel, ws_oid id, uint32_t seq, struct ws_err *err)
{
	return ws_err_op(err, "toast_store_corrupt",
	                 "%s: chunk %u of value %u of TOAST table %u fails its checksum; remove the "
	                 "store and load the tables again",
	                 s->dir, seq, id, rel);
}

/* The chunks from the one found on, which is to be the first.  1 all, 0 some are missing, -1. */
static int
gather(struct ws_toaststore *s, ws_oid rel, ws_oid id, ws_lsn born, MDB_val *key, MDB_val *v,
       uint32_t size, uint8_t *out, struct ws_err *err)
{
	struct ts_key k = ts_key_chunk(rel, id, born, 0);
	uint32_t have = 0, seq = 0;
	int rc = 1;

	while (rc == 1) {
		k.n = TS_CHUNK_GEN;
		ts_key_be(&k, seq, 4);
		if (key->mv_size != k.n || memcmp(key->mv_data, k.b, k.n))
			return 0;
		const uint8_t *p = v->mv_data;
		size_t n = v->mv_size - 8;

		if (v->mv_size < 8 || checksum(&k, p + 8, n) != ws_le32(p))
			return bad_chunk(s, rel, id, seq, err);
		if (n > size - have)
			break;
		memcpy(out + have, p + 8, n);
		have += (uint32_t)n;
		if (have == size)
			return 1;
		seq += ws_le32(p + 4) < n ? 2 : 1;
		rc = ts_next(s, &k, TS_CHUNK_GEN, key, v, err);
	}
	if (rc <= 0)
		return rc;
	return ws_err_op(err, "toast_corrupt",
	                 "value %u of TOAST table %u has more than %u bytes in its chunks (born at "
	                 WS_LSN_FMT ")",
	                 id, rel, size, WS_LSN_ARG(born));
}

int
ws_toaststore_fetch(struct ws_toaststore *s, ws_oid rel, ws_oid id, ws_lsn end, uint32_t size,
                    uint8_t *out, struct ws_err *err)
{
	struct ts_rel *r;
	MDB_val key, v;
	ws_lsn born;

	if (ts_rel(s, rel, &r, err) != 0)
		return -1;
	if (end <= r->loaded)
		return WS_TOAST_BEFORE_LOAD;
	if (ts_flush(s, err) != 0)
		return -1;
	int rc = r->unwanted ? 0 : newest(s, rel, id, end, &key, &v, &born, err);

	if (rc == 1 && born < r->from)
		rc = 0;
	if (rc == 1)
		rc = gather(s, rel, id, born, &key, &v, size, out, err);
	s->st.fetched += rc == 1;
	s->st.unknown += rc == 0;
	return rc;
}
