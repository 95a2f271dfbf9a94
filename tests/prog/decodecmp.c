/* Compares a change stream with what test_decoding printed for the same WAL:
 *   decodecmp EXPECTED <STREAM
 *   decodecmp -p <STREAM
 *   decodecmp -P <STREAM
 * Prints the first difference and exits 1, or `same: N lines`.  Only where PostgreSQL printed
 * unchanged-toast-datum, any value is taken: ws-decode has it where PostgreSQL has not.  -p prints
 * a line an event, schema and replace events too, without transaction ids; a message of prefix
 * `step` is a heading.  -P prints for txcmp: as test_decoding does, and schema and replace events. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/prog/unchanged.h"
#include "ws/change.h"
#include "ws/log.h"

static struct ws_buf text;
static FILE *expected;
static char *line;
static size_t line_cap;
static long nlines, nfilled;

/* format_type without the modifier, as format_type_be gives it. */
static void
put_type(const char *t)
{
	int skip = 0;

	for (; *t; t++) {
		skip += *t == '(';
		if (!skip)
			ws_buf_putc(&text, (uint8_t)*t);
		skip -= *t == ')';
	}
}

static void
put_value(const struct ws_value *v, const struct ws_c_column *c)
{
	struct ws_buf b = {0};

	ws_value_text(v, &b);
	/* By the type's own name: a domain's values are quoted. */
	bool known = c->typname[0] && !strchr(c->typname, '.') && !strchr(c->typname, '[');
	bool bare = known && (v->kind == WS_K_INT2 || v->kind == WS_K_INT4 || v->kind == WS_K_INT8 ||
	                      v->kind == WS_K_OID || v->kind == WS_K_FLOAT4 || v->kind == WS_K_FLOAT8 ||
	                      v->kind == WS_K_NUMERIC);

	if (bare || (known && v->kind == WS_K_BOOL)) {
		if (v->kind == WS_K_BOOL)
			ws_buf_puts(&text, v->i ? "true" : "false");
		else
			ws_buf_put(&text, b.data, b.len);
	} else {
		ws_buf_putc(&text, '\'');
		for (size_t i = 0; i < b.len; i++) {
			if (b.data[i] == '\'')
				ws_buf_putc(&text, '\'');
			ws_buf_putc(&text, b.data[i]);
		}
		ws_buf_putc(&text, '\'');
	}
	ws_buf_free(&b);
}

static void
put_tuple(const struct ws_c_relation *r, const struct ws_value *v, bool skip_nulls)
{
	for (uint16_t i = 0; i < r->ncols; i++) {
		if (skip_nulls && v[i].state != WS_V_VALUE)
			continue;
		ws_buf_printf(&text, " %s[", r->cols[i].name);
		put_type(r->cols[i].typname);
		ws_buf_puts(&text, "]:");
		if (v[i].state == WS_V_VALUE)
			put_value(&v[i], &r->cols[i]);
		else
			ws_buf_puts(&text, v[i].state == WS_V_NULL ? "null" : UNCHANGED);
	}
}

static void
put_row(const struct ws_c_row *row)
{
	const struct ws_c_relation *r = row->rel;

	ws_buf_printf(&text, "table %s.%s: %s:", r->nspname, r->name,
	              row->op == 'I' ? "INSERT" : row->op == 'U' ? "UPDATE" : "DELETE");
	if (row->op == 'U' && row->old) {
		ws_buf_puts(&text, " old-key:");
		put_tuple(r, row->old, true);
		ws_buf_puts(&text, " new-tuple:");
	}
	if (row->op == 'D' && row->old)
		put_tuple(r, row->old, true);
	else if (row->op == 'D')
		ws_buf_puts(&text, " (no-tuple-data)");
	else
		put_tuple(r, row->new_, false);
}

static void
put_truncate(const struct ws_change *c, const struct ws_change_reader *reader)
{
	ws_buf_puts(&text, "table ");
	for (uint32_t i = 0; i < c->truncate.nhandles; i++) {
		const struct ws_c_relation *r = ws_change_relation(reader, c->truncate.handles[i]);

		ws_buf_printf(&text, "%s%s.%s", i ? ", " : "", r->nspname, r->name);
	}
	ws_buf_puts(&text, ": TRUNCATE:");
	if (c->truncate.flags & WS_TRUNCATE_RESTART)
		ws_buf_puts(&text, " restart_seqs");
	if (c->truncate.flags & WS_TRUNCATE_CASCADE)
		ws_buf_puts(&text, " cascade");
	if (!c->truncate.flags)
		ws_buf_puts(&text, " (no-flags)");
}

/* True when the event has a line. */
static bool
print(const struct ws_change *c, const struct ws_change_reader *reader)
{
	text.len = 0;
	switch (c->type) {
	case WS_C_BEGIN:
		ws_buf_printf(&text, "BEGIN %u", c->begin.xid);
		return true;
	case WS_C_COMMIT:
		ws_buf_printf(&text, "COMMIT %u", c->commit.xid);
		return true;
	case WS_C_ROW:
		put_row(&c->row);
		return true;
	case WS_C_TRUNCATE:
		put_truncate(c, reader);
		return true;
	case WS_C_MESSAGE:
		ws_buf_printf(&text, "message: transactional: %d prefix: %s, sz: %u content:",
		              c->message.transactional, c->message.prefix, c->message.len);
		ws_buf_put(&text, c->message.content, c->message.len);
		return true;
	default:
		return false;
	}
}

