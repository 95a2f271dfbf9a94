/* Reads the tables of a round, several side by side, each on a session of its own: lock, check, COPY,
 * check, commit.  One thread: the server's work is many times ours. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ws/catquery.h"
#include "ws/copytext.h"
#include "ws/log.h"
#include "ws/tool.h"
#include "copy-int.h"

#define OUT_SIZE  262144u
#define ROWS_TURN 2000 /* of one table before the others have their turn */

enum worker_state { W_IDLE, W_LOCKING, W_COPYING, W_TOAST, W_ENDING };

struct worker {
	enum worker_state state;
	struct ws_pg *pg;
	struct ws_pg_copy copy;
	struct copy_table *t;
	struct ws_buf out, tmp;
	struct ws_arena arena;
	struct ws_value *values;
	struct ws_copyfield *fields;
};

struct ws_pg *
copy_session(struct copy *c, struct ws_err *err)
{
	const struct ws_pg_opts o = {.mode = WS_PG_SQL, .conninfo = c->o->conninfo, .appname = "ws-copy"};
	struct ws_pg *pg = ws_pg_open(&o, NULL, err);

	if (pg && ws_catquery_setup(pg, err) == 0)
		return pg;
	ws_pg_close(pg);
	return NULL;
}

static void
worker_fini(struct worker *w)
{
	ws_pg_copy_fini(&w->copy);
	ws_pg_close(w->pg);
	ws_buf_free(&w->out);
	ws_buf_free(&w->tmp);
	ws_arena_free(&w->arena);
	free(w->values);
	free(w->fields);
}

static void
put_name(struct ws_buf *sql, const struct ws_rel *r)
{
	ws_pg_quote_name(sql, r->nspname);
	ws_buf_putc(sql, '.');
	ws_pg_quote_name(sql, r->name);
}

static int
send(struct worker *w, struct ws_buf *sql, enum worker_state next, struct ws_err *err)
{
	int rc = ws_pg_copy_send(&w->copy, w->pg, ws_buf_cstr(sql), err);

	ws_buf_free(sql);
	w->state = next;
	return rc;
}

/* Row security would leave rows out without a word: it must be an error. */
static int
lock_table(struct copy *c, struct worker *w, struct copy_table *t, struct ws_err *err)
{
	struct ws_buf sql = {0};

	if (!w->pg && (!(w->pg = copy_session(c, err)) || ws_pg_no_timeouts(w->pg, err) != 0))
		return -1;
	w->t = t;
	t->state = COPY_RUNS;
	ws_buf_puts(&sql, "SET row_security = off; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT ");
	ws_pg_quote_text(&sql, c->snap.name);
	ws_buf_puts(&sql, "; LOCK TABLE ONLY ");
	put_name(&sql, t->rel);
	ws_buf_puts(&sql, " IN ACCESS SHARE MODE");
	return send(w, &sql, W_LOCKING, err);
}

/* What a column's place in the row holds.  Virtual generated columns are NULL in every tuple and so
 * are they here.  Of a type that is not decoded, only whether there is a value is asked. */
static void
put_column(struct ws_buf *sql, const struct copy_table *t, uint16_t i)
{
	const struct ws_heapcol *col = &t->desc->cols[i];

	if (t->cols[i] != WS_COPY_VALUE || col->attr->flags & WS_ATT_VIRTUAL) {
		ws_buf_puts(sql, "NULL");
		return;
	}
	if (col->type.kind != WS_K_UNSUPPORTED) {
		ws_pg_quote_name(sql, col->attr->name);
		if (col->type.reg)
			ws_buf_puts(sql,
						col->type.kind == WS_K_ARRAY ? "::pg_catalog.oid[]" : "::pg_catalog.oid");
		return;
	}
	ws_buf_puts(sql, "CASE WHEN ");
	ws_pg_quote_name(sql, col->attr->name);
	ws_buf_puts(sql, " IS DISTINCT FROM NULL THEN 1 END");
}

