/* Taking a member out; see ws/archive.h.  It is written beside its path and renamed when it has
 * been looked through. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "archive.h"
#include "ws/file.h"
#include "ws/mem.h"

struct getting {
	const struct member *m;
	const struct ws_arcget_opts *o;
	const char *tmp;
	int fd;
	struct verify v;
	char *what;
};

static int
get_begin(void *arg, struct ws_err *err)
{
	struct getting *g = arg;

	verify_fini(&g->v);
	verify_init(&g->v, &g->m->f, g->what, g->o->system_id, !g->o->no_records);
	if (ftruncate(g->fd, 0) != 0 || lseek(g->fd, 0, SEEK_SET) != 0)
		return ws_err_sys(err, "%s: cannot cut", g->tmp);
	return 0;
}

static int
get_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct getting *g = arg;

	if (verify_data(&g->v, p, n, err) != 0)
		return -1;
	return ws_write_all(g->fd, p, n, err, g->tmp);
}

static int
finish(const struct getting *g, const char *path, struct ws_err *err)
{
	char *dup;
	int rc;

	if (fsync(g->fd) != 0)
		return ws_err_sys(err, "%s: cannot fsync", g->tmp);
	if (rename(g->tmp, path) != 0)
		return ws_err_sys(err, "%s: cannot rename to %s", g->tmp, path);
	dup = ws_strdup(path);
	rc = ws_fsync_path(dirname(dup), err);
	free(dup);
	return rc;
}

/* A fixed name, so that what a crash leaves is used up by the next try; locked, so that two do not
 * write to it at once. */
static int
open_tmp(const char *tmp, struct ws_err *err)
{
	int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return ws_err_arg(err, "%s: cannot create", tmp);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		close(fd);
		return ws_err_temp(err, "%s: another process is writing it", tmp);
	}
	return fd;
}

int
ws_archive_get(struct ws_archive *a, const char *name, const char *path,
			   const struct ws_arcget_opts *o, struct ws_err *err)
{
	struct member m;
	int rc = arc_find(a, name, &m, err);

	if (rc != 1)
		return rc;
	char *tmp = ws_asprintf("%s.wstmp", path);
	struct getting g = {.m = &m, .o = o, .tmp = tmp};
	struct sink out = {get_begin, get_data, &g};

	g.what = ws_asprintf("%s/%s", a->store->url, m.key);
	g.fd = open_tmp(tmp, err);
	rc = g.fd < 0 ? -1 : arc_read(a, &m, &out, err);
	if (rc == 1 && (verify_end(&g.v, err) != 0 || finish(&g, path, err) != 0))
		rc = -1;
	if (g.fd >= 0) {
		if (rc != 1)
			unlink(tmp);
		close(g.fd);
	}
	verify_fini(&g.v);
	free(g.what);
	free(tmp);
	member_fini(&m);
	return rc;
}
