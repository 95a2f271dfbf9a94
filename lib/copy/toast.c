/* TOAST values of a table that is loaded, into the consumer's store, so that updates which keep them
 * can be sent whole: the chunks that the snapshot sees, and where they stand. */
#include <stdlib.h>
#include <string.h>

#include "ws/copytext.h"
#include "copy-int.h"

int
copy_toast_begin(struct copy *c, const struct copy_table *t, struct ws_err *err)
{
	if (!t->toast)
		return 0;
	return ws_toaststore_load(c->store, t->toast->oid, t->toast->filenode, c->snap.lsn, err);
}

void
copy_toast_query(const struct copy_table *t, struct ws_buf *sql)
{
	ws_buf_puts(sql, "COPY (SELECT ctid, chunk_id, chunk_seq, chunk_data FROM ");
	ws_pg_quote_name(sql, t->toast->nspname);
	ws_buf_putc(sql, '.');
	ws_pg_quote_name(sql, t->toast->name);
	ws_buf_puts(sql, ") TO STDOUT");
}

static int
nibble(uint8_t c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \x and hexadecimal digits. */
static int
unhex(const struct ws_copyfield *f, struct ws_buf *out)
{
	const uint8_t *p = (const uint8_t *)f->p;
	size_t n = f->len;

	out->len = 0;
	if (n < 2 || n % 2 || p[0] != '\\' || p[1] != 'x')
		return -1;
	ws_buf_reserve(out, n / 2);
	for (size_t i = 2; i < n; i += 2) {
		int hi = nibble(p[i]), lo = nibble(p[i + 1]);

		if (hi < 0 || lo < 0)
			return -1;
		out->data[out->len++] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

static int
number(const struct ws_copyfield *f, uint64_t max, uint32_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < f->len; i++) {
		uint8_t c = (uint8_t)f->p[i];

		if (c < '0' || c > '9' || (v = v * 10 + (c - '0')) > max)
			return -1;
	}
	*out = (uint32_t)v;
	return f->len ? 0 : -1;
}

/* (block,offset) */
static int
ctid(const struct ws_copyfield *f, struct ws_toastplace *at)
{
	const char *comma = memchr(f->p, ',', f->len);
	uint32_t off;

	if (!comma || f->len < 5 || f->p[0] != '(' || f->p[f->len - 1] != ')')
		return -1;
	struct ws_copyfield a = *f, b = *f;

	a.p = f->p + 1;
	a.len = (size_t)(comma - a.p);
	b.p = comma + 1;
	b.len = (size_t)(f->p + f->len - 1 - b.p);
	if (number(&a, UINT32_MAX, &at->blkno) != 0 || number(&b, UINT16_MAX, &off) != 0)
		return -1;
	at->off = (uint16_t)off;
	return 0;
}

int
copy_toast_row(struct copy *c, const struct copy_table *t, char *row, size_t n, struct ws_buf *tmp,
               struct ws_err *err)
{
	struct ws_toastplace at = {.file = t->toast->filenode};
	struct ws_copyfield f[4];
	uint32_t id, seq;

	if (ws_copytext_split(row, n, f, 4) != 0 || f[0].null || f[1].null || f[2].null || f[3].null ||
	    ctid(&f[0], &at) != 0 || number(&f[1], UINT32_MAX, &id) != 0 ||
	    number(&f[2], INT32_MAX, &seq) != 0 || unhex(&f[3], tmp) != 0)
		return ws_err_temp(err, "table %s.%s: malformed TOAST row from COPY", t->rel->nspname, t->rel->name);
	c->bytes += n;
	return ws_toaststore_load_put(c->store, t->toast->oid, c->snap.lsn, id, (int32_t)seq, tmp->data,
	                              (uint32_t)tmp->len, &at, err);
}
