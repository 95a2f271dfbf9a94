/* What standbys have flushed; see recvhold.h.
 *
 * What crosses between the threads is under one mutex; a position is written under it too, so that what
 * a session's end or a fork makes untrue is never written after it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "holdask.h"
#include "recvhold.h"
#include "timedcond.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/slot.h"
#include "ws/tool.h"

#define ASK_MIN_US  50000
#define ASK_MAX_US  1000000 /* while a standby does not move */
#define SAY_US      10000000 /* publishing has waited so long: it is said */
#define REPEAT_US   60000000

struct recvhold {
	const struct ws_hold *set;
	struct ws_pg_opts conn;
	char *path;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;

	/* under the lock */
	bool closing;
	struct hold_session session;
	unsigned sessions;
	ws_lsn received; /* in this session; 0: not compared yet */
	struct ws_pos pos;
	unsigned present;
	char why[sizeof((struct ws_err *)0)->msg]; /* what is in the way, "": nothing */
	uint64_t moved_us, said_us;
	struct ws_err failed;

	/* the thread's own */
	struct ws_pg *c;
	unsigned c_id; /* of the session that c was opened for */

	double *m_lsn, *m_lag, *m_present, *m_asked;
	double asked; /* under the lock */
};

/* ---- the thread ---- */

static struct hold_session
session_copy(const struct hold_session *s)
{
	struct hold_session c = *s;

	c.conninfo = s->conninfo ? ws_strdup(s->conninfo) : NULL;
	return c;
}

static bool
nothing_to_ask(const struct recvhold *h)
{
	return !h->session.id || h->received <= h->pos.lsn;
}

/* Waits, with the lock held, until there is something to ask and `at` has passed. */
static void
wait_due(struct recvhold *h, uint64_t at)
{
	while (!h->closing) {
		uint64_t now = ws_now_us();

		if (nothing_to_ask(h)) {
			pthread_cond_wait(&h->more, &h->lock);
			continue;
		}
		if (now >= at)
			return;
		timedcond_wait(&h->more, &h->lock, at - now);
	}
}

/* With the lock held.  True when the position moved. */
static bool
take(struct recvhold *h, const struct hold_answer *a, ws_lsn received)
{
	struct ws_pos pos = a->pos;

	h->present = a->present;
	strcpy(h->why, a->why);
	if (pos.lsn > received)
		pos.lsn = received;
	/* What was left at a fork was cut off: positions compare as numbers. */
	if (pos.lsn <= h->pos.lsn)
		return false;
	if (ws_pos_write(h->path, pos, false, &h->failed) != 0)
		return false;
	h->pos = pos;
	h->moved_us = ws_now_us();
	return true;
}

static void *
follow(void *arg)
{
	struct recvhold *h = arg;
	uint64_t interval = ASK_MIN_US, at = 0;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		wait_due(h, at);
		if (h->closing)
			break;
		struct hold_session s = session_copy(&h->session);
		ws_lsn received = h->received;
		struct ws_err err = {0};
		struct hold_answer a;
		bool moved = false;

		h->asked++;
		pthread_mutex_unlock(&h->lock);
		if (h->c && h->c_id != s.id) {
			ws_pg_close(h->c);
			h->c = NULL;
		}
		h->c_id = s.id;
		int rc = hold_ask(&h->c, h->set, &s, &a, &err);

		pthread_mutex_lock(&h->lock);
		/* Of a session that has ended, or before a fork: it counts no longer. */
		if (s.id == h->session.id) {
			if (rc != 0) {
				strcpy(a.why, err.msg);
				a.pos = (struct ws_pos){0, 0};
			}
			moved = take(h, &a, received);
		}
		free(s.conninfo);
		interval = moved ? ASK_MIN_US : interval * 2 < ASK_MAX_US ? interval * 2 : ASK_MAX_US;
		at = ws_now_us() + interval;
	}
	pthread_mutex_unlock(&h->lock);
	ws_pg_close(h->c);
	return NULL;
}

/* ---- what the receiver says ---- */

/* To c's address and no other, whatever hosts there are.  NULL on error. */
static char *
same_address(const struct ws_pg_opts *o, const PGconn *c, struct ws_err *err)
{
	char *given = ws_slot_parameters(o->host, o->port, o->user);
	char *base = ws_slot_conninfo(o->conninfo, given, err), *conninfo = NULL;
	struct ws_buf over = {0};

	pg_put_parameter(&over, "host", PQhost(c));
	pg_put_parameter(&over, "port", PQport(c));
	if (PQhostaddr(c) && *PQhostaddr(c))
		pg_put_parameter(&over, "hostaddr", PQhostaddr(c));
	if (base)
		conninfo = ws_slot_conninfo(base, ws_buf_cstr(&over), err);
	ws_buf_free(&over);
	free(base);
	free(given);
	return conninfo;
}

void
recvhold_session(struct recvhold *h, struct ws_pg *c, const struct ws_pg_source *s)
{
	if (!h)
		return;
	struct ws_err err = {0};
	char *conninfo = c ? same_address(&h->conn, ws_pg_raw(c), &err) : NULL;

	pthread_mutex_lock(&h->lock);
	free(h->session.conninfo);
	h->session = (struct hold_session){0};
	h->received = 0;
	h->present = 0;
	strcpy(h->why, c ? err.msg : "the server is not connected");
	if (conninfo)
		h->session = (struct hold_session){++h->sessions, PQbackendPID(ws_pg_raw(c)), s->system_id, conninfo,
										   h->conn.password};
	pthread_mutex_unlock(&h->lock);
}

