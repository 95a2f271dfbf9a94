/* lib/heap/heaprec.c: record bodies, made by hand after access/heapam_xlog.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/heap.h"

static struct ws_err err;
static struct ws_rec rec;
static struct ws_record r;
static struct ws_heaprec h;

/* Bytes are copied to where they end with their memory. */
static const uint8_t *
keep(const void *p, size_t n)
{
	static uint8_t *old[2];
	static int turn;

	turn ^= 1;
	free(old[turn]);
	old[turn] = malloc(n ? n : 1);
	if (n)
		memcpy(old[turn], p, n);
	return old[turn];
}

static int
parse(uint8_t rmid, uint8_t info, const void *main_, size_t nmain, const void *data, size_t ndata)
{
	rec = (struct ws_rec){.rmid = rmid, .info = info, .start = 0x1000};
	memset(&r, 0, sizeof r);
	r.rec = &rec;
	r.main = keep(main_, nmain);
	r.main_len = (uint32_t)nmain;
	if (data) {
		r.nblocks = 1;
		r.blocks[0] = (struct ws_block){.loc = {1663, 5, 16400}, .blkno = 7, .data_len = (uint16_t)ndata};
		r.blocks[0].data = ndata ? keep(data, ndata) : NULL;
	}
	return ws_heaprec_parse(&r, &h, &err);
}

static const uint8_t tup[] = {2, 0, 1, 0, 24, 3, 'a', 'b', 'c'};

static void
test_insert(void **state)
{
	static const uint8_t m[] = {4, 0, 0x08};

	(void)state;
	assert_int_equal(parse(WS_RM_HEAP, 0x80, m, 3, tup, sizeof tup), 1);
	assert_int_equal(h.op, WS_HEAP_INSERT);
	assert_int_equal(h.flags, WS_HR_NEW | WS_HR_INIT_PAGE);
	assert_int_equal(h.off, 4);
	assert_int_equal(h.blkno, 7);
	assert_int_equal(h.loc.rel, 16400);
	assert_int_equal(WS_TUPLE_NATTS(&h.new_), 2);
	assert_int_equal(h.new_.hoff, 24);
	assert_int_equal(h.new_.len, 4);
	assert_memory_equal(h.new_.body, "\3abc", 4);
	static const struct {
		uint8_t bit;
		uint16_t flag;
	} flags[] = {{0x01, 0}, {0x02, WS_HR_LAST_IN_MULTI}, {0x04, WS_HR_SPECULATIVE}, {0x10, WS_HR_TOAST}, {0x20, 0}};

	for (size_t i = 0; i < 5; i++) {
		uint8_t f[] = {4, 0, flags[i].bit};

		assert_int_equal(parse(WS_RM_HEAP, 0x00, f, 3, tup, 0), 1);
		assert_int_equal(h.flags, flags[i].flag);
	}
	/* NEW promised and not there, or too short; no block; short main data. */
	assert_int_equal(parse(WS_RM_HEAP, 0x00, m, 3, tup, 0), -1);
	assert_int_equal(parse(WS_RM_HEAP, 0x00, m, 3, tup, 4), -1);
	assert_int_equal(parse(WS_RM_HEAP, 0x00, m, 3, tup, 5), -1); /* hoff beyond the end */
	assert_int_equal(parse(WS_RM_HEAP, 0x00, m, 3, NULL, 0), -1);
	assert_int_equal(parse(WS_RM_HEAP, 0x00, m, 2, tup, sizeof tup), -1);
	assert_string_equal(err.reason, "wal_corrupt");
}

