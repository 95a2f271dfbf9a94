/* Compares transactions, as test_decoding printed them, with what `decodecmp -P` printed of the
 * same WAL: txcmp EXPECTED PRINTED [IGNORED] Same transactions, same order, same rows in the same
 * order.  Differences are allowed only where they are meant: a table that the transaction replaced
 * or dropped is left out of it (PostgreSQL decodes no rewrite); of a table whose shape the
 * transaction changed the operations are compared, not the columns (all rows have the commit's
 * shape).  IGNORED is a regular expression of tables that are not sent (materialized views, tables
 * made and dropped in one).  Prints the first difference and exits 1, or `same: N transactions, M
 * lines`. */
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prog/unchanged.h"

struct block { /* BEGIN to COMMIT, or one line outside */
	char **line;
	size_t n, cap;
};

struct input {
	FILE *f;
	char *held;
};

static regex_t ignored;
static bool has_ignored;
static long ntx, nlines;

static char *
next_line(struct input *in)
{
	char *s = in->held;
	size_t cap = 0;

	in->held = NULL;
	if (s)
		return s;
	ssize_t n = getline(&s, &cap, in->f);

	if (n <= 0) {
		free(s);
		return NULL;
	}
	if (s[n - 1] == '\n')
		s[n - 1] = 0;
	return s;
}

static void
clear(struct block *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->line[i]);
	b->n = 0;
}

static bool
is(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

/* A line goes on until the next one that begins like one: values hold newlines. */
static bool
begins(const char *s)
{
	return is(s, "BEGIN ") || is(s, "COMMIT ") || is(s, "table ") || is(s, "message: ") ||
		   is(s, "SCHEMA ") || is(s, "REPLACE ") || is(s, "REPLACED ") || is(s, "SEQUENCE ");
}

static char *
next_event(struct input *in)
{
	char *s = next_line(in), *more;

	while (s && (more = next_line(in))) {
		if (begins(more)) {
			in->held = more;
			break;
		}
		char *both = malloc(strlen(s) + strlen(more) + 2);

		sprintf(both, "%s\n%s", s, more);
		free(s);
		free(more);
		s = both;
	}
	return s;
}

static bool
next_block(struct input *in, struct block *b)
{
	char *s;
	bool inside = false;

	clear(b);
	while ((s = next_event(in))) {
		if (is(s, "SEQUENCE ")) {
			free(s);
			continue;
		}
		/* What is not transactional stands between, also within. */
		if (b->n == b->cap)
			b->line = realloc(b->line, (b->cap = b->cap ? b->cap * 2 : 64) * sizeof *b->line);
		b->line[b->n++] = s;
		if (is(s, "BEGIN "))
			inside = true;
		if (!inside || is(s, "COMMIT "))
			return true;
	}
	return b->n != 0;
}

/* ---- names ---- */

/* The table of "table a.b: OP: ...", or of a word in a list; where its name ends. */
static const char *
table_of(const char *line)
{
	return is(line, "table ") ? line + 6 : NULL;
}

static size_t
name_len(const char *s)
{
	return strcspn(s, ":, ");
}

struct names {
	char from[16][200], to[16][200];
	bool gone[16];
	size_t n;
} names;

static size_t
find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < names.n; i++)
		if ((strlen(names.from[i]) == len && !strncmp(names.from[i], name, len)) ||
			(strlen(names.to[i]) == len && !strncmp(names.to[i], name, len)))
			break;
	return i;
}

static void
add_name(const char *from, const char *to, bool gone)
{
	size_t i = find(from, strlen(from));

	if (i == names.n)
		i = find(to, strlen(to));
	if (i == names.n && names.n < 15) {
		names.n++;
		snprintf(names.from[i], sizeof names.from[i], "%s", from);
		snprintf(names.to[i], sizeof names.to[i], "%s", to);
		names.gone[i] = false;
	}
	names.gone[i] |= gone;
}

static void
learn(const struct block *b)
{
	char what, from[200], to[200];

	names.n = 0;
	for (size_t i = 0; i < b->n; i++)
		if (sscanf(b->line[i], "SCHEMA %c %199s %199s", &what, from, to) == 3) {
			const char *f = strcmp(from, "-") ? from : to, *t = strcmp(to, "-") ? to : from;

			add_name(f, t, what == 'D');
		} else if (sscanf(b->line[i], "REPLACE %199s", from) == 1) {
			add_name(from, from, true);
		}
}

/* ---- lines ---- */

static bool
is_ignored(const char *name, size_t len)
{
	char s[200];

	snprintf(s, sizeof s, "%.*s", (int)len, name);
	return has_ignored && regexec(&ignored, s, 0, NULL, 0) == 0;
}

/* TRUNCATE without the tables that do not count; NULL when none is left. */
static char *
truncated(const char *line)
{
	char *out = calloc(1, strlen(line) + 400), *end = out;
	const char *p = line + 6;

	for (size_t len; (len = name_len(p)); p += len + (p[len] == ',' ? 2 : 0)) {
		size_t i = find(p, len);

		if (!is_ignored(p, len) && (i == names.n || !names.gone[i]))
			end += i == names.n ? sprintf(end, " %.*s", (int)len, p)
								: sprintf(end, " %s", names.from[i]);
		if (p[len] != ',')
			break;
	}
	if (end == out) {
		free(out);
		return NULL;
	}
	strcat(out, ": TRUNCATE");
	return out;
}

