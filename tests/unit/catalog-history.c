/* lib/catalog/history.c, histwrite.c: shapes as of any LSN, through drops, filenode swaps, pruning
 * and rewinding; readers in other processes beside a writer, and the death of either. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ws/shape.h"

#define DB 5u

static char dir[64];
static struct ws_err err;

static int
setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ws-unit-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
teardown(void **state)
{
	static const char *names[] = {"data.mdb", "lock.mdb", ".lock"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static void
put_rel(struct ws_cathist *h, ws_oid oid, const char *name, ws_oid filenode)
{
	struct ws_attr a = {"c", 23, -1, 1, 4, 'i', 'p', 0, "integer", NULL};
	struct ws_rel r = {.oid = oid, .nspname = "s", .name = (char *)name, .kind = 'r', .persistence = 'p',
	                   .replident = 'd', .filenode = filenode, .natts = 1, .attrs = &a};

	assert_int_equal(ws_cathist_put_rel(h, &r, &err), 0);
}

static void
put_type(struct ws_cathist *h, ws_oid oid, const char *name)
{
	struct ws_type t = {.oid = oid, .nspname = "s", .name = (char *)name, .typtype = 'b', .out_lib = "",
	                    .out_sym = "x"};

	assert_int_equal(ws_cathist_put_type(h, &t, &err), 0);
}

static void
begin(struct ws_cathist *h, ws_lsn lsn)
{
	assert_int_equal(ws_cathist_begin(h, DB, (struct ws_pos){1, lsn}, &err), 0);
}

static void
commit(struct ws_cathist *h)
{
	assert_int_equal(ws_cathist_commit(h, &err), 0);
}

/* "name" of the relation at lsn, "-" when there is none, "!" on an error. */
static const char *
name_at(struct ws_cathist *h, ws_oid oid, ws_lsn lsn)
{
	static char name[64];
	struct ws_rel *r;
	int rc = ws_cathist_rel(h, DB, oid, lsn, &r, &err);

	snprintf(name, sizeof name, "%s", rc < 0 ? "!" : rc ? r->name : "-");
	ws_rel_free(r);
	return name;
}

static ws_oid
file_at(struct ws_cathist *h, ws_oid filenode, ws_lsn lsn)
{
	ws_oid oid;

	assert_true(ws_cathist_filenode(h, DB, filenode, lsn, &oid, &err) >= 0);
	return oid;
}

/* Oids as "1,2,3". */
static const char *
oids(int rc, ws_oid *list, size_t n)
{
	static char text[256];
	size_t len = 0;

	assert_int_equal(rc, 0);
	text[0] = 0;
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", i ? "," : "", list[i]);
	free(list);
	return text;
}

static const char *
list_at(struct ws_cathist *h, ws_lsn lsn)
{
	ws_oid *l;
	size_t n;
	int rc = ws_cathist_list(h, DB, lsn, &l, &n, &err);

	return oids(rc, l, n);
}

static const char *
changes_at(struct ws_cathist *h, ws_lsn lsn)
{
	ws_oid *l;
	size_t n;
	int rc = ws_cathist_changes(h, DB, lsn, &l, &n, &err);

	return oids(rc, l, n);
}

/* C0 = 100: a(10, file 1000), b(20, 2000).  200: a renamed; 300: files swapped, c created;
 * 400: b dropped; 500: d takes b's old file. */
static struct ws_cathist *
story(void)
{
	struct ws_cathist *h = ws_cathist_open(dir, true, &err);

	assert_non_null(h);
	begin(h, 100);
	put_rel(h, 10, "a", 1000);
	put_rel(h, 20, "b", 2000);
	put_type(h, 50, "t");
	commit(h);
	begin(h, 200);
	put_rel(h, 10, "a2", 1000);
	put_rel(h, 20, "b", 2000);
	put_type(h, 50, "t2");
	commit(h);
	begin(h, 300);
	put_rel(h, 10, "a2", 2000);
	put_rel(h, 20, "b", 1000);
	put_rel(h, 30, "c", 3000);
	commit(h);
	begin(h, 400);
	assert_int_equal(ws_cathist_drop_rel(h, 20, &err), 0);
	assert_int_equal(ws_cathist_drop_rel(h, 99, &err), 0);
	assert_int_equal(ws_cathist_drop_type(h, 50, &err), 0);
	commit(h);
	begin(h, 500);
	put_rel(h, 40, "d", 1000);
	commit(h);
	return h;
}

