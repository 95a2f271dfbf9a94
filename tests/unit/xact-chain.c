/* lib/xact/chain.c: filenode chains on the record sequences that PostgreSQL writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/xact/chain.h"

/* A little catalog: relations with their file before and after the transaction. */
struct fact {
	ws_oid oid;
	char kind;
	ws_oid before, after; /* files; 0: does not exist then */
	char pers_before, pers_after;
};

static const struct fact *facts;
static ws_oid set_file[2]; /* by pg_class, as sets_file says */
static bool blind; /* it cannot be told */

static int
rel(void *arg, ws_oid oid, struct ws_chain_rel *out, struct ws_err *err)
{
	(void)arg;
	(void)err;
	memset(out, 0, sizeof *out);
	for (const struct fact *f = facts; f->oid; f++)
		if (f->oid == oid) {
			*out = (struct ws_chain_rel){.before = f->before,
			                             .after = f->after,
			                             .kind = f->kind,
			                             .pers_before = f->pers_before ? f->pers_before : 'p',
			                             .pers_after = f->pers_after ? f->pers_after : 'p',
			                             .file_before = f->before,
			                             .file_after = f->after,
			                             .name = "r"};
			return 1;
		}
	return 0;
}

static int
file(void *arg, ws_oid n, bool after, ws_oid *oid, struct ws_err *err)
{
	(void)arg;
	(void)err;
	for (const struct fact *f = facts; f->oid; f++)
		if ((after ? f->after : f->before) == n) {
			*oid = f->oid;
			return 1;
		}
	return 0;
}

static int
sets_file(void *arg, ws_lsn from, ws_lsn to, ws_oid relid, ws_oid n, struct ws_err *err)
{
	(void)arg;
	(void)from;
	(void)to;
	(void)err;
	(void)relid;
	return blind ? 2 : n == set_file[0] || n == set_file[1];
}

#define INVAL(lsn, ...)                                                                            \
	{                                                                                              \
		lsn, (const ws_oid[]){__VA_ARGS__}, sizeof((const ws_oid[]){__VA_ARGS__}) / sizeof(ws_oid) \
	}

static int
build(const struct fact *f, const struct ws_birth *b, size_t nb, const struct ws_chain_inval *m,
      size_t nm, const ws_oid *dropped, size_t nd, bool trust, struct ws_chain *c,
      struct ws_err *err)
{
	ws_oid changed[16];
	size_t n = 0;

	facts = f;
	for (; f->oid; f++)
		if (f->before != f->after)
			changed[n++] = f->oid;
	const struct ws_chain_input in = {
		.births = b, .nbirths = nb, .invals = m, .ninvals = nm, .dropped = dropped, .ndropped = nd,
		.changed = changed, .nchanged = n, .commit = 10000, .trust_swaps = trust,
		.rel = rel, .file = file, .sets_file = sets_file,
	};

	return ws_chain_build(&in, c, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
place_is(const struct ws_chain *c, ws_oid f, ws_lsn lsn, enum ws_place want, ws_oid want_rel)
{
	ws_oid r = 0;

	assert_int_equal(ws_chain_place(c, f, lsn, &r), want);
	if (want == WS_PLACE_KNOWN || want == WS_PLACE_VOID)
		assert_int_equal(r, want_rel);
}

/* DELETE; ALTER TYPE with conversion; INSERT. */
static void
rewrite_replaces(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 500, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .first_row = 30},
	                                    {.lsn = 50, .rel = 501}};
	const struct ws_chain_inval m[] = {INVAL(15, 100), INVAL(25, 500), INVAL(40, 100, 500),
	                                   INVAL(55, 100, 501), INVAL(60, 500)};
	static const ws_oid dropped[] = {100};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 1, false, &c, &err), 0);
	assert_int_equal(c.nlinks, 1);
	assert_int_equal(c.links[0].kind, WS_LINK_REPLACE);
	assert_int_equal(c.links[0].from, 100);
	assert_int_equal(c.nmarks, 2);
	assert_true(c.marks[0].begin && c.marks[0].at == 20 && c.marks[1].at == 40);
	place_is(&c, 500, 30, WS_PLACE_KNOWN, 100);
	place_is(&c, 500, 70, WS_PLACE_KNOWN, 100);
	place_is(&c, 100, 10, WS_PLACE_OLDER, 0);
	assert_int_equal(ws_chain_judge(&c, 100, 10, 100), WS_PLACE_VOID);
	assert_int_equal(ws_chain_judge(&c, 500, 30, 100), WS_PLACE_KNOWN);
	ws_chain_fini(&c);
}

