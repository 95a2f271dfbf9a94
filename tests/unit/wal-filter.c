/* The filter on WAL made here: pages, records across them, births, locks, burials, state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ws/crc.h"
#include "ws/cursor.h"
#include "ws/filter.h"
#include "ws/mem.h"
#include "ws/rewrite.h"
#include "ws/walread.h"

#define SEGSIZE (1024u * 1024)
#define START   ((ws_lsn)16 * SEGSIZE)
#define SYSID   7000000000000000001u
#define MAGIC17 0xD116

/* ---- making WAL ---- */

struct wal {
	struct ws_buf b; /* from START */
	ws_lsn prev;
};

static void
page_header(struct wal *w, uint32_t rem)
{
	ws_lsn at = START + w->b.len;
	bool is_long = at % SEGSIZE == 0;

	ws_buf_put16(&w->b, MAGIC17);
	ws_buf_put16(&w->b, (uint16_t)((rem ? WS_PAGE_FIRST_IS_CONTRECORD : 0) | (is_long ? WS_PAGE_LONG_HEADER : 0)));
	ws_buf_put32(&w->b, 1);
	ws_buf_put64(&w->b, at);
	ws_buf_put64(&w->b, rem);
	if (is_long) {
		ws_buf_put64(&w->b, SYSID);
		ws_buf_put32(&w->b, SEGSIZE);
		ws_buf_put32(&w->b, WS_PAGE_SIZE);
	}
}

static void
put(struct wal *w, const uint8_t *p, size_t n)
{
	while (n) {
		size_t room = WS_PAGE_SIZE - w->b.len % WS_PAGE_SIZE;

		if (room == WS_PAGE_SIZE) {
			page_header(w, (uint32_t)n);
			continue;
		}
		room = room < n ? room : n;
		ws_buf_put(&w->b, p, room);
		p += room;
		n -= room;
	}
}

/* Adds a record with the given body (what follows the header); returns its start. */
static ws_lsn
add_body(struct wal *w, uint8_t rmid, uint8_t info, ws_xid xid, const uint8_t *body, size_t n)
{
	struct ws_buf r = {0};

	if (w->b.len % WS_PAGE_SIZE == 0)
		page_header(w, 0);
	ws_lsn start = START + w->b.len;

	ws_buf_put32(&r, (uint32_t)(WS_REC_HDR_SIZE + n));
	ws_buf_put32(&r, xid);
	ws_buf_put64(&r, w->prev);
	ws_buf_putc(&r, info);
	ws_buf_putc(&r, rmid);
	ws_buf_put16(&r, 0);
	ws_buf_put32(&r, 0);
	ws_buf_put(&r, body, n);
	uint32_t crc = ws_crc32c(WS_CRC_INIT, r.data + 24, n);

	ws_store32(r.data + 20, WS_CRC_FIN(ws_crc32c(crc, r.data, 20)));
	put(w, r.data, r.len);
	while (w->b.len % 8)
		ws_buf_putc(&w->b, 0);
	w->prev = start;
	ws_buf_free(&r);
	return start;
}

static void
main_data(struct ws_buf *body, const void *p, size_t n)
{
	if (n <= 255) {
		ws_buf_putc(body, 255);
		ws_buf_putc(body, (uint8_t)n);
	} else {
		ws_buf_putc(body, 254);
		ws_buf_put32(body, (uint32_t)n);
	}
	ws_buf_put(body, p, n);
}

/* A record with main data of u32s, and a top-level xid when top != 0. */
static ws_lsn
add_main(struct wal *w, uint8_t rmid, uint8_t info, ws_xid xid, ws_xid top, const uint32_t *v, size_t n)
{
	struct ws_buf body = {0};

	if (top) {
		ws_buf_putc(&body, 252);
		ws_buf_put32(&body, top);
	}
	main_data(&body, v, n * 4);
	ws_lsn at = add_body(w, rmid, info, xid, body.data, body.len);

	ws_buf_free(&body);
	return at;
}

