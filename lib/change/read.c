/* The change stream's reader, ws-change(5).  Pure: bytes in, events out; any bytes give an event,
 * a wish for more, or an error.  Memory grows with what was really fed, never with a length that
 * the input announces. */
#include <stdlib.h>

#include "lib/change/recode.h"
#include "lib/change/wire.h"
#include "ws/change.h"
#include "ws/lsn.h"

#define HEADER_SIZE 12

struct rel {
	struct ws_c_relation r;
	bool snapshot; /* its snapshot is open */
};

struct ws_change_reader {
	struct ws_buf in;
	size_t at; /* parsed up to here */
	uint64_t offset; /* of in.data[0] in the stream */
	bool header, identity, in_xact, ended;
	struct ws_c_begin begin;
	uint64_t last_ordinal;
	struct ws_arena forever; /* relations */
	struct ws_arena now;     /* the event at hand */
	bool utf8;               /* texts are wanted in it */
	struct ws_recode *recode; /* what makes them so; NULL when they are */
	struct rel **rels;
	size_t nrels, rels_cap;
	struct ws_value vals[2][WS_CHANGE_MAX_COLS];
};

struct ws_change_reader *
ws_change_reader_new(void)
{
	return ws_calloc(1, sizeof(struct ws_change_reader));
}

void
ws_change_reader_free(struct ws_change_reader *r)
{
	if (!r)
		return;
	ws_recode_free(r->recode);
	ws_buf_free(&r->in);
	ws_arena_free(&r->forever);
	ws_arena_free(&r->now);
	free(r->rels);
	free(r);
}

void
ws_change_reader_utf8(struct ws_change_reader *r)
{
	r->utf8 = true;
}

uint8_t *
ws_change_reader_room(struct ws_change_reader *r, size_t n)
{
	if (r->at) {
		memmove(r->in.data, r->in.data + r->at, r->in.len - r->at);
		r->in.len -= r->at;
		r->offset += r->at;
		r->at = 0;
	}
	ws_buf_reserve(&r->in, n);
	return r->in.data + r->in.len;
}

void
ws_change_reader_fed(struct ws_change_reader *r, size_t n)
{
	r->in.len += n;
}

bool
ws_change_ended(const struct ws_change_reader *r)
{
	return r->ended;
}

const struct ws_c_relation *
ws_change_relation(const struct ws_change_reader *r, uint32_t handle)
{
	return handle && handle <= r->nrels ? &r->rels[handle - 1]->r : NULL;
}

static int
bad(const struct ws_change_reader *r, struct ws_err *err, const char *what)
{
	return ws_err_op(err, "change_malformed", "change stream offset %llu: %s",
	                 (unsigned long long)(r->offset + r->at), what);
}

/* A string as NUL-terminated text in the arena; a NUL inside fails the cursor. */
static const char *
get_str(struct ws_cursor *c, struct ws_arena *a)
{
	size_t n;
	const char *s = ws_cur_str(c, &n);

	if (!s || memchr(s, 0, n)) {
		c->bad = true;
		return "";
	}
	char *d = ws_arena_alloc(a, n + 1);

	memcpy(d, s, n);
	d[n] = 0;
	return d;
}

static void
get_column(struct ws_cursor *c, struct ws_arena *a, struct ws_c_column *col)
{
	col->name = get_str(c, a);
	col->attnum = (int16_t)ws_cur_u16(c);
	col->kind = ws_cur_u8(c);
	col->elem_kind = ws_cur_u8(c);
	col->flags = ws_cur_u8(c);
	col->typid = ws_cur_u32(c);
	col->typmod = (int32_t)ws_cur_u32(c);
	col->typname = get_str(c, a);
	col->missing = col->flags & WS_COL_MISSING ? get_str(c, a) : NULL;
	col->nlabels = ws_cur_u16(c);
	/* A label takes four bytes at least: no allocation beyond what is there. */
	if (ws_cur_left(c) < (size_t)col->nlabels * 4)
		c->bad = true;
	if (col->kind == 0 || col->kind >= WS_K_COUNT || col->elem_kind >= WS_K_COUNT)
		c->bad = true;
	if (c->bad)
		col->nlabels = 0;
	col->labels = ws_arena_alloc(a, (size_t)col->nlabels * sizeof *col->labels);
	for (uint16_t i = 0; i < col->nlabels; i++)
		col->labels[i] = get_str(c, a);
}

