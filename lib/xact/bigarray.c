/* Arrays that spill into a file; see bigarray.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bigarray.h"
#include "ws/mem.h"

void
ws_bigarray_free(struct ws_bigarray *s)
{
	if (s->mapped) {
		munmap(s->p, s->bytes);
		close(s->fd);
	} else {
		free(s->p);
	}
	memset(s, 0, sizeof *s);
}

static int
open_file(const char *dir, struct ws_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *path = ws_asprintf("%s/ws-decode.XXXXXX", dir ? dir : tmp ? tmp : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		ws_err_sys(err, "%s: cannot make a temporary file", path);
	else
		(void)unlink(path);
	free(path);
	return fd;
}

static int
allocate(int fd, size_t bytes, struct ws_err *err)
{
	int rc;

	do
		rc = posix_fallocate(fd, 0, (off_t)bytes);
	while (rc == EINTR);
	errno = rc;
	return rc ? ws_err_sys(err, "cannot enlarge a temporary file to %zu bytes", bytes) : 0;
}

/* From memory into a file. */
static int
move_out(struct ws_bigarray *s, size_t bytes, const char *dir, struct ws_err *err)
{
	int fd = open_file(dir, err);

	if (fd < 0)
		return -1;
	if (allocate(fd, bytes, err) != 0)
		goto fail;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED) {
		ws_err_sys(err, "cannot map a temporary file of %zu bytes", bytes);
		goto fail;
	}
	if (s->bytes)
		memcpy(p, s->p, s->bytes);
	free(s->p);
	*s = (struct ws_bigarray){p, bytes, fd, true};
	return 0;
fail:
	close(fd);
	return -1;
}

int
ws_bigarray_grow(struct ws_bigarray *s, size_t bytes, const char *dir, struct ws_err *err)
{
	if (bytes <= s->bytes)
		return 0;
	if (!s->mapped && bytes > WS_BIGARRAY_AT)
		return move_out(s, bytes, dir, err);
	if (!s->mapped) {
		s->p = ws_realloc(s->p, bytes);
		memset((char *)s->p + s->bytes, 0, bytes - s->bytes);
		s->bytes = bytes;
		return 0;
	}
	if (allocate(s->fd, bytes, err) != 0)
		return -1;
	void *p = mremap(s->p, s->bytes, bytes, MREMAP_MAYMOVE);

	if (p == MAP_FAILED)
		return ws_err_sys(err, "cannot map a temporary file of %zu bytes", bytes);
	s->p = p;
	s->bytes = bytes;
	return 0;
}
