/* What of a base backup is kept; the tar reader; the shadow's configuration file is tested on real
 * servers (tests/it/050-backup.t). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ws/basebackup.h"
#include "ws/tar.h"

static struct ws_filter *
filter_with(const char *list)
{
	char path[] = "/tmp/ws-kept-XXXXXX";
	int fd = mkstemp(path);
	struct ws_filter *f = ws_filter_new();
	struct ws_pos since;
	struct ws_err err = {0};

	assert_int_equal(write(fd, list, strlen(list)), strlen(list));
	close(fd);
	assert_int_equal(ws_filter_read_kept(f, path, &since, &err), 0);
	unlink(path);
	return f;
}

static void
test_members(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		bool dir;
		enum ws_backup_take take;
	} cases[] = {
	    {"PG_VERSION", false, WS_BACKUP_FILE},
	    {"backup_label", false, WS_BACKUP_FILE},
	    {"tablespace_map", false, WS_BACKUP_SKIP},
	    {"postgresql.conf", false, WS_BACKUP_SKIP},
	    {"postgresql.auto.conf", false, WS_BACKUP_SKIP},
	    {"server.key", false, WS_BACKUP_SKIP},
	    {"log", true, WS_BACKUP_SKIP},
	    {"log/postgresql.log", false, WS_BACKUP_SKIP},
	    {"base", true, WS_BACKUP_DIR},
	    {"base/5", true, WS_BACKUP_DIR},
	    {"base/pgsql_tmp", true, WS_BACKUP_SKIP},
	    {"base/5/1259", false, WS_BACKUP_FILE},
	    {"base/5/1259_fsm", false, WS_BACKUP_FILE},
	    {"base/5/1249.1", false, WS_BACKUP_FILE},
	    {"base/5/PG_VERSION", false, WS_BACKUP_FILE},
	    {"base/5/pg_filenode.map", false, WS_BACKUP_FILE},
	    {"base/5/pg_internal.init", false, WS_BACKUP_SKIP},
	    {"base/5/2613", false, WS_BACKUP_SKIP},
	    {"base/5/2683", false, WS_BACKUP_SKIP},
	    {"base/5/2613_vm", false, WS_BACKUP_SKIP},
	    {"base/5/16384", false, WS_BACKUP_SKIP},
	    {"base/5/16400_init", false, WS_BACKUP_SKIP},
	    {"base/5/30001", false, WS_BACKUP_FILE},
	    {"base/5/30001_vm", false, WS_BACKUP_FILE},
	    {"base/6/30001", false, WS_BACKUP_SKIP},
	    {"base/5/t3_30001", false, WS_BACKUP_SKIP},
	    {"base/5/30001x", false, WS_BACKUP_SKIP},
	    {"global", true, WS_BACKUP_DIR},
	    {"global/1262", false, WS_BACKUP_FILE},
	    {"global/50000", false, WS_BACKUP_FILE},
	    {"global/pg_control", false, WS_BACKUP_FILE},
	    {"global/pg_internal.init", false, WS_BACKUP_SKIP},
	    {"pg_xact/0000", false, WS_BACKUP_FILE},
	    {"pg_multixact/members/0000", false, WS_BACKUP_FILE},
	    {"pg_twophase/00000000000002F1", false, WS_BACKUP_FILE},
	    {"pg_logical/replorigin_checkpoint", false, WS_BACKUP_FILE},
	    {"pg_logical/mappings/map-1", false, WS_BACKUP_SKIP},
	    {"pg_replslot", true, WS_BACKUP_DIR},
	    {"pg_replslot/ws", true, WS_BACKUP_SKIP},
	    {"pg_wal/archive_status", true, WS_BACKUP_DIR},
	    {"pg_wal/000000010000000000000001", false, WS_BACKUP_SKIP},
	    {"pg_stat/pgstat.stat", false, WS_BACKUP_SKIP},
	    {"pg_tblspc", true, WS_BACKUP_DIR},
	    {"pg_tblspc/16500", true, WS_BACKUP_DIR},
	    {"pg_tblspc/16500/PG_17_202406281", true, WS_BACKUP_DIR},
	    {"pg_tblspc/16500/PG_17_202406281/5", true, WS_BACKUP_DIR},
	    {"pg_tblspc/16500/PG_17_202406281/5/16600", false, WS_BACKUP_SKIP},
	    {"pg_tblspc/16500/PG_17_202406281/5/30001", false, WS_BACKUP_FILE},
	    {"pg_tblspc/16500/PG_17_202406281/5/pg_filenode.map", false, WS_BACKUP_FILE},
	    {"pg_tblspc/16500/other", false, WS_BACKUP_SKIP},
	    {"/etc/passwd", false, WS_BACKUP_SKIP},
	    {"base/../../x", false, WS_BACKUP_SKIP},
	    {"global/../x", false, WS_BACKUP_SKIP},
	    {"", true, WS_BACKUP_SKIP},
	};
	struct ws_filter *f = filter_with("# 1 0/1000000\n5 30001\n");

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (ws_backup_member(cases[i].path, cases[i].dir, f) != cases[i].take)
			fail_msg("%s", cases[i].path);
	ws_filter_free(f);
}

/* ---- tar ---- */

