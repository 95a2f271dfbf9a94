/* Walks WAL and prints a line a record, for comparison with pg_waldump and pg_walinspect:
 *   walwalk [-q] [-s START_LSN] [-c CHUNK] [-f] [-i DIR] FILE...
 * The files are segments that follow each other.  -q prints the totals only, -c feeds CHUNK bytes
 * at a time, -f also takes every record apart and restores its images, which -i writes to DIR by the
 * names of pg_waldump --save-fullpage.  The last line on stderr (with -q: stdout) has the totals. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/lsn.h"
#include "ws/walread.h"
#include "ws/xactrec.h"

#define READ_SIZE (256u * 1024)

static bool quiet, full;
static const char *imgdir;
static uint64_t nrecords, nimages, nxact, sum;

static int
save(const struct ws_rec *rec, const struct ws_block *b, const uint8_t *page)
{
	static const char *const forks[] = {"main", "fsm", "vm", "init"};
	char path[512];

	snprintf(path, sizeof path, "%s/%08X-%08X-%08X.%u.%u.%u.%u_%s", imgdir, rec->tli, WS_LSN_ARG(rec->start),
	         b->loc.spc, b->loc.db, b->loc.rel, b->blkno, forks[b->fork & 3]);
	FILE *f = fopen(path, "wb");

	return f && fwrite(page, WS_PAGE_SIZE, 1, f) == 1 && fclose(f) == 0 ? 0 : -1;
}

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
		if (imgdir && save(rec, &d.blocks[i], page) != 0)
			return ws_err_sys(err, "%s", imgdir);
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

	printf("%s %" PRIu32 " %" PRIu32 " " WS_LSN_FMT " " WS_LSN_FMT " " WS_LSN_FMT "\n",
	       ws_rmgr_name(rec->rmid, buf), rec->tot_len, rec->xid, WS_LSN_ARG(rec->start),
	       WS_LSN_ARG(rec->prev), WS_LSN_ARG(rec->end));
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
	size_t chunk = READ_SIZE;
	struct ws_err err;
	struct ws_walreader *r = ws_walreader_new(0, 0, 0);
	int c, rc = 0;

	while ((c = getopt(argc, argv, "qfi:s:c:")) != -1)
		if (c == 'q')
			quiet = true;
		else if (c == 'f')
			full = true;
		else if (c == 'i')
			full = (imgdir = optarg) != NULL;
		else if (c == 's' && ws_lsn_parse(optarg, &start) == 0)
			continue;
		else if (c == 'c' && (chunk = strtoul(optarg, NULL, 10)) > 0)
			continue;
		else
			return 2;
	uint8_t *buf = aligned_alloc(4096, READ_SIZE);

	for (int i = optind; i < argc && rc == 0; i++) {
		int fd = open(argv[i], O_RDONLY);
		ssize_t n;

		if (fd < 0) {
			perror(argv[i]);
			return 1;
		}
		while (rc == 0 && (n = read(fd, buf, READ_SIZE)) > 0) {
			if (!at) {
				uint8_t h[16];

				if (pread(fd, h, sizeof h, 0) != sizeof h)
					return 1;
				memcpy(&at, h + 8, 8);
				ws_walreader_seek(r, at, start > at ? start : at);
			}
			for (size_t done = 0; done < (size_t)n && rc == 0;) {
				size_t m = (size_t)n - done < chunk ? (size_t)n - done : chunk;

				rc = walk(r, at, buf + done, m, &err);
				at += m;
				done += m;
			}
		}
		close(fd);
	}
	if (rc < 0)
		fprintf(stderr, "walwalk: %s%s\n", err.msg, ws_walreader_torn(r) ? " (torn)" : "");
	fprintf(quiet ? stdout : stderr,
	        "records=%" PRIu64 " end=" WS_LSN_FMT " dropped=" WS_LSN_FMT " images=%" PRIu64 " xact=%" PRIu64
	        "\n",
	        nrecords, WS_LSN_ARG(ws_walreader_end(r)), WS_LSN_ARG(ws_walreader_dropped(r, NULL)), nimages, nxact);
	free(buf);
	ws_walreader_free(r);
	return rc < 0;
}