static void
test_delete(void **state)
{
	uint8_t m[8 + sizeof tup] = {9, 9, 9, 9, 3, 0, 0, 0x04};

	(void)state;
	memcpy(m + 8, tup, sizeof tup);
	assert_int_equal(parse(WS_RM_HEAP, 0x10, m, sizeof m, tup, 0), 1);
	assert_int_equal(h.op, WS_HEAP_DELETE);
	assert_int_equal(h.flags, WS_HR_OLD_KEY);
	assert_int_equal(h.off, 3);
	assert_int_equal(h.old.len, 4);
	for (size_t n = 0; n < 8 + 5 + 1; n++)
		assert_int_equal(parse(WS_RM_HEAP, 0x10, m, n, tup, 0), -1);
	m[7] = 0x02;
	assert_int_equal(parse(WS_RM_HEAP, 0x10, m, sizeof m, tup, 0), 1);
	assert_int_equal(h.flags, WS_HR_OLD_FULL);
	m[7] = 0x08 | 0x10 | 0x01;
	assert_int_equal(parse(WS_RM_HEAP, 0x10, m, 8, tup, 0), 1);
	assert_int_equal(h.flags, WS_HR_SUPER | WS_HR_PARTITION_MOVE);
}

static void
test_update(void **state)
{
	uint8_t m[14 + sizeof tup] = {9, 9, 9, 9, 3, 0, 0, 0x18, 0, 0, 0, 0, 6, 0};

	(void)state;
	memcpy(m + 14, tup, sizeof tup);
	for (uint8_t info = 0x20; info <= 0x40; info += 0x20) {
		assert_int_equal(parse(WS_RM_HEAP, info, m, sizeof m, tup, sizeof tup), 1);
		assert_int_equal(h.op, WS_HEAP_UPDATE);
		assert_int_equal(h.flags, WS_HR_OLD_KEY | WS_HR_NEW);
		assert_int_equal(h.old_off, 3);
		assert_int_equal(h.off, 6);
		assert_int_equal(h.old_blkno, 7);
		assert_int_equal(h.new_.len, 4);
		assert_int_equal(h.old.len, 4);
	}
	/* Block 1: the old page. */
	r.blocks[1] = (struct ws_block){.id = 1, .blkno = 3};
	r.nblocks = 2;
	assert_int_equal(ws_heaprec_parse(&r, &h, &err), 1);
	assert_int_equal(h.old_blkno, 3);
	m[7] = 0x10 | 0x20;
	assert_int_equal(parse(WS_RM_HEAP, 0x20, m, 14, tup, sizeof tup), 1);
	assert_int_equal(h.flags, WS_HR_DELTA);
	m[7] = 0x04;
	assert_int_equal(parse(WS_RM_HEAP, 0x20, m, sizeof m, tup, 0), 1);
	assert_int_equal(h.flags, WS_HR_OLD_FULL);
	assert_int_equal(parse(WS_RM_HEAP, 0x20, m, 13, tup, 0), -1);
	assert_int_equal(parse(WS_RM_HEAP, 0x20, m, 18, tup, 0), -1);
}

static void
test_multi(void **state)
{
	static const uint8_t m[] = {0x0a, 0, 3, 0, 5, 0, 8, 0, 9, 0};
	/* The second is at an odd place until aligned. */
	static const uint8_t data[] = {2, 0, 1, 0, 0, 0, 24, 9, 'a', 0, 1, 0, 1, 0, 0, 0, 24, 9, 3, 0, 1, 0, 0, 0, 24, 9, 'c', 'd'};
	struct ws_heap_multi it;
	struct ws_tuple t;
	uint16_t off;

	(void)state;
	assert_int_equal(parse(WS_RM_HEAP2, 0x50, m, sizeof m, data, sizeof data), 1);
	assert_int_equal(h.op, WS_HEAP_MULTI_INSERT);
	assert_int_equal(h.flags, WS_HR_NEW | WS_HR_LAST_IN_MULTI);
	assert_int_equal(h.ntuples, 3);
	it = ws_heap_multi(&h);
	static const uint32_t lens[] = {2, 1, 3};
	static const uint16_t offs[] = {5, 8, 9};

	/* The first item ends at 9, so one byte of padding precedes the second. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ws_heap_multi_next(&it, &t, &off, &err), 1);
		assert_int_equal(t.len, lens[i]);
		assert_int_equal(off, offs[i]);
	}
	assert_int_equal(ws_heap_multi_next(&it, &t, &off, &err), 0);
	/* Cut anywhere: an error, not fewer tuples. */
	for (size_t n = 1; n < sizeof data; n++) {
		int rc = 1;

		assert_int_equal(parse(WS_RM_HEAP2, 0x50, m, sizeof m, data, n), 1);
		it = ws_heap_multi(&h);
		while (rc == 1)
			rc = ws_heap_multi_next(&it, &t, NULL, &err);
		assert_int_equal(rc, -1);
	}
	/* A byte too many. */
	uint8_t more[sizeof data + 1] = {0};
	int rc = 1;

	memcpy(more, data, sizeof data);
	assert_int_equal(parse(WS_RM_HEAP2, 0x50, m, sizeof m, more, sizeof more), 1);
	it = ws_heap_multi(&h);
	while (rc == 1)
		rc = ws_heap_multi_next(&it, &t, NULL, &err);
	assert_int_equal(rc, -1);
	/* INIT: no offsets. */
	assert_int_equal(parse(WS_RM_HEAP2, 0xd0, m, 4, data, sizeof data), 1);
	it = ws_heap_multi(&h);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(ws_heap_multi_next(&it, &t, &off, &err), 1);
		assert_int_equal(off, i);
	}
	assert_int_equal(parse(WS_RM_HEAP2, 0x50, m, 4, data, sizeof data), -1);
	assert_int_equal(parse(WS_RM_HEAP2, 0x50, m, 9, data, sizeof data), -1);
}