/* Out at once: handles must come in order, whichever table's rows fill a buffer first. */
static int
put_begin(struct copy *c, struct worker *w, struct ws_err *err)
{
	struct ws_c_relation rel;
	struct ws_change ev = {.type = WS_C_RELATION, .relation = &rel};

	if (copy_toast_begin(c, w->t, err) != 0)
		return -1;
	w->t->handle = ++c->handles;
	ws_heapdesc_relation(w->t->desc, w->t->root, w->t->handle, &w->arena, &rel);
	ws_change_put(&w->out, &ev);
	ws_arena_reset(&w->arena);
	ev = (struct ws_change){.type = WS_C_SNAPSHOT_BEGIN};
	ev.snapshot = (struct ws_c_snapshot){.handle = w->t->handle, .lsn = c->snap.lsn, .tli = c->tli, .with_rows = w->t->with_rows};
	ws_change_put(&w->out, &ev);
	int rc = copy_put(c, &w->out, err);

	w->out.len = 0;
	return rc;
}

static int
put_end(struct copy *c, struct worker *w, struct ws_err *err)
{
	struct ws_change ev = {.type = WS_C_SNAPSHOT_END};

	ev.snapshot = (struct ws_c_snapshot){.handle = w->t->handle, .lsn = c->snap.lsn, .tli = c->tli, .rows = w->t->rows};
	ws_change_put(&w->out, &ev);
	int rc = copy_put(c, &w->out, err);

	w->out.len = 0;
	return rc;
}

static int
copy_table(struct copy *c, struct worker *w, struct ws_err *err)
{
	struct ws_buf sql = {0};
	const struct ws_heapdesc *d = w->t->desc;

	free(w->values);
	free(w->fields);
	w->values = ws_calloc(d->ncols, sizeof *w->values);
	w->fields = ws_calloc(d->ncols, sizeof *w->fields);
	if (put_begin(c, w, err) != 0)
		return -1;
	ws_buf_puts(&sql, "COPY (SELECT ");
	for (uint16_t i = 0; i < d->ncols; i++) {
		if (i)
			ws_buf_putc(&sql, ',');
		put_column(&sql, w->t, i);
	}
	ws_buf_puts(&sql, " FROM ONLY ");
	put_name(&sql, w->t->rel);
	ws_buf_puts(&sql, ") TO STDOUT");
	return send(w, &sql, W_COPYING, err);
}

static int
set_value(const struct copy_table *t, uint16_t i, const struct ws_copyfield *f, uint32_t max,
		  struct ws_arena *a, struct ws_value *v, struct ws_err *err)
{
	const struct ws_heapcol *col = &t->desc->cols[i];

	if (f->null) {
		*v = (struct ws_value){.state = t->cols[i] == WS_COPY_EXCLUDED ? WS_V_ABSENT : WS_V_NULL, .kind = (uint8_t)col->type.kind};
		return 0;
	}
	if (col->type.kind == WS_K_UNSUPPORTED)
		return ws_err_op(err, "type_unsupported",
		                 "table %s.%s column %s has values of type %s, which is not decoded, and SQL gives no bytes for "
		                 "unsupported=hex or bytes: exclude the column, or use unsupported=null or load=none",
		                 t->rel->nspname, t->rel->name, col->attr->name, col->attr->typname);
	if (ws_value_from_text(col->type.kind, col->type.elem, f->p, f->len, a, v, err) != 0)
		return ws_err_prefix(err, "table %s.%s column %s", t->rel->nspname, t->rel->name, col->attr->name);
	if (max && v->len > max)
		return ws_err_op(
			err, "value_too_long",
			"table %s.%s column %s: a value of %u bytes is longer than --max-value (%u)",
			t->rel->nspname, t->rel->name, col->attr->name, v->len, max);
	return 0;
}

