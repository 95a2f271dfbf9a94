/* Varlenas: plain, short, compressed in line, external (varatt.h, access/toast_internals.h). */
#include <lz4.h>

#include "ws/pglz.h"
#include "heap-int.h"

#define VARTAG_ONDISK 18
#define EXT_SIZE      18u /* header byte, tag, varatt_external */

static int
parse_external(const uint8_t *p, size_t avail, struct ws_varlena *v)
{
	if (avail < EXT_SIZE || p[1] != VARTAG_ONDISK)
		return -1;
	uint32_t rawsize = ws_le32(p + 2), info = ws_le32(p + 6);

	v->kind = WS_VAR_EXTERNAL;
	v->data = p + 2;
	v->len = EXT_SIZE - 2;
	v->total = EXT_SIZE;
	v->ext.extsize = info & 0x3fffffff;
	v->ext.valueid = ws_le32(p + 10);
	v->ext.toastrelid = ws_le32(p + 14);
	if (rawsize < 4 || rawsize - 4 > WS_VALUE_MAX)
		return -1;
	v->ext.rawsize = rawsize - 4;
	/* VARATT_EXTERNAL_IS_COMPRESSED: stored smaller than raw. */
	if (v->ext.extsize >= v->ext.rawsize)
		v->ext.method = WS_COMPRESS_NONE;
	else if (info >> 30 <= 1)
		v->ext.method = info >> 30 ? WS_COMPRESS_LZ4 : WS_COMPRESS_PGLZ;
	else
		return -1;
	return v->ext.extsize > v->ext.rawsize ? -1 : 0;
}

int
ws_varlena_parse(const uint8_t *p, size_t avail, struct ws_varlena *v)
{
	if (avail < 1)
		return -1;
	if (*p == 1)
		return parse_external(p, avail, v);
	if (*p & 1) {
		v->kind = WS_VAR_PLAIN;
		v->total = *p >> 1;
		v->data = p + 1;
		if (v->total < 1 || v->total > avail)
			return -1;
		v->len = v->total - 1;
		return 0;
	}
	if (avail < 4)
		return -1;
	v->total = ws_le32(p) >> 2;
	if (v->total < 4 || v->total > avail)
		return -1;
	v->kind = *p & 2 ? WS_VAR_COMPRESSED : WS_VAR_PLAIN;
	v->data = p + 4;
	v->len = v->total - 4;
	return v->kind == WS_VAR_COMPRESSED && v->len < 4 ? -1 : 0;
}

/* p: rawsize (30 bits) and method (2 bits), then the compressed bytes. */
static int
decompress(const uint8_t *p, uint32_t n, struct ws_arena *a, const uint8_t **data, uint32_t *len,
           struct ws_err *err)
{
	uint32_t info = n >= 4 ? ws_le32(p) : UINT32_MAX;
	uint32_t rawsize = info & 0x3fffffff, method = info >> 30;

	/* Neither method reaches 1:256, so no length costs memory that is not there. */
	if (n < 4 || rawsize / 256 > n)
		return ws_err_op(err, "corrupt_tuple", "compressed value: %u bytes cannot be %u", n, rawsize);
	uint8_t *raw = ws_arena_alloc(a, rawsize);
	int ok;

	if (method == 0)
		ok = ws_pglz_decompress(p + 4, n - 4, raw, rawsize) == 0;
	else if (method == 1)
		ok = LZ4_decompress_safe((const char *)p + 4, (char *)raw, (int)(n - 4), (int)rawsize) ==
		     (int)rawsize;
	else
		ok = 0;
	if (!ok)
		return ws_err_op(err, "corrupt_tuple", "compressed value: %u bytes, method %u: corrupt", n, method);
	*data = raw;
	*len = rawsize;
	return 1;
}

int
ws_varlena_detoast(const struct ws_varlena *v, const struct ws_heapenv *env, const uint8_t **data,
                   uint32_t *len, struct ws_err *err)
{
	const uint8_t *stored;
	int rc;

	if (v->kind == WS_VAR_PLAIN) {
		*data = v->data;
		*len = v->len;
		return 1;
	}
	if (v->kind == WS_VAR_COMPRESSED)
		return decompress(v->data, v->len, env->arena, data, len, err);
	if (!env->toast)
		return 0;
	rc = env->toast(env->toast_arg, &v->ext, env->arena, &stored, err);
	if (rc != 1)
		return rc;
	if (v->ext.method == WS_COMPRESS_NONE) {
		*data = stored;
		*len = v->ext.extsize;
		return 1;
	}
	rc = decompress(stored, v->ext.extsize, env->arena, data, len, err);
	if (rc == 1 && *len != v->ext.rawsize)
		return ws_err_op(err, "corrupt_tuple", "TOAST value %u of relation %u: %u bytes instead of %u",
		                 v->ext.valueid, v->ext.toastrelid, *len, v->ext.rawsize);
	return rc;
}
