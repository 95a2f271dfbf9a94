/* lib/toast: commits applied once, whatever is read again; deletes, copies, loads, forks; against a
 * model, with the store closed at any moment as by kill -9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ws/mem.h"
#include "ws/toaststore.h"

static char dir[64];
static struct ws_toaststore *s;
static struct ws_err err;

static void
fresh(void)
{
	char cmd[128];

	ws_toaststore_close(s);
	s = NULL;
	if (*dir) {
		snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
		assert_int_equal(system(cmd), 0);
	}
	strcpy(dir, "/tmp/ws-toast.XXXXXX");
	assert_non_null(mkdtemp(dir));
}

static void
reopen(void)
{
	ws_toaststore_close(s);
	s = ws_toaststore_open(dir, 7, 5, &err);
	if (!s)
		fail_msg("%s", err.msg);
}

static int
teardown(void **state)
{
	(void)state;
	fresh();
	return rmdir(dir);
}

/* The bytes of a value: told by what it is. */
static void
bytes(ws_oid rel, ws_oid id, ws_lsn born, uint32_t size, uint8_t *out)
{
	for (uint32_t i = 0; i < size; i++)
		out[i] = (uint8_t)(rel * 31 + id * 7 + born * 3 + i / 251);
}

#define CHUNK 1996u

static void
put(ws_oid rel, ws_oid id, ws_lsn born, uint32_t size, ws_oid file, uint32_t blk)
{
	uint8_t *b = ws_malloc(size);
	struct ws_toastplace at = {file, blk, 1};

	bytes(rel, id, born, size, b);
	for (uint32_t seq = 0; seq * CHUNK < size; seq++, at.off++) {
		uint32_t n = size - seq * CHUNK < CHUNK ? size - seq * CHUNK : CHUNK;

		assert_int_equal(
			ws_toaststore_put(s, rel, id, (int32_t)seq, b + seq * CHUNK, n, &at, &err), 0);
	}
	free(b);
}

static int
get(ws_oid rel, ws_oid id, ws_lsn end, uint32_t size, ws_lsn born)
{
	uint8_t *out = ws_malloc(size), *want = ws_malloc(size);
	int rc = ws_toaststore_fetch(s, rel, id, end, size, out, &err);

	if (rc == WS_TOAST_FOUND) {
		bytes(rel, id, born, size, want);
		assert_memory_equal(out, want, size);
	}
	free(out);
	free(want);
	return rc;
}

static void
del(ws_oid file, uint32_t blk)
{
	struct ws_toastplace at = {file, blk, 1};

	assert_int_equal(ws_toaststore_delete(s, &at, &err), 0);
}

static void
purge(ws_lsn floor)
{
	while (ws_toaststore_purge(s, floor, 100, &err) == 1)
		;
}

