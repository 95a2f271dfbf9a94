/* Values of types that are not decoded, for the oracle: which columns have them, and where in the
 * rows that were put their bytes are; see ws/oracle.h. */
#include <stdlib.h>
#include <string.h>

#include "decoder.h"

/* ---- descriptions ---- */

struct lookup {
	struct ws_shapes *s;
	struct ws_shape *sh;
};

static int
find_type(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err)
{
	struct lookup *l = arg;

	return ws_shapes_type(l->s, l->sh, oid, t, err);
}

static int
find_rel(void *arg, ws_oid oid, const struct ws_rel **r, struct ws_err *err)
{
	struct lookup *l = arg;
	struct ws_shape *sh = l->sh;
	struct ws_rel *rel = NULL;

	for (size_t i = 0; i < sh->nparts; i++)
		if (sh->parts[i]->oid == oid) {
			*r = sh->parts[i];
			return 1;
		}
	int rc = ws_cathist_rel(l->s->cat, l->s->db, oid, sh->as_of, &rel, err);

	if (rc != 1)
		return rc;
	sh->parts = ws_realloc(sh->parts, (sh->nparts + 1) * sizeof *sh->parts);
	sh->parts[sh->nparts++] = rel;
	*r = rel;
	return 1;
}

int
ws_shapes_raw(struct ws_shapes *s, struct ws_shape *sh, struct ws_err *err)
{
	struct lookup l = {s, sh};
	const struct ws_oracle_lookup look = {find_type, find_rel, &l};
	struct ws_buf b = {0};
	int rc = 0;

	free(sh->raw);
	sh->raw = ws_calloc(sh->desc->ncols, sizeof *sh->raw);
	sh->nraw = 0;
	for (uint16_t i = 0; i < sh->desc->ncols && rc == 0; i++) {
		struct ws_heapcol *c = &sh->desc->cols[i];

		if (!c->raw) {
			if (c->type.kind == WS_K_UNSUPPORTED)
				sh->raw[sh->nraw++] = (struct ws_rawcol){i, WS_RAW_BYTES};
			continue;
		}
		b.len = 0;
		rc = ws_oracle_describe(c->attr->typid, &look, &b, err);
		if (rc != 0 && !strcmp(err->reason, "unknown_type")) {
			/* The row type of a temporary table: a type like those that there is no oracle for. */
			rc = 0;
			err->msg[0] = 0;
			c->raw = false;
			c->type.kind = WS_K_UNSUPPORTED;
			sh->raw[sh->nraw++] = (struct ws_rawcol){i, WS_RAW_BYTES};
		} else if (rc != 0) {
			ws_err_prefix(err, "%s.%s, column %s", sh->rel->nspname, sh->rel->name, c->attr->name);
		} else {
			sh->raw[sh->nraw++] =
				(struct ws_rawcol){i, ws_oracle_type(s->oracle, b.data, b.len, c->attr->typname)};
		}
	}
	ws_buf_free(&b);
	return rc;
}

/* ---- rows ---- */

/* The tuple's values from *at on, as the change stream has them (ws-change(5)). */
static void
tuple(struct ws_decoder *d, const struct ws_shape *sh, size_t frame, size_t *at,
	  const struct ws_value *v)
{
	uint16_t ncols = sh->desc->ncols, next = 0;

	*at += ((size_t)ncols * 2 + 7) / 8;
	for (uint16_t i = 0; i < ncols; i++) {
		bool raw = next < sh->nraw && sh->raw[next].col == i;

		next = (uint16_t)(next + raw);
		if (v[i].state != WS_V_VALUE)
			continue;
		/* Of kind OTHER is what was text already: a missing value. */
		if (raw && v[i].kind == WS_K_UNSUPPORTED) {
			if (sh->raw[next - 1].type != WS_RAW_BYTES)
				ws_oracle_defer(d->o.oracle, frame, *at, sh->raw[next - 1].type, d->row_lsn);
			else
				d->st.unsupported++;
		}
		int width = ws_kind_width(v[i].kind);

		*at += width < 0 ? 4 + (size_t)v[i].len : (size_t)width;
	}
}

void
ws_row_raw(struct ws_decoder *d, const struct ws_shape *sh, size_t frame,
		   const struct ws_value *new_, const struct ws_value *old)
{
	size_t at = frame + WS_CHANGE_ROW_HEAD;

	if (new_)
		tuple(d, sh, frame, &at, new_);
	if (old)
		tuple(d, sh, frame, &at, old);
}
