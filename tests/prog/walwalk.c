/* Walks WAL and prints a line a record, for comparison with pg_waldump and pg_walinspect:
 *   walwalk [-q] [-s START_LSN] [-c CHUNK] [-f] FILE...
 * The files are segments that follow each other.  -q prints the totals only, -c feeds CHUNK bytes
 * at a time, -f also takes every record apart and restores its images. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/lsn.h"
#include "ws/walread.h"
#include "ws/xactrec.h"

static bool quiet, full;
static uint64_t nrecords, nimages, nxact, sum;

static int
look(const struct ws_walreader *r, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record d;
	struct ws_xactrec x;
	uint8_t page[WS_PAGE_SIZE];

	if (ws_record_parse(rec, &d, err) != 0)
		return -1;
	for (int i = 0; i < d.nblocks; i++) {
		if (!d.blocks[i].img)
			continue;
		if (ws_fpi_restore(&d.blocks[i], page, err) != 0)
			return -1;
		nimages++;
		sum += page[18]; /* pd_pagesize_version's low byte is not 0 on a used page */
	}
	int rc = ws_xactrec_parse(&d, ws_walreader_ver(r), &x, err);

	nxact += rc > 0;
	return rc < 0 ? -1 : 0;
}

static void
print(const struct ws_rec *rec)
{
	char buf[16];

	printf("%s %" PRIu32 " %" PRIu32 " " WS_LSN_FMT " " WS_LSN_FMT "\n", ws_rmgr_name(rec->rmid, buf),
	       rec->tot_len, rec->xid, WS_LSN_ARG(rec->start), WS_LSN_ARG(rec->prev));
}

/* 0 go on, 1 end of WAL, -1 */
static int
walk(struct ws_walreader *r, ws_lsn at, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_rec rec;
	int rc;

	if (ws_walreader_feed(r, at, p, n, err) != 0)
		return -1;
	while ((rc = ws_walreader_next(r, &rec, err)) == 1) {
		nrecords++;
		if (full && look(r, &rec, err) != 0)
			return -1;
		if (!quiet)
			print(&rec);
	}
	if (rc < 0 && ws_walreader_clean_end(r))
		return 1;
	return rc;
}

int
main(int argc, char **argv)
{
	ws_lsn start = 0, at = 0;
	size_t chunk = 256 * 1024;
	struct ws_err err;
	struct ws_walreader *r = ws_walreader_new(0, 0, 0);
	int c, rc = 0;

	while ((c = getopt(argc, argv, "qfs:c:")) != -1)
		if (c == 'q')
			quiet = true;
		else if (c == 'f')
			full = true;
		else if (c == 's' && ws_lsn_parse(optarg, &start) == 0)
			continue;
		else if (c == 'c' && (chunk = strtoul(optarg, NULL, 10)) > 0)
			continue;
		else
			return 2;
	uint8_t *buf = aligned_alloc(4096, (chunk + 4095) & ~(size_t)4095);

	for (int i = optind; i < argc && rc == 0; i++) {
		int fd = open(argv[i], O_RDONLY);
		ssize_t n;

		if (fd < 0) {
			perror(argv[i]);
			return 1;
		}
		while (rc == 0 && (n = read(fd, buf, chunk)) > 0) {
			if (!at) {
				uint8_t h[16];

				if (pread(fd, h, sizeof h, 0) != sizeof h)
					return 1;
				memcpy(&at, h + 8, 8);
				ws_walreader_seek(r, at, start > at ? start : at);
			}
			rc = walk(r, at, buf, (size_t)n, &err);
			at += (size_t)n;
		}
		close(fd);
	}
	if (rc < 0)
		fprintf(stderr, "walwalk: %s%s\n", err.msg, ws_walreader_torn(r) ? " (torn)" : "");
	fprintf(quiet ? stdout : stderr, "records=%" PRIu64 " end=" WS_LSN_FMT " images=%" PRIu64 " xact=%" PRIu64 "\n",
	        nrecords, WS_LSN_ARG(ws_walreader_end(r)), nimages, nxact);
	free(buf);
	ws_walreader_free(r);
	return rc < 0;
}
