/* The change stream's events, in order; see lib/ch/emit.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"
#include "lib/ch/seq.h"
#include "ws/cluster.h"

/* ---- tables of rows ---- */

/* The rule for a relation's rows; those of a partitioned table are its leaves'. */
static int
rule_for(const struct ws_emit *e, const struct ws_c_relation *rel, struct ws_route *out,
		 bool *shared, struct ws_err *err)
{
	*shared = false;
	if (rel->relkind != 'r')
		return 0;
	return ws_routes_resolve_leaf(e->routes, e->dbname, rel->nspname, rel->name,
								  rel->root ? rel->root_nspname : NULL,
								  rel->root ? rel->root_name : NULL, out, shared, err);
}

static int
resolve(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	bool shared;

	ws_route_fini(&t->route);
	int rc = rule_for(e, rel, &t->route, &shared, err);

	if (rc < 0)
		return -1;
	if (!t->resolved && rc == 0 && !t->told && rel->relkind == 'r') {
		ws_info("table %s.%s is not replicated: no rule for it", rel->nspname, rel->name);
		t->told = true;
	}
	/* Another place: what is known of the old one is in e->known. */
	if (t->shared != shared || (shared && t->root != rel->root)) {
		if (t->open)
			ch_batch_seal(e, t->open);
		free(t->db);
		free(t->name);
		t->db = t->name = NULL;
		t->ready = false;
	}
	t->shared = shared;
	t->root = shared ? rel->root : 0;
	t->routed = rc == 1;
	t->resolved = true;
	t->resolved_as = rel;
	return emit_loaded_read(e, t->oid, &t->loaded, err);
}

/* Another name, or another root, may have another rule. */
static bool
same_rule(const struct ch_tab *t, const struct ws_c_relation *rel)
{
	const struct ws_c_relation *was = t->resolved_as;

	return t->resolved &&
		   (was == rel || (!strcmp(was->name, rel->name) && !strcmp(was->nspname, rel->nspname) &&
						   was->root == rel->root && !strcmp(was->root_name, rel->root_name) &&
						   !strcmp(was->root_nspname, rel->root_nspname)));
}

/* The table of a handle, bound to that shape; *t NULL when its changes are not wanted. */
int
emit_table_for(struct ws_emit *e, uint32_t handle, const struct ws_c_relation *rel,
			   enum ch_bind bind, struct ch_tab **out, struct ws_err *err)
{
	*out = NULL;
	if (handle >= e->nhandles) {
		uint32_t n = handle + 64;

		e->handles = ws_realloc(e->handles, n * sizeof *e->handles);
		memset(e->handles + e->nhandles, 0, (n - e->nhandles) * sizeof *e->handles);
		e->nhandles = n;
	}
	struct ch_tab *t = e->handles[handle];

	if (!t)
		t = e->handles[handle] = emit_tab(e, rel);
	if (!same_rule(t, rel) && (bind != BIND_NOT || !t->resolved) && resolve(e, t, rel, err) != 0)
		return -1;
	if (!t->routed)
		return 0;
	if (e->in_tx && t->loaded) {
		if (e->tx.end_lsn <= t->loaded)
			return 0;
		t->loaded = 0; /* positions only grow */
	}
	if (bind != BIND_NOT && (!t->ready || t->rel != rel)) {
		if (bind == BIND_SCHEMA && emit_tab_refused(t, rel)) {
			ws_info("table %s.%s has no usable key: its first row will stop this consumer",
					rel->nspname, rel->name);
			return 0;
		}
		if (emit_tab_ready(e, t, rel, err) != 0)
			return -1;
	}
	*out = t;
	return 0;
}

/* ---- events ---- */

static int
on_identity(struct ws_emit *e, const struct ws_c_identity *id, struct ws_err *err)
{
	struct ws_cluster c;
	int rc = ws_cluster_read(e->o.state, &c, err);

	if (rc < 0)
		return -1;
	if (rc == 1 && c.system_id != id->system_id)
		return ws_err_op(err, "system_id_changed",
						 "the stream is of system %" PRIu64 ", the state of %" PRIu64,
						 id->system_id, c.system_id);
	e->id = *id;
	e->tli = id->tli;
	free(e->dbname);
	e->dbname = ws_strdup(id->dbname);
	free(e->prefix);
	e->prefix = ws_asprintf("walshadow/%" PRIu64 "/%s/", id->system_id, e->o.consumer);
	if (strcmp(id->encoding, "UTF8") && strcmp(id->encoding, "SQL_ASCII"))
		ws_info("database %s is in %s: its texts are converted to UTF-8", id->dbname, id->encoding);
	return emit_start(e, err);
}

