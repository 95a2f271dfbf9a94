/* Storing a file; see ws/archive.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/mem.h"

struct pushing {
	const char *file, *name;
	const uint8_t *p;
	size_t n;
};

static int
map_file(struct pushing *f, struct ws_err *err)
{
	int fd = open(f->file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int rc = -1;

	if (fd < 0)
		return ws_err_arg(err, "%s: cannot open", f->file);
	if (fstat(fd, &st) != 0) {
		ws_err_sys(err, "%s: cannot stat", f->file);
	} else if (!S_ISREG(st.st_mode)) {
		ws_err_usage(err, "%s: not a regular file", f->file);
	} else if (st.st_size == 0 || (uint64_t)st.st_size > WS_SEGSIZE_MAX) {
		ws_err_op(err, "wal_corrupt", "%s: %lld bytes, which no file of WAL has", f->file,
				  (long long)st.st_size);
	} else {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		f->n = (size_t)st.st_size;
		f->p = p;
		rc = p == MAP_FAILED ? ws_err_sys(err, "%s: cannot map", f->file) : 0;
	}
	close(fd);
	return rc;
}

/* A segment that is not one must not get into the archive under its name. */
static int
check_file(const struct pushing *f, const struct ws_arcname *n, struct ws_err *err)
{
	struct ws_arcfile af = {.n = *n};
	struct verify v;

	verify_init(&v, &af, f->file, 0, false);
	int rc = verify_data(&v, f->p, f->n, err);

	if (rc == 0)
		rc = verify_end(&v, err);
	verify_fini(&v);
	if (rc != 0)
		strcpy(err->reason, "wal_corrupt");
	return rc;
}

struct comparing {
	const struct pushing *f;
	size_t at;
	bool differs;
};

static int
compare_begin(void *arg, struct ws_err *err)
{
	struct comparing *c = arg;

	(void)err;
	c->at = 0;
	c->differs = false;
	return 0;
}

static int
compare_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct comparing *c = arg;

	(void)err;
	c->differs = n > c->f->n - c->at || memcmp(c->f->p + c->at, p, n) != 0;
	c->at += c->differs ? 0 : n;
	return c->differs;
}

/* The name is taken: 0 with the same content, durable. */
static int
compare(struct ws_archive *a, const struct pushing *f, const struct member *m, struct ws_err *err)
{
	struct comparing c = {.f = f};
	struct sink out = {compare_begin, compare_data, &c};
	int rc = arc_read(a, m, &out, err);

	if (rc == 0)
		return ws_err_temp(err, "%s/%s: gone while it was compared", a->store->url, m->key);
	if (rc < 0)
		return -1;
	if (c.differs || c.at != f->n)
		return ws_err_op(err, "archive_conflict", "%s/%s is there with other content than %s",
						 a->store->url, m->key, f->file);
	return a->store->ops->sync ? a->store->ops->sync(a->store, m->key, err) : 0;
}

void
ws_arcpush_levels(enum ws_comp comp, int *min, int *max)
{
	codec_levels(comp, min, max);
}

/* 1 stored, 0 the name was taken meanwhile, -1. */
static int
store_it(struct ws_archive *a, const struct pushing *f, const struct ws_arcpush_opts *o,
		 uint64_t *bytes, struct ws_err *err)
{
	struct ws_buf packed = {0};
	char *key = ws_asprintf("%s%s", f->name, ws_comp_suffix[o->comp]);
	int rc = 0;

	if (o->comp != WS_COMP_NONE)
		rc = codec_compress(o->comp, o->level, f->p, f->n, &packed, err);
	if (rc == 0)
		rc = o->comp == WS_COMP_NONE
				 ? a->store->ops->put(a->store, key, f->p, f->n, err)
				 : a->store->ops->put(a->store, key, packed.data, packed.len, err);
	*bytes = o->comp == WS_COMP_NONE ? f->n : packed.len;
	ws_buf_free(&packed);
	free(key);
	return rc;
}

static int
push(struct ws_archive *a, const struct pushing *f, const struct ws_arcpush_opts *o,
	 enum ws_arcpush *how, uint64_t *bytes, struct ws_err *err)
{
	/* Whoever pushes has a plain archive: no look for another one in a bucket, each time. */
	if (a->layout == WS_ARC_AUTO && a->store->list_once)
		a->layout = WS_ARC_PLAIN;
	if (layout_settle(a, err) != 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		struct member m;
		int rc = arc_find(a, f->name, &m, err);

		if (rc >= 0 && (a->layout == WS_ARC_WALG || a->layout == WS_ARC_PGBACKREST)) {
			member_fini(&m);
			return ws_err_usage(err, "%s: laid out by %s, which is only read here", a->store->url,
								a->layout == WS_ARC_WALG ? "WAL-G" : "pgBackRest");
		}
		if (rc == 1) {
			rc = compare(a, f, &m, err);
			*how = WS_PUSH_SAME;
			*bytes = m.size;
			member_fini(&m);
			return rc;
		}
		if (rc == 0)
			rc = store_it(a, f, o, bytes, err);
		*how = WS_PUSH_STORED;
		if (rc != 0)
			return rc < 0 ? -1 : 0;
		/* Somebody else was quicker: look at what they stored. */
	}
	return ws_err_temp(err, "%s/%s: there and not there by turns", a->store->url, f->name);
}

int
ws_archive_push(struct ws_archive *a, const char *file, const char *name,
				const struct ws_arcpush_opts *o, enum ws_arcpush *how, uint64_t *bytes,
				struct ws_err *err)
{
	struct pushing f = {.file = file, .name = name};
	struct ws_arcname n;
	int rc;

	if (ws_arcname_parse(name, &n) != 0)
		return ws_err_usage(err, "%s: not the name of a segment, a history file or a backup label",
							name);
	if (map_file(&f, err) != 0)
		return -1;
	rc = check_file(&f, &n, err);
	if (rc == 0)
		rc = push(a, &f, o, how, bytes, err);
	munmap((void *)f.p, f.n);
	return rc;
}
