/* lib/wal: CRC, page headers, the record reader on made WAL, records, images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <lz4.h>
#include <zstd.h>

#include "walmake.h"
#include "ws/pglz.h"
#include "ws/walread.h"

#define SEG (1u << 20)

static void
test_crc(void **state)
{
	uint8_t b[4096];

	(void)state;
	/* RFC 3720 B.4 */
	assert_int_equal(WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, "123456789", 9)), 0xe3069283u);
	memset(b, 0, 32);
	assert_int_equal(WS_CRC_FIN(ws_crc32c_sw(WS_CRC_INIT, b, 32)), 0x8a9136aau);
	for (size_t i = 0; i < sizeof b; i++)
		b[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t off = 0; off < 9; off++)
		for (size_t n = 0; n < 300; n++)
			assert_int_equal(ws_crc32c(1, b + off, n), ws_crc32c_sw(1, b + off, n));
	assert_int_equal(ws_crc32c(WS_CRC_INIT, b, sizeof b), ws_crc32c_sw(WS_CRC_INIT, b, sizeof b));
}

static void
test_page(void **state)
{
	struct walmake m;
	struct ws_page_header h;
	struct ws_err err;

	(void)state;
	wm_init(&m, 0x300000, SEG, 0xD116);
	wm_page(&m);
	assert_int_equal(ws_page_header_parse(m.b.data, 40, &h), 0);
	assert_int_equal(h.size, 40);
	assert_int_equal(h.segsize, SEG);
	assert_true(h.system_id == m.sysid && h.pageaddr == 0x300000 && h.tli == 1);
	assert_int_equal(ws_page_header_parse(m.b.data, 39, &h), -1);
	assert_int_equal(ws_walver_by_magic(0xD118)->major, 18);
	assert_int_equal(ws_walver_by_major(16)->magic, 0xD113);
	assert_false(ws_walver_by_magic(0xD110)->supported);
	assert_null(ws_walver_by_magic(0xD10D));
	ws_walver_refuse(0xD10D, 0x1000000, &err);
	assert_string_equal(err.reason, "wal_too_old");
	assert_non_null(strstr(err.msg, "PostgreSQL 14"));
	ws_walver_refuse(0xD119, 0x1000000, &err);
	assert_string_equal(err.reason, "wal_too_new");
	ws_buf_free(&m.b);
}

/* The records of some WAL in one text, and how the reading ended. */
struct seen {
	struct ws_buf text;
	int rc;
	struct ws_err err;
	bool torn, clean;
	ws_lsn pending, end, dropped, dropped_page;
};

static void
seen_free(struct seen *s)
{
	ws_buf_free(&s->text);
}

static struct seen
read_all(const struct ws_buf *b, ws_lsn start, ws_lsn at, ws_lsn first, size_t chunk)
{
	struct seen s = {0};
	struct ws_walreader *r = ws_walreader_new(0, 0, 0);
	struct ws_rec rec;

	ws_walreader_seek(r, at, first);
	for (ws_lsn l = at; l < start + b->len && s.rc == 0;) {
		size_t n = (size_t)(start + b->len - l) < chunk ? (size_t)(start + b->len - l) : chunk;
		uint8_t *copy = ws_malloc(n); /* so that reading past the chunk is seen by tools */

		memcpy(copy, b->data + (l - start), n);
		assert_int_equal(ws_walreader_feed(r, l, copy, n, &s.err), 0);
		while ((s.rc = ws_walreader_next(r, &rec, &s.err)) == 1) {
			ws_buf_printf(&s.text, "%llX-%llX tli %u len %u xid %u rm %u info %02X crc %08X\n",
			              (unsigned long long)rec.start, (unsigned long long)rec.end, rec.tli, rec.tot_len,
			              rec.xid, rec.rmid, rec.info, ws_crc32c(0, rec.data, rec.tot_len));
			assert_true(ws_record_crc_ok(rec.data, rec.tot_len));
		}
		free(copy);
		l += n;
	}
	s.torn = ws_walreader_torn(r);
	s.clean = ws_walreader_clean_end(r);
	s.pending = ws_walreader_pending(r);
	s.end = ws_walreader_end(r);
	s.dropped = ws_walreader_dropped(r, &s.dropped_page);
	ws_buf_cstr(&s.text);
	ws_walreader_free(r);
	return s;
}

