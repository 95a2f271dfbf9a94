/* Content encodings of a request's body, each with a checksum of the content: the server would
 * insert a flipped bit without one.  See lib/ch/http.h. */
#include <lz4frame.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/ch/http.h"

#define SLICE ((size_t)1 << 20)

static int
compress_lz4(const struct ch_piece *pieces, int n, struct ws_buf *out, struct ws_err *err)
{
	LZ4F_preferences_t prefs = {.frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled,
											  .blockSizeID = LZ4F_max1MB}};
	LZ4F_cctx *ctx;
	size_t k = LZ4F_createCompressionContext(&ctx, LZ4F_VERSION);

	if (LZ4F_isError(k))
		return ws_err_temp(err, "lz4: %s", LZ4F_getErrorName(k));
	ws_buf_reserve(out, LZ4F_HEADER_SIZE_MAX);
	k = LZ4F_compressBegin(ctx, out->data, out->cap, &prefs);
	for (int i = 0; i < n && !LZ4F_isError(k); i++) {
		for (size_t at = 0; at < pieces[i].n && !LZ4F_isError(k); at += SLICE) {
			size_t len = pieces[i].n - at < SLICE ? pieces[i].n - at : SLICE;

			out->len += k;
			ws_buf_reserve(out, LZ4F_compressBound(len, &prefs));
			k = LZ4F_compressUpdate(ctx, out->data + out->len, out->cap - out->len,
									(const char *)pieces[i].p + at, len, NULL);
		}
	}
	if (!LZ4F_isError(k)) {
		out->len += k;
		ws_buf_reserve(out, LZ4F_compressBound(0, &prefs));
		k = LZ4F_compressEnd(ctx, out->data + out->len, out->cap - out->len, NULL);
	}
	LZ4F_freeCompressionContext(ctx);
	if (LZ4F_isError(k))
		return ws_err_temp(err, "lz4: %s", LZ4F_getErrorName(k));
	out->len += k;
	return 0;
}

static int
compress_zstd(const struct ch_piece *pieces, int n, struct ws_buf *out, struct ws_err *err)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t k = 0;

	if (!ctx)
		return ws_err_temp(err, "zstd: no memory");
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
	for (int i = 0; i <= n; i++) {
		ZSTD_inBuffer in = {i < n ? pieces[i].p : "", i < n ? pieces[i].n : 0, 0};

		do {
			ws_buf_reserve(out, SLICE);
			ZSTD_outBuffer o = {out->data + out->len, out->cap - out->len, 0};

			k = ZSTD_compressStream2(ctx, &o, &in, i < n ? ZSTD_e_continue : ZSTD_e_end);
			out->len += o.pos;
		} while (!ZSTD_isError(k) && (in.pos < in.size || (i == n && k > 0)));
		if (ZSTD_isError(k))
			break;
	}
	ZSTD_freeCCtx(ctx);
	return ZSTD_isError(k) ? ws_err_temp(err, "zstd: %s", ZSTD_getErrorName(k)) : 0;
}

static int
compress_gzip(const struct ch_piece *pieces, int n, struct ws_buf *out, struct ws_err *err)
{
	z_stream z = {0};
	int rc = Z_OK;

	if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return ws_err_temp(err, "gzip: no memory");
	for (int i = 0; i <= n && rc == Z_OK; i++) {
		size_t at = 0;

		do {
			size_t len = i < n ? pieces[i].n - at : 0;

			len = len < SLICE ? len : SLICE;
			z.next_in = i < n ? (Bytef *)(uintptr_t)pieces[i].p + at : NULL;
			z.avail_in = (uInt)len;
			at += len;
			do {
				ws_buf_reserve(out, SLICE);
				z.next_out = out->data + out->len;
				z.avail_out = (uInt)SLICE;
				rc = deflate(&z, i < n ? Z_NO_FLUSH : Z_FINISH);
				out->len += SLICE - z.avail_out;
			} while (rc == Z_OK && z.avail_out == 0);
			if (rc == Z_BUF_ERROR)
				rc = Z_OK; /* nothing to do for an empty piece */
		} while (i < n && at < pieces[i].n && rc == Z_OK);
	}
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : ws_err_temp(err, "gzip: error %d", rc);
}

int
ch_compress(enum ch_encoding e, const struct ch_piece *pieces, int n, struct ws_buf *out,
			struct ws_err *err)
{
	switch (e) {
	case CH_ENC_LZ4:
		return compress_lz4(pieces, n, out, err);
	case CH_ENC_ZSTD:
		return compress_zstd(pieces, n, out, err);
	case CH_ENC_GZIP:
		return compress_gzip(pieces, n, out, err);
	case CH_ENC_NONE:
		break;
	}
	for (int i = 0; i < n; i++)
		ws_buf_put(out, pieces[i].p, pieces[i].n);
	return 0;
}
