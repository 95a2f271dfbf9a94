/* Archives; see ws/archive.h.  Layouts are layout.c's. */
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "ws/lsn.h"
#include "ws/mem.h"

#define SMALL_MAX (1024u * 1024)

int
ws_arclayout_parse(const char *s, enum ws_arclayout *out)
{
	static const char *const names[] = {"auto", "plain", "wal-g", "pgbackrest"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(s, names[i])) {
			*out = (enum ws_arclayout)i;
			return 0;
		}
	return -1;
}

struct ws_archive *
ws_archive_open(const struct ws_archive_opts *o, struct ws_err *err)
{
	struct store *s = store_open(o, err);

	if (!s)
		return NULL;
	struct ws_archive *a = ws_calloc(1, sizeof *a);

	a->store = s;
	a->layout = o->layout;
	a->stanza = o->stanza ? ws_strdup(o->stanza) : NULL;
	a->id = o->archive_id ? ws_strdup(o->archive_id) : NULL;
	return a;
}

void
ws_archive_close(struct ws_archive *a)
{
	if (!a)
		return;
	store_close(a->store);
	free(a->stanza);
	free(a->id);
	free(a->root);
	free(a);
}

const char *
ws_archive_url(const struct ws_archive *a)
{
	return a->store->url;
}

void
member_fini(struct member *m)
{
	free(m->key);
	m->key = NULL;
}

/* ---- finding ---- */

struct finding {
	const char *folder, *name;
	bool sha1;
	struct member *m;
	struct ws_err *err;
};

static bool
better(enum ws_comp a, enum ws_comp b)
{
	return a == WS_COMP_NONE || (b != WS_COMP_NONE && a != WS_COMP_FOREIGN && b == WS_COMP_FOREIGN);
}

static char *
join(const char *folder, const char *file)
{
	return *folder ? ws_asprintf("%s/%s", folder, file) : ws_strdup(file);
}

static int
take_if_named(void *arg, const char *file, bool folder, uint64_t size, struct ws_err *err)
{
	struct finding *f = arg;
	struct ws_arcfile af;

	if (folder || ws_arcfile_parse(file, f->sha1, &af) != 0 || strcmp(af.name, f->name))
		return 0;
	if (f->m->key) {
		/* pgBackRest refuses these as well: which one is right cannot be known. */
		if (strcmp(af.sha1, f->m->f.sha1))
			return ws_err_op(err, "archive_conflict", "%s/%s: there twice with different contents",
							 f->folder, f->name);
		if (!better(af.comp, f->m->f.comp))
			return 0;
		member_fini(f->m);
	}
	*f->m = (struct member){af, join(f->folder, file), size};
	return 0;
}

static int
find_by_listing(struct ws_archive *a, const char *folder, const char *name, struct member *m,
				struct ws_err *err)
{
	struct finding f = {folder, name, a->layout == WS_ARC_PGBACKREST, m, err};

	if (a->store->ops->list(a->store, folder, name, take_if_named, &f, err) != 0) {
		member_fini(m);
		return -1;
	}
	return m->key != NULL;
}

static int
find_by_asking(struct ws_archive *a, const char *folder, const char *name, struct member *m,
			   struct ws_err *err)
{
	/* WAL-G's .br is looked for only to refuse it, not to call it absent. */
	static const char *const suffix[] = {"", ".zst", ".lz4", ".gz", ".br"};
	size_t n = sizeof suffix / sizeof suffix[0] - (a->layout != WS_ARC_WALG);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		char file[WS_ARCNAME_MAX];

		snprintf(file, sizeof file, "%s%s", name, suffix[i]);
		char *key = join(folder, file);

		rc = a->store->ops->stat(a->store, key, &m->size, err);
		if (rc == 1 && ws_arcfile_parse(file, false, &m->f) == 0)
			m->key = key;
		else
			free(key);
	}
	return rc;
}

static int
find_in(struct ws_archive *a, const char *name, const struct ws_arcname *n, struct member *m,
		struct ws_err *err)
{
	char *folder;
	int rc;

	*m = (struct member){0};
	if (a->layout == WS_ARC_PGBACKREST && n->kind != WS_ARC_HISTORY)
		folder = ws_asprintf("%s/%.16s", a->root, name);
	else
		folder = ws_strdup(a->root);
	rc = a->store->list_once || a->layout == WS_ARC_PGBACKREST
			 ? find_by_listing(a, folder, name, m, err)
			 : find_by_asking(a, folder, name, m, err);
	free(folder);
	return rc;
}