/* A heap insert of len bytes into (db, rel). */
static ws_lsn
add_insert(struct wal *w, ws_xid xid, ws_xid top, ws_oid db, ws_oid rel, uint16_t len)
{
	struct ws_buf body = {0};
	uint8_t *data = ws_calloc(1, len + 3u);

	memset(data, 'x', len);
	ws_buf_putc(&body, 0);
	ws_buf_putc(&body, len ? WS_BKP_HAS_DATA : 0);
	ws_buf_put16(&body, len);
	ws_buf_put32(&body, 1663);
	ws_buf_put32(&body, db);
	ws_buf_put32(&body, rel);
	ws_buf_put32(&body, 0);
	if (top) {
		ws_buf_putc(&body, 252);
		ws_buf_put32(&body, top);
	}
	ws_buf_putc(&body, 255);
	ws_buf_putc(&body, 3);
	ws_buf_put(&body, data, len + 3u);
	ws_lsn at = add_body(w, WS_RM_HEAP, 0, xid, body.data, body.len);

	free(data);
	ws_buf_free(&body);
	return at;
}

static ws_lsn
add_lock(struct wal *w, ws_xid xid, ws_xid top, ws_oid db, ws_oid rel)
{
	uint32_t v[] = {1, xid, db, rel};

	return add_main(w, WS_RM_STANDBY, 0x00, xid, top, v, 4);
}

static ws_lsn
add_birth(struct wal *w, ws_xid xid, ws_xid top, ws_oid db, ws_oid rel)
{
	uint32_t v[] = {1663, db, rel, 0};

	return add_main(w, WS_RM_SMGR, 0x10, xid, top, v, 4);
}

/* A commit (op 0x00) or abort (0x20) that drops one file when rel != 0. */
static ws_lsn
add_end(struct wal *w, uint8_t op, ws_xid xid, ws_oid db, ws_oid rel)
{
	uint32_t v[] = {0, 0, 1 << 2, 1, 1663, db, rel};

	return rel ? add_main(w, WS_RM_XACT, op | 0x80, xid, 0, v, 7) : add_main(w, WS_RM_XACT, op, xid, 0, v, 2);
}

static ws_lsn
add_running(struct wal *w, ws_xid next, ws_xid oldest, ws_xid running)
{
	uint32_t v[] = {running ? 1 : 0, 0, 0, next, oldest, next - 1, running};

	return add_main(w, WS_RM_STANDBY, 0x10, 0, 0, v, running ? 7 : 6);
}

/* ---- filtering it ---- */

struct result {
	struct ws_buf out;
	struct ws_filter *f;
	struct ws_pos pos;
	struct ws_filterstat all;
};

static void
collect(struct result *r, const struct ws_filterout *o)
{
	if (o->n)
		assert_int_equal(o->lsn, START + r->out.len);
	ws_buf_put(&r->out, o->p, o->n);
}

static void
run_chunks(struct result *r, const struct wal *w, size_t piece, struct ws_filter *f)
{
	struct ws_filterstream *s = ws_filterstream_new(f, 0, SYSID);
	struct ws_filterout o;
	struct ws_err err = {0};

	memset(r, 0, sizeof *r);
	r->f = f;
	ws_filterstream_seek(s, START, (struct ws_pos){1, START});
	for (size_t at = 0; at < w->b.len; at += piece) {
		size_t n = w->b.len - at < piece ? w->b.len - at : piece;

		if (ws_filterstream_feed(s, 1, START + at, w->b.data + at, n, &o, &err) != 0)
			fail_msg("%s", err.msg);
		collect(r, &o);
	}
	ws_filterstream_rest(s, &o);
	collect(r, &o);
	r->pos = ws_filterstream_pos(s);
	for (int i = 0; i < 256; i++) {
		r->all.records += ws_filterstream_stats(s)[i].records;
		r->all.blanked += ws_filterstream_stats(s)[i].blanked;
	}
	assert_int_equal(r->out.len, w->b.len);
	ws_filterstream_free(s);
}

/* The same in place: two buffers take turns, and what was given out is looked at only after the next
 * feed, as late as it may be. */