/* CLUSTER: images; TOAST is exchanged by content in the same record, as rows without tuples. */
static void
cluster_copies(void **state)
{
	static const struct fact f[] = {
		{100, 'r', 100, 500, 0, 0}, {101, 't', 101, 501, 0, 0}, {102, 'i', 102, 502, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .first_image = 30},
	                                    {.lsn = 22, .rel = 501, .first_row = 28},
	                                    {.lsn = 24, .rel = 502}};
	const struct ws_chain_inval m[] = {INVAL(25, 500, 501, 502),
	                                   INVAL(40, 100, 101, 102, 500, 501, 502)};
	static const ws_oid dropped[] = {100, 101, 102};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 3, false, &c, &err), 0);
	assert_int_equal(c.nlinks, 2);
	assert_int_equal(c.links[0].kind, WS_LINK_COPY);
	assert_int_equal(c.links[1].rel, 101);
	assert_int_equal(c.links[1].kind, WS_LINK_COPY);
	assert_int_equal(c.nmarks, 0);
	assert_int_equal(ws_chain_judge(&c, 100, 10, 100), WS_PLACE_KNOWN);
	assert_true(ws_chain_copied_after(&c, 100, 10));
	assert_false(ws_chain_copied_after(&c, 100, 50));
	place_is(&c, 501, 60, WS_PLACE_KNOWN, 101);
	ws_chain_fini(&c);
}

/* ADD COLUMN volatile; CLUSTER: the first rewrite's rows count, the table before it does not. */
static void
rewrite_then_cluster(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 600, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .first_row = 30},
	                                    {.lsn = 60, .rel = 600, .first_image = 65}};
	const struct ws_chain_inval m[] = {INVAL(25, 500), INVAL(40, 100, 500), INVAL(45, 500),
	                                   INVAL(62, 600), INVAL(70, 100, 600)};
	static const ws_oid dropped[] = {100, 500};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = 500;
	set_file[1] = 600;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 2, false, &c, &err), 0);
	assert_int_equal(c.nlinks, 2);
	assert_int_equal(c.nmarks, 2);
	assert_int_equal(c.marks[0].at, 20);
	place_is(&c, 500, 30, WS_PLACE_KNOWN, 100);
	place_is(&c, 500, 50, WS_PLACE_KNOWN, 100);
	place_is(&c, 600, 80, WS_PLACE_KNOWN, 100);
	assert_int_equal(ws_chain_judge(&c, 100, 10, 100), WS_PLACE_VOID);
	ws_chain_fini(&c);
}

static void
rewrite_twice(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 600, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .first_row = 30},
	                                    {.lsn = 60, .rel = 600, .first_row = 65}};
	const struct ws_chain_inval m[] = {INVAL(25, 500), INVAL(40, 100, 500), INVAL(45, 500),
	                                   INVAL(62, 600), INVAL(70, 100, 600)};
	static const ws_oid dropped[] = {100, 500};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = 500;
	set_file[1] = 600;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 2, false, &c, &err), 0);
	assert_int_equal(c.nmarks, 2);
	assert_int_equal(c.marks[0].at, 60);
	place_is(&c, 500, 30, WS_PLACE_VOID, 100);
	place_is(&c, 500, 50, WS_PLACE_VOID, 100);
	place_is(&c, 600, 66, WS_PLACE_KNOWN, 100);
	ws_chain_fini(&c);
}

/* TRUNCATE and SET TABLESPACE: a new file without a transient table never replaces. */
static void
new_file_of_its_own(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 600, 0, 0}, {102, 'i', 102, 602, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500},
	                                    {.lsn = 26, .rel = 502},
	                                    {.lsn = 60, .rel = 600, .first_image = 62},
	                                    {.lsn = 66, .rel = 602, .first_image = 67}};
	const struct ws_chain_inval m[] = {INVAL(25, 100), INVAL(30, 102), INVAL(65, 100),
	                                   INVAL(70, 102, 100)};
	static const ws_oid dropped[] = {100, 102, 500, 502};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 4, false, &c, &err), 0);
	assert_int_equal(c.nmarks, 0);
	place_is(&c, 500, 40, WS_PLACE_KNOWN, 100);
	place_is(&c, 600, 80, WS_PLACE_KNOWN, 100);
	assert_int_equal(ws_chain_judge(&c, 100, 10, 100), WS_PLACE_KNOWN);
	ws_chain_fini(&c);
}

static void
made_here(void **state)
{
	/* 300 stays, 310 is dropped again, 320 is rewritten (by 330). */
	static const struct fact f[] = {{300, 'r', 0, 300, 0, 0}, {320, 'r', 0, 330, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 10, .rel = 300},
	                                    {.lsn = 20, .rel = 310, .first_row = 25},
	                                    {.lsn = 30, .rel = 320, .first_row = 35},
	                                    {.lsn = 40, .rel = 330, .first_row = 44}};
	const struct ws_chain_inval m[] = {INVAL(12, 300), INVAL(22, 310), INVAL(26, 310),
	                                   INVAL(32, 320), INVAL(42, 330), INVAL(50, 320, 330)};
	static const ws_oid dropped[] = {310, 320};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 2, false, &c, &err), 0);
	place_is(&c, 300, 13, WS_PLACE_KNOWN, 300);
	place_is(&c, 310, 25, WS_PLACE_GONE, 0);
	place_is(&c, 320, 35, WS_PLACE_VOID, 320);
	place_is(&c, 330, 44, WS_PLACE_KNOWN, 320);
	place_is(&c, 999, 44, WS_PLACE_OLDER, 0);
	ws_chain_fini(&c);
}

