/* Batches: rows into columns, and the body of an INSERT; see the invariants in lib/ch/emit.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/conv.h"
#include "lib/ch/emit.h"
#include "ws/tool.h"

/* ---- life ---- */

static struct ch_batch *
batch_new(struct ws_emit *e, struct ch_tab *t)
{
	struct ch_batch *b = ws_calloc(1, sizeof *b);
	struct ch_layout *l = t->layout;

	b->tab = t;
	b->layout = l;
	l->refs++;
	b->cols = ws_calloc((size_t)l->n, sizeof *b->cols);
	for (int i = 0; i < l->n; i++) {
		const struct ch_lcol *c = &l->cols[i];

		/* emit_layout has checked that the kind goes into the type. */
		if (ch_col_init(&b->cols[i], &c->type, c->kind, c->elem, &t->route, &e->srv.lim) != 0)
			abort();
	}
	b->opened_us = ws_now_us();
	b->before = e->last;
	b->time = e->in_tx ? e->tx.time : 0;
	b->prev = e->newest;
	*(e->newest ? &e->newest->next : &e->oldest) = b;
	e->newest = b;
	t->open = b;
	return b;
}

void
ch_batch_free(struct ws_emit *e, struct ch_batch *b)
{
	if (b->tab->open == b)
		b->tab->open = NULL;
	if (b->state == CH_FLYING) {
		ch_http_cancel(e->http, &b->req);
		e->flying--;
	} else if (b->state == CH_QUEUED || b->state == CH_WAITING) {
		e->queued--;
	}
	*(b->prev ? &b->prev->next : &e->oldest) = b->next;
	*(b->next ? &b->next->prev : &e->newest) = b->prev;
	e->held -= b->bytes;
	for (int i = 0; i < b->layout->n; i++)
		ch_col_fini(&b->cols[i]);
	free(b->cols);
	free(b->pieces);
	ws_buf_free(&b->head);
	ws_buf_free(&b->packed);
	ch_req_fini(&b->req);
	ch_layout_unref(b->layout);
	free(b);
}

void
ch_batch_drop_all(struct ws_emit *e)
{
	while (e->oldest)
		ch_batch_free(e, e->oldest);
}

/* ---- rows ---- */

static int
unfit(const struct ch_tab *t, const struct ch_lcol *c, const struct ws_value *v, struct ws_err *err)
{
	struct ws_buf text = {0};

	if (v->state == WS_V_NULL)
		return ws_err_op(err, "value_unfit", "table %s.%s: NULL does not fit into column %s %s%s",
						 t->db, t->name, c->name, c->type.wire,
						 c->type.base == CH_ARRAY ? "; see null-array=empty in ws-routes(5)" : "");
	if (v->kind == WS_K_UNSUPPORTED)
		return ws_err_op(err, "type_unsupported",
						 "table %s.%s column %s: the source type is not decoded; see unsupported= "
						 "in ws-routes(5)",
						 t->db, t->name, c->name);
	ws_value_text(v, &text);
	ws_err_op(err, "value_unfit", "table %s.%s: %s value %.100s does not fit into column %s %s",
			  t->db, t->name, ws_kind_name(v->kind), ws_buf_cstr(&text), c->name, c->type.wire);
	ws_buf_free(&text);
	return -1;
}

