/* Compression; see codec.h.  A member may be several frames or gzip members one after the other, as
 * WAL-G and `cat` make them. */
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "codec.h"
#include "ws/lsn.h"

#define OUT_SIZE 131072u

struct codec {
	enum ws_comp comp;
	struct sink out;
	uint64_t left; /* of what may come out */
	const char *what;
	bool open;  /* inside a frame: the bytes must not end here */
	bool begun; /* some byte came */
	z_stream gz;
	LZ4F_dctx *lz4;
	ZSTD_DStream *zst;
	uint8_t *buf;
};

struct codec *
codec_new(enum ws_comp comp, const struct sink *out, uint64_t max, const char *what,
		  struct ws_err *err)
{
	struct codec *c;
	bool ok = true;

	if (comp == WS_COMP_FOREIGN) {
		ws_err_op(err, "compression_unsupported",
				  "%s: this compression cannot be read here, only gz, lz4 and zst", what);
		return NULL;
	}
	c = ws_calloc(1, sizeof *c);
	c->comp = comp;
	c->out = *out;
	c->left = max;
	c->what = what;
	c->buf = ws_malloc(OUT_SIZE);
	if (comp == WS_COMP_GZ)
		ok = inflateInit2(&c->gz, 15 + 16) == Z_OK;
	else if (comp == WS_COMP_LZ4)
		ok = !LZ4F_isError(LZ4F_createDecompressionContext(&c->lz4, LZ4F_VERSION));
	else if (comp == WS_COMP_ZST)
		ok = (c->zst = ZSTD_createDStream()) != NULL;
	if (!ok) {
		codec_free(c);
		ws_err_temp(err, "%s: cannot start decompression", what);
		return NULL;
	}
	return c;
}

void
codec_free(struct codec *c)
{
	if (!c)
		return;
	if (c->comp == WS_COMP_GZ)
		inflateEnd(&c->gz);
	LZ4F_freeDecompressionContext(c->lz4);
	ZSTD_freeDStream(c->zst);
	free(c->buf);
	free(c);
}

static int
damaged(const struct codec *c, const char *how, struct ws_err *err)
{
	return ws_err_op(err, "archive_corrupt", "%s: %s", c->what, how);
}

static int
put(struct codec *c, const uint8_t *p, size_t n, struct ws_err *err)
{
	if (n > c->left)
		return damaged(c, "more bytes than such a file can have", err);
	c->left -= n;
	return n ? c->out.data(c->out.arg, p, n, err) : 0;
}

/* Each takes *used bytes of p and gives *got; what is wrong, or NULL. */
static const char *
step_gz(struct codec *c, const uint8_t *p, size_t n, size_t *used, size_t *got)
{
	c->gz.next_in = (uint8_t *)p;
	c->gz.avail_in = n > 1u << 30 ? 1u << 30 : (unsigned)n;
	unsigned in = c->gz.avail_in;

	c->gz.next_out = c->buf;
	c->gz.avail_out = OUT_SIZE;
	int rc = inflate(&c->gz, Z_NO_FLUSH);

	*used = in - c->gz.avail_in;
	*got = OUT_SIZE - c->gz.avail_out;
	c->open = rc != Z_STREAM_END;
	if (rc == Z_STREAM_END)
		rc = inflateReset(&c->gz);
	if (rc == Z_OK || rc == Z_BUF_ERROR)
		return NULL;
	return c->gz.msg ? c->gz.msg : "damaged gzip data";
}

static const char *
step_lz4(struct codec *c, const uint8_t *p, size_t n, size_t *used, size_t *got)
{
	*used = n;
	*got = OUT_SIZE;
	size_t rc = LZ4F_decompress(c->lz4, c->buf, got, p, used, NULL);

	if (LZ4F_isError(rc))
		return LZ4F_getErrorName(rc);
	c->open = rc != 0;
	return NULL;
}

