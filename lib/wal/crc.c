/* CRC-32C; see ws/crc.h.  The instruction where the CPU has one, else slicing by eight with tables
 * that are made at load time. */
#include <string.h>

#include "walpriv.h"
#include "ws/crc.h"
#include "ws/cursor.h"
#include "ws/record.h"

#define POLY 0x82f63b78u /* reflected Castagnoli */

static uint32_t table[8][256];

uint32_t
ws_crc32c_sw(uint32_t crc, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (; n >= 8; n -= 8, b += 8) {
		uint32_t lo = crc ^ ws_le32(b), hi = ws_le32(b + 4);

		crc = table[7][lo & 255] ^ table[6][lo >> 8 & 255] ^ table[5][lo >> 16 & 255] ^
		      table[4][lo >> 24] ^ table[3][hi & 255] ^ table[2][hi >> 8 & 255] ^
		      table[1][hi >> 16 & 255] ^ table[0][hi >> 24];
	}
	while (n--)
		crc = crc >> 8 ^ table[0][(crc ^ *b++) & 255];
	return crc;
}

/* A record's CRC covers what follows the header, then the header up to xl_crc
 * (access/transam/xloginsert.c, XLogRecordAssemble). */
static bool
record_ok_sw(const uint8_t *rec, uint32_t len)
{
	uint32_t c = ws_crc32c_sw(WS_CRC_INIT, rec + WS_REC_HDR_SIZE, len - WS_REC_HDR_SIZE);

	return WS_CRC_FIN(ws_crc32c_sw(c, rec, 20)) == ws_le32(rec + 20);
}

static uint32_t
record_head_sw(uint32_t crc, const uint8_t *rec)
{
	return ws_crc32c_sw(crc, rec, 20);
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HAVE_HW 1
#define HW_TARGET __attribute__((target("sse4.2")))
#define HW8(c, v)  _mm_crc32_u64(c, v)
#define HW4(c, v)  _mm_crc32_u32((uint32_t)(c), v)
#define HW2(c, v)  _mm_crc32_u16((uint32_t)(c), v)
#define HW1(c, v)  _mm_crc32_u8((uint32_t)(c), v)
#define HW_PRESENT __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HAVE_HW 1
#define HW_TARGET
#define HW8(c, v)  __crc32cd((uint32_t)(c), v)
#define HW4(c, v)  __crc32cw((uint32_t)(c), v)
#define HW2(c, v)  __crc32ch((uint32_t)(c), v)
#define HW1(c, v)  __crc32cb((uint32_t)(c), v)
#define HW_PRESENT 1
#endif

#ifdef HAVE_HW
/* 64 bits wide all along: narrowing between the steps was a cycle in each. */
HW_TARGET static inline uint64_t
hw_run(uint64_t crc, const uint8_t *b, size_t n)
{
	for (; n >= 32; n -= 32, b += 32) {
		crc = HW8(crc, ws_le64(b));
		crc = HW8(crc, ws_le64(b + 8));
		crc = HW8(crc, ws_le64(b + 16));
		crc = HW8(crc, ws_le64(b + 24));
	}
	for (; n >= 8; n -= 8, b += 8)
		crc = HW8(crc, ws_le64(b));
	if (n & 4) {
		crc = HW4(crc, ws_le32(b));
		b += 4;
	}
	if (n & 2) {
		crc = HW2(crc, ws_le16(b));
		b += 2;
	}
	if (n & 1)
		crc = HW1(crc, *b);
	return crc;
}

HW_TARGET static uint32_t
crc_hw(uint32_t crc, const void *p, size_t n)
{
	return (uint32_t)hw_run(crc, p, n);
}

HW_TARGET static uint32_t
record_head_hw(uint32_t crc, const uint8_t *rec)
{
	uint64_t c = HW8(crc, ws_le64(rec));

	c = HW8(c, ws_le64(rec + 8));
	return HW4(c, ws_le32(rec + 16));
}

HW_TARGET static bool
record_ok_hw(const uint8_t *rec, uint32_t len)
{
	uint64_t c = hw_run(WS_CRC_INIT, rec + WS_REC_HDR_SIZE, len - WS_REC_HDR_SIZE);

	return WS_CRC_FIN(record_head_hw((uint32_t)c, rec)) == ws_le32(rec + 20);
}
#endif

uint32_t (*ws_crc32c)(uint32_t crc, const void *p, size_t n) = ws_crc32c_sw;
bool (*ws_record_crc_check)(const uint8_t *rec, uint32_t len) = record_ok_sw;
uint32_t (*ws_record_head_crc)(uint32_t crc, const uint8_t *rec) = record_head_sw;

__attribute__((constructor)) static void
crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ POLY : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
#ifdef HAVE_HW
	if (HW_PRESENT) {
		ws_crc32c = crc_hw;
		ws_record_crc_check = record_ok_hw;
		ws_record_head_crc = record_head_hw;
	}
#endif
}

bool
ws_record_crc_ok(const uint8_t *rec, uint32_t tot_len)
{
	return tot_len >= WS_REC_HDR_SIZE && ws_record_crc_check(rec, tot_len);
}
