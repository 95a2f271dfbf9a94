/* What the destination says about its tables, and which of them are this consumer's; see
 * lib/ch/emit.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

void
ch_desc_fini(struct ch_desc *d)
{
	ws_arena_free(&d->arena);
	memset(d, 0, sizeof *d);
}

struct ch_dcol *
ch_desc_find(const struct ch_desc *d, const char *name)
{
	for (int i = 0; i < d->n; i++)
		if (!strcmp(d->cols[i].name, name))
			return &d->cols[i];
	return NULL;
}

/* Next field of an answer, kept in the arena; "" past the end. */
static char *
field(struct ws_arena *a, char **at)
{
	bool eol;
	char *s = ch_tsv_next(at, &eol);

	return ws_arena_strdup(a, s ? s : "");
}

int
emit_describe(struct ws_emit *e, const char *db, const char *name, struct ch_desc *d,
			  struct ws_err *err)
{
	struct ws_buf qdb = {0}, qname = {0}, out = {0};
	int rc = -1, cap = 0;

	memset(d, 0, sizeof *d);
	ch_quote_text(&qdb, db, strlen(db));
	ch_quote_text(&qname, name, strlen(name));
	ws_buf_cstr(&qdb);
	ws_buf_cstr(&qname);
	if (emit_sql(e, &out, err,
				 "SELECT engine, engine_full, sorting_key, toString(uuid), comment FROM "
				 "system.tables WHERE database = %s AND name = %s",
				 (char *)qdb.data, (char *)qname.data) != 0)
		goto out;
	if (out.len) {
		char *at = (char *)out.data;

		d->exists = true;
		d->engine = field(&d->arena, &at);
		d->engine_full = field(&d->arena, &at);
		d->sorting_key = field(&d->arena, &at);
		d->uuid = field(&d->arena, &at);
		d->comment = field(&d->arena, &at);
		out.len = 0;
		if (emit_sql(e, &out, err,
					 "SELECT name, type, default_kind, is_in_sorting_key, is_in_partition_key FROM "
					 "system.columns "
					 "WHERE database = %s AND table = %s ORDER BY position",
					 (char *)qdb.data, (char *)qname.data) != 0)
			goto out;
		for (at = (char *)out.data; *at;) {
			if (d->n == cap) {
				struct ch_dcol *old = d->cols;

				cap = cap ? cap * 2 : 32;
				d->cols = ws_arena_alloc(&d->arena, (size_t)cap * sizeof *old);
				if (d->n)
					memcpy(d->cols, old, (size_t)d->n * sizeof *old);
			}
			struct ch_dcol *c = &d->cols[d->n++];

			c->name = field(&d->arena, &at);
			c->type = field(&d->arena, &at);
			c->kind = field(&d->arena, &at);
			c->key = *field(&d->arena, &at) == '1';
			c->part = *field(&d->arena, &at) == '1';
		}
	}
	rc = 0;
out:
	ws_buf_free(&qdb);
	ws_buf_free(&qname);
	ws_buf_free(&out);
	if (rc != 0)
		ch_desc_fini(d);
	return rc;
}

/* ---- which tables are this consumer's ---- */

static void
known_free(struct ch_known *k)
{
	ch_note_fini(&k->note);
	free(k->db);
	free(k->name);
	free(k);
}

void
emit_known_forget(struct ws_emit *e, struct ch_known *k)
{
	for (struct ch_known **p = &e->known; *p; p = &(*p)->next)
		if (*p == k) {
			*p = k->next;
			known_free(k);
			return;
		}
}

struct ch_known *
emit_known_add(struct ws_emit *e, const char *db, const char *name, ws_oid oid,
			   enum ch_note_state state, bool shared)
{
	struct ch_known *k = ws_calloc(1, sizeof *k);

	k->db = ws_strdup(db);
	k->name = ws_strdup(name);
	k->shared = shared;
	k->note.oid = oid;
	k->note.state = state;
	k->next = e->known;
	e->known = k;
	return k;
}

bool
emit_note_ours(const struct ws_emit *e, const struct ch_note *n)
{
	return n->system_id == e->id.system_id && n->db == e->id.db &&
		   !strcmp(n->consumer, e->o.consumer);
}

/* All lines of a table's comment that are ours. */
static void
known_of(struct ws_emit *e, const char *db, const char *name, const char *comment)
{
	struct ch_note note;
	bool shared = false;

	for (const char *at = comment; ch_note_next(&at, &note) == 1; ch_note_fini(&note)) {
		shared |= note.state == CH_NOTE_ROOT;
		if (emit_note_ours(e, &note))
			emit_known_add(e, db, name, note.oid, note.state, shared);
	}
}

/* Every table whose comment says that it is this consumer's. */
int
emit_known_read(struct ws_emit *e, struct ws_err *err)
{
	struct ws_buf out = {0};
	bool eol;

	while (e->known)
		emit_known_forget(e, e->known);
	if (!e->dbname)
		return 0;
	if (emit_sql(e, &out, err,
				 "SELECT database, name, comment FROM system.tables WHERE position(comment, "
				 "'walshadow=1 system=%" PRIu64
				 " database=%u ') > 0 AND NOT startsWith(name, 'ws_staging_')",
				 e->id.system_id, e->id.db) != 0) {
		ws_buf_free(&out);
		return -1;
	}
	for (char *at = out.data ? (char *)out.data : (char[1]){0}; *at;) {
		char *db = ch_tsv_next(&at, &eol), *name = ch_tsv_next(&at, &eol),
			 *comment = ch_tsv_next(&at, &eol);

		if (comment)
			known_of(e, db, name, comment);
	}
	ws_buf_free(&out);
	return 0;
}

struct ch_known *
emit_known_find(struct ws_emit *e, ws_oid oid)
{
	for (struct ch_known *k = e->known; k; k = k->next)
		if (k->note.oid == oid && !k->shared && k->note.state != CH_NOTE_LEFT)
			return k;
	return NULL;
}

struct ch_known *
emit_known_root(struct ws_emit *e, ws_oid oid)
{
	for (struct ch_known *k = e->known; k; k = k->next)
		if (k->note.oid == oid && k->note.state == CH_NOTE_ROOT)
			return k;
	return NULL;
}

struct ch_known *
emit_known_leaf(struct ws_emit *e, ws_oid oid)
{
	for (struct ch_known *k = e->known; k; k = k->next)
		if (k->note.oid == oid && k->shared && k->note.state != CH_NOTE_ROOT)
			return k;
	return NULL;
}
