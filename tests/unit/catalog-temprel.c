/* lib/catalog/temprel.c: commits that touch temporary relations alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ws/cursor.h"
#include "ws/mem.h"
#include "ws/record.h"
#include "ws/temprel.h"

#define DB         5u
#define CLASS_FILE 20001u
#define TYPE_FILE  20002u
#define OTHER_FILE 20003u
#define INIT_PAGE  0x80
#define MOST       65536u
#define ARRAY_HANDLER     6179u
#define RAW_ARRAY_HANDLER 6180u

static struct ws_temprels *t;
static const struct ws_walver *ver;

static int
setup(void **state)
{
	(void)state;
	t = ws_temprels_new();
	ver = ws_walver_by_major(17);
	ws_temprels_files(t, DB, CLASS_FILE, TYPE_FILE);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	ws_temprels_free(t);
	return 0;
}

/* ---- rows ---- */

/* An INSERT to be made. */
struct insert {
	ws_oid db, file;
	uint8_t info, rmid;
	bool image, data; /* the row is in the page's image, in the record */
	uint16_t off;     /* ... at this line pointer */
	uint8_t hoff;
	uint8_t row[128];
	size_t len;
};

static struct insert
insert(ws_oid file, const uint8_t *row, size_t len)
{
	struct insert in = {.db = DB, .file = file, .rmid = WS_RM_HEAP, .data = true, .off = 1, .hoff = 32,
	                    .len = len};

	memcpy(in.row, row, len);
	return in;
}

static struct insert
class_row(ws_oid oid, char persistence)
{
	uint8_t row[128];

	memset(row, 'p', sizeof row);
	ws_store32(row, oid);
	row[ver->class_persistence] = (uint8_t)persistence;
	return insert(CLASS_FILE, row, sizeof row);
}

static struct insert
type_row(ws_oid oid, ws_oid rel, ws_oid subscript, ws_oid elem)
{
	uint8_t row[128];

	memset(row, 'x', sizeof row);
	ws_store32(row, oid);
	ws_store32(row + 84, rel);
	ws_store32(row + 88, subscript);
	ws_store32(row + 92, elem);
	return insert(TYPE_FILE, row, sizeof row);
}

/* ---- records ---- */

/* The page with the row at line pointer off, from `hole` on without its hole. */
static size_t
put_image(struct ws_buf *b, const struct insert *in, uint16_t *hole)
{
	uint8_t page[WS_PAGE_SIZE] = {0};
	size_t size = (in->hoff + in->len + 7) & ~(size_t)7, at = WS_PAGE_SIZE - size;

	*hole = (uint16_t)(24 + 4 * in->off);
	ws_store32(page + 24 + 4 * (in->off - 1), (uint32_t)(at | 1u << 15 | (in->hoff + in->len) << 17));
	page[at + 22] = in->hoff;
	memcpy(page + at + in->hoff, in->row, in->len);
	ws_buf_put(b, page, *hole);
	ws_buf_put(b, page + at, size);
	return *hole + size;
}

/* Payload of block 0's data: xl_heap_header, the rest of the header, the columns. */
static void
put_data(struct ws_buf *b, const struct insert *in)
{
	static const uint8_t bitmap[16] = {0xff, 0xff, 0xff, 0x07};

	ws_buf_put16(b, 33);
	ws_buf_put16(b, 0x0b03);
	ws_buf_putc(b, in->hoff);
	ws_buf_put(b, bitmap, in->hoff - 23u);
	ws_buf_put(b, in->row, in->len);
}

