/* Columns that the oracle renders in the stream, when the load reads them as the server's text: the
 * two must be the same.  They are, but for what names objects of the catalogs, which the oracle
 * writes with oids; see ws-pgext(7). */
#include <string.h>

#include "copy-int.h"

#define MAX_DEPTH 64

static int by_type(struct copy *c, ws_oid oid, int depth, struct ws_err *err);

/* An output function of PostgreSQL's own that prints names: regclassout and its like, aclitemout.
 */
static bool
prints_names(const struct ws_type *t)
{
	size_t n = strlen(t->out_sym);

	if (*t->out_lib)
		return false;
	return !strcmp(t->out_sym, "aclitemout") ||
		   (n > 6 && !strncmp(t->out_sym, "reg", 3) && !strcmp(t->out_sym + n - 3, "out"));
}

static int
by_row(struct copy *c, ws_oid relid, int depth, struct ws_err *err)
{
	struct ws_rel *r = NULL;
	int rc = ws_cathist_rel(c->hist, c->o->db, relid, c->snap.lsn, &r, err);

	if (rc != 1)
		return rc;
	rc = 0;
	for (int i = 0; i < r->natts && rc == 0; i++)
		if (!(r->attrs[i].flags & WS_ATT_DROPPED))
			rc = by_type(c, r->attrs[i].typid, depth + 1, err);
	ws_rel_free(r);
	return rc;
}

/* 1: names are in its text, 0, -1. */
static int
by_type(struct copy *c, ws_oid oid, int depth, struct ws_err *err)
{
	struct ws_type *t = NULL;
	int rc = depth < MAX_DEPTH ? ws_cathist_type(c->hist, c->o->db, oid, c->snap.lsn, &t, err) : 0;

	if (rc != 1)
		return rc;
	if (prints_names(t))
		rc = 1;
	else if (t->typtype == 'c')
		rc = by_row(c, t->relid, depth, err);
	else if (t->typtype == 'd')
		rc = by_type(c, t->base, depth + 1, err);
	else if (t->typtype == 'r' || t->typtype == 'm')
		rc = by_type(c, t->subtype, depth + 1, err);
	else
		rc = t->elem ? by_type(c, t->elem, depth + 1, err) : 0;
	ws_type_free(t);
	return rc;
}

int
copy_check_raw(struct copy *c, const struct copy_table *t, struct ws_err *err)
{
	for (uint16_t i = 0; t->with_rows && i < t->desc->ncols; i++) {
		const struct ws_heapcol *col = &t->desc->cols[i];

		if (!col->raw || t->cols[i] != WS_COPY_VALUE)
			continue;
		int rc = by_type(c, col->attr->typid, 0, err);

		if (rc < 0)
			return -1;
		if (rc == 1)
			return ws_err_op(
				err, "type_unsupported",
				"table %s.%s column %s of type %s: the stream has oids where the server's text "
				"has names; exclude the column, or load the table with load=none",
				t->rel->nspname, t->rel->name, col->attr->name, col->attr->typname);
	}
	return 0;
}
