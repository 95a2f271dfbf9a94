/* The gate; see ws/gate.h.  It reads the WAL itself, so that it holds exactly where ws-catalog
 * looks, also after a restart, without talking to it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatepos.h"
#include "recvdir.h"
#include "ws/gate.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/pos.h"
#include "ws/walread.h"

#define READ_SIZE    (64u * 1024)
#define SCAN_AT_ONCE (1024u * 1024) /* bytes a call, so that what is found is sent meanwhile */

struct ws_gate {
	char *dir, *state;
	struct ws_cluster cluster;
	ws_tli tli;
	struct followed *dbs;
	size_t ndbs;
	ws_lsn backup; /* pos/backup while nothing was captured; 0: not there */
	bool scanning;
	ws_lsn limit;
	/* the boundary at hand */
	struct ws_boundary held;
	ws_lsn held_end; /* 0: none */
	/* the reader */
	struct ws_walreader *rd;
	int fd;
	ws_lsn at; /* next byte to read */
	uint8_t *buf;
	bool torn_said;
};

static ws_lsn
page_start(ws_lsn lsn)
{
	return lsn & ~((ws_lsn)WS_PAGE_SIZE - 1);
}

static void
close_segment(struct ws_gate *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}

/* True when page's first bytes belong to a record that started before it and ends above lsn. */
static bool
continues_past(struct ws_gate *g, ws_lsn page, ws_lsn lsn)
{
	uint8_t b[WS_PAGE_HDR_LONG];
	struct ws_page_header h;
	bool partial, yes = false;
	int fd = recvdir_open(g->dir, g->cluster.segsize, g->tli, page, O_RDONLY, &partial);

	if (fd < 0)
		return false;
	if (pread(fd, b, sizeof b, (off_t)(page & (g->cluster.segsize - 1))) == (ssize_t)sizeof b &&
		ws_page_header_parse(b, sizeof b, &h) == 0 && h.pageaddr == page)
		yes = (h.info & WS_PAGE_FIRST_IS_CONTRECORD) && page + h.size + h.rem_len > lsn;
	close(fd);
	return yes;
}

/* Reading starts anew at the page that holds lsn, or before it when lsn is inside a record that
 * started earlier.  Records below lsn are seen again, which does no harm: a boundary at or below
 * captured does not hold. */
static void
start_scan(struct ws_gate *g, ws_lsn lsn)
{
	ws_walreader_free(g->rd);
	g->rd = ws_walreader_new(g->cluster.segsize, g->cluster.system_id, 0);
	g->at = page_start(lsn);
	while (g->at >= WS_PAGE_SIZE && continues_past(g, g->at, lsn))
		g->at -= WS_PAGE_SIZE;
	ws_walreader_seek(g->rd, g->at, g->at);
	close_segment(g);
	g->limit = g->at;
	g->held_end = 0;
	g->scanning = true;
}

struct ws_gate *
ws_gate_open(const char *dir, const char *state, const struct ws_cluster *c, ws_tli tli,
			 struct ws_err *err)
{
	struct ws_gate *g = ws_calloc(1, sizeof *g);
	struct ws_pos end;

	g->dir = ws_strdup(dir);
	g->state = state ? ws_strdup(state) : NULL;
	g->cluster = *c;
	g->tli = tli;
	g->fd = -1;
	g->buf = ws_malloc(READ_SIZE);
	if (state) {
		if (ws_gate_reload(g, err) != 0)
			goto fail;
	} else {
		if (recvdir_end(dir, c->segsize, tli, &end, err) != 0)
			goto fail;
		/* The end may lie in the zeros behind a segment switch, where no page starts. */
		start_scan(g, ws_seg_start(end.lsn, c->segsize));
	}
	return g;
fail:
	ws_gate_close(g);
	return NULL;
}

void
ws_gate_close(struct ws_gate *g)
{
	if (!g)
		return;
	close_segment(g);
	ws_walreader_free(g->rd);
	free(g->dir);
	free(g->state);
	free(g->dbs);
	free(g->buf);
	free(g);
}

static const struct followed *
find(const struct followed *dbs, size_t n, ws_oid db)
{
	for (size_t i = 0; i < n; i++)
		if (dbs[i].db == db)
			return &dbs[i];
	return NULL;
}