static size_t
lines(const struct seen *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->text.len; i++)
		n += s->text.data[i] == '\n';
	return n;
}

/* Many lengths, so that headers and records meet page and segment ends in every way. */
static void
make_mixed(struct walmake *m, int n)
{
	unsigned x = 12345;

	for (int i = 0; i < n; i++) {
		x = x * 1103515245u + 12345u;
		uint32_t len = x >> 16 & 0x1ff;

		if (i % 97 == 0)
			len = 20000;
		if (i % 1009 == 0)
			len = 3 * SEG / 2;
		wm_record(m, WS_RM_HEAP, 0, 700 + (unsigned)i % 5, len, (uint8_t)i);
	}
}

static void
test_chunks(void **state)
{
	struct walmake m;
	static const size_t chunks[] = {1, 3, 7, 24, 40, 100, 4096, 8192, 8193, 65536, 262144};

	(void)state;
	wm_init(&m, 0x500000, SEG, 0xD118);
	make_mixed(&m, 3000);
	struct seen whole = read_all(&m.b, m.start, m.start, m.start, m.b.len);

	assert_int_equal(whole.rc, 0);
	assert_int_equal(lines(&whole), 3000);
	assert_true(whole.end == wm_lsn(&m));
	for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
		struct seen s = read_all(&m.b, m.start, m.start, m.start, chunks[i]);

		assert_int_equal(s.rc, 0);
		assert_string_equal((char *)s.text.data, (char *)whole.text.data);
		seen_free(&s);
	}
	/* From pages all over: what comes is the tail of the whole. */
	for (ws_lsn at = m.start; at < wm_lsn(&m); at += 17 * WS_PAGE_SIZE) {
		struct seen s = read_all(&m.b, m.start, at, at, 30000);

		assert_int_equal(s.rc, 0);
		if (s.text.len)
			assert_non_null(strstr((char *)whole.text.data, (char *)s.text.data));
		seen_free(&s);
	}
	seen_free(&whole);
	ws_buf_free(&m.b);
}

static void
test_first(void **state)
{
	struct walmake m;

	(void)state;
	wm_init(&m, 0x500000, SEG, 0xD116);
	wm_record(&m, WS_RM_HEAP, 0, 7, 10, 0);
	ws_lsn second = wm_record(&m, WS_RM_HEAP, 0, 7, 10, 0), third = wm_record(&m, WS_RM_HEAP, 0, 7, 10, 0);
	struct seen a = read_all(&m.b, m.start, m.start, second, 1000);
	struct seen b = read_all(&m.b, m.start, m.start, second + 1, 1000);
	char want[32];

	assert_int_equal(lines(&a), 2);
	assert_int_equal(lines(&b), 1);
	snprintf(want, sizeof want, "%llX-", (unsigned long long)third);
	assert_int_equal(strncmp((char *)b.text.data, want, strlen(want)), 0);
	seen_free(&a);
	seen_free(&b);
	ws_buf_free(&m.b);
}

static void
test_switch(void **state)
{
	struct walmake m;

	(void)state;
	wm_init(&m, 0x500000, SEG, 0xD113);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	wm_record_part(&m, WS_RM_XLOG, 0x40, 0, NULL, 0, 0);
	wm_zero_to(&m, 0x600000);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	for (size_t chunk = 1; chunk < 3 * SEG; chunk = chunk * 3 + 1) {
		struct seen s = read_all(&m.b, m.start, m.start, m.start, chunk);

		assert_int_equal(s.rc, 0);
		assert_int_equal(lines(&s), 3);
		assert_non_null(strstr((char *)s.text.data, "-600000 tli 1 len 24"));
		seen_free(&s);
	}
	ws_buf_free(&m.b);
}

