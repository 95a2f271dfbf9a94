/* Which types are decoded, and how: the one table, and the way to it through domains, enums and
 * arrays. */
#include <string.h>

#include "heap-int.h"

#define MAX_DOMAINS 64 /* domains over domains; a longer chain is a loop */

static const struct ws_codec codecs[] = {
#define WS_DISKTYPE(oid, array, name, kind, len, align, read) \
	{oid, array, name, WS_K_##kind, len, (align)-1, ws_read_##read},
#include "disktypes.def"
#undef WS_DISKTYPE
};

const struct ws_codec ws_codec_enum = {0, 0, "enum", WS_K_OTHER, 4, 3, ws_read_enum};
const struct ws_codec ws_codec_array = {0, 0, "array", WS_K_ARRAY, -1, 3, ws_read_array};

static const struct ws_codec *
builtin(ws_oid oid)
{
	for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
		if (codecs[i].typid == oid)
			return &codecs[i];
	return NULL;
}

static const struct ws_codec *
builtin_array(ws_oid oid)
{
	for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
		if (codecs[i].arrayid == oid)
			return &codecs[i];
	return NULL;
}

/* Follows domains down to *oid, *t its type (NULL when built in here or unknown). */
static int
resolve(ws_oid *oid, const struct ws_type **t, ws_type_fn lookup, void *arg, struct ws_err *err)
{
	for (int i = 0; i < MAX_DOMAINS; i++) {
		*t = NULL;
		if (builtin(*oid) || builtin_array(*oid))
			return 0;
		int rc = lookup ? lookup(arg, *oid, t, err) : 0;

		if (rc < 0)
			return -1;
		if (rc == 0)
			*t = NULL;
		if (!*t || (*t)->typtype != 'd')
			return 0;
		*oid = (*t)->base;
	}
	*t = NULL;
	return 0;
}

/* A codec for something that is no array; NULL when it is not decoded. */
static const struct ws_codec *
scalar(ws_oid oid, const struct ws_type *t, struct ws_heaptype *out)
{
	if (t && t->typtype == 'e') {
		out->enum_ = t;
		return &ws_codec_enum;
	}
	return builtin(oid);
}

/* int2vector and oidvector are arrays with a text form of their own. */
static bool
is_array(const struct ws_type *t)
{
	return t->elem && t->typtype == 'b' && t->len == -1 && !*t->out_lib && !strcmp(t->out_sym, "array_out");
}

int
ws_heaptype_of(ws_oid typid, ws_type_fn lookup, void *arg, struct ws_heaptype *out, struct ws_err *err)
{
	const struct ws_type *t;

	memset(out, 0, sizeof *out);
	out->kind = WS_K_UNSUPPORTED;
	if (resolve(&typid, &t, lookup, arg, err) != 0)
		return -1;
	out->codec = scalar(typid, t, out);
	if (out->codec) {
		out->kind = out->codec->kind;
		return 0;
	}
	out->elem_codec = builtin_array(typid);
	if (!out->elem_codec && t && is_array(t)) {
		typid = t->elem;
		if (resolve(&typid, &t, lookup, arg, err) != 0)
			return -1;
		out->elem_codec = scalar(typid, t, out);
	}
	if (out->elem_codec) {
		out->codec = &ws_codec_array;
		out->kind = WS_K_ARRAY;
		out->elem = out->elem_codec->kind;
	}
	return 0;
}
