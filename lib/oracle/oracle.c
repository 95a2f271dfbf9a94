/* The oracle's client; see ws/oracle.h.  Values go in batches; what a lost connection left
 * unanswered is asked again.  A batch that loses its connection each time is halved, until the
 * value that does it is found: it is reported, never dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle-int.h"
#include "ws/cursor.h"
#include "ws/log.h"
#include "ws/tool.h"

#define BATCH_VALUES 16384u
#define BATCH_BYTES  (8u * 1024 * 1024)
#define KEEP_BYTES   (64u * 1024 * 1024)

struct type {
	char *name;
	uint8_t *desc;
	size_t n;
	int64_t sent; /* its number on this connection, -1 not told yet */
};

struct ws_oracle {
	struct oracle_link link;
	struct type *types;
	size_t ntypes;
	uint32_t told; /* types that the connection knows */
	struct oracle_fix *fix;
	size_t nfix, fix_cap;
	size_t done;   /* fixes whose text is known */
	size_t limit;  /* values in a batch */
	unsigned lost; /* batches in a row that went unanswered */
	uint32_t seq;
	struct ws_buf texts, request, spare;
	struct ws_oracle_stats st;
};

struct ws_oracle *
ws_oracle_new(const char *socket, ws_oid db)
{
	struct ws_oracle *o = ws_calloc(1, sizeof *o);

	o->link.socket = ws_strdup(socket);
	o->link.db = db;
	o->link.fd = -1;
	o->limit = BATCH_VALUES;
	return o;
}

void
ws_oracle_free(struct ws_oracle *o)
{
	if (!o)
		return;
	oracle_link_close(&o->link);
	ws_buf_free(&o->link.in);
	free(o->link.socket);
	for (size_t i = 0; i < o->ntypes; i++) {
		free(o->types[i].name);
		free(o->types[i].desc);
	}
	free(o->types);
	free(o->fix);
	ws_buf_free(&o->texts);
	ws_buf_free(&o->request);
	ws_buf_free(&o->spare);
	free(o);
}

uint32_t
ws_oracle_type(struct ws_oracle *o, const uint8_t *desc, size_t n, const char *name)
{
	for (size_t i = 0; i < o->ntypes; i++)
		if (o->types[i].n == n && !memcmp(o->types[i].desc, desc, n))
			return (uint32_t)i;
	o->types = ws_realloc(o->types, (o->ntypes + 1) * sizeof *o->types);
	struct type *t = &o->types[o->ntypes];

	t->name = ws_strdup(name);
	t->desc = ws_malloc(n);
	memcpy(t->desc, desc, n);
	t->n = n;
	t->sent = -1;
	return (uint32_t)o->ntypes++;
}

void
ws_oracle_defer(struct ws_oracle *o, size_t frame, size_t at, uint32_t type, ws_lsn lsn)
{
	if (o->nfix == o->fix_cap) {
		o->fix_cap = o->fix_cap ? o->fix_cap * 2 : 1024;
		o->fix = ws_realloc(o->fix, o->fix_cap * sizeof *o->fix);
	}
	o->fix[o->nfix++] = (struct oracle_fix){frame, at, type, lsn, 0, 0};
}

size_t
ws_oracle_deferred(const struct ws_oracle *o)
{
	return o->nfix;
}

const char *
ws_oracle_why(const struct ws_oracle *o)
{
	return o->link.why;
}

void
ws_oracle_get_stats(const struct ws_oracle *o, struct ws_oracle_stats *s)
{
	*s = o->st;
}

/* ---- one batch ---- */

static void
tell_type(struct ws_oracle *o, struct type *t)
{
	size_t at = oracle_frame_begin(&o->request, 'T');

	t->sent = o->told++;
	ws_buf_put32(&o->request, (uint32_t)t->sent);
	ws_buf_put(&o->request, t->desc, t->n);
	oracle_frame_end(&o->request, at);
}

/* The request for values from o->done on; how many. */
static size_t
put_request(struct ws_oracle *o, const struct ws_buf *b)
{
	size_t n = 0, bytes = 0, left = o->nfix - o->done;
	const struct oracle_fix *fix = o->fix + o->done;

	if (left > o->limit)
		left = o->limit;
	for (; n < left && (n == 0 || bytes < BATCH_BYTES); n++)
		bytes += ws_le32(b->data + fix[n].at);
	/* A value that does not fit beside the others goes alone. */
	if (n > 1 && bytes > 4 * (size_t)BATCH_BYTES)
		n--;
	o->request.len = 0;
	for (size_t i = 0; i < n; i++)
		if (o->types[fix[i].type].sent < 0)
			tell_type(o, &o->types[fix[i].type]);
	size_t at = oracle_frame_begin(&o->request, 'V');

	ws_buf_put32(&o->request, ++o->seq);
	ws_buf_put32(&o->request, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = b->data + fix[i].at;

		ws_buf_put32(&o->request, (uint32_t)o->types[fix[i].type].sent);
		ws_buf_put(&o->request, p, 4 + (size_t)ws_le32(p));
	}
	oracle_frame_end(&o->request, at);
	return n;
}

