/* changetext: a change stream of snapshots on standard input, as lines on standard output, for tests.
 *
 *   identity DBOID DBNAME ENCODING
 *   relation SCHEMA.TABLE OID NCOLS
 *   begin SCHEMA.TABLE LSN rows|none
 *   row SCHEMA.TABLE <tab> the values as COPY writes them, \A for absent
 *   end SCHEMA.TABLE LSN ROWS
 *   END LSN
 * Exit status 1 when the stream is malformed or has no end frame. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ws/change.h"

static void
put_escaped(const struct ws_buf *b)
{
	static const char from[] = "\b\f\n\r\t\v\\", to[] = "bfnrtv\\";

	for (size_t i = 0; i < b->len; i++) {
		const char *p = b->data[i] ? strchr(from, b->data[i]) : NULL;

		if (p)
			printf("\\%c", to[p - from]);
		else
			putchar(b->data[i]);
	}
}

static void
put_row(const struct ws_c_row *r)
{
	static struct ws_buf text;

	printf("row %s.%s", r->rel->nspname, r->rel->name);
	for (int i = 0; i < r->rel->ncols; i++) {
		putchar('\t');
		if (r->new_[i].state == WS_V_ABSENT)
			fputs("\\A", stdout);
		else if (r->new_[i].state == WS_V_NULL)
			fputs("\\N", stdout);
		else {
			text.len = 0;
			ws_value_text(&r->new_[i], &text);
			put_escaped(&text);
		}
	}
	putchar('\n');
}

static void
put_event(const struct ws_change *c, const struct ws_change_reader *r)
{
	const struct ws_c_relation *rel;

	switch (c->type) {
	case WS_C_IDENTITY:
		printf("identity %u %s %s\n", c->identity.db, c->identity.dbname, c->identity.encoding);
		break;
	case WS_C_RELATION:
		rel = c->relation;
		printf("relation %s.%s %u %u\n", rel->nspname, rel->name, rel->oid, rel->ncols);
		break;
	case WS_C_SNAPSHOT_BEGIN:
		rel = ws_change_relation(r, c->snapshot.handle);
		printf("begin %s.%s " WS_LSN_FMT " %s\n", rel->nspname, rel->name, WS_LSN_ARG(c->snapshot.lsn),
		       c->snapshot.with_rows ? "rows" : "none");
		break;
	case WS_C_SNAPSHOT_END:
		rel = ws_change_relation(r, c->snapshot.handle);
		printf("end %s.%s " WS_LSN_FMT " %" PRIu64 "\n", rel->nspname, rel->name, WS_LSN_ARG(c->snapshot.lsn),
		       c->snapshot.rows);
		break;
	case WS_C_ROW:
		put_row(&c->row);
		break;
	case WS_C_END:
		printf("END " WS_LSN_FMT "\n", WS_LSN_ARG(c->end.lsn));
		break;
	default:
		printf("other %c\n", c->type);
	}
}

int
main(void)
{
	struct ws_change_reader *r = ws_change_reader_new();
	struct ws_change c;
	struct ws_err err = {0};
	ssize_t n = 0;
	int rc;

	while ((rc = ws_change_next(r, &c, &err)) >= 0) {
		if (rc == 1) {
			put_event(&c, r);
			continue;
		}
		n = read(STDIN_FILENO, ws_change_reader_room(r, 65536), 65536);
		if (n <= 0)
			break;
		ws_change_reader_fed(r, (size_t)n);
	}
	if (rc < 0)
		fprintf(stderr, "changetext: %s\n", err.msg);
	else if (!ws_change_ended(r))
		fprintf(stderr, "changetext: the stream has no end\n");
	rc = rc < 0 || !ws_change_ended(r);
	ws_change_reader_free(r);
	return rc;
}
