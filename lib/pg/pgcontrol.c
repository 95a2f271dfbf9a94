/* pg_control; see ws/pgcontrol.h.
 *
 * Offsets of struct ControlFileData (catalog/pg_control.h) as an x86-64 or arm64 compiler lays it
 * out. From 16 (pg_control_version 1300) to 18 nothing moved in front of the nonce; 18 has
 * default_char_signedness before it, so that the CRC stands elsewhere. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ws/crc.h"
#include "ws/cursor.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/pgcontrol.h"

enum {
	AT_SYSTEM_ID = 0,
	AT_VERSION = 8,
	AT_CATALOG_VERSION = 12,
	AT_STATE = 16,
	AT_CHECKPOINT = 32,
	AT_REDO = 40,
	AT_REDO_TLI = 48,
	AT_OLDEST_ACTIVE_XID = 120,
	AT_MIN_RECOVERY = 136,
	AT_MIN_RECOVERY_TLI = 144,
	AT_BACKUP_START = 152,
	AT_BACKUP_END = 160,
	AT_BACKUP_END_REQUIRED = 168,
	AT_WAL_LEVEL = 172,
	AT_WAL_LOG_HINTS = 176,
	AT_MAX_CONNECTIONS = 180,
	AT_MAX_WORKER_PROCESSES = 184,
	AT_MAX_WAL_SENDERS = 188,
	AT_MAX_PREPARED_XACTS = 192,
	AT_MAX_LOCKS_PER_XACT = 196,
	AT_TRACK_COMMIT_TS = 200,
	AT_BLCKSZ = 216,
	AT_WAL_BLCKSZ = 224,
	AT_SEGSIZE = 228,
	AT_CHECKSUMS = 252
};

static const struct layout {
	uint32_t version;
	int major;
	size_t crc; /* offset of the CRC, which is also the length that it covers */
} layouts[] = {{1300, 16, 288}, {1700, 17, 288}, {1800, 18, 292}};

static const struct layout *
find_layout(uint32_t version)
{
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

int
ws_pgcontrol_parse(const uint8_t *p, size_t n, struct ws_pgcontrol *c, struct ws_err *err)
{
	if (n < 16)
		return ws_err_op(err, "control_malformed", "pg_control is %zu bytes long", n);
	const struct layout *l = find_layout(ws_le32(p + AT_VERSION));

	if (!l)
		return ws_err_op(err, "control_malformed",
						 "pg_control has version %u, of no PostgreSQL that is supported",
						 ws_le32(p + AT_VERSION));
	if (n < l->crc + 4)
		return ws_err_op(err, "control_malformed", "pg_control is %zu bytes long", n);
	if (WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, p, l->crc)) != ws_le32(p + l->crc))
		return ws_err_op(err, "control_malformed", "pg_control: wrong CRC");
	*c = (struct ws_pgcontrol){
		.major = l->major,
		.system_id = ws_le64(p + AT_SYSTEM_ID),
		.version = l->version,
		.catalog_version = ws_le32(p + AT_CATALOG_VERSION),
		.state = ws_le32(p + AT_STATE),
		.checkpoint = ws_le64(p + AT_CHECKPOINT),
		.redo = {ws_le32(p + AT_REDO_TLI), ws_le64(p + AT_REDO)},
		.oldest_active_xid = ws_le32(p + AT_OLDEST_ACTIVE_XID),
		.min_recovery = {ws_le32(p + AT_MIN_RECOVERY_TLI), ws_le64(p + AT_MIN_RECOVERY)},
		.backup_start = ws_le64(p + AT_BACKUP_START),
		.backup_end = ws_le64(p + AT_BACKUP_END),
		.backup_end_required = p[AT_BACKUP_END_REQUIRED] != 0,
		.wal_level = (int32_t)ws_le32(p + AT_WAL_LEVEL),
		.max_connections = (int32_t)ws_le32(p + AT_MAX_CONNECTIONS),
		.max_worker_processes = (int32_t)ws_le32(p + AT_MAX_WORKER_PROCESSES),
		.max_wal_senders = (int32_t)ws_le32(p + AT_MAX_WAL_SENDERS),
		.max_prepared_xacts = (int32_t)ws_le32(p + AT_MAX_PREPARED_XACTS),
		.max_locks_per_xact = (int32_t)ws_le32(p + AT_MAX_LOCKS_PER_XACT),
		.wal_log_hints = p[AT_WAL_LOG_HINTS] != 0,
		.track_commit_timestamp = p[AT_TRACK_COMMIT_TS] != 0,
		.segsize = ws_le32(p + AT_SEGSIZE),
		.blcksz = ws_le32(p + AT_BLCKSZ),
		.wal_blcksz = ws_le32(p + AT_WAL_BLCKSZ),
		.data_checksum_version = ws_le32(p + AT_CHECKSUMS),
	};
	if (!ws_segsize_ok(c->segsize))
		return ws_err_op(err, "control_malformed", "pg_control: WAL segments of %u bytes",
						 c->segsize);
	return 0;
}

static int
read_once(const char *path, struct ws_pgcontrol *c, struct ws_err *err)
{
	uint8_t buf[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -2;
	ssize_t n = read(fd, buf, sizeof buf);

	close(fd);
	if (n < 0)
		return ws_err_sys(err, "%s: cannot read", path);
	return ws_pgcontrol_parse(buf, (size_t)n, c, err) == 0 ? 1 : ws_err_prefix(err, "%s", path);
}

int
ws_pgcontrol_read(const char *pgdata, struct ws_pgcontrol *c, struct ws_err *err)
{
	char *path = ws_asprintf("%s/global/pg_control", pgdata);
	int rc = -1;

	for (int i = 0; i < 10 && rc == -1; i++) {
		if (i)
			nanosleep(&(struct timespec){0, 10000000}, NULL);
		rc = read_once(path, c, err);
	}
	if (rc == -2)
		rc = access(path, F_OK) == 0 ? ws_err_sys(err, "%s: cannot open", path) : 0;
	free(path);
	return rc;
}