int
arc_find(struct ws_archive *a, const char *name, struct member *m, struct ws_err *err)
{
	struct ws_arcname n;

	*m = (struct member){0};
	if (ws_arcname_parse(name, &n) != 0)
		return ws_err_usage(err, "%s: not the name of a segment, a history file or a backup label",
							name);
	if (layout_settle(a, err) != 0)
		return -1;
	int rc = find_in(a, name, &n, m, err);

	if (rc != 0)
		return rc;
	rc = layout_absent(a, err);
	return rc == 1 ? find_in(a, name, &n, m, err) : rc;
}

/* ---- reading ---- */

struct reading {
	const struct member *m;
	const struct sink *out;
	struct codec *c;
	bool enough;
	char *what;
};

static int
reading_begin(void *arg, struct ws_err *err)
{
	struct reading *r = arg;
	enum ws_arckind k = r->m->f.n.kind;
	uint64_t max = k == WS_ARC_SEGMENT || k == WS_ARC_PARTIAL ? WS_SEGSIZE_MAX : SMALL_MAX;

	codec_free(r->c);
	r->c = codec_new(r->m->f.comp, r->out, max, r->what, err);
	if (!r->c)
		return -1;
	return r->out->begin ? r->out->begin(r->out->arg, err) : 0;
}

static int
reading_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct reading *r = arg;
	int rc = codec_feed(r->c, p, n, err);

	r->enough |= rc == 1;
	return rc;
}

int
arc_read(struct ws_archive *a, const struct member *m, const struct sink *out, struct ws_err *err)
{
	struct reading r = {m, out, NULL, false, ws_asprintf("%s/%s", a->store->url, m->key)};
	struct sink in = {reading_begin, reading_data, &r};
	int rc = a->store->ops->get(a->store, m->key, &in, err);

	if (rc == 1 && !r.enough && codec_finish(r.c, err) != 0)
		rc = -1;
	codec_free(r.c);
	free(r.what);
	return rc;
}

static int
buf_begin(void *arg, struct ws_err *err)
{
	(void)err;
	((struct ws_buf *)arg)->len = 0;
	return 0;
}

static int
buf_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	(void)err;
	ws_buf_put(arg, p, n);
	return 0;
}

int
arc_read_small(struct ws_archive *a, const struct member *m, struct ws_buf *b, struct ws_err *err)
{
	struct sink out = {buf_begin, buf_data, b};

	return arc_read(a, m, &out, err);
}

static int
head_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	ws_buf_put(arg, p, n);
	(void)err;
	return ((struct ws_buf *)arg)->len >= WS_PAGE_HDR_LONG;
}

int
arc_segsize(struct ws_archive *a, const struct member *m, uint32_t *segsize, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct sink out = {buf_begin, head_data, &b};
	struct ws_page_header h;
	int rc = arc_read(a, m, &out, err);

	if (rc == 0)
		rc = ws_err_temp(err, "%s/%s: gone meanwhile", a->store->url, m->key);
	else if (rc == 1 && (b.len < WS_PAGE_HDR_LONG || ws_page_header_parse(b.data, b.len, &h) != 0 ||
						 !(h.info & WS_PAGE_LONG_HEADER) || !ws_segsize_ok(h.segsize)))
		rc = ws_err_op(err, "archive_corrupt", "%s/%s: does not begin as a WAL segment does",
					   a->store->url, m->key);
	else if (rc == 1)
		*segsize = h.segsize;
	ws_buf_free(&b);
	return rc < 0 ? -1 : 0;
}

int
ws_archive_history(struct ws_archive *a, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];
	struct ws_buf b = {0};
	struct member m;

	*h = (struct ws_history){.tli = tli};
	ws_history_name(name, tli);
	int rc = arc_find(a, name, &m, err);

	if (rc == 1)
		rc = arc_read_small(a, &m, &b, err);
	if (rc == 1 && ws_history_parse(tli, (const char *)b.data, b.len, h, err) != 0) {
		ws_err_prefix(err, "%s", a->store->url);
		rc = -1;
	}
	member_fini(&m);
	ws_buf_free(&b);
	return rc;
}