static void
same_in_place(const struct wal *w, size_t piece, size_t room, const struct ws_buf *want)
{
	struct ws_filter *f = ws_filter_new();
	struct ws_filterstream *s = ws_filterstream_new(f, 0, SYSID);
	uint8_t *mem[2] = {malloc(room + piece), malloc(room + piece)};
	struct ws_filterout before = {0}, o;
	struct result r = {0};
	struct ws_err err = {0};
	int turn = 0;

	ws_filterstream_seek(s, START, (struct ws_pos){1, START});
	for (size_t at = 0; at < w->b.len; at += piece, turn ^= 1) {
		size_t n = w->b.len - at < piece ? w->b.len - at : piece;

		memset(mem[turn], 0xee, room);
		memcpy(mem[turn] + room, w->b.data + at, n);
		if (ws_filterstream_edit(s, 1, START + at, mem[turn] + room, n, room, &o, &err) != 0)
			fail_msg("%s", err.msg);
		collect(&r, &before);
		before = o;
	}
	collect(&r, &before);
	ws_filterstream_rest(s, &o);
	collect(&r, &o);
	assert_int_equal(r.out.len, want->len);
	assert_memory_equal(r.out.data, want->data, want->len);
	ws_buf_free(&r.out);
	free(mem[0]);
	free(mem[1]);
	ws_filterstream_free(s);
	ws_filter_free(f);
}

/* The rmgr of the record at lsn in the output; the whole output is read, so every CRC and link is
 * checked on the way. */
static int
rmgr_at(const struct result *r, ws_lsn lsn)
{
	struct ws_walreader *rd = ws_walreader_new(0, SYSID, 0);
	struct ws_rec rec;
	struct ws_record parsed;
	struct ws_err err = {0};
	int rc, found = -1;

	ws_walreader_seek(rd, START, START);
	assert_int_equal(ws_walreader_feed(rd, START, r->out.data, r->out.len, &err), 0);
	while ((rc = ws_walreader_next(rd, &rec, &err)) == 1) {
		assert_int_equal(ws_record_parse(&rec, &parsed, &err), 0);
		if (rec.start == lsn)
			found = rec.rmid;
		if (rec.start == lsn && rec.rmid == WS_RM_XLOG)
			assert_int_equal(rec.info, 0x20);
	}
	if (rc < 0)
		fail_msg("%s", err.msg);
	ws_walreader_free(rd);
	return found;
}

static void
assert_kept(const struct result *r, ws_lsn lsn, bool kept)
{
	int rmid = rmgr_at(r, lsn);

	assert_true(rmid >= 0);
	if (kept)
		assert_int_not_equal(rmid, WS_RM_XLOG);
	else
		assert_int_equal(rmid, WS_RM_XLOG);
}

static void
done(struct result *r, struct wal *w)
{
	ws_filter_free(r->f);
	ws_buf_free(&r->out);
	ws_buf_free(&w->b);
}

static void
test_fixed_rules(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;
	ws_lsn cat = add_insert(&w, 700, 0, 5, 1259, 40), user = add_insert(&w, 700, 0, 5, 16384, 40);
	ws_lsn shared = add_insert(&w, 700, 0, 0, 20000, 40), lo = add_insert(&w, 700, 0, 5, 2613, 40);
	ws_lsn lo_index = add_insert(&w, 700, 0, 5, 2683, 40);
	uint32_t cid[] = {700, 0, 0, 0, 1663, 5, 1259, 0, 0}, reuse[] = {1663, 5, 16400, 1, 0, 0};
	ws_lsn new_cid = add_main(&w, WS_RM_HEAP2, 0x70, 700, 0, cid, 9);
	ws_lsn reuse_page = add_main(&w, WS_RM_BTREE, 0xD0, 700, 0, reuse, 6);
	uint32_t trunc[] = {5, 1, 0, 16384};
	ws_lsn truncate = add_main(&w, WS_RM_HEAP, 0x30, 700, 0, trunc, 4);
	ws_lsn lock = add_lock(&w, 700, 0, 5, 16384);
	ws_lsn custom = add_main(&w, 200, 0, 700, 0, cid, 9), msg = add_main(&w, WS_RM_LOGICALMSG, 0, 700, 0, cid, 9);
	ws_lsn end = add_end(&w, 0, 700, 5, 0);

	run_chunks(&r, &w, w.b.len, ws_filter_new());
	assert_kept(&r, cat, true);
	assert_kept(&r, user, false);
	assert_kept(&r, shared, true);
	assert_kept(&r, lo, false);
	assert_kept(&r, lo_index, false);
	assert_kept(&r, new_cid, true);
	assert_kept(&r, reuse_page, false);
	assert_kept(&r, truncate, false);
	assert_kept(&r, lock, false);
	assert_kept(&r, custom, false);
	assert_kept(&r, msg, false);
	assert_kept(&r, end, true);
	done(&r, &w);
}

