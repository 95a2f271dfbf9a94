/* A consumer's positions; see live.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "live.h"
#include "ws/file.h"
#include "ws/mem.h"
#include "ws/tool.h"

#define FLOOR_US 1000000u /* between floors that are written, each an fsync */
#define FLOOR_BYTES (16u * 1024 * 1024)
#define READ_US  200000u
#define ACK_US   2000u
#define SAY_US   10000000u

int
ws_live_open(struct ws_live *l, const char *state, const char *consumer, ws_oid db,
             struct ws_err *err)
{
	char *pos = ws_asprintf("%s/pos", state), *sent = ws_asprintf("%s/sent.%s", pos, consumer);
	char *dir = ws_asprintf("%s/consumer/%s", state, consumer), *lock = ws_asprintf("%s/decode.lock", dir);
	int rc = -1;

	memset(l, 0, sizeof *l);
	l->inotify = -1;
	/* floor.NAME and read.NAME have one writer. */
	l->lock = ws_mkdir_p(dir, 0700, err) == 0 ? ws_lock_file(lock, err) : -1;
	free(lock);
	free(dir);
	if (l->lock < 0)
		goto out;
	l->captured_path = ws_asprintf("%s/captured.%u", pos, db);
	l->ack_path = ws_asprintf("%s/ack.%s", pos, consumer);
	l->floor_path = ws_asprintf("%s/floor.%s", pos, consumer);
	l->read_path = ws_asprintf("%s/read.%s", pos, consumer);
	ws_floorq_init(&l->floors);
	l->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (l->inotify >= 0 && inotify_add_watch(l->inotify, pos, IN_MOVED_TO) < 0) {
		close(l->inotify);
		l->inotify = -1;
	}
	if (ws_pos_read(l->ack_path, &l->ack, err) >= 0 && ws_pos_read(sent, &l->published, err) >= 0)
		rc = 0;
out:
	free(sent);
	free(pos);
	return rc;
}

void
ws_live_close(struct ws_live *l)
{
	if (l->inotify >= 0)
		close(l->inotify);
	free(l->captured_path);
	free(l->ack_path);
	free(l->floor_path);
	free(l->read_path);
	if (l->lock >= 0)
		close(l->lock);
	memset(l, 0, sizeof *l);
	l->lock = -1;
}

int
ws_live_sleep(struct ws_live *l, int extra_fd, int ms, struct ws_err *err)
{
	struct pollfd p[3] = {{.fd = l->inotify, .events = POLLIN},
	                      {.fd = ws_tool_signal_fd(), .events = POLLIN},
	                      {.fd = extra_fd, .events = POLLIN}};
	char junk[4096];

	if (ws_tool_stopping())
		return 0;
	if (l->inotify < 0 && ms > 5)
		ms = 5;
	if (poll(p, 3, ms) < 0 && errno != EINTR)
		return ws_err_sys(err, "cannot poll");
	if (p[0].revents)
		while (read(l->inotify, junk, sizeof junk) > 0)
			;
	return 0;
}

int
ws_live_wait_start(struct ws_live *l, struct ws_err *err)
{
	uint64_t said = 0;

	for (;;) {
		int f = ws_pos_read(l->floor_path, &l->floor, err);
		int c = f >= 0 ? ws_pos_read(l->captured_path, &l->captured, err) : -1;

		if (c < 0)
			return -1;
		if (f && c)
			return 1;
		if (ws_tool_stopping())
			return 0;
		if (ws_now_us() - said > SAY_US) {
			ws_info("waiting for %s", f ? l->captured_path : l->floor_path);
			said = ws_now_us();
		}
		if (ws_live_sleep(l, -1, 200, err) != 0)
			return -1;
	}
}

int
ws_live_look_captured(struct ws_live *l, ws_lsn lsn, struct ws_err *err)
{
	if (l->captured.lsn >= lsn)
		return 1;
	if (ws_pos_read(l->captured_path, &l->captured, err) < 0)
		return -1;
	return l->captured.lsn >= lsn;
}

int
ws_live_floor(struct ws_live *l, ws_lsn sent, bool now, struct ws_err *err)
{
	struct ws_pos floor;
	uint64_t t = ws_now_us();

	if (l->ack.lsn >= sent && !now)
		return 0;
	if (!now && t - l->ack_us < ACK_US)
		return 0;
	l->ack_us = t;
	if (ws_pos_read(l->ack_path, &l->ack, err) < 0)
		return -1;
	if (!ws_floorq_take(&l->floors, l->ack.lsn, &floor) || floor.lsn <= l->floor.lsn)
		return 0;
	if (!now && t - l->floor_us < FLOOR_US && floor.lsn - l->floor.lsn < FLOOR_BYTES)
		return 0;
	if (l->before_floor && l->before_floor(l->arg, err) != 0)
		return -1;
	if (ws_pos_write(l->floor_path, floor, true, err) != 0)
		return -1;
	l->floor = floor;
	l->floor_us = ws_now_us();
	return 0;
}

int
ws_live_read(struct ws_live *l, struct ws_pos at, bool now, struct ws_err *err)
{
	uint64_t t = ws_now_us();

	if (at.lsn == l->read.lsn || (!now && t - l->read_us < READ_US))
		return 0;
	if (ws_pos_write(l->read_path, at, false, err) != 0)
		return -1;
	l->read = at;
	l->read_us = t;
	return 0;
}
