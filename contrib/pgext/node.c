/* Descriptions of types, as they were when the value was written; see oracle.h.
 *
 * Nothing here reads a catalog: what PostgreSQL's own array_out, record_out, range_out and enum_out
 * would look up comes with the description. */
#include "oracle.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "pgstat.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

static const char *const reg_outputs[] = {"regprocout",     "regprocedureout",  "regoperout",
										  "regoperatorout", "regclassout",      "regcollationout",
										  "regtypeout",     "regroleout",       "regnamespaceout",
										  "regconfigout",   "regdictionaryout", "regdatabaseout"};

/* What they print is in the present catalogs: a description of their parts is needed instead. */
static const char *const container_outputs[] = {"array_out",      "record_out", "range_out",
												"multirange_out", "enum_out",   "anyarray_out",
												"anyenum_out"};

static bool
is_one_of(const char *s, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, v[i]))
			return true;
	return false;
}

static bool
read_align(Cursor *c, Desc *n)
{
	n->align = (char)cur_u8(c);
	return n->align && strchr("csid", n->align);
}

static bool
is_byval_length(int16 len)
{
	return len == 1 || len == 2 || len == 4 || len == 8;
}

static bool
read_base(Cursor *c, Desc *n)
{
	bool ok;

	n->oid = cur_u32(c);
	n->len = (int16)cur_u16(c);
	n->byval = cur_u8(c) != 0;
	ok = read_align(c, n);
	n->lib = cur_str(c);
	n->sym = cur_str(c);
	if (!*n->lib && is_one_of(n->sym, reg_outputs, lengthof(reg_outputs)))
		n->leaf = LEAF_REG;
	else if (!*n->lib && !strcmp(n->sym, "aclitemout"))
		n->leaf = LEAF_ACLITEM;
	if (n->byval && !is_byval_length(n->len))
		ok = false;
	if (n->leaf == LEAF_REG && (n->len != 4 || !n->byval))
		ok = false;
	if (n->leaf == LEAF_ACLITEM && (n->len != 16 || n->byval))
		ok = false;
	return ok && n->len != 0 && n->len >= -2;
}

static bool
read_enum(Cursor *c, Desc *n)
{
	uint32 count = cur_u32(c);

	n->len = 4;
	n->byval = true;
	n->align = 'i';
	if ((size_t)(c->end - c->p) / 8 < count)
		return false;
	n->n = (int)count;
	n->label_oids = palloc(sizeof(Oid) * (count + 1));
	n->labels = palloc(sizeof(char *) * (count + 1));
	for (uint32 i = 0; i < count && !c->bad; i++) {
		n->label_oids[i] = cur_u32(c);
		n->labels[i] = cur_str(c);
	}
	return true;
}

/* The only part of an array or a range. */
static bool
read_part(Cursor *c, Desc *n, int depth)
{
	n->n = 1;
	n->kids = palloc0(sizeof(Desc *));
	n->kids[0] = node_read(c, depth + 1);
	return n->kids[0] != NULL;
}

static bool
read_array(Cursor *c, Desc *n, int depth)
{
	n->len = -1;
	if (!read_align(c, n))
		return false;
	n->delim = (char)cur_u8(c);
	return n->delim && read_part(c, n, depth);
}

/* An attribute: 0 dropped (length, by value, alignment), 1 live, 2 live with a missing value. */
static bool
read_attribute(Cursor *c, Desc *n, int i, int depth)
{
	uint8 state = cur_u8(c);
	Desc *k;

	if (state == 0) {
		k = n->kids[i] = palloc0(sizeof *k);
		k->kind = 'd';
		k->len = (int16)cur_u16(c);
		k->byval = cur_u8(c) != 0;
		return read_align(c, k) && k->len != 0 && k->len >= -2 &&
			   (!k->byval || is_byval_length(k->len));
	}
	if (state > 2)
		return false;
	if (state == 2)
		n->missing[i] = cur_str(c);
	n->kids[i] = node_read(c, depth + 1);
	return n->kids[i] != NULL;
}