static int
put_row(struct copy *c, struct worker *w, char *row, size_t n, struct ws_err *err)
{
	struct copy_table *t = w->t;
	uint16_t ncols = t->desc->ncols;

	if (ws_copytext_split(row, n, w->fields, ncols) != 0)
		return ws_err_temp(err, "table %s.%s: malformed row from COPY", t->rel->nspname, t->rel->name);
	for (uint16_t i = 0; i < ncols; i++)
		if (set_value(t, i, &w->fields[i], c->o->max_value, &w->arena, &w->values[i], err) != 0)
			return -1;
	ws_change_put_row(&w->out, 'I', t->handle, 0, ncols, w->values, NULL, false);
	ws_arena_reset(&w->arena);
	t->rows++;
	c->rows++;
	c->bytes += n;
	if (w->out.len < OUT_SIZE)
		return 0;
	int rc = copy_put(c, &w->out, err);

	w->out.len = 0;
	return rc;
}

static void
changed(struct copy *c, struct worker *w)
{
	ws_info("table %s.%s changed after " WS_LSN_FMT ": it gets a consistent point of its own", w->t->rel->nspname,
	        w->t->rel->name, WS_LSN_ARG(c->snap.lsn));
	copy_oids_add(&c->redo, w->t->rel->oid);
	w->t->state = COPY_CHANGED;
	/* The transaction, and its lock, end with the session. */
	ws_pg_copy_fini(&w->copy);
	ws_pg_close(w->pg);
	w->pg = NULL;
	w->state = W_IDLE;
}

static int
locked(struct copy *c, struct worker *w, struct ws_err *err)
{
	int rc = copy_check(c, w->t, err);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		changed(c, w);
		return 0;
	}
	return copy_table(c, w, err);
}

/* All rows are there; then what they point to, as of the same snapshot. */
static int
toast(struct copy *c, struct worker *w, struct ws_err *err)
{
	struct ws_buf sql = {0};

	(void)c;
	copy_toast_query(w->t, &sql);
	return send(w, &sql, W_TOAST, err);
}

static int
toast_failed(const struct worker *w, struct ws_err *err)
{
	const struct copy_table *t = w->t;

	if (strcmp(ws_pg_sqlstate(w->pg), "42501") != 0)
		return -1;
	return ws_err_usage(err,
	                    "table %s.%s: the user may not read its TOAST values in %s.%s: GRANT pg_read_all_data, or say "
	                    "--toast none",
	                    t->rel->nspname, t->rel->name, t->toast->nspname, t->toast->name);
}

/* Everything is there.  Only what takes no lock on the table (a schema's or a label's name) can have
 * changed meanwhile; the rows are out, so that the whole load must begin again for this table. */
static int
copied(struct copy *c, struct worker *w, struct ws_err *err)
{
	struct ws_buf sql = {0};
	int rc = copy_check(c, w->t, err);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return ws_err_temp(err, "table %s.%s: its schema or a type changed its name while it was read", w->t->rel->nspname,
		                   w->t->rel->name);
	ws_buf_puts(&sql, "COMMIT");
	return send(w, &sql, W_ENDING, err);
}

static int
ended(struct copy *c, struct worker *w, struct ws_err *err)
{
	struct copy_table *t = w->t;

	/* The frame that follows makes the table a loaded one. */
	if (ws_toaststore_sync(c->store, err) != 0 || put_end(c, w, err) != 0)
		return -1;
	t->state = COPY_DONE;
	c->done++;
	c->pages_done += t->pages + 1;
	if (!c->lowest || c->snap.lsn < c->lowest)
		c->lowest = c->snap.lsn;
	if (t->with_rows)
		ws_info("table %s.%s: rows=%llu (%zu of %zu tables)", t->rel->nspname, t->rel->name, (unsigned long long)t->rows,
		        c->done, c->total);
	w->state = W_IDLE;
	w->t = NULL;
	return 0;
}

/* A table whose rows are not wanted: nothing is asked of the source. */
static int
mark_table(struct copy *c, struct worker *w, struct copy_table *t, struct ws_err *err)
{
	w->t = t;
	return put_begin(c, w, err) != 0 ? -1 : ended(c, w, err);
}

/* The table that a lock was asked for is not there any more, or has another name. */
static bool
is_gone(const struct ws_pg *pg)
{
	const char *s = ws_pg_sqlstate(pg);

	return !strcmp(s, "42P01") || !strcmp(s, "3F000") || !strcmp(s, "42809");
}

