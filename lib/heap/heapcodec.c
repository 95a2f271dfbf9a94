/* The types that are decoded, and how: the one table. */
#include <string.h>

#include "heap-int.h"

static const struct ws_codec codecs[] = {
#define WS_DISKTYPE(oid, array, name, kind, len, align, read)                                      \
	{oid, array, name, WS_K_##kind, len, (align)-1, ws_read_##read},
#define WS_OUTTYPE(lib, out, kind, len, align, read)
#include "disktypes.def"
#undef WS_DISKTYPE
#undef WS_OUTTYPE
};

static const struct outtype {
	const char *lib;
	struct ws_codec codec; /* named after the output function */
} outtypes[] = {
#define WS_DISKTYPE(oid, array, name, kind, len, align, read)
#define WS_OUTTYPE(lib, out, kind, len, align, read)                                               \
	{lib, {0, 0, out, WS_K_##kind, len, (align)-1, ws_read_##read}},
#include "disktypes.def"
#undef WS_DISKTYPE
#undef WS_OUTTYPE
};

const struct ws_codec ws_codec_enum = {0, 0, "enum", WS_K_OTHER, 4, 3, ws_read_enum};
const struct ws_codec ws_codec_array = {0, 0, "array", WS_K_ARRAY, -1, 3, ws_read_array};
const struct ws_codec ws_codec_array_text = {0, 0, "array", WS_K_OTHER, -1, 3, ws_read_array_text};
const struct ws_codec ws_codec_range = {0, 0, "range", WS_K_OTHER, -1, 3, ws_read_range};
const struct ws_codec ws_codec_multirange = {0,  0, "multirange",      WS_K_OTHER,
											 -1, 3, ws_read_multirange};
const struct ws_codec ws_codec_row = {0, 0, "composite", WS_K_OTHER, -1, 7, ws_read_row};

const struct ws_codec *
ws_codec_find(ws_oid oid)
{
	for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
		if (codecs[i].typid == oid)
			return &codecs[i];
	return NULL;
}

const struct ws_codec *
ws_codec_find_array(ws_oid oid)
{
	for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
		if (codecs[i].arrayid && codecs[i].arrayid == oid)
			return &codecs[i];
	return NULL;
}

/* A library is $libdir/NAME, or wherever else somebody put the same file. */
static bool
is_lib(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;
	size_t n = strlen(name);

	return !strncmp(file, name, n) && (!file[n] || (n && !strcmp(file + n, ".so")));
}

const struct ws_codec *
ws_codec_find_out(const struct ws_type *t)
{
	for (size_t i = 0; i < sizeof outtypes / sizeof outtypes[0]; i++) {
		const struct outtype *o = &outtypes[i];

		if (t->len == o->codec.len && is_lib(t->out_lib, o->lib) &&
			!strcmp(t->out_sym, o->codec.name))
			return &o->codec;
	}
	return NULL;
}
