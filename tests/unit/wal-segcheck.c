/* lib/wal/segcheck.c: whole segments of one timeline and of several, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "walmake.h"
#include "ws/lsn.h"
#include "ws/record.h"
#include "ws/segcheck.h"

#define SEG   (1u << 20)
#define START ((ws_lsn)3 * SEG)
#define SYSID 0x1122334455667788ull

static uint8_t seg[SEG];
static ws_lsn fork; /* the end of the record behind which timeline 2 begins */

/* A segment that begins in a record and ends in one; with fork_at, timeline 2 goes on from there. */
static void
make(ws_lsn fork_at)
{
	struct walmake m;

	wm_init(&m, START - SEG, SEG, 0xD116);
	fork = 0;
	while (wm_lsn(&m) < START + SEG) {
		if (fork_at && !fork && wm_lsn(&m) >= fork_at) {
			fork = wm_lsn(&m);
			m.tli = 2;
		}
		wm_record(&m, 10, 0, 700, 3001, 7);
	}
	memcpy(seg, m.b.data + SEG, SEG);
	ws_buf_free(&m.b);
}

/* Its findings, with pieces of that size; way is timeline 2's, from at on, or with 0 timeline 1. */
static const char *
check(size_t n, size_t piece, uint64_t system_id, ws_lsn at)
{
	static struct ws_err err;
	struct ws_history_entry e = {1, at, NULL};
	const struct ws_history way = {at ? 2 : 1, at ? 1 : 0, at ? &e : NULL};
	const struct ws_segcheck_opts o = {system_id, SEG, START, &way};
	struct ws_segcheck *c = ws_segcheck_new(&o);
	int rc = 0;

	err = (struct ws_err){0};
	for (size_t i = 0; rc == 0 && i < n; i += piece) {
		/* Of its own, so that nothing reads past it. */
		size_t k = n - i < piece ? n - i : piece;
		uint8_t *p = ws_malloc(k);

		for (size_t j = 0; j < k; j++)
			p[j] = i + j < SEG ? seg[i + j] : 0;
		rc = ws_segcheck_data(c, p, k, &err);
		free(p);
	}
	if (rc == 0)
		rc = ws_segcheck_end(c, &err);
	assert_int_equal(err.status, rc == 0 ? WS_OK : WS_EOPERATOR);
	ws_segcheck_free(c);
	return rc == 0 ? "" : err.reason;
}

static void
test_whole(void **state)
{
	static const size_t pieces[] = {SEG, 262144, 8192, 8191, 17, 1};

	(void)state;
	for (ws_lsn at = 0; at < 2; at++) {
		make(at ? START + 400000 : 0);
		for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
			assert_string_equal(check(SEG, pieces[i], SYSID, fork), "");
	}
	/* The switch is on the page's first byte, or on its last: the page is the descendant's, the ancestor's. */
	make(START + 400000);
	assert_string_equal(check(SEG, SEG, SYSID, ws_seg_start(fork, WS_PAGE_SIZE) + WS_PAGE_SIZE), "");
	assert_string_equal(check(SEG, SEG, SYSID, ws_seg_start(fork, WS_PAGE_SIZE) + 1), "");
	assert_string_equal(check(SEG, SEG, SYSID, ws_seg_start(fork, WS_PAGE_SIZE)), "wal_corrupt");
	assert_string_equal(check(SEG, SEG, SYSID, ws_seg_start(fork, WS_PAGE_SIZE) + WS_PAGE_SIZE + 1), "wal_corrupt");
}

static void
test_wrong(void **state)
{
	(void)state;
	make(0);
	assert_string_equal(check(SEG, SEG, SYSID + 1, 0), "system_id_changed");
	assert_string_equal(check(SEG - 1, SEG, SYSID, 0), "wal_corrupt");
	assert_string_equal(check(SEG + 1, SEG, SYSID, 0), "wal_corrupt");
	assert_string_equal(check(0, SEG, SYSID, 0), "wal_corrupt");
	/* Timeline 1's where 2 should have begun. */
	assert_string_equal(check(SEG, SEG, SYSID, START + 400000), "wal_corrupt");
	for (size_t at = 0; at < SEG; at += 44444) {
		seg[at] ^= 1;
		assert_string_not_equal(check(SEG, 8192, SYSID, 0), "");
		seg[at] ^= 1;
	}
	seg[5 * WS_PAGE_SIZE + 8 + 3] ^= 1; /* a page's address */
	assert_string_equal(check(SEG, 8192, SYSID, 0), "wal_corrupt");
	seg[5 * WS_PAGE_SIZE + 8 + 3] ^= 1;
	/* WAL that ends in it, as of a server that crashed: it is no whole segment. */
	memset(seg + SEG - 3 * WS_PAGE_SIZE, 0, 3 * WS_PAGE_SIZE);
	assert_string_equal(check(SEG, 8192, SYSID, 0), "wal_corrupt");
}

/* Behind a segment switch there may be pages or zeros. */
static void
test_switch(void **state)
{
	struct walmake m;

	(void)state;
	wm_init(&m, START, SEG, 0xD116);
	for (int i = 0; i < 100; i++)
		wm_record(&m, 10, 0, 700, 300, 7);
	wm_record_part(&m, WS_RM_XLOG, 0x40, 0, NULL, 0, 0);
	size_t used = m.b.len;

	while (wm_lsn(&m) < START + SEG) {
		if (!(wm_lsn(&m) & (WS_PAGE_SIZE - 1)))
			wm_page(&m);
		else
			ws_buf_putc(&m.b, 0);
	}
	memcpy(seg, m.b.data, SEG);
	ws_buf_free(&m.b);
	assert_string_equal(check(SEG, 8192, SYSID, 0), "");
	seg[SEG - WS_PAGE_SIZE + 4] = 9; /* of another timeline */
	assert_string_equal(check(SEG, 8192, SYSID, 0), "wal_corrupt");
	memset(seg + used, 0, SEG - used);
	assert_string_equal(check(SEG, 8192, SYSID, 0), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_switch),
	};

	return cmocka_run_group_tests_name("wal-segcheck", tests, NULL, NULL);
}