static int
step_done(struct copy *c, struct worker *w, struct ws_err *err)
{
	switch (w->state) {
	case W_LOCKING:
		return locked(c, w, err);
	case W_COPYING:
		return w->t->toast && !c->o->no_toast ? toast(c, w, err) : copied(c, w, err);
	case W_TOAST:
		return copied(c, w, err);
	default:
		return ended(c, w, err);
	}
}

static int
advance(struct copy *c, struct worker *w, struct ws_err *err)
{
	char *row;
	size_t n;

	for (int i = 0; i < ROWS_TURN; i++) {
		int rc = ws_pg_copy_next(&w->copy, &row, &n, err);

		if (rc < 0 && w->state == W_LOCKING && is_gone(w->pg)) {
			changed(c, w);
			return 0;
		}
		if (rc < 0 && w->state == W_TOAST && toast_failed(w, err) == -1 && err->status == WS_EUSAGE)
			return -1;
		if (rc < 0)
			return ws_err_prefix(err, "table %s.%s", w->t->rel->nspname, w->t->rel->name);
		if (rc == WS_PG_COPY_WAIT)
			return 0;
		if (rc == WS_PG_COPY_DONE)
			return step_done(c, w, err);
		if (w->state == W_TOAST ? copy_toast_row(c, w->t, row, n, &w->tmp, err) != 0 : put_row(c, w, row, n, err) != 0)
			return -1;
	}
	return 1; /* more is there already */
}

static struct copy_table *
next_table(struct copy *c)
{
	for (size_t i = 0; i < c->ntables; i++)
		if (c->tables[i].state == COPY_WAITS)
			return &c->tables[i];
	return NULL;
}

/* Waits until a session has something, unless one is known to have more. */
static int
wait_any(struct copy *c, struct worker *w, int n, bool more, struct ws_err *err)
{
	struct pollfd *fds = ws_calloc((size_t)n + 1, sizeof *fds);
	int nfds = 0, rc = 0;

	fds[nfds++] = (struct pollfd){.fd = ws_tool_signal_fd(), .events = POLLIN};
	for (int i = 0; i < n; i++)
		if (w[i].state != W_IDLE)
			fds[nfds++] = (struct pollfd){.fd = ws_pg_socket(w[i].pg), .events = POLLIN};
	if (poll(fds, (nfds_t)nfds, more ? 0 : 500) < 0 && errno != EINTR)
		rc = ws_err_sys(err, "poll");
	free(fds);
	ws_tool_take_hup();
	if (ws_tool_stopping())
		rc = ws_err_temp(err, "interrupted: %zu of %zu tables were read", c->done, c->total);
	return rc;
}

static int
turn(struct copy *c, struct worker *w, int n, bool *busy, bool *more, struct ws_err *err)
{
	*busy = *more = false;
	for (int i = 0; i < n; i++) {
		if (w[i].state == W_IDLE) {
			struct copy_table *t = next_table(c);

			if (!t)
				continue;
			*busy = true;
			if ((t->with_rows ? lock_table(c, &w[i], t, err) : mark_table(c, &w[i], t, err)) != 0)
				return -1;
			if (!t->with_rows) {
				*more = true;
				continue;
			}
		}
		int rc = advance(c, &w[i], err);

		if (rc < 0)
			return -1;
		*busy = true;
		/* A step that ended has its successor's answer to wait for, or a table to begin. */
		*more = *more || rc > 0 || w[i].state == W_IDLE;
	}
	return 0;
}

int
copy_work(struct copy *c, struct ws_err *err)
{
	int n = c->o->jobs, rc = 0;
	struct worker *w = ws_calloc((size_t)n, sizeof *w);
	bool busy = true, more = false;

	while (rc == 0) {
		rc = turn(c, w, n, &busy, &more, err);
		if (rc != 0 || !busy)
			break;
		copy_progress(c, false);
		rc = wait_any(c, w, n, more, err);
	}
	for (int i = 0; i < n; i++)
		worker_fini(&w[i]);
	free(w);
	return rc;
}
