/* lib/wal: WAL directories (writer, follower, timelines), segment files, the framed stream, history
 * files. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "tmpdir.h"
#include "walmake.h"
#include "ws/file.h"
#include "ws/history.h"
#include "ws/waldir.h"
#include "ws/walread.h"

#define SEG  (1u << 20)
#define BASE 0x500000ull


static void
make(struct walmake *m, uint64_t bytes)
{
	wm_init(m, BASE, SEG, 0xD116);
	for (unsigned i = 0; m->b.len < bytes; i++)
		wm_record(m, WS_RM_HEAP, 0, 700, 50 + i % 700, (uint8_t)i);
}

static struct ws_walwriter *
open_writer(ws_lsn durable)
{
	struct ws_walwriter_opts o = {.segsize = SEG, .durable = durable};
	struct ws_err err;
	struct ws_walwriter *w = ws_walwriter_open(dir, &o, &err);

	if (!w)
		fail_msg("%s", err.msg);
	return w;
}

static void
append(struct ws_walwriter *w, const struct walmake *m, uint64_t from, uint64_t to)
{
	struct ws_err err;

	if (ws_walwriter_append(w, m->tli, m->start + from, m->b.data + from, to - from, &err) != 0)
		fail_msg("%s", err.msg);
}

/* A source's bytes must be m's from lsn on; returns how many came. */
static uint64_t
drain(struct ws_walsrc *s, const struct walmake *m, ws_lsn lsn)
{
	struct ws_walchunk c;
	struct ws_err err;
	ws_lsn at = lsn;
	int rc;

	while ((rc = ws_walsrc_next(s, &c, &err)) == 1) {
		assert_true(c.lsn == at);
		assert_true(c.lsn - m->start + c.n <= m->b.len);
		assert_int_equal(c.tli, m->tli);
		assert_memory_equal(c.p, m->b.data + (c.lsn - m->start), c.n);
		at += c.n;
	}
	if (rc < 0)
		fail_msg("%s", err.msg);
	return at - lsn;
}

static struct ws_walsrc *
open_src(const char *spec, ws_tli tli, ws_lsn lsn, bool follow)
{
	struct ws_walsrc_opts o = {.follow = follow};
	struct ws_err err;
	struct ws_walsrc *s = ws_walsrc_open(spec, (struct ws_pos){tli, lsn}, &o, &err);

	if (!s)
		fail_msg("%s", err.msg);
	return s;
}

static void
test_write_read(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct stat st;

	(void)state;
	make(&m, 5 * SEG / 2);
	struct ws_walwriter *w = open_writer(0);

	assert_int_equal(ws_walwriter_end(w).tli, 0);
	for (uint64_t at = 0; at < m.b.len;) {
		uint64_t n = at % 9973 + 1;

		if (n > m.b.len - at)
			n = m.b.len - at;
		append(w, &m, at, at + n);
		at += n;
		assert_true(ws_walwriter_end(w).lsn == BASE + at);
	}
	/* Two are whole and durable, the third is not yet. */
	assert_true(ws_walwriter_synced(w).lsn == BASE + 2 * SEG);
	assert_int_equal(ws_walwriter_sync(w, &err), 0);
	assert_true(ws_walwriter_synced(w).lsn == wm_lsn(&m));
	assert_int_equal(stat(path("000000010000000000000005"), &st), 0);
	assert_int_equal(st.st_size, SEG);
	assert_int_equal(stat(path("000000010000000000000007.partial"), &st), 0);
	assert_int_equal(st.st_size, m.b.len - 2 * SEG);
	/* What does not follow is refused and changes nothing. */
	assert_int_equal(ws_walwriter_append(w, 1, wm_lsn(&m) + 8, m.b.data, 8, &err), -1);
	assert_string_equal(err.reason, "wal_gap");
	/* A second writer does not get in. */
	struct ws_walwriter_opts o = {.segsize = SEG};

	assert_null(ws_walwriter_open(dir, &o, &err));
	assert_int_equal(err.status, WS_ETEMP);

	struct ws_walsrc *s = open_src(dir, 0, 0, false);

	assert_int_equal(drain(s, &m, BASE), m.b.len);
	assert_true(ws_walsrc_at_end(s));
	assert_int_equal(ws_walsrc_segsize(s), SEG);
	assert_int_equal(ws_walsrc_seek(s, (struct ws_pos){1, BASE + SEG + 20001}, &err), 0);
	assert_int_equal(drain(s, &m, BASE + SEG + 16384), m.b.len - SEG - 16384);
	struct ws_cluster c;

	assert_true(ws_walsrc_cluster(s, &c) && c.major == 17 && c.system_id == m.sysid && c.segsize == SEG);
	ws_walsrc_close(s);
	ws_walwriter_close(w);
	ws_buf_free(&m.b);
}

