/* lib/wal/arcname.c, arcpath.c: names in archives, the way along a history, holes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ws/arcname.h"
#include "ws/arcpath.h"
#include "ws/histdir.h"
#include "ws/lsn.h"

#define SEG (1u << 20)

static void
names(void **state)
{
	static const struct {
		const char *name;
		int kind; /* -1: none */
		ws_tli tli;
		uint32_t hi, lo;
	} t[] = {{"000000010000000000000001", WS_ARC_SEGMENT, 1, 0, 1},
			 {"0000000A0000000B000000FF", WS_ARC_SEGMENT, 10, 11, 255},
			 {"0000000A0000000B00000FFF.partial", WS_ARC_PARTIAL, 10, 11, 4095},
			 {"000000010000000000000001.00000028.backup", WS_ARC_BACKUP, 1, 0, 1},
			 {"00000002.history", WS_ARC_HISTORY, 2, 0, 0},
			 {"", -1, 0, 0, 0},
			 {"00000000.history", -1, 0, 0, 0},
			 {"000000000000000000000001", -1, 0, 0, 0},
			 {"00000001000000000000100", -1, 0, 0, 0},
			 {"000000010000000000001000", -1, 0, 0, 0},
			 {"00000001000000000000000a", -1, 0, 0, 0},
			 {"0000000100000000000000011", -1, 0, 0, 0},
			 {"000000010000000000000001.partia", -1, 0, 0, 0},
			 {"000000010000000000000001.partial.gz", -1, 0, 0, 0},
			 {"000000010000000000000001.0000028.backup", -1, 0, 0, 0},
			 {"000000010000000000000001.00000028.backups", -1, 0, 0, 0},
			 {"../00000002.history", -1, 0, 0, 0},
			 {"00000002.history ", -1, 0, 0, 0}};
	struct ws_arcname n;
	uint64_t segno;

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		int rc = ws_arcname_parse(t[i].name, &n);

		assert_int_equal(rc, t[i].kind < 0 ? -1 : 0);
		if (rc != 0)
			continue;
		assert_int_equal(n.kind, t[i].kind);
		assert_int_equal(n.tli, t[i].tli);
		assert_int_equal(n.hi, t[i].hi);
		assert_int_equal(n.lo, t[i].lo);
	}
	ws_arcname_parse("0000000100000002000000FF", &n);
	assert_int_equal(ws_arcname_segno(&n, 16u << 20, &segno), 0);
	assert_int_equal(segno, 2 * 256 + 255);
	assert_int_equal(ws_arcname_segno(&n, 32u << 20, &segno), -1);
	assert_int_equal(ws_arcname_segno(&n, SEG, &segno), 0);
	assert_int_equal(segno, 2 * 4096 + 255);
	ws_arcname_parse("00000002.history", &n);
	assert_int_equal(ws_arcname_segno(&n, SEG, &segno), -1);
}

#define SHA "da39a3ee5e6b4b0d3255bfef95601890afd80709"

static void
files(void **state)
{
	static const struct {
		const char *file;
		bool sha1;
		int comp; /* -1: no file of an archive */
		const char *name, *sum;
	} t[] = {
		{"000000010000000000000001", false, WS_COMP_NONE, "000000010000000000000001", ""},
		{"000000010000000000000001.gz", false, WS_COMP_GZ, "000000010000000000000001", ""},
		{"000000010000000000000001.partial.lz4", false, WS_COMP_LZ4,
		 "000000010000000000000001.partial", ""},
		{"00000002.history.zst", false, WS_COMP_ZST, "00000002.history", ""},
		{"000000010000000000000001.br", false, WS_COMP_FOREIGN, "000000010000000000000001", ""},
		{"000000010000000000000001-" SHA, true, WS_COMP_NONE, "000000010000000000000001", SHA},
		{"000000010000000000000001.partial-" SHA ".zst", true, WS_COMP_ZST,
		 "000000010000000000000001.partial", SHA},
		{"000000010000000000000001-" SHA ".bz2", true, WS_COMP_FOREIGN, "000000010000000000000001",
		 SHA},
		{"000000010000000000000001.00000028.backup", true, WS_COMP_NONE,
		 "000000010000000000000001.00000028.backup", ""},
		{"000000010000000000000001-" SHA, false, -1, "", ""},
		{"000000010000000000000001-" SHA "0", true, -1, "", ""},
		{"000000010000000000000001-DA39a3ee5e6b4b0d3255bfef95601890afd80709", true, -1, "", ""},
		{"000000010000000000000001.gz.gz", false, -1, "", ""},
		{"000000010000000000000001.json", false, -1, "", ""},
		{"archive.info", true, -1, "", ""},
		{".gz", false, -1, "", ""}};
	char longer[200];
	struct ws_arcfile f;

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		assert_int_equal(ws_arcfile_parse(t[i].file, t[i].sha1, &f), t[i].comp < 0 ? -1 : 0);
		if (t[i].comp < 0)
			continue;
		assert_int_equal(f.comp, t[i].comp);
		assert_string_equal(f.name, t[i].name);
		assert_string_equal(f.sha1, t[i].sum);
	}
	memset(longer, '0', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	assert_int_equal(ws_arcfile_parse(longer, true, &f), -1);
}

