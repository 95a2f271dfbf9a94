/* The WAL server: one process, one poll loop; see ws/walsend.h.  Commands are walcmd.c's, WAL is
 * walout.c's, how far it may go gate.c's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "recvdir.h"
#include "replmsg.h"
#include "servermsg.h"
#include "walsend.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pgcontrol.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/walpage.h"

#define CLIENTS_MAX      16
#define POLL_MS          200 /* without inotify this is how late a change is seen */
#define STATUS_WRITE_US  50000
#define REDO_CHECK_US    1000000
#define MESSAGES_AT_ONCE 16

static void
metrics_init(struct walsend *w)
{
	struct ws_metrics *m = ws_tool_metrics();

	w->m_bytes =
		ws_metric(m, WS_COUNTER, "walshadow_walsend_bytes_total", "", "WAL bytes sent to clients.");
	w->m_sent = ws_metric(m, WS_GAUGE, "walshadow_walsend_sent_lsn", "",
						  "End of the WAL sent to the shadow.");
	w->m_replay = ws_metric(m, WS_GAUGE, "walshadow_walsend_replay_lsn", "",
							"Replay position that the shadow reported.");
	w->m_gate = ws_metric(m, WS_GAUGE, "walshadow_walsend_gate_lsn", "",
						  "Boundary that holds the shadow; 0 while the gate is open.");
	w->m_limit =
		ws_metric(m, WS_GAUGE, "walshadow_walsend_limit_lsn", "", "WAL may be sent up to here.");
	w->m_held = ws_metric(m, WS_COUNTER, "walshadow_walsend_held_seconds_total", "",
						  "Time in which the gate held the shadow.");
	w->m_clients = ws_metric(m, WS_GAUGE, "walshadow_walsend_clients", "", "Connections.");
}

/* ---- the socket ---- */

static int
open_socket(struct walsend *w, struct ws_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *lock = ws_asprintf("%s/.s.PGSQL.%d.walsend", w->o->socketdir, w->o->port);
	int rc = -1;

	w->socket_path = ws_asprintf("%s/.s.PGSQL.%d", w->o->socketdir, w->o->port);
	if (strlen(w->socket_path) >= sizeof a.sun_path) {
		ws_err_usage(err, "%s: longer than the %zu bytes that a socket's path may have",
					 w->socket_path, sizeof a.sun_path - 1);
		goto out;
	}
	strcpy(a.sun_path, w->socket_path);
	if (ws_mkdir_p(w->o->socketdir, 0700, err) != 0)
		goto out;
	w->lock_fd = ws_lock_file(lock, err);
	if (w->lock_fd < 0)
		goto out;
	/* Whoever left one there is dead: we hold the lock. */
	unlink(w->socket_path);
	mode_t mask = umask(0077);

	w->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->listen_fd < 0 || bind(w->listen_fd, (struct sockaddr *)&a, sizeof a) != 0 ||
		listen(w->listen_fd, 8) != 0)
		ws_err_sys(err, "%s: cannot listen", w->socket_path);
	else
		rc = 0;
	umask(mask);
out:
	free(lock);
	return rc;
}

static void
client_free(struct client *c)
{
	walout_close(c);
	close(c->fd);
	ws_buf_free(&c->in);
	ws_buf_free(&c->out);
	free(c);
}

static void
accept_client(struct walsend *w)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	int fd = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	struct client *c = ws_calloc(1, sizeof *c);

	c->fd = fd;
	c->id = ++w->next_id;
	c->seg_fd = -1;
	w->clients = ws_realloc(w->clients, (w->nclients + 1) * sizeof *w->clients);
	w->clients[w->nclients++] = c;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || cred.uid != geteuid())
		client_fatal(c, "28000", "only user id %ld is served", (long)geteuid());
	else if (w->nclients > CLIENTS_MAX)
		client_fatal(c, "53300", "too many connections");
}

static void
flush_out(struct client *c)
{
	while (c->out_at < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			c->dead |= errno != EAGAIN && errno != EWOULDBLOCK;
			return;
		}
		c->out_at += (size_t)n;
	}
	c->out.len = c->out_at = 0;
	if (c->state == CL_CLOSING)
		c->dead = true;
}

