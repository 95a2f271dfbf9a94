/* A run of ws-emit: what it needs, the loop around the change stream, its end; see lib/ch/emit.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ch/emit.h"
#include "ws/file.h"
#include "ws/tool.h"

#define READ_SIZE   ((size_t)256 * 1024)
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

/* ---- the loop ---- */

/* Takes in all whole frames that have been read. */
static int
take(struct ws_emit *e, struct ws_change_reader *r, struct ws_err *err)
{
	struct ws_change c;
	int rc = 0, n = 0;

	while (!e->ended && !(ws_tool_stopping() && !e->in_tx) &&
		   (rc = ws_change_next(r, &c, err)) == 1) {
		if (emit_event(e, &c, r, err) != 0)
			return -1;
		if (!e->in_tx && ws_tool_take_hup() && emit_routes_reload(e, err) != 0)
			return -1;
		/* Requests move on while a lot comes in; memory is bounded by waiting for them. */
		if (++n >= TICK_EVENTS || e->held > e->o.memory) {
			n = 0;
			if (e->started && ch_batch_tick(e, false, err) != 0)
				return -1;
			do {
				if (emit_pump(e, -1, e->held > e->o.memory ? 100 : 0, NULL, err) != 0 ||
					ch_batch_tick(e, false, err) != 0)
					return -1;
				if (e->held > e->o.memory && !e->flying && !e->queued)
					ch_batch_seal_all(e);
				if (ws_tool_stopping() && e->failing_us)
					return ws_err_temp(err, "stopped while waiting for the destination: %s",
									   e->last_error);
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
				return ws_err_temp(
					err, "the change stream ended without an end mark: its producer died");
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
		int wait =
			idle ? ch_batch_due(e, owed && e->last.lsn > e->ack.lsn ? IDLE_ACK_US / 1000 : 1000)
				 : 0;

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
	struct ch_http_opts h = {
		o->urls, o->nurls, o->user,      o->password,        o->cacert,         o->cert,
		o->key,  o->proxy, o->no_verify, o->connect_timeout, o->request_timeout};
	int enc = encoding_of(o->encoding);

	if (enc < 0)
		return ws_err_usage(err, "--compression is none, lz4, zstd or gzip");
	e->encoding = (enum ch_encoding)enc;
	if (emit_routes_check(e, err) != 0 || !(e->http = ch_http_new(&h, err)))
		return -1;
	char *dir = ws_asprintf("%s/consumer/%s", o->state, o->consumer),
		 *run = ws_asprintf("%s/run", o->state);
	char *path = ws_asprintf("%s/lock", dir);
	int rc = ws_mkdir_p(dir, 0700, err) != 0 || ws_mkdir_p(run, 0700, err) != 0 ||
					 (*lock = ws_lock_file(path, err)) < 0
				 ? -1
				 : 0;

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
	free(e->dropped);
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