/* A value that the row loop can append by itself; false when it is for ch_col_add. */
static inline __attribute__((always_inline)) bool
add_fast(struct ch_col *c, enum ch_fast fast, const struct ws_value *v)
{
	uint8_t *o = conv_room(&c->data, 16);
	int64_t us;

	switch (fast) {
	case CH_FAST_1:
		*o = (uint8_t)v->i;
		c->data.len += 1;
		break;
	case CH_FAST_2:
		ws_store16(o, (uint16_t)v->i);
		c->data.len += 2;
		break;
	case CH_FAST_4:
		ws_store32(o, (uint32_t)v->i);
		c->data.len += 4;
		break;
	case CH_FAST_8:
		ws_store64(o, (uint64_t)v->i);
		c->data.len += 8;
		break;
	case CH_FAST_STRING:
		conv_string(&c->data, v->p, v->len);
		break;
	case CH_FAST_US:
		if (__builtin_add_overflow(v->i, EPOCH_US, &us) || us < c->lim->us_lo || us > c->lim->us_hi)
			return false;
		ws_store64(o, (uint64_t)us);
		c->data.len += 8;
		break;
	case CH_SLOW:
		return false;
	}
	if (c->type->nullable) {
		*conv_room(&c->nulls, 1) = 0;
		c->nulls.len++;
	}
	c->rows++;
	return true;
}

/* What every row of this change has in its extra columns. */
static inline __attribute__((always_inline)) int
add_extra(const struct ws_emit *e, struct ch_col *c, const struct ch_lcol *lc, char op,
		  unsigned __int128 version, ws_oid leaf, bool deleted)
{
	struct ws_value v;
	uint64_t policy = 0;

	v.state = WS_V_VALUE;
	v.kind = lc->kind;
	switch (lc->extra) {
	case WS_X_VERSION:
		memcpy(conv_room(&c->data, 16), &version, 16);
		c->data.len += 16;
		c->rows++;
		return 0;
	case WS_X_DELETED:
		v.i = deleted;
		break;
	case WS_X_OP:
		v.len = 1;
		v.p = (const uint8_t *)&op;
		break;
	case WS_X_LEAF:
		v.i = leaf;
		break;
	case WS_X_XID:
		v.i = e->in_tx ? e->tx.xid : 0;
		break;
	default: /* WS_X_COMMIT_TS */
		v.i = e->in_tx ? e->tx.time : -EPOCH_US;
	}
	return add_fast(c, lc->fast, &v) ? 0 : ch_col_add(c, &v, &policy);
}

/* A value that is not there, or that the row loop cannot append. */
static int
add_slow(struct ws_emit *e, struct ch_tab *t, struct ch_col *c, const struct ch_lcol *lc,
		 const struct ws_value *v, const struct ws_value *fallback, bool gone, bool deleted,
		 struct ws_err *err)
{
	uint64_t policy = 0;

	if (v->state == WS_V_ABSENT && fallback && fallback->state != WS_V_ABSENT)
		v = fallback;
	if (v->state == WS_V_ABSENT && !gone) {
		if (t->route.toast_missing != WS_TOAST_MISSING_NULL || !c->type->nullable || lc->key)
			return ws_err_op(err, "toast_missing",
			                 "table %s.%s xid %u: the unchanged value of column %s is not known; see toast-missing= in "
			                 "ws-routes(5)",
			                 t->db, t->name, e->tx.xid, lc->name);
		++*e->m_policy;
	}
	*e->m_unsupported += v->state == WS_V_VALUE && v->kind == WS_K_UNSUPPORTED;
	if (v->state == WS_V_ABSENT || ch_col_add(c, v, &policy) != 0) {
		/* An old row's value has no use beyond the key. */
		if (v->state != WS_V_ABSENT && (!deleted || lc->key))
			return unfit(t, lc, v, err);
		ch_col_add_default(c);
	}
	*e->m_policy += (double)policy;
	return 0;
}