static bool
read_composite(Cursor *c, Desc *n, int depth)
{
	int count = cur_u16(c);

	n->len = -1;
	n->align = 'd';
	if (count > MaxTupleAttributeNumber || c->end - c->p < count)
		return false;
	n->n = count;
	n->kids = palloc0(sizeof(Desc *) * (count + 1));
	n->missing = palloc0(sizeof(char *) * (count + 1));
	for (int i = 0; i < count; i++)
		if (!read_attribute(c, n, i, depth))
			return false;
	return true;
}

/* A range or a multirange: what the functions of rangetypes.c and multirangetypes.c read of their
 * type cache entry. */
static bool
read_range(Cursor *c, Desc *n, int depth)
{
	TypeCacheEntry *sub;

	n->len = -1;
	if (!read_align(c, n))
		return false;
	n->oid = cur_u32(c);
	if (!read_part(c, n, depth))
		return false;
	sub = palloc0(sizeof *sub);
	sub->type_id = n->kids[0]->oid;
	sub->typlen = n->kids[0]->len;
	sub->typbyval = n->kids[0]->byval;
	sub->typalign = n->kids[0]->align;
	sub->typstorage = sub->typlen == -1 ? TYPSTORAGE_EXTENDED : TYPSTORAGE_PLAIN;
	n->range = palloc0(sizeof *n->range);
	n->range->type_id = n->oid;
	n->range->typlen = -1;
	n->range->typalign = n->align;
	n->range->rngelemtype = sub;
	return true;
}

Desc *
node_read(Cursor *c, int depth)
{
	Desc *n = palloc0(sizeof *n);
	bool ok = false;

	if (depth > ORACLE_MAX_DEPTH) {
		c->bad = true;
		return NULL;
	}
	n->kind = (char)cur_u8(c);
	switch (n->kind) {
	case 'b':
		ok = read_base(c, n);
		break;
	case 'e':
		ok = read_enum(c, n);
		break;
	case 'a':
		ok = read_array(c, n, depth);
		break;
	case 'c':
		ok = read_composite(c, n, depth);
		break;
	case 'r':
	case 'm':
		ok = read_range(c, n, depth);
		break;
	}
	if (!ok || c->bad) {
		c->bad = true;
		return NULL;
	}
	return n;
}

/* ---- functions ---- */

static void
find_c(Desc *n)
{
	void *handle;
	const Pg_finfo_record *info;
	PGFunction f = load_external_function(n->lib, n->sym, true, &handle);

	info = fetch_finfo_record(handle, n->sym);
	if (info->api_version != 1)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("function \"%s\" has an unknown calling convention", n->sym)));
	n->fn.fn_addr = f;
	n->fn.fn_oid = InvalidOid;
	n->fn.fn_nargs = 1;
	n->fn.fn_strict = true;
	n->fn.fn_retset = false;
	n->fn.fn_stats = TRACK_FUNC_ALL;
}

static void
find_internal(Desc *n)
{
	Oid f = fmgr_internal_function(n->sym);

	if (!OidIsValid(f))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("output function \"%.200s\" is neither in C nor built in", n->sym)));
	/* Built in: found without the catalogs. */
	fmgr_info_cxt(f, &n->fn, CurrentMemoryContext);
}

static void
prepare_base(Desc *n)
{
	MemoryContext keep = GetMemoryChunkContext(n), old;

	if (n->ready || n->leaf != LEAF_FUNCTION)
		return;
	if (!*n->lib && is_one_of(n->sym, container_outputs, lengthof(container_outputs)))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("type %u is printed by %s, but its parts were not described", n->oid,
							   n->sym)));
	old = MemoryContextSwitchTo(keep);
	if (*n->lib)
		find_c(n);
	else
		find_internal(n);
	n->fn.fn_mcxt = keep;
	n->fn.fn_extra = NULL;
	n->fn.fn_expr = NULL;
	n->ready = true;
	MemoryContextSwitchTo(old);
}

void
node_prepare(Desc *n)
{
	if (n->kind == 'b')
		prepare_base(n);
	for (int i = 0; n->kids && i < n->n; i++)
		if (n->kids[i])
			node_prepare(n->kids[i]);
}

void
node_forget(Desc *n)
{
	n->fn.fn_extra = NULL;
	for (int i = 0; n->kids && i < n->n; i++)
		if (n->kids[i])
			node_forget(n->kids[i]);
}
