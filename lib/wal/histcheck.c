/* Do the histories of a directory and its segments go together?  See ws/histdir.h.
 *
 * PostgreSQL makes a history of its parent's and one more line, so that a file must begin with what
 * each of its ancestors' files has.  A path is the way to a timeline that is nobody's ancestor here.
 * What lies on none, as an ancestor's segments past the fork do, is of a branch that was left. */
#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "walnames.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/lsn.h"

struct known {
	struct ws_history h;
	bool bad; /* its file is malformed; h is empty */
	bool tip; /* nobody's ancestor */
};

struct check {
	const char *dir;
	ws_histdir_found found;
	void *arg;
	size_t n;
	struct known *all; /* timelines ascend */
};

static void WS_PRINTF(4, 5)
finding(struct check *c, const char *reason, const char *name, const char *fmt, ...)
{
	char *path = ws_asprintf("%s/%s", c->dir, name);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	c->found(c->arg, &(struct ws_histdir_finding){reason, path, text});
	free(path);
}

static struct known *
lookup(struct check *c, ws_tli tli)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->all[i].h.tli == tli)
			return &c->all[i];
	return NULL;
}

/* Reads timeline tli's file, when there is one.  told: what is malformed is a finding. */
static int
add(struct check *c, ws_tli tli, bool told, struct ws_err *err)
{
	struct known k = {.tip = true};
	struct ws_err why = {0};
	int rc = ws_walnames_history(c->dir, tli, &k.h, &why);

	if (rc == 0)
		return 0;
	if (rc < 0 && strcmp(why.reason, "history_malformed")) {
		if (err)
			*err = why;
		return -1;
	}
	k.bad = rc < 0;
	if (k.bad && told) {
		char name[WS_WALNAME_MAX];

		/* "DIR/NAME line ...": the path is told beside. */
		ws_history_name(name, tli);
		size_t skip = strlen(c->dir) + 1 + strlen(name), n = strlen(why.msg);

		skip = skip < n ? skip + strspn(why.msg + skip, ": ") : 0;
		finding(c, why.reason, name, "%s", why.msg + skip);
	}
	c->all = ws_realloc(c->all, (c->n + 1) * sizeof k);
	c->all[c->n++] = k;
	return 0;
}

/* ---- one history ---- */

static void
check_ascending(struct check *c, const struct ws_history *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct ws_history_entry *e = &h->entries[i], *before = i ? e - 1 : NULL;

		if (!before && e->end == 0)
			finding(c, "history_not_ascending", name, "timeline %u ends at 0/0", e->tli);
		else if (before && e->end <= before->end)
			finding(c, "history_not_ascending", name,
			        "timeline %u ends at " WS_LSN_FMT
			        ", which is not past the end of timeline %u, " WS_LSN_FMT,
			        e->tli, WS_LSN_ARG(e->end), before->tli, WS_LSN_ARG(before->end));
	}
}

/* h's first n lines are to be parent's. */
static void
check_prefix(struct check *c, const struct ws_history *h, size_t n, const struct ws_history *parent,
             const char *name)
{
	char theirs[WS_WALNAME_MAX];
	size_t i = 0;

	ws_history_name(theirs, parent->tli);
	while (i < n && i < parent->n && h->entries[i].tli == parent->entries[i].tli &&
	       h->entries[i].end == parent->entries[i].end)
		i++;
	const struct ws_history_entry *a = i < n ? &h->entries[i] : NULL;
	const struct ws_history_entry *b = i < parent->n ? &parent->entries[i] : NULL;

	if (a && b && a->tli == b->tli)
		finding(c, "history_conflict", name,
		        "timeline %u ends at " WS_LSN_FMT ", by its ancestor's %s at " WS_LSN_FMT, a->tli,
		        WS_LSN_ARG(a->end), theirs, WS_LSN_ARG(b->end));
	else if (b && (!a || b->tli < a->tli))
		finding(c, "history_conflict", name, "lacks timeline %u, which its ancestor's %s has", b->tli,
		        theirs);
	else if (a)
		finding(c, "history_conflict", name, "has timeline %u, which its ancestor's %s lacks", a->tli,
		        theirs);
}

static void
check_history(struct check *c, const struct ws_history *h)
{
	char name[WS_WALNAME_MAX];

	ws_history_name(name, h->tli);
	check_ascending(c, h, name);
	for (size_t i = 0; i < h->n; i++) {
		struct known *parent = lookup(c, h->entries[i].tli);

		if (!parent)
			continue;
		parent->tip = false;
		if (!parent->bad)
			check_prefix(c, h, i, &parent->h, name);
	}
}

/* ---- segments ---- */

