/* The change stream's writer, ws-change(5): events into a buffer that the caller sends. */
#include "lib/change/wire.h"
#include "ws/change.h"

/* Opens a frame; returns its offset for frame_end. */
static size_t
frame_begin(struct ws_buf *b, enum ws_change_type type)
{
	size_t at = b->len;

	ws_buf_put32(b, 0);
	ws_buf_putc(b, (uint8_t)type);
	return at;
}

static void
frame_end(struct ws_buf *b, size_t at)
{
	size_t n = b->len - at - 4;

	/* Too long for a frame's length: no reader takes this one for another. */
	ws_store32(b->data + at, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
}

static void
put_str(struct ws_buf *b, const char *s)
{
	ws_buf_putstr(b, s ? s : "", s ? strlen(s) : 0);
}

void
ws_change_put_header(struct ws_buf *out)
{
	ws_buf_put(out, WS_CHANGE_MAGIC, 8);
	ws_buf_put32(out, WS_CHANGE_VERSION);
}

static void
put_relation(struct ws_buf *b, const struct ws_c_relation *r)
{
	ws_buf_put32(b, r->handle);
	ws_buf_put32(b, r->oid);
	ws_buf_putc(b, (uint8_t)r->relkind);
	ws_buf_putc(b, (uint8_t)r->replident);
	put_str(b, r->nspname);
	put_str(b, r->name);
	ws_buf_put32(b, r->root);
	put_str(b, r->root_nspname);
	put_str(b, r->root_name);
	ws_buf_put64(b, r->lsn);
	ws_buf_put16(b, r->ncols);
	for (uint16_t i = 0; i < r->ncols; i++) {
		const struct ws_c_column *c = &r->cols[i];

		put_str(b, c->name);
		ws_buf_put16(b, (uint16_t)c->attnum);
		ws_buf_putc(b, c->kind);
		ws_buf_putc(b, c->elem_kind);
		ws_buf_putc(b, c->flags);
		ws_buf_put32(b, c->typid);
		ws_buf_put32(b, (uint32_t)c->typmod);
		put_str(b, c->typname);
		if (c->flags & WS_COL_MISSING)
			put_str(b, c->missing);
		ws_buf_put16(b, c->nlabels);
		for (uint16_t j = 0; j < c->nlabels; j++)
			put_str(b, c->labels[j]);
	}
}

/* Bytes a tuple takes. */
static size_t
tuple_size(uint16_t ncols, const struct ws_value *v)
{
	size_t n = ((size_t)ncols * 2 + 7) / 8;

	for (uint16_t i = 0; i < ncols; i++)
		if (v[i].state == WS_V_VALUE)
			n += wire_size(&v[i]);
	return n;
}

static uint8_t *
put_tuple(uint8_t *o, uint16_t ncols, const struct ws_value *v)
{
	uint8_t *bits = o;

	o += ((size_t)ncols * 2 + 7) / 8;
	for (uint16_t i = 0; i < ncols;) {
		uint8_t byte = 0;

		for (unsigned s = 0; s < 8 && i < ncols; s += 2, i++) {
			byte = (uint8_t)(byte | v[i].state << s);
			if (v[i].state == WS_V_VALUE)
				o = wire_put(o, &v[i]);
		}
		*bits++ = byte;
	}
	return o;
}

void
ws_change_put_row(struct ws_buf *out, char op, uint32_t handle, uint64_t ordinal, uint16_t ncols,
                  const struct ws_value *new_, const struct ws_value *old, bool old_full)
{
	size_t n = 1 + 1 + 1 + 4 + 8;

	if (new_)
		n += tuple_size(ncols, new_);
	if (old)
		n += tuple_size(ncols, old);
	ws_buf_reserve(out, 4 + n);
	uint8_t *o = out->data + out->len;

	ws_store32(o, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
	o[4] = WS_C_ROW;
	o[5] = (uint8_t)op;
	o[6] = (uint8_t)((new_ ? WS_ROW_NEW : 0) | (!old ? 0 : old_full ? WS_ROW_OLD_FULL : WS_ROW_OLD_KEY));
	ws_store32(o + 7, handle);
	ws_store64(o + 11, ordinal);
	o += WS_CHANGE_ROW_HEAD;
	if (new_)
		o = put_tuple(o, ncols, new_);
	if (old)
		put_tuple(o, ncols, old);
	out->len += 4 + n;
}

static void
put_pos(struct ws_buf *b, struct ws_pos p)
{
	ws_buf_put32(b, p.tli);
	ws_buf_put64(b, p.lsn);
}

void
ws_change_put(struct ws_buf *b, const struct ws_change *c)
{
	if (c->type == WS_C_ROW) {
		ws_change_put_row(b, c->row.op, c->row.handle, c->row.ordinal, c->row.rel->ncols, c->row.new_,
		                  c->row.old, c->row.flags & WS_ROW_OLD_FULL);
		return;
	}
	size_t at = frame_begin(b, c->type);

	switch (c->type) {
	case WS_C_IDENTITY:
		ws_buf_put64(b, c->identity.system_id);
		ws_buf_put32(b, c->identity.tli);
		ws_buf_put32(b, c->identity.db);
		ws_buf_put16(b, c->identity.major);
		put_str(b, c->identity.dbname);
		put_str(b, c->identity.encoding);
		break;
	case WS_C_RELATION:
		put_relation(b, c->relation);
		break;
	case WS_C_BEGIN:
		ws_buf_put32(b, c->begin.xid);
		ws_buf_put64(b, c->begin.commit_lsn);
		ws_buf_put64(b, c->begin.end_lsn);
		ws_buf_put64(b, (uint64_t)c->begin.time);
		ws_buf_put16(b, c->begin.origin);
		break;
	case WS_C_TRUNCATE:
		ws_buf_put64(b, c->truncate.ordinal);
		ws_buf_putc(b, c->truncate.flags);
		ws_buf_put32(b, c->truncate.nhandles);
		for (uint32_t i = 0; i < c->truncate.nhandles; i++)
			ws_buf_put32(b, c->truncate.handles[i]);
		break;
	case WS_C_REPLACE_BEGIN:
	case WS_C_REPLACE_END:
		ws_buf_put64(b, c->replace.ordinal);
		ws_buf_put32(b, c->replace.handle);
		break;
	case WS_C_SCHEMA:
		ws_buf_put64(b, c->schema.ordinal);
		ws_buf_putc(b, (uint8_t)c->schema.what);
		ws_buf_put32(b, c->schema.oid);
		ws_buf_put32(b, c->schema.old_handle);
		ws_buf_put32(b, c->schema.new_handle);
		break;
	case WS_C_MESSAGE:
		ws_buf_put64(b, c->message.ordinal);
		ws_buf_putc(b, c->message.transactional);
		ws_buf_put64(b, c->message.lsn);
		put_str(b, c->message.prefix);
		ws_buf_putstr(b, (const char *)c->message.content, c->message.len);
		break;
	case WS_C_SEQUENCE:
		ws_buf_put64(b, c->sequence.ordinal);
		ws_buf_put64(b, c->sequence.lsn);
		ws_buf_put32(b, c->sequence.oid);
		put_str(b, c->sequence.nspname);
		put_str(b, c->sequence.name);
		ws_buf_put64(b, (uint64_t)c->sequence.last_value);
		ws_buf_putc(b, c->sequence.is_called);
		break;
	case WS_C_COMMIT:
		ws_buf_put32(b, c->commit.xid);
		ws_buf_put64(b, c->commit.commit_lsn);
		ws_buf_put64(b, c->commit.end_lsn);
		ws_buf_put32(b, c->commit.tli);
		ws_buf_put64(b, c->commit.nchanges);
		break;
	case WS_C_TIMELINE:
		ws_buf_put32(b, c->timeline.old_tli);
		ws_buf_put32(b, c->timeline.new_tli);
		ws_buf_put64(b, c->timeline.lsn);
		break;
	case WS_C_SNAPSHOT_BEGIN:
	case WS_C_SNAPSHOT_END:
		ws_buf_put32(b, c->snapshot.handle);
		ws_buf_put32(b, c->snapshot.tli);
		ws_buf_put64(b, c->snapshot.lsn);
		ws_buf_put64(b, c->type == WS_C_SNAPSHOT_END ? c->snapshot.rows : 0);
		ws_buf_putc(b, c->snapshot.with_rows);
		break;
	case WS_C_PROGRESS:
		put_pos(b, c->progress);
		break;
	case WS_C_END:
		put_pos(b, c->end);
		break;
	case WS_C_ROW:
		break;
	}
	frame_end(b, at);
}
