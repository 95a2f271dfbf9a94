/* A WAL source that reads a directory, and follows it while it grows.
 *
 * When a newer descendant appears while its ancestor is read (srcroute.c), reading goes back to the
 * start of the segment in which the ancestor ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "segfile.h"
#include "walsrcpriv.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/tool.h"
#include "ws/walpage.h"

#define RESCAN_US 1000000u /* without inotify: how often history files are looked for */

struct srcdir {
	struct ws_pos start; /* as asked for, until the first segment is open */
	bool placed;         /* tli, seg and off are set */
	ws_lsn seg;          /* start of the segment at hand */
	uint64_t off;        /* next byte in it */
	ws_tli tli;          /* of the open file's name */
	struct ws_segfile *f;
	uint64_t limit;      /* bytes of the file that count: an ancestor's end at its switch */
	int inotify;
	bool gave;           /* a chunk since the last seek */
	bool look;           /* the directory's history files may have changed */
	uint64_t looked_us;
};

static char *
seg_path(struct ws_walsrc *s, ws_tli tli, ws_lsn seg, enum ws_seg_kind kind)
{
	char name[WS_WALNAME_MAX];

	ws_seg_name(name, tli, seg, s->segsize);
	return ws_asprintf("%s/%s%s", s->spec, name, ws_seg_suffix[kind]);
}

/* ---- places ---- */

/* Goes to lsn's page. */
static void
place(struct ws_walsrc *s, ws_lsn lsn)
{
	struct srcdir *d = s->impl;

	ws_segfile_close(d->f);
	d->f = NULL;
	d->seg = ws_seg_start(lsn, s->segsize);
	d->off = (lsn - d->seg) & ~(uint64_t)(WS_PAGE_SIZE - 1);
	d->placed = true;
}