static int
get_relation(struct ws_change_reader *r, struct ws_cursor *c, struct ws_change *ev, struct ws_err *err)
{
	struct ws_arena *a = &r->forever;
	struct rel *rel = ws_arena_zalloc(a, sizeof *rel);
	struct ws_c_relation *p = &rel->r;

	p->handle = ws_cur_u32(c);
	p->oid = ws_cur_u32(c);
	p->relkind = (char)ws_cur_u8(c);
	p->replident = (char)ws_cur_u8(c);
	p->nspname = get_str(c, a);
	p->name = get_str(c, a);
	p->root = ws_cur_u32(c);
	p->root_nspname = get_str(c, a);
	p->root_name = get_str(c, a);
	p->lsn = ws_cur_u64(c);
	p->ncols = ws_cur_u16(c);
	if (c->bad || p->ncols > WS_CHANGE_MAX_COLS)
		return bad(r, err, "malformed relation frame");
	p->cols = ws_arena_zalloc(a, (size_t)p->ncols * sizeof *p->cols);
	for (uint16_t i = 0; i < p->ncols && !c->bad; i++)
		get_column(c, a, &p->cols[i]);
	if (c->bad)
		return bad(r, err, "malformed relation frame");
	if (r->recode && ws_recode_relation(r->recode, p, a, err) != 0)
		return -1;
	if (p->handle != r->nrels + 1)
		return bad(r, err, "relation handle out of order");
	if (r->nrels == r->rels_cap) {
		r->rels_cap = r->rels_cap ? r->rels_cap * 2 : 64;
		r->rels = ws_realloc(r->rels, r->rels_cap * sizeof(void *));
	}
	r->rels[r->nrels++] = rel;
	ev->relation = p;
	return 1;
}

static const uint8_t *
get_tuple(const struct ws_c_relation *rel, const uint8_t *p, const uint8_t *end, struct ws_value *v)
{
	size_t nbits = ((size_t)rel->ncols * 2 + 7) / 8;

	if ((size_t)(end - p) < nbits)
		return NULL;
	const uint8_t *bits = p;

	p += nbits;
	for (uint16_t i = 0; i < rel->ncols; i++) {
		unsigned st = bits[i / 4] >> i % 4 * 2 & 3u;

		if (st == WS_V_VALUE) {
			p = wire_get(rel->cols[i].kind, p, end, &v[i]);
			if (!p)
				return NULL;
			continue;
		}
		if (st == 3)
			return NULL;
		v[i].state = (uint8_t)st;
		v[i].kind = rel->cols[i].kind;
		v[i].len = 0;
		v[i].i = 0;
	}
	return p;
}

static int
ordinal(struct ws_change_reader *r, uint64_t n, struct ws_err *err)
{
	if (!r->in_xact)
		return bad(r, err, "change outside a transaction");
	if (n == 0 || n < r->last_ordinal)
		return bad(r, err, "change out of order");
	r->last_ordinal = n;
	return 0;
}

static int
get_row(struct ws_change_reader *r, const uint8_t *p, const uint8_t *end, struct ws_change *ev,
        struct ws_err *err)
{
	struct ws_c_row *row = &ev->row;

	if (end - p < 14)
		return bad(r, err, "short row frame");
	row->op = (char)p[0];
	row->flags = p[1];
	row->handle = ws_le32(p + 2);
	row->ordinal = ws_le64(p + 6);
	p += 14;
	if (row->handle == 0 || row->handle > r->nrels)
		return bad(r, err, "row of an unknown relation");
	const struct rel *rel = r->rels[row->handle - 1];

	row->rel = &rel->r;
	row->new_ = row->old = NULL;
	if (row->ordinal == 0) {
		if (!rel->snapshot || row->op != 'I')
			return bad(r, err, "snapshot row outside a snapshot");
	} else if (ordinal(r, row->ordinal, err) != 0) {
		return -1;
	}
	unsigned old = row->flags & (WS_ROW_OLD_KEY | WS_ROW_OLD_FULL);

	if ((row->op != 'I' && row->op != 'U' && row->op != 'D') || row->flags > 7 ||
	    old == (WS_ROW_OLD_KEY | WS_ROW_OLD_FULL) || (row->op == 'D') == !!(row->flags & WS_ROW_NEW) ||
	    (row->op == 'I' && old))
		return bad(r, err, "row frame with an impossible operation");
	if (row->flags & WS_ROW_NEW) {
		if (!(p = get_tuple(&rel->r, p, end, r->vals[0])))
			return bad(r, err, "malformed new tuple");
		row->new_ = r->vals[0];
	}
	if (old) {
		if (!(p = get_tuple(&rel->r, p, end, r->vals[1])))
			return bad(r, err, "malformed old tuple");
		row->old = r->vals[1];
	}
	if (p != end)
		return bad(r, err, "row frame with bytes left over");
	row->invalid = NULL;
	if (!r->recode)
		return 1;
	ws_arena_reset(&r->now);
	row->invalid =
		ws_recode_row(r->recode, row->rel, row->new_ ? r->vals[0] : NULL, &r->now);
	if (!row->invalid)
		row->invalid =
			ws_recode_row(r->recode, row->rel, row->old ? r->vals[1] : NULL, &r->now);
	return 1;
}

