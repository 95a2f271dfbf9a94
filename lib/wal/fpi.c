/* Full-page images back to pages (access/transam/xlogreader.c, RestoreBlockImage). */
#include <inttypes.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include "ws/cursor.h"
#include "ws/pglz.h"
#include "ws/record.h"
#include "ws/walpage.h"

#define PAGE_HDR 24u /* storage/bufpage.h: SizeOfPageHeaderData */

/* Decompresses the image into exactly want bytes.  Returns its method's name when it is corrupt. */
static const char *
decompress(const struct ws_block *b, uint8_t *dst, size_t want)
{
	if (b->img_info & WS_IMG_PGLZ)
		return ws_pglz_decompress(b->img, b->img_len, dst, want) == 0 ? NULL : "pglz";
	if (b->img_info & WS_IMG_LZ4)
		return LZ4_decompress_safe((const char *)b->img, (char *)dst, b->img_len, (int)want) == (int)want
		           ? NULL
		           : "lz4";
	return ZSTD_decompress(dst, want, b->img, b->img_len) == want ? NULL : "zstd";
}

int
ws_fpi_restore(const struct ws_block *b, uint8_t *page, struct ws_err *err)
{
	uint8_t tmp[WS_PAGE_SIZE];
	const uint8_t *src = b->img;
	size_t have = WS_PAGE_SIZE - (size_t)b->hole_len, head = b->hole_len ? b->hole_off : have;

	if (!src)
		return ws_err_op(err, "wal_corrupt", "block %" PRIu32 " of %u/%u/%u has no page image", b->blkno,
		                 b->loc.spc, b->loc.db, b->loc.rel);
	if (b->img_info & (WS_IMG_PGLZ | WS_IMG_LZ4 | WS_IMG_ZSTD)) {
		const char *method = decompress(b, tmp, have);

		if (method)
			return ws_err_op(err, "wal_corrupt", "block %" PRIu32 " of %u/%u/%u: corrupt %s page image",
			                 b->blkno, b->loc.spc, b->loc.db, b->loc.rel, method);
		src = tmp;
	}
	memcpy(page, src, head);
	memset(page + head, 0, b->hole_len);
	memcpy(page + head + b->hole_len, src + head, have - head);
	return 0;
}

bool
ws_fpi_row(const struct ws_block *b, uint16_t off, uint8_t *page, const uint8_t **row, size_t *n)
{
	struct ws_err ignored;

	if (!b->img || off == 0 || PAGE_HDR + 4u * off > WS_PAGE_SIZE || ws_fpi_restore(b, page, &ignored) != 0)
		return false;
	uint32_t lp = ws_le32(page + PAGE_HDR + 4u * (off - 1u)); /* ItemIdData: offset 15, flags 2, length 15 */
	size_t at = lp & 0x7fff, len = lp >> 17;

	if (len < WS_TUPLE_HDR_SIZE || at + len > WS_PAGE_SIZE || page[at + 22] > len || page[at + 22] < WS_TUPLE_HDR_SIZE)
		return false;
	*row = page + at + page[at + 22];
	*n = len - page[at + 22];
	return true;
}