static int
on_begin(struct ws_emit *e, const struct ws_c_begin *b, struct ws_err *err)
{
	if (e->o.load)
		return ws_err_op(err, "not_a_snapshot", "--load: the stream has a transaction");
	e->tx = *b;
	e->in_tx = true;
	e->skip_tx = e->start_ack.lsn && b->end_lsn <= e->start_ack.lsn;
	if (e->skip_tx)
		return 0;
	if (emit_routes_at(e, b->end_lsn, err) != 0)
		return -1;
	if (b->end_lsn > e->seen)
		e->seen = b->end_lsn;
	return 0;
}

static int
on_row(struct ws_emit *e, const struct ws_change *c, struct ws_err *err)
{
	const struct ws_c_row *row = &c->row;
	struct ch_tab *t = row->handle < e->nhandles ? e->handles[row->handle] : NULL;

	if (e->skip_tx)
		return 0;
	if (!t || !t->ready || t->rel != row->rel || !t->routed || t->loaded || t->retype) {
		if (emit_table_for(e, row->handle, row->rel, BIND_ROWS, &t, err) != 0)
			return -1;
		if (!t) {
			*e->m_skipped += 1;
			return 0;
		}
		if (t->retype && emit_rebuild(e, t, err) != 0)
			return -1;
	}
	return emit_row(e, t, row, c->size, err);
}

static int
on_truncate(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r,
			struct ws_err *err)
{
	for (uint32_t i = 0; i < c->truncate.nhandles && !e->skip_tx; i++) {
		uint32_t h = c->truncate.handles[i];
		struct ch_tab *t;

		if (emit_table_for(e, h, ws_change_relation(r, h), BIND_ROWS, &t, err) != 0)
			return -1;
		if (t && t->retype && emit_rebuild(e, t, err) != 0)
			return -1;
		if (t && emit_truncate(e, t, c->truncate.ordinal, err) != 0)
			return -1;
	}
	return 0;
}

static int
on_replace(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r,
		   struct ws_err *err)
{
	struct ch_tab *t;

	if (e->skip_tx)
		return 0;
	if (emit_table_for(e, c->replace.handle, ws_change_relation(r, c->replace.handle), BIND_ROWS,
					   &t, err) != 0)
		return -1;
	if (!t)
		return 0;
	if (c->type == WS_C_REPLACE_BEGIN) {
		/* A history keeps what was: the mark, then the rows. */
		if (t->history)
			return emit_truncate(e, t, c->replace.ordinal, err);
		if (t->shared && (t->retype || emit_restaging(e, t)))
			return emit_restage(e, t, err);
		if (t->shared) {
			/* The new rows have higher versions than all that was: that goes when they are there.
			 */
			t->replace = (unsigned __int128)e->tx.commit_lsn << 64 | c->replace.ordinal;
			t->phase = CH_REPLACE;
			return 0;
		}
		t->phase = CH_REPLACE;
		return emit_stage(e, t, "a new content", err);
	}
	if (t->phase != CH_REPLACE)
		return 0;
	t->phase = CH_ROWS;
	return t->shared ? emit_leaf_empty(e, t, t->replace, err) : emit_exchange(e, t, err);
}

/* A table that was left out and is not any more, or that joins others as a partition, has rows that
 * nothing here has seen. */
static int
check_seen(struct ws_emit *e, const struct ch_tab *t, const struct ws_c_relation *was,
		   struct ws_err *err)
{
	struct ws_route r;
	bool shared;

	if (!was || t->loaded || emit_known_find(e, t->oid) || emit_known_leaf(e, t->oid))
		return 0;
	int rc = rule_for(e, was, &r, &shared, err);

	if (rc == 1)
		ws_route_fini(&r);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return ws_err_op(
		err, "table_unloaded",
		"table %s.%s is replicated from now on and was not as %s.%s: its rows have to be "
		"loaded first",
		t->resolved_as->nspname, t->resolved_as->name, was->nspname, was->name);
}

static int
on_schema(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r,
		  struct ws_err *err)
{
	uint32_t h = c->schema.what == 'D' ? c->schema.old_handle : c->schema.new_handle;
	const struct ws_c_relation *rel = ws_change_relation(r, h);
	struct ch_tab *t;