/* Every length that a header's form depends on, across pages and segments, in any chunking. */
static void
test_lengths_and_chunks(void **state)
{
	(void)state;
	static const size_t pieces[] = {1, 7, 8191, 8192, 65536, 1u << 30};
	static const uint16_t lens[] = {0, 1, 2, 200, 208, 209, 210, 211, 212, 213, 214, 230, 240, 250, 8000, 8400, 65000};
	struct wal w = {0};
	struct ws_buf first = {0};

	for (int round = 0; w.b.len < SEGSIZE + 100000; round++)
		for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
			add_insert(&w, 700, 0, 5, 20000, (uint16_t)(lens[i] + round % 500));
			add_insert(&w, 701, 0, 5, 1249, 61);
		}
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		struct result r;
		struct wal cut = w;

		run_chunks(&r, &w, pieces[i], ws_filter_new());
		assert_int_equal(r.all.blanked * 2, r.all.records);
		assert_int_equal(rmgr_at(&r, w.prev), WS_RM_HEAP);
		if (!first.len)
			ws_buf_put(&first, r.out.data, r.out.len);
		assert_memory_equal(first.data, r.out.data, first.len);
		cut.b = (struct ws_buf){0};
		done(&r, &cut);
	}
	static const size_t rooms[] = {0, 100, 16384};

	for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
		for (size_t piece = 4096; piece <= 262144; piece *= 4)
			same_in_place(&w, piece, rooms[i], &first);
	ws_buf_free(&first);
	ws_buf_free(&w.b);
}

static void
test_births_by_lock(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;

	add_running(&w, 690, 690, 0);
	add_lock(&w, 700, 0, 5, 1259);
	add_birth(&w, 700, 0, 5, 30000);
	add_birth(&w, 800, 0, 5, 30001); /* somebody else's */
	add_birth(&w, 701, 700, 5, 30002); /* a subtransaction of the holder */
	add_lock(&w, 900, 0, 5, 2613);
	add_birth(&w, 900, 0, 5, 30003); /* large objects are user data */
	ws_lsn a = add_insert(&w, 700, 0, 5, 30000, 50), b = add_insert(&w, 800, 0, 5, 30001, 50);
	ws_lsn c = add_insert(&w, 701, 0, 5, 30002, 50), d = add_insert(&w, 900, 0, 5, 30003, 50);
	ws_lsn other = add_insert(&w, 700, 0, 6, 30000, 50);

	add_end(&w, 0, 700, 5, 0);
	ws_lsn later = add_insert(&w, 950, 0, 5, 30000, 50);

	add_birth(&w, 700, 0, 5, 30004); /* the lock is gone */
	ws_lsn e = add_insert(&w, 700, 0, 5, 30004, 50);

	add_end(&w, 0, 951, 5, 30000); /* buried */
	ws_lsn dead = add_insert(&w, 950, 0, 5, 30000, 50);

	run_chunks(&r, &w, 100, ws_filter_new());
	assert_kept(&r, a, true);
	assert_kept(&r, b, false);
	assert_kept(&r, c, true);
	assert_kept(&r, d, false);
	assert_kept(&r, other, false);
	assert_kept(&r, later, true);
	assert_kept(&r, e, false);
	assert_kept(&r, dead, false);
	done(&r, &w);
}

