/* Output of frames; see sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sink.h"
#include "ws/tool.h"

#define STOP_US 10000000u
#define PIPE_SIZE (1 << 20) /* what anybody may ask for (fs.pipe-max-size) */

void
ws_sink_init(struct ws_sink *s, int fd, bool json)
{
	struct stat st;

	memset(s, 0, sizeof *s);
	s->fd = fd;
	s->json = json ? ws_change_reader_new() : NULL;
	s->flags = -1;
	/* A pipe's write must not sleep where a signal could be missed. */
	if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		s->flags = fcntl(fd, F_GETFL);
		/* Fewer turns between the two ends; without it, it works as well. */
		if (S_ISFIFO(st.st_mode))
			(void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
		if (s->flags != -1)
			(void)fcntl(fd, F_SETFL, s->flags | O_NONBLOCK);
	}
}

void
ws_sink_fini(struct ws_sink *s)
{
	if (s->flags != -1)
		(void)fcntl(s->fd, F_SETFL, s->flags);
	ws_change_reader_free(s->json);
	ws_buf_free(&s->text);
}

/* The descriptor takes no more now. */
static int
wait_room(struct ws_sink *s, struct ws_err *err)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};
	uint64_t t = ws_now_us();

	if (ws_tool_stopping()) {
		if (!s->stop_us)
			s->stop_us = t;
		if (t - s->stop_us > STOP_US)
			return ws_err_temp(err, "told to stop, but nobody reads the output");
	}
	if (poll(&p, 1, 500) < 0 && errno != EINTR)
		return ws_err_sys(err, "cannot poll the output");
	s->blocked_us += ws_now_us() - t;
	return 0;
}

static int
write_all(struct ws_sink *s, const uint8_t *p, size_t n, struct ws_err *err)
{
	while (n) {
		ssize_t k = write(s->fd, p, n);

		if (k < 0) {
			if (errno == EAGAIN) {
				if (wait_room(s, err) != 0)
					return -1;
			} else if (errno != EINTR) {
				return ws_err_sys(err, "cannot write the output");
			}
			continue;
		}
		p += k;
		n -= (size_t)k;
		s->bytes += (uint64_t)k;
	}
	return 0;
}

static int
to_json(struct ws_sink *s, const struct ws_buf *b, struct ws_err *err)
{
	struct ws_change c;
	int rc;

	if (b->len)
		memcpy(ws_change_reader_room(s->json, b->len), b->data, b->len);
	ws_change_reader_fed(s->json, b->len);
	s->text.len = 0;
	while ((rc = ws_change_next(s->json, &c, err)) == 1)
		ws_change_json(&c, s->json, &s->text);
	return rc;
}

int
ws_sink_write(struct ws_sink *s, struct ws_buf *b, struct ws_err *err)
{
	const struct ws_buf *out = b;

	if (s->json) {
		if (to_json(s, b, err) != 0)
			return -1;
		out = &s->text;
	}
	int rc = write_all(s, out->data, out->len, err);

	b->len = 0;
	return rc;
}
