/* lib/xact/xtx.c, toastmap.c, floor.c: tables of unfinished transactions, positions, floors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/xact/toastmap.h"
#include "lib/xact/xtx.h"
#include "ws/xact.h"

static uint64_t
rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return *s >> 33;
}

static void
check_list(const struct ws_xtx *tx, ws_lsn first, uint64_t n)
{
	struct ws_positer it;
	ws_lsn at, want = first;
	uint64_t got = 0;

	ws_positer_init(&it, tx);
	while ((at = ws_positer_next(&it))) {
		assert_int_equal(at, want);
		want += 8;
		got++;
	}
	assert_int_equal(got, n);
}

static void
lists_of_every_length(void **state)
{
	struct ws_xtab t;
	static const uint64_t lengths[] = {0, 1, 3, 4, 5, 33, 34, 35, 36, 600, 3000, 20000};

	(void)state;
	ws_xtab_init(&t, 1u << 30);
	for (int round = 0; round < 2; round++) /* chunks are used again */
		for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
			struct ws_xtx *tx = ws_xtab_get(&t, 100, 64);

			for (uint64_t k = 0; k < lengths[i]; k++)
				ws_xtx_append(&t, tx, 64 + k * 8);
			check_list(tx, 64, lengths[i]);
			ws_xtab_drop(&t, tx);
			assert_null(ws_xtab_find(&t, 100));
		}
	assert_int_equal(t.bytes, 0);
	ws_xtab_fini(&t);
}

/* Against a plain array: many xids, across the wrap, coming and going. */
static void
table_against_model(void **state)
{
	enum { N = 3000 };
	struct ws_xtab t;
	uint64_t seed = 7;
	struct {
		ws_lsn first;
		uint64_t n;
	} model[N] = {{0, 0}};
	ws_lsn lsn = 8;

	(void)state;
	ws_xtab_init(&t, 1u << 30);
	for (int i = 0; i < 200000; i++, lsn += 8) {
		unsigned k = (unsigned)(rnd(&seed) % N);
		ws_xid xid = 0xffffff00u + k;

		if (xid < 3)
			continue;
		if (rnd(&seed) % 8 == 0) {
			struct ws_xtx *tx = ws_xtab_find(&t, xid);

			assert_int_equal(tx != NULL, model[k].n > 0);
			if (tx) {
				assert_int_equal(tx->n, model[k].n);
				assert_int_equal(tx->first, model[k].first);
				ws_xtab_drop(&t, tx);
				model[k].n = 0;
			}
			continue;
		}
		if (!model[k].n)
			model[k].first = lsn;
		model[k].n++;
		ws_xtx_append(&t, ws_xtab_get(&t, xid, lsn), lsn);
	}
	ws_lsn oldest = UINT64_MAX;
	size_t n = 0;

	for (unsigned k = 0; k < N; k++)
		if (model[k].n) {
			n++;
			if (model[k].first < oldest)
				oldest = model[k].first;
		}
	assert_int_equal(t.used, n);
	assert_int_equal(t.oldest->first, oldest);
	ws_xtab_fini(&t);
}

static void
reaping_is_modulo(void **state)
{
	struct ws_xtab t;
	static const ws_xid xids[] = {4294967290u, 4294967295u, 3, 10, 2147483000u};

	(void)state;
	ws_xtab_init(&t, 1u << 30);
	for (size_t i = 0; i < 5; i++)
		ws_xtab_get(&t, xids[i], 8 + i * 8);
	assert_int_equal(ws_xtab_reap(&t, 4294967295u), 1);
	assert_null(ws_xtab_find(&t, 4294967290u));
	assert_int_equal(ws_xtab_reap(&t, 10), 2);
	assert_non_null(ws_xtab_find(&t, 10));
	assert_non_null(ws_xtab_find(&t, 2147483000u));
	assert_int_equal(t.used, 2);
	ws_xtab_fini(&t);
}