/* A birth with xid 0 while a lock is held: kept until somebody's xid shows whose it is. */
static void
test_births_without_xid(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;

	add_running(&w, 690, 690, 0);
	add_birth(&w, 0, 0, 5, 29999); /* nobody holds a lock */
	ws_lsn none = add_insert(&w, 700, 0, 5, 29999, 50);

	add_lock(&w, 700, 0, 5, 2662);
	add_birth(&w, 0, 0, 5, 30000);
	add_birth(&w, 0, 0, 5, 30001);
	add_birth(&w, 0, 0, 5, 30002);
	ws_lsn unknown = add_insert(&w, 0, 0, 5, 30000, 50);
	ws_lsn ours = add_insert(&w, 705, 700, 5, 30000, 50), user = add_insert(&w, 800, 0, 5, 30001, 50);

	add_lock(&w, 801, 0, 5, 30002); /* CREATE INDEX locks its own oid */
	ws_lsn index = add_insert(&w, 0, 0, 5, 30002, 50);

	add_end(&w, 0, 700, 5, 0);
	ws_lsn later = add_insert(&w, 900, 0, 5, 30000, 50);

	run_chunks(&r, &w, 333, ws_filter_new());
	assert_kept(&r, none, false);
	assert_kept(&r, unknown, true);
	assert_kept(&r, ours, true);
	assert_kept(&r, later, true);
	assert_kept(&r, user, false);
	assert_kept(&r, index, false);
	done(&r, &w);
}

/* Locks of transactions that a crash ended are reaped by the next list of running ones. */
static void
test_running_reaps(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;

	add_lock(&w, 700, 0, 5, 1259);
	add_lock(&w, 710, 0, 5, 1249);
	add_running(&w, 720, 705, 710);
	add_birth(&w, 0, 0, 5, 30000); /* 710 still holds one */
	ws_lsn a = add_insert(&w, 710, 0, 5, 30000, 50);

	add_running(&w, 730, 730, 0);
	add_birth(&w, 0, 0, 5, 30001);
	ws_lsn b = add_insert(&w, 740, 0, 5, 30001, 50);

	run_chunks(&r, &w, 4096, ws_filter_new());
	assert_kept(&r, a, true);
	assert_kept(&r, b, false);
	done(&r, &w);
}

static void
test_databases(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;

	add_lock(&w, 700, 0, 5, 1259);
	add_birth(&w, 700, 0, 5, 30000);
	add_end(&w, 0, 700, 5, 0);
	uint32_t copy[] = {100, 1663, 5, 1663}, walcopy[] = {101, 1663};

	add_main(&w, WS_RM_DBASE, 0x00, 710, 0, copy, 4);
	ws_lsn a = add_insert(&w, 800, 0, 100, 30000, 50);

	add_main(&w, WS_RM_DBASE, 0x10, 720, 0, walcopy, 2);
	add_birth(&w, 720, 0, 101, 30000);
	add_birth(&w, 720, 0, 102, 30000); /* not the new database */
	ws_lsn b = add_insert(&w, 720, 0, 101, 30000, 50), c = add_insert(&w, 720, 0, 102, 30000, 50);

	/* Moved from 1663 to 5000, then dropped. */
	uint32_t move[] = {100, 5000, 100, 1663}, left[] = {100, 1, 1663}, drop[] = {100, 1, 5000};

	add_main(&w, WS_RM_DBASE, 0x00, 730, 0, move, 4);
	add_main(&w, WS_RM_DBASE, 0x20, 730, 0, left, 3);
	ws_lsn d = add_insert(&w, 800, 0, 100, 30000, 50);

	add_main(&w, WS_RM_DBASE, 0x20, 740, 0, drop, 3);
	ws_lsn e = add_insert(&w, 800, 0, 100, 30000, 50);

	run_chunks(&r, &w, 4096, ws_filter_new());
	assert_kept(&r, a, true);
	assert_kept(&r, b, true);
	assert_kept(&r, c, false);
	assert_kept(&r, d, true);
	assert_kept(&r, e, false);
	done(&r, &w);
}

