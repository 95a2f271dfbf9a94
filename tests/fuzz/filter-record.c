/* Fuzz target: the classifier.  Input: records, each u8 rmgr, u8 info, u32 xid, u16 body length,
 * body.  Whatever it says, blanking must give a record that parses and has a right CRC. */
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/filter.h"
#include "ws/mem.h"
#include "ws/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_blank(uint8_t *raw, uint32_t len)
{
	struct ws_rec rec = {.start = 0x1000028, .data = raw, .tot_len = len};
	struct ws_record parsed;

	ws_rewrite_blank(raw, len);
	if (!ws_record_crc_ok(raw, len) || (len != WS_REC_HDR_SIZE + 1 && ws_record_parse(&rec, &parsed, NULL) != 0))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_filter *f = ws_filter_new();
	struct ws_cursor c = ws_cursor(data, size);
	const struct ws_walver *ver = ws_walver_by_major(size % 2 ? 17 : 18);
	ws_lsn lsn = 0x1000028;

	while (ws_cur_left(&c)) {
		uint8_t rmid = ws_cur_u8(&c), info = ws_cur_u8(&c);
		ws_xid xid = ws_cur_u32(&c);
		uint16_t n = ws_cur_u16(&c);
		const uint8_t *body = ws_cur_bytes(&c, n);

		if (!body)
			break;
		uint32_t len = WS_REC_HDR_SIZE + n;
		uint8_t *raw = ws_calloc(1, len);

		ws_store32(raw, len);
		ws_store32(raw + 4, xid);
		raw[16] = info;
		raw[17] = rmid;
		memcpy(raw + WS_REC_HDR_SIZE, body, n);
		struct ws_rec rec = {.start = lsn, .end = lsn + len, .tli = 1, .data = raw, .tot_len = len,
		                     .xid = xid, .info = info, .rmid = rmid};
		enum ws_verdict verdict;
		struct ws_err err;

		if (ws_filter_record(f, &rec, ver, &verdict, &err) == 0 && verdict == WS_BLANK)
			check_blank(raw, len);
		free(raw);
		lsn += (len + 7) & ~7u;
	}
	/* What was learnt survives a save. */
	struct ws_buf a = {0}, b = {0};
	struct ws_filter *g = ws_filter_new();
	struct ws_pos pos = {1, lsn}, got;
	uint64_t id;

	ws_filter_save(f, pos, 1, &a);
	if (ws_filter_load(g, "fuzz", a.data, a.len, &got, &id, NULL) != 0)
		abort();
	ws_filter_save(g, got, id, &b);
	if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
		abort();
	ws_buf_free(&a);
	ws_buf_free(&b);
	ws_filter_free(f);
	ws_filter_free(g);
	return 0;
}