/* Past the budget the longest list becomes a map whose pages are exactly those of its positions. */
static void
budget_makes_page_maps(void **state)
{
	struct ws_xtab t;
	struct ws_xtx *big, *small;
	uint64_t pages = 0;

	(void)state;
	ws_xtab_init(&t, 100000);
	small = ws_xtab_get(&t, 5, 8);
	ws_xtx_append(&t, small, 8);
	big = ws_xtab_get(&t, 6, 16);
	/* Every third page, with holes of more than a block of the map. */
	for (uint64_t i = 0; i < 40000; i++) {
		ws_lsn at = i / 4 * 3 * 8192 + i % 4 * 64 + 4096 + (i >= 20000 ? UINT64_C(3) << 30 : 0);

		big = ws_xtab_get(&t, 6, 16);
		ws_xtx_append(&t, big, at);
	}
	assert_non_null(big->pages);
	assert_null(small->pages);
	assert_int_equal(t.merges, 1);
	assert_int_equal(big->n, 40000);
	assert_true(t.bytes < 100000);
	for (ws_lsn p = 0; (p = ws_pagemap_next(big->pages, p)) != UINT64_MAX; p += 8192, pages++)
		assert_int_equal(p, pages * 3 * 8192 + (pages >= 5000 ? UINT64_C(3) << 30 : 0));
	assert_int_equal(pages, 10000);
	ws_xtab_drop(&t, big);
	ws_xtab_drop(&t, small);
	assert_int_equal(t.bytes, 0);
	ws_xtab_fini(&t);
}

/* Many small transactions within a small budget: what is spilled is found again by xid, with the
 * pages of every position, and nothing is left when all have ended. */
static void
too_many_are_spilled(void **state)
{
	enum { N = 200000 };
	struct ws_xtab t;
	struct ws_pagemap pages = {0};
	uint64_t seed = 11;
	static bool ended[N];
	static ws_lsn first[N], again[N];
	ws_lsn lsn = 8192;
	size_t live = 0;

	(void)state;
	memset(ended, 0, sizeof ended);
	ws_xtab_init(&t, 1u << 20);
	for (unsigned k = 0; k < N; k++, lsn += 200) {
		ws_xid xid = 0xffff0000u + k; /* across the wrap */

		if ((ended[k] = xid < 3))
			continue;
		first[k] = lsn;
		ws_xtx_append(&t, ws_xtab_get(&t, xid, lsn), lsn);
		live++;
		/* Some abort, some that are spilled go on. */
		unsigned j = (unsigned)(rnd(&seed) % (k + 1));

		if (!ended[j] && k % 3 == 0) {
			ended[j] = true;
			live--;
			assert_true(ws_xtab_end(&t, 0xffff0000u + j));
			assert_false(ws_xtab_end(&t, 0xffff0000u + j));
		} else if (!ended[j]) {
			again[j] = lsn += 200;
			ws_xtx_append(&t, ws_xtab_get(&t, 0xffff0000u + j, lsn), lsn);
		}
		assert_true(t.bytes <= t.budget);
	}
	assert_true(t.spills > N / 2);
	assert_true(t.spill.bytes < 1u << 20);
	assert_true(ws_xtab_first(&t) <= first[N - 1]);
	for (unsigned k = 0; k < N; k++) {
		ws_xid xid = 0xffff0000u + k;
		struct ws_xtx *tx = ws_xtab_find(&t, xid);
		bool spilled = ws_spill_take(&t.spill, xid);

		assert_int_equal(tx || spilled, !ended[k]);
		if (ended[k])
			continue;
		assert_true(ws_xtab_first(&t) <= first[k]);
		if (tx)
			assert_int_equal(tx->spilled, spilled);
	}
	ws_spill_pages(&t.spill, &pages);
	for (unsigned k = 0; k < N; k++) {
		if (ended[k] || !ws_spill_is_taken(&t.spill, 0xffff0000u + k))
			continue;
		assert_int_equal(ws_pagemap_next(&pages, first[k]), first[k] / 8192 * 8192);
		if (again[k])
			assert_int_equal(ws_pagemap_next(&pages, again[k]), again[k] / 8192 * 8192);
		live--;
	}
	ws_pagemap_fini(&pages);
	ws_spill_done(&t.spill);
	assert_int_equal(t.spill.n, 0);
	assert_int_equal(t.spill.first, 0);
	assert_int_equal(t.spill.ngroups, 0);
	while (t.oldest) {
		live -= !t.oldest->spilled;
		ws_xtab_drop(&t, t.oldest);
	}
	assert_int_equal(live, 0);
	assert_int_equal(t.bytes, 0);
	ws_xtab_fini(&t);
}

