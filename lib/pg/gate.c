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
#include "ws/waldir.h"
#include "ws/walread.h"

#define SCAN_AT_ONCE (1024u * 1024) /* bytes a call, so that what is found is sent meanwhile */

struct ws_gate {
	char *dir, *state;
	struct ws_cluster cluster;
	ws_tli tli; /* that is read */
	struct followed *dbs;
	size_t ndbs;
	ws_lsn backup; /* pos/backup while nothing was captured; 0: not there */
	bool scanning;
	ws_lsn limit;
	/* the boundary at hand */
	struct ws_boundary held;
	ws_lsn held_end; /* 0: none */
	/* the reader */
	struct ws_walsrc *src;
	struct ws_walreader *rd;
	bool fed;
	ws_lsn at; /* next byte to read */
	bool torn_said;
};

static ws_lsn
page_start(ws_lsn lsn)
{
	return lsn & ~((ws_lsn)WS_PAGE_SIZE - 1);
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

/* Reading starts anew at the page that holds pos, or before it when it is inside a record that
 * started earlier.  Records below are seen again, which does no harm: a boundary at or below
 * captured does not hold. */
static int
start_scan(struct ws_gate *g, struct ws_pos pos, struct ws_err *err)
{
	const struct ws_walsrc_opts o = {.segsize = g->cluster.segsize, .follow = true};

	ws_walreader_free(g->rd);
	g->rd = ws_walreader_new(g->cluster.segsize, g->cluster.system_id, 0);
	ws_walsrc_close(g->src);
	g->tli = pos.tli;
	g->at = page_start(pos.lsn);
	while (g->at >= WS_PAGE_SIZE && continues_past(g, g->at, pos.lsn))
		g->at -= WS_PAGE_SIZE;
	g->src = ws_walsrc_open(g->dir, (struct ws_pos){pos.tli, g->at}, &o, err);
	if (!g->src)
		return -1;
	g->fed = false;
	g->limit = g->at;
	g->held_end = 0;
	g->scanning = true;
	return 0;
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
	if (state) {
		if (ws_gate_reload(g, err) != 0)
			goto fail;
	} else {
		if (recvdir_end(dir, c->segsize, tli, &end, err) != 0)
			goto fail;
		/* The end may lie in the zeros behind a segment switch, where no page starts. */
		end.lsn = ws_seg_start(end.lsn, c->segsize);
		if (start_scan(g, end, err) != 0)
			goto fail;
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
	ws_walsrc_close(g->src);
	ws_walreader_free(g->rd);
	free(g->dir);
	free(g->state);
	free(g->dbs);
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
	struct ws_pos low = gatepos_min(dbs, n);
	bool again = !g->scanning; /* a database came, or a position went back: look again */

	for (size_t i = 0; i < n; i++) {
		const struct followed *was = find(g->dbs, g->ndbs, dbs[i].db);

		again |= !was || dbs[i].captured.lsn < was->captured.lsn;
	}
	free(g->dbs);
	g->dbs = dbs;
	g->ndbs = n;
	if (n > 0) {
		g->backup = 0;
		return again ? start_scan(g, low, err) : 0;
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

/* The descendant's copy of the fork's segment begins, of which nothing may have been looked at yet. */
static int
switch_timeline(struct ws_gate *g, const struct ws_walchunk *c, struct ws_err *err)
{
	const struct ws_history *h = ws_walsrc_history(g->src);
	ws_lsn fork = h ? ws_history_end(h, g->tli) : 0;

	if (!fork)
		return ws_err_op(err, "timeline_not_descendant", "%s: timeline %u does not come from timeline %u", g->dir,
						 c->tli, g->tli);
	ws_info("timeline %u from " WS_LSN_FMT, c->tli, WS_LSN_ARG(fork));
	ws_walreader_fork(g->rd, c->lsn, fork);
	g->tli = c->tli;
	if (g->limit > fork)
		g->limit = fork;
	return 0;
}

/* Gives the reader the next bytes.  1: some, 0: none yet. */
static int
feed(struct ws_gate *g, struct ws_err *err)
{
	struct ws_walchunk c;
	int rc = ws_walsrc_next(g->src, &c, err);

	if (rc <= 0)
		return rc;
	if (!g->fed) {
		g->tli = c.tli;
		ws_walreader_seek(g->rd, c.lsn, c.lsn);
	} else if (c.tli != g->tli && switch_timeline(g, &c, err) != 0) {
		return -1;
	}
	g->fed = true;
	if (ws_walreader_feed(g->rd, c.lsn, c.p, c.n, err) != 0)
		return -1;
	g->at = c.lsn + c.n;
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
	if (start_scan(g, (struct ws_pos){g->tli, from ? from : limit}, err) != 0)
		return -1;
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

static const struct ws_history *
history(const struct ws_gate *g)
{
	return g->src ? ws_walsrc_history(g->src) : NULL;
}

ws_tli
ws_gate_tli(const struct ws_gate *g)
{
	const struct ws_history *h = history(g);

	/* Reading may be ahead of what may be served, in the fork's segment. */
	return h && ws_history_end(h, g->tli) ? ws_history_tli_at(h, g->limit) : g->tli;
}

ws_lsn
ws_gate_end_of(const struct ws_gate *g, ws_tli tli, ws_tli *next)
{
	const struct ws_history *h = history(g);
	ws_tli served = ws_gate_tli(g);

	*next = served;
	if (tli == served)
		return UINT64_MAX;
	for (size_t i = 0; h && i < h->n && h->entries[i].tli < served; i++)
		if (h->entries[i].tli == tli) {
			if (i + 1 < h->n)
				*next = h->entries[i + 1].tli;
			return ws_history_end(h, tli);
		}
	return 0;
}

ws_tli
ws_gate_name_of(const struct ws_gate *g, ws_lsn lsn)
{
	const struct ws_history *h = history(g);

	return h && ws_history_end(h, g->tli) ? ws_history_name_of(h, lsn, g->cluster.segsize) : g->tli;
}

ws_lsn
ws_gate_held(const struct ws_gate *g)
{
	return g->scanning ? (holds(g) ? g->held_end : 0) : g->backup;
}
