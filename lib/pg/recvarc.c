/* What the receiver asks the archive for, by the restore command: segments, which are looked through
 * before anything is done with them, and timeline histories; see receiver.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "receiver.h"
#include "restorecmd.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/histfetch.h"
#include "ws/lsn.h"
#include "ws/segcheck.h"
#include "ws/tool.h"

#define RESTORED_AS ".restored." /* and the process id: a command may outlive a receiver that was killed */

int
ws_receive_restore_command_check(const char *command, struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = restorecmd_expand(command, "f", "p", &b, err);

	ws_buf_free(&b);
	return rc;
}

/* ---- a file ---- */

void
receiver_archive_sweep(struct receiver *r)
{
	DIR *d = r->swept || !r->o->dir ? NULL : opendir(r->o->dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, RESTORED_AS, strlen(RESTORED_AS)))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	r->swept = true;
}

static void
idle(void *arg)
{
	receiver_metrics_update(arg);
}

/* 1 with the file at *path (malloc'd), to be removed; 0 the archive does not have it; -1. */
static int
ask(struct receiver *r, const char *name, char **path, struct ws_err *err)
{
	char as[sizeof RESTORED_AS + 20];
	struct stat st;

	snprintf(as, sizeof as, "%s%ld", RESTORED_AS, (long)getpid());
	*path = ws_asprintf("%s/%s", r->o->dir, as);
	unlink(*path);
	int rc = restorecmd_run(r->o->restore_command, r->o->dir, name, as, idle, r, err);

	if (rc == 1 && stat(*path, &st) != 0)
		rc = errno == ENOENT
				 ? ws_err_temp(err, "the restore command succeeded, asked for %s, and has written no file", name)
				 : ws_err_sys(err, "%s: cannot stat", *path);
	ws_debug("asked the archive: file=%s found=%d", name, rc);
	if (rc == 1)
		return 1;
	unlink(*path);
	free(*path);
	return rc;
}

/* Whole, and what it should be.  A short one may be on its way into the archive yet. */
static int
look_through(struct receiver *r, const struct ws_history *h, const char *name, ws_lsn seg, int fd,
			 struct ws_err *err)
{
	const struct ws_segcheck_opts o = {r->src.system_id, r->src.segsize, seg, h};
	struct ws_segcheck *c = ws_segcheck_new(&o);
	uint8_t *buf = ws_malloc(RESTORE_PIECE);
	uint64_t size = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = read(fd, buf, RESTORE_PIECE)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = ws_err_sys(err, "%s: cannot read what was restored", name);
		else
			rc = ws_segcheck_data(c, buf, (size_t)n, err);
		size += n > 0 ? (uint64_t)n : 0;
	}
	if (rc == 0 && size < r->src.segsize)
		rc = ws_err_temp(err, "the archive's %s has %llu bytes, a segment has %u: it may not be whole yet", name,
						 (unsigned long long)size, r->src.segsize);
	else if (rc == 0)
		rc = ws_segcheck_end(c, err);
	if (rc != 0 && err->status == WS_EOPERATOR && !err->sys) {
		ws_err_prefix(err, "the archive's %s", name);
		if (strcmp(err->reason, "system_id_changed"))
			strcpy(err->reason, "archive_corrupt");
	}
	free(buf);
	ws_segcheck_free(c);
	return rc;
}

int
receiver_archive_segment(struct receiver *r, const struct ws_history *h, ws_lsn seg, int *fd,
						 struct ws_err *err)
{
	char name[WS_WALNAME_MAX], *path;

	ws_histdir_name(h, seg, r->src.segsize, name);
	int rc = ask(r, name, &path, err);

	if (rc != 1)
		return rc;
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		rc = ws_err_sys(err, "%s: cannot open", path);
	unlink(path);
	free(path);
	if (*fd >= 0 && look_through(r, h, name, seg, *fd, err) != 0) {
		close(*fd);
		rc = -1;
	}
	return rc;
}

/* ---- histories ---- */

static void
keep(struct receiver *r, ws_tli tli, bool archive, const void *p, size_t n)
{
	size_t i = 0;

	while (i < r->nhist && r->hist[i].tli != tli)
		i++;
	if (i == r->nhist) {
		r->hist = ws_realloc(r->hist, (i + 1) * sizeof *r->hist);
		r->hist[r->nhist++] = (struct recv_history){.tli = tli};
	}
	r->hist[i].archive = archive;
	r->hist[i].bytes.len = 0;
	ws_buf_put(&r->hist[i].bytes, p, n);
}

void
receiver_archive_fini(struct receiver *r)
{
	for (size_t i = 0; i < r->nhist; i++)
		ws_buf_free(&r->hist[i].bytes);
	free(r->hist);
	r->hist = NULL;
	r->nhist = 0;
}

