/* lib/base/sha.c: the vectors of FIPS 180-4 and lengths around a block's. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "ws/sha.h"

static void
sha(int words, const void *p, size_t n, size_t piece, char *out)
{
	struct ws_sha s;

	if (words == 5)
		ws_sha1_init(&s);
	else
		ws_sha256_init(&s);
	for (size_t at = 0; at < n; at += piece)
		ws_sha_add(&s, (const char *)p + at, n - at < piece ? n - at : piece);
	ws_sha_hex(&s, out);
}

static void
vectors(void **state)
{
	static const struct {
		const char *text, *sha1, *sha256;
	} t[] = {{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
			  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
			 {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d",
			  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
			 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			  "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
			  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
	char out[WS_SHA_HEX];

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		sha(5, t[i].text, strlen(t[i].text), 7, out);
		assert_string_equal(out, t[i].sha1);
		sha(8, t[i].text, strlen(t[i].text), 7, out);
		assert_string_equal(out, t[i].sha256);
	}
}

static void
million(void **state)
{
	static char a[1000000];
	char out[WS_SHA_HEX];

	(void)state;
	memset(a, 'a', sizeof a);
	sha(5, a, sizeof a, 1000, out);
	assert_string_equal(out, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	sha(8, a, sizeof a, sizeof a, out);
	assert_string_equal(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void
pieces(void **state)
{
	char text[200], one[WS_SHA_HEX], other[WS_SHA_HEX];

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * 7);
	for (size_t n = 50; n < sizeof text; n++)
		for (int w = 5; w <= 8; w += 3) {
			sha(w, text, n, n, one);
			sha(w, text, n, 13, other);
			assert_string_equal(one, other);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(million),
									   cmocka_unit_test(pieces)};

	return cmocka_run_group_tests_name("base-sha", tests, NULL, NULL);
}
