/* A WAL directory's end and the comparison with kept bytes; see recvdir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recvdir.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/mem.h"

/* A segment's name, complete or partial. */
static bool
parse_name(const char *name, uint32_t segsize, ws_tli *tli, ws_lsn *start, bool *partial)
{
	char base[WS_SEGNAME_LEN + 1];
	size_t len = strlen(name);

	*partial = len == WS_SEGNAME_LEN + 8 && !strcmp(name + WS_SEGNAME_LEN, ".partial");
	if (len != WS_SEGNAME_LEN && !*partial)
		return false;
	memcpy(base, name, WS_SEGNAME_LEN);
	base[WS_SEGNAME_LEN] = 0;
	return ws_seg_parse(base, segsize, tli, start) == 0;
}

int
recvdir_end(const char *dir, uint32_t segsize, ws_tli tli, struct ws_pos *end, struct ws_err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	*end = (struct ws_pos){0, 0};
	if (!d)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", dir);
	while (rc == 0 && (e = readdir(d))) {
		bool partial;
		ws_tli t;
		ws_lsn start;
		struct stat st;

		if (!parse_name(e->d_name, segsize, &t, &start, &partial) || (tli && t != tli))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, 0) != 0) {
			if (errno != ENOENT) /* else completed and renamed, or pruned, just now */
				rc = ws_err_sys(err, "%s/%s: cannot stat", dir, e->d_name);
			continue;
		}
		if (!partial && (uint64_t)st.st_size != segsize)
			rc = ws_err_op(err, "wal_mismatch", "%s/%s: %lld bytes, segments have %u", dir,
						   e->d_name, (long long)st.st_size, segsize);
		else if ((uint64_t)st.st_size > segsize)
			rc = ws_err_op(err, "wal_mismatch", "%s/%s: longer than a segment", dir, e->d_name);
		else if (start + (uint64_t)st.st_size > end->lsn ||
				 (start + (uint64_t)st.st_size == end->lsn && t > end->tli))
			*end = (struct ws_pos){t, start + (uint64_t)st.st_size};
	}
	closedir(d);
	return rc;
}

int
recvdir_open(const char *dir, uint32_t segsize, ws_tli tli, ws_lsn lsn, int flags, bool *partial)
{
	char name[WS_WALNAME_MAX];
	int fd = -1;

	ws_seg_name(name, tli, lsn, segsize);
	for (int i = 0; i < 2 && fd < 0; i++) {
		char *path = ws_asprintf("%s/%s%s", dir, name, i ? ".partial" : "");

		*partial = i == 1;
		fd = open(path, flags | O_CLOEXEC);
		free(path);
	}
	return fd;
}

static int
compare_fd(int fd, off_t off, const uint8_t *p, size_t n, size_t *same)
{
	uint8_t buf[65536];

	*same = 0;
	while (*same < n) {
		size_t want = n - *same < sizeof buf ? n - *same : sizeof buf;
		ssize_t got = pread(fd, buf, want, off + (off_t)*same);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			return 0;
		if (memcmp(buf, p + *same, (size_t)got) != 0) {
			for (size_t i = 0; buf[i] == p[*same]; i++)
				(*same)++;
			return 0;
		}
		*same += (size_t)got;
	}
	return 1;
}

int
recvdir_compare(const char *dir, uint32_t segsize, ws_tli tli, ws_lsn lsn, const uint8_t *p,
				size_t n, ws_lsn *diff, struct ws_err *err)
{
	bool partial;
	size_t same;
	int fd = recvdir_open(dir, segsize, tli, lsn, O_RDONLY, &partial);

	if (fd < 0) {
		char name[WS_WALNAME_MAX];

		ws_seg_name(name, tli, lsn, segsize);
		return ws_err_sys(err, "%s/%s: cannot open", dir, name);
	}
	int rc = compare_fd(fd, (off_t)(lsn & (segsize - 1)), p, n, &same);

	if (rc < 0)
		ws_err_sys(err, "%s: cannot read the segment of " WS_LSN_FMT, dir, WS_LSN_ARG(lsn));
	close(fd);
	*diff = lsn + same;
	return rc;
}

int
recvdir_finish(const char *dir, uint32_t segsize, struct ws_pos end, bool sync, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];
	bool partial;
	int rc = 0, fd = recvdir_open(dir, segsize, end.tli, end.lsn - 1, O_RDONLY, &partial);

	ws_seg_name(name, end.tli, end.lsn - 1, segsize);
	if (fd < 0)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s/%s: cannot open", dir, name);
	if (sync && fsync(fd) != 0)
		rc = ws_err_sys(err, "%s/%s: cannot fsync", dir, name);
	close(fd);
	if (rc != 0 || !partial || (end.lsn & (segsize - 1)))
		return rc;
	char *final = ws_asprintf("%s/%s", dir, name), *path = ws_asprintf("%s.partial", final);

	if (rename(path, final) != 0)
		rc = ws_err_sys(err, "%s: cannot rename to %s", path, final);
	else if (sync)
		rc = ws_fsync_path(dir, err);
	free(final);
	free(path);
	return rc;
}

int
recvdir_cut(const char *dir, uint32_t segsize, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	bool partial;
	int fd = recvdir_open(dir, segsize, tli, lsn, O_WRONLY, &partial);
	int rc = 0;

	if (fd < 0 || !partial || ftruncate(fd, (off_t)(lsn & (segsize - 1))) != 0 || fsync(fd) != 0)
		rc = ws_err_sys(err, "%s: cannot cut the partial segment at " WS_LSN_FMT, dir,
						WS_LSN_ARG(lsn));
	if (fd >= 0)
		close(fd);
	return rc;
}
