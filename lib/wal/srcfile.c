/* A WAL source of one segment file. */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "segfile.h"
#include "walsrcpriv.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/walpage.h"

struct srcfile {
	struct ws_segfile *f;
	enum ws_seg_kind kind;
	ws_tli tli;
	ws_lsn start;
	uint64_t off;
};

static enum ws_seg_kind
kind_of(const char *path)
{
	size_t n = strlen(path);

	for (int k = WS_SEG_KINDS - 1; k > 0; k--) {
		size_t m = strlen(ws_seg_suffix[k]);

		if (n > m && !strcmp(path + n - m, ws_seg_suffix[k]))
			return (enum ws_seg_kind)k;
	}
	return WS_SEG_WHOLE;
}

static int
reopen(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcfile *d = s->impl;

	ws_segfile_close(d->f);
	int rc = ws_segfile_open(s->spec, d->kind, &d->f, err);

	return rc == 0 ? ws_err_temp(err, "%s: does not exist", s->spec) : rc < 0 ? -1 : 0;
}

/* Reads at the position until the buffer is full or the file ends. */
static ssize_t
read_some(struct ws_walsrc *s, uint64_t off, size_t n, struct ws_err *err)
{
	struct srcfile *d = s->impl;
	uint8_t *p = ws_walsrc_place(s, d->start + off, n);
	size_t have = 0;

	while (have < n) {
		ssize_t got = ws_segfile_read(d->f, off + have, p + have, n - have, err);

		if (got < 0)
			return -1;
		if (!got)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

static int
file_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err)
{
	struct srcfile *d = s->impl;
	size_t n = WS_CHUNK - (size_t)(d->off % WS_CHUNK);

	if (n > s->segsize - d->off)
		n = (size_t)(s->segsize - d->off);
	ssize_t got = n ? read_some(s, d->off, n, err) : 0;

	if (got < 0)
		return -1;
	if (got == 0) {
		s->at_end = true;
		if (d->off < s->segsize && d->kind != WS_SEG_PARTIAL)
			return ws_err_op(err, "wal_truncated", "%s: only %llu bytes, a segment has %u", s->spec,
			                 (unsigned long long)d->off, s->segsize);
		return 0;
	}
	ws_walsrc_give(s, d->start + d->off, d->tli, (size_t)got, c);
	d->off += (uint64_t)got;
	return 1;
}

static int
file_seek(struct ws_walsrc *s, struct ws_pos to, struct ws_err *err)
{
	struct srcfile *d = s->impl;

	if (to.lsn && (to.lsn < d->start || to.lsn > d->start + s->segsize))
		return ws_err_op(err, "wal_missing", "%s: does not hold " WS_LSN_FMT, s->spec, WS_LSN_ARG(to.lsn));
	d->off = to.lsn ? (to.lsn - d->start) & ~(uint64_t)(WS_PAGE_SIZE - 1) : 0;
	return reopen(s, err);
}

static void
file_close(struct ws_walsrc *s)
{
	struct srcfile *d = s->impl;

	ws_segfile_close(d->f);
	free(d);
}

static const struct ws_srcops ops = {file_next, file_seek, file_close};

int
ws_srcfile_open(struct ws_walsrc *s, struct ws_pos start, struct ws_err *err)
{
	struct srcfile *d = ws_calloc(1, sizeof *d);
	struct ws_page_header h;
	struct ws_walname name;

	s->ops = &ops;
	s->impl = d;
	d->kind = kind_of(s->spec);
	if (s->follow)
		return ws_err_usage(err, "%s: one segment cannot be followed, only a WAL directory", s->spec);
	if (reopen(s, err) != 0)
		return -1;
	ssize_t n = read_some(s, 0, WS_PAGE_HDR_LONG, err);
	const uint8_t *p = ws_walsrc_place(s, 0, WS_PAGE_HDR_LONG);

	if (n < 0 || ws_walsrc_identify(s, s->spec, p, (size_t)n, err) != 0)
		return -1;
	(void)ws_page_header_parse(p, (size_t)n, &h);
	d->tli = h.tli;
	d->start = h.pageaddr;
	/* A file of a segment's name must be that segment; its pages may be an ancestor's. */
	char *dup = ws_strdup(s->spec);
	bool named = ws_walname_parse(basename(dup), s->segsize, &name) == 0;

	free(dup);
	if (named && name.start != h.pageaddr)
		return ws_err_op(err, "not_wal", "%s: holds the WAL of " WS_LSN_FMT, s->spec, WS_LSN_ARG(h.pageaddr));
	if (named)
		d->tli = name.tli;
	if (d->start & (s->segsize - 1))
		return ws_err_op(err, "not_wal", "%s: does not start where a segment can", s->spec);
	return file_seek(s, start, err);
}
