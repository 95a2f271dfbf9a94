/* Timeline histories as files; see ws/histdir.h.  The checks are in histcheck.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "walsrcpriv.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/lsn.h"

static ws_tli
newest(const struct ws_walnames *l)
{
	ws_tli t = 0;

	for (size_t i = 0; i < l->nhist; i++)
		if (l->hist[i] > t)
			t = l->hist[i];
	for (size_t i = 0; i < l->n; i++)
		if (l->segs[i].tli > t)
			t = l->segs[i].tli;
	return t;
}

static int
load_dir(const char *dir, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	struct ws_walnames l;

	if (!tli) {
		if (ws_walnames_list(dir, WS_SEGSIZE_MIN, &l, err) != 0)
			return -1;
		tli = newest(&l);
		ws_walnames_fini(&l);
		if (!tli)
			return ws_err_op(err, "history_missing", "%s: no history file and no segment there", dir);
	}
	*h = (struct ws_history){.tli = tli};
	if (tli == 1)
		return 0;
	char *path = ws_walnames_history_path(dir, tli);
	int rc = ws_walnames_history_read(path, tli, h, err);

	if (rc == 0)
		ws_err_op(err, "history_missing", "%s: absent", path);
	free(path);
	return rc == 1 ? 0 : -1;
}

static int
load_file(const char *path, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	const char *slash = strrchr(path, '/');
	ws_tli named;

	if (ws_history_name_parse(slash ? slash + 1 : path, &named) == 0) {
		if (tli && tli != named)
			return ws_err_usage(err, "%s is not the history of timeline %u", path, tli);
		tli = named;
	}
	if (!tli)
		return ws_err_usage(err, "%s: not the name of a history file, and no timeline is given", path);
	int rc = ws_walnames_history_read(path, tli, h, err);

	if (rc == 0)
		ws_err_op(err, "history_missing", "%s: absent", path);
	return rc == 1 ? 0 : -1;
}

int
ws_histdir_load(const char *spec, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	struct stat st;

	*h = (struct ws_history){0};
	if (stat(spec, &st) != 0)
		return ws_err_arg(err, "%s: cannot open", spec);
	return S_ISDIR(st.st_mode) ? load_dir(spec, tli, h, err) : load_file(spec, tli, h, err);
}

int
ws_histdir_segsize(const char *dir, uint32_t *segsize, struct ws_err *err)
{
	struct ws_walsrc s = {.fd = -1};
	struct ws_walnames l;

	if (ws_walnames_list(dir, WS_SEGSIZE_MIN, &l, err) != 0)
		return -1;
	s.spec = ws_strdup(dir);
	int rc = ws_srcdir_identify(&s, &l, err);

	if (rc == 1)
		*segsize = s.segsize;
	free(s.spec);
	ws_walnames_fini(&l);
	return rc;
}

/* ---- the segment of a position ---- */

void
ws_histdir_name(const struct ws_history *h, ws_lsn lsn, uint32_t segsize, char *name)
{
	ws_seg_name(name, ws_history_name_of(h, lsn, segsize), lsn, segsize);
}

/* 1 the file has byte off, 0 not, -1.  A compressed one has all. */
static int
has_byte(const char *path, enum ws_seg_kind kind, uint64_t off, struct ws_err *err)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot stat", path);
	return S_ISREG(st.st_mode) && (kind > WS_SEG_PARTIAL || (uint64_t)st.st_size > off);
}

int
ws_histdir_segment(const char *dir, const struct ws_history *h, ws_lsn lsn, uint32_t segsize, char **path,
                   struct ws_err *err)
{
	ws_lsn seg = ws_seg_start(lsn, segsize);
	ws_tli owner = ws_history_tli_at(h, lsn);
	char name[WS_WALNAME_MAX];
	int rc = 0;

	/* Each timeline twice: .partial may be renamed in between. */
	for (size_t i = 2 * h->n + 2; i-- > 0;) {
		struct ws_history_range r = ws_history_range(h, i / 2);

		if (r.begin > seg + (segsize - 1) || r.begin >= r.end)
			continue;
		if (r.tli < owner)
			break;
		ws_seg_name(name, r.tli, lsn, segsize);
		for (int k = 0; k < WS_SEG_KINDS; k++) {
			*path = ws_asprintf("%s/%s%s", dir, name, ws_seg_suffix[k]);
			if ((rc = has_byte(*path, (enum ws_seg_kind)k, lsn - seg, err)) == 1)
				return 1;
			free(*path);
			if (rc < 0)
				return -1;
		}
	}
	*path = NULL;
	return 0;
}

/* ---- writing ---- */

/* 1 the same is there, 0 nothing is, -1. */
static int
is_there(const char *path, ws_tli tli, const void *p, size_t n, struct ws_err *err)
{
	struct ws_buf have = {0};
	int rc = ws_file_read(path, WS_HISTORY_MAX, &have, err);

	if (rc == 1 && (have.len != n || (n && memcmp(have.data, p, n) != 0)))
		rc = ws_err_op(err, "history_changed", "%s: not what the server gives for timeline %u", path, tli);
	ws_buf_free(&have);
	return rc;
}

/* Writes, syncs and closes fd. */
static int
fill(int fd, const char *path, const void *p, size_t n, bool sync, struct ws_err *err)
{
	int rc = ws_write_all(fd, p, n, err, path);

	if (rc == 0 && sync && fsync(fd) != 0)
		rc = ws_err_sys(err, "%s: cannot fsync", path);
	return rc;
}

/* A file without a name gets one: a kill before leaves nothing.  1 done, 0 where the file system cannot, or
 * (errno EEXIST) another one was first; -1. */
static int
put_nameless(const char *dir, const char *path, const void *p, size_t n, bool sync, struct ws_err *err)
{
	char self[40];
	int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return errno == ENOSPC || errno == EACCES ? ws_err_sys(err, "%s: cannot create", path) : 0;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	rc = fill(fd, path, p, n, sync, err);
	if (rc == 0)
		rc = linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
	int e = errno;

	close(fd);
	errno = e;
	return rc;
}

/* By way of a temporary name. */
static int
put_named(const char *path, const void *p, size_t n, bool sync, struct ws_err *err)
{
	char *tmp = ws_asprintf("%s.%ld.tmp", path, (long)getpid());
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 1;

	if (fd < 0) {
		rc = ws_err_missing(err, "%s: cannot create", tmp);
		free(tmp);
		return rc;
	}
	if (fill(fd, tmp, p, n, sync, err) != 0)
		rc = -1;
	close(fd);
	/* link(2) fails where another one was first; rename would take its place. */
	if (rc == 1 && link(tmp, path) != 0) {
		if (errno == EEXIST)
			rc = 0;
		else if ((errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) || rename(tmp, path) != 0)
			rc = ws_err_sys(err, "%s: cannot create", path);
	}
	unlink(tmp);
	free(tmp);
	return rc;
}

int
ws_histdir_store(const char *dir, ws_tli tli, const void *p, size_t n, bool sync, struct ws_err *err)
{
	char *path = ws_walnames_history_path(dir, tli);
	int rc = is_there(path, tli, p, n, err);

	if (rc == 0) {
		rc = put_nameless(dir, path, p, n, sync, err);
		if (rc == 0 && errno != EEXIST)
			rc = put_named(path, p, n, sync, err);
		if (rc == 0)
			rc = is_there(path, tli, p, n, err);
		if (rc >= 0 && sync)
			rc = ws_fsync_path(dir, err);
	}
	free(path);
	return rc < 0 ? -1 : 0;
}