/* As it is compared, or NULL when it is not. */
static char *
reduced(const char *line)
{
	const char *name = table_of(line);

	if (is(line, "SCHEMA ") || is(line, "REPLACE"))
		return NULL;
	if (!name)
		return strdup(line);
	if (strstr(line, ": TRUNCATE:"))
		return truncated(line);
	size_t len = name_len(name), i = find(name, len);

	if (is_ignored(name, len) || (i < names.n && names.gone[i]))
		return NULL;
	if (i == names.n)
		return strdup(line);
	char *out = malloc(len + strlen(names.from[i]) + 100);

	sprintf(out, "table %s: %.8s", names.from[i], name + len + 2);
	return out;
}

static void
reduce(struct block *b)
{
	size_t k = 0;

	for (size_t i = 0; i < b->n; i++) {
		char *s = reduced(b->line[i]);

		free(b->line[i]);
		if (s)
			b->line[k++] = s;
	}
	b->n = k;
}

/* Nothing of it counts. */
static bool
counts_not(const struct block *b)
{
	for (size_t i = 0; i < b->n; i++) {
		char *s =
			is(b->line[i], "BEGIN ") || is(b->line[i], "COMMIT ") ? NULL : reduced(b->line[i]);

		if (s) {
			free(s);
			return false;
		}
	}
	return true;
}

/* BEGIN and COMMIT alone. */
static bool
is_empty(const struct block *b)
{
	return b->n == 0 || (b->n == 2 && is(b->line[0], "BEGIN ") && is(b->line[1], "COMMIT "));
}

static int
compare(const struct block *want, const struct block *have)
{
	size_t n = want->n > have->n ? want->n : have->n;

	for (size_t i = 0; i < n; i++) {
		const char *w = i < want->n ? want->line[i] : "(no more)",
				   *h = i < have->n ? have->line[i] : "(no more)";

		nlines++;
		if (unchanged_matches(w, h, NULL))
			continue;
		printf("%s, line %zu differs\n PostgreSQL: %.1500s\n  ws-decode: %.1500s\n",
			   want->n ? want->line[0] : have->line[0], i + 1, w, h);
		return 1;
	}
	ntx++;
	return 0;
}

static bool
same_tx(const struct block *a, const struct block *b)
{
	return a->n && b->n && !strcmp(a->line[0], b->line[0]);
}

/* The transactions of an input, by their first line. */
struct begins {
	char **line;
	size_t n, cap;
};

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
read_begins(FILE *f, struct begins *g)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, f)) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!is(line, "BEGIN "))
			continue;
		if (g->n == g->cap)
			g->line = realloc(g->line, (g->cap = g->cap ? g->cap * 2 : 1024) * sizeof *g->line);
		g->line[g->n++] = strdup(line);
	}
	free(line);
	rewind(f);
	qsort(g->line, g->n, sizeof *g->line, by_text);
}

static bool
missing(const struct block *b, const struct begins *other)
{
	return !bsearch(&b->line[0], other->line, other->n, sizeof *other->line, by_text);
}

int
main(int argc, char **argv)
{
	struct input a, b;
	struct block want = {0}, have = {0};

	memset(&a, 0, sizeof a);
	memset(&b, 0, sizeof b);
	if (argc < 3 || argc > 4 || !(a.f = fopen(argv[1], "r")) || !(b.f = fopen(argv[2], "r"))) {
		fprintf(stderr, "usage: txcmp EXPECTED PRINTED [IGNORED]\n");
		return 2;
	}
	has_ignored = argc == 4 && regcomp(&ignored, argv[3], REG_EXTENDED | REG_NOSUB) == 0;
	struct begins ours = {0};

	read_begins(b.f, &ours);
	bool w = next_block(&a, &want), h = next_block(&b, &have);

	while (w || h) {
		bool same = w && h && same_tx(&want, &have);

		names.n = 0;
		if (h)
			learn(&have);
		if (same) {
			reduce(&want);
			reduce(&have);
			if ((!is_empty(&want) || !is_empty(&have)) && compare(&want, &have) != 0)
				return 1;
			w = next_block(&a, &want);
			h = next_block(&b, &have);
			continue;
		}
		/* Of the one or the other alone: nothing of it may count.  What only PostgreSQL has goes
		 * first, so that a transaction that both have is not passed over here. */
		if (w && want.n && is(want.line[0], "BEGIN ") && missing(&want, &ours)) {
			names.n = 0;
			if (counts_not(&want)) {
				w = next_block(&a, &want);
				continue;
			}
			names.n = 0;
			if (h)
				learn(&have);
		}
		if (h && counts_not(&have)) {
			h = next_block(&b, &have);
			continue;
		}
		names.n = 0;
		if (w && counts_not(&want)) {
			w = next_block(&a, &want);
			continue;
		}
		compare(&want, &have);
		return 1;
	}
	printf("same: %ld transactions, %ld lines\n", ntx, nlines);
	return 0;
}
