/* lib/xact/quick.c against ws_record_parse and ws_heaprec_parse, on made and on damaged records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/xact/decoder.h"
#include "ws/cursor.h"

static uint64_t seed = 11;

static unsigned
rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void
put_tuple(struct ws_buf *b)
{
	unsigned n = rnd(40);

	ws_buf_put16(b, (uint16_t)rnd(65536));
	ws_buf_put16(b, (uint16_t)rnd(65536));
	ws_buf_putc(b, (uint8_t)(rnd(10) ? 24 : rnd(256)));
	while (n--)
		ws_buf_putc(b, (uint8_t)rnd(256));
}

/* A heap record, mostly well-formed; header fields that do not matter are zero. */
static void
make(struct ws_buf *b, struct ws_rec *rec)
{
	static const uint8_t ops[] = {0x00, 0x10, 0x20, 0x40, 0x50, 0x80, 0xA0, 0x30};
	struct ws_buf data = {0}, mainb = {0};
	uint8_t op = ops[rnd(8)], flags = (uint8_t)rnd(32);

	b->len = 0;
	for (int i = 0; i < 24; i++)
		ws_buf_putc(b, 0);
	if (rnd(5))
		put_tuple(&data);
	ws_buf_put32(&mainb, rnd(1000));
	ws_buf_put32(&mainb, rnd(1u << 30) << 2);
	mainb.data[7] = flags;
	mainb.data[2] = flags;
	if ((op & 0x70) == 0x20 || (op & 0x70) == 0x40) {
		ws_buf_put32(&mainb, 7);
		ws_buf_put16(&mainb, (uint16_t)rnd(300));
	}
	if (rnd(2))
		put_tuple(&mainb);
	if ((op & 0x70) == 0x00 && rnd(2))
		mainb.len = 3;
	ws_buf_putc(b, 0);
	ws_buf_putc(b, data.len ? WS_BKP_HAS_DATA : 0);
	ws_buf_put16(b, (uint16_t)data.len);
	ws_buf_put32(b, 1663);
	ws_buf_put32(b, 5);
	ws_buf_put32(b, 16384 + rnd(10));
	ws_buf_put32(b, rnd(100000));
	if (rnd(3) == 0) {
		ws_buf_putc(b, (uint8_t)(1 + rnd(2)));
		ws_buf_putc(b, (uint8_t)(0x80 | rnd(3)));
		ws_buf_put16(b, 0);
		ws_buf_put32(b, rnd(1000));
	}
	if (rnd(4) == 0) {
		ws_buf_putc(b, 253);
		ws_buf_put16(b, 3);
	}
	if (rnd(4) == 0) {
		ws_buf_putc(b, 252);
		ws_buf_put32(b, 800);
	}
	if (rnd(10)) {
		ws_buf_putc(b, 255);
		ws_buf_putc(b, (uint8_t)mainb.len);
	} else {
		ws_buf_putc(b, 254);
		ws_buf_put32(b, (uint32_t)mainb.len);
	}
	ws_buf_put(b, data.data, data.len);
	ws_buf_put(b, mainb.data, mainb.len);
	*rec = (struct ws_rec){.start = 0x1000,
	                       .data = b->data,
	                       .tot_len = (uint32_t)b->len,
	                       .xid = 700,
	                       .info = op,
	                       .rmid = WS_RM_HEAP};
	ws_buf_free(&data);
	ws_buf_free(&mainb);
}

static void
same_tuple(const struct ws_tuple *a, const struct ws_tuple *b)
{
	assert_ptr_equal(a->body, b->body);
	assert_int_equal(a->len, b->len);
	assert_int_equal(a->infomask, b->infomask);
	assert_int_equal(a->infomask2, b->infomask2);
	assert_int_equal(a->hoff, b->hoff);
}

/* True when the quick way took it. */
static bool
compare(const struct ws_rec *rec)
{
	struct ws_heaprec q, h;
	struct ws_record r;
	struct ws_err err;

	memset(&q, 0xAA, sizeof q);
	if (!ws_quick_heap(rec, &q))
		return false;
	assert_int_equal(ws_record_parse(rec, &r, &err), 0);
	assert_int_equal(ws_heaprec_parse(&r, &h, &err), 1);
	assert_int_equal(q.op, h.op);
	assert_int_equal(q.flags, h.flags);
	assert_memory_equal(&q.loc, &h.loc, sizeof q.loc);
	assert_int_equal(q.blkno, h.blkno);
	assert_int_equal(q.off, h.off);
	assert_int_equal(q.old_off, h.old_off);
	assert_int_equal(q.old_blkno, h.old_blkno);
	if (h.flags & WS_HR_NEW)
		same_tuple(&q.new_, &h.new_);
	if (h.flags & (WS_HR_OLD_FULL | WS_HR_OLD_KEY))
		same_tuple(&q.old, &h.old);
	return true;
}

static void
same_as_the_long_way(void **state)
{
	struct ws_buf b = {0};
	struct ws_rec rec;
	unsigned taken = 0, taken_damaged = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		make(&b, &rec);
		taken += compare(&rec);
		/* Of its exact length on the heap, so that valgrind and sanitizers see reads past it. */
		uint8_t *copy = malloc(rec.tot_len);

		memcpy(copy, rec.data, rec.tot_len);
		copy[24 + rnd(rec.tot_len - 24)] ^= (uint8_t)(1 + rnd(255));
		rec.data = copy;
		if (rnd(3) == 0)
			rec.tot_len = 24 + rnd(rec.tot_len - 24);
		taken_damaged += compare(&rec);
		free(copy);
	}
	assert_true(taken > 50000);
	assert_true(taken_damaged > 10000);
	ws_buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_the_long_way)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
