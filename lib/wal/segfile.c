/* One segment file; see segfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "segfile.h"
#include "ws/mem.h"

#define IN_SIZE 65536u

struct ws_segfile {
	char *path;
	enum ws_seg_kind kind;
	int fd;
	/* compressed only */
	uint64_t pos; /* of the next byte that comes out */
	gzFile gz;
	LZ4F_dctx *lz4;
	ZSTD_DStream *zst;
	bool frame_open; /* inside a compressed frame: the file must not end here */
	uint8_t *in;
	size_t in_at, in_len;
};

int
ws_segfile_open(const char *path, enum ws_seg_kind kind, struct ws_segfile **out, struct ws_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*out = NULL;
	if (fd < 0)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", path);
	struct ws_segfile *f = ws_calloc(1, sizeof *f);

	f->path = ws_strdup(path);
	f->kind = kind;
	f->fd = fd;
	if (kind == WS_SEG_GZ && (f->gz = gzdopen(fd, "rb")))
		f->fd = -1;
	else if (kind == WS_SEG_LZ4 && LZ4F_isError(LZ4F_createDecompressionContext(&f->lz4, LZ4F_VERSION)))
		f->lz4 = NULL;
	else if (kind == WS_SEG_ZST)
		f->zst = ZSTD_createDStream();
	if (kind == WS_SEG_LZ4 || kind == WS_SEG_ZST)
		f->in = ws_malloc(IN_SIZE);
	if ((kind == WS_SEG_GZ && !f->gz) || (kind == WS_SEG_LZ4 && !f->lz4) || (kind == WS_SEG_ZST && !f->zst)) {
		ws_segfile_close(f);
		return ws_err_temp(err, "%s: cannot start decompression", path);
	}
	*out = f;
	return 1;
}

void
ws_segfile_close(struct ws_segfile *f)
{
	if (!f)
		return;
	if (f->gz)
		gzclose(f->gz);
	if (f->lz4)
		LZ4F_freeDecompressionContext(f->lz4);
	ZSTD_freeDStream(f->zst);
	if (f->fd >= 0)
		close(f->fd);
	free(f->in);
	free(f->path);
	free(f);
}

static int
damaged(const struct ws_segfile *f, const char *what, struct ws_err *err)
{
	return ws_err_op(err, "archive_corrupt", "%s: %s", f->path, what);
}

static ssize_t
read_gz(struct ws_segfile *f, uint8_t *p, size_t n, struct ws_err *err)
{
	int code, got = gzread(f->gz, p, (unsigned)n);

	if (got >= 0 && gzdirect(f->gz))
		return damaged(f, "not in gzip format", err);
	const char *what = gzerror(f->gz, &code);

	if (got < 0 || (got == 0 && code == Z_BUF_ERROR))
		return damaged(f, code == Z_BUF_ERROR ? "compressed data ends too early" : what, err);
	return got;
}

/* Fills the input when it is empty.  1 there is some, 0 end of file, -1. */
static int
fill(struct ws_segfile *f, struct ws_err *err)
{
	ssize_t n;

	if (f->in_at < f->in_len)
		return 1;
	do
		n = read(f->fd, f->in, IN_SIZE);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return ws_err_sys(err, "%s: cannot read", f->path);
	f->in_at = 0;
	f->in_len = (size_t)n;
	return n > 0;
}

/* One step of LZ4 or Zstandard: how many bytes came out, or what is wrong. */
static const char *
step(struct ws_segfile *f, uint8_t *p, size_t *n)
{
	size_t rc, used = f->in_len - f->in_at;

	if (f->kind == WS_SEG_LZ4) {
		rc = LZ4F_decompress(f->lz4, p, n, f->in + f->in_at, &used, NULL);
		if (LZ4F_isError(rc))
			return LZ4F_getErrorName(rc);
	} else {
		ZSTD_outBuffer o = {p, *n, 0};
		ZSTD_inBuffer i = {f->in + f->in_at, used, 0};

		rc = ZSTD_decompressStream(f->zst, &o, &i);
		if (ZSTD_isError(rc))
			return ZSTD_getErrorName(rc);
		*n = o.pos;
		used = i.pos;
	}
	f->in_at += used;
	f->frame_open = rc != 0;
	return NULL;
}

static ssize_t
read_frames(struct ws_segfile *f, uint8_t *p, size_t n, struct ws_err *err)
{
	for (;;) {
		int rc = fill(f, err);
		size_t got = n;

		if (rc < 0)
			return -1;
		if (rc == 0 && !f->frame_open)
			return 0;
		/* At the end of the file the decoder may still hold output. */
		const char *wrong = step(f, p, &got);

		if (wrong)
			return damaged(f, wrong, err);
		if (got)
			return (ssize_t)got;
		if (rc == 0)
			return damaged(f, "compressed data ends too early", err);
	}
}

static ssize_t
read_next(struct ws_segfile *f, uint8_t *p, size_t n, struct ws_err *err)
{
	ssize_t got = f->kind == WS_SEG_GZ ? read_gz(f, p, n, err) : read_frames(f, p, n, err);

	if (got > 0)
		f->pos += (uint64_t)got;
	return got;
}

ssize_t
ws_segfile_read(struct ws_segfile *f, uint64_t off, uint8_t *p, size_t n, struct ws_err *err)
{
	ssize_t got;

	if (f->kind == WS_SEG_WHOLE || f->kind == WS_SEG_PARTIAL) {
		do
			got = pread(f->fd, p, n, (off_t)off);
		while (got < 0 && errno == EINTR);
		return got < 0 ? ws_err_sys(err, "%s: cannot read", f->path) : got;
	}
	while (f->pos < off) {
		uint64_t skip = off - f->pos;

		got = read_next(f, p, skip < n ? (size_t)skip : n, err);
		if (got <= 0)
			return got;
	}
	return read_next(f, p, n, err);
}

const char *
ws_segfile_path(const struct ws_segfile *f)
{
	return f->path;
}

enum ws_seg_kind
ws_segfile_kind(const struct ws_segfile *f)
{
	return f->kind;
}
