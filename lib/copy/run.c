/* The load as a whole: positions, rounds, the frames around the tables; see ws/copy.h. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/log.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "copy-int.h"

#define MAX_ROUNDS 20
#define TELL_US    10000000 /* how often a wait is explained; the first time after a second */
#define FIRST_US   1000000

int
copy_put(struct copy *c, const struct ws_buf *b, struct ws_err *err)
{
	return ws_write_all(c->o->out, b->data, b->len, err, "standard output");
}

/* ---- waiting for others ---- */

static int
nap(struct ws_err *err)
{
	struct pollfd p = {.fd = ws_tool_signal_fd(), .events = POLLIN};

	(void)poll(&p, 1, 20);
	ws_tool_take_hup();
	return ws_tool_stopping() ? ws_err_temp(err, "interrupted") : 0;
}

/* Until the position file NAME in pos/ is there and at or past lsn. */
static int
wait_pos(struct copy *c, const char *name, ws_lsn lsn, struct ws_pos *p, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/%s", c->o->state, name);
	uint64_t told = ws_now_us() - TELL_US + FIRST_US;
	int rc;

	while ((rc = ws_pos_read(path, p, err)) >= 0 && (rc == 0 || p->lsn < lsn)) {
		if (nap(err) != 0) {
			rc = -1;
			break;
		}
		if (ws_now_us() - told > TELL_US) {
			told = ws_now_us();
			ws_info("waiting for pos/%s to reach " WS_LSN_FMT, name, WS_LSN_ARG(lsn));
		}
	}
	free(path);
	return rc < 0 ? -1 : 0;
}

/* Rows of a snapshot are of commits up to its consistent point, which standbys may lack yet.  A position of
 * an older timeline does not tell. */
static int
wait_hold(struct copy *c, struct ws_err *err)
{
	char *name = c->o->hold ? ws_asprintf("hold.%s", c->o->hold->label) : NULL;
	struct ws_pos p;
	int rc = 0;

	while (name && (rc = wait_pos(c, name, c->snap.lsn, &p, err)) == 0 && p.tli != c->tli)
		if ((rc = nap(err)) != 0)
			break;
	free(name);
	return rc;
}

/* ---- before the first slot ---- */

/* Where the consumer must begin to read WAL: at or below what has been received when the slot is asked
 * for, which is below the consistent point; transactions open there have ended by then.  What is captured
 * is a record's end, while what is received may end in the zeros behind a segment switch.  Pruning
 * counts every floor file: a first one, at the first capture, keeps it from going past the position that
 * is read here before that is a floor. */
static int
write_floor(struct copy *c, struct ws_pos c0, const char *captured, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/floor.%s", c->o->state, c->o->consumer), *pin = ws_asprintf("%s.pin", path);
	struct ws_pos p, last, received;
	int rc = ws_pos_read(path, &p, err);

	if (rc == 0) {
		rc = -1;
		if (ws_pos_write(pin, c0, true, err) == 0 && wait_pos(c, captured, 1, &last, err) == 0 &&
		    wait_pos(c, "received", 1, &received, err) == 0) {
			if (received.lsn < last.lsn)
				last = received;
			rc = ws_pos_write(path, last.lsn > c0.lsn ? last : c0, true, err);
		}
	}
	if (rc >= 0)
		unlink(pin);
	free(path);
	free(pin);
	return rc < 0 ? -1 : 0;
}

static int
check_source(struct copy *c, struct ws_c_identity *id, char *encoding, struct ws_err *err)
{
	const struct ws_pg_opts o = {.mode = WS_PG_DATABASE, .conninfo = c->o->conninfo, .appname = "ws-copy"};
	struct ws_pg_source s;
	struct ws_pg *pg = ws_pg_open(&o, NULL, err);
	int rc = pg && ws_pg_identify(pg, &s, err) == 0 ? 0 : -1;
	ws_oid db;

	ws_pg_close(pg);
	if (rc != 0)
		return -1;
	const struct ws_cluster cluster = {s.system_id, s.major, s.segsize};

	if (ws_cluster_claim(c->o->state, &cluster, err) != 0 || ws_pg_database(c->control, &db, encoding, err) != 0)
		return -1;
	if (db != c->o->db)
		return ws_err_usage(err, "the connection is to database %u, consumer %s is of %s (%u): name it by dbname=", db,
		                    c->o->consumer, c->o->dbname, c->o->db);
	if (strcmp(s.wal_level, "logical"))
		return ws_err_op(err, "wal_level", "the source's wal_level is %s: it must be logical", s.wal_level);
	c->tli = s.pos.tli;
	*id = (struct ws_c_identity){.system_id = s.system_id, .tli = c->tli, .db = db, .major = (uint16_t)s.major,
	                             .dbname = c->o->dbname, .encoding = encoding};
	return 0;
}

/* ---- a round ---- */

