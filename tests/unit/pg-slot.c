/* lib/pg: what is proved of a slot, its line, connection strings of hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/slot.h"

static struct ws_slot
good(void)
{
	struct ws_slot s = {.restart = {3, 0x100000060}, .has_retained = true, .retained = 4096};

	strcpy(s.name, "ws");
	strcpy(s.wal_status, "reserved");
	return s;
}

static void
is_refused(const struct ws_slot *s, ws_lsn lsn, const char *reason)
{
	struct ws_err err = {0};

	assert_int_equal(ws_slot_check(s, lsn, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_string_equal(err.reason, reason);
}

static void
test_check(void **state)
{
	struct ws_slot s = good();
	struct ws_err err = {0};

	(void)state;
	assert_int_equal(ws_slot_check(&s, 0, &err), 0);
	assert_int_equal(ws_slot_check(&s, s.restart.lsn, &err), 0);
	is_refused(&s, s.restart.lsn - 1, "slot_too_new");
	strcpy(s.wal_status, "extended");
	assert_int_equal(ws_slot_check(&s, s.restart.lsn, &err), 0);
	/* Moving may heal it, so it is usable. */
	strcpy(s.wal_status, "unreserved");
	is_refused(&s, s.restart.lsn, "slot_lost");
	assert_int_equal(ws_slot_check_usable(&s, &err), 0);
	/* Given up while in use, as 17 shows it. */
	strcpy(s.invalidation, "wal_removed");
	is_refused(&s, s.restart.lsn, "slot_lost");
	assert_int_equal(ws_slot_check_usable(&s, &err), -1);
	assert_non_null(strstr(err.msg, "wal_removed"));
	s = good();
	/* A position says nothing: 16 and 17 keep what a client reported for a lost one. */
	strcpy(s.wal_status, "lost");
	is_refused(&s, s.restart.lsn, "slot_lost");
	s = good();
	s.restart = (struct ws_pos){0, 0};
	s.wal_status[0] = 0;
	is_refused(&s, 0, "slot_lost");
	s = good();
	s.logical = true;
	strcpy(s.wal_status, "lost");
	is_refused(&s, 0, "slot_wrong_type");
	s = good();
	s.temporary = true;
	is_refused(&s, 0, "slot_wrong_type");
}

static void
line_is(const struct ws_slot *s, bool json, const char *want)
{
	struct ws_buf b = {0};
	struct ws_slot_line l = {.out = &b, .json = json};

	ws_slot_put(&l, s);
	ws_slot_put_end(&l);
	assert_string_equal(ws_buf_cstr(&b), want);
	ws_buf_free(&b);
}

static void
test_line(void **state)
{
	struct ws_slot s = good();
	struct ws_buf b = {0};
	struct ws_slot_line l = {.out = &b};

	(void)state;
	line_is(&s, false,
			"slot=ws type=physical active=no restart_lsn=1/00000060 timeline=3 wal_status=reserved "
			"retained_bytes=4096\n");
	s.active = true;
	s.pid = 77;
	s.has_safe = true;
	s.safe = -5;
	line_is(&s, true,
			"{\"slot\":\"ws\",\"type\":\"physical\",\"plugin\":null,\"database\":null,"
			"\"confirmed_flush_lsn\":null,\"temporary\":false,\"active\":true,\"pid\":77,"
			"\"restart_lsn\":\"1/00000060\",\"timeline\":3,\"wal_status\":\"reserved\","
			"\"retained_bytes\":4096,\"safe_wal_size\":-5,\"invalidation_reason\":null,"
			"\"inactive_since\":null}\n");
	s = (struct ws_slot){.name = "lg", .logical = true, .plugin = "pgoutput", .confirmed = 0x30};
	strcpy(s.database, "a \"b\"\\\x01\xc3\xa4");
	line_is(
		&s, true,
		"{\"slot\":\"lg\",\"type\":\"logical\",\"plugin\":\"pgoutput\",\"database\":"
		"\"a \\\"b\\\"\\\\\\u0001\xc3\xa4\",\"confirmed_flush_lsn\":\"0/00000030\","
		"\"temporary\":false,\"active\":false,\"pid\":null,\"restart_lsn\":null,\"timeline\":null,"
		"\"wal_status\":null,\"retained_bytes\":null,\"safe_wal_size\":null,"
		"\"invalidation_reason\":null,\"inactive_since\":null}\n");
	ws_slot_put_text(&l, "state", "kept");
	ws_slot_put_text(&l, "none", NULL);
	ws_slot_put_text(&l, "error", "two words");
	ws_slot_put_end(&l);
	assert_string_equal(ws_buf_cstr(&b), "state=kept error=\"two words\"\n");
	ws_buf_free(&b);
}