static int
get_handles(struct ws_change_reader *r, struct ws_cursor *c, struct ws_c_truncate *t, struct ws_err *err)
{
	if (ws_cur_left(c) < (size_t)t->nhandles * 4)
		return bad(r, err, "short truncate frame");
	uint32_t *h = ws_arena_alloc(&r->now, (size_t)t->nhandles * sizeof *h);

	for (uint32_t i = 0; i < t->nhandles; i++) {
		h[i] = ws_cur_u32(c);
		if (!ws_change_relation(r, h[i]))
			return bad(r, err, "truncate of an unknown relation");
	}
	t->handles = h;
	return 0;
}

static int
get_snapshot(struct ws_change_reader *r, struct ws_cursor *c, struct ws_change *ev, struct ws_err *err)
{
	struct ws_c_snapshot *s = &ev->snapshot;

	s->handle = ws_cur_u32(c);
	s->tli = ws_cur_u32(c);
	s->lsn = ws_cur_u64(c);
	s->rows = ws_cur_u64(c);
	s->with_rows = ws_cur_u8(c);
	if (c->bad || !ws_change_relation(r, s->handle) || r->in_xact)
		return bad(r, err, "snapshot mark in a wrong place");
	bool begin = ev->type == WS_C_SNAPSHOT_BEGIN;

	if (r->rels[s->handle - 1]->snapshot == begin)
		return bad(r, err, "snapshot mark out of order");
	r->rels[s->handle - 1]->snapshot = begin;
	return 0;
}

/* Every frame but relation and row; the cursor must be at its end afterwards. */
static int
get_other(struct ws_change_reader *r, struct ws_cursor *c, struct ws_change *ev, struct ws_err *err)
{
	struct ws_arena *a = &r->now;
	size_t n;

	switch (ev->type) {
	case WS_C_IDENTITY:
		ev->identity.system_id = ws_cur_u64(c);
		ev->identity.tli = ws_cur_u32(c);
		ev->identity.db = ws_cur_u32(c);
		ev->identity.major = ws_cur_u16(c);
		ev->identity.dbname = get_str(c, a);
		ev->identity.encoding = get_str(c, a);
		if (r->identity)
			return bad(r, err, "second identity frame");
		if (c->bad || !r->utf8)
			return 0;
		/* The name of a database is in whatever encoding it was made in. */
		if (ws_recode_new(ev->identity.encoding, &r->recode, err) < 0)
			return -1;
		if (r->recode)
			ev->identity.dbname = ws_recode_name(r->recode, ev->identity.dbname, a);
		return 0;
	case WS_C_BEGIN:
		ev->begin.xid = ws_cur_u32(c);
		ev->begin.commit_lsn = ws_cur_u64(c);
		ev->begin.end_lsn = ws_cur_u64(c);
		ev->begin.time = (int64_t)ws_cur_u64(c);
		ev->begin.origin = ws_cur_u16(c);
		if (r->in_xact)
			return bad(r, err, "begin inside a transaction");
		r->in_xact = true;
		r->begin = ev->begin;
		r->last_ordinal = 0;
		return 0;
	case WS_C_COMMIT:
		ev->commit.xid = ws_cur_u32(c);
		ev->commit.commit_lsn = ws_cur_u64(c);
		ev->commit.end_lsn = ws_cur_u64(c);
		ev->commit.tli = ws_cur_u32(c);
		ev->commit.nchanges = ws_cur_u64(c);
		if (!r->in_xact || ev->commit.xid != r->begin.xid || ev->commit.end_lsn != r->begin.end_lsn ||
		    ev->commit.commit_lsn != r->begin.commit_lsn || ev->commit.nchanges < r->last_ordinal)
			return bad(r, err, "commit does not fit its begin");
		r->in_xact = false;
		return 0;
	case WS_C_TRUNCATE:
		ev->truncate.ordinal = ws_cur_u64(c);
		ev->truncate.flags = ws_cur_u8(c);
		ev->truncate.nhandles = ws_cur_u32(c);
		if (get_handles(r, c, &ev->truncate, err) != 0)
			return -1;
		return ordinal(r, ev->truncate.ordinal, err);
	case WS_C_REPLACE_BEGIN:
	case WS_C_REPLACE_END:
		ev->replace.ordinal = ws_cur_u64(c);
		ev->replace.handle = ws_cur_u32(c);
		if (!ws_change_relation(r, ev->replace.handle))
			return bad(r, err, "replace of an unknown relation");
		return ordinal(r, ev->replace.ordinal, err);
	case WS_C_SCHEMA:
		ev->schema.ordinal = ws_cur_u64(c);
		ev->schema.what = (char)ws_cur_u8(c);
		ev->schema.oid = ws_cur_u32(c);
		ev->schema.old_handle = ws_cur_u32(c);
		ev->schema.new_handle = ws_cur_u32(c);
		if (ev->schema.old_handle > r->nrels || ev->schema.new_handle > r->nrels)
			return bad(r, err, "schema event of an unknown relation");
		return ordinal(r, ev->schema.ordinal, err);
	case WS_C_MESSAGE:
		ev->message.ordinal = ws_cur_u64(c);
		ev->message.transactional = ws_cur_u8(c);
		ev->message.lsn = ws_cur_u64(c);
		ev->message.prefix = get_str(c, a);
		ev->message.content = (const uint8_t *)ws_cur_str(c, &n);
		ev->message.len = (uint32_t)n;
		return ev->message.ordinal ? ordinal(r, ev->message.ordinal, err) : 0;
	case WS_C_SEQUENCE:
		ev->sequence.ordinal = ws_cur_u64(c);
		ev->sequence.lsn = ws_cur_u64(c);
		ev->sequence.oid = ws_cur_u32(c);
		ev->sequence.nspname = get_str(c, a);
		ev->sequence.name = get_str(c, a);
		if (r->recode) {
			ev->sequence.nspname = ws_recode_name(r->recode, ev->sequence.nspname, a);
			ev->sequence.name = ws_recode_name(r->recode, ev->sequence.name, a);
		}
		ev->sequence.last_value = (int64_t)ws_cur_u64(c);
		ev->sequence.is_called = ws_cur_u8(c);
		return ev->sequence.ordinal ? ordinal(r, ev->sequence.ordinal, err) : 0;
	case WS_C_TIMELINE:
		ev->timeline.old_tli = ws_cur_u32(c);
		ev->timeline.new_tli = ws_cur_u32(c);
		ev->timeline.lsn = ws_cur_u64(c);
		break;
	case WS_C_SNAPSHOT_BEGIN:
	case WS_C_SNAPSHOT_END:
		return get_snapshot(r, c, ev, err);
	case WS_C_PROGRESS:
	case WS_C_END:
		ev->progress.tli = ws_cur_u32(c);
		ev->progress.lsn = ws_cur_u64(c);
		break;
	default:
		return bad(r, err, "unknown frame type");
	}
	return r->in_xact ? bad(r, err, "frame inside a transaction that cannot stand there") : 0;
}

