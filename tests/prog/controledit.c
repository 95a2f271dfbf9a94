/* Changes global/pg_control of a stopped cluster, and its CRC, for tests:
 *   controledit PGDATA version 1300|1700   of a 16's or 17's, whose layout is the same (catalog/pg_control.h)
 *   controledit PGDATA system-id           a new one, as initdb would make it, also in the WAL */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "ws/crc.h"

enum { SYSTEM_ID = 0, VERSION = 8, SIZE = 296, XLP_INFO = 2, XLP_LONG_HEADER = 2, XLP_SYSID = 24 };

static const char *data;

static int
edit(const char *name, void *b, size_t n, int writing)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", data, name);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t done = fd < 0 ? -1 : writing ? pwrite(fd, b, n, 0) : pread(fd, b, n, 0);

	if (done == (ssize_t)n && close(fd) == 0)
		return 0;
	perror(path);
	return -1;
}

/* The CRC stands behind what it covers: 288 bytes up to 17, 292 in 18. */
static size_t
find_crc(const uint8_t *b)
{
	for (size_t at = 288; at <= 292; at += 4) {
		uint32_t crc = WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, b, at));

		if (memcmp(b + at, &crc, 4) == 0)
			return at;
	}
	fprintf(stderr, "%s/global/pg_control: of an unknown version\n", data);
	exit(1);
}

/* xlog.c, BootStrapXLOG. */
static uint64_t
new_id(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	return (uint64_t)tv.tv_sec << 32 | (uint64_t)tv.tv_usec << 12 | (getpid() & 0xFFF);
}

/* Of each segment the first page has it (access/xlog_internal.h, XLogLongPageHeaderData). */
static int
segments(uint64_t id)
{
	char path[4096];
	uint8_t page[XLP_SYSID + 8];
	struct dirent *e;
	int rc = 0;

	snprintf(path, sizeof path, "%s/pg_wal", data);
	DIR *d = opendir(path);

	while (d && rc == 0 && (e = readdir(d))) {
		if (strspn(e->d_name, "0123456789ABCDEF") != 24 || e->d_name[24])
			continue;
		snprintf(path, sizeof path, "pg_wal/%s", e->d_name);
		rc = edit(path, page, sizeof page, 0);
		if (rc == 0 && page[XLP_INFO] & XLP_LONG_HEADER) {
			memcpy(page + XLP_SYSID, &id, 8);
			rc = edit(path, page, sizeof page, 1);
		}
	}
	if (!d)
		perror(path);
	else
		closedir(d);
	return d ? rc : -1;
}

int
main(int argc, char **argv)
{
	uint8_t b[SIZE];
	int id = argc == 3 && !strcmp(argv[2], "system-id"), version = argc == 4 && !strcmp(argv[2], "version");

	if (!id && !version)
		return 2;
	data = argv[1];
	if (edit("global/pg_control", b, sizeof b, 0) != 0)
		return 1;
	size_t at = find_crc(b);

	if (id) {
		uint64_t v = new_id();

		memcpy(b + SYSTEM_ID, &v, 8);
		if (segments(v) != 0)
			return 1;
	} else {
		uint32_t v = (uint32_t)strtoul(argv[3], NULL, 10);

		memcpy(b + VERSION, &v, 4);
	}
	uint32_t crc = WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, b, at));

	memcpy(b + at, &crc, 4);
	return edit("global/pg_control", b, sizeof b, 1) != 0;
}
