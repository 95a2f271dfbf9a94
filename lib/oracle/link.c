/* The connection to a database's worker: the launcher is asked for its socket first. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "oracle-int.h"
#include "ws/tool.h"

#define START_US 20000000u  /* the launcher waits 10 s for a worker */
#define REPLY_US 900000000u /* without a byte; the module's limits are lower */
#define STOP_US  10000000u  /* once told to stop */
#define STEP     (256u * 1024)

static bool
lost(struct oracle_link *k, const char *what)
{
	snprintf(k->why, sizeof k->why, "%s", what);
	return false;
}

static int
dial(struct oracle_link *k, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof a.sun_path) {
		snprintf(k->why, sizeof k->why, "%.200s: path too long for a socket", path);
		return -1;
	}
	memcpy(a.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
		fcntl(fd, F_SETFL, O_NONBLOCK);
		return fd;
	}
	snprintf(k->why, sizeof k->why, "%.200s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

void
oracle_link_close(struct oracle_link *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
	k->in.len = k->taken = 0;
}

/* Until the socket is ready, or limit has passed since `from`. */
static bool
ready(struct oracle_link *k, short what, uint64_t from, uint64_t limit)
{
	struct pollfd p = {.fd = k->fd, .events = what};
	uint64_t stop = 0;

	for (;;) {
		int rc = poll(&p, 1, 200);
		uint64_t now = ws_now_us();

		if (rc > 0)
			return true;
		if (rc < 0 && errno != EINTR)
			return lost(k, strerror(errno));
		if (ws_tool_stopping() && !stop)
			stop = now;
		if (stop && now - stop > STOP_US)
			return lost(k, "told to stop");
		if (now - from > limit)
			return lost(k, "no answer");
	}
}

bool
oracle_link_send(struct oracle_link *k, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t w = send(k->fd, p, n, MSG_NOSIGNAL);

		if (w < 0 && errno == EAGAIN) {
			if (!ready(k, POLLOUT, ws_now_us(), REPLY_US))
				return false;
		} else if (w < 0 && errno != EINTR) {
			return lost(k, "the connection ended");
		} else if (w > 0) {
			p += w;
			n -= (size_t)w;
		}
	}
	return true;
}

static int
frame_within(struct oracle_link *k, uint64_t limit, struct ws_oracle_frame *f, struct ws_err *err)
{
	int rc;

	if (k->taken) {
		memmove(k->in.data, k->in.data + k->taken, k->in.len - k->taken);
		k->in.len -= k->taken;
		k->taken = 0;
	}
	while ((rc = ws_oracle_frame_parse(k->in.data, k->in.len, f, err)) == 0) {
		ws_buf_reserve(&k->in, STEP);
		ssize_t got = recv(k->fd, k->in.data + k->in.len, k->in.cap - k->in.len, 0);

		if (got == 0)
			return lost(k, "the connection ended");
		if (got > 0)
			k->in.len += (size_t)got;
		else if (errno == EAGAIN && !ready(k, POLLIN, ws_now_us(), limit))
			return 0;
		else if (errno != EAGAIN && errno != EINTR)
			return lost(k, "the connection ended");
	}
	if (rc == 1)
		k->taken = f->size;
	return rc;
}

int
oracle_link_frame(struct oracle_link *k, struct ws_oracle_frame *f, struct ws_err *err)
{
	return frame_within(k, REPLY_US, f, err);
}

static int
greeting(struct oracle_link *k, ws_oid db, struct ws_err *err)
{
	struct ws_oracle_frame f;
	struct ws_oracle_hello h;
	int rc = frame_within(k, START_US, &f, err);

	if (rc != 1)
		return rc;
	if (f.type != 'H')
		return ws_err_op(err, "oracle_protocol", "%s: whoever listens there is no oracle",
						 k->socket);
	if (ws_oracle_hello_parse(f.p, f.n, &h, err) != 0)
		return ws_err_prefix(err, "%s", k->socket);
	if (h.db != db)
		return ws_err_op(err, "oracle_protocol", "%s: a worker of database %u answers for %u",
						 k->socket, h.db, db);
	return 1;
}

/* The name of the worker's socket, beside the launcher's. */
static int
ask(struct oracle_link *k, char *name, size_t size, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_oracle_frame f;
	size_t at = oracle_frame_begin(&b, 'D');

	ws_buf_put32(&b, k->db);
	oracle_frame_end(&b, at);
	bool sent = oracle_link_send(k, b.data, b.len);

	ws_buf_free(&b);
	if (!sent)
		return 0;
	int rc = frame_within(k, START_US, &f, err);

	if (rc != 1)
		return rc;
	if (f.type == 'N')
		return ws_oracle_text_parse(f.p, f.n, k->why, sizeof k->why, err);
	if (f.type != 'G' || ws_oracle_text_parse(f.p, f.n, name, size, err) != 0 || !*name ||
		strchr(name, '/'))
		return ws_err_op(err, "oracle_protocol", "%s: malformed answer", k->socket);
	return 1;
}

int
oracle_link_open(struct oracle_link *k, struct ws_err *err)
{
	const char *slash = strrchr(k->socket, '/');
	char name[64], *path;
	int rc;

	if (k->fd >= 0)
		return 1;
	if ((k->fd = dial(k, k->socket)) < 0)
		return 0;
	rc = greeting(k, 0, err);
	if (rc == 1)
		rc = ask(k, name, sizeof name, err);
	oracle_link_close(k);
	if (rc != 1)
		return rc;
	path =
		slash ? ws_asprintf("%.*s/%s", (int)(slash - k->socket), k->socket, name) : ws_strdup(name);
	k->fd = dial(k, path);
	free(path);
	if (k->fd < 0)
		return 0;
	rc = greeting(k, k->db, err);
	if (rc != 1)
		oracle_link_close(k);
	return rc;
}
