/* The writer of a WAL directory; see ws/waldir.h and ws-wal(5).
 *
 * One segment is open at a time, in one of two ways: `check` while the bytes that come are already
 * there (they are compared), then `grow`.  A whole segment is never written to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "walnames.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/lsn.h"
#include "ws/waldir.h"

#define COMPARE_PIECE 65536u

struct ws_walwriter {
	char *dir;
	int lock;
	struct ws_walwriter_opts o;
	bool positioned;
	bool broken; /* an fsync failed: nothing more is believed until the next open */
	struct ws_pos end, synced;
	/* the open segment */
	int fd;
	ws_lsn start;
	bool whole;    /* has its final name: only compared */
	uint64_t size; /* bytes in it */
	char *path;    /* as it is named now */
	/* the ancestor's file for this segment, below the switch */
	int parent;
	ws_lsn parent_end;
	char *parent_path;
};

static char *
seg_path(const struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, const char *suffix)
{
	char name[WS_WALNAME_MAX];

	ws_seg_name(name, tli, lsn, w->o.segsize);
	return ws_asprintf("%s/%s%s", w->dir, name, suffix);
}

static void
close_parent(struct ws_walwriter *w)
{
	if (w->parent >= 0)
		close(w->parent);
	w->parent = -1;
	free(w->parent_path);
	w->parent_path = NULL;
}

static void
close_segment(struct ws_walwriter *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	free(w->path);
	w->path = NULL;
	close_parent(w);
}

/* The end of the newest segment in the directory: highest timeline first. */
static int
find_end(struct ws_walwriter *w, struct ws_err *err)
{
	struct ws_walnames l;

	if (ws_walnames_list(w->dir, w->o.segsize, &l, err) < 0)
		return -1;
	const struct ws_walname *last = NULL;

	for (size_t i = 0; i < l.n; i++) {
		const struct ws_walname *s = &l.segs[i];

		if (!last || s->tli > last->tli || (s->tli == last->tli && s->start > last->start) ||
		    (s->tli == last->tli && s->start == last->start && s->kind == WS_SEG_WHOLE))
			last = s;
	}
	int rc = 0;

	if (last) {
		uint64_t size = w->o.segsize;

		if (last->kind == WS_SEG_PARTIAL) {
			char *path = seg_path(w, last->tli, last->start, ".partial");
			struct stat st;

			if (stat(path, &st) != 0)
				rc = ws_err_sys(err, "%s", path);
			else
				size = (uint64_t)st.st_size;
			free(path);
		}
		w->end = (struct ws_pos){last->tli, last->start + size};
		w->synced = w->end;
		if (w->synced.lsn > w->o.durable && last->kind == WS_SEG_PARTIAL)
			w->synced.lsn = w->o.durable > last->start ? w->o.durable : last->start;
	}
	ws_walnames_fini(&l);
	return rc;
}

static int
sync_dir(struct ws_walwriter *w, struct ws_err *err)
{
	if (w->o.no_sync || ws_fsync_path(w->dir, err) == 0)
		return 0;
	w->broken = true;
	return -1;
}

struct ws_walwriter *
ws_walwriter_open(const char *dir, const struct ws_walwriter_opts *o, struct ws_err *err)
{
	if (!ws_segsize_ok(o->segsize)) {
		ws_err_usage(err, "%s: impossible WAL segment size %u", dir, o->segsize);
		return NULL;
	}
	if (ws_mkdir_p(dir, 0700, err) != 0)
		return NULL;
	struct ws_walwriter *w = ws_calloc(1, sizeof *w);
	char *lock = ws_asprintf("%s/.lock", dir);

	w->dir = ws_strdup(dir);
	w->o = *o;
	w->fd = w->parent = -1;
	w->lock = ws_lock_file(lock, err);
	free(lock);
	/* Names that a killed writer made or changed may not be on disk yet. */
	if (w->lock < 0 || find_end(w, err) != 0 || sync_dir(w, err) != 0) {
		ws_walwriter_close(w);
		return NULL;
	}
	return w;
}