static bool
next_expected(void)
{
	ssize_t n = getline(&line, &line_cap, expected);

	if (n > 0 && line[n - 1] == '\n')
		line[n - 1] = 0;
	return n > 0;
}

static const char *
table(const struct ws_change_reader *reader, uint32_t handle)
{
	const struct ws_c_relation *r = ws_change_relation(reader, handle);

	return r ? r->name : "-";
}

/* -p */
static void
show(const struct ws_change *c, const struct ws_change_reader *reader)
{
	switch (c->type) {
	case WS_C_BEGIN:
		puts("BEGIN");
		break;
	case WS_C_COMMIT:
		puts("COMMIT");
		break;
	case WS_C_SCHEMA:
		printf("SCHEMA %c %s", c->schema.what, table(reader, c->schema.old_handle));
		printf(" %s\n", table(reader, c->schema.new_handle));
		break;
	case WS_C_REPLACE_BEGIN:
		printf("REPLACE %s\n", table(reader, c->replace.handle));
		break;
	case WS_C_REPLACE_END:
		printf("REPLACED %s\n", table(reader, c->replace.handle));
		break;
	case WS_C_SEQUENCE:
		printf("SEQUENCE %s %lld %d\n", c->sequence.name, (long long)c->sequence.last_value,
		       c->sequence.is_called);
		break;
	case WS_C_MESSAGE:
		if (!strcmp(c->message.prefix, "step")) {
			printf("== %.*s\n", (int)c->message.len, (const char *)c->message.content);
			break;
		}
		/* fallthrough */
	default:
		if (print(c, reader))
			printf("%s\n",
			       ws_buf_cstr(&text) + (c->type == WS_C_ROW || c->type == WS_C_TRUNCATE ? 6 : 0));
	}
}

static void
put_name(const struct ws_change_reader *reader, uint32_t handle)
{
	const struct ws_c_relation *r = handle ? ws_change_relation(reader, handle) : NULL;

	if (r)
		printf(" %s.%s", r->nspname, r->name);
	else
		printf(" -");
}

/* -P */
static void
show_all(const struct ws_change *c, const struct ws_change_reader *reader)
{
	if (print(c, reader)) {
		puts(ws_buf_cstr(&text));
	} else if (c->type == WS_C_SCHEMA) {
		printf("SCHEMA %c", c->schema.what);
		put_name(reader, c->schema.old_handle);
		put_name(reader, c->schema.new_handle);
		putchar('\n');
	} else if (c->type == WS_C_REPLACE_BEGIN) {
		printf("REPLACE");
		put_name(reader, c->replace.handle);
		putchar('\n');
	}
}

static int
compare_line(const struct ws_change *c, const struct ws_change_reader *reader)
{
	(void)print(c, reader);
	const char *have = ws_buf_cstr(&text);

	nlines++;
	if (!next_expected()) {
		printf("line %ld: PostgreSQL has no more, ws-decode: %.2000s\n", nlines, have);
		return -1;
	}
	if (unchanged_matches(line, have, &nfilled))
		return 0;
	printf("line %ld differs\n PostgreSQL: %.2000s\n  ws-decode: %.2000s\n", nlines, line, have);
	return -1;
}

static int
compare(const struct ws_change *c, const struct ws_change_reader *reader)
{
	static struct ws_change begin; /* not compared yet; type 0: it was */

	/* A transaction of schema events alone is none to PostgreSQL. */
	if (c->type == WS_C_BEGIN && !begin.type) {
		begin = *c;
		return 0;
	}
	if (c->type == WS_C_COMMIT && begin.type) {
		begin.type = 0;
		return 0;
	}
	if (!print(c, reader))
		return 0;
	if (begin.type && (c->type != WS_C_MESSAGE || c->message.transactional)) {
		struct ws_change b = begin;

		begin.type = 0;
		if (compare_line(&b, reader) != 0)
			return -1;
	}
	return compare_line(c, reader);
}

int
main(int argc, char **argv)
{
	struct ws_change_reader *reader = ws_change_reader_new();
	struct ws_change c;
	struct ws_err err;
	int rc = 0;

	ws_log_init("decodecmp", WS_LOG_INFO, false);
	bool all = argc == 2 && !strcmp(argv[1], "-P"), shows = all || (argc == 2 && !strcmp(argv[1], "-p"));

	if (argc != 2 || (!shows && !(expected = fopen(argv[1], "r")))) {
		fprintf(stderr, "usage: decodecmp EXPECTED <STREAM\n");
		return 2;
	}
	for (;;) {
		ssize_t n = read(STDIN_FILENO, ws_change_reader_room(reader, 65536), 65536);

		if (n <= 0)
			break;
		ws_change_reader_fed(reader, (size_t)n);
		while ((rc = ws_change_next(reader, &c, &err)) == 1)
			if (shows)
				(all ? show_all : show)(&c, reader);
			else if (compare(&c, reader) != 0)
				return 1;
		if (rc < 0) {
			ws_log_err(&err);
			return 1;
		}
	}
	if (!ws_change_ended(reader)) {
		printf("the stream has no end frame\n");
		rc = 1;
	} else if (!shows && next_expected()) {
		printf("after %ld lines ws-decode has no more, PostgreSQL: %.2000s\n", nlines, line);
		rc = 1;
	} else if (!shows) {
		printf("same: %ld lines, %ld toast values filled in\n", nlines, nfilled);
	}
	ws_change_reader_free(reader);
	ws_buf_free(&text);
	free(line);
	if (expected)
		fclose(expected);
	return rc;
}