static int
no_text(const struct ws_oracle *o, const struct oracle_fix *f, const char *text, uint32_t len,
		struct ws_err *err)
{
	return ws_err_op(err, "oracle_value",
					 "a value of type %s in the row at " WS_LSN_FMT " has no text: %.*s",
					 o->types[f->type].name, WS_LSN_ARG(f->lsn), len > 500 ? 500 : (int)len, text);
}

static int
take_answers(struct ws_oracle *o, const struct ws_oracle_frame *f, size_t n, struct ws_err *err)
{
	struct ws_oracle_answers a;

	if (ws_oracle_answers_begin(f->p, f->n, o->seq, (uint32_t)n, &a, err) != 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct oracle_fix *x = &o->fix[o->done + i];
		const char *text;
		bool failed;

		if (ws_oracle_answers_next(&a, &failed, &text, &x->len, err) != 1)
			return -1;
		if (failed)
			return no_text(o, x, text, x->len, err);
		x->text = o->texts.len;
		ws_buf_put(&o->texts, text, x->len);
		o->st.bytes += x->len;
	}
	o->done += n;
	o->st.values += n;
	o->st.batches++;
	return 1;
}

/* The connection ended with a batch of n values unanswered. */
static int
unanswered(struct ws_oracle *o, size_t n, struct ws_err *err)
{
	const struct oracle_fix *f = &o->fix[o->done];

	oracle_link_close(&o->link);
	if (ws_tool_stopping())
		return 0;
	o->st.lost++;
	o->lost++;
	/* Once is a restart. */
	if (o->limit == BATCH_VALUES && o->lost < 2)
		return 0;
	if (n > 1) {
		o->limit = n / 2;
		o->lost = 0;
		return 0;
	}
	if (o->lost < 3)
		return 0;
	return ws_err_op(err, "oracle_crash",
					 "a value of type %s in the row at " WS_LSN_FMT
					 " ends the oracle each time it is asked for: see the shadow's log",
					 o->types[f->type].name, WS_LSN_ARG(f->lsn));
}

static int
open_link(struct ws_oracle *o, struct ws_err *err)
{
	if (o->link.fd >= 0)
		return 1;
	o->told = 0;
	for (size_t i = 0; i < o->ntypes; i++)
		o->types[i].sent = -1;
	return oracle_link_open(&o->link, err);
}

/* 1 answered, 0 not there or not now, -1 */
static int
batch(struct ws_oracle *o, const struct ws_buf *b, struct ws_err *err)
{
	struct ws_oracle_frame f;
	char text[400];
	int rc = open_link(o, err);

	if (rc != 1)
		return rc;
	size_t n = put_request(o, b);

	rc = oracle_link_send(&o->link, o->request.data, o->request.len);
	if (rc == 1)
		rc = oracle_link_frame(&o->link, &f, err);
	if (rc == 0)
		return unanswered(o, n, err);
	if (rc < 0)
		return -1;
	switch (f.type) {
	case 'R':
		rc = take_answers(o, &f, n, err);
		if (rc == 1)
			o->lost = 0;
		return rc;
	case 'N':
		/* Also when the texts of a batch do not fit into one answer. */
		if (n > 1)
			o->limit = n / 2;
		return ws_oracle_text_parse(f.p, f.n, o->link.why, sizeof o->link.why, err);
	case 'X':
		if (ws_oracle_text_parse(f.p, f.n, text, sizeof text, err) != 0)
			return -1;
		return ws_err_op(err, "oracle_protocol", "the oracle refuses what it was sent: %s", text);
	default:
		return ws_err_op(err, "oracle_protocol", "the oracle sent an unknown frame, type %u",
						 f.type);
	}
}

/* ---- all ---- */

static void
shrink(struct ws_buf *b)
{
	if (b->cap > KEEP_BYTES)
		ws_buf_free(b);
	b->len = 0;
}

int
ws_oracle_resolve(struct ws_oracle *o, struct ws_buf *b, struct ws_err *err)
{
	uint64_t from = ws_now_us();
	int rc = 1;

	if (!o->nfix)
		return 1;
	while (rc == 1 && o->done < o->nfix)
		rc = batch(o, b, err);
	o->st.waited_us += ws_now_us() - from;
	if (rc != 1)
		return rc;
	if (oracle_patch(b, o->fix, o->nfix, o->texts.data, &o->spare, err) != 0)
		return -1;
	struct ws_buf old = *b;

	*b = o->spare;
	o->spare = old;
	o->nfix = o->done = 0;
	o->limit = BATCH_VALUES;
	shrink(&o->spare);
	shrink(&o->texts);
	shrink(&o->request);
	shrink(&o->link.in);
	o->link.taken = 0;
	return 1;
}