static void
values_come_back(void **state)
{
	(void)state;
	fresh();
	reopen();
	assert_true(ws_toaststore_begin(s, 1, 100));
	put(1, 10, 100, 5000, 50, 0);
	put(1, 11, 100, 1996, 50, 1);
	put(2, 10, 100, 3000000, 51, 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	assert_int_equal(get(1, 10, 100, 5000, 100), 1);
	assert_int_equal(get(1, 10, 99, 5000, 100), 0);
	assert_int_equal(get(1, 11, 200, 1996, 100), 1);
	assert_int_equal(get(2, 10, 200, 3000000, 100), 1);
	assert_int_equal(get(2, 11, 200, 10, 100), 0);
	/* Fewer chunks than the pointer says: unknown, never cut short. */
	assert_int_equal(get(1, 10, 100, 5001, 100), 0);
	/* More: the pointer is wrong. */
	assert_int_equal(get(1, 10, 100, 4999, 100), -1);
	assert_string_equal(err.reason, "toast_corrupt");
	/* Forgotten without a sync, there with one. */
	assert_int_equal(ws_toaststore_sync(s, &err), 0);
	assert_true(ws_toaststore_begin(s, 1, 200));
	put(1, 12, 200, 100, 50, 2);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	reopen();
	assert_int_equal(get(1, 12, 200, 100, 200), 0);
	assert_int_equal(get(1, 10, 100, 5000, 100), 1);
	assert_false(ws_toaststore_begin(s, 1, 100));
	assert_true(ws_toaststore_begin(s, 1, 200));
	assert_null(ws_toaststore_open(dir, 7, 5, &err)); /* one at a time */
	assert_int_equal(err.status, WS_ETEMP);
	ws_toaststore_close(s);
	s = NULL;
	assert_null(ws_toaststore_open(dir, 8, 5, &err));
	assert_string_equal(err.reason, "toast_store_foreign");
}

static void
the_dead_stay_until_the_floor(void **state)
{
	(void)state;
	fresh();
	reopen();
	ws_toaststore_begin(s, 1, 100);
	put(1, 10, 100, 5000, 50, 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	ws_toaststore_begin(s, 1, 200);
	del(50, 0);
	del(50, 9); /* nobody's */
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	/* The same oid, at the same place. */
	ws_toaststore_begin(s, 1, 300);
	put(1, 10, 300, 6000, 50, 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(199);
	assert_int_equal(get(1, 10, 150, 5000, 100), 1);
	assert_int_equal(get(1, 10, 300, 6000, 300), 1);
	purge(200);
	assert_int_equal(get(1, 10, 150, 5000, 100), 0);
	assert_int_equal(get(1, 10, 300, 6000, 300), 1);
	/* A place that is left over names a value that is gone: nothing happens. */
	ws_toaststore_begin(s, 1, 400);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	ws_toaststore_begin(s, 1, 500);
	del(50, 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(1000);
	assert_int_equal(get(1, 10, 300, 6000, 300), 0);
}

static void
tables_that_move_and_go(void **state)
{
	struct ws_toastplace there = {60, 3, 4};

	(void)state;
	fresh();
	reopen();
	ws_toaststore_begin(s, 1, 100);
	for (ws_oid id = 1; id <= 300; id++)
		put(1, id, 100, 4000, 50, id);
	put(2, 1, 100, 4000, 51, 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	/* VACUUM FULL. */
	ws_toaststore_begin(s, 1, 200);
	assert_int_equal(ws_toaststore_move(s, 1, 7, &there, &err), 0);
	assert_int_equal(ws_toaststore_move(s, 1, 999, &there, &err), 0);
	assert_int_equal(ws_toaststore_drop_file(s, 50, &err), 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(250);
	assert_int_equal(get(1, 7, 250, 4000, 100), 1);
	ws_toaststore_begin(s, 1, 300);
	del(50, 8);
	assert_int_equal(ws_toaststore_delete(s, &there, &err), 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(300);
	assert_int_equal(get(1, 7, 350, 4000, 100), 0);
	assert_int_equal(get(1, 8, 350, 4000, 100), 1);
	/* TRUNCATE, with new values in its transaction and after. */
	ws_toaststore_begin(s, 1, 400);
	assert_int_equal(ws_toaststore_void(s, 1, false, &err), 0);
	put(1, 1000, 400, 4000, 61, 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	assert_int_equal(get(1, 8, 399, 4000, 100), 1);
	purge(400);
	assert_int_equal(get(1, 8, 399, 4000, 100), 0);
	assert_int_equal(get(1, 1000, 500, 4000, 400), 1);
	ws_toaststore_begin(s, 1, 500);
	assert_int_equal(ws_toaststore_void(s, 1, true, &err), 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(500);
	assert_int_equal(get(1, 1000, 500, 4000, 400), 0);
	assert_int_equal(get(2, 1, 500, 4000, 100), 1);
}

static void
a_load_counts_from_its_point(void **state)
{
	struct ws_toastplace at = {50, 1, 1};
	uint8_t b[100];

	(void)state;
	fresh();
	reopen();
	ws_toaststore_begin(s, 1, 100);
	put(1, 10, 100, 5000, 50, 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	assert_int_equal(ws_toaststore_load(s, 1, 50, 1000, &err), 0);
	bytes(1, 20, 1000, 100, b);
	assert_int_equal(ws_toaststore_load_put(s, 1, 1000, 20, 0, b, 100, &at, &err), 0);
	assert_int_equal(ws_toaststore_sync(s, &err), 0);
	reopen();
	/* WAL from before it. */
	ws_toaststore_begin(s, 1, 900);
	put(1, 30, 900, 100, 50, 2);
	del(50, 1);
	assert_int_equal(ws_toaststore_void(s, 1, true, &err), 0);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(950);
	assert_int_equal(get(1, 30, 900, 100, 900), WS_TOAST_BEFORE_LOAD);
	assert_int_equal(get(1, 10, 1001, 5000, 100), 0);
	assert_int_equal(get(1, 30, 1001, 100, 900), 0);
	assert_int_equal(get(1, 20, 1001, 100, 1000), 1);
	ws_toaststore_begin(s, 1, 1100);
	del(50, 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	purge(1100);
	assert_int_equal(get(1, 20, 1200, 100, 1000), 0);
}

static void
unseen_chunks_are_never_mistaken(void **state)
{
	(void)state;
	fresh();
	reopen();
	ws_toaststore_begin(s, 1, 100);
	assert_int_equal(ws_toaststore_want(s, 1, true, &err), 1);
	put(1, 10, 100, 5000, 50, 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	ws_toaststore_begin(s, 1, 200);
	assert_int_equal(ws_toaststore_want(s, 1, false, &err), 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	assert_int_equal(get(1, 10, 200, 5000, 100), 0);
	ws_toaststore_sync(s, &err);
	reopen();
	ws_toaststore_begin(s, 1, 300);
	assert_int_equal(ws_toaststore_want(s, 1, true, &err), 1);
	put(1, 11, 300, 5000, 50, 2);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	assert_int_equal(get(1, 10, 300, 5000, 100), 0);
	assert_int_equal(get(1, 11, 300, 5000, 300), 1);
}

static void
a_fork_takes_back(void **state)
{
	struct ws_toastplace at = {70, 1, 1};
	uint8_t b[50];

	(void)state;
	fresh();
	reopen();
	ws_toaststore_begin(s, 1, 100);
	put(1, 10, 100, 5000, 50, 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	ws_toaststore_begin(s, 1, 200);
	del(50, 1);
	put(1, 11, 200, 5000, 50, 2);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	ws_toaststore_begin(s, 1, 300);
	put(1, 12, 300, 9000, 50, 3); /* in part */
	assert_int_equal(ws_toaststore_sync(s, &err), 0);
	reopen();
	assert_int_equal(ws_toaststore_load(s, 3, 70, 180, &err), 0);
	bytes(3, 1, 180, 50, b);
	assert_int_equal(ws_toaststore_load_put(s, 3, 180, 1, 0, b, 50, &at, &err), 0);
	assert_int_equal(ws_toaststore_fork(s, 2, 150, 250, &err), 0);
	assert_int_equal(get(3, 1, 300, 50, 180), 1);
	assert_int_equal(ws_toaststore_applied(s).lsn, 150);
	assert_int_equal(ws_toaststore_applied(s).tli, 2);
	purge(1000);
	assert_int_equal(get(1, 10, 300, 5000, 100), 1);
	assert_int_equal(get(1, 11, 300, 5000, 200), 0);
	assert_int_equal(get(1, 12, 300, 9000, 300), 0);
	assert_true(ws_toaststore_begin(s, 2, 200));
	put(1, 11, 200, 6000, 50, 2);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	assert_int_equal(get(1, 11, 300, 6000, 200), 1);
}

/* ---- random commits, killed at random ---- */

#define IDS     40u
#define COMMITS 600u

static struct {
	ws_lsn born[IDS], died[IDS]; /* newest and the one before */
	uint32_t size[IDS];
} hist[COMMITS + 1]; /* after each commit */

static uint64_t seed;

static unsigned
rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* Commit i: the same whenever it is applied. */
static void
apply(unsigned i, bool store)
{
	ws_lsn end = i * 10;

	seed = i * 2654435761u + 3;
	hist[i] = hist[i - 1];
	for (unsigned k = rnd(6); k > 0; k--) {
		unsigned id = rnd(IDS);

		if (hist[i].born[id] == end || hist[i].died[id] == end)
			continue;
		if (hist[i].born[id] && !hist[i].died[id]) {
			hist[i].died[id] = end;
			if (store)
				del(50, id);
		} else {
			hist[i].born[id] = end;
			hist[i].died[id] = 0;
			hist[i].size[id] = rnd(20) ? 1 + rnd(9000) : 100000 + rnd(100000);
			if (store)
				put(1, id + 1, end, hist[i].size[id], 50, id);
		}
	}
}

static void
check(unsigned i)
{
	for (unsigned id = 0; id < IDS; id++) {
		if (!hist[i].born[id] || hist[i].died[id])
			continue;
		if (get(1, id + 1, i * 10, hist[i].size[id], hist[i].born[id]) != 1)
			fail_msg("after commit %u value %u of %u bytes is not there", i, id, hist[i].size[id]);
	}
}

static void
killed_at_random(void **state)
{
	unsigned acked = 0, floor = 0, i = 1, kills = 0;
	uint64_t own = 99;

	(void)state;
	fresh();
	reopen();
	while (i <= COMMITS) {
		bool todo = ws_toaststore_begin(s, 1, i * 10);

		own = own * 6364136223846793005u + 1442695040888963407u;
		apply(i, todo);
		if (todo && (own >> 33) % 40 != 0)
			assert_int_equal(ws_toaststore_end(s, &err), 0);
		else if (todo)
			goto kill; /* in the middle of a commit */
		check(i);
		if (i > acked && (own >> 40) % 3 == 0)
			acked = i - (unsigned)(own >> 50) % (i - acked);
		if ((own >> 45) % 5 == 0 && acked > floor && i >= acked) {
			assert_int_equal(ws_toaststore_sync(s, &err), 0);
			floor = acked;
			unsigned most = 1 + (unsigned)(own >> 35) % 300;

			assert_true(ws_toaststore_purge(s, floor * 10, most, &err) >= 0);
		}
		i++;
		if ((own >> 37) % 30 != 0)
			continue;
	kill:
		kills++;
		if (own >> 63)
			assert_int_equal(ws_toaststore_sync(s, &err), 0);
		reopen();
		i = floor + 1;
	}
	assert_true(kills > 8);
	purge(COMMITS * 10);
	check(COMMITS);
	for (unsigned id = 0; id < IDS; id++)
		if (hist[COMMITS].died[id])
			assert_int_equal(get(1, id + 1, COMMITS * 10, hist[COMMITS].size[id], 1), 0);
}

static void
damage_is_noticed(void **state)
{
	char path[128];
	FILE *f;
	uint8_t b[100], *p;
	struct ws_buf all = {0};

	(void)state;
	fresh();
	reopen();
	ws_toaststore_begin(s, 1, 100);
	put(1, 10, 100, 1500, 50, 1);
	assert_int_equal(ws_toaststore_end(s, &err), 0);
	ws_toaststore_sync(s, &err);
	ws_toaststore_close(s);
	s = NULL;
	snprintf(path, sizeof path, "%s/data.mdb", dir);
	f = fopen(path, "r+");
	assert_non_null(f);
	ws_buf_reserve(&all, 1 << 20);
	all.len = fread(all.data, 1, 1 << 20, f);
	bytes(1, 10, 100, sizeof b, b);
	/* Every copy of the value. */
	for (size_t at = 0; (p = memmem(all.data + at, all.len - at, b, sizeof b)); at++) {
		at = (size_t)(p - all.data);
		fseek(f, (long)at + 50, SEEK_SET);
		fputc(b[50] + 1, f);
	}
	fclose(f);
	reopen();
	assert_int_equal(get(1, 10, 100, 1500, 100), -1);
	assert_string_equal(err.reason, "toast_store_corrupt");
	ws_toaststore_close(s);
	s = NULL;
	/* Cut: an error when it is opened, or when what is missing is wanted. */
	for (off_t size = (off_t)all.len & ~4095; size >= 8192; size -= 4096) {
		assert_int_equal(truncate(path, size), 0);
		s = ws_toaststore_open(dir, 7, 5, &err);
		if (s)
			assert_true(get(1, 10, 100, 1500, 100) != WS_TOAST_FOUND);
		assert_string_equal(err.reason, "toast_store_corrupt");
		ws_toaststore_close(s);
		s = NULL;
	}
	ws_buf_free(&all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back),
		cmocka_unit_test(the_dead_stay_until_the_floor),
		cmocka_unit_test(tables_that_move_and_go),
		cmocka_unit_test(a_load_counts_from_its_point),
		cmocka_unit_test(unseen_chunks_are_never_mistaken),
		cmocka_unit_test(a_fork_takes_back),
		cmocka_unit_test(killed_at_random),
		cmocka_unit_test_teardown(damage_is_noticed, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