/* A made and dropped table with a foreign key is named together with its target: no swap. */
static void
named_together_is_no_swap(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 600, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .first_row = 24},
	                                    {.lsn = 60, .rel = 600, .first_image = 65}};
	const struct ws_chain_inval m[] = {INVAL(22, 500), INVAL(30, 100, 500), INVAL(40, 500),
	                                   INVAL(62, 600), INVAL(70, 100, 600)};
	static const ws_oid dropped[] = {100, 500};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = 600; /* pg_class says that only 600 was ever set */
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), dropped, 2, false, &c, &err), 0);
	assert_int_equal(c.nlinks, 1);
	assert_int_equal(c.links[0].kind, WS_LINK_COPY);
	place_is(&c, 500, 24, WS_PLACE_GONE, 0);
	assert_int_equal(ws_chain_judge(&c, 100, 10, 100), WS_PLACE_KNOWN);
	ws_chain_fini(&c);
}

static void
files_of_others(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 200, 0, 0}, {200, 'r', 200, 100, 0, 0}, {0}};
	const struct ws_chain_inval m[] = {INVAL(40, 100, 200)};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(f, NULL, 0, m, 1, NULL, 0, false, &c, &err), -1);
	assert_string_equal(err.reason, "filenode_swap");
	assert_int_equal(build(f, NULL, 0, m, 1, NULL, 0, true, &c, &err), 0);
	place_is(&c, 200, 30, WS_PLACE_OLDER, 0);
	place_is(&c, 200, 50, WS_PLACE_KNOWN, 100);
	place_is(&c, 100, 50, WS_PLACE_KNOWN, 200);
	assert_int_equal(c.nmarks, 0);
	ws_chain_fini(&c);
}

static void
unexplained_is_an_error(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 600, 0, 0}, {0}};
	/* The file was made here, but no record links it. */
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 600}};
	const struct ws_chain_inval other[] = {INVAL(30, 777)};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(f, b, 1, other, 1, NULL, 0, false, &c, &err), -1);
	assert_string_equal(err.reason, "filenode_chain");
	assert_int_equal(build(f, NULL, 0, other, 1, NULL, 0, false, &c, &err), -1);
	assert_string_equal(err.reason, "unknown_relation");
}

/* Two rewrites, and nobody can tell whether the first was one. */
static void
doubt_is_an_error(void **state)
{
	static const struct fact f[] = {{100, 'r', 100, 600, 0, 0}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .first_row = 30},
	                                    {.lsn = 60, .rel = 600, .first_row = 65}};
	const struct ws_chain_inval m[] = {INVAL(25, 500), INVAL(40, 100, 500), INVAL(62, 600),
	                                   INVAL(70, 100, 600)};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	blind = true;
	assert_int_equal(build(f, b, COUNT(b), m, COUNT(m), NULL, 0, false, &c, &err), -1);
	assert_string_equal(err.reason, "filenode_chain");
	blind = false;
}

static void
unlogged_and_back(void **state)
{
	static const struct fact un[] = {{100, 'r', 100, 500, 'p', 'u'}, {0}};
	static const struct ws_birth b[] = {{.lsn = 20, .rel = 500, .unlogged = true}};
	const struct ws_chain_inval m[] = {INVAL(25, 500), INVAL(40, 100, 500)};
	static const struct fact logged[] = {{100, 'r', 100, 600, 'u', 'p'}, {0}};
	static const struct ws_birth b2[] = {{.lsn = 20, .rel = 600}};
	const struct ws_chain_inval m2[] = {INVAL(25, 600), INVAL(40, 100, 600)};
	static const ws_oid dropped[] = {100};
	struct ws_chain c;
	struct ws_err err;

	(void)state;
	set_file[0] = set_file[1] = 0;
	assert_int_equal(build(un, b, 1, m, 2, dropped, 1, false, &c, &err), 0);
	assert_int_equal(c.links[0].kind, WS_LINK_UNLOGGED);
	assert_int_equal(c.nmarks, 0);
	ws_chain_fini(&c);
	/* Logged again and empty: the destination must become empty. */
	assert_int_equal(build(logged, b2, 1, m2, 2, dropped, 1, false, &c, &err), 0);
	assert_int_equal(c.links[0].kind, WS_LINK_REPLACE);
	assert_int_equal(c.nmarks, 2);
	ws_chain_fini(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewrite_replaces),        cmocka_unit_test(cluster_copies),
		cmocka_unit_test(rewrite_then_cluster),    cmocka_unit_test(rewrite_twice),
		cmocka_unit_test(new_file_of_its_own),     cmocka_unit_test(made_here),
		cmocka_unit_test(named_together_is_no_swap), cmocka_unit_test(files_of_others),
		cmocka_unit_test(unexplained_is_an_error), cmocka_unit_test(unlogged_and_back),
		cmocka_unit_test(doubt_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
