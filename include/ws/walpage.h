/* WAL pages and the layouts that differ by major: the page magic gives a struct of layouts once,
 * so that decoders never ask for a version number.
 * Layout: access/xlog_internal.h (XLogPageHeaderData, XLogLongPageHeaderData). */
#ifndef WS_WALPAGE_H
#define WS_WALPAGE_H

#include "ws/err.h"

#define WS_PAGE_SIZE        8192u /* XLOG_BLCKSZ; other builds are refused by the long header */
#define WS_PAGE_HDR_SHORT   24u
#define WS_PAGE_HDR_LONG    40u
#define WS_PAGE_FIRST_IS_CONTRECORD           0x0001
#define WS_PAGE_LONG_HEADER                   0x0002
#define WS_PAGE_FIRST_IS_OVERWRITE_CONTRECORD 0x0008

/* What differs between majors.  One table in lib/wal; `magic` is the key. */
struct ws_walver {
	uint16_t magic;
	int major;
	bool supported;            /* decoding; 15 only parses */
	uint8_t stat_item_size;    /* an item of COMMIT's dropped statistics: 12, from 18: 16 */
	/* syscache ids of the boundary rules (wal messages): */
	uint8_t cache_namespace_name, cache_namespace_oid, cache_type_name, cache_type_oid,
	    cache_enum_oid, cache_enum_name, cache_range_multi, cache_range_type, cache_database_oid;
	uint8_t class_persistence; /* where a row of pg_class has relpersistence (catalog/pg_class.h) */
	bool heap2_prune_merged;   /* 17+: PRUNE_ON_ACCESS/VACUUM_SCAN/VACUUM_CLEANUP */
};

/* NULL for an unknown magic. */
const struct ws_walver *ws_walver_by_magic(uint16_t magic);
const struct ws_walver *ws_walver_by_major(int major);
/* Says what an unknown magic found at `at` is: reason wal_too_old (PostgreSQL 14 and older),
 * wal_too_new or not_wal.  Returns -1. */
int ws_walver_refuse(uint16_t magic, ws_lsn at, struct ws_err *err);

struct ws_page_header {
	uint16_t magic, info;
	ws_tli tli;
	ws_lsn pageaddr;
	uint32_t rem_len;
	/* only with WS_PAGE_LONG_HEADER: */
	uint64_t system_id;
	uint32_t segsize, blcksz;
	uint32_t size; /* 24 or 40 */
};

/* p has at least 24 bytes (n says how many).  0, or -1 when the bytes are no page header. */
int ws_page_header_parse(const uint8_t *p, size_t n, struct ws_page_header *h);

#endif
