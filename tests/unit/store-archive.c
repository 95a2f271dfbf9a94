/* lib/store: compression, the directory store, verification, what S3 answers, keys. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/store/archive.h"
#include "lib/store/s3cred.h"
#include "lib/store/s3xml.h"
#include "tmpdir.h"
#include "walmake.h"
#include "ws/file.h"
#include "ws/lsn.h"

#define SEG (1u << 20)

static struct ws_err err;

/* ---- compression ---- */

static int
collect(void *arg, const uint8_t *p, size_t n, struct ws_err *e)
{
	(void)e;
	ws_buf_put(arg, p, n);
	return 0;
}

/* Decodes in pieces; 0 or -1 with err. */
static int
decode(enum ws_comp comp, const struct ws_buf *in, size_t piece, uint64_t max, struct ws_buf *out)
{
	struct sink s = {NULL, collect, out};
	struct codec *c = codec_new(comp, &s, max, "what", &err);
	int rc = 0;

	out->len = 0;
	for (size_t at = 0; at < in->len && rc == 0; at += piece)
		rc = codec_feed(c, in->data + at, in->len - at < piece ? in->len - at : piece, &err);
	if (rc == 0)
		rc = codec_finish(c, &err);
	codec_free(c);
	return rc;
}

static void
fill(struct ws_buf *b, size_t n, int entropy)
{
	uint32_t x = 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		ws_buf_putc(b, (uint8_t)(x >> 24 & (uint32_t)entropy));
	}
}

static void
round_trips(void **state)
{
	/* Around the size of a decoder's piece of output, too. */
	static const size_t sizes[] = {1, 100, 131071, 131072, 131073, SEG};

	(void)state;
	for (int comp = WS_COMP_GZ; comp < WS_COMP_KINDS; comp++)
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			for (int entropy = 0; entropy < 256; entropy += 255) {
				struct ws_buf in = {0}, packed = {0}, out = {0};
				int min, max;

				fill(&in, sizes[i], entropy);
				codec_levels((enum ws_comp)comp, &min, &max);
				assert_int_equal(codec_compress((enum ws_comp)comp, i & 1 ? min : 0, in.data,
												in.len, &packed, &err),
								 0);
				for (size_t piece = 1000; piece < 2 * packed.len; piece *= 37) {
					assert_int_equal(decode((enum ws_comp)comp, &packed, piece, SEG, &out), 0);
					assert_int_equal(out.len, in.len);
					assert_memory_equal(out.data, in.data, in.len);
				}
				ws_buf_free(&in);
				ws_buf_free(&packed);
				ws_buf_free(&out);
			}
}

static void
damages(void **state)
{
	(void)state;
	for (int comp = WS_COMP_GZ; comp < WS_COMP_KINDS; comp++) {
		struct ws_buf in = {0}, packed = {0}, out = {0};

		fill(&in, 200000, 63);
		codec_compress((enum ws_comp)comp, 0, in.data, in.len, &packed, &err);
		/* Too much, cut anywhere, nothing at all. */
		assert_int_equal(decode((enum ws_comp)comp, &packed, 65536, in.len - 1, &out), -1);
		assert_string_equal(err.reason, "archive_corrupt");
		for (size_t cut = 0; cut < packed.len; cut += cut < 20 ? 1 : packed.len / 9) {
			struct ws_buf part = {packed.data, cut, cut};

			assert_int_equal(decode((enum ws_comp)comp, &part, 65536, SEG, &out), -1);
			assert_string_equal(err.reason, "archive_corrupt");
			assert_int_equal(err.status, WS_EOPERATOR);
		}
		/* A bit flipped: an error or, in a header's idle bits, the same content. */
		for (size_t at = 0; at < packed.len; at += 97) {
			packed.data[at] ^= 4;
			if (decode((enum ws_comp)comp, &packed, 65536, SEG, &out) == 0) {
				assert_int_equal(out.len, in.len);
				assert_memory_equal(out.data, in.data, in.len);
			}
			packed.data[at] ^= 4;
		}
		/* One after the other is both. */
		size_t n = packed.len;

		ws_buf_reserve(&packed, n);
		ws_buf_put(&packed, packed.data, n);
		assert_int_equal(decode((enum ws_comp)comp, &packed, 5000, SEG, &out), 0);
		assert_int_equal(out.len, 2 * in.len);
		ws_buf_free(&in);
		ws_buf_free(&packed);
		ws_buf_free(&out);
	}
	assert_null(codec_new(WS_COMP_FOREIGN, &(struct sink){0}, 1, "what", &err));
	assert_string_equal(err.reason, "compression_unsupported");
}

/* ---- the directory ---- */

