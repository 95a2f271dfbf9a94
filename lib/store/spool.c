/* Segments that were fetched ahead; see ws/archive.h.
 *
 * After a segment has been handed out a process of its own fetches those that follow, each by a
 * process too, into the spool, where they get their name when they are complete, looked through and
 * durable. Whatever is killed when: what has a name is whole, what has none is fetched again.  The
 * spool never holds more than the next segments; everything else in it is removed at the next get.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive.h"
#include "ws/file.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define TMP       ".wstmp" /* of ws_archive_get */
#define OWNER     "store"  /* whose segments these are */
#define OWNER_MAX 4096u

struct spool {
	const struct ws_arcspool *o;
	const struct ws_archive_opts *archive;
	const struct ws_arcget_opts *get;
	/* the segments to have: first behind the one that was asked for */
	ws_tli tli;
	ws_lsn first;
	uint32_t segsize;
};

static char *
path_of(const struct spool *s, const char *name, const char *suffix)
{
	return ws_asprintf("%s/%s%s", s->o->dir, name, suffix);
}

/* The spool is made, and belongs to one archive. */
static int
claim(const struct spool *s, const char *url, struct ws_err *err)
{
	char *path = path_of(s, OWNER, "");
	struct ws_buf b = {0};
	int rc = ws_mkdir_p(s->o->dir, 0700, err);

	if (rc == 0)
		rc = ws_file_read(path, OWNER_MAX, &b, err);
	if (rc == 1 && strcmp(ws_buf_cstr(&b), url))
		rc = ws_err_usage(err, "--spool: %s is in use for %.300s", s->o->dir, ws_buf_cstr(&b));
	else if (rc == 0)
		rc = ws_file_replace(path, url, strlen(url), 0600, true, err);
	ws_buf_free(&b);
	free(path);
	return rc < 0 ? -1 : 0;
}

/* ---- serving ---- */

/* Waits until nobody writes it any more. */
static int
wait_for_writer(const char *tmp, struct ws_err *err)
{
	int fd = open(tmp, O_RDONLY | O_CLOEXEC), rc = 0;

	while (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		struct pollfd p = {ws_tool_signal_fd(), POLLIN, 0};

		poll(&p, 1, 10);
		if (store_interrupted(err)) {
			rc = -1;
			break;
		}
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

static int
copy(const char *from, const char *to, struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = ws_file_read(from, WS_SEGSIZE_MAX, &b, err);

	if (rc == 1 && (rc = ws_file_replace(to, b.data, b.len, 0600, true, err)) == 0) {
		unlink(from);
		rc = 1;
	}
	ws_buf_free(&b);
	return rc;
}

/* 1 served, 0 it is not there, -1. */
static int
serve(const struct spool *s, const char *name, const char *path, struct ws_err *err)
{
	char *from = path_of(s, name, ""), *tmp = path_of(s, name, TMP), *dup = ws_strdup(path);
	int rc = wait_for_writer(tmp, err);

	if (rc != 0)
		;
	else if (rename(from, path) == 0)
		rc = ws_fsync_path(dirname(dup), err) == 0 ? 1 : -1;
	else if (errno == EXDEV)
		rc = copy(from, path, err);
	else if (errno != ENOENT || access(from, F_OK) == 0)
		rc = ws_err_arg(err, "%s: cannot rename to %s", from, path);
	free(from);
	free(tmp);
	free(dup);
	return rc;
}

/* ---- the next segments ---- */

/* What follows name, whose content is at path. */
static int
look_ahead(struct spool *s, const char *name, const char *path)
{
	uint8_t head[WS_PAGE_HDR_LONG];
	struct ws_page_header h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? pread(fd, head, sizeof head, 0) : -1;

	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)sizeof head || ws_page_header_parse(head, sizeof head, &h) != 0 ||
		!(h.info & WS_PAGE_LONG_HEADER) || !ws_segsize_ok(h.segsize) ||
		ws_seg_parse(name, h.segsize, &s->tli, &s->first) != 0)
		return -1;
	s->segsize = h.segsize;
	s->first += h.segsize;
	return 0;
}

