/* mkchange: a change stream on standard output from a script on standard input, for tests.
 *
 * One command a line, fields separated by tabs; LSNs as X/X.  A value is PostgreSQL's text, \N is
 * NULL, \A absent, \E empty.
 *
 *   identity SYSTEM DBOID DBNAME
 *   relation HANDLE OID SCHEMA.TABLE REPLIDENT LSN COLUMN...
 *       OID of a leaf: OID/ROOTOID/ROOTSCHEMA.ROOTTABLE; of a partitioned table: OID/
 *       COLUMN is NAME:ATTNUM:KIND[/ELEM]:FLAGS:TYPID:TYPMOD[=MISSING], flags of n k p
 *   begin XID COMMIT END | commit | progress LSN | end LSN
 *   I H VALUE... | U H VALUE... [| VALUE...] | D H VALUE...   (U and D with F behind: whole old row)
 *   T H... | P H | p H | S WHAT OID OLD NEW
 *   snapshot H LSN ROWS? | s H VALUE... | endsnapshot H LSN
 *   bulk H COUNT FIRST     inserts of made-up rows, ids from FIRST
 *   transactions H COUNT ROWS XID LSN FIRST   many small transactions
 *   sleep MILLISECONDS     after what was made has been written */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/change.h"
#include "ws/lsn.h"

#define MAX_FIELDS 2048
#define MAX_HANDLES 256

static struct ws_buf out;
static struct ws_arena arena, row_arena;
static struct ws_c_relation *rels[MAX_HANDLES];
static struct ws_c_begin tx;
static uint64_t ordinal;
static unsigned line_no;

static void
die(const char *what)
{
	fprintf(stderr, "mkchange: line %u: %s\n", line_no, what);
	exit(2);
}

static void
flush(void)
{
	for (size_t at = 0; at < out.len;) {
		ssize_t n = write(STDOUT_FILENO, out.data + at, out.len - at);

		if (n < 0 && errno != EINTR)
			exit(1);
		at += n > 0 ? (size_t)n : 0;
	}
	out.len = 0;
}

static void
put(struct ws_change c)
{
	ws_change_put(&out, &c);
}

static ws_lsn
lsn(const char *s)
{
	ws_lsn l;

	if (ws_lsn_parse(s, &l) != 0)
		die("not an LSN");
	return l;
}

static struct ws_c_relation *
rel(const char *handle)
{
	unsigned long h = strtoul(handle, NULL, 10);

	if (h == 0 || h >= MAX_HANDLES || !rels[h])
		die("unknown handle");
	return rels[h];
}

static enum ws_kind
kind(const char *name)
{
	for (int k = 1; k < WS_K_COUNT; k++)
		if (!strcmp(ws_kind_name((enum ws_kind)k), name))
			return (enum ws_kind)k;
	die("unknown kind");
	return 0;
}

/* ---- commands ---- */

static void
column(char *s, struct ws_c_column *c)
{
	char *f[6], *eq;

	for (int i = 0; i < 5; i++)
		if (!(f[i] = strsep(&s, ":")) || !s)
			die("a column has six parts");
	f[5] = s;
	c->name = f[0];
	c->attnum = (int16_t)atoi(f[1]);
	char *elem = strchr(f[2], '/');

	if (elem) {
		*elem = 0;
		c->elem_kind = (uint8_t)kind(elem + 1);
	}
	c->kind = (uint8_t)kind(f[2]);
	c->flags = (uint8_t)((strchr(f[3], 'n') ? WS_COL_NOTNULL : 0) | (strchr(f[3], 'k') ? WS_COL_IDENTITY : 0) |
	                     (strchr(f[3], 'p') ? WS_COL_PKEY : 0));
	c->typid = (ws_oid)strtoul(f[4], NULL, 10);
	if ((eq = strchr(f[5], '='))) {
		*eq = 0;
		c->missing = eq + 1;
		c->flags |= WS_COL_MISSING;
	}
	c->typmod = atoi(f[5]);
	c->typname = ws_kind_name(c->kind);
}