static void
test_overwritten(void **state)
{
	struct walmake m;
	uint8_t *body = ws_calloc(1, 9000);

	(void)state;
	wm_init(&m, 0x500000, SEG, 0xD116);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	/* A record of which only the first page was written before the crash. */
	uint32_t room = (uint32_t)(WS_PAGE_SIZE - (wm_lsn(&m) & (WS_PAGE_SIZE - 1)));
	ws_lsn lost = wm_record_part(&m, WS_RM_HEAP, 0, 7, body, 9000, room);

	m.rem = 0;
	m.next_info = WS_PAGE_FIRST_IS_OVERWRITE_CONTRECORD;
	ws_lsn page = wm_lsn(&m);

	wm_record(&m, WS_RM_XLOG, 0xD0, 0, 16, 0);
	for (size_t chunk = 1; chunk < 40000; chunk = chunk * 2 + 1) {
		struct seen s = read_all(&m.b, m.start, m.start, m.start, chunk);

		assert_int_equal(s.rc, 0);
		assert_int_equal(lines(&s), 2);
		assert_true(s.dropped == lost && s.dropped_page == page);
		seen_free(&s);
	}
	free(body);
	ws_buf_free(&m.b);
}

static void
expect_end(struct walmake *m, size_t nrec, bool torn, bool clean, ws_lsn pending)
{
	for (size_t chunk = 1; chunk < 200000; chunk = chunk * 5 + 1) {
		struct seen s = read_all(&m->b, m->start, m->start, m->start, chunk);

		assert_int_equal(s.rc, -1);
		assert_int_equal(lines(&s), nrec);
		assert_int_equal(s.torn, torn);
		assert_int_equal(s.clean, clean);
		assert_true(s.pending == pending);
		seen_free(&s);
	}
}

static void
test_ends(void **state)
{
	struct walmake m, old;

	(void)state;
	/* zeros behind the last record, in the page and from a page's start */
	wm_init(&m, 0x500000, SEG, 0xD116);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	ws_lsn end = wm_lsn(&m);

	wm_zero_to(&m, 0x504000);
	expect_end(&m, 1, true, true, end);
	ws_buf_free(&m.b);
	/* a stale page behind a record that should go on there */
	wm_init(&m, 0x500000, SEG, 0xD116);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	uint8_t *body = ws_calloc(1, 9000);
	ws_lsn part = wm_record_part(&m, WS_RM_HEAP, 0, 7, body, 9000, 8192 - 40 - 128);

	wm_init(&old, 0x200000, SEG, 0xD116);
	make_mixed(&old, 200);
	ws_buf_put(&m.b, old.b.data + WS_PAGE_SIZE, WS_PAGE_SIZE);
	expect_end(&m, 1, true, true, part);
	ws_buf_free(&m.b);
	ws_buf_free(&old.b);
	free(body);
}

static void
test_damage(void **state)
{
	struct walmake m;

	(void)state;
	wm_init(&m, 0x500000, SEG, 0xD116);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	ws_lsn second = wm_record(&m, WS_RM_HEAP, 0, 7, 9000, 0);

	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	/* Every bit of the second record's header and some of its body. */
	for (unsigned byte = 0; byte < 60; byte++)
		for (unsigned bit = 0; bit < 8; bit++) {
			uint8_t *p = m.b.data + (second - m.start) + byte;

			*p ^= (uint8_t)(1u << bit);
			struct seen s = read_all(&m.b, m.start, m.start, m.start, 4000);

			assert_int_equal(lines(&s), 1);
			/* A length that announces more than there is only waits. */
			if (s.rc == 0)
				assert_true(byte < 4 && s.pending == second);
			else
				assert_true(s.rc == -1 && s.torn && !s.clean);
			seen_free(&s);
			*p ^= (uint8_t)(1u << bit);
		}
	struct seen s = read_all(&m.b, m.start, m.start, m.start, 4000);

	assert_int_equal(lines(&s), 3);
	seen_free(&s);
	/* Another cluster's page, and another major's. */
	uint8_t *page2 = m.b.data + WS_PAGE_SIZE;

	ws_store16(page2, 0xD118);
	s = read_all(&m.b, m.start, m.start, m.start, 4000);
	assert_int_equal(s.rc, -1);
	assert_string_equal(s.err.reason, "major_changed");
	assert_false(s.torn);
	seen_free(&s);
	ws_buf_free(&m.b);
}

