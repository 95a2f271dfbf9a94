/* The shadow's data directory: members of a base backup unpacked beside its place, durable, then
 * renamed; see ws/basebackup.h.  Tablespaces are real directories in pg_tblspc ("in place"). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shadowdir.h"
#include "ws/file.h"
#include "ws/pos.h"
#include "ws/tar.h"

#define END_FILE "walshadow_backup_end"

struct ws_shadowdir {
	char *dir, *tmp;
	const struct ws_filter *filter;
	bool finished;
	uint64_t kept;
	struct ws_tar tar;
	char prefix[64]; /* "" or "pg_tblspc/OID/" */
	int fd;          /* of the file being written, -1: its data are skipped */
	char *path;
};

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int
remove_tree(const char *path, struct ws_err *err)
{
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0 && errno != ENOENT)
		return ws_err_sys(err, "%s: cannot remove", path);
	return 0;
}

struct ws_shadowdir *
ws_shadowdir_new(const char *dir, struct ws_err *err)
{
	/* initdb's directories; what is empty in a backup may be left out of it. */
	static const char *const dirs[] = {
	    "base", "global", "pg_wal", "pg_wal/archive_status", "pg_wal/summaries", "pg_notify", "pg_replslot",
	    "pg_tblspc", "pg_twophase", "pg_xact", "pg_multixact", "pg_multixact/members", "pg_multixact/offsets",
	    "pg_commit_ts", "pg_dynshmem", "pg_serial", "pg_snapshots", "pg_stat", "pg_stat_tmp", "pg_subtrans",
	    "pg_logical", "pg_logical/mappings", "pg_logical/snapshots"};
	struct ws_shadowdir *d = ws_calloc(1, sizeof *d);

	d->dir = ws_strdup(dir);
	d->tmp = ws_asprintf("%s.tmp", dir);
	d->fd = -1;
	if (remove_tree(d->tmp, err) != 0)
		goto fail;
	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
		char *path = ws_asprintf("%s/%s", d->tmp, dirs[i]);
		int rc = ws_mkdir_p(path, 0700, err);

		free(path);
		if (rc != 0)
			goto fail;
	}
	return d;
fail:
	ws_shadowdir_free(d);
	return NULL;
}

void
ws_shadowdir_free(struct ws_shadowdir *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	if (!d->finished)
		remove_tree(d->tmp, NULL);
	free(d->path);
	free(d->dir);
	free(d->tmp);
	free(d);
}

const char *
shadowdir_tmp(const struct ws_shadowdir *d)
{
	return d->tmp;
}

void
ws_shadowdir_filter(struct ws_shadowdir *d, const struct ws_filter *f)
{
	d->filter = f;
}

uint64_t
ws_shadowdir_kept(const struct ws_shadowdir *d)
{
	return d->kept;
}

int
ws_shadowdir_archive(struct ws_shadowdir *d, const char *name, struct ws_err *err)
{
	char *end;

	d->tar = (struct ws_tar){0};
	d->prefix[0] = 0;
	if (!strcmp(name, "base.tar"))
		return 0;
	unsigned long oid = strtoul(name, &end, 10);

	if (*name < '0' || *name > '9' || strcmp(end, ".tar"))
		return ws_err_temp(err, "base backup: unknown archive %.40s", name);
	snprintf(d->prefix, sizeof d->prefix, "pg_tblspc/%lu/", oid);
	char *path = ws_asprintf("%s/%s", d->tmp, d->prefix);
	int rc = ws_mkdir_p(path, 0700, err);

	free(path);
	return rc;
}