static int
parse_frame(struct ws_change_reader *r, const uint8_t *p, size_t n, struct ws_change *ev,
            struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(p + 1, n - 1);
	int rc;

	ev->type = p[0];
	if (!r->identity && ev->type != WS_C_IDENTITY)
		return bad(r, err, "the first frame is not the identity");
	if (ev->type == WS_C_ROW)
		return get_row(r, p + 1, p + n, ev, err);
	ws_arena_reset(&r->now);
	rc = ev->type == WS_C_RELATION ? get_relation(r, &c, ev, err) : get_other(r, &c, ev, err);
	if (rc < 0)
		return -1;
	if (c.bad || c.p != c.end)
		return bad(r, err, "frame of a wrong length");
	if (ev->type == WS_C_IDENTITY)
		r->identity = true;
	if (ev->type == WS_C_END)
		r->ended = true;
	return 1;
}

int
ws_change_next(struct ws_change_reader *r, struct ws_change *c, struct ws_err *err)
{
	const uint8_t *p = r->in.data ? r->in.data + r->at : NULL;
	size_t left = r->in.len - r->at;

	if (!r->header) {
		if (left < HEADER_SIZE)
			return 0;
		if (memcmp(p, WS_CHANGE_MAGIC, 8) != 0)
			return bad(r, err, "no change stream (bad magic)");
		if (ws_le32(p + 8) != WS_CHANGE_VERSION)
			return bad(r, err, "a version of the change stream that is not known here");
		r->header = true;
		r->at += HEADER_SIZE;
		p += HEADER_SIZE;
		left -= HEADER_SIZE;
	}
	if (left < 4)
		return 0;
	size_t n = ws_le32(p);

	if (n < 1 || n > WS_CHANGE_MAX_FRAME)
		return bad(r, err, "impossible frame length");
	if (r->ended)
		return bad(r, err, "bytes after the end frame");
	if (left - 4 < n)
		return 0;
	int rc = parse_frame(r, p + 4, n, c, err);

	if (rc < 0)
		return -1;
	c->size = n + 4;
	r->at += n + 4;
	return 1;
}
