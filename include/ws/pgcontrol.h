/* global/pg_control (catalog/pg_control.h), for the majors that are supported.  Pure parsing and a
 * reader of the file. */
#ifndef WS_PGCONTROL_H
#define WS_PGCONTROL_H

#include "ws/err.h"

struct ws_pgcontrol {
	int major;
	uint64_t system_id;
	uint32_t version;         /* pg_control_version */
	uint32_t catalog_version;
	uint32_t state;           /* DBState: 1 shut down, 2 shut down in recovery, 5 archive recovery, 6 in production, ... */
	ws_lsn checkpoint;        /* the last checkpoint (on a standby: restartpoint) record */
	struct ws_pos redo;       /* its REDO: where recovery starts */
	ws_xid oldest_active_xid;
	struct ws_pos min_recovery; /* minRecoveryPoint; lsn 0: none */
	ws_lsn backup_start, backup_end;
	bool backup_end_required;
	/* floors of a standby's settings */
	int32_t wal_level, max_connections, max_worker_processes, max_wal_senders, max_prepared_xacts,
	    max_locks_per_xact;
	bool wal_log_hints, track_commit_timestamp;
	uint32_t segsize, blcksz, wal_blcksz, data_checksum_version;
};

/* p: the file's first bytes (at least 512 where it has them).  -1: of no major that is known, or
 * a wrong CRC: WS_EOPERATOR reason=control_malformed. */
int ws_pgcontrol_parse(const uint8_t *p, size_t n, struct ws_pgcontrol *c, struct ws_err *err);
/* PGDATA/global/pg_control.  A file that is read while the server writes it can have a wrong CRC:
 * tried again some times.  1: read, 0: no such file, -1. */
int ws_pgcontrol_read(const char *pgdata, struct ws_pgcontrol *c, struct ws_err *err);

#endif