static int
on_member(void *arg, const struct ws_tar_member *m, struct ws_err *err)
{
	struct ws_shadowdir *d = arg;
	const char *name = !strncmp(m->name, "./", 2) ? m->name + 2 : m->name;
	char *path = ws_asprintf("%s%s", d->prefix, name);
	size_t n = strlen(path);
	int rc = 0;

	if (n && path[n - 1] == '/')
		path[n - 1] = 0;
	/* A symbolic link in pg_tblspc is a tablespace: a directory here. */
	enum ws_backup_take take = m->type == '0'                       ? ws_backup_member(path, false, d->filter)
	                           : m->type == '5' || m->type == '2' ? ws_backup_member(path, true, d->filter)
	                                                                : WS_BACKUP_SKIP;

	free(d->path);
	d->path = ws_asprintf("%s/%s", d->tmp, path);
	if (take == WS_BACKUP_DIR) {
		rc = ws_mkdir_p(d->path, 0700, err);
	} else if (take == WS_BACKUP_FILE) {
		d->fd = open(d->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (d->fd < 0)
			rc = ws_err_sys(err, "%s: cannot create", d->path);
	}
	free(path);
	return rc;
}

static int
on_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_shadowdir *d = arg;

	if (d->fd < 0)
		return 0;
	d->kept += n;
	return ws_write_all(d->fd, p, n, err, d->path);
}

static int
on_done(void *arg, struct ws_err *err)
{
	struct ws_shadowdir *d = arg;
	int fd = d->fd;

	d->fd = -1;
	return fd >= 0 && close(fd) != 0 ? ws_err_sys(err, "%s: cannot close", d->path) : 0;
}

int
ws_shadowdir_bytes(struct ws_shadowdir *d, const uint8_t *p, size_t n, struct ws_err *err)
{
	static const struct ws_tar_events ev = {on_member, on_data, on_done};

	return ws_tar_feed(&d->tar, p, n, &ev, d, err);
}

int
ws_shadowdir_archive_end(struct ws_shadowdir *d, struct ws_err *err)
{
	return ws_tar_complete(&d->tar) ? 0 : ws_err_temp(err, "base backup: archive cut short");
}

static int
write_text(const struct ws_shadowdir *d, const char *name, const char *text, struct ws_err *err)
{
	char *path = ws_asprintf("%s/%s", d->tmp, name);
	int rc = ws_file_replace(path, text, strlen(text), 0600, false, err);

	free(path);
	return rc;
}

static int
sync_all(const struct ws_shadowdir *d, struct ws_err *err)
{
	int fd = open(d->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0 || syncfs(fd) != 0)
		rc = ws_err_sys(err, "%s: cannot sync", d->tmp);
	if (fd >= 0)
		close(fd);
	return rc;
}

int
ws_shadowdir_finish(struct ws_shadowdir *d, const struct ws_shadowconf *conf, struct ws_pos end,
                    struct ws_err *err)
{
	struct ws_buf text = {0};
	struct ws_pgcontrol c;
	char *parent = NULL, pos[40];
	int rc = -1, got = ws_pgcontrol_read(d->tmp, &c, err);

	if (got == 0)
		ws_err_temp(err, "base backup: no pg_control in it");
	if (got <= 0)
		goto out;
	shadowconf_text(conf, &c, &text);
	ws_pos_format(pos, end);
	strcat(pos, "\n");
	if (write_text(d, "postgresql.conf", ws_buf_cstr(&text), err) != 0 ||
	    write_text(d, "pg_hba.conf", shadowconf_hba, err) != 0 ||
	    write_text(d, "pg_ident.conf", "", err) != 0 || write_text(d, "standby.signal", "", err) != 0 ||
	    write_text(d, END_FILE, pos, err) != 0 || sync_all(d, err) != 0)
		goto out;
	rmdir(d->dir); /* an empty one may be there */
	if (rename(d->tmp, d->dir) != 0) {
		ws_err_sys(err, "%s: cannot rename to %s", d->tmp, d->dir);
		goto out;
	}
	d->finished = true;
	parent = ws_strdup(d->dir);
	rc = ws_fsync_path(dirname(parent), err);
out:
	ws_buf_free(&text);
	free(parent);
	return rc;
}

int
ws_shadowdir_end(const char *dir, struct ws_pos *end, struct ws_err *err)
{
	DIR *h = opendir(dir);
	struct dirent *e;
	bool empty = true;

	if (!h)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", dir);
	while (empty && (e = readdir(h)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(h);
	if (empty)
		return 0;
	char *path = ws_asprintf("%s/" END_FILE, dir);
	int rc = ws_pos_read(path, end, err);

	free(path);
	return rc ? rc : ws_err_usage(err, "%s: not empty, and not made by this tool", dir);
}
