/* lib/wal: WAL whose timeline switches, at every kind of place: what the writer compares and how it names it,
 * which records a reader hands out, that one that follows and one that comes later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/pg/recvdir.h"
#include "tmpdir.h"
#include "walmake.h"
#include "ws/history.h"
#include "ws/lsn.h"
#include "ws/waldir.h"
#include "ws/walread.h"

#define SEG  (1u << 20)
#define BASE 0x500000ull
#define PAGE WS_PAGE_SIZE
#define GENS 4

/* ---- branches ---- */

/* The path that is followed in the end, and at each fork the branch that was left. */
struct tree {
	const char *what;
	struct walmake path, left[GENS];
	ws_lsn fork[GENS]; /* of generation i from the one before; [0] unused */
	ws_tli tli[GENS];
	int n;
	struct ws_buf want; /* of the path's records: a line each */
	struct ws_buf history;
};

static void
add(struct tree *t, struct walmake *m, uint32_t len)
{
	ws_lsn at = wm_record(m, WS_RM_HEAP2, 0, 900, len, (uint8_t)m->tli);

	if (m == &t->path)
		ws_buf_printf(&t->want, "%llX tli %u\n", (unsigned long long)at, m->tli);
}

/* Records until the next would end past `to`, then one that ends there exactly (to is 8 bytes aligned). */
static void
fill(struct tree *t, ws_lsn to)
{
	struct walmake *m = &t->path;

	while (wm_lsn(m) + 3000 < to)
		add(t, m, 100 + (uint32_t)(wm_lsn(m) * 7 % 900));
	/* 24 of header, 5 before the data; a page header may come in between. */
	ws_lsn at = wm_lsn(m), page = (at + PAGE - 1) / PAGE * PAGE;
	uint32_t hdr = page >= to ? 0 : page % SEG ? WS_PAGE_HDR_SHORT : WS_PAGE_HDR_LONG;

	add(t, m, (uint32_t)(to - at) - hdr - 29);
	assert_true(wm_lsn(m) == to);
}

/* What the branch that is left has past the fork: whole records, then the first `part` bytes of a long one. */
static void
leave(struct tree *t, int records, uint32_t part)
{
	struct walmake *m = &t->left[t->n - 1];
	static uint8_t body[3 * SEG];

	*m = t->path;
	m->b = (struct ws_buf){0};
	ws_buf_put(&m->b, t->path.b.data, t->path.b.len);
	for (int i = 0; i < records; i++)
		add(t, m, 300);
	if (part)
		wm_record_part(m, WS_RM_HEAP2, 0, 901, body, sizeof body, part);
}

static void
begin(struct tree *t)
{
	*t = (struct tree){.what = "several", .n = 1, .tli = {1}};
	wm_init(&t->path, BASE, SEG, 0xD116);
}

/* A generation: the path goes on to fork, is left there, and goes on as tli.  records < 0: which then writes
 * nothing itself. */
static void
generation(struct tree *t, ws_lsn fork, ws_tli tli, int records, uint32_t part)
{
	if (wm_lsn(&t->path) != fork)
		fill(t, fork);
	leave(t, records, part);
	ws_buf_printf(&t->history, "%u\t0/%X\tno recovery target specified\n\n", t->tli[t->n - 1], (unsigned)fork);
	t->fork[t->n] = fork;
	t->tli[t->n++] = tli;
	t->path.tli = tli;
	if (records >= 0)
		add(t, &t->path, 42); /* END_OF_RECOVERY */
}

static void
finish(struct tree *t)
{
	while (wm_lsn(&t->path) < BASE + 3 * SEG + 5000)
		add(t, &t->path, 200 + (uint32_t)(wm_lsn(&t->path) * 7 % 3000));
	ws_buf_cstr(&t->want);
}