	bool gone = c->schema.what == 'D';

	if (e->skip_tx || !rel)
		return 0;
	if (gone && (rel->root || rel->relkind == 'p'))
		emit_leaf_dropped(e, rel);
	if (emit_table_for(e, h, rel, BIND_NOT, &t, err) != 0)
		return -1;
	if (gone)
		return t && !t->shared ? emit_drop(e, t, err) : 0;
	struct ch_tab *any = e->handles[h];

	if (!same_rule(any, rel) && resolve(e, any, rel, err) != 0)
		return -1;
	if (any->routed && c->schema.what == 'A' &&
		check_seen(e, any, ws_change_relation(r, c->schema.old_handle), err) != 0)
		return -1;
	/* A leaf that is left out from here on takes its rows along. */
	struct ch_known *k = any->routed ? NULL : emit_known_leaf(e, rel->oid);

	if (k && emit_retire(e, any, k, err) != 0)
		return -1;
	if (emit_table_for(e, h, rel, BIND_SCHEMA, &t, err) != 0)
		return -1;
	const struct ws_c_relation *before = ws_change_relation(r, c->schema.old_handle);

	return t && c->schema.what == 'A' && before ? ch_check_text(e, t, before, rel, err) : 0;
}

/* Everything at or below p has been taken in. */
static int
complete(struct ws_emit *e, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	if (lsn > e->last.lsn)
		e->last = (struct ws_pos){tli, lsn};
	return emit_ack(e, false, err);
}

static int
on_commit(struct ws_emit *e, const struct ws_c_commit *c, struct ws_err *err)
{
	for (struct ch_tab *t = e->tabs; t; t = t->hh.next)
		if (t->phase == CH_REPLACE)
			return ws_err_op(err, "change_malformed",
							 "xid %u: a replacement of table %s.%s has no end", c->xid, t->db,
							 t->name);
	if (emit_leaves_commit(e, err) != 0)
		return -1;
	e->in_tx = e->skip_tx = false;
	e->tli = c->tli;
	return complete(e, c->tli, c->end_lsn, err);
}

static int
on_end(struct ws_emit *e, struct ws_pos end, struct ws_err *err)
{
	e->ended = true;
	if (e->o.load)
		return emit_load_ended(e, end, err);
	if (complete(e, end.tli ? end.tli : e->tli, end.lsn, err) != 0)
		return -1;
	return emit_flush(e, err);
}

/* With --sequences: one outside a transaction is a transaction of its own.  What is acknowledged
 * moves with what follows. */
static int
on_sequence(struct ws_emit *e, const struct ws_c_sequence *s, struct ws_err *err)
{
	struct emit_seq q;
	bool alone = !e->in_tx;

	if (!e->o.sequences || e->o.load)
		return 0;
	emit_seq_row(s, &q);
	if ((alone && on_begin(e, &q.begin, err) != 0) || on_row(e, &q.row, err) != 0)
		return -1;
	if (alone)
		e->in_tx = e->skip_tx = false;
	return 0;
}


int
emit_event(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r,
		   struct ws_err *err)
{
	switch (c->type) {
	case WS_C_ROW:
		return on_row(e, c, err);
	case WS_C_IDENTITY:
		return on_identity(e, &c->identity, err);
	case WS_C_BEGIN:
		return on_begin(e, &c->begin, err);
	case WS_C_COMMIT:
		return on_commit(e, &c->commit, err);
	case WS_C_PROGRESS:
		return complete(e, c->progress.tli, c->progress.lsn, err);
	case WS_C_TRUNCATE:
		return on_truncate(e, c, r, err);
	case WS_C_REPLACE_BEGIN:
	case WS_C_REPLACE_END:
		return on_replace(e, c, r, err);
	case WS_C_SCHEMA:
		return on_schema(e, c, r, err);
	case WS_C_TIMELINE:
		e->tli = c->timeline.new_tli;
		return 0;
	case WS_C_SNAPSHOT_BEGIN:
		return emit_snapshot_begin(e, &c->snapshot, r, err);
	case WS_C_SNAPSHOT_END:
		return emit_snapshot_end(e, &c->snapshot, r, err);
	case WS_C_END:
		return on_end(e, c->end, err);
	case WS_C_RELATION:
	case WS_C_MESSAGE:
		break;
	case WS_C_SEQUENCE:
		return on_sequence(e, &c->sequence, err);
	}
	return 0;
}