static void
test_positions(void **state)
{
	struct ws_walreader *r = ws_walreader_new(SEG, 5, 0);
	struct walmake m;
	struct ws_rec rec;
	struct ws_err err;

	(void)state;
	wm_init(&m, 0x500000, SEG, 0xD116);
	wm_record(&m, WS_RM_HEAP, 0, 7, 100, 0);
	ws_walreader_seek(r, 0x500000, 0x500000);
	assert_int_equal(ws_walreader_feed(r, 0x500001, m.b.data, 10, &err), -1);
	assert_int_equal(ws_walreader_feed(r, 0x500000, m.b.data, 30, &err), 0);
	assert_int_equal(ws_walreader_next(r, &rec, &err), 0);
	assert_int_equal(ws_walreader_feed(r, 0x500000 + 30, m.b.data + 30, m.b.len - 30, &err), 0);
	assert_int_equal(ws_walreader_next(r, &rec, &err), -1); /* system id 5 was wanted */
	assert_string_equal(err.reason, "system_id_changed");
	assert_int_equal(ws_walreader_next(r, &rec, &err), -1);
	ws_walreader_free(r);
	ws_buf_free(&m.b);
}

/* A record by hand: two blocks of one relation, data, an image with a hole, origin, top-level xid. */
static void
test_record(void **state)
{
	struct ws_buf b = {0};
	struct ws_record d;
	struct ws_err err;
	uint8_t page[WS_PAGE_SIZE], want[WS_PAGE_SIZE];

	(void)state;
	for (int i = 0; i < 24; i++)
		ws_buf_putc(&b, 0);
	ws_buf_put(&b, "\x00\x20\x05\x00", 4); /* block 0, main fork, data of 5 */
	ws_buf_put32(&b, 1663);
	ws_buf_put32(&b, 5);
	ws_buf_put32(&b, 16400);
	ws_buf_put32(&b, 77);
	ws_buf_put(&b, "\x03\x92\x00\x00", 4); /* block 3, fork 2, same relation, image */
	ws_buf_put16(&b, 1000);
	ws_buf_put16(&b, 600); /* hole offset */
	ws_buf_putc(&b, WS_IMG_HAS_HOLE);
	ws_buf_put32(&b, 9);
	ws_buf_putc(&b, 253);
	ws_buf_put16(&b, 4);
	ws_buf_putc(&b, 252);
	ws_buf_put32(&b, 4711);
	ws_buf_put(&b, "\xff\x02", 2);
	ws_buf_put(&b, "hello", 5);
	for (int i = 0; i < 1000; i++)
		ws_buf_putc(&b, (uint8_t)(i | 1));
	ws_buf_put(&b, "mn", 2);
	struct ws_rec rec = {.data = b.data, .tot_len = (uint32_t)b.len};

	assert_int_equal(ws_record_parse(&rec, &d, &err), 0);
	assert_int_equal(d.nblocks, 2);
	assert_int_equal(d.origin, 4);
	assert_int_equal(d.toplevel_xid, 4711);
	assert_true(d.main_len == 2 && !memcmp(d.main, "mn", 2));
	assert_true(d.blocks[0].data_len == 5 && !memcmp(d.blocks[0].data, "hello", 5));
	assert_null(d.blocks[0].img);
	const struct ws_block *k = ws_record_block(&d, 3);

	assert_non_null(k);
	assert_null(ws_record_block(&d, 1));
	assert_true(k->loc.rel == 16400 && k->fork == 2 && k->blkno == 9 && k->hole_len == 7192);
	assert_int_equal(ws_fpi_restore(k, page, &err), 0);
	memset(want, 0, sizeof want);
	for (int i = 0; i < 1000; i++)
		want[i < 600 ? i : i + 7192] = (uint8_t)(i | 1);
	assert_memory_equal(page, want, sizeof want);
	assert_int_equal(ws_fpi_restore(&d.blocks[0], page, &err), -1);
	/* A shorter length is refused, but where the headers end and the lengths add up again. */
	int taken = 0;

	for (uint32_t n = 0; n < rec.tot_len; n++) {
		uint8_t *copy = ws_malloc(n + 1);
		struct ws_rec cut = {.data = copy, .tot_len = n};

		memcpy(copy, b.data, n);
		taken += ws_record_parse(&cut, &d, &err) == 0;
		free(copy);
	}
	assert_int_equal(taken, 5); /* nothing, one block, two, + origin, + top-level xid */
	ws_buf_free(&b);
}