static void
read_client(struct walsend *w, struct client *c)
{
	for (;;) {
		ws_buf_reserve(&c->in, 8192);
		ssize_t n = recv(c->fd, c->in.data + c->in.len, 8192, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			c->dead |= errno != EAGAIN && errno != EWOULDBLOCK;
			return;
		}
		if (n == 0) {
			c->dead = true;
			return;
		}
		c->in.len += (size_t)n;
		walsend_input(w, c);
		/* One that floods and does not read is not heard until it does. */
		if (c->dead || c->state == CL_CLOSING || c->out.len > 1u << 20)
			return;
	}
}

static void
reap(struct walsend *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->nclients; i++) {
		struct client *c = w->clients[i];

		if (!c->dead) {
			w->clients[n++] = c;
			continue;
		}
		if (c->state == CL_STREAM)
			ws_info("client %u: gone: application_name=%s sent=" WS_LSN_FMT, c->id, c->name,
					WS_LSN_ARG(c->sent));
		client_free(c);
	}
	w->nclients = n;
}

/* ---- files that change ---- */

static int
open_watches(struct walsend *w, struct ws_err *err)
{
	w->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->inotify_fd < 0)
		return ws_err_sys(err, "cannot use inotify");
	if (ws_mkdir_p(w->o->dir, 0700, err) != 0)
		return -1;
	w->wd_dir = inotify_add_watch(w->inotify_fd, w->o->dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
	if (w->wd_dir < 0)
		return ws_err_sys(err, "%s: cannot watch", w->o->dir);
	if (!w->o->state)
		return 0;
	char *pos = ws_asprintf("%s/pos", w->o->state);
	int rc = ws_mkdir_p(pos, 0700, err);

	if (rc == 0 && (w->wd_pos = inotify_add_watch(w->inotify_fd, pos, IN_MOVED_TO | IN_DELETE)) < 0)
		rc = ws_err_sys(err, "%s: cannot watch", pos);
	free(pos);
	return rc;
}

/* Empties inotify.  True when the gate's positions changed. */
static bool
read_watches(struct walsend *w)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool changed = false;
	ssize_t n;

	while ((n = read(w->inotify_fd, buf, sizeof buf)) > 0)
		for (char *p = buf; p < buf + n;) {
			const struct inotify_event *e = (const void *)p;

			if (e->mask & IN_Q_OVERFLOW)
				changed = true;
			else if (w->wd_pos >= 0 && e->wd == w->wd_pos && e->len)
				changed |= !strncmp(e->name, "captured.", 9) || !strcmp(e->name, "backup");
			p += sizeof *e + e->len;
		}
	return changed;
}

int
walsend_end(struct walsend *w, struct ws_err *err)
{
	return recvdir_end(w->o->dir, w->cluster.segsize, w->gate ? ws_gate_tli(w->gate) : 0, &w->end, err);
}

/* The gate opens as soon as the directory has WAL, which tells the timeline. */
static int
open_gate(struct walsend *w, struct ws_err *err)
{
	if (w->gate)
		return 0;
	if (walsend_end(w, err) != 0)
		return -1;
	if (w->end.lsn == 0)
		return 0;
	w->gate =
		ws_gate_open(w->o->dir, w->o->no_gate ? NULL : w->o->state, &w->cluster, w->end.tli, err);
	return w->gate ? 0 : -1;
}

/* ---- what the shadow reports ---- */

static int
write_pos(struct walsend *w, const char *name, struct ws_pos pos, bool sync, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/%s", w->o->state, name);
	int rc = ws_pos_write(path, pos, sync, err);

	free(path);
	return rc;
}

/* The reported positions are for people and metrics: no fsync, and not for every message.  The
 * REDO decides what is pruned, and is durable. */
static int
write_status(struct walsend *w, uint64_t now, struct ws_err *err)
{
	if (!w->o->state)
		return 0;
	if (w->status_changed && now - w->status_written_us >= STATUS_WRITE_US) {
		w->status_written_us = now;
		w->status_changed = false;
		if ((w->shadow_flush.lsn &&
			 write_pos(w, "shadow.flush", w->shadow_flush, false, err) != 0) ||
			write_pos(w, "shadow.replay", w->shadow_replay, false, err) != 0)
			return -1;
	}
	if (now - w->redo_checked_us < REDO_CHECK_US)
		return 0;
	w->redo_checked_us = now;
	char *pgdata = ws_asprintf("%s/shadow", w->o->state);
	struct ws_pgcontrol ctl;
	struct ws_err ignored;
	int rc = 0;

	if (ws_pgcontrol_read(pgdata, &ctl, &ignored) == 1 && ctl.redo.lsn != w->redo) {
		w->redo = ctl.redo.lsn;
		rc = write_pos(w, "shadow.redo", ctl.redo, true, err);
	}
	free(pgdata);
	return rc;
}

