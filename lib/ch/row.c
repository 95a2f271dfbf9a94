/* One row change into the rows that the destination gets; see ws-routes(5), deletes. */
#include <math.h>
#include <string.h>

#include "lib/ch/emit.h"

static bool
same_double(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Equal for the destination's sort order: floats by number (-0 is 0), the rest by bytes. */
static bool
same_value(const struct ws_value *a, const struct ws_value *b)
{
	if (a->state != b->state)
		return false;
	if (a->state != WS_V_VALUE)
		return true;
	int w = ws_kind_width(a->kind);

	if (a->kind == WS_K_FLOAT4)
		return same_double(a->f4, b->f4);
	if (a->kind == WS_K_FLOAT8)
		return same_double(a->f8, b->f8);
	if (a->kind == WS_K_UUID)
		return !memcmp(a->p, b->p, 16);
	if (w >= 0)
		return a->i == b->i;
	return a->len == b->len && (a->len == 0 || !memcmp(a->p, b->p, a->len));
}

/* Whether the update moves the row to another sort key. */
static bool
key_moved(const struct ch_tab *t, const struct ws_c_row *row)
{
	for (int i = 0; i < t->layout->n; i++) {
		int s = t->src[i];

		if (t->layout->cols[i].key && s >= 0 && row->old[s].state != WS_V_ABSENT &&
			row->new_[s].state != WS_V_ABSENT && !same_value(&row->old[s], &row->new_[s]))
			return true;
	}
	return false;
}

/* A key column that the old tuple does not have would become a default: some other row's key. */
static int
check_old_key(const struct ch_tab *t, const struct ws_c_row *row, struct ws_err *err)
{
	for (int i = 0; i < t->layout->n; i++) {
		int s = t->src[i];

		if (t->layout->cols[i].key && s >= 0 && row->old[s].state == WS_V_ABSENT)
			return ws_err_op(err, "old_key_missing",
							 "table %s.%s: the old value of sort key column %s is not in the WAL",
							 t->db, t->name, t->layout->cols[i].name);
	}
	return 0;
}

static int
history_row(struct ws_emit *e, struct ch_tab *t, const struct ws_c_row *row, size_t size,
			struct ws_err *err)
{
	if (row->op == 'D')
		return ch_batch_row(e, t, 'D', row->old, NULL, row->ordinal, true, false, size, err);
	if (row->op == 'U' && row->old && key_moved(t, row) &&
		ch_batch_row(e, t, 'D', row->old, NULL, row->ordinal, true, false, size, err) != 0)
		return -1;
	return ch_batch_row(e, t, row->ordinal ? row->op : 'S', row->new_, row->old, row->ordinal,
						false, false, size, err);
}

int
emit_row(struct ws_emit *e, struct ch_tab *t, const struct ws_c_row *row, size_t size,
		 struct ws_err *err)
{
	enum ws_deletes d = t->route.deletes;
	bool soft = d == WS_DEL_SOFT;

	if (row->invalid)
		return ws_err_op(err, "invalid_encoding",
						 "table %s.%s column %s: a text is not valid in the database's encoding, or "
						 "has no form in UTF-8 that is its own",
						 row->rel->nspname, row->rel->name, row->invalid);

	if (row->op == 'D' && !row->old && d != WS_DEL_DISCARD)
		return ws_err_op(err, "old_key_missing", "table %s.%s: a DELETE without the old row", t->db,
						 t->name);
	if (t->history)
		return history_row(e, t, row, size, err);
	if (t->append) {
		if (row->op != 'I')
			return ws_err_op(
				err, "append_only_changed",
				"table %s.%s: %s on a table without a key that is routed keyless=append", t->db,
				t->name, row->op == 'U' ? "UPDATE" : "DELETE");
		return ch_batch_row(e, t, 'I', row->new_, NULL, row->ordinal, false, false, size, err);
	}
	if (row->op == 'D') {
		if (d == WS_DEL_DISCARD)
			return 0;
		if (check_old_key(t, row, err) != 0)
			return -1;
		return ch_batch_row(e, t, 'D', row->old, NULL, row->ordinal, true, !soft, size, err);
	}
	/* The old key's tombstone comes first: where both turn out to be one key, the later row of a
	 * block wins. */
	if (row->op == 'U' && row->old && d != WS_DEL_DISCARD && key_moved(t, row)) {
		if (check_old_key(t, row, err) != 0 ||
			ch_batch_row(e, t, 'D', row->old, NULL, row->ordinal, true, !soft, size, err) != 0)
			return -1;
	}
	return ch_batch_row(e, t, row->op, row->new_, row->old, row->ordinal, false, false, size, err);
}