static void
test_story(void **state)
{
	struct ws_cathist *h = story();
	struct ws_type *t;
	struct ws_pos first, last;

	(void)state;
	assert_string_equal(name_at(h, 10, 99), "-");
	assert_string_equal(name_at(h, 10, 100), "a");
	assert_string_equal(name_at(h, 10, 199), "a");
	assert_string_equal(name_at(h, 10, 200), "a2");
	assert_string_equal(name_at(h, 10, UINT64_MAX), "a2");
	assert_string_equal(name_at(h, 20, 399), "b");
	assert_string_equal(name_at(h, 20, 400), "-");
	assert_string_equal(name_at(h, 99, 400), "-");
	assert_int_equal(file_at(h, 1000, 99), 0);
	assert_int_equal(file_at(h, 1000, 299), 10);
	assert_int_equal(file_at(h, 2000, 299), 20);
	assert_int_equal(file_at(h, 1000, 300), 20);
	assert_int_equal(file_at(h, 2000, 300), 10);
	assert_int_equal(file_at(h, 1000, 400), 0);
	assert_int_equal(file_at(h, 1000, 500), 40);
	assert_int_equal(file_at(h, 2000, 500), 10);
	assert_string_equal(list_at(h, 99), "");
	assert_string_equal(list_at(h, 100), "10,20");
	assert_string_equal(list_at(h, 350), "10,20,30");
	assert_string_equal(list_at(h, 500), "10,30,40");
	assert_string_equal(changes_at(h, 100), "");
	assert_string_equal(changes_at(h, 200), "10");
	assert_string_equal(changes_at(h, 300), "10,20,30");
	assert_string_equal(changes_at(h, 400), "20");
	assert_string_equal(changes_at(h, 450), "");
	assert_int_equal(ws_cathist_type(h, DB, 50, 150, &t, &err), 1);
	assert_string_equal(t->name, "t");
	assert_true(t->lsn == 100 && t->db == DB);
	ws_type_free(t);
	assert_int_equal(ws_cathist_type(h, DB, 50, 400, &t, &err), 0);
	assert_int_equal(ws_cathist_rel(h, DB + 1, 10, 400, &(struct ws_rel *){NULL}, &err), 0);
	assert_int_equal(ws_cathist_captured(h, DB, &first, &last, &err), 1);
	assert_true(first.lsn == 100 && last.lsn == 500 && last.tli == 1);
	assert_int_equal(ws_cathist_captured(h, DB + 1, &first, &last, &err), 0);
	/* Repeating a boundary changes nothing; an older one is refused. */
	begin(h, 500);
	put_rel(h, 40, "d", 1000);
	commit(h);
	assert_string_equal(changes_at(h, 500), "40");
	assert_int_equal(ws_cathist_begin(h, DB, (struct ws_pos){1, 499}, &err), -1);
	assert_string_equal(err.reason, "catalog_ahead");
	/* Given up: nothing of it stays. */
	begin(h, 600);
	put_rel(h, 40, "e", 4000);
	ws_cathist_abort(h);
	assert_string_equal(name_at(h, 40, 600), "d");
	assert_int_equal(file_at(h, 4000, 600), 0);
	ws_cathist_close(h);
}

static void
test_prune(void **state)
{
	struct ws_cathist *h = story();

	(void)state;
	assert_int_equal(ws_cathist_prune(h, DB, 50, &err), 0);
	assert_string_equal(name_at(h, 10, 100), "a");
	assert_int_equal(ws_cathist_prune(h, DB, 450, &err), 0);
	assert_string_equal(name_at(h, 10, 450), "a2");
	assert_string_equal(name_at(h, 20, 450), "-");
	assert_string_equal(list_at(h, 450), "10,30");
	assert_int_equal(file_at(h, 2000, 450), 10);
	assert_int_equal(file_at(h, 1000, 450), 0);
	assert_int_equal(file_at(h, 1000, 500), 40);
	assert_string_equal(changes_at(h, 500), "40");
	/* Below: what is not exact any more is an error, not an absence. */
	assert_string_equal(name_at(h, 10, 100), "!");
	assert_string_equal(err.reason, "catalog_pruned");
	assert_string_equal(name_at(h, 20, 399), "!");
	assert_string_equal(name_at(h, 10, 300), "a2");
	assert_int_equal(ws_cathist_rewind(h, DB, 300, &err), -1);
	assert_string_equal(err.reason, "catalog_pruned");
	/* Not past what is captured. */
	assert_int_equal(ws_cathist_prune(h, DB, 9999, &err), 0);
	assert_string_equal(name_at(h, 40, 500), "d");
	assert_string_equal(list_at(h, 500), "10,30,40");
	ws_cathist_close(h);
}

