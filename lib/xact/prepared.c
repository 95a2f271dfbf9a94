/* Prepared transactions: the set of them, and the list that ws-decode --prepared prints. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prepared.h"
#include "ws/decoding.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/waldir.h"
#include "ws/walread.h"

/* ---- the set ---- */

static void
entry_free(struct ws_prepared *p)
{
	free(p->gid);
	free(p->subxids);
}

void
ws_prepset_fini(struct ws_prepset *s)
{
	for (size_t i = 0; i < s->n; i++)
		entry_free(&s->e[i]);
	free(s->e);
	*s = (struct ws_prepset){0};
}

static void
older(const struct ws_xtab *t, ws_xid xid, ws_lsn *first)
{
	ws_lsn at = ws_xtab_first_of(t, xid);

	if (at && (!*first || at < *first))
		*first = at;
}

void
ws_prepset_add(struct ws_prepset *s, struct ws_xtab *t, const struct ws_xactrec *x, ws_lsn at)
{
	struct ws_prepared p = {
		.xid = x->xid, .db = x->db, .at = at, .time = x->time, .gid = ws_strdup(x->gid)};

	older(t, x->xid, &p.first);
	p.nsubxids = x->nsubxids;
	p.subxids = ws_malloc((x->nsubxids + 1) * sizeof *p.subxids);
	for (uint32_t i = 0; i < x->nsubxids; i++) {
		p.subxids[i] = ws_xactrec_subxid(x, i);
		older(t, p.subxids[i], &p.first);
	}
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 8;
		s->e = ws_realloc(s->e, s->cap * sizeof *s->e);
	}
	s->e[s->n++] = p;
}

bool
ws_prepset_drop(struct ws_prepset *s, ws_xid xid)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->e[i].xid != xid)
			continue;
		entry_free(&s->e[i]);
		memmove(s->e + i, s->e + i + 1, (--s->n - i) * sizeof *s->e);
		return true;
	}
	return false;
}

/* ---- the list ---- */

struct scan {
	const struct ws_decoding_opts *o;
	struct ws_xtab tab;
	struct ws_prepset set;
	struct ws_walreader *reader;
	ws_tli tli;
	ws_lsn done;
};

static void
ended(struct scan *s, const struct ws_xactrec *x)
{
	(void)ws_xtab_end(&s->tab, x->xid);
	for (uint32_t i = 0; i < x->nsubxids; i++)
		(void)ws_xtab_end(&s->tab, ws_xactrec_subxid(x, i));
	(void)ws_prepset_drop(&s->set, x->xid);
}

static int
take(struct scan *s, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err)
{
	struct ws_record r;
	struct ws_xactrec x;

	if (rec->rmid != WS_RM_XACT) {
		/* One position is enough: its first. */
		if (rec->xid && !ws_xtab_find(&s->tab, rec->xid))
			ws_xtx_append(&s->tab, ws_xtab_get(&s->tab, rec->xid, rec->start), rec->start);
		return 0;
	}
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	int rc = ws_xactrec_parse(&r, ver, &x, err);

	if (rc <= 0)
		return rc;
	if (x.op == WS_XACT_PREPARE) {
		if (!s->o->db || x.db == s->o->db)
			ws_prepset_add(&s->set, &s->tab, &x, rec->start);
	} else if (x.op != WS_XACT_ASSIGNMENT && x.op != WS_XACT_INVALIDATIONS) {
		ended(s, &x);
	}
	return 0;
}

/* The next bytes.  0, or -1: no more can be read. */
static int
chunk(struct scan *s, struct ws_walsrc *src, const struct ws_walchunk *c, struct ws_err *err)
{
	struct ws_rec rec;
	int rc;

	if (!s->reader)
		s->reader = ws_walreader_new(ws_walsrc_segsize(src), 0, 0);
	/* At a switch the descendant's segment begins again. */
	if (s->tli && c->tli != s->tli)
		ws_walreader_fork(s->reader, c->lsn, ws_walsrc_switch(src, s->tli, c));
	else if (!s->tli)
		ws_walreader_seek(s->reader, c->lsn, s->done > c->lsn ? s->done : c->lsn);
	s->tli = c->tli;
	if (ws_walreader_feed(s->reader, c->lsn, c->p, c->n, err) != 0)
		return -1;
	while ((rc = ws_walreader_next(s->reader, &rec, err)) == 1) {
		if (take(s, &rec, ws_walreader_ver(s->reader), err) != 0)
			return -1;
		s->done = rec.end;
	}
	return rc;
}