void
ws_walwriter_close(struct ws_walwriter *w)
{
	if (!w)
		return;
	close_segment(w);
	if (w->lock >= 0)
		close(w->lock);
	free(w->dir);
	free(w);
}

/* Syncs the growing segment.  After a failure the kernel may call the pages clean that it has not
 * written: cut them off, so that they are written again. */
static int
sync_segment(struct ws_walwriter *w, struct ws_err *err)
{
	if (w->o.no_sync || w->fd < 0 || w->whole)
		return 0;
	if (fdatasync(w->fd) == 0)
		return 0;
	ws_err_sys(err, "%s: cannot fsync", w->path);
	w->broken = true;
	off_t keep = w->synced.lsn > w->start && w->synced.tli == w->end.tli ? (off_t)(w->synced.lsn - w->start)
	                                                                     : 0;

	if (ftruncate(w->fd, keep) != 0)
		ws_err_prefix(err, "(and its unsynced end could not be cut off)");
	return -1;
}

/* 1 opened, 0 absent, -1.  On 1 w->fd, path, size are set. */
static int
open_existing(struct ws_walwriter *w, ws_tli tli, ws_lsn start, bool whole, struct ws_err *err)
{
	struct stat st;
	char *path = seg_path(w, tli, start, whole ? "" : ".partial");
	int fd = open(path, (whole ? O_RDONLY : O_RDWR) | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		free(path);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) != 0) {
		ws_err_sys(err, "%s: cannot open", path);
	} else if (st.st_size > (off_t)w->o.segsize || (whole && st.st_size != (off_t)w->o.segsize)) {
		ws_err_op(err, "wal_truncated", "%s: %lld bytes long, a segment has %u", path,
		          (long long)st.st_size, w->o.segsize);
	} else {
		w->fd = fd;
		w->path = path;
		w->start = start;
		w->whole = whole;
		w->size = (uint64_t)st.st_size;
		return 1;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return -1;
}

static int
create_partial(struct ws_walwriter *w, ws_tli tli, ws_lsn start, struct ws_err *err)
{
	char *path = seg_path(w, tli, start, ".partial");
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0) {
		ws_err_sys(err, "%s: cannot create", path);
		free(path);
		return -1;
	}
	w->fd = fd;
	w->path = path;
	w->start = start;
	w->whole = false;
	w->size = 0;
	/* The size stays the end.  Where it cannot be done, write(2) says what matters. */
	if (w->o.preallocate)
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)w->o.segsize);
	return sync_dir(w, err);
}

/* Opens the segment that holds byte lsn, which is where writing goes on. */
static int
open_segment(struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	ws_lsn start = ws_seg_start(lsn, w->o.segsize);
	int rc = open_existing(w, tli, start, true, err);

	if (rc == 0)
		rc = open_existing(w, tli, start, false, err);
	if (rc == 0 && lsn == start)
		return create_partial(w, tli, start, err);
	if (rc < 0)
		return -1;
	if (rc == 0 || lsn - start > w->size) {
		uint64_t have = rc ? w->size : 0;

		close_segment(w);
		return ws_err_op(err, "wal_gap",
		                 "%s: WAL at " WS_LSN_FMT " does not follow what is there, which ends at " WS_LSN_FMT,
		                 w->dir, WS_LSN_ARG(lsn), WS_LSN_ARG(start + have));
	}
	return 0;
}

/* Compares n bytes with those at off of fd.  1 equal, 0 with *same bytes equal, -1. */
static int
compare(int fd, const char *path, uint64_t off, const uint8_t *p, size_t n, size_t *same, struct ws_err *err)
{
	uint8_t buf[COMPARE_PIECE];

	for (*same = 0; *same < n;) {
		size_t want = n - *same < sizeof buf ? n - *same : sizeof buf;
		ssize_t got = pread(fd, buf, want, (off_t)(off + *same));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? ws_err_sys(err, "%s: cannot read", path)
			               : ws_err_temp(err, "%s: became shorter while it was read", path);
		if (memcmp(buf, p + *same, (size_t)got) != 0) {
			size_t i = 0;

			while (buf[i] == p[*same + i])
				i++;
			*same += i;
			return 0;
		}
		*same += (size_t)got;
	}
	return 1;
}