static void
test_reopen(void **state)
{
	struct walmake m;
	struct ws_err err;

	(void)state;
	make(&m, 3 * SEG);
	struct ws_walwriter *w = open_writer(0);

	append(w, &m, 0, SEG + 5000);
	ws_walwriter_close(w);
	/* From the start of a whole segment, over the .partial, and on. */
	w = open_writer(0);
	assert_true(ws_walwriter_end(w).lsn == BASE + SEG + 5000);
	append(w, &m, 0, 100);
	append(w, &m, 100, SEG + 4000);
	append(w, &m, SEG + 4000, SEG + 9000);
	ws_walwriter_close(w);
	/* From a place inside. */
	w = open_writer(0);
	append(w, &m, SEG + 8999, SEG + 10000);
	assert_true(ws_walwriter_end(w).lsn == BASE + SEG + 10000);
	ws_walwriter_close(w);
	/* Behind what is there: a gap. */
	w = open_writer(0);
	assert_int_equal(ws_walwriter_append(w, 1, BASE + SEG + 10008, m.b.data, 8, &err), -1);
	assert_string_equal(err.reason, "wal_gap");
	ws_walwriter_close(w);
	/* Full but not renamed. */
	w = open_writer(0);
	append(w, &m, SEG, 2 * SEG);
	ws_walwriter_close(w);
	char *whole = ws_strdup(path("000000010000000000000006"));

	assert_int_equal(rename(whole, path("000000010000000000000006.partial")), 0);
	w = open_writer(0);
	append(w, &m, SEG, 2 * SEG);
	assert_int_equal(access(whole, F_OK), 0);
	ws_walwriter_close(w);
	free(whole);
	struct ws_walsrc *s = open_src(dir, 1, BASE, false);

	assert_int_equal(drain(s, &m, BASE), 2 * SEG);
	ws_walsrc_close(s);
	ws_buf_free(&m.b);
}

static void
flip(const char *name, off_t off)
{
	int fd = open(path(name), O_RDWR);
	uint8_t b;

	assert_int_equal(pread(fd, &b, 1, off), 1);
	b ^= 1;
	assert_int_equal(pwrite(fd, &b, 1, off), 1);
	close(fd);
}

