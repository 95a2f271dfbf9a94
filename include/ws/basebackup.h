/* BASE_BACKUP over a replication connection (protocol of PostgreSQL 15 and later), and a shadow's
 * data directory made of it. */
#ifndef WS_BASEBACKUP_H
#define WS_BASEBACKUP_H

#include "ws/filter.h"
#include "ws/pgcontrol.h"
#include "ws/pgconn.h"

struct ws_basebackup_opts {
	const char *label;
	bool fast;            /* CHECKPOINT 'fast', else 'spread' */
	unsigned max_rate_kb; /* 0: no limit */
	bool progress;        /* ask for sizes */
};

struct ws_basebackup_events {
	/* The backup has started at `start`; expected bytes, 0 when not asked for.  The server waits
	 * while this runs. */
	int (*started)(void *arg, struct ws_pos start, uint64_t expected, struct ws_err *err);
	/* An archive begins: "base.tar" with path "", or "OID.tar" with the tablespace's path. */
	int (*archive)(void *arg, const char *name, const char *path, struct ws_err *err);
	int (*bytes)(void *arg, const uint8_t *p, size_t n, struct ws_err *err);
	int (*archive_end)(void *arg, struct ws_err *err);
};

/* Runs one to its very end: what the server reports after the end position is an error, too. */
int ws_basebackup_run(struct ws_pg *c, const struct ws_basebackup_opts *o, const struct ws_basebackup_events *ev,
                      void *arg, struct ws_pos *end, struct ws_err *err);

/* ---- what of it a shadow needs ---- */

enum ws_backup_take { WS_BACKUP_SKIP, WS_BACKUP_DIR, WS_BACKUP_FILE };

/* Judges a member by its path in the data directory (a tablespace's members as
 * pg_tblspc/OID/...).  Pure. */
enum ws_backup_take ws_backup_member(const char *path, bool is_dir, const struct ws_filter *f);

/* ---- the shadow's data directory ---- */

struct ws_shadowdir;

/* Begins DIR.tmp (removing an older one). */
struct ws_shadowdir *ws_shadowdir_new(const char *dir, struct ws_err *err);
/* Removes DIR.tmp unless it was finished. */
void ws_shadowdir_free(struct ws_shadowdir *d);
/* The filter must live as long as archives come. */
void ws_shadowdir_filter(struct ws_shadowdir *d, const struct ws_filter *f);
int ws_shadowdir_archive(struct ws_shadowdir *d, const char *name, struct ws_err *err);
int ws_shadowdir_bytes(struct ws_shadowdir *d, const uint8_t *p, size_t n, struct ws_err *err);
int ws_shadowdir_archive_end(struct ws_shadowdir *d, struct ws_err *err);
uint64_t ws_shadowdir_kept(const struct ws_shadowdir *d); /* bytes written */

struct ws_shadowconf {
	const char *rundir; /* absolute: sockets of ws-walsend (port 5432) and of the shadow (5433) */
	int major;
	int origins; /* the source's max_replication_slots, or max_active_replication_origins */
};

/* Writes the recovery configuration, makes all durable, renames to DIR. */
int ws_shadowdir_finish(struct ws_shadowdir *d, const struct ws_shadowconf *conf, struct ws_pos end,
                        struct ws_err *err);
/* The end position of the backup that DIR was made of.  1, 0: no such directory (or empty),
 * -1: another thing is in the way (WS_EUSAGE). */
int ws_shadowdir_end(const char *dir, struct ws_pos *end, struct ws_err *err);

/* The server program in bindir (NULL: Debian's place) has the source's major and reads page images
 * compressed as the source does; d is the scratch directory for trying. */
int ws_backup_check_programs(const char *conninfo, const char *bindir, int major, const struct ws_shadowdir *d,
                             struct ws_err *err);

#endif
