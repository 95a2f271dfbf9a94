/* Is an archive whole?  See ws/archive.h.  The rule of holes is arcpath's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "ws/lsn.h"
#include "ws/mem.h"

struct checking {
	struct ws_archive *a;
	const struct ws_arccheck_opts *o;
	struct ws_arcmember *m;
	size_t n;
	uint32_t segsize;
	struct ws_history h;
	struct ws_arcseg *segs;
	size_t nsegs;
};

static void
span_name(char *out, ws_tli tli, uint64_t segno, uint32_t segsize)
{
	ws_seg_name(out, tli, segno * segsize, segsize);
}

static void
print_spans(const struct checking *c, const char *what, const struct ws_arcspan *s, size_t n,
			FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		char first[WS_WALNAME_MAX], last[WS_WALNAME_MAX];
		uint64_t count = s[i].last - s[i].first + 1;

		span_name(first, s[i].tli, s[i].first, c->segsize);
		span_name(last, s[i].tli, s[i].last, c->segsize);
		if (c->o->json)
			fprintf(out,
					"{\"what\":\"%s\",\"timeline\":%u,\"first\":\"%s\",\"last\":\"%s\","
					"\"segments\":%" PRIu64 "}\n",
					what, s[i].tli, first, last, count);
		else
			fprintf(out, "%s %u %s %s %" PRIu64 "\n", what, s[i].tli, first, last, count);
	}
}

/* The newest timeline there, the segment size by the first segment that can be read, and its
 * history. */
static int
prepare(struct checking *c, struct ws_err *err)
{
	ws_tli newest = 0;
	const struct ws_arcmember *first = NULL;
	struct member m;

	for (size_t i = 0; i < c->n; i++) {
		const struct ws_arcfile *f = &c->m[i].f;

		if (f->n.tli > newest && f->n.kind != WS_ARC_BACKUP)
			newest = f->n.tli;
		if (!first && f->n.kind == WS_ARC_SEGMENT)
			first = &c->m[i];
	}
	if (!first)
		return ws_err_op(err, "archive_empty", "%s: there is no segment", c->a->store->url);
	if (c->o->tli)
		newest = c->o->tli;
	int rc = arc_find(c->a, first->f.name, &m, err);

	if (rc == 0)
		rc = ws_err_temp(err, "%s/%s: gone meanwhile", c->a->store->url, first->f.name);
	if (rc == 1)
		rc = arc_segsize(c->a, &m, &c->segsize, err);
	member_fini(&m);
	if (rc < 0)
		return -1;
	rc = ws_archive_history(c->a, newest, &c->h, err);
	if (rc == 0 && newest > 1)
		return ws_err_op(err, "history_missing",
						 "%s: %08X.history is not there: nobody can tell "
						 "from where timeline %u goes on",
						 c->a->store->url, newest, newest);
	return rc < 0 ? -1 : 0;
}

/* A start as given: a segment's name or an LSN. */
static int
start_of(const struct checking *c, uint64_t *segno, struct ws_err *err)
{
	struct ws_arcname n;
	ws_lsn lsn;

	*segno = UINT64_MAX;
	if (!c->o->from)
		return 0;
	if (ws_lsn_parse(c->o->from, &lsn) == 0) {
		*segno = ws_segno(lsn, c->segsize);
		return 0;
	}
	if (ws_arcname_parse(c->o->from, &n) != 0 || n.kind != WS_ARC_SEGMENT ||
		ws_arcname_segno(&n, c->segsize, segno) != 0)
		return ws_err_usage(err, "--from: \"%s\" is no LSN and no segment's name", c->o->from);
	return 0;
}

static void
collect(struct checking *c)
{
	c->segs = ws_malloc((c->n + 1) * sizeof *c->segs);
	for (size_t i = 0; i < c->n; i++) {
		const struct ws_arcname *n = &c->m[i].f.n;
		uint64_t segno;

		if (n->kind == WS_ARC_SEGMENT && ws_arcname_segno(n, c->segsize, &segno) == 0)
			c->segs[c->nsegs++] = (struct ws_arcseg){n->tli, segno};
	}
}

static int
judge(const struct checking *c, const struct ws_arccheck *r, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];
	uint64_t count = 0;

	for (size_t i = 0; i < r->nmissing; i++)
		count += r->missing[i].last - r->missing[i].first + 1;
	if (r->nthere == 0)
		return ws_err_op(err, "archive_empty", "%s: there is no segment of timeline %u's history",
						 c->a->store->url, c->h.tli);
	if (!count)
		return 0;
	span_name(name, r->missing[0].tli, r->missing[0].first, c->segsize);
	return ws_err_op(err, "archive_gap", "%s: %s is missing, and %" PRIu64 " more",
					 c->a->store->url, name, count - 1);
}

int
ws_archive_check(struct ws_archive *a, const struct ws_arccheck_opts *o, FILE *out,
				 struct ws_err *err)
{
	struct checking c = {.a = a, .o = o};
	struct ws_arccheck r = {0};
	uint64_t from;
	int rc = ws_archive_members(a, &c.m, &c.n, err);

	if (rc == 0)
		rc = prepare(&c, err);
	if (rc == 0)
		rc = start_of(&c, &from, err);
	if (rc == 0) {
		collect(&c);
		ws_arcpath_check(&c.h, c.segsize, c.segs, c.nsegs, from, &r);
		print_spans(&c, "there", r.there, r.nthere, out);
		print_spans(&c, "missing", r.missing, r.nmissing, out);
		rc = judge(&c, &r, err);
	}
	ws_arccheck_fini(&r);
	ws_history_fini(&c.h);
	free(c.segs);
	free(c.m);
	return rc;
}
