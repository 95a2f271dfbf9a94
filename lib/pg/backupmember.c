/* Which members of a base backup a catalogs-only standby needs; see ws/basebackup.h. */
#include <stdlib.h>
#include <string.h>

#include "ws/basebackup.h"

/* True when path is dir or lies in it; *rest is what follows the slash ("" for dir itself). */
static bool
within(const char *path, const char *dir, const char **rest)
{
	size_t n = strlen(dir);

	if (strncmp(path, dir, n) != 0 || (path[n] && path[n] != '/'))
		return false;
	*rest = path[n] ? path + n + 1 : path + n;
	return true;
}

/* A decimal number that ends in stop; NULL when it is none. */
static const char *
number(const char *s, char stop, uint32_t *out)
{
	char *end;

	if (*s < '0' || *s > '9')
		return NULL;
	unsigned long v = strtoul(s, &end, 10);

	*out = (uint32_t)v;
	return *end == stop && v <= UINT32_MAX ? end : NULL;
}

/* NUMBER[_fork][.segment], in a database's directory. */
static bool
relation_file(const char *name, ws_oid db, const struct ws_filter *f)
{
	uint32_t rel;
	char *end;

	if (*name < '0' || *name > '9')
		return false;
	rel = (uint32_t)strtoul(name, &end, 10);
	return (!*end || *end == '_' || *end == '.') && ws_filter_keeps(f, db, rel);
}

/* What follows base/ or pg_tblspc/OID/VERSION/. */
static enum ws_backup_take
database_member(const char *rest, bool is_dir, const struct ws_filter *f)
{
	ws_oid db;
	const char *slash;

	if (is_dir)
		return !*rest || number(rest, 0, &db) ? WS_BACKUP_DIR : WS_BACKUP_SKIP;
	slash = number(rest, '/', &db);
	if (!slash || strchr(slash + 1, '/'))
		return WS_BACKUP_SKIP;
	if (!strcmp(slash + 1, "PG_VERSION") || !strcmp(slash + 1, "pg_filenode.map") ||
	    relation_file(slash + 1, db, f))
		return WS_BACKUP_FILE;
	return WS_BACKUP_SKIP;
}

static enum ws_backup_take
tablespace_member(const char *rest, bool is_dir, const struct ws_filter *f)
{
	uint32_t oid;
	const char *slash = strchr(rest, '/');

	if (!slash)
		return is_dir && (!*rest || number(rest, 0, &oid)) ? WS_BACKUP_DIR : WS_BACKUP_SKIP;
	if (!number(rest, '/', &oid) || strncmp(slash + 1, "PG_", 3) != 0)
		return WS_BACKUP_SKIP;
	slash = strchr(slash + 1, '/');
	if (!slash)
		return is_dir ? WS_BACKUP_DIR : WS_BACKUP_SKIP;
	return database_member(slash + 1, is_dir, f);
}

enum ws_backup_take
ws_backup_member(const char *path, bool is_dir, const struct ws_filter *f)
{
	static const char *const whole[] = {"pg_xact", "pg_multixact", "pg_commit_ts", "pg_twophase"};
	static const char *const dirs[] = {"pg_wal",    "pg_notify",   "pg_replslot", "pg_subtrans", "pg_serial",
	                                   "pg_dynshmem", "pg_snapshots", "pg_stat",   "pg_stat_tmp", "pg_logical"};
	enum ws_backup_take all = is_dir ? WS_BACKUP_DIR : WS_BACKUP_FILE;
	const char *rest;

	if (*path == '/' || strstr(path, "..") || !*path)
		return WS_BACKUP_SKIP;
	if (within(path, "base", &rest))
		return database_member(rest, is_dir, f);
	if (within(path, "pg_tblspc", &rest))
		return tablespace_member(rest, is_dir, f);
	if (within(path, "global", &rest))
		return strncmp(rest, "pg_internal.init", 16) ? all : WS_BACKUP_SKIP;
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
		if (within(path, whole[i], &rest))
			return all;
	if (!strcmp(path, "pg_logical/replorigin_checkpoint"))
		return WS_BACKUP_FILE;
	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
		if (is_dir && within(path, dirs[i], &rest) && (!*rest || i == 0 || i == 9))
			return WS_BACKUP_DIR;
	if (!is_dir && (!strcmp(path, "PG_VERSION") || !strcmp(path, "backup_label")))
		return WS_BACKUP_FILE;
	return WS_BACKUP_SKIP;
}
