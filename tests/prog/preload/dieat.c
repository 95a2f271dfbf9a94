/* Kills the process at a certain call, for tests: a shared object for LD_PRELOAD.
 *   DIE_AT=FUNCTION:TEXT[:N]  at the Nth call (1) of FUNCTION whose argument has TEXT in it, before it is done
 * FUNCTION is PQsendQuery, PQputCopyEnd, rename or linkat (the new name) or pwrite (the file's name). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct pg_conn PGconn;

int PQsendQuery(PGconn *conn, const char *query);
int PQputCopyEnd(PGconn *conn, const char *errormsg);

static void
at(const char *function, const char *argument)
{
	static int seen;
	const char *want = getenv("DIE_AT"), *text = want ? strchr(want, ':') : NULL, *n;
	size_t len;

	if (!text || (size_t)(text - want) != strlen(function) || strncmp(want, function, strlen(function)) != 0)
		return;
	n = strchr(++text, ':');
	len = n ? (size_t)(n - text) : strlen(text);
	if (len && !memmem(argument, strlen(argument), text, len))
		return;
	if (++seen == (n ? atoi(n + 1) : 1))
		kill(getpid(), SIGKILL);
}

static void *
next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

int
PQsendQuery(PGconn *conn, const char *query)
{
	int (*real)(PGconn *, const char *);
	void *p = next("PQsendQuery");

	at("PQsendQuery", query);
	memcpy(&real, &p, sizeof real);
	return real(conn, query);
}

int
PQputCopyEnd(PGconn *conn, const char *errormsg)
{
	int (*real)(PGconn *, const char *);
	void *p = next("PQputCopyEnd");

	at("PQputCopyEnd", "");
	memcpy(&real, &p, sizeof real);
	return real(conn, errormsg);
}

int
rename(const char *from, const char *to)
{
	int (*real)(const char *, const char *);
	void *p = next("rename");

	at("rename", to);
	memcpy(&real, &p, sizeof real);
	return real(from, to);
}

int
linkat(int at_from, const char *from, int at_to, const char *to, int flags)
{
	int (*real)(int, const char *, int, const char *, int);
	void *p = next("linkat");

	at("linkat", to);
	memcpy(&real, &p, sizeof real);
	return real(at_from, from, at_to, to, flags);
}

ssize_t
pwrite(int fd, const void *b, size_t n, off_t off)
{
	ssize_t (*real)(int, const void *, size_t, off_t);
	void *p = next("pwrite");
	char link[64], name[4096];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, name, sizeof name - 1);

	name[len > 0 ? len : 0] = 0;
	at("pwrite", name);
	memcpy(&real, &p, sizeof real);
	return real(fd, b, n, off);
}