int
ch_batch_row(struct ws_emit *e, struct ch_tab *t, char op, const struct ws_value *vals,
			 const struct ws_value *fallback, uint64_t ordinal, bool deleted, bool keyonly,
			 size_t size, struct ws_err *err)
{
	struct ch_batch *b = t->open ? t->open : batch_new(e, t);
	struct ch_layout *l = b->layout;
	unsigned __int128 version =
		(unsigned __int128)(t->phase == CH_LOAD ? t->snap.lsn : e->tx.commit_lsn) << 64 | ordinal;

	/* Rows of one load would all be equal where the version tells them apart, as a key or to count
	 * what has arrived; no commit record starts at an unaligned position. */
	if (t->phase == CH_LOAD && (t->append || t->history))
		version = (unsigned __int128)(t->snap.lsn - 1) << 64 | ++t->loadseq;
	for (int i = 0; i < l->n; i++) {
		const struct ch_lcol *lc = &l->cols[i];
		struct ch_col *c = &b->cols[i];
		int s = t->src[i];

		if (lc->extra >= 0) {
			if (add_extra(e, c, lc, op, version, t->oid, deleted) != 0)
				return ws_err_op(err, "value_unfit", "table %s.%s: column %s cannot be filled",
								 t->db, t->name, lc->name);
		} else if (s < 0 || !vals || (keyonly && !lc->key)) {
			ch_col_add_default(c);
		} else if (vals[s].state != WS_V_VALUE || !add_fast(c, (enum ch_fast)lc->fast, &vals[s])) {
			if (add_slow(e, t, c, lc, &vals[s], fallback ? &fallback[s] : NULL,
						 deleted || op == 'D', deleted, err) != 0)
				return -1;
		}
	}
	if (b->rows++ == 0)
		b->vmin = version;
	b->vmax = version;
	b->bytes += size + 40;
	e->held += size + 40;
	return 0;
}

/* ---- the body ---- */

static void
batch_body(struct ch_batch *b)
{
	struct ch_layout *l = b->layout;
	size_t *from = ws_calloc((size_t)l->n + 1, sizeof *from);
	int max = 2;

	ws_buf_printf(&b->head, "INSERT INTO %s (", b->tab->target);
	for (int i = 0; i < l->n; i++) {
		if (i)
			ws_buf_putc(&b->head, ',');
		ch_quote_name(&b->head, l->cols[i].name);
		for (const struct ch_col *c = &b->cols[i]; c; c = c->elem)
			max += 3;
	}
	ws_buf_puts(&b->head, ") FORMAT Native\n");
	ch_varint(&b->head, (uint64_t)l->n);
	ch_varint(&b->head, b->rows);
	for (int i = 0; i < l->n; i++) {
		ch_col_head(&b->cols[i], l->cols[i].name, &b->head);
		from[i + 1] = b->head.len;
	}
	b->pieces = ws_calloc((size_t)max, sizeof *b->pieces);
	for (int i = 0; i < l->n; i++) {
		b->pieces[b->npieces++] = (struct ch_piece){b->head.data + from[i], from[i + 1] - from[i]};
		b->npieces += ch_col_pieces(&b->cols[i], b->pieces + b->npieces, max - b->npieces);
	}
	free(from);
}

/* Compressed, the columns are not needed any more: a retry sends the same frame. */
int
ch_batch_pack(struct ws_emit *e, struct ch_batch *b, struct ws_err *err)
{
	if (e->encoding == CH_ENC_NONE)
		return 0;
	if (ch_compress(e->encoding, b->pieces, b->npieces, &b->packed, err) != 0)
		return -1;
	for (int i = 0; i < b->layout->n; i++)
		ch_col_fini(&b->cols[i]);
	b->pieces[0] = (struct ch_piece){b->packed.data, b->packed.len};
	b->npieces = 1;
	return 0;
}

void
ch_batch_seal(struct ws_emit *e, struct ch_batch *b)
{
	if (b->state != CH_OPEN)
		return;
	b->tab->open = NULL;
	b->tab->flushed_us = ws_now_us();
	if (b->rows == 0) {
		ch_batch_free(e, b);
		return;
	}
	b->state = CH_QUEUED;
	e->queued++;
	batch_body(b);
}

void
ch_batch_seal_all(struct ws_emit *e)
{
	for (struct ch_batch *b = e->oldest, *next; b; b = next) {
		next = b->next;
		ch_batch_seal(e, b);
	}
}
