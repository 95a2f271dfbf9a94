/* oracleask: asks an oracle, for tests and the bench.
 *
 *   oracleask SOCKET DBOID LIB SYMBOL LEN BYVAL ALIGN [COUNT] <values
 *
 * Standard input: values of one base type, a line each, their bytes as hex.  Prints a line for
 * each: its text, or "error: ...".  With COUNT the values are asked for again and again until there
 * were COUNT of them, and the one line printed is the seconds that a million took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/oracle.h"
#include "ws/tool.h"

static struct ws_type type;

static int
find_type(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err)
{
	(void)arg, (void)oid, (void)err;
	*t = &type;
	return 1;
}

static int
find_rel(void *arg, ws_oid oid, const struct ws_rel **r, struct ws_err *err)
{
	(void)arg, (void)oid, (void)err, (void)r;
	return 0;
}

/* A line of hex as u32 length and bytes. */
static void
put_line(struct ws_buf *b, const char *s)
{
	size_t at = b->len;
	unsigned v;

	ws_buf_put32(b, 0);
	for (; sscanf(s, "%2x", &v) == 1; s += 2)
		ws_buf_putc(b, (uint8_t)v);
	ws_store32(b->data + at, (uint32_t)(b->len - at - 4));
}

/* A frame for each value, so that each has a place in the buffer. */
static size_t
put_frame(struct ws_buf *b, const struct ws_buf *value)
{
	size_t at = b->len;

	ws_buf_put32(b, (uint32_t)value->len);
	ws_buf_put(b, value->data, value->len);
	return at;
}

static int
fail(const struct ws_err *err)
{
	fprintf(stderr, "oracleask: %s\n", err->msg);
	return 1;
}

/* Waits for the oracle for 20 s. */
static int
resolve(struct ws_oracle *o, struct ws_buf *b, struct ws_err *err)
{
	uint64_t from = ws_now_us();
	int rc;

	while ((rc = ws_oracle_resolve(o, b, err)) == 0 && ws_now_us() - from < 20000000)
		;
	return rc == 0 ? ws_err_temp(err, "%s", ws_oracle_why(o)) : rc == 1 ? 0 : -1;
}

static int
bench(struct ws_oracle *o, uint32_t id, const struct ws_buf *values, size_t nvalues, size_t count)
{
	struct ws_err err = {0};
	uint64_t took = 0;
	size_t done = 0;

	for (size_t round = 0; done < count; round++) {
		struct ws_buf b = {0};

		for (size_t i = 0; i < 20000; i++) {
			size_t at = put_frame(&b, &values[i % nvalues]);

			ws_oracle_defer(o, at, at + 4, id, 0);
		}
		uint64_t from = ws_now_us();

		if (resolve(o, &b, &err) != 0)
			return fail(&err);
		/* The first has to find or start the worker. */
		if (round)
			took += ws_now_us() - from, done += 20000;
		ws_buf_free(&b);
	}
	printf("%.4f\n", (double)took / (double)done);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct ws_oracle_lookup look = {find_type, find_rel, NULL};
	struct ws_err err = {0};
	struct ws_buf desc = {0}, *values = NULL;
	size_t n = 0;
	static char line[1 << 20];

	if (argc < 8)
		return 2;
	type = (struct ws_type){.oid = 1,
							.typtype = 'b',
							.name = argv[4],
							.out_lib = argv[3],
							.out_sym = argv[4],
							.len = (int16_t)atoi(argv[5]),
							.byval = atoi(argv[6]) != 0,
							.align = argv[7][0]};
	struct ws_oracle *o = ws_oracle_new(argv[1], (ws_oid)strtoul(argv[2], NULL, 10));

	if (ws_oracle_describe(1, &look, &desc, &err) != 0)
		return fail(&err);
	uint32_t id = ws_oracle_type(o, desc.data, desc.len, argv[4]);

	while (fgets(line, sizeof line, stdin)) {
		values = ws_realloc(values, (n + 1) * sizeof *values);
		memset(&values[n], 0, sizeof *values);
		put_line(&values[n++], line);
	}
	if (argc > 8)
		return bench(o, id, values, n, strtoul(argv[8], NULL, 10));
	for (size_t i = 0; i < n; i++) {
		struct ws_buf b = {0};
		size_t at = put_frame(&b, &values[i]);

		ws_oracle_defer(o, at, at + 4, id, 0);
		if (resolve(o, &b, &err) != 0)
			printf("error: %s\n", err.msg);
		else
			printf("%.*s\n", (int)ws_le32(b.data + 4), b.data + 8);
		if (err.status)
			return err.status;
		ws_buf_free(&b);
	}
	return 0;
}
