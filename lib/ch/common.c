/* Positions of a consumer with several destinations: ack at their lowest, sent at their highest, a
 * table loaded when it is at all.  Each destination's ws-emit does this after a step of its own,
 * under a lock, so that nobody has to watch; see lib/ch/emit.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/ch/emit.h"
#include "ws/file.h"
#include "ws/pos.h"

static int
lock_common(const struct ws_emit *e, struct ws_err *err)
{
	char *path = ws_asprintf("%s/consumer/%s/tee.lock", e->o.state, e->o.common);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	while (fd >= 0 && flock(fd, LOCK_EX) != 0)
		if (errno != EINTR) {
			close(fd);
			fd = -1;
		}
	if (fd < 0)
		ws_err_sys(err, "%s: cannot lock", path);
	free(path);
	return fd;
}

/* 1 read, 0 not there, -1. */
static int
read_of(const struct ws_emit *e, const char *what, const char *name, struct ws_pos *p,
		struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/%s.%s", e->o.state, what, name);
	int rc = ws_pos_read(path, p, err);

	free(path);
	return rc;
}

static int
raise_to(const struct ws_emit *e, const char *what, struct ws_pos p, struct ws_err *err)
{
	struct ws_pos now;
	int rc = read_of(e, what, e->o.common, &now, err);

	if (rc < 0 || (rc == 1 && now.lsn >= p.lsn))
		return rc < 0 ? -1 : 0;
	char *path = ws_asprintf("%s/pos/%s.%s", e->o.state, what, e->o.common);

	rc = ws_pos_write(path, p, true, err);
	free(path);
	return rc;
}

int
emit_common_sent(const struct ws_emit *e, struct ws_pos p, struct ws_err *err)
{
	if (!e->o.common)
		return 0;
	int fd = lock_common(e, err), rc = fd < 0 ? -1 : raise_to(e, "sent", p, err);

	if (fd >= 0)
		close(fd);
	return rc;
}

int
emit_common_ack(const struct ws_emit *e, struct ws_err *err)
{
	struct ws_pos low = {0, 0}, p;

	if (!e->o.common)
		return 0;
	int fd = lock_common(e, err), rc = fd < 0 ? -1 : 1;

	for (int i = 0; i < e->o.npeers && rc == 1; i++) {
		rc = read_of(e, "ack", e->o.peers[i], &p, err);
		if (rc == 1 && (i == 0 || p.lsn < low.lsn))
			low = p;
	}
	if (rc == 1)
		rc = raise_to(e, "ack", low, err);
	if (fd >= 0)
		close(fd);
	return rc < 0 ? -1 : 0;
}

int
emit_common_loaded(const struct ws_emit *e, ws_oid oid, struct ws_pos p, const struct ws_buf *text,
				   struct ws_err *err)
{
	struct ws_pos there;

	if (!e->o.common)
		return 0;
	int fd = lock_common(e, err), rc = fd < 0 ? -1 : 1;

	for (int i = 0; i < e->o.npeers && rc == 1; i++) {
		char *path = ws_asprintf("%s/consumer/%s/load/%u", e->o.state, e->o.peers[i], oid);

		rc = ws_pos_read_first(path, &there, err);
		if (rc == 1 && there.lsn != p.lsn)
			rc = 0;
		free(path);
	}
	if (rc == 1) {
		char *dir = ws_asprintf("%s/consumer/%s/load", e->o.state, e->o.common);
		char *path = ws_asprintf("%s/%u", dir, oid);

		rc = ws_mkdir_p(dir, 0700, err) != 0 ||
					 ws_file_replace(path, text->data, text->len, 0600, true, err) != 0
				 ? -1
				 : 0;
		free(dir);
		free(path);
	}
	if (fd >= 0)
		close(fd);
	return rc < 0 ? -1 : 0;
}

/* One that joins later has none of what the others have. */
int
emit_common_check(const struct ws_emit *e, struct ws_err *err)
{
	struct ws_pos p;

	if (!e->o.common || e->have_ack || e->o.load)
		return 0;
	int rc = read_of(e, "ack", e->o.common, &p, err);

	if (rc <= 0)
		return rc;
	return ws_err_op(err, "destination_unloaded",
					 "destination %s is new and consumer %s is at " WS_LSN_FMT
					 ": its tables have to be loaded first",
					 e->o.consumer, e->o.common, WS_LSN_ARG(p.lsn));
}