static int
export_snapshot(struct copy *c, int round, struct ws_err *err)
{
	const struct ws_pg_opts o = {.mode = WS_PG_DATABASE, .conninfo = c->o->conninfo, .appname = "ws-copy"};
	char slot[64], who[400];
	uint64_t told = ws_now_us() - TELL_US + FIRST_US;
	int rc;

	ws_pg_close(c->exporter);
	c->exporter = ws_pg_open(&o, NULL, err);
	snprintf(slot, sizeof slot, "walshadow_copy_%d_%d", (int)getpid(), round);
	if (!c->exporter || ws_pg_no_timeouts(c->exporter, err) != 0 || ws_pg_snapshot_start(c->exporter, slot, err) != 0)
		return -1;
	while ((rc = ws_pg_snapshot_wait(c->exporter, 500, &c->snap, err)) == 0) {
		if (ws_now_us() - told < TELL_US)
			continue;
		told = ws_now_us();
		if (ws_pg_blockers(c->control, ws_pg_backend_pid(c->exporter), who, sizeof who, err) != 0)
			return -1;
		ws_info("waiting for the end of older transactions: %s", *who ? who : "the next checkpoint's record of them");
	}
	if (rc < 0)
		return -1;
	ws_info("consistent point " WS_LSN_FMT, WS_LSN_ARG(c->snap.lsn));
	return 0;
}

static int
put_identity(struct copy *c, const struct ws_c_identity *id, struct ws_err *err)
{
	struct ws_buf b = {0};
	const struct ws_change ev = {.type = WS_C_IDENTITY, .identity = *id};

	if (c->began)
		return 0;
	ws_change_put_header(&b);
	ws_change_put(&b, &ev);
	int rc = copy_put(c, &b, err);

	ws_buf_free(&b);
	c->began = true;
	return rc;
}

static int
run_round(struct copy *c, int round, ws_lsn c0, const struct ws_c_identity *id, struct ws_err *err)
{
	struct copy_oids only = c->redo;
	char name[32];
	struct ws_pos p;

	c->redo = (struct copy_oids){0};
	snprintf(name, sizeof name, "captured.%u", c->o->db);
	int rc = export_snapshot(c, round, err);

	if (rc == 0 && c->snap.lsn < c0)
		rc = ws_err_temp(err, "consistent point " WS_LSN_FMT " lies before the first capture " WS_LSN_FMT,
		                 WS_LSN_ARG(c->snap.lsn), WS_LSN_ARG(c0));
	if (rc == 0)
		rc = wait_pos(c, name, c->snap.lsn, &p, err);
	if (rc == 0)
		rc = wait_hold(c, err);
	if (rc == 0)
		rc = copy_plan(c, round ? &only : NULL, err);
	if (rc == 0 && round == 0)
		c->total = c->ntables;
	if (rc == 0)
		rc = put_identity(c, id, err);
	if (rc == 0)
		rc = copy_work(c, err);
	copy_plan_free(c);
	free(only.v);
	return rc;
}

/* Every commit up to the end frame's position is in all tables that are loaded: it is the lowest of
 * their consistent points, also of those that an earlier run loaded. */
static int
put_end(struct copy *c, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_change ev = {.type = WS_C_END};

	ev.end = (struct ws_pos){c->tli, c->lowest ? c->lowest : c->snap.lsn};
	ws_change_put(&b, &ev);
	int rc = copy_put(c, &b, err);

	ws_buf_free(&b);
	return rc;
}

static int
load(struct copy *c, struct ws_err *err)
{
	struct ws_c_identity id;
	struct ws_pos first, last;
	char name[32], encoding[32];

	if (!(c->control = copy_session(c, err)) || ws_pg_no_timeouts(c->control, err) != 0 ||
	    check_source(c, &id, encoding, err) != 0)
		return -1;
	snprintf(name, sizeof name, "captured.%u", c->o->db);
	if (wait_pos(c, name, 1, &last, err) != 0)
		return -1;
	char *dir = ws_asprintf("%s/catalog", c->o->state);

	c->hist = ws_cathist_open(dir, false, err);
	free(dir);
	if (!c->hist)
		return -1;
	int rc = ws_cathist_captured(c->hist, c->o->db, &first, &last, err);

	if (rc != 1)
		return rc < 0 ? -1 : ws_err_temp(err, "the catalog history has nothing of database %u", c->o->db);
	/* Before any snapshot: nobody else applies commits to the store from here on. */
	dir = ws_asprintf("%s/consumer/%s/toast", c->o->state, c->o->consumer);
	c->store = ws_toaststore_open(dir, id.system_id, c->o->db, err);
	free(dir);
	if (!c->store || write_floor(c, first, name, err) != 0)
		return -1;
	c->started = ws_now_us();
	for (int round = 0; round == 0 || c->redo.n; round++) {
		if (round == MAX_ROUNDS)
			return ws_err_temp(err, "tables keep changing under the load: %zu left", c->redo.n);
		if (run_round(c, round, first.lsn, &id, err) != 0)
			return -1;
	}
	return put_end(c, err);
}

int
ws_copy_run(const struct ws_copy_opts *o, struct ws_err *err)
{
	struct copy c = {.o = o};
	char *path = ws_asprintf("%s/consumer/%s/copy.lock", o->state, o->consumer);
	int lock = ws_lock_file(path, err), rc = -1;

	free(path);
	if (lock >= 0)
		rc = load(&c, err);
	copy_progress_end(&c);
	if (rc == 0)
		ws_info("loaded: tables=%zu rows=%llu bytes=%llu", c.done, (unsigned long long)c.rows, (unsigned long long)c.bytes);
	free(c.redo.v);
	ws_toaststore_close(c.store);
	ws_cathist_close(c.hist);
	ws_pg_close(c.exporter);
	ws_pg_close(c.control);
	if (lock >= 0)
		close(lock);
	return rc;
}
