/* usage: heapcheck CONNINFO PGDATA SCHEMA.TABLE...
 *
 * Decodes the files of quiet tables (rows only inserted, server checkpointed) and compares every
 * value with what the server says: its text must be equal, and the value made from the server's
 * text must be the same bytes as the one from disk.  Prints a line for each table; exit status 1
 * when anything differs. */
#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/catquery.h"
#include "ws/copytext.h"
#include "ws/cursor.h"
#include "ws/file.h"
#include "ws/heap.h"

#define PAGE      8192u
#define MAX_SHOWN 10

struct types {
	struct ws_type **v;
	size_t n;
};

struct table {
	const char *nspname, *name;
	struct ws_rel *rel;
	struct ws_rel **rows; /* of composites */
	size_t nrows;
	struct types types;
};

/* The TOAST table, by chunk id: rows as they come, then sorted. */
struct toast {
	struct ws_buf file;
	struct ws_toast_chunk *v;
	size_t n;
};

static struct ws_err err;
static struct ws_buf junk;

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "heapcheck: %s: %s\n", what, err.msg);
	exit(2);
}

/* The sink's structs live only during the call: their byte forms are copies. */
static int
take_rel(void *arg, const struct ws_rel *r, struct ws_err *e)
{
	struct table *t = arg;

	bool wanted = !strcmp(r->nspname, t->nspname) && !strcmp(r->name, t->name);

	if (!wanted && !r->reltype)
		return 0;
	junk.len = 0;
	ws_rel_encode(r, &junk);
	struct ws_rel *copy = ws_rel_decode(junk.data, junk.len, e);

	if (wanted)
		t->rel = copy;
	t->rows = ws_realloc(t->rows, (t->nrows + 1) * sizeof *t->rows);
	t->rows[t->nrows++] = copy;
	return copy ? 0 : -1;
}

static int
take_type(void *arg, const struct ws_type *type, struct ws_err *e)
{
	struct table *t = arg;

	t->types.v = ws_realloc(t->types.v, (t->types.n + 1) * sizeof *t->types.v);
	junk.len = 0;
	ws_type_encode(type, &junk);
	t->types.v[t->types.n] = ws_type_decode(junk.data, junk.len, e);
	return t->types.v[t->types.n++] ? 0 : -1;
}

static int
gone(void *arg, ws_oid oid, struct ws_err *e)
{
	(void)arg, (void)oid, (void)e;
	return 0;
}

static int
find_type(void *arg, ws_oid oid, const struct ws_type **out, struct ws_err *e)
{
	struct table *t = arg;

	(void)e;
	for (size_t i = 0; i < t->types.n; i++)
		if (t->types.v[i]->oid == oid) {
			*out = t->types.v[i];
			for (size_t k = 0; (*out)->relid && k < t->nrows; k++)
				if (t->rows[k]->oid == (*out)->relid)
					t->types.v[i]->row = t->rows[k];
			return 1;
		}
	return 0;
}

/* Calls fn for each tuple of a relation's file; returns their number. */
static size_t
each_tuple(const struct ws_buf *f, void (*fn)(void *arg, const struct ws_tuple *t), void *arg)
{
	size_t n = 0;

	for (size_t at = 0; at + PAGE <= f->len; at += PAGE) {
		const uint8_t *page = f->data + at;
		unsigned lower = ws_le16(page + 12);

		for (unsigned lp = 24; lp < lower; lp += 4) {
			uint32_t item = ws_le32(page + lp);
			struct ws_tuple t;

			if ((item >> 15 & 3) != 1)
				continue;
			if (ws_tuple_from_page(page + (item & 0x7fff), item >> 17, &t) != 0) {
				fprintf(stderr, "heapcheck: malformed tuple on a page\n");
				exit(2);
			}
			fn(arg, &t);
			n++;
		}
	}
	return n;
}

static void
read_relation(PGconn *pg, const char *pgdata, ws_oid oid, struct ws_buf *out)
{
	char sql[128];

	snprintf(sql, sizeof sql, "SELECT pg_relation_filepath(%u)", oid);
	PGresult *res = PQexec(pg, sql);

	if (PQntuples(res) != 1)
		die("pg_relation_filepath");
	for (int seg = 0;; seg++) {
		char *path = seg ? ws_asprintf("%s/%s.%d", pgdata, PQgetvalue(res, 0, 0), seg)
		                 : ws_asprintf("%s/%s", pgdata, PQgetvalue(res, 0, 0));
		int rc = ws_file_read(path, (size_t)4 << 30, out, &err);

		free(path);
		if (rc < 0 || (rc == 0 && seg == 0))
			die("relation file");
		if (rc == 0)
			break;
	}
	PQclear(res);
}

