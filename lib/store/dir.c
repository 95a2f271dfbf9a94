/* A store in a directory; see store.h.  New objects are written into DIR/.tmp and renamed, so that
 * what has a name is whole and durable. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store.h"
#include "ws/file.h"
#include "ws/log.h"

#define READ_SIZE 262144u
/* What nobody has locked is left from a crash; this long in case locks do not work there. */
#define STALE_SECONDS 3600

struct dirstore {
	struct store s;
	char *path;
};

static char *
path_of(const struct store *s, const char *key)
{
	const struct dirstore *d = (const struct dirstore *)s;

	return *key ? ws_asprintf("%s/%s", d->path, key) : ws_strdup(d->path);
}

/* ENOENT of something inside: 0 when the store itself is there. */
static int
absent(const struct store *s, struct ws_err *err)
{
	const struct dirstore *d = (const struct dirstore *)s;
	struct stat st;

	if (stat(d->path, &st) != 0)
		return ws_err_missing(err, "%s: the archive is not there", d->path);
	return 0;
}

static int
read_out(int fd, const char *path, const struct sink *out, struct ws_err *err)
{
	uint8_t *buf = ws_malloc(READ_SIZE);
	int rc = 0;

	while (rc == 0) {
		ssize_t n = read(fd, buf, READ_SIZE);

		if (n == 0)
			break;
		if (store_interrupted(err))
			rc = -1;
		else if (n < 0 && errno != EINTR)
			rc = ws_err_sys(err, "%s: cannot read", path);
		else if (n > 0)
			rc = out->data(out->arg, buf, (size_t)n, err);
	}
	free(buf);
	return rc < 0 ? -1 : 1;
}

static int
dir_get(struct store *s, const char *key, const struct sink *out, struct ws_err *err)
{
	char *path = path_of(s, key);
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		rc = errno == ENOENT ? absent(s, err) : ws_err_sys(err, "%s: cannot open", path);
	else if (out->begin && out->begin(out->arg, err) != 0)
		rc = -1;
	else
		rc = read_out(fd, path, out, err);
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

static int
dir_stat(struct store *s, const char *key, uint64_t *size, struct ws_err *err)
{
	char *path = path_of(s, key);
	struct stat st;
	int rc = 1;

	if (stat(path, &st) != 0)
		rc = errno == ENOENT ? absent(s, err) : ws_err_sys(err, "%s: cannot stat", path);
	else
		*size = (uint64_t)st.st_size;
	free(path);
	return rc;
}

/* Removes what crashed writers left. */
static void
sweep(const char *tmpdir)
{
	DIR *d = opendir(tmpdir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(st.st_mode) || st.st_mtime > time(NULL) - STALE_SECONDS)
			continue;
		int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(dirfd(d), e->d_name, 0) == 0)
			ws_debug("%s/%s: removed, left by a crash", tmpdir, e->d_name);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

/* 1 renamed, 0 to exists, -1. */
static int
rename_new(const char *from, const char *to, struct ws_err *err)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 1;
	if (errno == EEXIST)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return ws_err_sys(err, "%s: cannot rename to %s", from, to);
	/* A file system that cannot rename without replacing: a second name does the same. */
	if (link(from, to) == 0) {
		unlink(from);
		return 1;
	}
	return errno == EEXIST ? 0 : ws_err_sys(err, "%s: cannot link to %s", from, to);
}

static int
write_tmp(int fd, const char *tmp, const void *p, size_t n, struct ws_err *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return ws_err_temp(err, "%s: locked by another process", tmp);
	if (ws_write_all(fd, p, n, err, tmp) != 0)
		return -1;
	if (fsync(fd) != 0)
		return ws_err_sys(err, "%s: cannot fsync", tmp);
	return store_interrupted(err) ? -1 : 0;
}

static int
dir_put(struct store *s, const char *key, const void *p, size_t n, struct ws_err *err)
{
	struct dirstore *d = (struct dirstore *)s;
	char *tmpdir = ws_asprintf("%s/.tmp", d->path), *path = path_of(s, key);
	char *tmp = ws_asprintf("%s/%s.%ld.%08x", tmpdir, key, (long)getpid(), (unsigned)clock());
	int rc = -1, fd = -1;

	if (mkdir(tmpdir, 0700) != 0 && errno != EEXIST) {
		ws_err_missing(err, "%s: cannot create directory", tmpdir);
		goto out;
	}
	sweep(tmpdir);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		ws_err_missing(err, "%s: cannot create", tmp);
		goto out;
	}
	if (write_tmp(fd, tmp, p, n, err) == 0)
		rc = rename_new(tmp, path, err);
	if (rc == 1 && ws_fsync_path(d->path, err) != 0)
		rc = -1;
	else if (rc != 1)
		unlink(tmp);
out:
	if (fd >= 0)
		close(fd);
	free(tmp);
	free(path);
	free(tmpdir);
	return rc;
}

static int
dir_sync(struct store *s, const char *key, struct ws_err *err)
{
	char *path = path_of(s, key);
	int rc = ws_fsync_path(path, err);

	if (rc == 0)
		rc = ws_fsync_path(dirname(path), err);
	free(path);
	return rc;
}

static int
dir_list(struct store *s, const char *folder, const char *prefix, store_each each, void *arg,
		 struct ws_err *err)
{
	char *path = path_of(s, folder);
	DIR *d = opendir(path);
	struct dirent *e;
	int rc = 0;

	if (!d)
		rc = errno == ENOENT ? absent(s, err) : ws_err_sys(err, "%s: cannot open", path);
	while (rc == 0 && d && (errno = 0, e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0)
			rc = each(arg, e->d_name, S_ISDIR(st.st_mode), (uint64_t)st.st_size, err);
		else if (errno != ENOENT) /* else removed just now */
			rc = ws_err_sys(err, "%s/%s: cannot stat", path, e->d_name);
		errno = 0;
	}
	if (rc == 0 && d && errno)
		rc = ws_err_sys(err, "%s: cannot read", path);
	if (d)
		closedir(d);
	free(path);
	return rc < 0 ? -1 : 0;
}

static void
dir_close(struct store *s)
{
	struct dirstore *d = (struct dirstore *)s;

	free(d->path);
	free(s->url);
	free(d);
}

struct store *
dir_open(const char *path, struct ws_err *err)
{
	static const struct store_ops ops = {dir_get, dir_stat, dir_put, dir_sync, dir_list, dir_close};
	size_t n = strlen(path);

	if (n == 0) {
		ws_err_usage(err, "--store: an empty path");
		return NULL;
	}
	struct dirstore *d = ws_calloc(1, sizeof *d);

	while (n > 1 && path[n - 1] == '/')
		n--;
	d->path = ws_strndup(path, n);
	d->s = (struct store){&ops, ws_strdup(d->path), false};
	return &d->s;
}