static void
end(struct tree *t)
{
	for (int i = 0; i < t->n - 1; i++)
		ws_buf_free(&t->left[i].b);
	ws_buf_free(&t->path.b);
	ws_buf_free(&t->want);
	ws_buf_free(&t->history);
}

/* ---- writing ---- */

static void
ok(int rc, const struct ws_err *err)
{
	if (rc != 0)
		fail_msg("%s", err->msg);
}

static struct ws_walwriter *
open_writer(void)
{
	struct ws_walwriter_opts o = {.segsize = SEG, .no_sync = true};
	struct ws_err err;
	struct ws_walwriter *w = ws_walwriter_open(dir, &o, &err);

	ok(w ? 0 : -1, &err);
	return w;
}

static void
append(struct ws_walwriter *w, ws_tli tli, const struct walmake *m, ws_lsn from, ws_lsn to)
{
	struct ws_err err;

	for (ws_lsn at = from; at < to;) {
		size_t n = to - at < 100000 ? (size_t)(to - at) : 100000;

		ok(ws_walwriter_append(w, tli, at, m->b.data + (at - BASE), n, &err), &err);
		at += n;
	}
}

/* As ws-receive does: history, back to the fork, what lies past it aside; then the descendant from its
 * segment's start. */
static void
go_over(struct ws_walwriter *w, const struct tree *t, int i)
{
	struct ws_history h;
	struct ws_err err;
	uint64_t aside;
	size_t n = 0;

	/* The lines of those before. */
	for (int k = 0; k < i; k++)
		n = (size_t)((uint8_t *)memchr(t->history.data + n, '\n', t->history.len - n) - t->history.data) + 2;
	ok(ws_walwriter_history(w, t->tli[i], t->history.data, n, &err), &err);
	ok(ws_walwriter_position(w, (struct ws_pos){t->tli[i - 1], t->fork[i]}, &err), &err);
	ok(ws_history_parse(t->tli[i], (const char *)t->history.data, n, &h, &err), &err);
	ok(ws_waldir_set_aside(dir, SEG, &h, false, &aside, &err), &err);
	ws_history_fini(&h);
}

/* Bytes of generation i, and of the branch that it left for. */
static void
write_generation(struct ws_walwriter *w, const struct tree *t, int i)
{
	const struct walmake *m = i == t->n - 1 ? &t->path : &t->left[i];

	append(w, t->tli[i], m, i ? ws_seg_start(t->fork[i], SEG) : BASE, wm_lsn(m));
}

/* ---- reading ---- */

struct reader {
	struct ws_walsrc *src;
	struct ws_walreader *r;
	ws_tli tli;
	ws_lsn done;
	bool past; /* a record was taken that a switch says is of the branch that was left */
	struct ws_buf got;
};

static void
open_reader(struct reader *r, bool follow)
{
	struct ws_walsrc_opts o = {.follow = follow};
	struct ws_err err;

	*r = (struct reader){.tli = 1, .done = BASE};
	r->src = ws_walsrc_open(dir, (struct ws_pos){1, BASE}, &o, &err);
	ok(r->src ? 0 : -1, &err);
	r->r = ws_walreader_new(SEG, 0, 0);
	ws_walreader_seek(r->r, BASE, BASE);
}

static void
close_reader(struct reader *r)
{
	ws_walsrc_close(r->src);
	ws_walreader_free(r->r);
	ws_buf_free(&r->got);
}

/* All that is there, as a tool reads it. */
static void
read_on(struct reader *r)
{
	struct ws_walchunk c;
	struct ws_rec rec;
	struct ws_err err;
	int rc;

	while (!r->past && (rc = ws_walsrc_next(r->src, &c, &err)) == 1) {
		if (c.tli != r->tli) {
			ws_lsn fork = ws_walsrc_switch(r->src, r->tli, &c);

			assert_true(c.tli > r->tli);
			if (r->done > fork) {
				r->past = true;
				break;
			}
			ws_walreader_fork(r->r, c.lsn, fork);
			r->tli = c.tli;
		}
		ok(ws_walreader_feed(r->r, c.lsn, c.p, c.n, &err), &err);
		while ((rc = ws_walsrc_record(r->src, r->tli, r->r, &rec, &err)) == 1) {
			ws_buf_printf(&r->got, "%llX tli %u\n", (unsigned long long)rec.start, rec.tli);
			r->done = rec.end;
		}
		ok(rc, &err);
	}
	if (!r->past)
		ok(rc, &err);
}

