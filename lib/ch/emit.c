/* The change stream's events, in order, and the loop around them; see lib/ch/emit.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ch/emit.h"
#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/tool.h"

#define READ_SIZE ((size_t)256 * 1024)
#define TICK_EVENTS 4096
#define IDLE_ACK_US 20000

void
ws_emit_defaults(struct ws_emit_opts *o)
{
	memset(o, 0, sizeof *o);
	o->encoding = "none";
	o->flush_interval = 0.2;
	o->flush_gap = 0.05;
	o->batch_rows = 262144;
	o->batch_bytes = (uint64_t)24 << 20;
	o->memory = (uint64_t)72 << 20;
	o->connections = 2;
	o->connect_timeout = 10;
	o->request_timeout = 300;
	o->drain_timeout = 10;
}

/* ---- tables of rows ---- */

static int
resolve(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *rel, struct ws_err *err)
{
	/* Rows of a partitioned table are its leaves'. */
	int rc = rel->relkind == 'r' ? ws_routes_resolve(e->routes, e->dbname, rel->nspname, rel->name, &t->route, err) : 0;

	if (rc < 0)
		return -1;
	if (!t->resolved && rc == 0 && !t->told && rel->relkind == 'r') {
		ws_info("table %s.%s is not replicated: no rule for it", rel->nspname, rel->name);
		t->told = true;
	}
	t->routed = rc == 1;
	t->resolved = true;
	return emit_loaded_read(e, t->oid, &t->loaded, err);
}

enum bind {
	BIND_NOT,    /* as it is */
	BIND_SCHEMA, /* to the shape, if it can have rows: one without a key may still get it */
	BIND_ROWS    /* to the shape */
};