static void
relation(char **f, int n)
{
	struct ws_c_relation *r = ws_arena_zalloc(&arena, sizeof *r);
	char *dot;

	if (n < 6)
		die("relation is short");
	for (int i = 3; i < n; i++)
		f[i] = ws_arena_strdup(&arena, f[i]);
	r->handle = (uint32_t)strtoul(f[1], NULL, 10);
	r->oid = (ws_oid)strtoul(f[2], NULL, 10);
	if (!(dot = strchr(f[3], '.')) || r->handle == 0 || r->handle >= MAX_HANDLES)
		die("relation: SCHEMA.TABLE, handles from 1");
	*dot = 0;
	r->nspname = f[3];
	r->name = dot + 1;
	r->root_nspname = r->root_name = "";
	r->relkind = 'r';
	char *root = strchr(f[2], '/');

	if (root && !root[1]) {
		r->relkind = 'p';
	} else if (root) {
		char *name = strchr(root + 1, '/'), *rdot = name ? strchr(name, '.') : NULL;

		if (!rdot)
			die("relation: OID/ROOTOID/SCHEMA.TABLE");
		*rdot = 0;
		r->root = (ws_oid)strtoul(root + 1, NULL, 10);
		r->root_nspname = ws_arena_strdup(&arena, name + 1);
		r->root_name = ws_arena_strdup(&arena, rdot + 1);
	}
	r->replident = *f[4];
	r->lsn = lsn(f[5]);
	r->ncols = (uint16_t)(n - 6);
	r->cols = ws_arena_zalloc(&arena, (size_t)r->ncols * sizeof *r->cols);
	for (int i = 6; i < n; i++)
		column(f[i], &r->cols[i - 6]);
	rels[r->handle] = r;
	put((struct ws_change){.type = WS_C_RELATION, .relation = r});
}

static struct ws_value *
values(const struct ws_c_relation *r, char **f, int n)
{
	struct ws_value *v = ws_arena_zalloc(&row_arena, (size_t)r->ncols * sizeof *v);
	struct ws_err err;

	if (n < r->ncols)
		die("too few values");
	for (int i = 0; i < r->ncols; i++) {
		v[i].kind = r->cols[i].kind;
		if (!strcmp(f[i], "\\E"))
			f[i] += 2;
		if (!strcmp(f[i], "\\A")) {
			v[i].state = WS_V_ABSENT;
		} else if (v[i].kind == WS_K_UNSUPPORTED && strcmp(f[i], "\\N")) {
			v[i] = (struct ws_value){WS_V_VALUE, WS_K_UNSUPPORTED, (uint32_t)strlen(f[i]), {.p = (uint8_t *)f[i]}};
		} else if (strcmp(f[i], "\\N") &&
		           ws_value_from_text(r->cols[i].kind, r->cols[i].elem_kind, f[i], strlen(f[i]), &row_arena, &v[i], &err) != 0) {
			die(err.msg);
		}
	}
	return v;
}

static void
change(char **f, int n)
{
	const struct ws_c_relation *r = rel(f[1]);
	bool full = f[0][1] == 'F';
	struct ws_value *v = values(r, f + 2, n - 2), *old = NULL;

	if (*f[0] == 'D') {
		old = v;
		v = NULL;
	} else if (n > 2 + r->ncols) {
		if (strcmp(f[2 + r->ncols], "|"))
			die("too many values");
		old = values(r, f + 3 + r->ncols, n - 3 - r->ncols);
	}
	ws_change_put_row(&out, *f[0], r->handle, ++ordinal, r->ncols, v, old, full);
	ws_arena_reset(&row_arena);
}

/* A row made of its number: every column something that its kind can hold. */
static void
made_up(const struct ws_c_relation *r, uint64_t id, struct ws_value *v, char *text)
{
	int n = snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, id * 0x9e3779b97f4a7c15u, id);

	for (int i = 0; i < r->ncols; i++) {
		v[i].state = WS_V_VALUE;
		v[i].kind = r->cols[i].kind;
		switch (v[i].kind) {
		case WS_K_INT8:
			v[i].i = (int64_t)id;
			break;
		case WS_K_INT4:
			v[i].i = (int32_t)(id % 1000);
			break;
		case WS_K_INT2:
		case WS_K_BOOL:
			v[i].i = (int64_t)(id % 2);
			break;
		case WS_K_TIMESTAMP:
		case WS_K_TIMESTAMPTZ:
			v[i].i = 800000000000000 + (int64_t)id;
			break;
		case WS_K_TEXT:
			v[i].p = (uint8_t *)text;
			v[i].len = (uint32_t)n;
			break;
		default:
			v[i].state = WS_V_NULL;
		}
	}
}

static void
bulk(const struct ws_c_relation *r, uint64_t count, uint64_t first)
{
	struct ws_value *v = ws_calloc(r->ncols, sizeof *v);
	char text[40];

	for (uint64_t i = 0; i < count; i++) {
		made_up(r, first + i, v, text);
		ws_change_put_row(&out, 'I', r->handle, ++ordinal, r->ncols, v, NULL, false);
		if (out.len > 256 * 1024)
			flush();
	}
	free(v);
}

static void
begin(ws_xid xid, ws_lsn commit, ws_lsn end)
{
	/* 2026-01-01 and a second for each xid. */
	tx = (struct ws_c_begin){xid, commit, end, INT64_C(820540800000000) + (int64_t)xid * 1000000, 0};
	ordinal = 0;
	put((struct ws_change){.type = WS_C_BEGIN, .begin = tx});
}