static void
test_images(void **state)
{
	uint8_t raw[WS_PAGE_SIZE], packed[2 * WS_PAGE_SIZE], page[WS_PAGE_SIZE];
	struct ws_err err;
	struct ws_block b = {.flags = WS_BKP_HAS_IMAGE, .img = packed, .hole_off = 1000, .hole_len = 2000};

	(void)state;
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (uint8_t)(i / 50);
	memset(raw + 1000, 0, 2000);
	uint8_t whole[WS_PAGE_SIZE - 2000];

	memcpy(whole, raw, 1000);
	memcpy(whole + 1000, raw + 3000, sizeof raw - 3000);
	b.img_info = WS_IMG_HAS_HOLE | WS_IMG_LZ4;
	b.img_len = (uint16_t)LZ4_compress_default((char *)whole, (char *)packed, sizeof whole, sizeof packed);
	assert_int_equal(ws_fpi_restore(&b, page, &err), 0);
	assert_memory_equal(page, raw, sizeof raw);
	b.img_len--;
	assert_int_equal(ws_fpi_restore(&b, page, &err), -1);
	b.img_info = WS_IMG_HAS_HOLE | WS_IMG_ZSTD;
	b.img_len = (uint16_t)ZSTD_compress(packed, sizeof packed, whole, sizeof whole, 1);
	memset(page, 1, sizeof page);
	assert_int_equal(ws_fpi_restore(&b, page, &err), 0);
	assert_memory_equal(page, raw, sizeof raw);
	packed[0] ^= 1;
	assert_int_equal(ws_fpi_restore(&b, page, &err), -1);
}

static void
test_pglz(void **state)
{
	/* 'a', 'b', then 10 from 2 back (overlapping), then 18+5 from 1 back: by hand */
	static const uint8_t s[] = {0x0c, 'a', 'b', 0x07, 0x02, 0x0f, 0x01, 5};
	uint8_t d[64];

	(void)state;
	assert_int_equal(ws_pglz_decompress(s, sizeof s, d, 35), 0);
	assert_memory_equal(d, "ababababababbbbbbbbbbbbbbbbbbbbbbbb", 35);
	assert_int_equal(ws_pglz_decompress(s, sizeof s, d, 36), -1);
	assert_int_equal(ws_pglz_decompress(s, sizeof s - 1, d, 35), -1);
	assert_int_equal(ws_pglz_decompress(s, 4, d, 35), -1);
	static const uint8_t far[] = {0x02, 'a', 0x00, 0x02};

	assert_int_equal(ws_pglz_decompress(far, sizeof far, d, 4), -1);
	assert_int_equal(ws_pglz_decompress(s, 0, d, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_crc),        cmocka_unit_test(test_page),
	    cmocka_unit_test(test_chunks),     cmocka_unit_test(test_first),
	    cmocka_unit_test(test_switch),     cmocka_unit_test(test_overwritten),
	    cmocka_unit_test(test_ends),       cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_positions),  cmocka_unit_test(test_record),
	    cmocka_unit_test(test_images),     cmocka_unit_test(test_pglz),
	};

	return cmocka_run_group_tests_name("wal-read", tests, NULL, NULL);
}