/* What libpq makes of it is asked of libpq in the integration test; here the words.  Only
 * parameters that were given are compared: libpq's list has others with defaults. */
static void
has_words(const char *conninfo, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strstr(conninfo, words[i]))
			fail_msg("%s is not in %s", words[i], conninfo);
}

static void
candidate(const char *base, const char *host, const char *name, const char *const *words, size_t n)
{
	struct ws_err err = {0};
	char *conninfo, *got;

	assert_int_equal(ws_slot_candidate(base, host, &conninfo, &got, &err), 0);
	assert_string_equal(got, name);
	has_words(conninfo, words, n);
	free(conninfo);
	free(got);
}

#define CANDIDATE(base, host, name, ...)                                                           \
	candidate(base, host, name, (const char *const[]){__VA_ARGS__},                                \
			  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void
test_candidate(void **state)
{
	(void)state;
	unsetenv("PGDATABASE");
	unsetenv("PGSERVICE");
	CANDIDATE(NULL, "db2", "db2", "host='db2'", "dbname='postgres'");
	CANDIDATE("user=ws port=5433", "db2", "db2", "user='ws'", "host='db2'", "port='5433'");
	CANDIDATE("user=ws port=5433", "db2:5434", "db2:5434", "host='db2'", "port='5434'");
	CANDIDATE("user=ws", "/run/pg:5434", "/run/pg:5434", "host='/run/pg'", "port='5434'");
	CANDIDATE("user=ws", "/run/a:b", "/run/a:b", "host='/run/a:b'");
	CANDIDATE("user=ws", "::1", "::1", "host='::1'");
	CANDIDATE("user=ws", "[fe80::1]:99", "[fe80::1]:99", "host='fe80::1'", "port='99'");
	CANDIDATE("user=ws", "[fe80::1]", "[fe80::1]", "host='fe80::1'");
	CANDIDATE("user=ws dbname=x", "host=h password=it''s", "h", "dbname='x'", "user='ws'");
	CANDIDATE("user=ws", "postgresql://me:secret@h:7/d", "h:7", "user='me'", "password='secret'",
			  "host='h'", "port='7'", "dbname='d'");
	CANDIDATE("postgresql://me@h0:6/d", "h", "h", "user='me'", "host='h'", "port='6'",
			  "dbname='d'");
	CANDIDATE("mydb", "h", "h", "dbname='mydb'", "host='h'");
	CANDIDATE(NULL, "host=h password='a b\\\\c\\'d'", "h", "password='a b\\\\c\\'d'");
	CANDIDATE(NULL, "service=s", "service=s", "service='s'");
}

static void
test_conninfo(void **state)
{
	struct ws_err err = {0};
	char *s;

	(void)state;
	/* An address belongs to the host that it was given with. */
	s = ws_slot_conninfo("host=a hostaddr=10.0.0.1", "host=b", &err);
	assert_non_null(s);
	assert_null(strstr(s, "10.0.0.1"));
	free(s);
	s = ws_slot_conninfo("host=a hostaddr=10.0.0.1", NULL, &err);
	assert_non_null(strstr(s, "hostaddr='10.0.0.1'"));
	free(s);
	s = ws_slot_conninfo("host=a,b port=1,2 target_session_attrs=primary user=u", "host=b", &err);
	assert_null(strstr(s, "port"));
	assert_null(strstr(s, "target_session_attrs"));
	assert_non_null(strstr(s, "user='u'"));
	free(s);
	/* Who names a service may mean its database. */
	s = ws_slot_conninfo("service=s", NULL, &err);
	assert_null(strstr(s, "dbname"));
	free(s);
	/* The session's kind is ours to choose. */
	s = ws_slot_conninfo("host=a replication=true", NULL, &err);
	assert_null(strstr(s, "replication"));
	free(s);
	assert_null(ws_slot_conninfo("nonsense=1", NULL, &err));
	assert_int_equal(err.status, WS_EUSAGE);
	assert_null(ws_slot_conninfo("host=a password='secret", "host=b", &err));
	assert_null(strstr(err.msg, "secret"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_check), cmocka_unit_test(test_line),
									   cmocka_unit_test(test_candidate),
									   cmocka_unit_test(test_conninfo)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