static void
same_records(struct reader *r, const struct tree *t)
{
	const char *got = ws_buf_cstr(&r->got), *want = (char *)t->want.data;
	size_t n = 0, line = 0;

	assert_false(r->past);
	for (; got[n] && got[n] == want[n]; n++)
		if (got[n] == '\n')
			line = n + 1;
	if (got[n] || want[n])
		fail_msg("%s: got %.24s, wanted %.24s", t->what, got + line, want + line);
	assert_true(r->done == wm_lsn(&t->path));
}

/* ---- cases ---- */

static bool
there(ws_tli tli, ws_lsn lsn, const char *suffix)
{
	char name[WS_WALNAME_MAX + 16];

	ws_seg_name(name, tli, lsn, SEG);
	strcat(name, suffix);
	return access(path(name), F_OK) == 0;
}

/* Names as PostgreSQL's recovery looks for them, with the path's bytes. */
static void
sealed(const struct tree *t)
{
	ws_lsn last = ws_seg_start(wm_lsn(&t->path), SEG), diff;
	struct ws_err err;

	for (ws_lsn seg = BASE; seg <= last; seg += SEG) {
		int newest = 0;
		ws_lsn n = seg < last ? SEG : wm_lsn(&t->path) - last;

		for (int i = 1; i < t->n; i++)
			if (t->fork[i] < seg + SEG)
				newest = i;
		assert_true(there(t->tli[newest], seg, seg < last ? "" : ".partial"));
		for (int i = newest + 1; i < t->n; i++)
			assert_false(there(t->tli[i], seg, "") || there(t->tli[i], seg, ".partial"));
		/* A segment past a fork keeps no ancestor's name that a reader takes. */
		for (int i = 0; i < newest; i++)
			if (seg >= t->fork[i + 1])
				assert_false(there(t->tli[i], seg, "") || there(t->tli[i], seg, ".partial"));
		const uint8_t *p = t->path.b.data + (seg - BASE);

		assert_int_equal(recvdir_compare(dir, SEG, t->tli[newest], seg, p, n, &diff, &err), 1);
	}
}

/* The path, received generation by generation.  A reader that follows either comes to the same records or,
 * when it took one past a fork, is stopped; one that comes later always does. */
static void
walk(struct tree *t, bool past)
{
	struct ws_walwriter *w = open_writer();
	struct reader follower, later;

	finish(t);
	write_generation(w, t, 0);
	open_reader(&follower, true);
	read_on(&follower);
	for (int i = 1; i < t->n; i++) {
		go_over(w, t, i);
		if (i == t->n - 1)
			read_on(&follower); /* the history is known before the segment is there */
		write_generation(w, t, i);
		read_on(&follower);
	}
	if (past)
		assert_true(follower.past);
	else
		same_records(&follower, t);
	close_reader(&follower);
	open_reader(&later, false);
	read_on(&later);
	same_records(&later, t);
	close_reader(&later);
	sealed(t);
	ws_walwriter_close(w);
	end(t);
}

static const struct {
	const char *what;
	ws_lsn fork;
} places[] = {
    {"in the middle of a segment", BASE + SEG + 300 * 1024 + 136},
    {"at a segment's start", BASE + 2 * SEG},
    {"behind a segment's first record", BASE + SEG + 400},
    {"at a page's start", BASE + SEG + 40 * PAGE},
    {"at a segment's last page", BASE + 2 * SEG - PAGE + 2000},
    {"8 bytes before a page's end", BASE + SEG + 41 * PAGE - 8},
};