static struct ws_buf
make(const struct insert *in)
{
	struct ws_buf b = {0}, image = {0}, data = {0};
	uint16_t hole = 0;

	if (in->image)
		put_image(&image, in, &hole);
	if (in->data)
		put_data(&data, in);
	ws_buf_put(&b, (uint8_t[WS_REC_HDR_SIZE]){0}, WS_REC_HDR_SIZE);
	ws_buf_putc(&b, 0); /* block 0 of the main fork */
	ws_buf_putc(&b, (uint8_t)((in->image ? WS_BKP_HAS_IMAGE : 0) | (in->data ? WS_BKP_HAS_DATA : 0) |
	                          (in->info & INIT_PAGE ? WS_BKP_WILL_INIT : 0)));
	ws_buf_put16(&b, (uint16_t)data.len);
	if (in->image) {
		ws_buf_put16(&b, (uint16_t)image.len);
		ws_buf_put16(&b, hole);
		ws_buf_putc(&b, WS_IMG_HAS_HOLE | WS_IMG_APPLY);
	}
	ws_buf_put32(&b, 1663);
	ws_buf_put32(&b, in->db);
	ws_buf_put32(&b, in->file);
	ws_buf_put32(&b, 7);
	ws_buf_putc(&b, 255); /* main data: xl_heap_insert */
	ws_buf_putc(&b, 3);
	ws_buf_put(&b, image.data, image.len);
	ws_buf_put(&b, data.data, data.len);
	ws_buf_put16(&b, in->off);
	ws_buf_putc(&b, 0);
	ws_buf_free(&image);
	ws_buf_free(&data);
	ws_store32(b.data, (uint32_t)b.len);
	return b;
}

/* From memory of exactly its size. */
static void
feed_bytes(const struct insert *in, const uint8_t *p, size_t n)
{
	uint8_t *copy = ws_malloc(n);

	memcpy(copy, p, n);
	const struct ws_rec rec = {.data = copy, .tot_len = (uint32_t)n, .info = in->info,
	                           .rmid = in->rmid};

	ws_temprels_record(t, &rec, ver);
	free(copy);
}

static void
feed(struct insert in)
{
	struct ws_buf b = make(&in);

	feed_bytes(&in, b.data, b.len);
	ws_buf_free(&b);
}

/* ---- commits ---- */

static bool
only(ws_oid *rels, size_t nrels, ws_oid *types, size_t ntypes)
{
	const struct ws_boundary b = {.is = true, .db = DB, .types = ntypes > 0};
	const struct ws_boundary_ids ids = {.rels = rels, .nrels = nrels, .types = types,
	                                    .ntypes = ntypes};

	return ws_temprels_only(t, DB, &b, &ids);
}

static bool
only_rel(ws_oid rel)
{
	return only(&rel, 1, NULL, 0);
}

static bool
only_type(ws_oid type)
{
	return only(NULL, 0, &type, 1);
}

/* ---- tests ---- */

static void
test_row_in_record(void **state)
{
	(void)state;
	feed(class_row(30000, 't'));
	feed(class_row(30001, 'p'));
	feed(class_row(30002, 'u'));
	assert_true(only_rel(30000));
	assert_false(only_rel(30001));
	assert_false(only_rel(30002));
	assert_false(only_rel(30003));
	/* No NULL bitmap at all, and one with padding. */
	for (uint8_t hoff = 24; hoff <= 32; hoff += 8) {
		struct insert in = class_row(31000u + hoff, 't');

		in.hoff = hoff;
		feed(in);
		assert_true(only_rel(31000u + hoff));
	}
}

static void
test_row_in_image(void **state)
{
	struct insert in = class_row(30000, 't');

	(void)state;
	in.image = true;
	in.data = false;
	feed(in);
	assert_true(only_rel(30000));
	in = class_row(30001, 't');
	in.image = true;
	in.data = false;
	in.off = 9;
	feed(in);
	assert_true(only_rel(30001));
	/* Permanent, in an image: forgotten. */
	feed(class_row(30002, 't'));
	in = class_row(30002, 'p');
	in.image = true;
	in.data = false;
	feed(in);
	assert_false(only_rel(30002));
	/* Both, as with wal_consistency_checking. */
	in = class_row(30003, 't');
	in.image = true;
	feed(in);
	assert_true(only_rel(30003));
	in = type_row(40000, 30003, 0, 0);
	in.image = true;
	in.data = false;
	feed(in);
	assert_true(only_type(40000));
}

static void
test_first_of_page(void **state)
{
	struct insert in = class_row(30000, 't');

	(void)state;
	in.info = INIT_PAGE;
	feed(in);
	assert_true(only_rel(30000));
}