/* The table of a handle, bound to that shape; *t NULL when its changes are not wanted. */
static int
table_for(struct ws_emit *e, uint32_t handle, const struct ws_c_relation *rel, enum bind bind, struct ch_tab **out, struct ws_err *err)
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
	if (!t->resolved && resolve(e, t, rel, err) != 0)
		return -1;
	if (!t->routed)
		return 0;
	if (e->in_tx && t->loaded) {
		if (e->tx.end_lsn <= t->loaded)
			return 0;
		t->loaded = 0; /* positions only grow */
	}
	/* Another name may have another rule. */
	if (bind != BIND_NOT && (!t->ready || t->rel != rel)) {
		if (t->rel && t->rel != rel && (strcmp(t->rel->name, rel->name) || strcmp(t->rel->nspname, rel->nspname))) {
			ws_route_fini(&t->route);
			if (resolve(e, t, rel, err) != 0)
				return -1;
			if (!t->routed)
				return 0;
		}
		if (bind == BIND_SCHEMA && emit_tab_refused(t, rel)) {
			ws_info("table %s.%s has no usable key: its first row will stop this consumer", rel->nspname, rel->name);
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
		return ws_err_op(err, "system_id_changed", "the stream is of system %" PRIu64 ", the state of %" PRIu64, id->system_id, c.system_id);
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
		if (table_for(e, row->handle, row->rel, BIND_ROWS, &t, err) != 0)
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
on_truncate(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r, struct ws_err *err)
{
	for (uint32_t i = 0; i < c->truncate.nhandles && !e->skip_tx; i++) {
		uint32_t h = c->truncate.handles[i];
		struct ch_tab *t;

		if (table_for(e, h, ws_change_relation(r, h), BIND_ROWS, &t, err) != 0)
			return -1;
		if (t && t->retype && emit_rebuild(e, t, err) != 0)
			return -1;
		if (t && emit_truncate(e, t, c->truncate.ordinal, err) != 0)
			return -1;
	}
	return 0;
}

static int
on_replace(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r, struct ws_err *err)
{
	struct ch_tab *t;

	if (e->skip_tx)
		return 0;
	if (table_for(e, c->replace.handle, ws_change_relation(r, c->replace.handle), BIND_ROWS, &t, err) != 0)
		return -1;
	if (!t)
		return 0;
	if (c->type == WS_C_REPLACE_BEGIN) {
		/* A history keeps what was: the mark, then the rows. */
		if (t->history)
			return emit_truncate(e, t, c->replace.ordinal, err);
		t->phase = CH_REPLACE;
		return emit_stage(e, t, "a new content", err);
	}
	if (t->phase != CH_REPLACE)
		return 0;
	t->phase = CH_ROWS;
	return emit_exchange(e, t, err);
}

static int
on_schema(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r, struct ws_err *err)
{
	uint32_t h = c->schema.what == 'D' ? c->schema.old_handle : c->schema.new_handle;
	const struct ws_c_relation *rel = ws_change_relation(r, h);
	struct ch_tab *t;

	if (e->skip_tx || !rel)
		return 0;
	if (table_for(e, h, rel, c->schema.what != 'D' ? BIND_SCHEMA : BIND_NOT, &t, err) != 0)
		return -1;
	const struct ws_c_relation *before = ws_change_relation(r, c->schema.old_handle);

	if (t && c->schema.what == 'A' && before && ch_check_key_text(t, before, rel, err) != 0)
		return -1;
	return t && c->schema.what == 'D' ? emit_drop(e, t, err) : 0;
}

/* Everything at or below p has been taken in. */
static int
complete(struct ws_emit *e, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	if (lsn > e->last.lsn)
		e->last = (struct ws_pos){tli, lsn};
	if (lsn > e->seen)
		e->seen = lsn;
	return emit_ack(e, false, err);
}

static int
on_commit(struct ws_emit *e, const struct ws_c_commit *c, struct ws_err *err)
{
	for (struct ch_tab *t = e->tabs; t; t = t->hh.next)
		if (t->phase == CH_REPLACE)
			return ws_err_op(err, "change_malformed", "xid %u: a replacement of table %s.%s has no end", c->xid, t->db, t->name);
	e->in_tx = e->skip_tx = false;
	e->tli = c->tli;
	return complete(e, c->tli, c->end_lsn, err);
}

/* ---- the initial load ---- */

static int
on_snapshot_begin(struct ws_emit *e, const struct ws_c_snapshot *s, const struct ws_change_reader *r, struct ws_err *err)
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
	if (table_for(e, s->handle, rel, BIND_NOT, &t, err) != 0)
		return -1;
	if (!t)
		return 0;
	/* Begun again: what the first attempt sent has to be there before its table goes. */
	if (t->phase == CH_LOAD && emit_flush(e, err) != 0)
		return -1;
	t->phase = CH_ROWS;
	t->snap = *s;
	t->loadseq = 0;
	bool known = t->db || emit_known_find(e, t->oid);

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
				return ws_err_op(err, "destination_not_empty", "table %s has rows and is not walshadow's: the load would replace them",
				                 (char *)full.data);
		}
		ws_buf_free(&full);
		ws_buf_free(&n);
	}
	if (emit_tab_ready(e, t, rel, err) != 0)
		return -1;
	if (!s->with_rows)
		return 0;
	if (emit_stage(e, t, "the initial load", err) != 0)
		return -1;
	t->phase = CH_LOAD;
	ws_info("loading table %s.%s as of " WS_LSN_FMT, t->db, t->name, WS_LSN_ARG(s->lsn));
	return 0;
}

static int
on_snapshot_end(struct ws_emit *e, const struct ws_c_snapshot *s, const struct ws_change_reader *r, struct ws_err *err)
{
	struct ch_tab *t;

	if (table_for(e, s->handle, ws_change_relation(r, s->handle), BIND_NOT, &t, err) != 0)
		return -1;
	if (!t)
		return 0;
	if (t->phase == CH_LOAD) {
		if (emit_exchange(e, t, err) != 0)
			return -1;
		t->phase = CH_ROWS;
	}
	t->loaded = 0;
	ws_info("loaded table %s.%s: %" PRIu64 " rows", t->db, t->name, s->rows);
	return emit_loaded_write(e, t, (struct ws_pos){s->tli, s->lsn}, err);
}

/* The first load makes the positions: everything up to the earliest snapshot is there. */
static int
load_ended(struct ws_emit *e, struct ws_pos end, struct ws_err *err)
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

static int
on_end(struct ws_emit *e, struct ws_pos end, struct ws_err *err)
{
	e->ended = true;
	if (e->o.load)
		return load_ended(e, end, err);
	if (complete(e, end.tli ? end.tli : e->tli, end.lsn, err) != 0)
		return -1;
	return emit_flush(e, err);
}