static void
test_mismatch(void **state)
{
	struct walmake m;
	struct ws_err err;

	(void)state;
	make(&m, 3 * SEG);
	struct ws_walwriter *w = open_writer(0);

	append(w, &m, 0, SEG + 70000);
	ws_walwriter_close(w);
	flip("000000010000000000000006.partial", 60000);
	w = open_writer(0);
	assert_int_equal(ws_walwriter_append(w, 1, BASE + SEG, m.b.data + SEG, SEG, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	assert_string_equal(err.reason, "wal_mismatch");
	ws_walwriter_close(w);
	/* Below the durable position it is refused as well, above it the rest is cut off. */
	w = open_writer(BASE + SEG + 60001);
	assert_int_equal(ws_walwriter_append(w, 1, BASE + SEG, m.b.data + SEG, SEG, &err), -1);
	ws_walwriter_close(w);
	w = open_writer(BASE + SEG + 60000);
	append(w, &m, SEG, 2 * SEG + 10);
	ws_walwriter_close(w);
	struct ws_walsrc *s = open_src(dir, 1, BASE, false);

	assert_int_equal(drain(s, &m, BASE), 2 * SEG + 10);
	ws_walsrc_close(s);
	/* A whole segment is never changed. */
	flip("000000010000000000000005", 100000);
	w = open_writer(BASE + 1);
	assert_int_equal(ws_walwriter_append(w, 1, BASE, m.b.data, SEG, &err), -1);
	assert_string_equal(err.reason, "wal_mismatch");
	ws_walwriter_close(w);
	ws_buf_free(&m.b);
}

/* A reader that follows while another process writes in odd pieces, killed and started again. */
static void
test_follow(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct ws_walchunk c;
	uint64_t at = 0;

	(void)state;
	make(&m, 7 * SEG / 2);
	struct ws_walsrc *s = open_src(dir, 1, BASE, true);

	for (int round = 0; at < m.b.len; round++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct ws_walwriter_opts o = {.segsize = SEG, .no_sync = true};
			struct ws_walwriter *w = ws_walwriter_open(dir, &o, &err);
			uint64_t from = w && ws_walwriter_end(w).lsn ? ws_walwriter_end(w).lsn - BASE : 0;

			from &= ~(uint64_t)(SEG - 1);
			if (!w)
				_exit(1);
			for (unsigned i = 0; from < m.b.len; i++) {
				uint64_t n = i * 7919 % 20000 + 1;

				if (n > m.b.len - from)
					n = m.b.len - from;
				if (ws_walwriter_append(w, 1, BASE + from, m.b.data + from, n, &err) != 0)
					_exit(1);
				from += n;
				if (i == 60 && round < 9)
					raise(SIGKILL);
			}
			_exit(0);
		}
		int status;
		bool ended = false;

		for (;;) {
			int rc = ws_walsrc_next(s, &c, &err);

			if (rc < 0)
				fail_msg("%s", err.msg);
			if (rc == 1) {
				assert_true(c.lsn == BASE + at);
				assert_memory_equal(c.p, m.b.data + at, c.n);
				at += c.n;
			} else if (ended) {
				break;
			} else if (waitpid(pid, &status, WNOHANG) == pid) {
				ended = true;
				assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
			} else {
				assert_int_equal(ws_walsrc_wait(s, 50, &err), 0);
			}
		}
	}
	assert_int_equal(at, m.b.len);
	assert_false(ws_walsrc_at_end(s));
	ws_walsrc_close(s);
	ws_buf_free(&m.b);
}

static void
put_file(const char *name, const void *p, size_t n)
{
	struct ws_err err;

	assert_int_equal(ws_file_replace(path(name), p, n, 0600, false, &err), 0);
}

static void
test_files(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct ws_walsrc_opts o = {0};
	struct ws_walchunk c;

	(void)state;
	make(&m, SEG);
	m.b.len = SEG;
	uint8_t *z = ws_malloc(2 * SEG);

	put_file("000000010000000000000005", m.b.data, SEG);
	gzFile g = gzopen(path("a.gz"), "wb");

	assert_int_equal(gzwrite(g, m.b.data, SEG), SEG);
	gzclose(g);
	put_file("b.lz4", z, LZ4F_compressFrame(z, 2 * SEG, m.b.data, SEG, NULL));
	put_file("c.zst", z, ZSTD_compress(z, 2 * SEG, m.b.data, SEG, 1));
	static const char *const names[] = {"000000010000000000000005", "a.gz", "b.lz4", "c.zst"};

	for (size_t i = 0; i < 4; i++) {
		struct ws_walsrc *s = open_src(path(names[i]), 0, 0, false);

		assert_int_equal(drain(s, &m, BASE), SEG);
		assert_int_equal(ws_walsrc_seek(s, (struct ws_pos){1, BASE + 700001}, &err), 0);
		assert_int_equal(drain(s, &m, BASE + 696320), SEG - 696320);
		ws_walsrc_close(s);
		/* Cut short: the bytes that are there, then an error. */
		struct stat st;

		assert_int_equal(stat(path(names[i]), &st), 0);
		assert_int_equal(truncate(path(names[i]), st.st_size * 3 / 4), 0);
		s = open_src(path(names[i]), 0, 0, false);
		int rc;

		while ((rc = ws_walsrc_next(s, &c, &err)) == 1)
			assert_memory_equal(c.p, m.b.data + (c.lsn - BASE), c.n);
		assert_int_equal(rc, -1);
		assert_int_equal(err.status, WS_EOPERATOR);
		ws_walsrc_close(s);
	}
	/* No WAL at all, another segment's bytes, PostgreSQL 14. */
	put_file("000000010000000000000009", m.b.data, SEG);
	assert_null(ws_walsrc_open(path("000000010000000000000009"), (struct ws_pos){0, 0}, &o, &err));
	assert_string_equal(err.reason, "not_wal");
	put_file("text", "hello", 5);
	assert_null(ws_walsrc_open(path("text"), (struct ws_pos){0, 0}, &o, &err));
	assert_string_equal(err.reason, "not_wal");
	ws_store16(m.b.data, 0xD10D);
	put_file("old", m.b.data, SEG);
	assert_null(ws_walsrc_open(path("old"), (struct ws_pos){0, 0}, &o, &err));
	assert_string_equal(err.reason, "wal_too_old");
	assert_null(ws_walsrc_open(path("absent"), (struct ws_pos){0, 0}, &o, &err));
	free(z);
	ws_buf_free(&m.b);
}

static void
test_missing(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct ws_walchunk c;
	struct ws_walsrc_opts o = {0};
	int rc;

	(void)state;
	assert_int_equal(ws_mkdir_p(dir, 0700, &err), 0);
	struct ws_walsrc *s = open_src(dir, 0, 0, false);

	assert_int_equal(ws_walsrc_next(s, &c, &err), -1);
	assert_string_equal(err.reason, "wal_missing");
	ws_walsrc_close(s);
	make(&m, 4 * SEG);
	struct ws_walwriter *w = open_writer(0);

	append(w, &m, 0, 3 * SEG + 1000);
	ws_walwriter_close(w);
	assert_int_equal(unlink(path("000000010000000000000006")), 0);
	for (int follow = 0; follow < 2; follow++) {
		uint64_t got = 0;

		s = open_src(dir, 1, BASE, follow);
		while ((rc = ws_walsrc_next(s, &c, &err)) == 1)
			got += c.n;
		assert_int_equal(rc, -1);
		assert_string_equal(err.reason, "wal_missing");
		assert_int_equal(got, SEG);
		ws_walsrc_close(s);
	}
	/* Far behind the end: missing; right at it: the end. */
	s = open_src(dir, 1, BASE + 9 * SEG, false);
	assert_int_equal(ws_walsrc_next(s, &c, &err), -1);
	ws_walsrc_close(s);
	s = open_src(dir, 1, BASE + 3 * SEG + 1000, false);
	assert_int_equal(ws_walsrc_next(s, &c, &err), 1); /* the page that holds it */
	assert_int_equal(ws_walsrc_next(s, &c, &err), 0);
	assert_true(ws_walsrc_at_end(s));
	ws_walsrc_close(s);
	assert_null(ws_walsrc_open(path("nowhere"), (struct ws_pos){0, 0}, &o, &err));
	ws_buf_free(&m.b);
}

/* Timeline 2 forks off in the middle of the second segment; timeline 1 went on for a while. */
#define FORK (BASE + SEG + 300 * 1024)

static struct walmake
descendant(const struct walmake *m)
{
	struct walmake d = *m;

	d.b = (struct ws_buf){0};
	ws_buf_put(&d.b, m->b.data, FORK - BASE);
	d.tli = 2;
	for (unsigned i = 0; d.b.len < 3 * SEG; i++)
		wm_record(&d, WS_RM_HEAP2, 0, 900, 60 + i % 500, (uint8_t)i);
	return d;
}

static void
test_fork(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct ws_walchunk c;
	char hist[64];

	(void)state;
	make(&m, 5 * SEG / 2);
	struct walmake d = descendant(&m);
	struct ws_walwriter *w = open_writer(0);
	/* the reader has followed the ancestor past the fork, into the next segment */
	struct ws_walsrc *s = open_src(dir, 1, BASE, true);

	append(w, &m, 0, 2 * SEG + 5000);
	assert_int_equal(drain(s, &m, BASE), 2 * SEG + 5000);
	/* without the history nothing goes on */
	assert_int_equal(ws_walwriter_append(w, 2, BASE + SEG, d.b.data + SEG, SEG, &err), -1);
	assert_string_equal(err.reason, "history_missing");
	int n = snprintf(hist, sizeof hist, "1\t0/%X\tno recovery target specified\n", (unsigned)FORK);

	assert_int_equal(ws_walwriter_history(w, 2, hist, (size_t)n, &err), 0);
	assert_int_equal(ws_walwriter_history(w, 2, hist, (size_t)n, &err), 0);
	assert_int_equal(ws_walwriter_history(w, 2, hist, (size_t)n - 1, &err), -1);
	assert_string_equal(err.reason, "history_changed");
	assert_int_equal(ws_walsrc_next(s, &c, &err), 0);
	append(w, &d, SEG, 3 * SEG);
	/* back at the start of the fork's segment */
	assert_int_equal(drain(s, &d, BASE + SEG), 2 * SEG);
	assert_int_equal(ws_walsrc_history(s)->tli, 2);
	assert_true(ws_history_end(ws_walsrc_history(s), 1) == FORK);
	ws_walsrc_close(s);
	/* a reader that comes later takes the route at once */
	s = open_src(dir, 1, BASE, false);
	uint64_t at = 0;

	while (ws_walsrc_next(s, &c, &err) == 1) {
		assert_int_equal(c.tli, c.lsn < BASE + SEG ? 1 : 2);
		assert_true(c.lsn == BASE + at);
		assert_memory_equal(c.p, d.b.data + at, c.n);
		at += c.n;
	}
	assert_int_equal(at, 3 * SEG);
	ws_walsrc_close(s);
	/* a position past the fork is refused */
	struct ws_walsrc_opts o = {0};

	assert_null(ws_walsrc_open(dir, (struct ws_pos){1, FORK + 8}, &o, &err));
	assert_string_equal(err.reason, "past_fork");
	ws_walwriter_close(w);
	ws_buf_free(&m.b);
	ws_buf_free(&d.b);
}

static void
test_fork_differs(void **state)
{
	struct walmake m;
	struct ws_err err;
	char hist[64];

	(void)state;
	make(&m, 5 * SEG / 2);
	struct walmake d = descendant(&m);
	struct ws_walwriter *w = open_writer(0);

	append(w, &m, 0, SEG + 400 * 1024);
	int n = snprintf(hist, sizeof hist, "1\t0/%X\tx\n", (unsigned)FORK);

	assert_int_equal(ws_walwriter_history(w, 2, hist, (size_t)n, &err), 0);
	d.b.data[SEG + 200000] ^= 1; /* below the fork */
	assert_int_equal(ws_walwriter_append(w, 2, BASE + SEG, d.b.data + SEG, SEG, &err), -1);
	assert_string_equal(err.reason, "fork_prefix_mismatch");
	ws_walwriter_close(w);
	ws_buf_free(&m.b);
	ws_buf_free(&d.b);
}

/* A limit on file sizes stands for a full disk: a short write, then an error. */
static void
test_full_disk(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct rlimit old, low = {100000, RLIM_INFINITY};

	(void)state;
	make(&m, SEG);
	struct ws_walwriter *w = open_writer(0);

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	append(w, &m, 0, 60000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(ws_walwriter_append(w, 1, BASE + 60000, m.b.data + 60000, 80000, &err), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(err.status, WS_ETEMP);
	assert_true(ws_walwriter_end(w).lsn == BASE + 100000);
	/* There is room again. */
	append(w, &m, 100000, 140000);
	ws_walwriter_close(w);
	struct ws_walsrc *s = open_src(dir, 1, BASE, false);

	assert_int_equal(drain(s, &m, BASE), 140000);
	ws_walsrc_close(s);
	ws_buf_free(&m.b);
}

static void
test_stream(void **state)
{
	struct walmake m;
	struct ws_err err;
	struct ws_walsrc_opts o = {0};
	struct ws_walchunk c;
	struct ws_cluster cl = {.system_id = 99, .major = 17, .segsize = SEG};
	int rc, keep = dup(0);

	(void)state;
	make(&m, 2 * SEG);
	for (int how = 0; how < 3; how++) { /* whole; without its end; from a later place */
		int p[2];

		assert_int_equal(pipe(p), 0);
		pid_t pid = fork();

		if (pid == 0) {
			struct ws_walframe *f = ws_walframe_new(p[1], &cl, NULL);

			close(p[0]);
			ws_walframe_history(f, 2, "1\t0/500000\tx\n", 13, NULL);
			for (uint64_t at = 0; at < m.b.len; at += 300000)
				ws_walframe_bytes(f, 1, BASE + at, m.b.data + at,
				                  m.b.len - at < 300000 ? m.b.len - at : 300000, NULL);
			if (how != 1)
				ws_walframe_end(f, (struct ws_pos){1, wm_lsn(&m)}, NULL);
			_exit(0);
		}
		close(p[1]);
		assert_int_equal(dup2(p[0], 0), 0);
		close(p[0]);
		ws_lsn from = how == 2 ? BASE + 700000 : BASE, at = from & ~8191ull;
		struct ws_walsrc *s = ws_walsrc_open("-", (struct ws_pos){1, from}, &o, &err);

		assert_non_null(s);
		while ((rc = ws_walsrc_next(s, &c, &err)) == 1) {
			assert_true(c.lsn == at && c.tli == 1 && c.n <= 262144);
			assert_memory_equal(c.p, m.b.data + (at - BASE), c.n);
			at += c.n;
		}
		assert_true(at == wm_lsn(&m));
		assert_int_equal(rc, how == 1 ? -1 : 0);
		assert_int_equal(ws_walsrc_at_end(s), how != 1);
		if (how == 1)
			assert_int_equal(err.status, WS_ETEMP);
		assert_true(ws_walsrc_history(s) && ws_walsrc_history(s)->tli == 2);
		assert_true(ws_walsrc_cluster(s, &cl) && cl.system_id == 99);
		ws_walsrc_close(s);
		waitpid(pid, NULL, 0);
	}
	dup2(keep, 0);
	close(keep);
	ws_buf_free(&m.b);
}

static void
test_history(void **state)
{
	struct ws_history h;
	struct ws_err err;
	static const char ok[] = "# c\n1\t0/C79E98\tno recovery target specified\n\n  2 \t 0/CFE520\tx\n";

	(void)state;
	assert_int_equal(ws_history_parse(4, ok, sizeof ok - 1, &h, &err), 0);
	assert_int_equal(h.n, 2);
	assert_int_equal(ws_history_tli_at(&h, 0xC79E97), 1);
	assert_int_equal(ws_history_tli_at(&h, 0xC79E98), 2);
	assert_int_equal(ws_history_tli_at(&h, 0xCFE520), 4);
	assert_true(ws_history_end(&h, 1) == 0xC79E98 && ws_history_end(&h, 4) == UINT64_MAX);
	assert_true(ws_history_end(&h, 3) == 0);
	ws_history_fini(&h);
	static const char *const bad[] = {"x\n", "1\n", "1\t0\n", "2\t0/1\n1\t0/2\n", "4\t0/1\tx\n",
	                                  "1\t0/1\tevil\n1\t0/10\tx\n"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(ws_history_parse(4, bad[i], strlen(bad[i]), &h, &err), -1);
		assert_string_equal(err.reason, "history_malformed");
	}
	assert_int_equal(ws_history_parse(7, NULL, 0, &h, &err), 0);
	assert_int_equal(ws_history_tli_at(&h, 1), 7);
	/* A line longer than fgets takes is two lines, as for the server. */
	char line[1200] = "1\t0/10\t";

	memset(line + 7, 'x', 1100);
	assert_int_equal(ws_history_parse(4, line, strlen(line), &h, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_write_read, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_reopen, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_mismatch, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_follow, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_files, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_fork_differs, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
	    cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_history),
	};

	return cmocka_run_group_tests_name("wal-dir", tests, NULL, NULL);
}