static void
test_elsewhere(void **state)
{
	struct insert in = class_row(30000, 't');

	(void)state;
	in.db = 6;
	feed(in);
	in.db = 0;
	feed(in);
	in.db = DB;
	in.file = OTHER_FILE;
	feed(in);
	in.file = 0;
	feed(in);
	in.file = CLASS_FILE;
	in.rmid = WS_RM_HEAP2;
	feed(in);
	in.rmid = WS_RM_HEAP;
	for (int op = 0x10; op <= 0x70; op += 0x10) {
		in.info = (uint8_t)op;
		feed(in);
	}
	assert_false(only_rel(30000));
	/* A database of which nothing is known, and one whose catalogs have moved. */
	ws_temprels_files(t, 7, 0, 0);
	in.info = 0;
	in.db = 7;
	in.file = 0;
	feed(in);
	ws_temprels_files(t, DB, OTHER_FILE, TYPE_FILE);
	in.db = DB;
	in.file = CLASS_FILE;
	feed(in);
	assert_false(only_rel(30000));
	in.file = OTHER_FILE;
	feed(in);
	assert_true(only_rel(30000));
}

/* The same oid is another thing in another database. */
static void
test_databases(void **state)
{
	struct insert in = class_row(30000, 't');
	ws_oid oid = 30000;
	const struct ws_boundary b = {.is = true, .db = 6};
	const struct ws_boundary_ids ids = {.rels = &oid, .nrels = 1};

	(void)state;
	ws_temprels_files(t, 6, CLASS_FILE, TYPE_FILE);
	feed(in);
	assert_false(ws_temprels_only(t, 6, &b, &ids));
	in = class_row(30000, 'p');
	in.db = 6;
	feed(in);
	assert_true(only_rel(30000));
}

static void
test_permanent_removes(void **state)
{
	(void)state;
	feed(class_row(30000, 't'));
	feed(class_row(30000, 'p'));
	assert_false(only_rel(30000));
	feed(class_row(30001, 't'));
	feed(type_row(40001, 30001, 0, 0));
	feed(class_row(30001, 'u'));
	assert_false(only_type(40001));
	/* A type's oid that is another's now. */
	feed(class_row(30002, 't'));
	feed(type_row(40002, 30002, 0, 0));
	feed(type_row(40002, 0, 0, 0));
	assert_false(only_type(40002));
}

static void
test_types(void **state)
{
	ws_oid rels[] = {30000, 30010}, types[] = {40000, 40001};

	(void)state;
	/* heap_create_with_catalog puts the types before the relation. */
	feed(type_row(40000, 30000, 0, 0));
	feed(type_row(40001, 0, ARRAY_HANDLER, 40000));
	feed(class_row(30000, 't'));
	feed(class_row(30010, 't')); /* its index has none */
	assert_true(only(rels, 2, types, 2));
	/* Of a permanent relation, of one that was not seen. */
	feed(type_row(40010, 30020, 0, 0));
	feed(type_row(40011, 0, ARRAY_HANDLER, 40010));
	assert_false(only_type(40010));
	assert_false(only_type(40011));
	feed(class_row(30020, 'p'));
	feed(type_row(40010, 30020, 0, 0));
	feed(type_row(40011, 0, ARRAY_HANDLER, 40010));
	assert_false(only_type(40010));
	assert_false(only_type(40011));
}

static void
test_other_types(void **state)
{
	(void)state;
	feed(class_row(30000, 't'));
	feed(type_row(40000, 30000, 0, 0));
	/* A base type of the row type's, not its array; an enum or a domain, and its array. */
	feed(type_row(40001, 0, RAW_ARRAY_HANDLER, 40000));
	feed(type_row(40002, 0, 0, 40000));
	feed(type_row(40003, 0, 0, 0));
	feed(type_row(40004, 0, ARRAY_HANDLER, 40003));
	/* An array of an array, which there is not. */
	feed(type_row(40005, 0, ARRAY_HANDLER, 40000));
	feed(type_row(40006, 0, ARRAY_HANDLER, 40005));
	/* An array of itself. */
	feed(type_row(40007, 0, ARRAY_HANDLER, 40007));
	/* The row of a permanent relation that says that it is an array, too. */
	feed(type_row(40008, 30001, ARRAY_HANDLER, 40000));
	assert_true(only_type(40000));
	assert_false(only_type(40001));
	assert_false(only_type(40002));
	assert_false(only_type(40003));
	assert_false(only_type(40004));
	assert_true(only_type(40005));
	assert_false(only_type(40006));
	assert_false(only_type(40007));
	assert_false(only_type(40008));
}

