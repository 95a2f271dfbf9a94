/* Is this content what the name says?  See archive.h.
 *
 * PostgreSQL takes a damaged record in a restored segment for the end of WAL, and a standby may be
 * promoted there: so a segment is looked through before it is handed out. */
#include <string.h>

#include "archive.h"
#include "ws/lsn.h"

void
verify_init(struct verify *v, const struct ws_arcfile *f, const char *what, uint64_t system_id,
			bool records)
{
	*v = (struct verify){.f = f, .what = what, .system_id = system_id, .records = records};
	ws_sha1_init(&v->sha);
}

void
verify_fini(struct verify *v)
{
	ws_walreader_free(v->rd);
	v->rd = NULL;
}

static bool
is_segment(const struct verify *v)
{
	return v->f->n.kind == WS_ARC_SEGMENT || v->f->n.kind == WS_ARC_PARTIAL;
}

/* The first page's header. */
static int
look_at_head(struct verify *v, struct ws_err *err)
{
	struct ws_page_header h;
	uint64_t segno;

	if (ws_page_header_parse(v->head, sizeof v->head, &h) != 0 || !(h.info & WS_PAGE_LONG_HEADER) ||
		!ws_segsize_ok(h.segsize))
		return ws_err_op(err, "archive_corrupt", "%s: does not begin as a WAL segment does",
						 v->what);
	if (v->system_id && h.system_id != v->system_id)
		return ws_err_op(err, "system_id_changed",
						 "%s: belongs to another cluster, system identifier %llu", v->what,
						 (unsigned long long)h.system_id);
	if (ws_arcname_segno(&v->f->n, h.segsize, &segno) != 0 || h.pageaddr != segno * h.segsize)
		return ws_err_op(err, "archive_corrupt",
						 "%s: holds the WAL of " WS_LSN_FMT ", which has another name", v->what,
						 WS_LSN_ARG(h.pageaddr));
	/* The fork's segment begins with pages of the ancestor. */
	if (h.tli > v->f->n.tli)
		return ws_err_op(err, "archive_corrupt", "%s: holds WAL of timeline %u", v->what, h.tli);
	v->segsize = h.segsize;
	v->start = h.pageaddr;
	if (v->records && ws_walver_by_magic(h.magic)) {
		v->rd = ws_walreader_new(h.segsize, h.system_id, 0);
		ws_walreader_seek(v->rd, v->start, v->start);
	}
	return 0;
}

static int
read_records(struct verify *v, uint64_t at, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_rec rec;
	int rc;

	if (!v->rd || v->no_more || n == 0)
		return 0;
	if (ws_walreader_feed(v->rd, v->start + at, p, n, err) != 0)
		return -1;
	while ((rc = ws_walreader_next(v->rd, &rec, err)) == 1)
		;
	if (rc == 0)
		return 0;
	/* WAL may end in a whole segment too: what follows is zeros or an old page.  A partial one may
	 * end inside a record. */
	if (!ws_walreader_clean_end(v->rd) &&
		!(v->f->n.kind == WS_ARC_PARTIAL && ws_walreader_torn(v->rd))) {
		ws_err_prefix(err, "%s", v->what);
		err->status = WS_EOPERATOR;
		strcpy(err->reason, "archive_corrupt");
		return -1;
	}
	v->no_more = true;
	return 0;
}

int
verify_data(struct verify *v, const uint8_t *p, size_t n, struct ws_err *err)
{
	uint64_t at = v->size;

	v->size += n;
	if (v->f->sha1[0])
		ws_sha_add(&v->sha, p, n);
	if (!is_segment(v))
		return 0;
	if (v->size > (v->segsize ? v->segsize : WS_SEGSIZE_MAX))
		return ws_err_op(err, "archive_corrupt", "%s: longer than a segment", v->what);
	if (at < sizeof v->head) {
		size_t k = sizeof v->head - at < n ? sizeof v->head - at : n;

		memcpy(v->head + at, p, k);
		if (at + k < sizeof v->head)
			return 0;
		if (look_at_head(v, err) != 0 || read_records(v, 0, v->head, sizeof v->head, err) != 0)
			return -1;
		if (v->size > v->segsize)
			return ws_err_op(err, "archive_corrupt", "%s: longer than a segment", v->what);
		at += k;
		p += k;
		n -= k;
	}
	return read_records(v, at, p, n, err);
}

int
verify_end(struct verify *v, struct ws_err *err)
{
	char hex[WS_SHA_HEX];

	if (v->f->sha1[0]) {
		ws_sha_hex(&v->sha, hex);
		if (strcmp(hex, v->f->sha1))
			return ws_err_op(err, "archive_corrupt", "%s: its SHA-1 is %s", v->what, hex);
	}
	if (v->f->n.kind == WS_ARC_SEGMENT && (!v->segsize || v->size != v->segsize))
		return ws_err_op(err, "archive_corrupt", "%s: %llu bytes, which is no whole segment",
						 v->what, (unsigned long long)v->size);
	if (v->size == 0)
		return ws_err_op(err, "archive_corrupt", "%s: empty", v->what);
	return 0;
}
