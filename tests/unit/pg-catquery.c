/* lib/pg/catqrel.c: the single element of an array's text, for any delimiter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/catquery.h"

static void
test_unarray(void **state)
{
	static const struct {
		const char *in, *out;
	} c[] = {
	    {"{7}", "7"},
	    {"{abc}", "abc"},
	    {"{\"a b\"}", "a b"},
	    {"{\"\"}", ""},
	    {"{\"a\\\"b\\\\c\"}", "a\"b\\c"},
	    {"{\"{1,2}\"}", "{1,2}"},
	    {"{(1,1),(0,0)}", "(1,1),(0,0)"}, /* box: its delimiter is ';' */
	    {"{\"NULL\"}", "NULL"},
	    {"{NULL}", NULL},
	    {"{}", NULL},
	    {"", NULL},
	    {"{", NULL},
	    {"x", NULL},
	    {"{\"a}", NULL},
	    {"{\"}", NULL},
	    {"{\"a\\\"}", NULL},
	    {"{\"a\"b\"}", NULL},
	    {"[2:2]={1}", NULL},
	};
	char s[64];

	(void)state;
	for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
		strcpy(s, c[i].in);
		int rc = ws_catquery_unarray(s);

		assert_int_equal(rc, c[i].out ? 0 : -1);
		if (c[i].out)
			assert_string_equal(s, c[i].out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_unarray)};

	return cmocka_run_group_tests_name("pg-catquery", tests, NULL, NULL);
}