/* ---- the loop ---- */

static void
update_metrics(struct walsend *w, uint64_t now)
{
	ws_lsn sent = 0, held = w->gate ? ws_gate_held(w->gate) : 0;
	struct ws_err err;

	for (size_t i = 0; i < w->nclients; i++)
		if (w->clients[i]->state == CL_STREAM && w->clients[i]->sent > sent)
			sent = w->clients[i]->sent;
	if (held && sent >= held) {
		if (w->last_us && w->held_since_us)
			*w->m_held += (double)(now - w->last_us) / 1e6;
		else
			w->held_since_us = now;
	} else {
		w->held_since_us = 0;
	}
	w->last_us = now;
	*w->m_sent = (double)sent;
	*w->m_replay = (double)w->shadow_replay.lsn;
	*w->m_gate = (double)held;
	*w->m_limit = w->gate ? (double)ws_gate_limit(w->gate) : 0;
	*w->m_clients = (double)w->nclients;
	if (ws_metrics_write(ws_tool_metrics(), 1, &err) != 0)
		ws_log_err(&err);
}

/* Sends to whoever takes something.  1: there is more. */
static int
serve(struct walsend *w, struct ws_err *err)
{
	uint64_t now = ws_now_us();
	int more = 0;

	for (size_t i = 0; i < w->nclients; i++) {
		struct client *c = w->clients[i];

		flush_out(c);
		if (c->state != CL_STREAM || !w->gate)
			continue;
		int rc = 1;

		for (int n = 0; n < MESSAGES_AT_ONCE && c->out.len == 0 && !c->dead; n++) {
			rc = walout_send(w, c, err);
			if (rc < 0)
				return -1;
			if (rc == 0)
				break;
			flush_out(c);
		}
		if (c->out.len == 0 && (double)(now - c->last_sent_us) >= w->o->keepalive * 1e6) {
			msg_keepalive(&c->out, c->sent, repl_time(ws_wall_us()), false);
			c->last_sent_us = now;
			flush_out(c);
		}
		more |= rc == 1 && c->out.len == 0 && !c->dead;
	}
	return more;
}

/* Waits for something to do and reads what clients say. */
static int
wait_and_read(struct walsend *w, int timeout_ms, bool *changed, struct ws_err *err)
{
	struct pollfd p[3 + CLIENTS_MAX + 8];
	size_t n = w->nclients < CLIENTS_MAX + 8 ? w->nclients : CLIENTS_MAX + 8;

	p[0] = (struct pollfd){.fd = ws_tool_signal_fd(), .events = POLLIN};
	p[1] = (struct pollfd){.fd = w->inotify_fd, .events = POLLIN};
	p[2] =
		(struct pollfd){.fd = w->listen_fd, .events = w->nclients < CLIENTS_MAX + 8 ? POLLIN : 0};
	for (size_t i = 0; i < n; i++) {
		struct client *c = w->clients[i];

		p[3 + i] = (struct pollfd){.fd = c->fd, .events = c->out.len ? POLLOUT : 0};
		if (c->state != CL_CLOSING && c->out.len <= 1u << 20)
			p[3 + i].events |= POLLIN;
	}
	if (poll(p, 3 + n, timeout_ms) < 0)
		return errno == EINTR ? 0 : ws_err_sys(err, "cannot poll");
	ws_tool_take_hup();
	if (p[1].revents)
		*changed |= read_watches(w);
	for (size_t i = 0; i < n; i++) {
		if (p[3 + i].revents & POLLIN)
			read_client(w, w->clients[i]);
		else if (p[3 + i].revents & (POLLERR | POLLHUP | POLLNVAL))
			w->clients[i]->dead = true;
	}
	if (p[2].revents)
		accept_client(w);
	return 0;
}

