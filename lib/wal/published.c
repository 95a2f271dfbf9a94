/* What went to a destination, against a history; see ws/published.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/published.h"
#include "ws/statepos.h"

struct published {
	const struct ws_history *h;
	struct ws_pos most;
};

static int
check_sent(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	struct published *p = arg;
	ws_lsn end = ws_history_end(p->h, pos.tli);

	if (pos.lsn > p->most.lsn)
		p->most = pos;
	if (pos.lsn <= end)
		return 0;
	return ws_err_op(err, "published_past_fork",
	                 "consumer %s sent changes up to " WS_LSN_FMT " of timeline %u, which was left at " WS_LSN_FMT
	                 " for timeline %u",
	                 name + strlen("sent."), WS_LSN_ARG(pos.lsn), pos.tli, WS_LSN_ARG(end), p->h->tli);
}

int
ws_published_check(const char *state, const struct ws_history *h, struct ws_pos *most, struct ws_err *err)
{
	struct published p = {.h = h};
	int rc = state ? ws_statepos_each(state, "sent.", check_sent, &p, err) : 0;

	if (most)
		*most = p.most;
	return rc;
}

/* ---- the fence ---- */

/* The check of all that was sent and the fence are one step for those who are about to send. */
static int
lock(const char *state, int how, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/.fence.lock", state);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = fd < 0 ? -1 : 0;

	while (fd >= 0 && (rc = flock(fd, how)) != 0 && errno == EINTR)
		;
	if (rc != 0) {
		ws_err_sys(err, "%s: cannot lock", path);
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

static char *
fence_path(const char *state)
{
	return ws_asprintf("%s/pos/fence", state);
}

int
ws_published_fence(const char *state, const struct ws_history *h, ws_tli tli, struct ws_pos *most,
                   struct ws_err *err)
{
	const struct ws_pos at = {tli, ws_history_end(h, tli)};

	if (!state)
		return ws_published_check(state, h, most, err);
	char *path = fence_path(state);
	int fd = lock(state, LOCK_EX, err);
	int rc = fd >= 0 && ws_published_check(state, h, most, err) == 0 ? ws_pos_write(path, at, true, err) : -1;

	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

int
ws_published_unfence(const char *state, ws_tli tli, struct ws_err *err)
{
	struct ws_pos fence;

	if (!state)
		return 0;
	char *path = fence_path(state);
	int rc = ws_pos_read(path, &fence, err);

	if (rc == 1 && fence.tli >= tli && unlink(path) != 0 && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot remove", path);
	free(path);
	return rc < 0 ? -1 : 0;
}

int
ws_published_move(const char *state, const char *sent, struct ws_pos p, struct ws_err *err)
{
	char *path = fence_path(state);
	int fd = lock(state, LOCK_SH, err);
	struct ws_pos fence;
	int rc = fd < 0 ? -1 : ws_pos_read(path, &fence, err);

	if (rc == 1 && p.tli <= fence.tli && p.lsn > fence.lsn)
		rc = ws_err_temp(err,
		                 "timeline %u was left at " WS_LSN_FMT ": changes up to " WS_LSN_FMT
		                 " of timeline %u are not sent",
		                 fence.tli, WS_LSN_ARG(fence.lsn), WS_LSN_ARG(p.lsn), p.tli);
	if (rc >= 0)
		rc = ws_pos_write(sent, p, true, err);
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}