/* 1 -> 2 inside segment 5, 2 -> 3 inside the same, 3 -> 6 at segment 9's start. */
static struct ws_history_entry forks[] = {
	{1, 5 * SEG + 100, NULL}, {2, 5 * SEG + 200, NULL}, {3, 9 * SEG, NULL}};
static struct ws_history h = {6, 3, forks};

static void
path(void **state)
{
	static const ws_tli by_segno[] = {1, 1, 1, 1, 1, 3, 3, 3, 3, 6, 6};
	struct ws_history alone = {.tli = 1};
	char name[WS_WALNAME_MAX];

	(void)state;
	for (uint64_t s = 0; s < sizeof by_segno / sizeof by_segno[0]; s++) {
		assert_int_equal(ws_arcpath_tli(&h, s, SEG), by_segno[s]);
		assert_int_equal(ws_arcpath_required(&h, s, SEG), s < 9);
		assert_int_equal(ws_arcpath_tli(&alone, s, SEG), 1);
		assert_false(ws_arcpath_required(&alone, s, SEG));
	}
	/* The byte before the switch is in the descendant's file as well. */
	ws_histdir_name(&h, 5 * SEG + 50, SEG, name);
	assert_string_equal(name, "000000030000000000000005");
	ws_histdir_name(&h, 9 * SEG - 1, SEG, name);
	assert_string_equal(name, "000000030000000000000008");
	ws_histdir_name(&h, 9 * SEG, SEG, name);
	assert_string_equal(name, "000000060000000000000009");
	/* Larger segments: everything is in the first one. */
	ws_histdir_name(&h, 5 * SEG, 16u << 20, name);
	assert_string_equal(name, "000000060000000000000000");
}

static void
span_is(const struct ws_arcspan *s, ws_tli tli, uint64_t first, uint64_t last)
{
	assert_int_equal(s->tli, tli);
	assert_int_equal(s->first, first);
	assert_int_equal(s->last, last);
}

static void
whole(void **state)
{
	/* In no order, with a sibling's, the ancestor's fork segment, and one twice. */
	struct ws_arcseg segs[] = {{6, 10}, {1, 3}, {1, 4}, {3, 5},  {3, 6}, {3, 7},
							   {3, 8},  {6, 9}, {1, 5}, {4, 11}, {3, 9}, {3, 6}};
	struct ws_arccheck c;

	(void)state;
	ws_arcpath_check(&h, SEG, segs, sizeof segs / sizeof segs[0], UINT64_MAX, &c);
	assert_int_equal(c.nmissing, 0);
	assert_int_equal(c.nthere, 3);
	span_is(&c.there[0], 1, 3, 4);
	span_is(&c.there[1], 3, 5, 8);
	span_is(&c.there[2], 6, 9, 10);
	assert_int_equal(c.off_path, 3);
	ws_arccheck_fini(&c);
	/* From before the oldest on, and from the middle. */
	ws_arcpath_check(&h, SEG, segs, sizeof segs / sizeof segs[0], 1, &c);
	assert_int_equal(c.nmissing, 1);
	span_is(&c.missing[0], 1, 1, 2);
	ws_arccheck_fini(&c);
	ws_arcpath_check(&h, SEG, segs, sizeof segs / sizeof segs[0], 6, &c);
	assert_int_equal(c.nmissing, 0);
	span_is(&c.there[0], 3, 6, 8);
	ws_arccheck_fini(&c);
}

static void
holes(void **state)
{
	/* The fork's segment only under the ancestors' names; the rest before the last fork missing. */
	struct ws_arcseg segs[] = {{1, 2}, {1, 4}, {1, 5}, {2, 5}, {3, 6}, {6, 12}};
	struct ws_arcseg none[] = {{4, 2}};
	struct ws_arccheck c;

	(void)state;
	ws_arcpath_check(&h, SEG, segs, 6, UINT64_MAX, &c);
	assert_int_equal(c.nmissing, 4);
	span_is(&c.missing[0], 1, 3, 3);
	span_is(&c.missing[1], 3, 5, 5);
	span_is(&c.missing[2], 3, 7, 8);
	span_is(&c.missing[3], 6, 9, 11);
	ws_arccheck_fini(&c);
	/* What ends before the last fork has a hole at its end; at the fork it is only the end. */
	ws_arcpath_check(&h, SEG, segs, 5, 5, &c);
	assert_int_equal(c.nmissing, 2);
	span_is(&c.missing[0], 3, 5, 5);
	span_is(&c.missing[1], 3, 7, 8);
	ws_arccheck_fini(&c);
	ws_arcpath_check(&h, SEG, none, 1, UINT64_MAX, &c);
	assert_int_equal(c.nthere + c.nmissing, 0);
	assert_int_equal(c.off_path, 1);
	ws_arccheck_fini(&c);
	ws_arcpath_check(&h, SEG, NULL, 0, 8, &c);
	assert_int_equal(c.nmissing, 1);
	span_is(&c.missing[0], 3, 8, 8);
	ws_arccheck_fini(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(files),
									   cmocka_unit_test(path), cmocka_unit_test(whole),
									   cmocka_unit_test(holes)};

	return cmocka_run_group_tests_name("wal-archive", tests, NULL, NULL);
}