static void
test_tablespace_path(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;
	struct ws_buf body = {0};
	uint8_t main[24] = {1, 2, 3, 4};

	strcpy((char *)main + 4, "/srv/space");
	main_data(&body, main, sizeof main);
	for (int i = 0; i < 3; i++) { /* one of them lies across pages */
		add_insert(&w, 700, 0, 5, 1259, 8060);
		add_body(&w, WS_RM_TBLSPC, 0, 700, body.data, body.len);
	}
	assert_non_null(memmem(w.b.data, w.b.len, "/srv", 4));
	run_chunks(&r, &w, 4096, ws_filter_new());
	assert_null(memmem(r.out.data, r.out.len, "/srv", 4));
	assert_null(memmem(r.out.data, r.out.len, "space", 5));
	assert_int_equal(rmgr_at(&r, w.prev), WS_RM_TBLSPC);
	ws_buf_free(&body);
	done(&r, &w);
}

/* A mapped catalog's file that the filter took for a user's must not pass. */
static void
test_relmap_confirms(void **state)
{
	(void)state;
	struct wal w = {0};
	struct ws_err err = {0};
	struct ws_filterout o;
	uint32_t map[] = {5, 1663, 524, 0x592717, 2, 1259, 30000, 1249, 1249};
	char path[] = "/tmp/ws-kept-XXXXXX";
	int fd = mkstemp(path);
	struct ws_pos since;

	assert_int_equal(write(fd, "# 1 0/1000000\n5 30001\n", 22), 22);
	close(fd);
	add_insert(&w, 700, 0, 5, 30001, 50);
	add_main(&w, WS_RM_RELMAP, 0, 700, 0, map, 9);
	struct ws_filter *f = ws_filter_new();
	struct ws_filterstream *s = ws_filterstream_new(f, 0, SYSID);

	assert_int_equal(ws_filter_read_kept(f, path, &since, &err), 0);
	assert_int_equal(since.lsn, START);
	assert_true(ws_filter_keeps(f, 5, 30001));
	ws_filterstream_seek(s, START, (struct ws_pos){1, START});
	assert_int_equal(ws_filterstream_feed(s, 1, START, w.b.data, w.b.len, &o, &err), -1);
	assert_string_equal(err.reason, "catalog_missed");
	ws_filterstream_free(s);
	ws_filter_free(f);
	ws_buf_free(&w.b);
	unlink(path);
}

static void
test_kept_list_is_checked(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "5 30001\n", "# 1\n", "# 1 0/1000000\n5\n", "# 1 0/1000000\n5 3x\n",
	                                  "# 1 0/1000000\n5 30001"};
	char path[] = "/tmp/ws-kept-XXXXXX";
	int fd = mkstemp(path);
	struct ws_pos since;
	struct ws_err err;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct ws_filter *f = ws_filter_new();

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bad[i], strlen(bad[i]), 0), strlen(bad[i]));
		assert_int_equal(ws_filter_read_kept(f, path, &since, &err), -1);
		ws_filter_free(f);
	}
	close(fd);
	unlink(path);
}

