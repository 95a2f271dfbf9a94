/* Versions of the routes.  A commit is sent by the rules that were in force when it was first sent,
 * also when it comes again after a death: unsupported=, unfit= and the like decide what a row
 * holds, and a row of the same version with another content would win by chance.
 *
 * consumer/NAME/routes/FROM (16 hexadecimal digits) holds the whole text of a routes file; it is
 * for commits that end above FROM, up to the next version's.  A version is durable before a
 * transaction begins with it, and begins where nothing was sent yet: above `sent`.  Versions that
 * no commit above `ack` needs are removed.
 *
 * A stop for the operator is the exception: what stopped may need other rules, whatever of it was
 * sent. routes/stopped holds the last position before it, and rules that have changed at the next
 * start begin there: everything after it is sent again by them. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ch/emit.h"
#include "ws/file.h"
#include "ws/pos.h"

#define NAME_LEN 16

static char *
version_path(const struct ws_emit *e, ws_lsn from)
{
	return ws_asprintf("%s/consumer/%s/routes/%016" PRIX64, e->o.state, e->o.consumer, from);
}

static int
by_from(const void *a, const void *b)
{
	const struct ch_version *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static void
version_fini(struct ch_version *v)
{
	ws_routes_free(v->routes);
	ws_buf_free(&v->text);
}

static struct ch_version *
append(struct ws_emit *e)
{
	e->versions = ws_realloc(e->versions, (e->nversions + 1) * sizeof *e->versions);
	struct ch_version *v = &e->versions[e->nversions++];

	memset(v, 0, sizeof *v);
	return v;
}

static int
parse(const struct ws_buf *text, const char *name, struct ws_routes **out, struct ws_err *err)
{
	struct ws_buf problems = {0};

	*out = ws_routes_parse(text->data ? (char *)text->data : "", text->len, name, &problems);
	if (!*out) {
		char *s = ws_buf_cstr(&problems);

		s[strcspn(s, "\n")] = 0;
		ws_err_usage(err, "%s", s);
	}
	ws_buf_free(&problems);
	return *out ? 0 : -1;
}

/* The file of the options; without one, the built-in rules are an empty text's. */
static int
read_file(const struct ws_emit *e, struct ws_buf *text, struct ws_routes **out, struct ws_err *err)
{
	const char *path = e->o.routes;
	int rc = path ? ws_file_read(path, WS_ROUTES_MAX_FILE, text, err) : 1;

	if (rc == 0)
		ws_err_usage(err, "%s: no such file", path);
	return rc == 1 ? parse(text, path ? path : "", out, err) : -1;
}

static int
read_versions(struct ws_emit *e, const char *dir, struct ws_err *err)
{
	DIR *d = opendir(dir);
	struct dirent *f;
	int rc = 0;

	if (!d)
		return ws_err_sys(err, "%s: cannot open", dir);
	while (rc == 0 && (f = readdir(d))) {
		if (strlen(f->d_name) != NAME_LEN || strspn(f->d_name, "0123456789ABCDEF") != NAME_LEN)
			continue;
		struct ch_version *v = append(e);
		char *path = ws_asprintf("%s/%s", dir, f->d_name);

		v->from = strtoull(f->d_name, NULL, 16);
		rc = ws_file_read(path, WS_ROUTES_MAX_FILE, &v->text, err) == 1
				 ? parse(&v->text, path, &v->routes, err)
				 : -1;
		if (rc != 0 && err->status == WS_EUSAGE) {
			char was[300];

			snprintf(was, sizeof was, "%.299s", err->msg);
			ws_err_op(err, "routes_version", "%s (rules that sent commits used before)", was);
		}
		free(path);
	}
	closedir(d);
	if (rc == 0 && e->nversions)
		qsort(e->versions, e->nversions, sizeof *e->versions, by_from);
	return rc;
}

/* Makes it durable, then known.  One of the same place was never used: nothing above was sent. */
static int
add(struct ws_emit *e, ws_lsn from, struct ws_buf *text, struct ws_routes *routes,
	struct ws_err *err)
{
	char *path = version_path(e, from);
	int rc =
		ws_file_replace(path, text->data ? (char *)text->data : "", text->len, 0600, true, err);

	free(path);
	if (rc != 0)
		return -1;
	struct ch_version *last = e->nversions ? &e->versions[e->nversions - 1] : NULL;
	struct ch_version *v = last && last->from == from ? last : append(e);

	/* emit_routes_at resolves the tables again. */
	if (v == last && e->routes == last->routes) {
		emit_tabs_forget_routes(e);
		e->routes = NULL;
	}
	version_fini(v);
	*v = (struct ch_version){from, *text, routes};
	*text = (struct ws_buf){0};
	return 0;
}

static bool
same_text(const struct ws_buf *a, const struct ws_buf *b)
{
	return a->len == b->len && (a->len == 0 || !memcmp(a->data, b->data, a->len));
}

/* Commits up to ack do not come again. */
static void
prune(struct ws_emit *e)
{
	size_t n = 0;

	while (n + 1 < e->nversions && e->versions[n + 1].from <= e->ack.lsn &&
		   e->versions[n].routes != e->routes) {
		char *path = version_path(e, e->versions[n].from);

		if (unlink(path) != 0 && errno != ENOENT)
			ws_warn("%s: cannot remove: %s", path, strerror(errno));
		free(path);
		version_fini(&e->versions[n++]);
	}
	if (n)
		memmove(e->versions, e->versions + n, (e->nversions -= n) * sizeof *e->versions);
}