static int
scan_input(struct scan *s, const char *input, struct ws_pos start, struct ws_err *err)
{
	const struct ws_walsrc_opts so = {0};
	struct ws_walsrc *src = ws_walsrc_open(input, start, &so, err);
	struct ws_walchunk c;
	int rc = -1;

	while (src && (rc = ws_walsrc_next(src, &c, err)) == 1)
		if ((rc = chunk(s, src, &c, err)) != 0)
			break;
	/* Where the WAL ends: what a tool is writing now, or old pages of a server's own. */
	if (rc < 0 && s->reader && ws_walreader_torn(s->reader) &&
		(s->o->consumer || ws_walreader_clean_end(s->reader)))
		rc = 0;
	ws_walsrc_close(src);
	return rc;
}

static void
put_time(struct ws_buf *b, int64_t us)
{
	struct ws_value t = {.state = WS_V_VALUE, .kind = WS_K_TIMESTAMPTZ, .i = us};

	ws_value_text(&t, b);
}

/* A gid is any text: quotes and control characters escaped as JSON does. */
static void
put_gid(struct ws_buf *b, const char *gid)
{
	for (; *gid; gid++) {
		uint8_t c = (uint8_t)*gid;

		if (c < 0x20 || c == 0x7f)
			ws_buf_printf(b, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			ws_buf_printf(b, "\\%c", c);
		else
			ws_buf_putc(b, c);
	}
}

static void
put_json(struct ws_buf *b, const struct ws_prepared *p)
{
	ws_buf_puts(b, "{\"gid\":\"");
	put_gid(b, p->gid);
	ws_buf_printf(b, "\",\"xid\":%u,\"database_oid\":%u,\"first_lsn\":", p->xid, p->db);
	if (p->first)
		ws_buf_printf(b, "\"" WS_LSN_FMT "\"", WS_LSN_ARG(p->first));
	else
		ws_buf_puts(b, "null");
	ws_buf_printf(b, ",\"lsn\":\"" WS_LSN_FMT "\",\"time\":\"", WS_LSN_ARG(p->at));
	put_time(b, p->time);
	ws_buf_puts(b, "\"}\n");
}

static void
put_line(struct ws_buf *b, const struct ws_prepared *p)
{
	ws_buf_printf(b, "%u\t", p->xid);
	if (p->first)
		ws_buf_printf(b, WS_LSN_FMT, WS_LSN_ARG(p->first));
	else
		ws_buf_putc(b, '-');
	ws_buf_printf(b, "\t" WS_LSN_FMT "\t", WS_LSN_ARG(p->at));
	put_time(b, p->time);
	ws_buf_putc(b, '\t');
	put_gid(b, p->gid);
	ws_buf_putc(b, '\n');
}

static int
print(const struct scan *s, struct ws_err *err)
{
	struct ws_buf b = {0};

	for (size_t i = 0; i < s->set.n; i++)
		(s->o->json ? put_json : put_line)(&b, &s->set.e[i]);
	int rc = ws_write_all(s->o->fd, b.data, b.len, err, "the output");

	ws_buf_free(&b);
	return rc;
}

int
ws_decoding_prepared(const struct ws_decoding_opts *o, struct ws_err *err)
{
	struct scan s = {.o = o};
	struct ws_pos start = {0, o->start};
	int rc = 0;

	if (o->consumer) {
		char *path = ws_asprintf("%s/pos/floor.%s", o->state, o->consumer);

		rc = ws_pos_read(path, &start, err);
		if (rc == 0)
			rc = ws_err_temp(err, "%s: not there yet", path);
		else if (rc == 1)
			rc = 0;
		free(path);
	}
	ws_xtab_init(&s.tab, 16u << 20);
	s.done = start.lsn;
	for (size_t i = 0; i < o->ninputs && rc == 0; i++)
		rc = scan_input(&s, o->inputs[i], i ? (struct ws_pos){0, 0} : start, err);
	if (rc == 0)
		rc = print(&s, err);
	ws_walreader_free(s.reader);
	ws_prepset_fini(&s.set);
	ws_xtab_fini(&s.tab);
	return rc;
}