void
recvhold_received(struct recvhold *h, ws_lsn lsn)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	if (lsn != h->received) {
		bool covered = h->received <= h->pos.lsn;

		h->received = lsn;
		if (covered && lsn > h->pos.lsn) {
			h->moved_us = ws_now_us(); /* what waits, waits from now on */
			pthread_cond_signal(&h->more);
		}
	}
	pthread_mutex_unlock(&h->lock);
}

int
recvhold_cut(struct recvhold *h, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	int rc = 0;

	if (!h)
		return 0;
	pthread_mutex_lock(&h->lock);
	h->received = 0;
	if (h->session.id)
		h->session.id = ++h->sessions; /* an answer on its way is of before */
	if (h->pos.lsn > lsn) {
		struct ws_pos pos = {tli, lsn};

		rc = ws_pos_write(h->path, pos, true, err);
		if (rc == 0)
			h->pos = pos;
	}
	pthread_mutex_unlock(&h->lock);
	return rc;
}

void
recvhold_look(struct recvhold *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	uint64_t now = ws_now_us();
	ws_lsn lag = h->received > h->pos.lsn ? h->received - h->pos.lsn : 0;

	*h->m_lsn = (double)h->pos.lsn;
	*h->m_lag = (double)lag;
	*h->m_present = h->present;
	*h->m_asked = h->asked;
	if (h->failed.msg[0]) {
		ws_log_err(&h->failed);
		h->failed = (struct ws_err){0};
	}
	if (lag && now - h->moved_us >= SAY_US && (!h->said_us || now - h->said_us >= REPEAT_US)) {
		ws_warn("nothing is published past what the standby has flushed: hold_back=%s flushed=" WS_LSN_FMT
				" received=" WS_LSN_FMT "%s%s%s",
				h->set->label, WS_LSN_ARG(h->pos.lsn), WS_LSN_ARG(h->received), *h->why ? " because=\"" : "", h->why,
				*h->why ? "\"" : "");
		h->said_us = now;
	} else if (!lag && h->received && h->said_us) {
		ws_info("the standby has caught up: hold_back=%s flushed=" WS_LSN_FMT, h->set->label,
				WS_LSN_ARG(h->pos.lsn));
		h->said_us = 0;
	}
	pthread_mutex_unlock(&h->lock);
}

/* ---- start and stop ---- */

/* Positions of other sets mean nothing any more. */
static int
forget_others(const char *state, const struct ws_hold *set, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/pos", state);
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = d || errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", dir);

	while (d && rc == 0 && (e = readdir(d))) {
		if (strncmp(e->d_name, "hold.", 5) || (set && !strcmp(e->d_name + 5, set->label)))
			continue;
		char *path = ws_asprintf("%s/%s", dir, e->d_name);

		if (unlink(path) != 0 && errno != ENOENT)
			rc = ws_err_sys(err, "%s: cannot remove", path);
		free(path);
	}
	if (d)
		closedir(d);
	free(dir);
	return rc;
}

static void
metrics(struct recvhold *h)
{
	struct ws_metrics *m = ws_tool_metrics();

	h->m_lsn = ws_metric(m, WS_GAUGE, "walshadow_hold_lsn", "",
						 "Received and flushed by the standbys of --hold-back, as a number.");
	h->m_lag = ws_metric(m, WS_GAUGE, "walshadow_hold_lag_bytes", "",
						 "Received WAL that they have not flushed, or not said so.");
	h->m_present = ws_metric(m, WS_GAUGE, "walshadow_hold_standbys", "",
							 "Standbys of --hold-back that are connected to the source.");
	*ws_metric(m, WS_GAUGE, "walshadow_hold_standbys_needed", "", "So many of them must have it.") = h->set->need;
	h->m_asked = ws_metric(m, WS_COUNTER, "walshadow_hold_queries_total", "", "Times that the source was asked.");
}

int
recvhold_start(const char *state, const struct ws_hold *set, const struct ws_pg_opts *conn,
			   struct recvhold **out, struct ws_err *err)
{
	*out = NULL;
	if (!state || forget_others(state, set, err) != 0)
		return state ? -1 : 0;
	if (!set)
		return 0;
	struct recvhold *h = ws_calloc(1, sizeof *h);

	h->set = set;
	h->conn = *conn;
	h->path = ws_hold_path(state, set);
	h->moved_us = ws_now_us();
	int rc = ws_pos_read(h->path, &h->pos, err);

	/* An empty file is what a power failure leaves. */
	if (rc < 0 && (err->status != WS_ETEMP || err->sys)) {
		free(h->path);
		free(h);
		return -1;
	}
	metrics(h);
	pthread_mutex_init(&h->lock, NULL);
	timedcond_init(&h->more);
	if ((rc = pthread_create(&h->thread, NULL, follow, h)) != 0) {
		errno = rc;
		free(h->path);
		free(h);
		return ws_err_sys(err, "cannot start a thread");
	}
	*out = h;
	return 0;
}

void
recvhold_stop(struct recvhold *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->closing = true;
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->more);
	pthread_mutex_destroy(&h->lock);
	free(h->session.conninfo);
	free(h->path);
	free(h);
}
