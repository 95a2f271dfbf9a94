/* lib/wal/hold.c: sets of standbys, what they have flushed, and how far a position covers a timeline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "history.h"
#include "ws/hold.h"

static void
label_is(const char *text, const char *label, unsigned need)
{
	struct ws_err err = {0};
	struct ws_hold h;

	if (ws_hold_parse("--hold-back", text, &h, &err) != 0)
		fail_msg("%s", err.msg);
	assert_string_equal(h.label, label);
	assert_int_equal(h.need, need);
	ws_hold_fini(&h);
}

static void
refused(const char *text)
{
	struct ws_err err = {0};
	struct ws_hold h;

	assert_int_equal(ws_hold_parse("--hold-back", text, &h, &err), -1);
	assert_int_equal(err.status, WS_EUSAGE);
	assert_ptr_equal(strstr(err.msg, "--hold-back: "), err.msg);
}

static void
sets(void **state)
{
	(void)state;
	label_is("b", "b", 1);
	label_is(" Node-1.example_x ", "node-1.example_x", 1);
	label_is("a, B ,c", "a,b,c", 3);
	label_is("ANY 1 (a, b)", "1:a,b", 1);
	label_is("any 2(a,b , c) ", "2:a,b,c", 2);
	label_is("ANY 2 (a, b)", "a,b", 2);
	label_is("any", "any", 1);
	label_is("anyone", "anyone", 1);
	const char *bad[] = {"",          " ",         ",",          "a,",         ",a",        "a b",     "a,,b",   "a,A",
	                     "a/b",       "*",         "a'b",        "\"a\"",      "ANY 0 (a)", "ANY 3 (a, b)",
	                     "ANY 1 a",   "ANY (a)",   "ANY 1 (a",   "ANY 1 ()",   "ANY 1 (a) b", "FIRST 1 (a, b)",
	                     "ANY -1 (a)", "ANY 99999999999999999999 (a)"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		refused(bad[i]);
	char name[80], many[80] = "";

	memset(name, 'x', 63);
	name[63] = 0;
	label_is(name, name, 1);
	name[63] = 'x';
	name[64] = 0;
	refused(name);
	for (char c = 'a'; c < 'a' + WS_HOLD_NAMES_MAX; c++)
		strcat(many, (char[]){c, ',', 0});
	many[2 * WS_HOLD_NAMES_MAX - 1] = 0;
	label_is(many, many, WS_HOLD_NAMES_MAX);
	strcat(many, ",zz");
	refused(many);
}

static void
flushed_is(const char *set, const struct ws_hold_row *rows, size_t n, ws_lsn want, unsigned there)
{
	struct ws_err err = {0};
	struct ws_hold h;
	unsigned present = 99;

	assert_int_equal(ws_hold_parse("-", set, &h, &err), 0);
	assert_int_equal(ws_hold_flushed(&h, rows, n, &present), want);
	assert_int_equal(present, there);
	ws_hold_fini(&h);
}

static void
flushed(void **state)
{
	const struct ws_hold_row rows[] = {{"a", 100, 200}, {"B", 300, 400}, {"c", 500, 250}, {"x", 0, 600},
	                                   {"d", 700, 700}, {"D", 50, 700},  {"y", 900, 0}};
	const size_t n = sizeof rows / sizeof rows[0];

	(void)state;
	flushed_is("a", rows, n, 100, 1);
	flushed_is("b", rows, n, 300, 1);
	flushed_is("c", rows, n, 250, 1);         /* no more than it was sent */
	flushed_is("d", rows, n, 50, 1);          /* two of one name */
	flushed_is("a,b,c", rows, n, 100, 3);     /* all */
	flushed_is("any 1 (a,b,c)", rows, n, 300, 3);
	flushed_is("any 2 (a,b,c)", rows, n, 250, 3);
	flushed_is("any 1 (a,none)", rows, n, 100, 1);
	flushed_is("a,none", rows, n, 0, 1);      /* one is away */
	flushed_is("x", rows, n, 0, 0);           /* said nothing yet */
	flushed_is("y", rows, n, 0, 0);           /* sent nothing */
	flushed_is("a", rows, 0, 0, 0);
}

static void
limits(void **state)
{
	struct ws_history h = history(5, "1\t0/300\tx\n3\t0/500\ty\n");

	(void)state;
	/* One timeline. */
	assert_int_equal(ws_hold_limit((struct ws_pos){5, 0x900}, 5, NULL), 0x900);
	/* Read on an older one: up to its end. */
	assert_int_equal(ws_hold_limit((struct ws_pos){5, 0x900}, 1, &h), 0x300);
	assert_int_equal(ws_hold_limit((struct ws_pos){5, 0x900}, 3, &h), 0x500);
	assert_int_equal(ws_hold_limit((struct ws_pos){5, 0x280}, 1, &h), 0x280);
	/* Of an older one: what it had beyond its end was another branch's. */
	assert_int_equal(ws_hold_limit((struct ws_pos){1, 0x900}, 5, &h), 0x300);
	assert_int_equal(ws_hold_limit((struct ws_pos){1, 0x200}, 5, &h), 0x200);
	assert_int_equal(ws_hold_limit((struct ws_pos){3, 0x400}, 5, &h), 0x400);
	/* On no common way. */
	assert_int_equal(ws_hold_limit((struct ws_pos){2, 0x100}, 5, &h), 0);
	assert_int_equal(ws_hold_limit((struct ws_pos){5, 0x100}, 2, &h), 0);
	ws_history_fini(&h);
	/* Switches that do not ascend: 1 ends where the way leaves it. */
	h = history(3, "1\t0/300\tx\n2\t0/200\ty\n");
	assert_int_equal(ws_hold_limit((struct ws_pos){3, 0x900}, 1, &h), 0x200);
	assert_int_equal(ws_hold_limit((struct ws_pos){1, 0x250}, 3, &h), 0x200);
	ws_history_fini(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets),
		cmocka_unit_test(flushed),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