static int
on_event(struct ws_emit *e, const struct ws_change *c, const struct ws_change_reader *r, struct ws_err *err)
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
		return on_snapshot_begin(e, &c->snapshot, r, err);
	case WS_C_SNAPSHOT_END:
		return on_snapshot_end(e, &c->snapshot, r, err);
	case WS_C_END:
		return on_end(e, c->end, err);
	case WS_C_RELATION:
	case WS_C_MESSAGE:
	case WS_C_SEQUENCE:
		break;
	}
	return 0;
}

/* ---- the loop ---- */

/* Takes in all whole frames that have been read. */
static int
take(struct ws_emit *e, struct ws_change_reader *r, struct ws_err *err)
{
	struct ws_change c;
	int rc = 0, n = 0;

	while (!e->ended && !(ws_tool_stopping() && !e->in_tx) && (rc = ws_change_next(r, &c, err)) == 1) {
		if (on_event(e, &c, r, err) != 0)
			return -1;
		if (!e->in_tx && ws_tool_take_hup() && emit_routes_reload(e, err) != 0)
			return -1;
		/* Requests move on while a lot comes in; memory is bounded by waiting for them. */
		if (++n >= TICK_EVENTS || e->held > e->o.memory) {
			n = 0;
			if (e->started && ch_batch_tick(e, false, err) != 0)
				return -1;
			do {
				if (emit_pump(e, -1, e->held > e->o.memory ? 100 : 0, NULL, err) != 0 || ch_batch_tick(e, false, err) != 0)
					return -1;
				if (e->held > e->o.memory && !e->flying && !e->queued)
					ch_batch_seal_all(e);
				if (ws_tool_stopping() && e->failing_us)
					return ws_err_temp(err, "stopped while waiting for the destination: %s", e->last_error);
			} while (e->held > e->o.memory);
		}
	}
	return rc < 0 ? -1 : 0;
}

static int
loop(struct ws_emit *e, struct ws_change_reader *r, int fd, struct ws_err *err)
{
	while (!e->ended) {
		bool readable = false;
		ssize_t n = read(fd, ws_change_reader_room(r, READ_SIZE), READ_SIZE);

		if (n > 0) {
			ws_change_reader_fed(r, (size_t)n);
			if (take(e, r, err) != 0)
				return -1;
		} else if (n == 0) {
			if (!ws_change_ended(r))
				return ws_err_temp(err, "the change stream ended without an end mark: its producer died");
			return 0;
		} else if (errno != EAGAIN && errno != EINTR) {
			return ws_err_sys(err, "cannot read the change stream");
		}
		if (ws_tool_stopping() && !e->in_tx)
			return 0;
		if (!e->in_tx && ws_tool_take_hup() && emit_routes_reload(e, err) != 0)
			return -1;
		bool idle = n < 0;

		if (e->started && ch_batch_tick(e, idle, err) != 0)
			return -1;
		/* An idle stream is acknowledged soon, but not with two fsyncs for each of its frames. */
		bool owed = e->started && idle && !e->oldest && !e->o.load && e->last.lsn > e->ack.lsn;

		if (e->started && emit_ack(e, owed && ws_now_us() - e->ack_us >= IDLE_ACK_US, err) != 0)
			return -1;
		int wait = idle ? ch_batch_due(e, owed && e->last.lsn > e->ack.lsn ? IDLE_ACK_US / 1000 : 1000) : 0;

		if (emit_pump(e, fd, wait, &readable, err) != 0)
			return -1;
		emit_status(e, e->failing_us ? "retrying" : "running", false);
	}
	return 0;
}

/* A stop: what was taken in is sent, for a while. */
static int
drain(struct ws_emit *e, struct ws_err *err)
{
	uint64_t until = ws_now_us() + (uint64_t)(e->o.drain_timeout * 1e6);

	if (!e->started)
		return 0;
	ch_batch_seal_all(e);
	while (e->oldest && ws_now_us() < until && !e->failing_us)
		if (ch_batch_tick(e, false, err) != 0 || emit_pump(e, -1, 100, NULL, err) != 0)
			return -1;
	if (e->oldest)
		ws_warn("stopped with changes that are not at the destination; they come again");
	return emit_ack(e, true, err);
}

