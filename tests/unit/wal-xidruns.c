/* lib/wal/xidruns.c: which transaction a subtransaction belongs to, against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/wal/xidruns.h"

static uint64_t
rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return *s >> 33;
}

/* Runs ascend, do not touch the wrap, and taken-out ones are single. */
static void
check_order(const struct ws_xidruns *s)
{
	uint32_t dead = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		assert_true(s->r[i].first <= s->r[i].last);
		if (i)
			assert_true(s->r[i - 1].last < s->r[i].first);
		if (!s->r[i].top) {
			assert_int_equal(s->r[i].first, s->r[i].last);
			dead++;
		}
	}
	assert_int_equal(dead, s->dead);
}

static void
against_model(void **state)
{
	enum { N = 2000 };
	ws_xid model[N] = {0};
	struct ws_xidruns s = {0};
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		unsigned k = (unsigned)(rnd(&seed) % N);
		ws_xid xid = 0xfffffc00u + k; /* across the wrap */

		if (xid == 0)
			continue;
		switch (rnd(&seed) % 4) {
		case 0:
			ws_xidruns_del(&s, xid);
			model[k] = 0;
			break;
		case 1:
		case 2: {
			/* Neighbours of one transaction, mostly. */
			ws_xid top = 7 + k / 100 + (ws_xid)(rnd(&seed) % 8 == 0);

			ws_xidruns_put(&s, xid, top);
			model[k] = top;
			break;
		}
		default:
			assert_int_equal(ws_xidruns_find(&s, xid), model[k]);
		}
		if (i % 1000 == 0)
			check_order(&s);
		if (i % 50000 == 49999) {
			ws_xid oldest = 0xfffffc00u + (ws_xid)(rnd(&seed) % N);

			ws_xidruns_reap(&s, oldest);
			for (unsigned j = 0; j < N; j++)
				if ((int32_t)(0xfffffc00u + j - oldest) < 0)
					model[j] = 0;
			check_order(&s);
		}
	}
	ws_xidruns_tidy(&s);
	for (unsigned k = 0; k < N; k++)
		assert_int_equal(ws_xidruns_find(&s, 0xfffffc00u + k), model[k]);
	assert_int_equal(ws_xidruns_empty(&s), s.n == 0);
	ws_xidruns_free(&s);
}

/* Millions in order are one run, and go one by one. */
static void
neighbours_are_one(void **state)
{
	struct ws_xidruns s = {0};

	(void)state;
	for (ws_xid x = 1000; x < 3001000; x++)
		ws_xidruns_put(&s, x, 999);
	assert_int_equal(s.n, 1);
	assert_true(s.cap <= 16);
	for (ws_xid x = 1000; x < 3001000; x++)
		ws_xidruns_del(&s, x);
	assert_true(ws_xidruns_empty(&s));
	ws_xidruns_free(&s);
}

/* Two transactions that take turns: many runs, which also go in reasonable time. */
static void
taking_turns(void **state)
{
	struct ws_xidruns s = {0};

	(void)state;
	for (ws_xid x = 0; x < 400000; x++)
		ws_xidruns_put(&s, 1000 + x, 900 + x % 2);
	assert_int_equal(s.n, 400000);
	for (ws_xid x = 0; x < 400000; x += 2)
		ws_xidruns_del(&s, 1000 + x);
	for (ws_xid x = 0; x < 400000; x++)
		assert_int_equal(ws_xidruns_find(&s, 1000 + x), x % 2 ? 901 : 0);
	for (ws_xid x = 1; x < 400000; x += 2)
		ws_xidruns_del(&s, 1000 + x);
	assert_true(ws_xidruns_empty(&s));
	assert_true(s.n <= 128);
	ws_xidruns_free(&s);
}

static void
runs_are_read_back(void **state)
{
	struct ws_xidruns s = {0};

	(void)state;
	ws_xidruns_put(&s, 10, 5);
	assert_true(ws_xidruns_through(&s, 10, 20));
	assert_int_equal(ws_xidruns_find(&s, 20), 5);
	assert_int_equal(ws_xidruns_find(&s, 21), 0);
	ws_xidruns_put(&s, 30, 6);
	assert_false(ws_xidruns_through(&s, 10, 30));
	assert_false(ws_xidruns_through(&s, 10, 15));
	assert_false(ws_xidruns_through(&s, 25, 26));
	assert_true(ws_xidruns_through(&s, 10, 29));
	assert_int_equal(s.n, 2);
	ws_xidruns_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_model),
		cmocka_unit_test(neighbours_are_one),
		cmocka_unit_test(taking_turns),
		cmocka_unit_test(runs_are_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