/* The place above which nothing was ever sent. */
static ws_lsn
unsent(const struct ws_emit *e)
{
	ws_lsn lsn = e->sent.lsn > e->ack.lsn ? e->sent.lsn : e->ack.lsn;

	if (e->last.lsn > lsn)
		lsn = e->last.lsn;
	return e->seen > lsn ? e->seen : lsn;
}

/* ---- after a stop ---- */

static char *
stopped_path(const struct ws_emit *e)
{
	return ws_asprintf("%s/consumer/%s/routes/stopped", e->o.state, e->o.consumer);
}

void
emit_routes_stopped(struct ws_emit *e)
{
	struct ws_pos p = e->oldest ? e->oldest->before : e->last;
	struct ws_err err;

	if (e->o.load || e->nversions == 0)
		return;
	if (p.tli == 0)
		p.tli = e->tli ? e->tli : 1; /* nothing was complete yet */
	char *path = stopped_path(e);

	if (ws_pos_write(path, p, true, &err) != 0)
		ws_log_err(&err);
	free(path);
}

/* Rules that have changed since a stop count from before it: later versions go. */
static int
restart_at(struct ws_emit *e, ws_lsn *from, struct ws_err *err)
{
	char *path = stopped_path(e);
	struct ws_pos p;
	int rc = ws_pos_read(path, &p, err);

	free(path);
	if (rc <= 0 || p.lsn >= *from)
		return rc < 0 ? -1 : 0;
	*from = p.lsn > e->ack.lsn ? p.lsn : e->ack.lsn;
	while (rc >= 0 && e->nversions > 1 && e->versions[e->nversions - 1].from > *from) {
		struct ch_version *v = &e->versions[--e->nversions];

		path = version_path(e, v->from);
		if (unlink(path) != 0 && errno != ENOENT)
			rc = ws_err_sys(err, "%s: cannot remove", path);
		free(path);
		version_fini(v);
	}
	return rc < 0 ? -1 : 0;
}

static int
stopped_forget(struct ws_emit *e, struct ws_err *err)
{
	char *path = stopped_path(e);
	int rc = unlink(path) != 0 && errno != ENOENT ? ws_err_sys(err, "%s: cannot remove", path) : 0;

	free(path);
	return rc;
}

/* ---- in use ---- */

/* The file's rules become the newest version, unless they are. */
static int
take_file(struct ws_emit *e, struct ws_err *err)
{
	/* A first load that was not finished begins anew, and its stream after it. */
	bool anew = e->o.load && !e->have_ack && e->nversions == 1;
	ws_lsn from = e->nversions && !anew ? unsent(e) : 0;

	if (e->nversions && restart_at(e, &from, err) != 0)
		return -1;
	if (e->nversions && same_text(&e->versions[e->nversions - 1].text, &e->routes_text))
		return 0;
	if (add(e, from, &e->routes_text, e->routes_read, err) != 0)
		return -1;
	e->routes_read = NULL;
	return 0;
}

int
emit_routes_check(struct ws_emit *e, struct ws_err *err)
{
	return read_file(e, &e->routes_text, &e->routes_read, err);
}

int
emit_routes_open(struct ws_emit *e, struct ws_err *err)
{
	char *home = ws_asprintf("%s/consumer/%s", e->o.state, e->o.consumer),
		 *dir = ws_asprintf("%s/routes", home);
	int rc = ws_mkdir_p(dir, 0700, err) != 0 || ws_fsync_path(home, err) != 0 ||
					 read_versions(e, dir, err) != 0
				 ? -1
				 : 0;

	free(home);
	free(dir);
	if (rc != 0)
		return -1;
	if (take_file(e, err) != 0 || stopped_forget(e, err) != 0)
		return -1;
	prune(e);
	/* A load is of the newest; a stream says where it is. */
	e->routes = e->o.load ? e->versions[e->nversions - 1].routes : e->versions[0].routes;
	return 0;
}

int
emit_routes_at(struct ws_emit *e, ws_lsn end, struct ws_err *err)
{
	size_t i = e->nversions - 1;

	while (i > 0 && e->versions[i].from >= end)
		i--;
	if (e->versions[i].routes == e->routes)
		return 0;
	/* Batches are of the rules that filled them, and tables still know these. */
	if (emit_flush(e, err) != 0)
		return -1;
	emit_tabs_forget_routes(e);
	e->routes = e->versions[i].routes;
	prune(e);
	return 0;
}

int
emit_routes_reload(struct ws_emit *e, struct ws_err *err)
{
	struct ws_buf text = {0};
	struct ws_routes *r = NULL;
	struct ws_err bad = {0};

	/* A load keeps the rules it began with: its tables are half filled. */
	if (!e->o.routes || e->o.load)
		return 0;
	if (read_file(e, &text, &r, &bad) != 0) {
		ws_error("the routes stay as they were: %s", bad.msg);
		ws_buf_free(&text);
		return 0;
	}
	ws_lsn from = unsent(e);
	int rc = 0;

	if (same_text(&text, &e->versions[e->nversions - 1].text)) {
		ws_info("routes reloaded, nothing has changed: file=%s", e->o.routes);
	} else if ((rc = add(e, from, &text, r, err)) == 0) {
		r = NULL;
		ws_info("routes reloaded: file=%s for commits after " WS_LSN_FMT, e->o.routes,
				WS_LSN_ARG(from));
	}
	ws_buf_free(&text);
	ws_routes_free(r);
	return rc;
}

void
emit_routes_close(struct ws_emit *e)
{
	for (size_t i = 0; i < e->nversions; i++)
		version_fini(&e->versions[i]);
	free(e->versions);
	ws_buf_free(&e->routes_text);
	ws_routes_free(e->routes_read);
	e->versions = NULL;
	e->routes = e->routes_read = NULL;
	e->nversions = 0;
}