static const char *
step_zst(struct codec *c, const uint8_t *p, size_t n, size_t *used, size_t *got)
{
	ZSTD_outBuffer o = {c->buf, OUT_SIZE, 0};
	ZSTD_inBuffer i = {p, n, 0};
	size_t rc = ZSTD_decompressStream(c->zst, &o, &i);

	*used = i.pos;
	*got = o.pos;
	if (ZSTD_isError(rc))
		return ZSTD_getErrorName(rc);
	c->open = rc != 0;
	return NULL;
}

int
codec_feed(struct codec *c, const uint8_t *p, size_t n, struct ws_err *err)
{
	c->begun |= n > 0;
	if (c->comp == WS_COMP_NONE)
		return put(c, p, n, err);
	for (;;) {
		size_t used, got;
		const char *wrong = c->comp == WS_COMP_GZ    ? step_gz(c, p, n, &used, &got)
							: c->comp == WS_COMP_LZ4 ? step_lz4(c, p, n, &used, &got)
													 : step_zst(c, p, n, &used, &got);
		if (wrong)
			return damaged(c, wrong, err);
		int rc = put(c, c->buf, got, err);

		if (rc != 0)
			return rc;
		p += used;
		n -= used;
		/* With the output full there may be more of it without input. */
		if (n == 0 && (got < OUT_SIZE || !c->open))
			return 0;
		if (used == 0 && got == 0)
			return damaged(c, "compressed data that leads nowhere", err);
	}
}

int
codec_finish(struct codec *c, struct ws_err *err)
{
	if (c->comp != WS_COMP_NONE && (c->open || !c->begun))
		return damaged(c, "compressed data ends too early", err);
	return 0;
}

void
codec_levels(enum ws_comp comp, int *min, int *max)
{
	*min = comp == WS_COMP_NONE ? 0 : 1;
	*max = comp == WS_COMP_GZ    ? 9
		   : comp == WS_COMP_LZ4 ? LZ4F_compressionLevel_max()
		   : comp == WS_COMP_ZST ? ZSTD_maxCLevel()
								 : 0;
}

static int
compress_gz(int level, const uint8_t *p, size_t n, struct ws_buf *out)
{
	z_stream z = {0};

	if (deflateInit2(&z, level ? level : Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
					 Z_DEFAULT_STRATEGY) != Z_OK)
		return -1;
	size_t room = deflateBound(&z, n);

	ws_buf_reserve(out, room);
	z.next_in = (uint8_t *)p;
	z.avail_in = (unsigned)n; /* no member is longer than a segment, 1 GB */
	z.next_out = out->data + out->len;
	z.avail_out = (unsigned)room;
	int rc = deflate(&z, Z_FINISH);

	out->len += z.total_out;
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : -1;
}

static int
compress_lz4(int level, const uint8_t *p, size_t n, struct ws_buf *out)
{
	LZ4F_preferences_t prefs = {.compressionLevel = level};

	prefs.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
	prefs.frameInfo.contentSize = n;
	size_t room = LZ4F_compressFrameBound(n, &prefs);

	ws_buf_reserve(out, room);
	size_t got = LZ4F_compressFrame(out->data + out->len, room, p, n, &prefs);

	if (LZ4F_isError(got))
		return -1;
	out->len += got;
	return 0;
}

static int
compress_zst(int level, const uint8_t *p, size_t n, struct ws_buf *out)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(n), got;

	if (!z)
		return -1;
	ws_buf_reserve(out, room);
	ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level ? level : ZSTD_CLEVEL_DEFAULT);
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	got = ZSTD_compress2(z, out->data + out->len, room, p, n);
	ZSTD_freeCCtx(z);
	if (ZSTD_isError(got))
		return -1;
	out->len += got;
	return 0;
}

int
codec_compress(enum ws_comp comp, int level, const uint8_t *p, size_t n, struct ws_buf *out,
			   struct ws_err *err)
{
	int rc = comp == WS_COMP_GZ    ? compress_gz(level, p, n, out)
			 : comp == WS_COMP_LZ4 ? compress_lz4(level, p, n, out)
								   : compress_zst(level, p, n, out);

	return rc == 0 ? 0 : ws_err_temp(err, "cannot compress %zu bytes", n);
}