static int
by_name(const void *a, const void *b)
{
	const struct ws_walname *x = a, *y = b;

	if (x->tli != y->tli)
		return x->tli < y->tli ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

/* The parts of a timeline that lie on a path; begin >= end: none. */
struct part {
	bool known;
	ws_lsn begin, end;
};

/* Paths to siblings leave a timeline at different places, and reach it at the same. */
static struct part
part_of(struct check *c, ws_tli tli)
{
	struct part p = {.known = tli == 1, .begin = UINT64_MAX};
	bool ancestor = false;

	for (size_t k = 0; k < c->n; k++) {
		const struct known *o = &c->all[k];

		for (size_t i = 0; !o->bad && i <= o->h.n; i++) {
			struct ws_history_range r = ws_history_range(&o->h, i);

			if (r.tli != tli)
				continue;
			p.known = true;
			ancestor = ancestor || i < o->h.n;
			if (o->tip && r.begin < r.end) {
				p.begin = r.begin < p.begin ? r.begin : p.begin;
				p.end = r.end > p.end ? r.end : p.end;
			}
			break;
		}
	}
	if (tli == 1 && !ancestor)
		p = (struct part){true, 0, UINT64_MAX};
	return p;
}

static void
check_segment(struct check *c, const struct ws_walname *w, uint32_t segsize, const struct part *p)
{
	char name[WS_WALNAME_MAX];

	if (w->start < p->end && w->start + (segsize - 1) >= p->begin)
		return;
	ws_seg_name(name, w->tli, w->start, segsize);
	strcat(name, ws_seg_suffix[w->kind]);
	if (p->begin >= p->end)
		finding(c, "wal_off_path", name, "on no path: timeline %u has no bytes on any", w->tli);
	else if (w->start >= p->end)
		finding(c, "wal_off_path", name, "on no path: timeline %u ends at " WS_LSN_FMT, w->tli,
		        WS_LSN_ARG(p->end));
	else
		finding(c, "wal_off_path", name, "on no path: timeline %u begins at " WS_LSN_FMT, w->tli,
		        WS_LSN_ARG(p->begin));
}

static int
check_segments(struct check *c, struct ws_err *err)
{
	uint32_t segsize = 0;
	struct ws_walnames l;
	struct part p = {0};
	int rc = ws_histdir_segsize(c->dir, &segsize, err);

	if (rc <= 0)
		return rc;
	if (ws_walnames_list(c->dir, segsize, &l, err) != 0)
		return -1;
	if (l.n)
		qsort(l.segs, l.n, sizeof l.segs[0], by_name);
	for (size_t i = 0; i < l.n; i++) {
		const struct ws_walname *w = &l.segs[i];
		bool first = i == 0 || w->tli != l.segs[i - 1].tli;
		const struct known *own = lookup(c, w->tli);
		char name[WS_WALNAME_MAX];

		if (first)
			p = part_of(c, w->tli);
		ws_history_name(name, w->tli);
		if (p.known)
			check_segment(c, w, segsize, &p);
		else if (first && !own)
			finding(c, "history_missing", name, "absent, and there are segments of timeline %u",
			        w->tli);
	}
	ws_walnames_fini(&l);
	return 0;
}

/* ---- */

static int
ascending(const void *a, const void *b)
{
	ws_tli x = *(const ws_tli *)a, y = *(const ws_tli *)b;

	return x < y ? -1 : x > y;
}

static int
check_dir(struct check *c, struct ws_err *err)
{
	struct ws_walnames l;
	int rc = 0;

	if (ws_walnames_list(c->dir, WS_SEGSIZE_MIN, &l, err) != 0)
		return -1;
	if (l.nhist)
		qsort(l.hist, l.nhist, sizeof l.hist[0], ascending);
	for (size_t i = 0; i < l.nhist && rc == 0; i++)
		if (i == 0 || l.hist[i] != l.hist[i - 1])
			rc = add(c, l.hist[i], true, err);
	ws_walnames_fini(&l);
	for (size_t i = 0; i < c->n && rc == 0; i++)
		check_history(c, &c->all[i].h);
	return rc == 0 ? check_segments(c, err) : -1;
}

static int
check_file(struct check *c, const char *base, struct ws_err *err)
{
	ws_tli tli;

	if (ws_history_name_parse(base, &tli) != 0)
		return ws_err_usage(err, "%s/%s: not the name of a history file", c->dir, base);
	if (add(c, tli, true, err) != 0)
		return -1;
	if (!c->n)
		return ws_err_usage(err, "%s/%s: not the name of a history file", c->dir, base);
	for (size_t i = 0; i < c->all[0].h.n; i++)
		if (add(c, c->all[0].h.entries[i].tli, false, err) != 0)
			return -1;
	check_history(c, &c->all[0].h);
	return 0;
}

int
ws_histdir_check(const char *spec, ws_histdir_found found, void *arg, struct ws_err *err)
{
	struct check c = {.dir = spec, .found = found, .arg = arg};
	char *dir = ws_strdup(spec), *base = ws_strdup(spec);
	struct stat st;
	int rc;

	if (stat(spec, &st) != 0) {
		rc = ws_err_arg(err, "%s: cannot open", spec);
	} else if (S_ISDIR(st.st_mode)) {
		rc = check_dir(&c, err);
	} else {
		c.dir = dirname(dir);
		rc = check_file(&c, basename(base), err);
	}
	for (size_t i = 0; i < c.n; i++)
		ws_history_fini(&c.all[i].h);
	free(c.all);
	free(dir);
	free(base);
	return rc;
}