static void
test_others(void **state)
{
	static const uint8_t trunc[] = {5, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0};

	(void)state;
	assert_int_equal(parse(WS_RM_HEAP, 0x30, trunc, sizeof trunc, NULL, 0), 1);
	assert_int_equal(h.op, WS_HEAP_TRUNCATE);
	assert_int_equal(h.flags, WS_HR_CASCADE | WS_HR_RESTART_SEQS);
	assert_int_equal(h.truncate_db, 5);
	assert_int_equal(h.noids, 2);
	assert_int_equal(ws_heaprec_oid(&h, 0), 0x10001);
	assert_int_equal(ws_heaprec_oid(&h, 1), 2);
	assert_int_equal(parse(WS_RM_HEAP, 0x30, trunc, sizeof trunc - 1, NULL, 0), -1);
	assert_int_equal(parse(WS_RM_HEAP, 0x30, trunc, 11, NULL, 0), -1);
	assert_int_equal(parse(WS_RM_HEAP, 0x50, "\7", 2, tup, 0), 1);
	assert_int_equal(h.op, WS_HEAP_CONFIRM);
	assert_int_equal(h.off, 7);
	assert_int_equal(parse(WS_RM_HEAP, 0x50, "\7", 1, tup, 0), -1);
	for (uint8_t info = 0x60; info <= 0x70; info += 0x10)
		assert_int_equal(parse(WS_RM_HEAP, info, tup, 2, tup, 0), 0);
	for (int info = 0; info < 0x80; info += 0x10)
		if (info != 0x50)
			assert_int_equal(parse(WS_RM_HEAP2, (uint8_t)info, NULL, 0, NULL, 0), 0);
	assert_int_equal(parse(WS_RM_BTREE, 0, NULL, 0, NULL, 0), 0);
}

static void
test_chunk(void **state)
{
	static const uint8_t body[] = {0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 'a', 'b', 'c'};
	struct ws_tuple t = {body, sizeof body, 3, 2, 24};
	struct ws_toast_chunk c;

	(void)state;
	assert_int_equal(ws_toast_chunk_parse(&t, &c, &err), 0);
	assert_int_equal(c.id, 1);
	assert_int_equal(c.seq, 2);
	assert_int_equal(c.len, 3);
	assert_memory_equal(c.data, "abc", 3);
	for (t.len = 0; t.len < sizeof body; t.len++)
		assert_int_equal(ws_toast_chunk_parse(&t, &c, &err), -1);
	t.infomask2 = 2;
	assert_int_equal(ws_toast_chunk_parse(&t, &c, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_insert), cmocka_unit_test(test_delete), cmocka_unit_test(test_update),
	    cmocka_unit_test(test_multi),  cmocka_unit_test(test_others), cmocka_unit_test(test_chunk),
	};

	return cmocka_run_group_tests_name("heap-record", tests, NULL, NULL);
}