static void
add_chunk(void *arg, const struct ws_tuple *t)
{
	struct toast *s = arg;

	if ((s->n & (s->n - 1)) == 0)
		s->v = ws_realloc(s->v, (s->n ? s->n * 2 : 1) * sizeof *s->v);
	if (ws_toast_chunk_parse(t, &s->v[s->n++], &err) != 0)
		die("chunk");
}

static int
by_chunk(const void *a, const void *b)
{
	const struct ws_toast_chunk *x = a, *y = b;

	return x->id != y->id ? x->id < y->id ? -1 : 1 : x->seq - y->seq;
}

static int
get_toast(void *arg, const struct ws_toast_ptr *p, struct ws_arena *a, const uint8_t **data, struct ws_err *e)
{
	struct toast *s = arg;
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->v[mid].id < p->valueid)
			lo = mid + 1;
		else
			hi = mid;
	}
	uint8_t *out = ws_arena_alloc(a, p->extsize), *at = out;

	for (; lo < s->n && s->v[lo].id == p->valueid; lo++) {
		memcpy(at, s->v[lo].data, s->v[lo].len);
		at += s->v[lo].len;
	}
	*data = out;
	if (at != out + p->extsize)
		return ws_err_temp(e, "chunks of %u: %zu bytes instead of %u", p->valueid, (size_t)(at - out), p->extsize);
	return 1;
}

struct check {
	PGconn *pg;
	struct ws_heapdesc *desc;
	struct ws_heapenv env;
	struct ws_value *values;
	struct ws_copyfield *fields;
	struct ws_buf text, wire, wire2;
	struct ws_arena arena;
	uint64_t nvalues, ndiff;
};

static void
differ(struct check *c, int col, const char *what)
{
	const struct ws_copyfield *f = &c->fields[col];

	if (c->ndiff++ < MAX_SHOWN)
		fprintf(stderr, "heapcheck: %s column %s: %s: server \"%.*s\" disk \"%.*s\" %s\n",
		        c->desc->rel->name, c->desc->cols[col].attr->name, what, (int)(f->len > 300 ? 300 : f->len),
		        f->p, (int)(c->text.len > 300 ? 300 : c->text.len), (char *)c->text.data, err.msg);
}

static void
check_value(struct check *c, int col)
{
	const struct ws_copyfield *f = &c->fields[col];
	const struct ws_value *v = &c->values[col];
	struct ws_value w;

	c->nvalues++;
	c->text.len = c->wire.len = c->wire2.len = 0;
	ws_buf_cstr(&c->text);
	err.msg[0] = 0;
	if (f->null || v->state != WS_V_VALUE) {
		if (!(f->null && v->state == WS_V_NULL))
			differ(c, col, "NULL");
		return;
	}
	if (v->kind == WS_K_UNSUPPORTED)
		return;
	ws_value_text(v, &c->text);
	ws_buf_cstr(&c->text);
	if (c->text.len != f->len || memcmp(c->text.data, f->p, f->len) != 0) {
		differ(c, col, "text");
		return;
	}
	if (ws_value_from_text(v->kind, c->desc->cols[col].type.elem, f->p, f->len, &c->arena, &w, &err) != 0) {
		differ(c, col, "from text");
		return;
	}
	ws_value_put(&c->wire, v);
	ws_value_put(&c->wire2, &w);
	if (c->wire.len != c->wire2.len || memcmp(c->wire.data, c->wire2.data, c->wire.len) != 0)
		differ(c, col, "bytes");
}

static void
check_row(void *arg, const struct ws_tuple *t)
{
	struct check *c = arg;
	char *row;
	int n = PQgetCopyData(c->pg, &row, 0);

	if (n < 0) {
		fprintf(stderr, "heapcheck: more rows on disk than on the server: %s\n", PQerrorMessage(c->pg));
		exit(1);
	}
	if (ws_copytext_split(row, (size_t)n, c->fields, c->desc->ncols) != 0)
		die("row of COPY");
	ws_arena_reset(&c->arena);
	if (ws_heap_decode(c->desc, t, 0, &c->env, c->values, &err) != 0)
		die("decode");
	for (int i = 0; i < c->desc->ncols; i++)
		check_value(c, i);
	PQfreemem(row);
}