static bool
is_ahead(const struct spool *s, const char *name)
{
	char seg[WS_SEGNAME_LEN + 1] = "";
	ws_tli tli;
	ws_lsn start;

	memcpy(seg, name, strnlen(name, WS_SEGNAME_LEN));
	return ws_seg_parse(seg, s->segsize, &tli, &start) == 0 && tli == s->tli && start >= s->first &&
		   start - s->first < (uint64_t)s->o->ahead * s->segsize;
}

/* Removes what will not be asked for next; how many complete ones are left. */
static int
clean(const struct spool *s)
{
	DIR *d = opendir(s->o->dir);
	struct dirent *e;
	int left = 0;

	while (d && (e = readdir(d))) {
		struct ws_arcname n;
		bool whole = ws_arcname_parse(e->d_name, &n) == 0;
		const char *dot = strchr(e->d_name, '.');

		if (!whole && !(dot == e->d_name + WS_SEGNAME_LEN && !strcmp(dot, TMP)))
			continue;
		if (is_ahead(s, e->d_name)) {
			left += whole;
			continue;
		}
		int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);

		/* Not while it is written. */
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(d), e->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	return left;
}

static void
fetch_one(const struct spool *s, const char *name)
{
	struct ws_archive_opts o = *s->archive;
	char *path = path_of(s, name, "");
	struct ws_err err = {0};

	/* Whoever needs it will say what is wrong, and wait. */
	o.retry = 0;
	struct ws_archive *a = ws_archive_open(&o, &err);

	if (a)
		ws_archive_get(a, name, path, s->get, &err);
	ws_archive_close(a);
	free(path);
}

static void
fetch_all(const struct spool *s)
{
	for (int i = 0; i < s->o->ahead; i++) {
		char name[WS_WALNAME_MAX];

		ws_seg_name(name, s->tli, s->first + (uint64_t)i * s->segsize, s->segsize);
		char *path = path_of(s, name, "");
		bool there = access(path, F_OK) == 0;

		free(path);
		if (!there && fork() == 0) {
			fetch_one(s, name);
			_exit(0);
		}
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

/* Leaves the caller's session, files and connections, so that nobody waits for it. */
static void
detach(void)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0u, 0);
}

/* In the background, one for a spool. */
static void
prefetch(const struct spool *s)
{
	pid_t pid = fork();

	if (pid != 0) {
		if (pid > 0)
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				;
		return;
	}
	detach();
	if (fork() != 0)
		_exit(0);
	char *path = path_of(s, ".lock", "");
	struct ws_err err;

	if (ws_lock_file(path, &err) >= 0)
		fetch_all(s);
	_exit(0);
}

int
ws_archive_get_ahead(struct ws_archive *a, const struct ws_archive_opts *archive, const char *name,
					 const char *path, const struct ws_arcget_opts *o,
					 const struct ws_arcspool *spool, struct ws_err *err)
{
	struct spool s = {.o = spool, .archive = archive, .get = o};
	struct ws_arcname n;
	int rc;

	if (ws_arcname_parse(name, &n) != 0 || n.kind != WS_ARC_SEGMENT)
		return ws_archive_get(a, name, path, o, err);
	if (claim(&s, a->store->url, err) != 0)
		return -1;
	rc = serve(&s, name, path, err);
	ws_debug("%s: %s", name, rc == 1 ? "was fetched ahead" : "is fetched now");
	if (rc == 0)
		rc = ws_archive_get(a, name, path, o, err);
	/* Not for each: several at once are what it is for. */
	if (rc == 1 && look_ahead(&s, name, path) == 0 && clean(&s) <= spool->ahead / 2)
		prefetch(&s);
	return rc;
}