static void
each_place(int records, uint32_t part, bool past)
{
	struct tree t;

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		assert_int_equal(setup(NULL), 0);
		begin(&t);
		t.what = places[i].what;
		generation(&t, places[i].fork, 2, records, part);
		walk(&t, past);
		assert_int_equal(teardown(NULL), 0);
	}
}

/* The old primary had nothing more, or a part of a record, up to segments of it: that is dropped. */
static void
test_clean(void **state)
{
	(void)state;
	each_place(0, 0, false);
}

static void
test_partial_record(void **state)
{
	(void)state;
	each_place(0, 30, false);
	each_place(0, 9 * PAGE, false);
	each_place(0, 2 * SEG + 5000, false);
}

/* A reader that took whole records past the fork cannot go on. */
static void
test_whole_records(void **state)
{
	(void)state;
	each_place(1, 0, true);
	each_place(3, SEG + 3000, true);
}

/* Promoted again and again, ids with gaps, before a segment was full. */
static void
test_several_in_one(void **state)
{
	struct tree t;

	(void)state;
	for (uint32_t part = 0; part < 10000; part += 4321) {
		assert_int_equal(setup(NULL), 0);
		begin(&t);
		generation(&t, BASE + SEG + 300 * 1024, 2, 0, part);
		generation(&t, BASE + SEG + 310 * 1024 + 8, 5, 0, part);
		generation(&t, BASE + SEG + 44 * PAGE, 6, 0, part);
		walk(&t, false);
		assert_int_equal(teardown(NULL), 0);
	}
	/* Right behind one another: nothing but the record that begins a timeline. */
	assert_int_equal(setup(NULL), 0);
	begin(&t);
	generation(&t, BASE + 2 * SEG, 2, 0, 0);
	generation(&t, wm_lsn(&t.path), 3, 0, 700);
	generation(&t, wm_lsn(&t.path), 9, 0, 0);
	walk(&t, false);
	assert_int_equal(teardown(NULL), 0);
	/* A recovery towards a timeline that stopped where that one began. */
	assert_int_equal(setup(NULL), 0);
	begin(&t);
	generation(&t, BASE + SEG + 44 * PAGE + 800, 2, -1, 0);
	generation(&t, wm_lsn(&t.path), 3, 0, 0);
	walk(&t, false);
	assert_int_equal(teardown(NULL), 0);
}

/* One byte anywhere below the switch. */
static void
test_mismatch(void **state)
{
	struct tree t;
	struct ws_err err;

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		ws_lsn fork = places[i].fork, seg = ws_seg_start(fork, SEG);
		const ws_lsn at[] = {seg, seg + (fork - seg) / 2, fork - 1};

		for (size_t k = 0; k < 3 && fork > seg; k++) {
			assert_int_equal(setup(NULL), 0);
			begin(&t);
			generation(&t, fork, 2, 0, 100);
			finish(&t);
			struct ws_walwriter *w = open_writer();

			write_generation(w, &t, 0);
			go_over(w, &t, 1);
			t.path.b.data[at[k] - BASE] ^= 0x20;
			assert_int_equal(ws_walwriter_append(w, 2, seg, t.path.b.data + (seg - BASE), SEG, &err), -1);
			assert_int_equal(err.status, WS_EOPERATOR);
			assert_string_equal(err.reason, "fork_prefix_mismatch");
			ws_walwriter_close(w);
			end(&t);
			assert_int_equal(teardown(NULL), 0);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_clean),          cmocka_unit_test(test_partial_record),
	    cmocka_unit_test(test_whole_records),  cmocka_unit_test(test_several_in_one),
	    cmocka_unit_test(test_mismatch),
	};

	return cmocka_run_group_tests_name("wal-fork", tests, NULL, NULL);
}