/* The producer died: no further statement; what is on its way may arrive. */
static void
settle(struct ws_emit *e)
{
	uint64_t until = ws_now_us() + (uint64_t)(e->o.drain_timeout * 1e6);
	struct ws_err err;

	while (e->flying > 0 && ws_now_us() < until && !e->failing_us)
		if (emit_pump(e, -1, 100, NULL, &err) != 0)
			break;
	if (emit_ack(e, true, &err) != 0)
		ws_log_err(&err);
}

static int
encoding_of(const char *name)
{
	static const char *const names[] = {"none", "lz4", "zstd", "gzip"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static int
prepare(struct ws_emit *e, int *lock, struct ws_err *err)
{
	const struct ws_emit_opts *o = &e->o;
	struct ch_http_opts h = {o->urls, o->nurls, o->user, o->password, o->cacert, o->cert, o->key, o->proxy, o->no_verify,
	                         o->connect_timeout, o->request_timeout};
	int enc = encoding_of(o->encoding);

	if (enc < 0)
		return ws_err_usage(err, "--compression is none, lz4, zstd or gzip");
	e->encoding = (enum ch_encoding)enc;
	if (emit_routes_check(e, err) != 0 || !(e->http = ch_http_new(&h, err)))
		return -1;
	char *dir = ws_asprintf("%s/consumer/%s", o->state, o->consumer), *run = ws_asprintf("%s/run", o->state);
	char *path = ws_asprintf("%s/lock", dir);
	int rc = ws_mkdir_p(dir, 0700, err) != 0 || ws_mkdir_p(run, 0700, err) != 0 || (*lock = ws_lock_file(path, err)) < 0 ? -1 : 0;

	free(dir);
	free(run);
	free(path);
	return rc != 0 || emit_positions_open(e, err) != 0 ? -1 : emit_routes_open(e, err);
}

static void
emit_fini(struct ws_emit *e)
{
	if (e->http)
		ch_batch_drop_all(e);
	for (struct ch_tab *t = e->tabs, *next; t; t = next) {
		next = t->hh.next;
		HASH_DEL(e->tabs, t);
		emit_tab_free(t);
	}
	free(e->dbname);
	e->dbname = NULL;
	struct ws_err err;

	if (e->http)
		emit_known_read(e, &err); /* without a database: only frees */
	free(e->handles);
	ch_http_free(e->http);
	emit_routes_close(e);
	ws_buf_free(&e->srv.insert_params);
	ws_buf_free(&e->srv.query_params);
	free(e->host_stale);
	free(e->prefix);
	free(e->last_error);
}

int
ws_emit_run(const struct ws_emit_opts *o, int fd, struct ws_metrics *m, struct ws_err *err)
{
	struct ws_emit e = {.o = *o, .metrics = m};
	struct ws_change_reader *r = ws_change_reader_new();

	ws_change_reader_utf8(r);
	int lock = -1, flags = fcntl(fd, F_GETFL);

	e.host_stale = ws_calloc((size_t)o->nurls, sizeof *e.host_stale);
	emit_status_init(&e);
	int rc = prepare(&e, &lock, err);

	if (rc == 0 && (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0))
		rc = ws_err_sys(err, "cannot make the input non-blocking");
	if (rc == 0) {
		rc = loop(&e, r, fd, err);
		if (rc == 0 && !e.ended)
			rc = drain(&e, err);
		else if (rc != 0)
			settle(&e);
		/* A stop that found the destination away is still a stop: everything comes again. */
		if (rc != 0 && ws_tool_stopping() && err->status == WS_ETEMP && !e.o.load) {
			ws_warn("%s", err->msg);
			rc = 0;
		}
		if (rc != 0 && err->status == WS_EOPERATOR)
			emit_routes_stopped(&e);
		if (rc != 0) {
			free(e.last_error);
			e.last_error = ws_strdup(err->msg);
		}
		emit_status(&e, rc == 0 ? "stopped" : "failed", true);
	}
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags);
	emit_fini(&e);
	if (lock >= 0)
		close(lock);
	ws_change_reader_free(r);
	return rc;
}