static int
loop(struct walsend *w, struct ws_err *err)
{
	bool changed = false;
	int busy = 0;

	while (!ws_tool_stopping()) {
		uint64_t now = ws_now_us();
		int timeout = busy ? 0 : w->status_changed ? (int)(STATUS_WRITE_US / 1000) : POLL_MS;

		if (wait_and_read(w, timeout, &changed, err) != 0 || open_gate(w, err) != 0)
			return -1;
		if (w->gate) {
			if (changed && ws_gate_reload(w->gate, err) != 0)
				return -1;
			changed = false;
			busy = ws_gate_scan(w->gate, err);
			if (busy < 0)
				return -1;
		}
		int rc = serve(w, err);

		if (rc < 0)
			return -1;
		busy |= rc;
		reap(w);
		if (write_status(w, now, err) != 0)
			return -1;
		update_metrics(w, ws_now_us());
	}
	return 0;
}

/* As a server that shuts down: the end of the stream in order. */
static void
say_goodbye(struct walsend *w)
{
	for (size_t i = 0; i < w->nclients; i++) {
		struct client *c = w->clients[i];

		if (c->state == CL_STREAM)
			msg_complete(&c->out, "COPY 0");
		else if (c->state == CL_COMMAND)
			msg_error(&c->out, "FATAL", "57P01",
					  "terminating connection due to administrator command");
		flush_out(c);
	}
}

/* Without a state directory the WAL says what it is. */
static int
identify_dir(struct walsend *w, struct ws_err *err)
{
	struct ws_pos end;
	uint8_t b[WS_PAGE_HDR_LONG];
	struct ws_page_header h;
	bool partial;

	/* Any segment size finds the newest name; the header then tells the right one. */
	for (uint32_t s = WS_SEGSIZE_MIN; s <= WS_SEGSIZE_MAX && s; s <<= 1) {
		if (recvdir_end(w->o->dir, s, 0, &end, err) != 0 || end.lsn == 0)
			continue;
		int fd = recvdir_open(w->o->dir, s, end.tli, end.lsn - 1, O_RDONLY, &partial);
		bool ok = fd >= 0 && pread(fd, b, sizeof b, 0) == (ssize_t)sizeof b &&
				  ws_page_header_parse(b, sizeof b, &h) == 0 && (h.info & WS_PAGE_LONG_HEADER) &&
				  h.segsize == s;

		if (fd >= 0)
			close(fd);
		if (!ok)
			continue;
		const struct ws_walver *v = ws_walver_by_magic(h.magic);

		if (!v)
			return ws_err_usage(err,
								"%s: WAL of a PostgreSQL that is not known (page magic 0x%04X)",
								w->o->dir, h.magic);
		w->cluster = (struct ws_cluster){h.system_id, v->major, h.segsize};
		return 0;
	}
	return ws_err_usage(err, "%s: no WAL there to tell what it belongs to", w->o->dir);
}

/* Waits for the state's cluster file. */
static int
identify_state(struct walsend *w, struct ws_err *err)
{
	bool said = false;
	int rc;

	while ((rc = ws_cluster_read(w->o->state, &w->cluster, err)) == 0 && !ws_tool_stopping()) {
		struct pollfd p = {.fd = ws_tool_signal_fd(), .events = POLLIN};

		if (!said)
			ws_info("waiting for ws-receive to make %s/cluster", w->o->state);
		said = true;
		poll(&p, 1, POLL_MS);
	}
	return rc < 0 ? -1 : 0;
}

int
ws_walsend_run(const struct ws_walsend_opts *o, struct ws_err *err)
{
	struct walsend w = {
		.o = o, .listen_fd = -1, .inotify_fd = -1, .lock_fd = -1, .wd_pos = -1, .wd_dir = -1};
	int rc = o->state ? identify_state(&w, err) : identify_dir(&w, err);

	metrics_init(&w);
	if (rc == 0 && !ws_tool_stopping()) {
		rc = open_socket(&w, err);
		if (rc == 0)
			rc = open_watches(&w, err);
		if (rc == 0) {
			ws_info("listening: socket=%s directory=%s", w.socket_path, o->dir);
			rc = loop(&w, err);
		}
	}
	if (rc == 0)
		say_goodbye(&w);
	for (size_t i = 0; i < w.nclients; i++)
		client_free(w.clients[i]);
	free(w.clients);
	ws_gate_close(w.gate);
	if (w.listen_fd >= 0) {
		unlink(w.socket_path);
		close(w.listen_fd);
	}
	free(w.socket_path);
	for (int i = 0, fds[] = {w.inotify_fd, w.lock_fd}; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc == 0 ? WS_OK : err->status;
}