/* A timeline ends: all but what is prepared. */
static void
abandoned_but_prepared(void **state)
{
	struct ws_xtab t;
	static const ws_xid prepared[] = {7, 5000, 39999, 4294967290u};

	(void)state;
	ws_xtab_init(&t, 256u * 1024);
	assert_int_equal(ws_xtab_abandon(&t, prepared, 4), 0);
	for (ws_xid xid = 4294967280u; xid != 40000; xid++)
		if (xid >= 3)
			ws_xtx_append(&t, ws_xtab_get(&t, xid, 8192), 8192);
	ws_xtx_add_birth(ws_xtab_get(&t, 39998, 8192))->rel = 16384;
	ws_xtx_add_birth(ws_xtab_get(&t, 39999, 8192))->rel = 16385;
	assert_true(t.spill.n > 1000 && t.used > 1000);
	size_t listed = t.used + t.spill.n;

	assert_int_equal(ws_xtab_abandon(&t, prepared, 4), listed - 4);
	assert_int_equal(t.used + t.spill.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_true(ws_xtab_find(&t, prepared[i]) || ws_spill_has(&t.spill, prepared[i]));
	assert_int_equal(ws_xtx_birth(ws_xtab_find(&t, 39999), 16385)->rel, 16385);
	assert_true(ws_xtab_first(&t) == 8192);
	/* An xid that comes again has nothing of the one before. */
	assert_int_equal(ws_xtab_get(&t, 39998, 9000)->n, 0);
	assert_null(ws_xtab_find(&t, 39998)->ddl);
	assert_int_equal(ws_xtab_abandon(&t, prepared, 4), 1);
	/* Nothing prepared: accounts are empty. */
	assert_int_equal(ws_xtab_abandon(&t, NULL, 0), 4);
	assert_true(t.used == 0 && t.spill.n == 0 && t.spill.ngroups == 0 && t.bytes == 0);
	assert_true(ws_xtab_first(&t) == 0 && !t.oldest && !t.newest);
	ws_xtab_fini(&t);
}

static void
spilled_are_reaped(void **state)
{
	struct ws_spill s = {0};

	(void)state;
	for (ws_xid xid = 4294900000u; xid != 70000; xid++)
		if (xid >= 3)
			ws_spill_put(&s, xid, 8192, 8192);
	assert_int_equal(s.n, 67296 + 70000 - 3);
	assert_int_equal(ws_spill_reap(&s, 4294900010u), 10);
	assert_false(ws_spill_has(&s, 4294900009u));
	assert_true(ws_spill_has(&s, 4294900010u));
	assert_int_equal(ws_spill_reap(&s, 66000), 67286 + 66000 - 3);
	assert_true(ws_spill_has(&s, 66000));
	assert_int_equal(s.ngroups, 1);
	assert_int_equal(ws_spill_reap(&s, 2000000000), 4000);
	assert_int_equal(s.first, 0);
	ws_spill_fini(&s);
}

static void
births_are_found(void **state)
{
	struct ws_xtab t;
	struct ws_xtx *tx;

	(void)state;
	ws_xtab_init(&t, 1u << 20);
	tx = ws_xtab_get(&t, 9, 8);
	assert_null(ws_xtx_birth(tx, 1000));
	for (ws_oid o = 1000; o < 1100; o++)
		ws_xtx_add_birth(tx)->rel = o;
	assert_null(ws_xtx_birth(tx, 2000));
	assert_null(ws_xtx_birth(tx, 2000));
	for (ws_oid o = 1000; o < 1100; o++)
		assert_int_equal(ws_xtx_birth(tx, o)->rel, o);
	ws_xtx_add_birth(tx)->rel = 2000;
	assert_int_equal(ws_xtx_birth(tx, 2000)->rel, 2000);
	ws_xtab_fini(&t);
}

static void
toast_chunks(void **state)
{
	struct ws_toastmap m = {0};

	(void)state;
	assert_null(ws_toastmap_find(&m, 1, 1));
	for (ws_oid id = 1; id <= 500; id++)
		for (int seq = 0; seq < 3; seq++)
			assert_int_equal(ws_toastmap_add(&m, 7, id, seq, id * 100 + (unsigned)seq, NULL), 1);
	for (ws_oid id = 1; id <= 500; id++) {
		const struct ws_toastval *v = ws_toastmap_find(&m, 7, id);

		assert_int_equal(v->n, 3);
		assert_int_equal(ws_toastmap_chunk(&m, v, 2), id * 100 + 2);
		assert_null(ws_toastmap_find(&m, 8, id));
	}
	/* A chunk that does not follow. */
	assert_int_equal(ws_toastmap_add(&m, 7, 500, 4, 1, NULL), 0);
	assert_int_equal(ws_toastmap_add(&m, 7, 499, 3, 1, NULL), 0);
	assert_int_equal(ws_toastmap_add(&m, 7, 9999, 1, 1, NULL), 0);
	/* Written again. */
	assert_int_equal(ws_toastmap_add(&m, 7, 3, 0, 5, NULL), 1);
	assert_int_equal(ws_toastmap_find(&m, 7, 3)->n, 1);
	/* More than is kept in memory. */
	for (ws_oid id = 1; id <= 300000; id++)
		for (int seq = 0; seq < 2; seq++)
			assert_int_equal(ws_toastmap_add(&m, 8, id, seq, id * 10ull + (unsigned)seq, NULL), 1);
	assert_true(m.vals.mapped && m.chunks.mapped);
	for (ws_oid id = 1; id <= 300000; id++)
		assert_int_equal(ws_toastmap_chunk(&m, ws_toastmap_find(&m, 8, id), 1), id * 10ull + 1);
	ws_toastmap_reset(&m);
	assert_null(ws_toastmap_find(&m, 7, 3));
	ws_toastmap_fini(&m);
}

/* Whatever is acknowledged, the floor is one that was right at or below it, and never moves back.
 */
static void
floors_are_safe(void **state)
{
	static struct ws_floorq q;
	uint64_t seed = 3;
	enum { N = 60000 };
	ws_lsn *end = malloc(N * sizeof *end), *floor = malloc(N * sizeof *floor), ack = 0, last = 0;
	struct ws_pos f;
	int acked = -1;

	(void)state;
	ws_floorq_init(&q);
	assert_false(ws_floorq_take(&q, 1000, &f));
	for (int i = 0; i < N; i++) {
		end[i] = (i ? end[i - 1] : 0) + 100 + rnd(&seed) % 4000;
		floor[i] = end[i] - rnd(&seed) % 90;
		if (i && floor[i] < floor[i - 1])
			floor[i] = floor[i - 1];
		ws_floorq_push(&q, (struct ws_pos){1, end[i]}, (struct ws_pos){1, floor[i]});
		assert_true(q.n <= WS_FLOORQ_MAX);
		if (rnd(&seed) % 5000 == 0 && acked < i) {
			acked += 1 + (int)(rnd(&seed) % (unsigned)(i - acked));
			ack = end[acked];
			if (!ws_floorq_take(&q, ack, &f))
				continue;
			assert_true(f.lsn <= floor[acked]);
			assert_true(f.lsn >= last);
			last = f.lsn;
		}
	}
	/* The newest is always there. */
	assert_true(ws_floorq_take(&q, end[N - 1], &f));
	assert_int_equal(f.lsn, floor[N - 1]);
	free(end);
	free(floor);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_every_length),  cmocka_unit_test(table_against_model),
		cmocka_unit_test(reaping_is_modulo),      cmocka_unit_test(budget_makes_page_maps),
		cmocka_unit_test(too_many_are_spilled),   cmocka_unit_test(spilled_are_reaped),
		cmocka_unit_test(abandoned_but_prepared), cmocka_unit_test(births_are_found),
		       cmocka_unit_test(toast_chunks),
		cmocka_unit_test(floors_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