/* The state written at every record and read back gives the same output as no restart at all. */
static void
test_restart_anywhere(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result whole;

	add_running(&w, 690, 690, 0);
	for (uint32_t i = 0; i < 60; i++) {
		ws_xid x = 700 + i * 10;

		add_lock(&w, x + 1, x, 5, i % 3 ? 1259 : 16400);
		add_birth(&w, i % 2 ? x + 1 : 0, 0, 5, 30000 + i);
		add_insert(&w, x + 1, 0, 5, 30000 + i, (uint16_t)(i * 70));
		if (i % 4)
			add_end(&w, i % 5 ? 0 : 0x20, x, 5, i % 7 ? 0 : 30000 + i / 2);
		add_insert(&w, x + 2, 0, 5, 30000 + i / 2, 30);
	}
	run_chunks(&whole, &w, 1u << 20, ws_filter_new());

	struct ws_filter *f = ws_filter_new();
	struct ws_pos pos = {1, START};
	struct ws_buf out = {0}, saved = {0};
	int restarts = 0;

	while (out.len < w.b.len) {
		struct ws_filterstream *s = ws_filterstream_new(f, SEGSIZE, SYSID);
		struct ws_err err = {0};
		struct ws_filterout o;
		ws_lsn at = pos.lsn & ~(ws_lsn)(WS_PAGE_SIZE - 1);
		uint64_t id;

		ws_filterstream_seek(s, at, pos);
		/* Ever a few bytes, until a record was judged; then everything but the state is lost. */
		while (at < START + w.b.len && ws_filterstream_pos(s).lsn == pos.lsn) {
			size_t n = START + w.b.len - at < 40 ? START + w.b.len - at : 40;

			if (ws_filterstream_feed(s, 1, at, w.b.data + (at - START), n, &o, &err) != 0)
				fail_msg("%s", err.msg);
			at += n;
			if (o.n) {
				assert_true(o.lsn <= START + out.len);
				out.len = (size_t)(o.lsn - START);
				ws_buf_put(&out, o.p, o.n);
			}
		}
		pos = ws_filterstream_pos(s);
		saved.len = 0;
		ws_filter_save(f, pos, SYSID, &saved);
		ws_filterstream_free(s);
		ws_filter_free(f);
		f = ws_filter_new();
		assert_int_equal(ws_filter_load(f, "x", saved.data, saved.len, &pos, &id, &err), 0);
		assert_int_equal(id, SYSID);
		restarts++;
		if (at >= START + w.b.len)
			break;
	}
	assert_true(restarts > 200);
	assert_true(out.len >= (size_t)(whole.pos.lsn - START));
	assert_memory_equal(out.data, whole.out.data, (size_t)(whole.pos.lsn - START));
	ws_filter_free(f);
	ws_buf_free(&out);
	ws_buf_free(&saved);
	done(&whole, &w);
}

static void
test_state_damage(void **state)
{
	(void)state;
	struct ws_filter *f = ws_filter_new();
	struct ws_buf b = {0};
	struct ws_pos pos;
	struct ws_err err;
	uint64_t id;

	ws_filter_save(f, (struct ws_pos){1, 0x1000028}, SYSID, &b);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 1;
		assert_int_equal(ws_filter_load(f, "x", b.data, b.len, &pos, &id, &err), -1);
		b.data[i] ^= 1;
		assert_int_equal(ws_filter_load(f, "x", b.data, i, &pos, &id, &err), -1);
	}
	assert_int_equal(ws_filter_load(f, "x", b.data, b.len, &pos, &id, &err), 0);
	assert_int_equal(pos.lsn, 0x1000028);
	ws_buf_free(&b);
	ws_filter_free(f);
}

/* Two thirds of a record, then a page that says it was never finished: the bytes stay. */
static void
test_never_whole(void **state)
{
	(void)state;
	struct wal w = {0};
	struct result r;

	add_insert(&w, 700, 0, 5, 1259, 40);
	add_insert(&w, 700, 0, 5, 20000, 20000);
	w.b.len = WS_PAGE_SIZE;
	size_t cut = w.b.len;

	page_header(&w, 0);
	ws_store16(w.b.data + cut + 2, WS_PAGE_FIRST_IS_OVERWRITE_CONTRECORD);
	w.prev = START + 40;
	ws_lsn user = add_insert(&w, 700, 0, 5, 20000, 40);

	for (size_t piece = 1000; piece < 30000; piece += 7000) {
		run_chunks(&r, &w, piece, ws_filter_new());
		assert_memory_equal(r.out.data, w.b.data, cut);
		assert_memory_not_equal(r.out.data + (user - START), w.b.data + (user - START), 80);
		ws_filter_free(r.f);
		ws_buf_free(&r.out);
	}
	ws_buf_free(&w.b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fixed_rules),        cmocka_unit_test(test_lengths_and_chunks),
	    cmocka_unit_test(test_births_by_lock),     cmocka_unit_test(test_births_without_xid),
	    cmocka_unit_test(test_running_reaps),      cmocka_unit_test(test_databases),
	    cmocka_unit_test(test_tablespace_path),    cmocka_unit_test(test_relmap_confirms),
	    cmocka_unit_test(test_kept_list_is_checked), cmocka_unit_test(test_restart_anywhere),
	    cmocka_unit_test(test_state_damage),       cmocka_unit_test(test_never_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