static int
mismatch(const char *path, ws_lsn at, struct ws_err *err)
{
	return ws_err_op(err, "wal_mismatch", "%s: other WAL than what comes now, from " WS_LSN_FMT " on", path,
	                 WS_LSN_ARG(at));
}

/* The bytes at w->end that are already in the file.  *n becomes how many were there and equal. */
static int
skip_existing(struct ws_walwriter *w, const uint8_t *p, size_t *n, struct ws_err *err)
{
	uint64_t off = w->end.lsn & (w->o.segsize - 1);
	size_t same;

	if (*n > w->size - off)
		*n = (size_t)(w->size - off);
	int rc = compare(w->fd, w->path, off, p, *n, &same, err);

	if (rc < 0)
		return -1;
	if (rc == 1)
		return 0;
	ws_lsn at = w->end.lsn + same;

	/* Below the switch of a growing descendant what comes was compared with the ancestor's bytes. */
	if (w->whole || (!(w->parent >= 0 && at < w->parent_end) && (!w->o.durable || at < w->o.durable)))
		return mismatch(w->path, at, err);
	if (ftruncate(w->fd, (off_t)(off + same)) != 0)
		return ws_err_sys(err, "%s: cannot cut off what is not durable", w->path);
	w->size = off + same;
	*n = same;
	return 0;
}

/* On a new timeline: what the ancestor's file has below the switch must be the same. */
static int
check_parent(struct ws_walwriter *w, const uint8_t *p, size_t n, struct ws_err *err)
{
	size_t same;

	if (w->parent < 0)
		return 0;
	if (w->end.lsn >= w->parent_end) {
		close_parent(w);
		return 0;
	}
	if (n > w->parent_end - w->end.lsn)
		n = (size_t)(w->parent_end - w->end.lsn);
	int rc = compare(w->parent, w->parent_path, w->end.lsn & (w->o.segsize - 1), p, n, &same, err);

	if (rc == 0)
		ws_err_op(err, "fork_prefix_mismatch",
		          "%s: timeline %u has other WAL than this ancestor below its switch, from " WS_LSN_FMT " on",
		          w->parent_path, w->end.tli, WS_LSN_ARG(w->end.lsn + same));
	return rc == 1 ? 0 : -1;
}

static int
load_history(struct ws_walwriter *w, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	int rc = ws_walnames_history(w->dir, tli, h, err);

	if (rc == 0)
		ws_err_op(err, "history_missing", "%s: no history file of timeline %u", w->dir, tli);
	return rc == 1 ? 0 : -1;
}

/* A higher timeline begins at lsn, which is a segment's start. */
static int
switch_timeline(struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	struct ws_history h;
	ws_tli old = w->end.tli;
	ws_lsn old_end = w->end.lsn;

	if (load_history(w, tli, &h, err) != 0)
		return -1;
	ws_lsn fork = ws_history_end(&h, old);

	ws_history_fini(&h);
	if (!fork || lsn > fork || lsn > old_end)
		return ws_err_op(err, "wal_gap",
		                 "%s: timeline %u at " WS_LSN_FMT " does not go on where timeline %u is, at " WS_LSN_FMT,
		                 w->dir, tli, WS_LSN_ARG(lsn), old, WS_LSN_ARG(old_end));
	if (sync_segment(w, err) != 0)
		return -1;
	close_segment(w);
	w->end = w->synced = (struct ws_pos){tli, lsn};
	ws_lsn limit = fork < old_end ? fork : old_end;

	if (limit <= lsn)
		return 0;
	for (int whole = 1; whole >= 0 && w->parent < 0; whole--) {
		free(w->parent_path);
		w->parent_path = seg_path(w, old, lsn, whole ? "" : ".partial");
		w->parent = open(w->parent_path, O_RDONLY | O_CLOEXEC);
	}
	w->parent_end = limit < lsn + w->o.segsize ? limit : lsn + w->o.segsize;
	return w->parent < 0 ? ws_err_sys(err, "%s: cannot open", w->parent_path) : 0;
}

