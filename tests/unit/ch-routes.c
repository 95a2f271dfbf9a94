/* lib/ch/routes: rules, patterns, templates, and every problem with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/ch/routes.h"

static struct ws_routes *
parse(const char *text)
{
	struct ws_buf problems = {0};
	struct ws_routes *r = ws_routes_parse(text, strlen(text), "f", &problems);

	if (problems.len)
		print_message("%s", ws_buf_cstr(&problems));
	assert_int_equal(problems.len == 0, r != NULL);
	ws_buf_free(&problems);
	return r;
}

static void
assert_problem(const char *text, const char *want)
{
	struct ws_buf problems = {0};

	assert_null(ws_routes_parse(text, strlen(text), "f", &problems));
	if (!strstr(ws_buf_cstr(&problems), want))
		fail_msg("%s: %s", text, (char *)problems.data);
	ws_buf_free(&problems);
}

static int
resolve(const struct ws_routes *r, const char *nsp, const char *name, struct ws_route *out)
{
	struct ws_err err;

	return ws_routes_resolve(r, "db", nsp, name, out, &err);
}

static void
test_glob(void **state)
{
	(void)state;
	assert_true(route_glob("*", "a.b"));
	assert_true(route_glob("a.*", "a.b"));
	assert_true(route_glob("a.b", "a.b"));
	assert_true(route_glob("*.x*y*", "a.x1y2"));
	assert_true(route_glob("a.[b-d]?", "a.cz"));
	assert_true(route_glob("a.[!b]", "a.c"));
	assert_true(route_glob("a.\\*", "a.*"));
	assert_true(route_glob("a.[", "a.["));
	assert_false(route_glob("a.b", "a.bc"));
	assert_false(route_glob("a.b", "a."));
	assert_false(route_glob("a.\\*", "a.b"));
	assert_false(route_glob("a.[!b]", "a.b"));
	assert_false(route_glob("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	assert_false(route_glob("", "a"));
	assert_true(route_glob("", ""));
}

static void
test_defaults(void **state)
{
	struct ws_routes *r = parse("\n  # nothing\n\r\n");
	struct ws_route x;
	struct ws_route_column c;

	(void)state;
	assert_int_equal(resolve(r, "public", "t", &x), 1);
	assert_string_equal(x.database, "db");
	assert_string_equal(x.table, "public_t");
	assert_int_equal(x.deletes, WS_DEL_TOMBSTONE);
	assert_int_equal(x.drop_table, WS_DROP_KEEP);
	assert_int_equal(x.drop_column, WS_DROP_DROP);
	assert_int_equal(x.unfit, WS_UNFIT_STOP);
	assert_string_equal(x.extra[WS_X_VERSION], "_version");
	ws_route_fini(&x);
	ws_routes_column(r, "public", "t", "c", &c);
	assert_false(c.excluded);
	assert_null(c.name);
	ws_routes_free(r);
}

static void
test_first_match(void **state)
{
	struct ws_routes *r = parse("table public.a deletes=soft\n"
	                            "table ~^public\\. name=\"{table} x\" database=d_{schema} order-by=\"a, \"\"b\"\"\"\n"
	                            "exclude *.z*\n"
	                            "table public.* deletes=discard\n"
	                            "column public.a.s exclude\n"
	                            "column ~\\.n$ name=m type=\"Nullable(Int8)\"\n"
	                            "column *.*.n name=never");
	struct ws_route x;
	struct ws_route_column c;

	(void)state;
	assert_int_equal(resolve(r, "public", "a", &x), 1);
	assert_int_equal(x.deletes, WS_DEL_SOFT);
	assert_int_equal(x.line, 1);
	assert_string_equal(x.table, "public_a");
	ws_route_fini(&x);
	assert_int_equal(resolve(r, "public", "b", &x), 1);
	assert_int_equal(x.deletes, WS_DEL_TOMBSTONE);
	assert_string_equal(x.table, "b x");
	assert_string_equal(x.database, "d_public");
	assert_string_equal(x.order_by, "a, \"b\"");
	ws_route_fini(&x);
	assert_int_equal(resolve(r, "public", "zebra", &x), 0);
	assert_int_equal(resolve(r, "other", "b", &x), 0);
	ws_routes_column(r, "public", "a", "s", &c);
	assert_true(c.excluded);
	ws_routes_column(r, "public", "q", "n", &c);
	assert_string_equal(c.name, "m");
	assert_string_equal(c.type, "Nullable(Int8)");
	ws_routes_free(r);
}

static void
test_leaves(void **state)
{
	struct ws_routes *r = parse("exclude public.p_tmp\n"
								"table public.p partitions=root name=all\n"
								"table public.*\n");
	struct ws_route x;
	bool shared;

	(void)state;
	assert_int_equal(ws_routes_resolve_leaf(r, "db", "public", "p_1", "public", "p", &x, &shared, NULL), 1);
	assert_true(shared);
	assert_string_equal(x.table, "all");
	ws_route_fini(&x);
	assert_int_equal(ws_routes_resolve_leaf(r, "db", "public", "q_1", "public", "q", &x, &shared, NULL), 1);
	assert_false(shared);
	assert_string_equal(x.table, "public_q_1");
	ws_route_fini(&x);
	assert_int_equal(ws_routes_resolve_leaf(r, "db", "public", "p_tmp", "public", "p", &x, &shared, NULL), 0);
	assert_int_equal(ws_routes_resolve_leaf(r, "db", "public", "p_1", NULL, NULL, &x, &shared, NULL), 1);
	assert_false(shared);
	ws_route_fini(&x);
	ws_routes_free(r);
}

static void
test_problems(void **state)
{
	(void)state;
	assert_problem("tabel x", "f:1: a rule begins with");
	assert_problem("table", "f:1: table names nothing");
	assert_problem("\ntable x", "f:2: x: a table is SCHEMA.TABLE");
	assert_problem("column a.b type=x", "f:1: a.b: a column is");
	assert_problem("column a.b.c", "says nothing");
	assert_problem("column a.b.c exclude name=x", "stands alone");
	assert_problem("column a.b.c bla", "a column takes");
	assert_problem("exclude a.b x=y", "exclude takes no options");
	assert_problem("table a.b x", "an option is NAME=VALUE");
	assert_problem("table a.b x=y", "unknown option x");
	assert_problem("table a.b ttl=", "ttl= has no value");
	assert_problem("table a.b deletes=x", "not one of tombstone, soft, discard, history");
	assert_problem("table a.b name={x}", "unknown word in a name template");
	assert_problem("table a.b name=x}", "} without {");
	assert_problem("table a.b name={tab", "unknown word");
	assert_problem("table \"a.b", "has no end");
	assert_problem("table ~(", "regular expression");
	assert_problem("table a.b version-column=none", "nothing decides");
	assert_problem("table a.b deleted-column=none", "needs deletes=discard");
	assert_problem("table a.b deletes=history op-column=none", "cannot tell deletes");
	assert_problem("table a.b deletes=history engine=ReplacingMergeTree", "replacing engine");
	assert_problem("table a.b xid-column=x commit-ts-column=x", "two extra columns");
	assert_problem("table a.b type-change=follow", "not one of rebuild, stop");
	assert_problem("table a.b drop-column=warn", "not one of keep, drop, stop");
	assert_problem("table a.b drop-table=x", "not one of keep, warn, drop, stop");
	assert_problem("table a.b rename-table=x", "not one of rename, new, keep, stop");
	assert_problem("table a.b partitions=root leaf-column=none", "does not go with");
	assert_problem("table a.b partitions=root rename-table=new", "does not go with");
	assert_problem("table a.b x\nfoo\n", "f:2:");
}

static void
test_names(void **state)
{
	struct ws_routes *r = parse("table *.long name={table}{table}{table}{table}{table}\ntable *");
	char name[64];
	struct ws_route x;

	(void)state;
	memset(name, 'x', 63);
	name[63] = 0;
	assert_int_equal(resolve(r, name, name, &x), 1);
	assert_int_equal(strlen(x.table), 127);
	ws_route_fini(&x);
	ws_routes_free(r);
	r = parse("table * name={table}{table}{table}{table}{table}");
	assert_int_equal(resolve(r, "s", name, &x), -1);
	ws_routes_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_glob), cmocka_unit_test(test_defaults),
	                                   cmocka_unit_test(test_first_match), cmocka_unit_test(test_leaves), cmocka_unit_test(test_problems),
	                                   cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
