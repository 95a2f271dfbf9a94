/* lib/catalog/boundary.c: which messages make a boundary, of which databases, naming what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/boundary.h"
#include "ws/cursor.h"

/* common/hashfn.h: murmurhash32, the hash of a syscache with one oid as its key. */
static uint32_t
hash(uint32_t h)
{
	h ^= h >> 16;
	h *= 0x85ebca6b;
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	h ^= h >> 16;
	return h;
}

static uint8_t msgs[64 * 16];
static struct ws_xactrec x;

static void
fresh(void)
{
	x = (struct ws_xactrec){.op = WS_XACT_COMMIT, .xid = 700, .has_db = true, .db = 5, .msgs = msgs};
}

/* id, 3 bytes of garbage, database, value, 4 bytes of garbage. */
static void
add(int id, ws_oid db, uint32_t value)
{
	uint8_t *p = msgs + 16 * x.nmsgs++;

	memset(p, 0xa5, 16);
	p[0] = (uint8_t)id;
	ws_store32(p + 4, db);
	ws_store32(p + 8, value);
}

static struct ws_boundary
judge(int major)
{
	return ws_boundary_of(&x, ws_walver_by_major(major));
}

static void
test_nothing(void **state)
{
	(void)state;
	for (int major = 16; major <= 18; major++) {
		fresh();
		assert_false(judge(major).is);
		add(WS_INVAL_SNAPSHOT, 5, 2608);
		add(WS_INVAL_SMGR, 5, 16384);
		add(WS_INVAL_RELMAP, 5, 0);
		add(WS_INVAL_CATALOG, 5, 1259);
		add(WS_INVAL_RELCACHE, 5, 1259);
		add(WS_INVAL_RELCACHE, 0, 1262);
		add(major == 18 ? 65 : 63, 5, hash(16384)); /* STATRELATTINH */
		add(major == 18 ? 61 : 59, 5, hash(16384)); /* SEQRELID */
		add(6, 5, 77);                              /* ATTNAME */
		add(10, 0, 77);                             /* AUTH* */
		assert_false(judge(major).is);
	}
}

static void
test_relcache(void **state)
{
	struct ws_boundary b;

	(void)state;
	fresh();
	add(WS_INVAL_RELCACHE, 5, 16384);
	b = judge(17);
	assert_true(b.is && !b.every_db && !b.all_rels && !b.types && !b.namespaces);
	assert_true(ws_boundary_for(&b, 5) && !ws_boundary_for(&b, 6));
	fresh();
	add(WS_INVAL_RELCACHE, 0, 0);
	b = judge(17);
	assert_true(b.is && b.every_db && b.all_rels);
	assert_true(ws_boundary_for(&b, 6));
	/* Neither an abort nor an assignment is one. */
	x.op = WS_XACT_ABORT;
	assert_false(judge(17).is);
	x.op = WS_XACT_PREPARE;
	assert_false(judge(17).is);
	x.op = WS_XACT_COMMIT_PREPARED;
	assert_true(judge(17).is);
	/* Made where? Everywhere. */
	fresh();
	x.has_db = false;
	add(WS_INVAL_RELCACHE, 5, 16384);
	assert_true(judge(17).every_db);
}

static void
test_caches(void **state)
{
	(void)state;
	for (int major = 16; major <= 18; major++) {
		int two = major == 18 ? 2 : 0;
		const struct {
			int id;
			bool types, namespaces, every;
		} c[] = {{23, true, false, false},       {24, true, false, false},       {52 + two, true, false, false},
		         {53 + two, true, false, false}, {79 + two, true, false, false}, {80 + two, true, false, false},
		         {35 + two, false, true, false}, {36 + two, false, true, false}, {21, false, false, true}};

		for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
			fresh();
			add(c[i].id, c[i].every ? 0 : 5, hash(20000));
			struct ws_boundary b = judge(major);

			assert_true(b.is);
			assert_int_equal(b.types, c[i].types);
			assert_int_equal(b.namespaces, c[i].namespaces);
			assert_int_equal(b.every_db, c[i].every);
			assert_false(b.all_rels);
		}
	}
}

static void
test_ids(void **state)
{
	struct ws_boundary_ids ids;
	static const ws_oid some[] = {1, 16384, 16385, 99999, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

	(void)state;
	fresh();
	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
		add(80, 5, hash(some[i]));
		add(WS_INVAL_RELCACHE, 5, 16400 - (uint32_t)i % 3);
	}
	add(79, 5, 12345); /* two keys: no oid in it */
	add(36, 5, hash(2200));
	add(23, 5, hash(16500));
	add(53, 5, hash(16501));
	add(52, 5, hash(16502));
	add(WS_INVAL_RELCACHE, 0, 0);
	ws_boundary_ids(&x, ws_walver_by_major(17), &ids);
	assert_int_equal(ids.nrels, 3);
	assert_int_equal(ids.rels[0], 16398);
	assert_int_equal(ids.rels[2], 16400);
	assert_int_equal(ids.ntypes, 10);
	assert_int_equal(ids.types[0], 1);
	assert_int_equal(ids.types[1], 16384);
	assert_int_equal(ids.types[3], 16501);
	assert_int_equal(ids.types[4], 16502);
	assert_true(ids.types[9] == 0xffffffff);
	assert_int_equal(ids.nnamespaces, 1);
	assert_int_equal(ids.namespaces[0], 2200);
	assert_int_equal(ids.nlabels, 1);
	assert_int_equal(ids.labels[0], 16500);
	ws_boundary_ids_fini(&ids);
	x.op = WS_XACT_ABORT;
	ws_boundary_ids(&x, ws_walver_by_major(17), &ids);
	assert_int_equal(ids.nrels, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing),
	    cmocka_unit_test(test_relcache),
	    cmocka_unit_test(test_caches),
	    cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests_name("catalog-boundary", tests, NULL, NULL);
}