static void
test_passed_twice(void **state)
{
	ws_oid rel = 30000, type = 40000;

	(void)state;
	feed(class_row(rel, 't'));
	feed(type_row(type, rel, 0, 0));
	assert_true(only(&rel, 1, &type, 1));
	assert_true(only(&rel, 1, &type, 1));
	assert_false(only_rel(rel));
	assert_false(only_type(type));
	/* Made anew: counts again. */
	feed(class_row(rel, 't'));
	assert_true(only_rel(rel));
	feed(class_row(rel, 't'));
	assert_true(only_rel(rel));
	assert_true(only_rel(rel));
	assert_false(only_rel(rel));
	/* A commit that touches something else passes it all the same. */
	ws_oid both[] = {30001, 30002};

	feed(class_row(30001, 't'));
	assert_false(only(both, 2, NULL, 0));
	assert_false(only(both, 2, NULL, 0));
	assert_false(only_rel(30001));
}

static void
test_something_else(void **state)
{
	ws_oid rel = 30000, other = 99;
	struct ws_boundary_ids ids = {.rels = &rel, .nrels = 1};
	struct ws_boundary b = {.is = true, .db = DB};

	(void)state;
#define NOT_ONLY(field, value)                                                                     \
	do {                                                                                           \
		feed(class_row(rel, 't'));                                                                 \
		field = value;                                                                             \
		assert_false(ws_temprels_only(t, DB, &b, &ids));                                           \
		field = 0;                                                                                 \
		assert_true(ws_temprels_only(t, DB, &b, &ids));                                            \
	} while (0)
	NOT_ONLY(b.every_db, true);
	NOT_ONLY(b.all_rels, true);
	NOT_ONLY(b.namespaces, true);
	NOT_ONLY(b.types, true); /* without a type's oid: all are meant */
	ids.labels = ids.namespaces = &other;
	NOT_ONLY(ids.nlabels, 1);
	NOT_ONLY(ids.nnamespaces, 1);
	/* A catalog. */
	ws_oid rels[] = {WS_OID_PG_CLASS, rel};

	feed(class_row(rel, 't'));
	assert_false(only(rels, 2, NULL, 0));
}

/* So many that they are forgotten: of the last some are known, and nothing is known wrongly. */
static void
test_many(void **state)
{
	const ws_oid n = MOST + 10;

	(void)state;
	for (ws_oid i = 0; i < n; i++)
		feed(class_row(100000 + i, i % 3 ? 't' : 'p'));
	for (ws_oid i = 0; i < n; i += 3)
		assert_false(only_rel(100000 + i));
	assert_true(only_rel(100000 + n - 2 - (n - 2) % 3 + 1));
	for (ws_oid i = 0; i < MOST; i++)
		feed(class_row(300000 + i, 't'));
	assert_false(only_rel(100000 + n - 1));
	/* The same ones again are no more. */
	for (ws_oid i = 0; i < 100; i++)
		feed(class_row(300000 + MOST - 1 - i, 't'));
	assert_true(only_rel(300000 + MOST - 200));
	for (ws_oid i = 0; i < n; i++)
		feed(type_row(100000 + i, 300000 + MOST - 1, 0, 0));
	assert_false(only_type(100000));
	assert_true(only_type(100000 + n - 1));
}

/* A record cut anywhere, which no reader hands out: nothing becomes temporary by it, and where the
 * row could have been any relation's, none is known to be temporary any more. */