static void
test_rewind(void **state)
{
	struct ws_cathist *h = story();
	struct ws_pos first, last;

	(void)state;
	assert_int_equal(ws_cathist_rewind(h, DB, 350, &err), 0);
	assert_string_equal(list_at(h, 9999), "10,20,30");
	assert_int_equal(file_at(h, 1000, 9999), 20);
	assert_string_equal(changes_at(h, 400), "");
	assert_string_equal(changes_at(h, 300), "10,20,30");
	assert_int_equal(ws_cathist_captured(h, DB, &first, &last, &err), 1);
	assert_true(last.lsn == 350 && first.lsn == 100);
	begin(h, 380);
	put_rel(h, 60, "new", 6000);
	commit(h);
	assert_string_equal(list_at(h, 380), "10,20,30,60");
	/* Before the first capture: nothing is left. */
	assert_int_equal(ws_cathist_rewind(h, DB, 0, &err), 0);
	assert_string_equal(list_at(h, 9999), "");
	assert_int_equal(ws_cathist_captured(h, DB, &first, &last, &err), 0);
	ws_cathist_close(h);
}

static void
test_open(void **state)
{
	struct ws_cathist *h, *w;

	(void)state;
	assert_null(ws_cathist_open(dir, false, &err));
	assert_int_equal(err.status, WS_ETEMP);
	w = ws_cathist_open(dir, true, &err);
	assert_non_null(w);
	assert_null(ws_cathist_open(dir, true, &err));
	assert_int_equal(err.status, WS_ETEMP);
	h = ws_cathist_open(dir, false, &err);
	assert_non_null(h);
	assert_int_equal(ws_cathist_begin(h, DB, (struct ws_pos){1, 1}, &err), -1);
	assert_int_equal(err.status, WS_EUSAGE);
	ws_cathist_close(h);
	ws_cathist_close(w);
}

/* Boundary n (LSN 1000 + n) gives relation 1..5 the name "n"; all five always agree. */
static void
write_forever(int ready)
{
	struct ws_cathist *h = ws_cathist_open(dir, true, &err);
	struct ws_pos first, last = {1, 1000};
	char name[16];

	if (!h || ws_cathist_captured(h, DB, &first, &last, &err) < 0)
		_exit(1);
	if (!last.lsn)
		last.lsn = 1000;
	for (ws_lsn lsn = last.lsn + 1;; lsn++) {
		snprintf(name, sizeof name, "%u", (unsigned)lsn);
		begin(h, lsn);
		for (ws_oid o = 1; o <= 5; o++)
			put_rel(h, o, name, 100 + o);
		commit(h);
		if (lsn == last.lsn + 3 && write(ready, "", 1) != 1)
			_exit(1);
	}
}

static void
check_agreement(struct ws_cathist *h)
{
	struct ws_pos first, last;
	char want[16];

	assert_int_equal(ws_cathist_captured(h, DB, &first, &last, &err), 1);
	for (ws_lsn lsn = last.lsn > 1020 ? last.lsn - 10 : first.lsn; lsn <= last.lsn; lsn++) {
		snprintf(want, sizeof want, "%u", (unsigned)lsn);
		for (ws_oid o = 1; o <= 5; o++)
			assert_string_equal(name_at(h, o, lsn), want);
	}
}

static pid_t
start_writer(int ready[2])
{
	char c;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		write_forever(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	return pid;
}

static void
test_kill(void **state)
{
	struct ws_cathist *h;
	int ready[2], status;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	for (int round = 0; round < 8; round++) {
		pid_t pid = start_writer(ready);

		/* A reader that dies inside: its slot must not stay in the way. */
		pid_t reader = fork();

		if (reader == 0) {
			h = ws_cathist_open(dir, false, &err);
			for (;;)
				name_at(h, 1, 1001);
		}
		h = ws_cathist_open(dir, false, &err);
		assert_non_null(h);
		for (int i = 0; i < 20; i++)
			check_agreement(h);
		kill(reader, SIGKILL);
		waitpid(reader, &status, 0);
		usleep((useconds_t)(round * 700));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		check_agreement(h);
		ws_cathist_close(h);
	}
	close(ready[0]);
	close(ready[1]);
	h = ws_cathist_open(dir, true, &err);
	assert_non_null(h);
	check_agreement(h);
	ws_cathist_close(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_story, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_prune, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rewind, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_open, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
	};

	return cmocka_run_group_tests_name("catalog-history", tests, NULL, NULL);
}
