/* Fuzz target: what INSERTs into pg_class and pg_type say of temporary relations.  Byte 0 chooses the
 * major; then records, each its info, its length (u16) and its bytes behind the header.  A row that is
 * not in an image says what it is: temporary for two commits and no more, or not at all. */
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/record.h"
#include "ws/temprel.h"

#define DB         5u
#define CLASS_FILE 1259u
#define TYPE_FILE  1247u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
only(struct ws_temprels *t, ws_oid rel, ws_oid type)
{
	const struct ws_boundary b = {.is = true, .db = DB, .types = type != 0};
	const struct ws_boundary_ids ids = {.rels = &rel, .nrels = rel != 0, .types = &type,
	                                    .ntypes = type != 0};

	return ws_temprels_only(t, DB, &b, &ids);
}

/* The row that the record adds where it is not in an image; the oid that it begins with, or 0. */
static ws_oid
plain_oid(const struct ws_rec *rec, const uint8_t **row, size_t *n)
{
	struct ws_record r;

	if (rec->info & 0x70 || ws_record_parse(rec, &r, NULL) != 0 || r.nblocks == 0 ||
	    r.blocks[0].id != 0 || !r.blocks[0].data || r.main_len < 3 || r.blocks[0].loc.db != DB)
		return 0;
	const struct ws_block *b = &r.blocks[0];
	size_t at = b->data_len > 5 && b->data[4] >= 23 ? 5u + b->data[4] - 23u : b->data_len;

	if (at + 120 > b->data_len)
		return 0;
	*row = b->data + at;
	*n = b->data_len - at;
	return b->loc.rel == CLASS_FILE ? ws_le32(*row) : 0;
}

static void
one(struct ws_temprels *t, const struct ws_rec *rec, const struct ws_walver *ver)
{
	const uint8_t *row;
	size_t n;
	ws_oid oid = plain_oid(rec, &row, &n);

	ws_temprels_record(t, rec, ver);
	if (!oid)
		return;
	bool temporary = row[ver->class_persistence] == 't';

	/* Asked three times: forgotten after the second. */
	if (only(t, oid, 0) != temporary || only(t, oid, 0) != temporary || only(t, oid, 0))
		abort();
	/* Known once more, for types that come. */
	ws_temprels_record(t, rec, ver);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const struct ws_walver *ver = ws_walver_by_major(16 + data[0] % 3);
	struct ws_cursor c = ws_cursor(data + 1, size - 1);
	struct ws_temprels *t = ws_temprels_new();

	ws_temprels_files(t, DB, CLASS_FILE, TYPE_FILE);
	while (ws_cur_left(&c) > 3) {
		uint8_t info = ws_cur_u8(&c);
		size_t n = ws_cur_u16(&c);

		if (n > ws_cur_left(&c))
			n = ws_cur_left(&c);
		/* In memory of exactly its size. */
		uint8_t *copy = calloc(1, WS_REC_HDR_SIZE + n);

		if (!copy)
			abort();
		memcpy(copy + WS_REC_HDR_SIZE, ws_cur_bytes(&c, n), n);
		const struct ws_rec rec = {.data = copy, .tot_len = (uint32_t)(WS_REC_HDR_SIZE + n), .info = info,
		                           .rmid = WS_RM_HEAP};

		one(t, &rec, ver);
		free(copy);
	}
	/* A type of oid 0 has no name. */
	for (ws_oid oid = 1; oid < 4; oid++)
		if (only(t, 0, oid) && only(t, 0, oid) && only(t, 0, oid))
			abort();
	ws_temprels_free(t);
	return 0;
}