static void
cut_all(struct insert in)
{
	struct ws_buf b = make(&in);
	bool seen = false;

	for (size_t n = 0; n < b.len; n++) {
		feed(class_row(30009, 't'));
		feed_bytes(&in, b.data, n);
		assert_false(only_rel(30000));
		/* Once the file is readable. */
		bool kept = only_rel(30009);

		assert_true(!seen || !kept);
		seen |= !kept;
	}
	assert_true(seen);
	feed_bytes(&in, b.data, b.len);
	assert_true(only_rel(30000));
	ws_buf_free(&b);
}

static void
test_cut(void **state)
{
	struct insert in = class_row(30000, 't');

	(void)state;
	cut_all(in);
	feed(class_row(30000, 'p'));
	in.image = true;
	cut_all(in);
	feed(class_row(30000, 'p'));
	in.data = false;
	cut_all(in);
}

/* Rows shorter than what is needed of them. */
static void
test_short_rows(void **state)
{
	(void)state;
	for (size_t n = 1; n <= ver->class_persistence + 1u; n++) {
		struct insert in = class_row(30000, 't');

		in.len = n;
		feed(class_row(30001, 't'));
		feed(in);
		assert_int_equal(only_rel(30000), n == ver->class_persistence + 1u);
		assert_int_equal(only_rel(30001), n == ver->class_persistence + 1u);
		in.image = true;
		in.data = false;
		feed(in);
		assert_int_equal(only_rel(30000), n == ver->class_persistence + 1u);
	}
	for (size_t n = 1; n <= 96; n++) {
		struct insert in = type_row(40000, 30000, 0, 0);

		in.len = n;
		feed(class_row(30000, 't'));
		feed(in);
		assert_int_equal(only_type(40000), n == 96);
		assert_int_equal(only_rel(30000), n == 96);
	}
}

/* Headers that cannot be. */
static void
test_hostile(void **state)
{
	struct insert in = class_row(30000, 't');
	struct ws_buf b = make(&in);
	/* header, block header, main's header; the tuple's header length is data's fifth byte */
	const size_t hoff_at = WS_REC_HDR_SIZE + 20 + 2 + 4;

	(void)state;
	assert_int_equal(b.data[hoff_at], in.hoff);
	for (int hoff = 0; hoff < 256; hoff++) {
		b.data[hoff_at] = (uint8_t)hoff;
		feed_bytes(&in, b.data, b.len);
		bool is = only_rel(30000);

		assert_true(hoff == in.hoff ? is : hoff < 23 || hoff > 23 + 9 + 128 - 115 ? !is : true);
	}
	ws_buf_free(&b);
	/* No main data: no line pointer. */
	b = make(&in);
	b.data[WS_REC_HDR_SIZE + 21] = 2;
	feed_bytes(&in, b.data, b.len - 1);
	assert_false(only_rel(30000));
	ws_buf_free(&b);
	/* Neither data nor an image. */
	in.data = false;
	feed(in);
	assert_false(only_rel(30000));
}

static void
test_majors(void **state)
{
	(void)state;
	for (int major = 16; major <= 18; major++) {
		struct insert in;

		ver = ws_walver_by_major(major);
		assert_int_equal(ver->class_persistence, major == 18 ? 118 : 114);
		in = class_row(30000, 'p');
		in.row[major == 18 ? 114 : 118] = 't'; /* another column there */
		feed(in);
		assert_false(only_rel(30000));
		in.row[major == 18 ? 118 : 114] = 't';
		in.row[major == 18 ? 114 : 118] = 0;
		feed(in);
		assert_true(only_rel(30000));
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_row_in_record),
	    TEST(test_row_in_image),
	    TEST(test_first_of_page),
	    TEST(test_elsewhere),
	    TEST(test_databases),
	    TEST(test_permanent_removes),
	    TEST(test_types),
	    TEST(test_other_types),
	    TEST(test_passed_twice),
	    TEST(test_something_else),
	    TEST(test_many),
	    TEST(test_cut),
	    TEST(test_short_rows),
	    TEST(test_hostile),
	    TEST(test_majors),
	};

	return cmocka_run_group_tests_name("catalog-temprel", tests, NULL, NULL);
}
