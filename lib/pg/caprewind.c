/* Going back to a fork: the history that was captured past it, and positions of consumers that went along
 * where nothing was sent; see ws/capture.h.  For a state in which none of them is at work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "ws/file.h"
#include "ws/log.h"
#include "ws/pos.h"
#include "ws/statepos.h"

/* ---- consumers ---- */

struct back {
	struct cap *c;
	struct ws_pos to;
};

static int
check_sent(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	const struct back *b = arg;

	if (pos.lsn <= b->to.lsn)
		return 0;
	return ws_err_op(err, "published_past_fork",
	                 "consumer %s may have published up to " WS_LSN_FMT ", past " WS_LSN_FMT, name + strlen("sent."),
	                 WS_LSN_ARG(pos.lsn), WS_LSN_ARG(b->to.lsn));
}

static int
check_ack(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	const struct back *b = arg;

	return pos.lsn <= b->to.lsn ? 0 : cap_check_prepared(b->c, name + strlen("ack."), b->to, pos, err);
}

/* Each of the two tools of a consumer holds a lock while it is at work; of one that is gone, directory and all, only
 * positions are left. */
static int
lock_consumer(const char *state, const char *name, int *fd, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/consumer/%s", state, strchr(name, '.') + 1),
		 *lock = ws_asprintf("%s/%s", dir, *name == 'a' ? "lock" : "decode.lock");
	int rc = 0;

	*fd = -1;
	if (access(dir, F_OK) == 0 || errno != ENOENT)
		rc = (*fd = ws_lock_file(lock, err)) < 0 ? -1 : 0;
	free(lock);
	free(dir);
	return rc;
}

static int
take_back(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	const struct back *b = arg;
	int fd;

	if (pos.lsn <= b->to.lsn)
		return 0;
	if (lock_consumer(b->c->o->state, name, &fd, err) != 0)
		return -1;
	char *path = ws_asprintf("%s/pos/%s", b->c->o->state, name);
	int rc = ws_pos_write(path, b->to, true, err);

	if (fd >= 0)
		close(fd);
	if (rc == 0)
		ws_info("%s: back to " WS_LSN_FMT, name, WS_LSN_ARG(b->to.lsn));
	free(path);
	return rc;
}

static int
check_consumers(struct back *b, struct ws_err *err)
{
	return ws_statepos_each(b->c->o->state, "sent.", check_sent, b, err) == 0
	           ? ws_statepos_each(b->c->o->state, "ack.", check_ack, b, err)
	           : -1;
}

/* Floors first, which are never above an ack. */
static int
rewind_consumers(struct back *b, struct ws_err *err)
{
	const char *state = b->c->o->state;

	if (ws_statepos_each(state, "floor.", take_back, b, err) != 0 ||
	    ws_statepos_each(state, "ack.", take_back, b, err) != 0)
		return -1;
	/* Where ws-decode reads is told without waiting for the disk. */
	return ws_statepos_known(state, "read.", take_back, b, err);
}

/* ---- databases ---- */

/* The history first: after a crash between, the position is still beyond and both are repeated. */
static int
rewind_db(struct cap *c, struct cap_db *db, struct ws_pos to, struct ws_err *err)
{
	struct ws_pos first, last;

	if (!db->has || db->captured.lsn <= to.lsn)
		return 0;
	if (ws_cathist_captured(c->hist, db->oid, &first, &last, err) < 0)
		return -1;
	if (to.lsn < first.lsn)
		return ws_err_op(err, "fork_before_capture",
		                 "database %u was first captured at " WS_LSN_FMT ", after " WS_LSN_FMT, db->oid,
		                 WS_LSN_ARG(first.lsn), WS_LSN_ARG(to.lsn));
	if (ws_cathist_rewind(c->hist, db->oid, to.lsn, err) != 0)
		return -1;
	db->has = false;
	if (cap_move(c, db, to, true, err) != 0)
		return -1;
	ws_info("database %u: back to " WS_LSN_FMT, db->oid, WS_LSN_ARG(to.lsn));
	return 0;
}

int
ws_capture_rewind(const char *state, struct ws_pos to, struct ws_err *err)
{
	const struct ws_capture_opts o = {.state = state};
	struct cap c = {.o = &o};
	struct back b = {&c, to};
	char *dir = ws_asprintf("%s/catalog", state);
	int rc = -1;

	if (!(c.hist = ws_cathist_open(dir, true, err)) || check_consumers(&b, err) != 0 ||
	    cap_scan(&c, err) != 0)
		goto out;
	for (size_t i = 0; i < c.ndbs; i++)
		if (rewind_db(&c, &c.dbs[i], to, err) != 0)
			goto out;
	rc = rewind_consumers(&b, err);
out:
	free(dir);
	cap_fini(&c);
	return rc;
}