int
ws_gate_reload(struct ws_gate *g, struct ws_err *err)
{
	struct followed *dbs;
	size_t n;
	struct ws_pos pos;

	if (!g->state)
		return 0;
	if (gatepos_read(g->state, &dbs, &n, err) != 0) {
		free(dbs);
		return -1;
	}
	ws_lsn low = gatepos_min(dbs, n);
	bool again = !g->scanning; /* a database came, or a position went back: look again */

	for (size_t i = 0; i < n; i++) {
		const struct followed *was = find(g->dbs, g->ndbs, dbs[i].db);

		again |= !was || dbs[i].captured < was->captured;
	}
	free(g->dbs);
	g->dbs = dbs;
	g->ndbs = n;
	if (n > 0) {
		g->backup = 0;
		if (again)
			start_scan(g, low);
		return 0;
	}
	g->scanning = false;
	g->held_end = 0;
	char *path = ws_asprintf("%s/pos/backup", g->state);
	int rc = ws_pos_read(path, &pos, err);

	free(path);
	g->backup = rc == 1 ? pos.lsn : 0;
	return rc < 0 ? -1 : 0;
}

/* Does some followed database wait for the boundary at hand? */
static bool
holds(const struct ws_gate *g)
{
	return g->held_end && gatepos_holds(g->dbs, g->ndbs, &g->held, g->held_end);
}

static int
look_at(struct ws_gate *g, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;
	struct ws_xactrec x;
	const struct ws_walver *ver = ws_walreader_ver(g->rd);
	uint8_t op = rec->info & 0x70;

	if (rec->rmid != WS_RM_XACT || (op != WS_XACT_COMMIT && op != WS_XACT_COMMIT_PREPARED) ||
		g->ndbs == 0)
		return 0;
	if (ws_record_parse(rec, &r, err) != 0 || ws_xactrec_parse(&r, ver, &x, err) < 0)
		return -1;
	g->held = ws_boundary_of(&x, ver);
	g->held_end = g->held.is ? rec->end : 0;
	return 0;
}

/* Gives the reader the next bytes.  1: some, 0: none yet. */
static int
feed(struct ws_gate *g, struct ws_err *err)
{
	uint32_t segsize = g->cluster.segsize;
	uint64_t off = g->at & (segsize - 1);
	size_t want = READ_SIZE;
	bool partial;

	if (off == 0)
		close_segment(g);
	if (g->fd < 0 &&
		(g->fd = recvdir_open(g->dir, segsize, g->tli, g->at, O_RDONLY, &partial)) < 0) {
		if (errno == ENOENT)
			return 0;
		return ws_err_sys(err, "%s: cannot open the segment of " WS_LSN_FMT, g->dir,
						  WS_LSN_ARG(g->at));
	}
	if (want > segsize - off)
		want = segsize - off;
	ssize_t n = pread(g->fd, g->buf, want, (off_t)off);

	if (n < 0)
		return errno == EINTR
				   ? 0
				   : ws_err_sys(err, "%s: cannot read at " WS_LSN_FMT, g->dir, WS_LSN_ARG(g->at));
	if (n == 0)
		return 0;
	if (ws_walreader_feed(g->rd, g->at, g->buf, (size_t)n, err) != 0)
		return -1;
	g->at += (uint64_t)n;
	return 1;
}

/* Bytes that look like the unwritten end of WAL: after a crash of the machine the writer will
 * write them again.  Nothing behind the last whole record is served; try again later. */
static int
torn(struct ws_gate *g, struct ws_err *err)
{
	ws_lsn limit = g->limit, from = ws_walreader_end(g->rd);

	if (!ws_walreader_torn(g->rd))
		return -1;
	if (!g->torn_said)
		ws_warn("%s; waiting for it to be written", err->msg);
	g->torn_said = true;
	start_scan(g, from ? from : limit);
	if (limit > g->limit)
		g->limit = limit;
	return 0;
}

int
ws_gate_scan(struct ws_gate *g, struct ws_err *err)
{
	ws_lsn from = g->at;
	struct ws_rec rec;

	if (!g->scanning) {
		struct ws_pos end;

		if (g->backup == 0 || g->limit == g->backup)
			return 0;
		if (recvdir_end(g->dir, g->cluster.segsize, g->tli, &end, err) != 0)
			return -1;
		g->limit = end.lsn >= g->backup ? g->backup : page_start(end.lsn);
		return 0;
	}
	while (!holds(g)) {
		int rc = ws_walreader_next(g->rd, &rec, err);

		if (rc < 0)
			return torn(g, err);
		if (rc > 0) {
			if (look_at(g, &rec, err) != 0)
				return -1;
			if (rec.end > g->limit)
				g->limit = rec.end;
			g->torn_said = false;
			continue;
		}
		/* A record that is not whole at a page's end has its own end, and a commit's, behind it. */
		if (page_start(g->at) > g->limit)
			g->limit = page_start(g->at);
		if (g->at - from >= SCAN_AT_ONCE)
			return 1;
		rc = feed(g, err);
		if (rc <= 0)
			return rc;
	}
	return 0;
}

ws_lsn
ws_gate_limit(const struct ws_gate *g)
{
	return g->limit;
}

ws_lsn
ws_gate_held(const struct ws_gate *g)
{
	return g->scanning ? (holds(g) ? g->held_end : 0) : g->backup;
}
