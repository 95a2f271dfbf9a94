/* A disk that is full, for tests: a shared object for LD_PRELOAD.
 *   NO_SPACE=TEXT[:N]  files whose path has TEXT in it take N bytes (0) a process, then writes to them fail */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* How many of n bytes the file takes. */
static size_t
room(int fd, size_t n)
{
	static size_t taken;
	const char *want = getenv("NO_SPACE"), *colon = want ? strrchr(want, ':') : NULL;
	size_t len = colon ? (size_t)(colon - want) : want ? strlen(want) : 0, limit = colon ? strtoul(colon + 1, NULL, 10) : 0;
	char link[64], name[4096];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t got = readlink(link, name, sizeof name);

	if (!len || got <= 0 || !memmem(name, (size_t)got, want, len))
		return n;
	n = n < limit - taken ? n : limit - taken;
	taken += n;
	return n;
}

ssize_t
write(int fd, const void *b, size_t n)
{
	ssize_t (*real)(int, const void *, size_t);
	void *p = dlsym(RTLD_NEXT, "write");
	size_t m = room(fd, n);

	memcpy(&real, &p, sizeof real);
	if (n && !m) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, b, m);
}

ssize_t
pwrite(int fd, const void *b, size_t n, off_t off)
{
	ssize_t (*real)(int, const void *, size_t, off_t);
	void *p = dlsym(RTLD_NEXT, "pwrite");
	size_t m = room(fd, n);

	memcpy(&real, &p, sizeof real);
	if (n && !m) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, b, m, off);
}