/* 1 and *h, the bytes appended; 0 the archive does not have it; -1. */
static int
from_archive(struct receiver *r, ws_tli tli, struct ws_history *h, struct ws_buf *bytes, struct ws_err *err)
{
	char name[WS_WALNAME_MAX], *path;
	size_t before = bytes->len;

	ws_history_name(name, tli);
	int rc = ask(r, name, &path, err);

	if (rc != 1)
		return rc;
	rc = ws_file_read(path, WS_HISTORY_MAX, bytes, err);
	unlink(path);
	if (rc == 0)
		rc = ws_err_temp(err, "%s: gone meanwhile", path);
	free(path);
	if (rc < 0)
		return -1;
	if (ws_history_parse(tli, (const char *)bytes->data + before, bytes->len - before, h, err) != 0)
		return ws_err_prefix(err, "the archive's history");
	return 1;
}

static int
from_server(struct receiver *r, ws_tli tli, struct ws_history *h, struct ws_buf *bytes, bool *archive,
			struct ws_err *err)
{
	*archive = false;
	if (r->c)
		return ws_histfetch_get(r->c, tli, h, bytes, err);
	for (size_t i = 0; i < r->nhist; i++)
		if (r->hist[i].tli == tli) {
			const struct ws_buf *b = &r->hist[i].bytes;

			*archive = r->hist[i].archive;
			ws_buf_put(bytes, b->data, b->len);
			return ws_history_parse(tli, (const char *)b->data, b->len, h, err);
		}
	return ws_err_op(err, "history_missing", "there is no history file of timeline %u", tli);
}

int
receiver_history(struct receiver *r, ws_tli tli, struct ws_history *h, struct ws_buf *bytes,
				 const char **source, struct ws_err *err)
{
	bool archive;
	struct ws_err why;

	*h = (struct ws_history){.tli = tli};
	*source = "server";
	if (tli == 1)
		return 0;
	int rc = from_server(r, tli, h, bytes, &archive, err);

	if (rc == 0)
		*source = archive ? "archive" : "server";
	if (rc == 0 || !r->o->restore_command || strcmp(err->reason, "history_missing"))
		return rc;
	why = *err;
	rc = from_archive(r, tli, h, bytes, err);
	*source = "archive";
	if (rc == 0)
		return ws_err_op(err, why.reason, "%s, neither has the archive", why.msg);
	return rc < 0 ? -1 : 0;
}

int
receiver_history_learn(struct receiver *r, const struct ws_history *h, ws_tli tli, struct ws_err *err)
{
	for (size_t i = 0; i <= h->n; i++) {
		ws_tli t = ws_history_range(h, i).tli;
		struct ws_buf b = {0};
		struct ws_history its = {0};
		int rc = 0;

		if (t <= tli)
			continue;
		if (ws_histfetch_get(r->c, t, &its, &b, err) == 0)
			keep(r, t, false, b.data, b.len);
		else if (strcmp(err->reason, "history_missing")) /* else the archive is asked, should it come to that */
			rc = -1;
		ws_history_fini(&its);
		ws_buf_free(&b);
		if (rc != 0)
			return -1;
	}
	return 0;
}

int
receiver_archive_newest(struct receiver *r, ws_tli *tli, struct ws_err *err)
{
	int rc;

	do {
		struct ws_buf b = {0};
		struct ws_history h = {0};

		rc = from_archive(r, *tli + 1, &h, &b, err);
		if (rc == 1)
			keep(r, ++*tli, true, b.data, b.len);
		ws_history_fini(&h);
		ws_buf_free(&b);
	} while (rc == 1);
	return rc;
}

/* 1 with the bytes, 0 it has none, -1. */
static int
bytes_from_server(struct receiver *r, ws_tli tli, struct ws_buf *bytes, struct ws_err *err)
{
	if (ws_pg_history(r->c, tli, bytes, err) == 0)
		return 1;
	return strcmp(err->reason, "history_missing") ? -1 : 0;
}

int
receiver_same_history(struct receiver *r, ws_tli tli, bool archive, struct ws_err *err)
{
	struct ws_buf ours = {0}, theirs = {0};
	struct ws_history h = {0};
	char name[WS_WALNAME_MAX];

	if (tli == 1 || !r->o->dir)
		return 0;
	ws_history_name(name, tli);
	char *path = ws_asprintf("%s/%s", r->o->dir, name);
	int rc = ws_file_read(path, WS_HISTORY_MAX, &ours, err);

	/* A directory or a server made by hand need not have it; then bytes alone tell. */
	if (rc == 1)
		rc = archive ? from_archive(r, tli, &h, &theirs, err) : bytes_from_server(r, tli, &theirs, err);
	if (rc == 1 && (ours.len != theirs.len || memcmp(ours.data, theirs.data, ours.len) != 0))
		rc = ws_err_op(err, "sibling_branch",
					   "%s: the %s's history of timeline %u is another: it was promoted elsewhere", path,
					   archive ? "archive" : "server", tli);
	free(path);
	ws_history_fini(&h);
	ws_buf_free(&ours);
	ws_buf_free(&theirs);
	return rc < 0 ? -1 : 0;
}
