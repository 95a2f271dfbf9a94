/* WAL page headers and the table of majors; see ws/walpage.h. */
#include "ws/cursor.h"
#include "ws/walpage.h"

/* Magics: access/xlog_internal.h, XLOG_PAGE_MAGIC.  Cache ids: utils/syscache.h of 15 to 17 and
 * the generated catalog/syscache_ids.h of 18, which has two entries more after 26.  pg_class of 18 has
 * relallfrozen before relpersistence. */
static const struct ws_walver versions[] = {
    {.magic = 0xD110, .major = 15, .supported = false, .stat_item_size = 12,
     .cache_namespace_name = 35, .cache_namespace_oid = 36, .cache_type_name = 79,
     .cache_type_oid = 80, .cache_enum_oid = 23, .cache_enum_name = 24, .cache_range_multi = 52,
     .cache_range_type = 53, .cache_database_oid = 21, .class_persistence = 114, .heap2_prune_merged = false},
    {.magic = 0xD113, .major = 16, .supported = true, .stat_item_size = 12,
     .cache_namespace_name = 35, .cache_namespace_oid = 36, .cache_type_name = 79,
     .cache_type_oid = 80, .cache_enum_oid = 23, .cache_enum_name = 24, .cache_range_multi = 52,
     .cache_range_type = 53, .cache_database_oid = 21, .class_persistence = 114, .heap2_prune_merged = false},
    {.magic = 0xD116, .major = 17, .supported = true, .stat_item_size = 12,
     .cache_namespace_name = 35, .cache_namespace_oid = 36, .cache_type_name = 79,
     .cache_type_oid = 80, .cache_enum_oid = 23, .cache_enum_name = 24, .cache_range_multi = 52,
     .cache_range_type = 53, .cache_database_oid = 21, .class_persistence = 114, .heap2_prune_merged = true},
    {.magic = 0xD118, .major = 18, .supported = true, .stat_item_size = 16,
     .cache_namespace_name = 37, .cache_namespace_oid = 38, .cache_type_name = 81,
     .cache_type_oid = 82, .cache_enum_oid = 23, .cache_enum_name = 24, .cache_range_multi = 54,
     .cache_range_type = 55, .cache_database_oid = 21, .class_persistence = 118, .heap2_prune_merged = true},
};

#define NVERSIONS (sizeof versions / sizeof versions[0])

const struct ws_walver *
ws_walver_by_magic(uint16_t magic)
{
	for (size_t i = 0; i < NVERSIONS; i++)
		if (versions[i].magic == magic)
			return &versions[i];
	return NULL;
}

const struct ws_walver *
ws_walver_by_major(int major)
{
	for (size_t i = 0; i < NVERSIONS; i++)
		if (versions[i].major == major)
			return &versions[i];
	return NULL;
}

/* Magics of majors that are too old, newest first; each holds down to the next one. */
static const struct {
	uint16_t magic;
	const char *major;
} old[] = {{0xD10D, "14"}, {0xD106, "13"}, {0xD101, "12"}, {0xD098, "11"}, {0xD097, "10"}};

int
ws_walver_refuse(uint16_t magic, ws_lsn at, struct ws_err *err)
{
	for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
		if (old[i].magic == magic)
			return ws_err_op(err, "wal_too_old",
			                 WS_LSN_FMT ": WAL of PostgreSQL %s is too old, 16 or newer is needed "
			                            "(page magic %04X)",
			                 WS_LSN_ARG(at), old[i].major, magic);
	if (magic >= 0xD000 && magic < versions[0].magic)
		return ws_err_op(err, "wal_too_old",
		                 WS_LSN_FMT ": WAL older than that of PostgreSQL 15 is too old, 16 or newer "
		                            "is needed (page magic %04X)",
		                 WS_LSN_ARG(at), magic);
	if (magic > versions[NVERSIONS - 1].magic && magic < 0xD200)
		return ws_err_op(err, "wal_too_new",
		                 WS_LSN_FMT ": WAL of a PostgreSQL newer than %d is not known here "
		                            "(page magic %04X)",
		                 WS_LSN_ARG(at), versions[NVERSIONS - 1].major, magic);
	return ws_err_op(err, "not_wal", WS_LSN_FMT ": no WAL page (page magic %04X)", WS_LSN_ARG(at),
	                 magic);
}

int
ws_page_header_parse(const uint8_t *p, size_t n, struct ws_page_header *h)
{
	if (n < WS_PAGE_HDR_SHORT)
		return -1;
	h->magic = ws_le16(p);
	h->info = ws_le16(p + 2);
	h->tli = ws_le32(p + 4);
	h->pageaddr = ws_le64(p + 8);
	h->rem_len = ws_le32(p + 16);
	h->system_id = 0;
	h->segsize = h->blcksz = 0;
	h->size = h->info & WS_PAGE_LONG_HEADER ? WS_PAGE_HDR_LONG : WS_PAGE_HDR_SHORT;
	if (h->info & ~0x000F || n < h->size) /* XLP_ALL_FLAGS */
		return -1;
	if (h->size == WS_PAGE_HDR_LONG) {
		h->system_id = ws_le64(p + 24);
		h->segsize = ws_le32(p + 32);
		h->blcksz = ws_le32(p + 36);
	}
	return 0;
}
