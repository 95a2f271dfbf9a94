/* A value's text by its description, as PostgreSQL's output functions write it: array_out
 * (arrayfuncs.c), record_out (rowtypes.c), range_out, multirange_out. */
#include "oracle.h"

#include <ctype.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

static char *render(Desc *n, Datum d);

/* A part of a value on disk is never in another table. */
static void
check_inline(const Desc *n, Datum d)
{
	if (n->len == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(d)))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED), errmsg("a part of the value is not in it")));
}

/* ---- leaves ---- */

static char *
reg_text(Oid oid)
{
	return oid ? psprintf("%u", oid) : pstrdup("-");
}

/* acl.c: aclitemout, with oids for the roles' names. */
static char *
aclitem_text(const AclItem *a)
{
	StringInfoData s;

	initStringInfo(&s);
	if (a->ai_grantee != ACL_ID_PUBLIC)
		appendStringInfo(&s, "%u", a->ai_grantee);
	appendStringInfoChar(&s, '=');
	for (int i = 0; i < N_ACL_RIGHTS; i++) {
		if (ACLITEM_GET_PRIVS(*a) & (UINT64CONST(1) << i))
			appendStringInfoChar(&s, ACL_ALL_RIGHTS_STR[i]);
		if (ACLITEM_GET_GOPTIONS(*a) & (UINT64CONST(1) << i))
			appendStringInfoChar(&s, '*');
	}
	appendStringInfo(&s, "/%u", a->ai_grantor);
	return s.data;
}

static char *
base_text(Desc *n, Datum d)
{
	switch (n->leaf) {
	case LEAF_REG:
		return reg_text(DatumGetObjectId(d));
	case LEAF_ACLITEM:
		return aclitem_text((const AclItem *)DatumGetPointer(d));
	case LEAF_FUNCTION:
		break;
	}
	return DatumGetCString(FunctionCall1Coll(&n->fn, InvalidOid, d));
}

static char *
enum_text(const Desc *n, Datum d)
{
	Oid oid = DatumGetObjectId(d);

	for (int i = 0; i < n->n; i++)
		if (n->label_oids[i] == oid)
			return n->labels[i];
	ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					errmsg("enum value %u has no label", oid)));
}

/* ---- quoting ---- */

/* Appends s in quotes; escape is put before '"' and '\', 0: they are doubled. */
static void
append_quoted(StringInfo out, const char *s, char escape)
{
	appendStringInfoChar(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			appendStringInfoChar(out, escape ? escape : *s);
		appendStringInfoChar(out, *s);
	}
	appendStringInfoChar(out, '"');
}

/* record_out and range_out: quotes when empty or with one of `special` or a space. */
static void
append_part(StringInfo out, const char *s, const char *special)
{
	bool quote = *s == 0;

	for (const char *p = s; *p && !quote; p++)
		quote = *p == '"' || *p == '\\' || *p == ',' || strchr(special, *p) ||
				isspace((unsigned char)*p);
	if (quote)
		append_quoted(out, s, 0);
	else
		appendStringInfoString(out, s);
}

static void
append_element(StringInfo out, const char *s, char delim)
{
	bool quote = *s == 0 || pg_strcasecmp(s, "NULL") == 0;

	for (const char *p = s; *p && !quote; p++)
		quote = *p == delim || strchr("\"\\{} \t\n\r\v\f", *p);
	if (quote)
		append_quoted(out, s, '\\');
	else
		appendStringInfoString(out, s);
}

/* ---- arrays ---- */

struct elements {
	Desc *node;
	char delim;
	int ndim;
	const int *dims;
	const Datum *v;
	const bool *nulls;
	int at;
};

static void
append_dimension(StringInfo out, struct elements *e, int dim)
{
	appendStringInfoChar(out, '{');
	for (int i = 0; i < e->dims[dim]; i++) {
		if (i)
			appendStringInfoChar(out, e->delim);
		if (dim + 1 < e->ndim) {
			append_dimension(out, e, dim + 1);
			continue;
		}
		if (e->nulls[e->at])
			appendStringInfoString(out, "NULL");
		else {
			check_inline(e->node, e->v[e->at]);
			append_element(out, render(e->node, e->v[e->at]), e->delim);
		}
		e->at++;
	}
	appendStringInfoChar(out, '}');
}

static char *
array_text(Desc *n, Datum d)
{
	ArrayType *a = DatumGetArrayTypeP(d);
	Desc *k = n->kids[0];
	struct elements e = {.node = k, .delim = n->delim, .ndim = ARR_NDIM(a), .dims = ARR_DIMS(a)};
	StringInfoData out;
	Datum *v;
	bool *nulls;
	int count;

	if (e.ndim < 0 || e.ndim > MAXDIM)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("invalid number of dimensions: %d", e.ndim)));
	if (ArrayGetNItems(e.ndim, e.dims) == 0)
		return pstrdup("{}");
	deconstruct_array(a, ARR_ELEMTYPE(a), k->len, k->byval, k->align, &v, &nulls, &count);
	e.v = v;
	e.nulls = nulls;
	initStringInfo(&out);
	for (int i = 0; i < e.ndim; i++)
		if (ARR_LBOUND(a)[i] != 1) {
			for (int j = 0; j < e.ndim; j++)
				appendStringInfo(&out, "[%d:%d]", ARR_LBOUND(a)[j],
								 ARR_LBOUND(a)[j] + e.dims[j] - 1);
			appendStringInfoChar(&out, '=');
			break;
		}
	append_dimension(&out, &e, 0);
	return out.data;
}

/* ---- composites ---- */

