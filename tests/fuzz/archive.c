/* Fuzz target: what an archive's readers are given.  The first byte chooses: names of members,
 * compressed data, answers of S3, files of keys, sets of segments on a history. */
#include <stdlib.h>
#include <string.h>

#include "lib/store/codec.h"
#include "lib/store/s3cred.h"
#include "lib/store/s3xml.h"
#include "ws/arcpath.h"
#include "ws/lsn.h"

#define SEG (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken for a name is one when its parts are put together again. */
static void
names(const char *text)
{
	struct ws_arcfile f;
	uint64_t segno;

	for (int sha1 = 0; sha1 < 2; sha1++) {
		if (ws_arcfile_parse(text, sha1, &f) != 0)
			continue;
		char again[2 * WS_ARCNAME_MAX];

		snprintf(again, sizeof again, "%s%s%s", f.name, f.sha1[0] ? "-" : "", f.sha1);
		if (strncmp(again, text, strlen(again)))
			abort();
		if (f.comp < WS_COMP_KINDS && strcmp(text + strlen(again), ws_comp_suffix[f.comp]))
			abort();
		if (f.n.kind == WS_ARC_SEGMENT && ws_arcname_segno(&f.n, SEG, &segno) == 0) {
			ws_seg_name(again, f.n.tli, segno * SEG, SEG);
			if (strcmp(again, f.name))
				abort();
		}
	}
}

static int
collect(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	(void)err;
	ws_buf_put(arg, p, n);
	return 0;
}

static int
decode(enum ws_comp comp, const uint8_t *p, size_t n, size_t piece, struct ws_buf *out)
{
	struct sink s = {NULL, collect, out};
	struct codec *c = codec_new(comp, &s, 1u << 20, "input", NULL);
	int rc = 0;

	for (size_t at = 0; at < n && rc == 0; at += piece)
		rc = codec_feed(c, p + at, n - at < piece ? n - at : piece, NULL);
	if (rc == 0)
		rc = codec_finish(c, NULL);
	codec_free(c);
	return rc;
}

/* In one piece or in many: the same bytes, or damage. */
static void
compressed(enum ws_comp comp, const uint8_t *p, size_t n)
{
	struct ws_buf a = {0}, b = {0};
	int one = decode(comp, p, n, n + 1, &a), many = decode(comp, p, n, 7, &b);

	if (one != many)
		abort();
	if (one == 0 && (a.len != b.len || (a.len && memcmp(a.data, b.data, a.len))))
		abort();
	ws_buf_free(&a);
	ws_buf_free(&b);
}

static void
answer(const char *p, size_t n)
{
	struct xml in = {p, n}, x;
	char text[16];

	xml_text(in, "IsTruncated", text, sizeof text);
	while (xml_next(&in, "Contents", &x)) {
		if (x.p < p || x.p + x.n > p + n)
			abort();
		if (xml_text(x, "Key", text, sizeof text) == 1 && strlen(text) >= sizeof text)
			abort();
	}
}

static void
keys(const char *text)
{
	struct s3cred c;

	if (s3cred_parse(text, "default", "input", &c, NULL) == 1 && (!c.key[0] || !c.secret[0]))
		abort();
	s3cred_fini(&c);
}

/* Each segment from the first to the last on the history is either there or missing, once. */
static void
holes(const uint8_t *p, size_t n)
{
	struct ws_history_entry e[3];
	struct ws_history h = {.tli = 9, .entries = e};
	struct ws_arcseg segs[64];
	struct ws_arccheck c;
	size_t nsegs = 0, i = 0, there = 0, missing = 0;
	uint64_t next = 0;

	for (; h.n < 3 && i + 2 <= n; i += 2, h.n++)
		e[h.n] = (struct ws_history_entry){(ws_tli)(2 * h.n + 1),
										   (ws_lsn)(p[i] & 31) * SEG + p[i + 1], NULL};
	for (; nsegs < 64 && i + 2 <= n; i += 2)
		segs[nsegs++] = (struct ws_arcseg){p[i] & 15, p[i + 1] & 31};
	ws_arcpath_check(&h, SEG, segs, nsegs, UINT64_MAX, &c);
	if (c.nthere)
		next = c.there[0].first;
	while (there < c.nthere || missing < c.nmissing) {
		const struct ws_arcspan *s = there < c.nthere && c.there[there].first == next
										 ? &c.there[there++]
										 : &c.missing[missing++];

		if (missing > c.nmissing || s->first != next || s->last < s->first ||
			ws_arcpath_tli(&h, s->first, SEG) != s->tli ||
			ws_arcpath_tli(&h, s->last, SEG) != s->tli)
			abort();
		next = s->last + 1;
	}
	if (c.nthere && ws_arcpath_required(&h, next, SEG))
		abort();
	ws_arccheck_fini(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = ws_strndup((const char *)data + 1, size - 1);
	int what = data[0] & 7;

	if (what == 0)
		names(text);
	else if (what < WS_COMP_KINDS)
		compressed((enum ws_comp)what, data + 1, size - 1);
	else if (what == 4)
		answer((const char *)data + 1, size - 1);
	else if (what == 5)
		keys(text);
	else
		holes(data + 1, size - 1);
	free(text);
	return 0;
}
