/* lib/wal/fpi.c: the row at a line pointer of a page's image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/cursor.h"
#include "ws/mem.h"
#include "ws/record.h"
#include "ws/walpage.h"

static struct ws_block
whole_page(const uint8_t *page)
{
	return (struct ws_block){.flags = WS_BKP_HAS_IMAGE, .img = page, .img_len = WS_PAGE_SIZE};
}

static bool
row_at(const uint8_t *img, uint16_t off, uint32_t lp_at, uint32_t lp, uint8_t hoff, size_t *at,
       size_t *n)
{
	uint8_t in[WS_PAGE_SIZE], *page = ws_malloc(WS_PAGE_SIZE);
	const uint8_t *row;
	struct ws_block b = whole_page(in);

	memcpy(in, img, sizeof in);
	if (lp_at)
		ws_store32(in + lp_at, lp);
	if ((lp & 0x7fff) + 22 < WS_PAGE_SIZE)
		in[(lp & 0x7fff) + 22] = hoff;
	bool is = ws_fpi_row(&b, off, page, &row, n);

	if (is) {
		/* All of it is on the page. */
		assert_true(row >= page && row + *n <= page + WS_PAGE_SIZE);
		*at = (size_t)(row - page);
	}
	free(page);
	return is;
}

#define LP(at, len) ((uint32_t)(at) | 1u << 15 | (uint32_t)(len) << 17)

static void
test_line_pointers(void **state)
{
	uint8_t img[WS_PAGE_SIZE] = {0};
	size_t at, n;

	(void)state;
	assert_true(row_at(img, 1, 24, LP(8000, 100), 24, &at, &n));
	assert_int_equal(at, 8024);
	assert_int_equal(n, 76);
	/* Line pointers that are not there. */
	assert_false(row_at(img, 0, 24, LP(8000, 100), 24, &at, &n));
	assert_false(row_at(img, 2, 24, LP(8000, 100), 24, &at, &n));
	for (uint32_t off = 1; off <= 0xffff; off += off < 2030 || off > 2060 ? 13 : 1)
		assert_false(row_at(img, (uint16_t)off, 0, 0, 0, &at, &n));
	/* The last one that fits lies at the page's end. */
	assert_true(row_at(img, 2042, 8188, LP(8000, 100), 24, &at, &n));
	assert_false(row_at(img, 2043, 8188, LP(8000, 100), 24, &at, &n));
	/* Past the page; up to its end. */
	assert_true(row_at(img, 1, 24, LP(8092, 100), 24, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8093, 100), 24, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8191, 100), 24, &at, &n));
	assert_false(row_at(img, 1, 24, LP(0x7fff, 0x7fff), 24, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8192, 23), 23, &at, &n));
	/* Shorter than a header; a header that is longer than the tuple, or too short. */
	assert_false(row_at(img, 1, 24, LP(8000, 0), 0, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8000, 22), 22, &at, &n));
	assert_true(row_at(img, 1, 24, LP(8000, 23), 23, &at, &n));
	assert_int_equal(n, 0);
	assert_false(row_at(img, 1, 24, LP(8000, 23), 24, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8000, 100), 22, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8000, 100), 0, &at, &n));
	assert_false(row_at(img, 1, 24, LP(8000, 100), 101, &at, &n));
	assert_true(row_at(img, 1, 24, LP(8000, 100), 100, &at, &n));
	assert_int_equal(n, 0);
}

/* Any line pointer at all. */
static void
test_noise(void **state)
{
	uint8_t img[WS_PAGE_SIZE];
	uint32_t x = 2463534242u;
	size_t at, n, found = 0;

	(void)state;
	for (size_t i = 0; i < sizeof img; i++)
		img[i] = (uint8_t)(i * 37);
	for (int i = 0; i < 20000; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		found += row_at(img, 1, 24, x, (uint8_t)(x >> 8), &at, &n);
	}
	assert_true(found > 100);
}

static void
test_images(void **state)
{
	uint8_t img[WS_PAGE_SIZE] = {0}, page[WS_PAGE_SIZE];
	struct ws_block b = whole_page(img);
	const uint8_t *row;
	size_t n;

	(void)state;
	b.img = NULL;
	assert_false(ws_fpi_row(&b, 1, page, &row, &n));
	/* Compressed, and not what it says. */
	b.img = img;
	b.img_len = 100;
	for (int method = WS_IMG_PGLZ; method <= WS_IMG_ZSTD; method <<= 1) {
		b.img_info = (uint8_t)method;
		assert_false(ws_fpi_row(&b, 1, page, &row, &n));
	}
	/* The row would be in the hole, which is zeros. */
	b = (struct ws_block){.flags = WS_BKP_HAS_IMAGE, .img = img, .img_info = WS_IMG_HAS_HOLE,
	                      .img_len = 28, .hole_off = 28, .hole_len = WS_PAGE_SIZE - 28};
	ws_store32(img + 24, LP(8000, 100));
	assert_false(ws_fpi_row(&b, 1, page, &row, &n));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_line_pointers),
	    cmocka_unit_test(test_noise),
	    cmocka_unit_test(test_images),
	};

	return cmocka_run_group_tests_name("wal-fpirow", tests, NULL, NULL);
}