/* heaptuple.c: heap_deform_tuple, which of late looks into the present catalogs for a row type. */
static void
deform(Desc *n, HeapTupleHeader h, uint32 size, int natts, Datum *v, bool *nulls)
{
	const char *start = (const char *)h + h->t_hoff;
	uint32 end = size - h->t_hoff, off = 0;
	bool hasnull = (h->t_infomask & HEAP_HASNULL) != 0;

	if (hasnull && SizeofHeapTupleHeader + (uint32)BITMAPLEN(natts) > h->t_hoff)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED), errmsg("a row whose header is too short")));
	for (int i = 0; i < natts; i++) {
		const Desc *k = n->kids[i];

		nulls[i] = hasnull && att_isnull(i, h->t_bits);
		if (nulls[i])
			continue;
		if (off < end)
			off = k->len == -1 ? att_align_pointer(off, k->align, -1, start + off)
							   : att_align_nominal(off, k->align);
		if (off >= end || (k->len > 0 && (uint32)k->len > end - off))
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a row that is too short")));
		v[i] = fetch_att(start + off, k->byval, k->len);
		off = att_addlength_pointer(off, k->len, start + off);
		if (off > end)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a row that is too short")));
	}
}

static void
append_attribute(StringInfo out, Desc *n, int i, Datum d, bool isnull, bool present)
{
	if (!present) {
		if (n->missing[i])
			append_part(out, n->missing[i], "()");
	} else if (!isnull) {
		check_inline(n->kids[i], d);
		append_part(out, render(n->kids[i], d), "()");
	}
}

static char *
composite_text(Desc *n, Datum d)
{
	HeapTupleHeader h = (HeapTupleHeader)DatumGetPointer(d);
	uint32 size = VARSIZE(h);
	Datum *v = palloc0(sizeof(Datum) * (n->n + 1));
	bool *nulls = palloc0(sizeof(bool) * (n->n + 1)), first = true;
	int natts = 0;
	StringInfoData out;

	if (size < SizeofHeapTupleHeader || h->t_hoff < SizeofHeapTupleHeader || h->t_hoff > size ||
		(natts = HeapTupleHeaderGetNatts(h)) > n->n)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("a row of %d attributes in a type of %d", natts, n->n)));
	deform(n, h, size, natts, v, nulls);
	initStringInfo(&out);
	appendStringInfoChar(&out, '(');
	for (int i = 0; i < n->n; i++) {
		if (n->kids[i]->kind == 'd')
			continue;
		if (!first)
			appendStringInfoChar(&out, ',');
		first = false;
		append_attribute(&out, n, i, v[i], nulls[i], i < natts);
	}
	appendStringInfoChar(&out, ')');
	return out.data;
}

/* ---- ranges ---- */

static void
append_range(StringInfo out, Desc *n, const RangeType *r)
{
	RangeBound lower, upper;
	bool empty;
	char flags = range_get_flags(r);

	range_deserialize(n->range, r, &lower, &upper, &empty);
	if (flags & RANGE_EMPTY) {
		appendStringInfoString(out, "empty");
		return;
	}
	appendStringInfoChar(out, flags & RANGE_LB_INC ? '[' : '(');
	if (RANGE_HAS_LBOUND(flags))
		append_part(out, render(n->kids[0], lower.val), "()[]");
	appendStringInfoChar(out, ',');
	if (RANGE_HAS_UBOUND(flags))
		append_part(out, render(n->kids[0], upper.val), "()[]");
	appendStringInfoChar(out, flags & RANGE_UB_INC ? ']' : ')');
}

static char *
range_text(Desc *n, Datum d)
{
	StringInfoData out;

	initStringInfo(&out);
	append_range(&out, n, DatumGetRangeTypeP(d));
	return out.data;
}

static char *
multirange_text(Desc *n, Datum d)
{
	RangeType **v;
	int32 count;
	StringInfoData out;

	initStringInfo(&out);
	multirange_deserialize(n->range, DatumGetMultirangeTypeP(d), &count, &v);
	appendStringInfoChar(&out, '{');
	for (int32 i = 0; i < count; i++) {
		if (i)
			appendStringInfoChar(&out, ',');
		append_range(&out, n, v[i]);
	}
	appendStringInfoChar(&out, '}');
	return out.data;
}

/* ---- all ---- */

static char *
render(Desc *n, Datum d)
{
	check_stack_depth();
	switch (n->kind) {
	case 'b':
		return base_text(n, d);
	case 'e':
		return enum_text(n, d);
	case 'a':
		return array_text(n, d);
	case 'c':
		return composite_text(n, PointerGetDatum(PG_DETOAST_DATUM(d)));
	case 'r':
		return range_text(n, d);
	default:
		return multirange_text(n, d);
	}
}

char *
render_bytes(Desc *n, const char *p, uint32 len)
{
	char *copy;

	if (n->len > 0 && len != (uint32)n->len)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("a value of %u bytes, its type has %d", len, n->len)));
	if (n->byval) {
		Datum aligned = 0;

		memcpy(&aligned, p, len);
		return render(n, fetch_att(&aligned, true, n->len));
	}
	if (len > MaxAllocSize - VARHDRSZ)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a value of %u bytes", len)));
	copy = palloc(len + VARHDRSZ);
	if (n->len == -1) {
		SET_VARSIZE(copy, len + VARHDRSZ);
		memcpy(copy + VARHDRSZ, p, len);
	} else {
		memcpy(copy, p, len);
		memset(copy + len, 0, VARHDRSZ);
	}
	return render(n, PointerGetDatum(copy));
}
