/* What reads the values of a type: through domains, arrays, ranges and composites down to what the
 * table of codecs has. */
#include <stdlib.h>
#include <string.h>

#include "heap-int.h"

#define MAX_DOMAINS 64    /* domains over domains; a longer chain is a loop */
#define MAX_PARTS   20000 /* of a type, all levels together */

struct build {
	ws_type_fn lookup;
	void *arg;
	struct ws_arena *arena;
	struct ws_err *err;
	int parts;
};

static bool
is_reg(ws_oid oid)
{
	static const ws_oid regs[] = {24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191};

	for (size_t i = 0; i < sizeof regs / sizeof regs[0]; i++)
		if (regs[i] == oid)
			return true;
	return false;
}

static uint8_t
mask_of(char align)
{
	return align == 'c' ? 0 : align == 's' ? 1 : align == 'i' ? 3 : 7;
}

/* Follows domains down to *oid, *t its type (NULL when built in here or unknown). */
static int
resolve(struct build *b, ws_oid *oid, const struct ws_type **t)
{
	for (int i = 0; i < MAX_DOMAINS; i++) {
		*t = NULL;
		if (ws_codec_find(*oid) || ws_codec_find_array(*oid))
			return 0;
		int rc = b->lookup ? b->lookup(b->arg, *oid, t, b->err) : 0;

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

/* int2vector and oidvector are arrays with a text form of their own. */
static bool
is_array(const struct ws_type *t)
{
	return t->elem && t->typtype == 'b' && t->len == -1 && !*t->out_lib &&
		   !strcmp(t->out_sym, "array_out");
}

static int build(struct build *b, ws_oid typid, int depth, struct ws_heaptype *out);

/* n parts, each by its oid (0: none, a dropped attribute).  1 all are decoded, 0 not, -1 error.
 * Within a value only PostgreSQL's own text will do, which for regclass and its like is a name. */
static int
build_parts(struct build *b, const ws_oid *oids, int n, int depth, bool regs,
			struct ws_heaptype *out)
{
	struct ws_heaptype *sub = ws_arena_zalloc(b->arena, (size_t)(n > 0 ? n : 1) * sizeof *sub);

	if (depth + 1 >= WS_TYPE_DEPTH || (b->parts += n) > MAX_PARTS)
		return 0;
	for (int i = 0; i < n; i++) {
		if (!oids[i])
			continue;
		if (build(b, oids[i], depth + 1, &sub[i]) != 0)
			return -1;
		if (!sub[i].codec || (sub[i].reg && !regs))
			return 0;
	}
	out->sub = sub;
	return 1;
}

static int
build_array(struct build *b, ws_oid elem, int depth, struct ws_heaptype *out)
{
	int rc = build_parts(b, &elem, 1, depth, depth == 0, out);

	if (rc != 1)
		return rc;
	const struct ws_heaptype *e = out->sub;

	out->enum_ = e->enum_;
	out->reg = e->reg;
	out->len = -1;
	out->mask = e->mask > 3 ? 7 : 3;
	out->delim = e->delim;
	out->codec = e->delim == ',' ? &ws_codec_array : &ws_codec_array_text;
	/* An array of a domain over an array holds texts. */
	out->elem = out->codec == &ws_codec_array_text ? 0
				: e->kind == WS_K_ARRAY            ? WS_K_OTHER
												   : e->kind;
	return 1;
}

static int
build_row(struct build *b, const struct ws_rel *row, int depth, struct ws_heaptype *out)
{
	ws_oid *oids = ws_calloc((size_t)row->natts + 1, sizeof *oids);
	int rc;

	for (int i = 0; i < row->natts; i++)
		oids[i] = row->attrs[i].flags & WS_ATT_DROPPED ? 0 : row->attrs[i].typid;
	rc = build_parts(b, oids, row->natts, depth, false, out);
	free(oids);
	/* A type whose length is not what this program knows is not decoded. */
	for (int i = 0; rc == 1 && i < row->natts; i++)
		if (out->sub[i].codec && out->sub[i].len != row->attrs[i].len)
			rc = 0;
	out->row = row;
	return rc;
}

/* Ranges, multiranges and composites by their parts.  1 decoded, 0 not, -1 error. */
static int
build_whole(struct build *b, const struct ws_type *t, int depth, struct ws_heaptype *out)
{
	int rc = 0;

	if (t->typtype == 'r' && (rc = build_parts(b, &t->subtype, 1, depth, false, out)) == 1)
		out->codec = &ws_codec_range;
	if (t->typtype == 'm' && (rc = build_parts(b, &t->subtype, 1, depth, false, out)) == 1)
		out->codec = &ws_codec_multirange;
	if (out->codec == &ws_codec_multirange && out->sub->codec != &ws_codec_range)
		out->codec = NULL;
	if (t->typtype == 'c' && t->row && (rc = build_row(b, t->row, depth, out)) == 1)
		out->codec = &ws_codec_row;
	return rc < 0 ? -1 : out->codec != NULL;
}

/* 1 out->codec is set, 0 not decoded, -1. */
static int
build_any(struct build *b, ws_oid typid, int depth, struct ws_heaptype *out)
{
	const struct ws_codec *elem;
	const struct ws_type *t;

	if (resolve(b, &typid, &t) != 0)
		return -1;
	out->delim = typid == 603 ? ';' : ',';
	out->reg = is_reg(typid);
	out->codec = ws_codec_find(typid);
	if (!out->codec && (elem = ws_codec_find_array(typid)))
		return build_array(b, elem->typid, depth, out);
	if (!out->codec && t && is_array(t))
		return build_array(b, t->elem, depth, out);
	if (!out->codec && t && t->typtype == 'e') {
		out->enum_ = t;
		out->codec = &ws_codec_enum;
	}
	if (out->codec) {
		out->len = out->codec->len;
		out->mask = out->codec->mask;
		return 1;
	}
	if (!t)
		return 0;
	out->len = t->len;
	out->mask = mask_of(t->align);
	out->delim = t->delim;
	if (t->typtype == 'b' && (out->codec = ws_codec_find_out(t)))
		return 1;
	return build_whole(b, t, depth, out);
}

static int
build(struct build *b, ws_oid typid, int depth, struct ws_heaptype *out)
{
	int rc = build_any(b, typid, depth, out);

	if (rc < 0)
		return -1;
	if (rc == 0)
		memset(out, 0, sizeof *out);
	out->kind = out->codec ? out->codec->kind : WS_K_UNSUPPORTED;
	return 0;
}

int
ws_heaptype_of(ws_oid typid, ws_type_fn lookup, void *arg, struct ws_arena *a,
			   struct ws_heaptype *out, struct ws_err *err)
{
	struct build b = {lookup, arg, a, err, 0};

	memset(out, 0, sizeof *out);
	return build(&b, typid, 0, out);
}