static void
put_member(struct ws_buf *b, const char *name, char type, const char *data, size_t n)
{
	char h[512] = "";
	unsigned sum = 0;

	snprintf(h, 100, "%s", name);
	snprintf(h + 124, 12, "%011zo", n);
	memcpy(h + 148, "        ", 8);
	h[156] = type;
	memcpy(h + 257, "ustar\00000", 8);
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	ws_buf_put(b, h, 512);
	ws_buf_put(b, data, n);
	while (b->len % 512)
		ws_buf_putc(b, 0);
}

static int
log_member(void *arg, const struct ws_tar_member *m, struct ws_err *err)
{
	(void)err;
	ws_buf_printf(arg, "[%s %c %llu]", m->name, m->type, (unsigned long long)m->size);
	return 0;
}

static int
log_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	(void)err;
	ws_buf_put(arg, p, n);
	return 0;
}

static int
log_done(void *arg, struct ws_err *err)
{
	(void)err;
	ws_buf_puts(arg, ";");
	return 0;
}

static const struct ws_tar_events log_events = {log_member, log_data, log_done};

static void
test_tar(void **state)
{
	(void)state;
	struct ws_buf tar = {0};
	char zeros[1024] = "";

	put_member(&tar, "a/", '5', NULL, 0);
	put_member(&tar, "a/empty", '0', NULL, 0);
	put_member(&tar, "a/file", '0', "hello", 5);
	put_member(&tar, "a/link", '2', NULL, 0);
	ws_buf_put(&tar, zeros, sizeof zeros);
	for (size_t piece = 1; piece < tar.len + 100; piece += 37) {
		struct ws_buf seen = {0};
		struct ws_tar t = {0};

		for (size_t at = 0; at < tar.len; at += piece) {
			size_t n = tar.len - at < piece ? tar.len - at : piece;

			assert_false(ws_tar_complete(&t));
			assert_int_equal(ws_tar_feed(&t, tar.data + at, n, &log_events, &seen, NULL), 0);
		}
		assert_true(ws_tar_complete(&t));
		assert_string_equal(ws_buf_cstr(&seen), "[a/ 5 0];[a/empty 0 0];[a/file 0 5]hello;[a/link 2 0];");
		ws_buf_free(&seen);
	}
	/* A flipped bit of a header is noticed. */
	for (int at = 0; at < 512; at += 7) {
		struct ws_buf seen = {0};
		struct ws_tar t = {0};

		tar.data[at] ^= 1;
		assert_int_equal(ws_tar_feed(&t, tar.data, tar.len, &log_events, &seen, NULL), -1);
		tar.data[at] ^= 1;
		ws_buf_free(&seen);
	}
	ws_buf_free(&tar);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_members), cmocka_unit_test(test_tar)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