static void
copy_out(PGconn *pg, const struct ws_heapdesc *d)
{
	struct ws_buf sql = {0};

	ws_buf_puts(&sql, "COPY (SELECT ");
	for (int i = 0; i < d->ncols; i++) {
		const struct ws_heaptype *t = &d->cols[i].type;

		ws_buf_printf(&sql, d->cols[i].attr->flags & WS_ATT_VIRTUAL ? "%sNULL AS \"%s\"" : "%s\"%s\"", i ? "," : "",
		              d->cols[i].attr->name);
		if (t->reg)
			ws_buf_puts(&sql, t->kind == WS_K_ARRAY ? "::oid[]" : "::oid");
	}
	ws_buf_printf(&sql, " FROM \"%s\".\"%s\" ORDER BY ctid) TO STDOUT", d->rel->nspname, d->rel->name);
	PGresult *res = PQexec(pg, ws_buf_cstr(&sql));

	if (PQresultStatus(res) != PGRES_COPY_OUT) {
		fprintf(stderr, "heapcheck: %s", PQerrorMessage(pg));
		exit(2);
	}
	PQclear(res);
	ws_buf_free(&sql);
}

static int
check_table(struct ws_pg *session, const char *pgdata, char *name)
{
	PGconn *pg = (PGconn *)(void *)ws_pg_raw(session);
	char *dot = strchr(name, '.'), *row;
	struct table t = {.nspname = name, .name = dot + 1};
	const struct ws_catquery_sink sink = {take_rel, take_type, gone, gone, NULL, NULL, NULL, &t};
	const struct ws_catquery_want want = {.everything = true};
	struct toast toast = {0};
	struct ws_buf file = {0};
	struct check c = {.pg = pg, .env = {.toast = get_toast, .toast_arg = &toast}};

	*dot = 0;
	if (ws_catquery_read(session, &want, 0, &sink, &err) != 0 || !t.rel)
		die("shape");
	if (t.rel->toast) {
		read_relation(pg, pgdata, t.rel->toast, &toast.file);
		each_tuple(&toast.file, add_chunk, &toast);
		qsort(toast.v, toast.n, sizeof *toast.v, by_chunk);
	}
	read_relation(pg, pgdata, t.rel->oid, &file);
	c.env.arena = &c.arena;
	c.desc = ws_heapdesc_new(t.rel, find_type, &t, &err);
	if (!c.desc)
		die("desc");
	c.values = ws_calloc(c.desc->ncols, sizeof *c.values);
	c.fields = ws_calloc(c.desc->ncols, sizeof *c.fields);
	copy_out(pg, c.desc);
	size_t rows = each_tuple(&file, check_row, &c);

	if (PQgetCopyData(pg, &row, 0) != -1) {
		fprintf(stderr, "heapcheck: fewer rows on disk than on the server: %s\n", PQerrorMessage(pg));
		return 1;
	}
	for (PGresult *res; (res = PQgetResult(pg)); PQclear(res))
		;
	uint64_t unsupported = 0;

	for (int i = 0; i < c.desc->ncols; i++) {
		unsupported += c.desc->cols[i].unsupported;
		if (c.desc->cols[i].type.kind == WS_K_UNSUPPORTED)
			fprintf(stderr, "heapcheck: %s column %s: type %s is not decoded\n", c.desc->rel->name,
			        c.desc->cols[i].attr->name, c.desc->cols[i].attr->typname);
	}
	printf("%s.%s rows=%zu values=%" PRIu64 " different=%" PRIu64 " unsupported=%" PRIu64 " chunks=%zu\n", name,
	       dot + 1, rows, c.nvalues, c.ndiff, unsupported, toast.n);
	return c.ndiff != 0;
}

int
main(int argc, char **argv)
{
	int rc = 0;

	if (argc < 4) {
		fprintf(stderr, "usage: heapcheck CONNINFO PGDATA SCHEMA.TABLE...\n");
		return 2;
	}
	const struct ws_pg_opts opts = {.mode = WS_PG_SQL, .conninfo = argv[1]};
	struct ws_pg *session = ws_pg_open(&opts, NULL, &err);

	if (!session || ws_catquery_setup(session, &err) != 0)
		die("connection");
	PQclear(PQexec((PGconn *)(void *)ws_pg_raw(session), "SET statement_timeout = 0"));
	for (int i = 3; i < argc; i++)
		rc |= check_table(session, argv[2], argv[i]);
	ws_pg_close(session);
	return rc;
}
