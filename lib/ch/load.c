/* The initial load: snapshots in the stream, each table into its staging table; see lib/ch/emit.h.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/ch/emit.h"

int
emit_snapshot_begin(struct ws_emit *e, const struct ws_c_snapshot *s,
					const struct ws_change_reader *r, struct ws_err *err)
{
	const struct ws_c_relation *rel = ws_change_relation(r, s->handle);
	struct ch_tab *t;
	struct ch_desc d;

	if (!e->o.load)
		return ws_err_op(err, "not_a_stream", "a snapshot in the stream: it needs --load");
	if (s->lsn > e->load_hi)
		e->load_hi = s->lsn;
	if (!e->load_lo || s->lsn < e->load_lo)
		e->load_lo = s->lsn;
	e->load_tli = s->tli;
	/* What an earlier load reached counts no more. */
	if (emit_table_for(e, s->handle, rel, BIND_NOT, &t, err) != 0)
		return -1;
	if (!t)
		return 0;
	/* Begun again: what the first attempt sent has to be there before its table goes. */
	if (t->phase == CH_LOAD && emit_flush(e, err) != 0)
		return -1;
	t->phase = CH_ROWS;
	t->snap = *s;
	t->loadseq = 0;
	bool known = t->db || (t->shared ? emit_known_root(e, t->root) : emit_known_find(e, t->oid));

	if (!known) {
		if (emit_describe(e, t->route.database, t->route.table, &d, err) != 0)
			return -1;
		bool taken = d.exists && s->with_rows;

		ch_desc_fini(&d);
		struct ws_buf full = {0}, n = {0};

		if (taken) {
			ch_full_name(&full, t->route.database, t->route.table);
			if (emit_sql(e, &n, err, "SELECT count() FROM %s", ws_buf_cstr(&full)) != 0)
				return -1;
			if (strcmp((char *)n.data, "0\n"))
				return ws_err_op(
					err, "destination_not_empty",
					"table %s has rows and is not walshadow's: the load would replace them",
					(char *)full.data);
		}
		ws_buf_free(&full);
		ws_buf_free(&n);
	}
	if (emit_tab_ready(e, t, rel, err) != 0)
		return -1;
	if (!s->with_rows)
		return 0;
	if (t->shared ? emit_leaf_load(e, t, err) != 0 : emit_stage(e, t, "the initial load", err) != 0)
		return -1;
	t->phase = CH_LOAD;
	ws_info("loading table %s.%s as of " WS_LSN_FMT, t->db, t->name, WS_LSN_ARG(s->lsn));
	return 0;
}

int
emit_snapshot_end(struct ws_emit *e, const struct ws_c_snapshot *s,
				  const struct ws_change_reader *r, struct ws_err *err)
{
	struct ch_tab *t;

	if (emit_table_for(e, s->handle, ws_change_relation(r, s->handle), BIND_NOT, &t, err) != 0)
		return -1;
	if (!t)
		return 0;
	if (t->phase == CH_LOAD) {
		if (t->shared ? emit_leaf_loaded(e, t, err) != 0 : emit_exchange(e, t, err) != 0)
			return -1;
		t->phase = CH_ROWS;
	}
	t->loaded = 0;
	ws_info("loaded table %s.%s: %" PRIu64 " rows", t->db, t->name, s->rows);
	return emit_loaded_write(e, t, (struct ws_pos){s->tli, s->lsn}, err);
}

/* The first load makes the positions: everything up to the earliest snapshot is there. */
int
emit_load_ended(struct ws_emit *e, struct ws_pos end, struct ws_err *err)
{
	struct ws_pos lo = {e->load_tli, e->load_lo}, hi = {e->load_tli, e->load_hi};

	if (emit_flush(e, err) != 0)
		return -1;
	/* The end is the lowest point of all tables that are loaded, an interrupted run's included. */
	if (!e->load_lo)
		lo = hi = end;
	else if (end.lsn && end.lsn < lo.lsn)
		lo = end;
	if (emit_sent(e, hi, err) != 0)
		return -1;
	if (e->have_ack)
		return 0;
	e->o.load = false; /* from here ack may move */
	e->last = lo;
	return emit_ack(e, true, err);
}