static void
position(struct ws_walwriter *w, struct ws_pos pos)
{
	w->positioned = true;
	if (w->synced.tli != pos.tli || w->synced.lsn > pos.lsn ||
	    ws_seg_start(w->synced.lsn, w->o.segsize) != ws_seg_start(pos.lsn, w->o.segsize))
		w->synced = pos;
	w->end = pos;
}

int
ws_walwriter_position(struct ws_walwriter *w, struct ws_pos pos, struct ws_err *err)
{
	if (sync_segment(w, err) != 0)
		return -1;
	close_segment(w);
	position(w, pos);
	return 0;
}

/* Where the append goes: the first sets the position, later ones must follow it. */
static int
set_position(struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	if (!w->positioned) {
		position(w, (struct ws_pos){tli, lsn});
		return 0;
	}
	if (tli == w->end.tli && lsn == w->end.lsn)
		return 0;
	if (tli > w->end.tli && !(lsn & (w->o.segsize - 1)))
		return switch_timeline(w, tli, lsn, err);
	return ws_err_op(err, "wal_gap", "%s: WAL at %u " WS_LSN_FMT " does not follow %u " WS_LSN_FMT, w->dir,
	                 tli, WS_LSN_ARG(lsn), w->end.tli, WS_LSN_ARG(w->end.lsn));
}

/* The segment is full: durable first, then its name, then the name durable. */
static int
finish_segment(struct ws_walwriter *w, struct ws_err *err)
{
	if (!w->whole) {
		char *final = seg_path(w, w->end.tli, w->end.lsn - 1, "");

		if (sync_segment(w, err) != 0) {
			free(final);
			return -1;
		}
		if (rename(w->path, final) != 0) {
			ws_err_sys(err, "%s: cannot rename to %s", w->path, final);
			free(final);
			return -1;
		}
		free(final);
		if (sync_dir(w, err) != 0)
			return -1;
	}
	w->synced = w->end;
	close_segment(w);
	return 0;
}

/* Writes up to n bytes at the file's end; a short write (a full disk) is no error yet. */
static int
grow(struct ws_walwriter *w, const uint8_t *p, size_t *n, struct ws_err *err)
{
	ssize_t got;

	do
		got = pwrite(w->fd, p, *n, (off_t)w->size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return ws_err_sys(err, "%s: cannot write", w->path);
	w->size += (uint64_t)got;
	*n = (size_t)got;
	return 0;
}

int
ws_walwriter_append(struct ws_walwriter *w, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                    struct ws_err *err)
{
	if (w->broken)
		return ws_err_temp(err, "%s: an earlier fsync failed", w->dir);
	if (set_position(w, tli, lsn, err) != 0)
		return -1;
	while (n) {
		if (w->fd < 0 && open_segment(w, tli, w->end.lsn, err) != 0)
			return -1;
		uint64_t off = w->end.lsn & (w->o.segsize - 1);
		size_t m = n < w->o.segsize - off ? n : (size_t)(w->o.segsize - off);

		if (check_parent(w, p, m, err) != 0)
			return -1;
		if ((off < w->size ? skip_existing(w, p, &m, err) : grow(w, p, &m, err)) != 0)
			return -1;
		w->end.lsn += m;
		p += m;
		n -= m;
		if (off + m == w->o.segsize && finish_segment(w, err) != 0)
			return -1;
	}
	return 0;
}

int
ws_walwriter_sync(struct ws_walwriter *w, struct ws_err *err)
{
	if (w->broken)
		return ws_err_temp(err, "%s: an earlier fsync failed", w->dir);
	if (sync_segment(w, err) != 0)
		return -1;
	w->synced = w->end;
	return 0;
}

struct ws_pos
ws_walwriter_end(const struct ws_walwriter *w)
{
	return w->end;
}

struct ws_pos
ws_walwriter_synced(const struct ws_walwriter *w)
{
	return w->synced;
}

int
ws_walwriter_history(struct ws_walwriter *w, ws_tli tli, const void *p, size_t n, struct ws_err *err)
{
	return ws_histdir_store(w->dir, tli, p, n, !w->o.no_sync, err);
}