static int
name_of(void *arg, const char *name, bool folder, uint64_t size, struct ws_err *e)
{
	(void)e;
	ws_buf_printf(arg, "%s%s:%llu ", name, folder ? "/" : "", (unsigned long long)size);
	return 0;
}

static void
directory(void **state)
{
	struct ws_archive_opts o = {.store = dir};
	struct store *s = store_open(&o, &err);
	struct ws_buf b = {0};
	struct sink out = {NULL, collect, &b};
	uint64_t size;

	(void)state;
	assert_non_null(s);
	assert_int_equal(s->ops->put(s, "a", "one", 3, &err), 1);
	assert_int_equal(s->ops->put(s, "a", "other", 5, &err), 0);
	assert_int_equal(s->ops->get(s, "a", &out, &err), 1);
	assert_string_equal(ws_buf_cstr(&b), "one");
	assert_int_equal(s->ops->get(s, "b", &out, &err), 0);
	assert_int_equal(s->ops->stat(s, "a", &size, &err), 1);
	assert_int_equal(size, 3);
	assert_int_equal(s->ops->stat(s, "b", &size, &err), 0);
	assert_int_equal(s->ops->sync(s, "a", &err), 0);
	mkdir(path("sub"), 0700);
	b.len = 0;
	assert_int_equal(s->ops->list(s, "", "a", name_of, &b, &err), 0);
	assert_string_equal(ws_buf_cstr(&b), "a:3 ");
	b.len = 0;
	assert_int_equal(s->ops->list(s, "none", "", name_of, &b, &err), 0);
	assert_int_equal(b.len, 0);

	/* What a crash left goes when it is old and nobody writes it. */
	int fd = open(path(".tmp/old"), O_CREAT | O_WRONLY, 0600);
	struct timespec old[2] = {{1, 0}, {1, 0}};

	futimens(fd, old);
	close(fd);
	close(open(path(".tmp/new"), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(s->ops->put(s, "c", "three", 5, &err), 1);
	assert_int_equal(access(path(".tmp/old"), F_OK), -1);
	assert_int_equal(access(path(".tmp/new"), F_OK), 0);
	store_close(s);

	/* A store that is not there has nothing absent. */
	o.store = path("none");
	s = store_open(&o, &err);
	assert_int_equal(s->ops->get(s, "a", &out, &err), -1);
	assert_string_equal(err.reason, "path_missing");
	assert_int_equal(s->ops->stat(s, "a", &size, &err), -1);
	assert_int_equal(s->ops->list(s, "", "", name_of, &b, &err), -1);
	assert_int_equal(s->ops->put(s, "a", "x", 1, &err), -1);
	assert_int_equal(err.status, WS_EOPERATOR);
	store_close(s);
	ws_buf_free(&b);
}

static void
urls(void **state)
{
	static const char *const bad[] = {"",          "file://x",        "ftp://x/y",
									  "http:///x", "https://u:p@h/x", "http://h/x?y",
									  "s3://",     "s3://b u/x"};

	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "k", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct ws_archive_opts o = {.store = bad[i]};

		err = (struct ws_err){0};
		assert_null(store_open(&o, &err));
		assert_int_equal(err.status, WS_EUSAGE);
	}
	struct ws_archive_opts o = {.store = "a:b/c://d"};
	struct store *s = store_open(&o, &err);

	assert_string_equal(s->url, "a:b/c://d");
	store_close(s);
}

/* ---- verification ---- */

/* A segment of 1 MB at base with records up to its end. */
static void
segment(struct walmake *m, ws_lsn base)
{
	wm_init(m, base, SEG, 0xD116);
	while (m->b.len < SEG)
		wm_record(m, 10, 0, 7, 2900, 1);
	m->b.len = SEG;
}

static int
verify(const char *file, bool sha1, const uint8_t *p, size_t n, size_t piece, uint64_t system_id)
{
	struct ws_arcfile f;
	struct verify v;
	int rc = 0;

	assert_int_equal(ws_arcfile_parse(file, sha1, &f), 0);
	verify_init(&v, &f, file, system_id, true);
	for (size_t at = 0; at < n && rc == 0; at += piece)
		rc = verify_data(&v, p + at, n - at < piece ? n - at : piece, &err);
	if (rc == 0)
		rc = verify_end(&v, &err);
	verify_fini(&v);
	return rc;
}

static void
verifies(void **state)
{
	static const char name[] = "000000010000000000000005";
	struct walmake m;
	struct ws_sha sha;
	char hex[WS_SHA_HEX], file[WS_ARCNAME_MAX];

	(void)state;
	segment(&m, 5 * SEG);
	uint8_t *p = m.b.data;

	for (size_t piece = 13; piece < 2 * SEG; piece = piece * 300 + 1)
		assert_int_equal(verify(name, false, p, SEG, piece, 0), 0);
	assert_int_equal(verify(name, false, p, SEG, 8192, m.sysid), 0);
	assert_int_equal(verify(name, false, p, SEG, 8192, m.sysid + 1), -1);
	assert_string_equal(err.reason, "system_id_changed");
	assert_int_equal(verify("000000020000000000000005", false, p, SEG, 8192, 0), 0);
	assert_int_equal(verify("000000010000000000000006", false, p, SEG, 8192, 0), -1);
	assert_string_equal(err.reason, "archive_corrupt");
	for (size_t n = 0; n < SEG; n += 100000)
		assert_int_equal(verify(name, false, p, n, 8192, 0), -1);
	assert_int_equal(verify("000000010000000000000005.partial", false, p, 100000, 999, 0), 0);
	assert_int_equal(verify("00000002.history", false, p, 0, 1, 0), -1);
	assert_int_equal(verify("00000002.history", false, p, 100, 1, 0), 0);

	ws_sha1_init(&sha);
	ws_sha_add(&sha, p, SEG);
	ws_sha_hex(&sha, hex);
	snprintf(file, sizeof file, "%s-%s.gz", name, hex);
	assert_int_equal(verify(file, true, p, SEG, 8192, 0), 0);
	file[strlen(name) + 1] = file[strlen(name) + 1] == '0' ? '1' : '0';
	assert_int_equal(verify(file, true, p, SEG, 8192, 0), -1);
	assert_string_equal(err.reason, "archive_corrupt");

	/* Any byte of a record, and of a page's header but for its idle ones. */
	for (size_t at = 100; at < SEG; at += 40009) {
		p[at] ^= 8;
		assert_int_equal(verify(name, false, p, SEG, 8192, 0), -1);
		assert_string_equal(err.reason, "archive_corrupt");
		p[at] ^= 8;
	}
	ws_buf_put(&m.b, "x", 1);
	assert_int_equal(verify(name, false, m.b.data, SEG + 1, 4096, 0), -1);
	ws_buf_free(&m.b);
}

/* ---- S3 ---- */

static void
xml(void **state)
{
	static const char text[] =
		"<R><Contents><Key>a&amp;b&#38;&#x26;c</Key><Size>1</Size></Contents>"
		"<Contents><Key>&bad;</Key></Contents><Contents><Size>1</Size></Contents><Contents><Key>x";
	struct xml in = {text, sizeof text - 1}, x;
	char out[32];

	(void)state;
	assert_int_equal(xml_next(&in, "Contents", &x), 1);
	assert_int_equal(xml_text(x, "Key", out, sizeof out), 1);
	assert_string_equal(out, "a&b&&c");
	assert_int_equal(xml_text(x, "Key", out, 6), -1);
	assert_int_equal(xml_text(x, "Size", out, sizeof out), 1);
	assert_string_equal(out, "1");
	assert_int_equal(xml_next(&in, "Contents", &x), 1);
	assert_int_equal(xml_text(x, "Key", out, sizeof out), -1);
	assert_int_equal(xml_next(&in, "Contents", &x), 1);
	assert_int_equal(xml_text(x, "Key", out, sizeof out), 0);
	assert_int_equal(xml_next(&in, "Contents", &x), 0);
	assert_int_equal(xml_next(&(struct xml){NULL, 0}, "Contents", &x), 0);
}

static void
keys(void **state)
{
	static const char text[] =
		"# x\n[a]\naws_access_key_id = K\n\taws_secret_access_key=S=/+ \r\n"
		"[b]\naws_access_key_id=L\naws_secret_access_key=T\naws_session_token=U\n[c]\nx=1\n";
	struct s3cred c;

	(void)state;
	assert_int_equal(s3cred_parse(text, "a", "f", &c, &err), 1);
	assert_string_equal(c.key, "K");
	assert_string_equal(c.secret, "S=/+");
	assert_null(c.token);
	s3cred_fini(&c);
	assert_int_equal(s3cred_parse(text, "b", "f", &c, &err), 1);
	assert_string_equal(c.key, "L");
	assert_string_equal(c.token, "U");
	s3cred_fini(&c);
	assert_int_equal(s3cred_parse(text, "c", "f", &c, &err), -1);
	assert_int_equal(s3cred_parse(text, "d", "f", &c, &err), 0);
	assert_int_equal(s3cred_parse("", "default", "f", &c, &err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(round_trips),
									   cmocka_unit_test(damages),
									   cmocka_unit_test_setup_teardown(directory, setup, teardown),
									   cmocka_unit_test(urls),
									   cmocka_unit_test(verifies),
									   cmocka_unit_test(xml),
									   cmocka_unit_test(keys)};

	return cmocka_run_group_tests_name("store-archive", tests, NULL, NULL);
}
