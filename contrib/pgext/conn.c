/* Frames on Unix sockets: u32 length, u8 type, body; little-endian. */
#include "oracle.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#define SEND_TIMEOUT_MS 60000

/* ---- reading ---- */

const char *
cur_bytes(Cursor *c, size_t n)
{
	const char *p = c->p;

	if (c->bad || (size_t)(c->end - p) < n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

uint8
cur_u8(Cursor *c)
{
	const char *p = cur_bytes(c, 1);

	return p ? (uint8)*p : 0;
}

uint16
cur_u16(Cursor *c)
{
	const char *p = cur_bytes(c, 2);
	uint16 v = 0;

	if (p)
		memcpy(&v, p, 2);
	return v;
}

uint32
cur_u32(Cursor *c)
{
	const char *p = cur_bytes(c, 4);
	uint32 v = 0;

	if (p)
		memcpy(&v, p, 4);
	return v;
}

char *
cur_str(Cursor *c)
{
	uint32 n = cur_u32(c);
	const char *p = cur_bytes(c, n);

	if (!p || n > 65536 || memchr(p, 0, n)) {
		c->bad = true;
		return pstrdup("");
	}
	return pnstrdup(p, n);
}

/* ---- writing ---- */

void
buf_reserve(Bytes *b, size_t more)
{
	size_t want = b->len + more;

	if (want <= b->cap)
		return;
	if (want < b->cap * 2)
		want = b->cap * 2;
	if (want < 8192)
		want = 8192;
	b->data =
		b->data ? repalloc_huge(b->data, want) : MemoryContextAllocHuge(TopMemoryContext, want);
	b->cap = want;
}

void
buf_put(Bytes *b, const void *p, size_t n)
{
	buf_reserve(b, n);
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

void
buf_u8(Bytes *b, uint8 v)
{
	buf_put(b, &v, 1);
}

void
buf_u16(Bytes *b, uint16 v)
{
	buf_put(b, &v, 2);
}

void
buf_u32(Bytes *b, uint32 v)
{
	buf_put(b, &v, 4);
}

void
buf_str(Bytes *b, const char *s, size_t n)
{
	buf_u32(b, (uint32)n);
	buf_put(b, s, n);
}

void
buf_free(Bytes *b)
{
	if (b->data)
		pfree(b->data);
	memset(b, 0, sizeof *b);
}

size_t
frame_begin(Bytes *b, char type)
{
	size_t at = b->len;

	buf_u32(b, 0);
	buf_u8(b, (uint8)type);
	return at;
}

void
frame_end(Bytes *b, size_t at)
{
	uint32 n = (uint32)(b->len - at - 4);

	memcpy(b->data + at, &n, 4);
}

void
frame_hello(Bytes *b, Oid db, const char *encoding)
{
	size_t at = frame_begin(b, 'H');

	buf_put(b, ORACLE_MAGIC, 8);
	buf_u16(b, ORACLE_VERSION);
	buf_u16(b, PG_VERSION_NUM / 10000);
	buf_u32(b, db);
	buf_str(b, encoding, strlen(encoding));
	frame_end(b, at);
}

/* ---- sockets ---- */

void
socket_path(char *path, const char *name)
{
	struct sockaddr_un a;

	if (snprintf(path, MAXPGPATH, "%s/%s", oracle_directory, name) >= (int)sizeof a.sun_path)
		ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
						errmsg("walshadow oracle: socket path \"%s\" is too long", path)));
}

int
socket_listen(const char *name)
{
	char path[MAXPGPATH], tmp[MAXPGPATH], tmpname[64];
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old;
	int rc;

	snprintf(tmpname, sizeof tmpname, "%s.new", name);
	socket_path(path, name);
	socket_path(tmp, tmpname);
	(void)unlink(tmp);
	snprintf(a.sun_path, sizeof a.sun_path, "%s", tmp);
	old = umask(0177);
	rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&a, sizeof a);
	umask(old);
	if (rc != 0 || listen(fd, 64) != 0 || rename(tmp, path) != 0)
		ereport(FATAL, (errcode_for_socket_access(),
						errmsg("walshadow oracle: cannot listen on \"%s\": %m", path)));
	return fd;
}

int
socket_accept(int lfd)
{
	int fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t n = sizeof peer;

	if (fd < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.uid != geteuid()) {
		ereport(LOG, (errmsg("walshadow oracle: refused a connection of another user")));
		close(fd);
		return -1;
	}
	return fd;
}

bool
socket_send(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k < 0) {
			struct pollfd w = {.fd = fd, .events = POLLOUT};
			int rc;

			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				return false;
			CHECK_FOR_INTERRUPTS();
			rc = poll(&w, 1, SEND_TIMEOUT_MS);
			CHECK_FOR_INTERRUPTS();
			if (rc == 0)
				return false;
			continue;
		}
		p += k;
		n -= (size_t)k;
	}
	return true;
}
