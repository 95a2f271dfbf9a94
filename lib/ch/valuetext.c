/* Values whose text changes without a row being written: a label is renamed, a composite type gets or
 * loses attributes; see lib/ch/emit.h. */
#include <string.h>

#include "lib/ch/emit.h"

static bool
has_label(const struct ws_c_column *c, const char *label)
{
	for (uint16_t i = 0; i < c->nlabels; i++)
		if (!strcmp(c->labels[i], label))
			return true;
	return false;
}

/* Each label that was there must still be: those that came change no value that is there. */
static bool
same_text(const struct ws_c_column *before, const struct ws_c_column *after)
{
	for (uint16_t i = 0; i < before->nlabels; i++)
		if (!has_label(after, before->labels[i]))
			return false;
	return true;
}

int
ch_check_text(const struct ws_emit *e, const struct ch_tab *t,
			  const struct ws_c_relation *before, const struct ws_c_relation *after, struct ws_err *err)
{
	bool key[WS_CHANGE_MAX_COLS], has = ch_rel_key(after, key);

	/* A log keeps what it was told. */
	if (t->route.deletes == WS_DEL_HISTORY || (!has && t->route.keyless != WS_KEYLESS_ALL))
		return 0;
	for (uint16_t i = 0; i < after->ncols; i++) {
		const struct ws_c_column *b = ch_rel_column(before, after->cols[i].attnum);
		bool in_key = !has || key[i];
		struct ws_route_column rc;

		if (!b || b->typid != after->cols[i].typid || same_text(b, &after->cols[i]))
			continue;
		ch_column_name(e, t, after, &after->cols[i], &rc);
		if (!in_key && (rc.excluded || t->route.text_change == WS_TEXT_KEEP))
			continue;
		return ws_err_op(
			err, in_key ? "key_text_changed" : "text_changed",
			"table %s.%s: the type of %scolumn %s writes its values in another way now "
			"(a label or an attribute changed): rows that are there would %s; load the table "
			"again",
			after->nspname, after->name, in_key ? "key " : "", after->cols[i].name,
			in_key ? "stay beside new ones" : "keep the old text");
	}
	return 0;
}