static void
commit(void)
{
	put((struct ws_change){.type = WS_C_COMMIT, .commit = {tx.xid, tx.commit_lsn, tx.end_lsn, 1, ordinal}});
}

static void
transactions(char **f)
{
	uint64_t n = strtoull(f[2], NULL, 10), rows = strtoull(f[3], NULL, 10), first = strtoull(f[6], NULL, 10);
	ws_xid xid = (ws_xid)strtoul(f[4], NULL, 10);
	ws_lsn at = lsn(f[5]);

	for (uint64_t i = 0; i < n; i++, at += 64) {
		begin(xid + (ws_xid)i, at, at + 48);
		bulk(rel(f[1]), rows, first + i * rows);
		commit();
	}
}

static void
command(char **f, int n)
{
	struct ws_c_snapshot snap = {0};
	const char *c = f[0];

	if (!strcmp(c, "identity") && n >= 4) {
		ws_change_put_header(&out);
		put((struct ws_change){.type = WS_C_IDENTITY,
		                       .identity = {strtoull(f[1], NULL, 10), 1, (ws_oid)strtoul(f[2], NULL, 10), 17, f[3], "UTF8"}});
	} else if (!strcmp(c, "relation")) {
		relation(f, n);
	} else if (!strcmp(c, "begin") && n >= 4) {
		begin((ws_xid)strtoul(f[1], NULL, 10), lsn(f[2]), lsn(f[3]));
	} else if (!strcmp(c, "commit")) {
		commit();
	} else if (strchr("IUD", *c) && (c[1] == 0 || c[1] == 'F') && n >= 2) {
		change(f, n);
	} else if (!strcmp(c, "bulk") && n >= 4) {
		bulk(rel(f[1]), strtoull(f[2], NULL, 10), strtoull(f[3], NULL, 10));
	} else if (!strcmp(c, "transactions") && n >= 7) {
		transactions(f);
	} else if (!strcmp(c, "progress") && n >= 2) {
		put((struct ws_change){.type = WS_C_PROGRESS, .progress = {1, lsn(f[1])}});
	} else if (!strcmp(c, "end") && n >= 2) {
		put((struct ws_change){.type = WS_C_END, .end = {1, lsn(f[1])}});
	} else if (!strcmp(c, "T")) {
		uint32_t h[MAX_FIELDS];

		for (int i = 1; i < n; i++)
			h[i - 1] = rel(f[i])->handle;
		put((struct ws_change){.type = WS_C_TRUNCATE, .truncate = {++ordinal, 0, (uint32_t)n - 1, h}});
	} else if ((!strcmp(c, "P") || !strcmp(c, "p")) && n >= 2) {
		put((struct ws_change){.type = *c == 'P' ? WS_C_REPLACE_BEGIN : WS_C_REPLACE_END, .replace = {++ordinal, rel(f[1])->handle}});
	} else if (!strcmp(c, "S") && n >= 5) {
		put((struct ws_change){.type = WS_C_SCHEMA,
		                       .schema = {++ordinal, *f[1], (ws_oid)strtoul(f[2], NULL, 10), (uint32_t)strtoul(f[3], NULL, 10),
		                                  (uint32_t)strtoul(f[4], NULL, 10)}});
	} else if ((!strcmp(c, "snapshot") || !strcmp(c, "endsnapshot")) && n >= 3) {
		snap = (struct ws_c_snapshot){rel(f[1])->handle, lsn(f[2]), 1, 0, n < 4 || *f[3] != '0'};
		put((struct ws_change){.type = *c == 's' ? WS_C_SNAPSHOT_BEGIN : WS_C_SNAPSHOT_END, .snapshot = snap});
	} else if (!strcmp(c, "s") && n >= 2) {
		const struct ws_c_relation *r = rel(f[1]);

		ws_change_put_row(&out, 'I', r->handle, 0, r->ncols, values(r, f + 2, n - 2), NULL, false);
		ws_arena_reset(&row_arena);
	} else if (!strcmp(c, "sleep") && n >= 2) {
		flush();
		usleep((useconds_t)strtoul(f[1], NULL, 10) * 1000);
	} else {
		die("unknown command");
	}
}

int
main(void)
{
	static char *f[MAX_FIELDS];
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, stdin)) > 0) {
		int n = 0;
		char *s = line;

		line_no++;
		if (line[len - 1] == '\n')
			line[len - 1] = 0;
		if (!*line || *line == '#')
			continue;
		while (s && n < MAX_FIELDS)
			f[n++] = strsep(&s, "\t");
		command(f, n);
		if (out.len > 256 * 1024)
			flush();
	}
	flush();
	free(line);
	return 0;
}
