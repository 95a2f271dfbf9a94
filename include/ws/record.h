/* One WAL record taken apart (access/xlogrecord.h): header, block references, main data.
 * Pure: points into the given bytes, which must live as long as the result is used. */
#ifndef WS_RECORD_H
#define WS_RECORD_H

#include "ws/err.h"

#define WS_REC_HDR_SIZE   24u
#define WS_REC_MAX_SIZE   (1020u * 1024 * 1024) /* XLogRecordMaxSize */
#define WS_REC_MAX_BLOCKS 33                    /* XLR_MAX_BLOCK_ID + 1 */

enum ws_rmgr {
#define WS_RMGR(id, sym, name) WS_RM_##sym = id,
#include "ws/rmgr.def"
#undef WS_RMGR
	WS_RM_BUILTIN_COUNT
};

/* "Heap2"; custom ids (128-255) give "custom" and the number in buf (16 bytes). */
const char *ws_rmgr_name(uint8_t rmid, char *buf);

/* A whole record as the reader hands it out.  data is contiguous, tot_len bytes, header included. */
struct ws_rec {
	ws_lsn start;    /* first byte of the header */
	ws_lsn end;      /* end position: MAXALIGNed; after XLOG_SWITCH the end of the segment */
	ws_tli tli;      /* of the page where it starts */
	const uint8_t *data;
	uint32_t tot_len;
	ws_xid xid;
	ws_lsn prev;
	uint8_t info; /* all 8 bits; rmgr's own are info & 0xF0 */
	uint8_t rmid;
};

#define WS_BKP_HAS_IMAGE 0x10 /* bits of the fork byte */
#define WS_BKP_HAS_DATA  0x20
#define WS_BKP_WILL_INIT 0x40
#define WS_IMG_HAS_HOLE  0x01
#define WS_IMG_APPLY     0x02
#define WS_IMG_PGLZ      0x04
#define WS_IMG_LZ4       0x08
#define WS_IMG_ZSTD      0x10

struct ws_block {
	struct ws_locator loc;
	uint32_t blkno;
	uint8_t id;
	uint8_t fork;  /* 0 main, 1 fsm, 2 vm, 3 init */
	uint8_t flags; /* the fork byte's upper half: WS_BKP_* */
	uint8_t img_info;
	uint16_t img_len, hole_off, hole_len;
	uint16_t data_len;
	const uint8_t *img;  /* NULL without image */
	const uint8_t *data; /* NULL without data */
};

struct ws_record {
	const struct ws_rec *rec;
	ws_xid toplevel_xid; /* from id 252, else 0 */
	uint16_t origin;     /* from id 253, else 0 */
	uint32_t main_len;
	const uint8_t *main;
	int nblocks;
	struct ws_block blocks[WS_REC_MAX_BLOCKS]; /* in record order; ids may have gaps */
};

/* Takes rec apart.  -1: the bytes are no record (err has LSN and what). */
int ws_record_parse(const struct ws_rec *rec, struct ws_record *out, struct ws_err *err);
/* Block 0's relation without taking the whole record apart.  False: the record has no block 0. */
bool ws_rec_locator(const uint8_t *data, uint32_t tot_len, struct ws_locator *loc);
/* The block with this id, or NULL. */
const struct ws_block *ws_record_block(const struct ws_record *r, uint8_t id);

/* Restores the 8192-byte page of a block's image into page.  -1: no image, or corrupt. */
int ws_fpi_restore(const struct ws_block *b, uint8_t *page, struct ws_err *err);

/* Of a heap tuple, up to the NULL bitmap (access/htup_details.h: SizeofHeapTupleHeader). */
#define WS_TUPLE_HDR_SIZE 23u

/* The columns' bytes of the tuple at a line pointer (1 is the first) of a block's image, which is
 * restored into page.  False: there is none. */
bool ws_fpi_row(const struct ws_block *b, uint16_t off, uint8_t *page, const uint8_t **row, size_t *n);

/* True when the record's own CRC is right. */
bool ws_record_crc_ok(const uint8_t *rec, uint32_t tot_len);

#endif