int
ws_srcdir_identify(struct ws_walsrc *s, const struct ws_walnames *l, struct ws_err *err)
{
	const struct ws_walname *best = NULL;
	struct ws_segfile *f;
	uint8_t h[WS_PAGE_HDR_LONG];

	for (size_t i = 0; i < l->n; i++) {
		const struct ws_walname *w = &l->segs[i];

		/* The oldest: a server's newest may be files made in advance. */
		if (!best || w->tli < best->tli || (w->tli == best->tli && w->start < best->start))
			best = w;
	}
	if (!best)
		return 0;
	char name[WS_WALNAME_MAX];

	/* Listed for the smallest size, which names a segment by the same digits. */
	ws_seg_name(name, best->tli, best->start, WS_SEGSIZE_MIN);
	char *path = ws_asprintf("%s/%s%s", s->spec, name, ws_seg_suffix[best->kind]);
	int rc = ws_segfile_open(path, best->kind, &f, err);
	size_t n = 0;

	while (rc > 0 && n < sizeof h) {
		ssize_t got = ws_segfile_read(f, n, h + n, sizeof h - n, err);

		if (got < 0)
			rc = -1;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (rc > 0) {
		ws_segfile_close(f);
		if (n < sizeof h && best->kind == WS_SEG_PARTIAL)
			rc = 0;
		else if (ws_walsrc_identify(s, path, h, n, err) != 0)
			rc = -1;
	}
	free(path);
	return rc;
}

/* Oldest segment on the route, 0 when there is none. */
static ws_lsn
oldest(const struct ws_walsrc *s, const struct ws_walnames *l)
{
	ws_lsn low = 0;

	for (size_t i = 0; i < l->n; i++)
		if (ws_srcroute_has(s, l->segs[i].tli, l->segs[i].start) && (!low || l->segs[i].start < low))
			low = l->segs[i].start;
	return low;
}

static int
check_start(struct ws_walsrc *s, struct ws_pos p, struct ws_err *err)
{
	ws_lsn end = p.tli ? ws_history_end(&s->hist, p.tli) : UINT64_MAX;

	if (p.lsn <= end)
		return 0;
	return ws_err_op(err, "past_fork",
	                 "%s: position %u " WS_LSN_FMT " is past the end of timeline %u, " WS_LSN_FMT
	                 ", where timeline %u goes on",
	                 s->spec, p.tli, WS_LSN_ARG(p.lsn), p.tli, WS_LSN_ARG(end), s->hist.tli);
}

/* Finds the first place from d->start.  1 done, 0 nothing there yet, -1. */
static int
find_place(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	struct ws_walnames l;
	int rc = 1;

	if (access(s->spec, F_OK) != 0 && errno == ENOENT && s->follow)
		return 0;
	if (!s->cluster_known) {
		if (ws_walnames_list(s->spec, WS_SEGSIZE_MIN, &l, err) != 0)
			return -1;
		rc = ws_srcdir_identify(s, &l, err);
		ws_walnames_fini(&l);
	}
	if (rc <= 0)
		return rc;
	if (ws_walnames_list(s->spec, s->segsize, &l, err) != 0)
		return -1;
	if ((rc = ws_srcroute_choose(s, &l, d->start.tli, err)) == 0 && (rc = check_start(s, d->start, err)) == 0) {
		ws_lsn lsn = d->start.lsn ? d->start.lsn : oldest(s, &l);

		if (lsn) {
			place(s, lsn);
			rc = 1;
		}
	}
	ws_walnames_fini(&l);
	return rc;
}

/* ---- segments ---- */

/* Tries the segment under one timeline's name, twice: .partial may be renamed in between. */
static int
open_as(struct ws_walsrc *s, ws_tli tli, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	int rc = 0;

	for (int i = 0; i < 2 * WS_SEG_KINDS && rc == 0; i++) {
		enum ws_seg_kind kind = (enum ws_seg_kind)(i % WS_SEG_KINDS);
		char *path = seg_path(s, tli, d->seg, kind);

		rc = ws_segfile_open(path, kind, &d->f, err);
		free(path);
	}
	if (rc == 1) {
		ws_lsn end = ws_history_end(&s->hist, tli);

		d->tli = tli;
		d->limit = end - d->seg < s->segsize ? end - d->seg : s->segsize;
	}
	return rc;
}

/* True when the directory has a segment of the route behind the one at hand. */
static int
newer_exists(struct ws_walsrc *s, bool *newer, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	struct ws_walnames l;

	*newer = false;
	if (ws_walnames_list(s->spec, s->segsize, &l, err) != 0)
		return -1;
	for (size_t i = 0; i < l.n && !*newer; i++)
		*newer = l.segs[i].start > d->seg && ws_srcroute_has(s, l.segs[i].tli, l.segs[i].start);
	ws_walnames_fini(&l);
	return 0;
}

static int
missing(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	char name[WS_WALNAME_MAX];

	ws_seg_name(name, ws_srcroute_tli(s, d->seg), d->seg, s->segsize);
	return ws_err_op(err, "wal_missing", "%s: segment %s is missing", s->spec, name);
}

/* Opens the segment at hand.  1 open, 0 not there (the end, or not yet), -1. */
static int
open_segment(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	ws_tli tli = ws_srcroute_tli(s, d->seg);
	int rc = open_as(s, tli, err);
	bool newer;

	/* A finished directory may lack the descendant's file: the ancestor's holds the bytes up to the
	 * switch.  A growing one will have it. */
	for (size_t i = s->hist.n; rc == 0 && !s->follow && i > 0; i--) {
		ws_tli older = s->hist.entries[i - 1].tli;

		if (older < tli && ws_history_end(&s->hist, older) > d->seg)
			rc = open_as(s, older, err);
	}
	if (rc != 0)
		return rc;
	if (newer_exists(s, &newer, err) != 0)
		return -1;
	if (!newer)
		return 0;
	/* It can have appeared between the two looks. */
	rc = open_as(s, tli, err);
	return rc ? rc : missing(s, err);
}

/* The open file gave no byte.  1 go on with the next segment, 0 none now, -1. */
static int
at_file_end(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	bool newer;

	if (d->off == s->segsize) {
		ws_segfile_close(d->f);
		d->f = NULL;
		d->seg += s->segsize;
		d->off = 0;
		return 1;
	}
	if (d->off < d->limit && ws_segfile_kind(d->f) != WS_SEG_PARTIAL)
		return ws_err_op(err, "wal_truncated", "%s: only %llu bytes, a segment has %u",
		                 ws_segfile_path(d->f), (unsigned long long)d->off, s->segsize);
	if (s->follow)
		return 0;
	if (newer_exists(s, &newer, err) != 0)
		return -1;
	return newer ? ws_err_op(err, "wal_missing", "%s: ends before the next segment starts",
	                         ws_segfile_path(d->f))
	             : 0;
}

/* ---- news of the directory ---- */

/* Takes the events off; a history file among them is remembered. */
static void
drain(struct ws_walsrc *s)
{
	struct srcdir *d = s->impl;
	_Alignas(struct inotify_event) char buf[8192];
	ssize_t n;
	uint64_t now;

	if (d->inotify < 0) {
		if ((now = ws_now_us()) - d->looked_us >= RESCAN_US) {
			d->looked_us = now;
			d->look = true;
		}
		return;
	}
	while ((n = read(d->inotify, buf, sizeof buf)) > 0)
		for (char *p = buf; p < buf + n;) {
			struct inotify_event e;
			ws_tli tli;

			memcpy(&e, p, sizeof e);
			if (e.mask & IN_Q_OVERFLOW ||
			    (e.len && ws_history_name_parse(p + sizeof e, &tli) == 0))
				d->look = true;
			p += sizeof e + e.len;
		}
}

/* Whether a newer descendant came; then reading goes back where it must. */
static int
look_for_fork(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	struct ws_walnames l;
	ws_tli from = d->f ? d->tli : ws_srcroute_tli(s, d->seg), target = s->hist.tli;

	d->look = false;
	if (ws_walnames_list(s->spec, s->segsize, &l, err) != 0)
		return -1;
	int rc = ws_srcroute_choose(s, &l, target, err);

	ws_walnames_fini(&l);
	if (rc != 0 || s->hist.tli == target)
		return rc;
	ws_lsn end = ws_history_end(&s->hist, from), fork = ws_seg_start(end, s->segsize);

	if (!end)
		return ws_err_op(err, "history_malformed", "%s: timeline %u lacks its ancestor %u", s->spec,
		                 s->hist.tli, from);
	if (end < d->seg + s->segsize && (d->seg > fork || d->off))
		place(s, fork);
	return 0;
}

static void
start_inotify(struct ws_walsrc *s)
{
	struct srcdir *d = s->impl;

	if (d->inotify >= 0)
		return;
	d->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (d->inotify >= 0 &&
	    inotify_add_watch(d->inotify, s->spec, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
		close(d->inotify);
		d->inotify = -1;
	}
	s->fd = d->inotify;
	d->look = d->inotify >= 0; /* what came before the watch */
}

/* ---- the source ---- */

/* Bytes of the open file that the next chunk may hold. */
static size_t
next_size(const struct srcdir *d)
{
	uint64_t left = d->off < d->limit ? d->limit - d->off : 0, n = WS_CHUNK - d->off % WS_CHUNK;

	return (size_t)(n < left ? n : left);
}

/* 1 *c is set, 0 nothing, -1. */
static int
try_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	int rc;

	if (!d->placed && (rc = find_place(s, err)) <= 0)
		return rc;
	for (;;) {
		if (d->look && s->follow && look_for_fork(s, err) != 0)
			return -1;
		if (!d->f && (rc = open_segment(s, err)) <= 0)
			return rc;
		size_t n = next_size(d);
		uint8_t *p = ws_walsrc_place(s, d->seg + d->off, n);
		ssize_t got = n ? ws_segfile_read(d->f, d->off, p, n, err) : 0;

		if (got < 0)
			return -1;
		if (got > 0) {
			ws_walsrc_give(s, d->seg + d->off, d->tli, (size_t)got, c);
			c->whole = ws_segfile_kind(d->f) != WS_SEG_PARTIAL;
			d->off += (uint64_t)got;
			d->gave = true;
			return 1;
		}
		if ((rc = at_file_end(s, err)) <= 0)
			return rc;
	}
}

/* Nothing was there to read: right at the directory's end only. */
static int
check_empty(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	struct ws_walnames l;
	bool before = d->f != NULL;

	if (!before && !d->off) {
		if (ws_walnames_list(s->spec, s->segsize, &l, err) != 0)
			return -1;
		for (size_t i = 0; i < l.n && !before; i++)
			before = l.segs[i].start + s->segsize == d->seg;
		ws_walnames_fini(&l);
	}
	return before ? 0 : missing(s, err);
}

static int
dir_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err)
{
	struct srcdir *d = s->impl;
	int rc = try_next(s, c, err);

	if (rc != 0)
		return rc;
	if (!s->follow) {
		s->at_end = true;
		if (!d->placed)
			return ws_err_op(err, "wal_missing", "%s: no WAL segment there", s->spec);
		return d->gave ? 0 : check_empty(s, err);
	}
	/* Events are taken before the last look, so that none is lost between. */
	start_inotify(s);
	drain(s);
	return try_next(s, c, err);
}

static int
dir_seek(struct ws_walsrc *s, struct ws_pos to, struct ws_err *err)
{
	struct srcdir *d = s->impl;

	ws_segfile_close(d->f);
	d->f = NULL;
	d->placed = d->gave = false;
	d->start = to;
	return find_place(s, err) < 0 ? -1 : 0;
}

static void
dir_close(struct ws_walsrc *s)
{
	struct srcdir *d = s->impl;

	ws_segfile_close(d->f);
	if (d->inotify >= 0)
		close(d->inotify);
	free(d);
}

static const struct ws_srcops ops = {dir_next, dir_seek, dir_close};

int
ws_srcdir_open(struct ws_walsrc *s, struct ws_pos start, struct ws_err *err)
{
	struct srcdir *d = ws_calloc(1, sizeof *d);

	s->ops = &ops;
	s->impl = d;
	d->inotify = -1;
	if (s->follow)
		start_inotify(s);
	return dir_seek(s, start, err);
}
