/* Files; see ws/file.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ws/file.h"

int
ws_file_read(const char *path, size_t max, struct ws_buf *out, struct ws_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t start = out->len;

	if (fd < 0)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", path);
	for (;;) {
		ws_buf_reserve(out, 4096);
		ssize_t n = read(fd, out->data + out->len, out->cap - out->len - 1);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			ws_err_sys(err, "%s: cannot read", path);
			close(fd);
			return -1;
		}
		if (n == 0)
			break;
		out->len += (size_t)n;
		if (out->len - start > max) {
			close(fd);
			return ws_err_temp(err, "%s: file is longer than %zu bytes", path, max);
		}
	}
	close(fd);
	ws_buf_cstr(out);
	return 1;
}

int
ws_fsync_path(const char *path, struct ws_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return ws_err_sys(err, "%s: cannot open", path);
	if (fsync(fd) != 0) {
		ws_err_sys(err, "%s: cannot fsync", path);
		close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

int
ws_write_all(int fd, const void *p, size_t n, struct ws_err *err, const char *what)
{
	const uint8_t *b = p;

	while (n) {
		ssize_t w = write(fd, b, n);

		if (w < 0) {
			if (errno == EINTR)
				continue;
			return ws_err_sys(err, "%s: cannot write", what);
		}
		b += w;
		n -= (size_t)w;
	}
	return 0;
}

int
ws_file_replace(const char *path, const void *p, size_t n, int mode, bool sync, struct ws_err *err)
{
	char *tmp = ws_asprintf("%s.tmp", path), *dup = ws_strdup(path);
	int rc = -1;
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0) {
		ws_err_missing(err, "%s: cannot create", tmp);
		goto out;
	}
	if (ws_write_all(fd, p, n, err, tmp) != 0)
		goto out;
	if (sync && fsync(fd) != 0) {
		ws_err_sys(err, "%s: cannot fsync", tmp);
		goto out;
	}
	if (rename(tmp, path) != 0) {
		ws_err_sys(err, "%s: cannot rename to %s", tmp, path);
		goto out;
	}
	rc = sync ? ws_fsync_path(dirname(dup), err) : 0;
out:
	if (fd >= 0)
		close(fd);
	free(tmp);
	free(dup);
	return rc;
}

int
ws_mkdir_p(const char *path, int mode, struct ws_err *err)
{
	char *s = ws_strdup(path);
	int rc = 0;

	for (char *p = s + (*s == '/'); rc == 0; p++) {
		if (*p != '/' && *p)
			continue;
		char c = *p;

		*p = 0;
		if (mkdir(s, (mode_t)mode) != 0 && errno != EEXIST)
			rc = ws_err_missing(err, "%s: cannot create directory", s);
		*p = c;
		if (!c)
			break;
	}
	free(s);
	return rc;
}

int
ws_lock_file(const char *path, struct ws_err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char pid[24] = "";

	if (fd < 0)
		return ws_err_missing(err, "%s: cannot open", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno == EWOULDBLOCK) {
			ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

			pid[n > 0 ? n : 0] = 0;
			pid[strcspn(pid, "\n")] = 0;
			ws_err_temp(err, "%s: locked by another process%s%s", path, *pid ? " pid=" : "", pid);
		} else {
			ws_err_sys(err, "%s: cannot lock", path);
		}
		close(fd);
		return -1;
	}
	int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n) {
		ws_err_sys(err, "%s: cannot write", path);
		close(fd);
		return -1;
	}
	return fd;
}
