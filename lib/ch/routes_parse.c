/* The parser of ws-routes(5): words, options, and every problem with its line; see ws/routes.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/routes.h"
#include "ws/file.h"

struct parser {
	struct ws_routes *r;
	struct ws_buf *problems;
	const char *name;
	unsigned line;
	bool bad;
};

static void WS_PRINTF(2, 3) problem(struct parser *p, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ws_buf_printf(p->problems, "%s:%u: %s\n", p->name, p->line, text);
	p->bad = true;
}

/* ---- words ---- */

#define MAX_WORDS 64

/* Cuts a line into words at blanks.  A double quote, anywhere in a word, takes everything up to the
 * next one as it is ("" is a quote); # outside quotes ends the line.  Returns the number of words.
 */
static int
cut(struct parser *p, const char *s, size_t n, char **words)
{
	int nw = 0;
	size_t i = 0;
	char *o = ws_arena_alloc(&p->r->arena, n + MAX_WORDS + 1);

	for (;;) {
		while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r'))
			i++;
		if (i == n || s[i] == '#')
			return nw;
		if (nw == MAX_WORDS) {
			problem(p, "more than %d words", MAX_WORDS);
			return -1;
		}
		char *w = o;
		bool quoted = false;

		for (; i < n && (quoted || (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '#'));
			 i++) {
			if (s[i] != '"')
				*o++ = s[i];
			else if (quoted && i + 1 < n && s[i + 1] == '"')
				*o++ = s[++i];
			else
				quoted = !quoted;
		}
		*o++ = 0;
		if (quoted) {
			problem(p, "a quoted word has no end");
			return -1;
		}
		words[nw++] = w;
	}
}

/* ---- options ---- */

struct choice {
	const char *word;
	int value;
};

static const struct choice deletes_words[] = {{"tombstone", WS_DEL_TOMBSTONE},
											  {"soft", WS_DEL_SOFT},
											  {"discard", WS_DEL_DISCARD},
											  {"history", WS_DEL_HISTORY},
											  {NULL, 0}};
static const struct choice keyless_words[] = {{"refuse", WS_KEYLESS_REFUSE},
											  {"append", WS_KEYLESS_APPEND},
											  {"all", WS_KEYLESS_ALL},
											  {NULL, 0}};
static const struct choice unfit_words[] = {{"stop", WS_UNFIT_STOP},
											{"clamp", WS_UNFIT_CLAMP},
											{"null", WS_UNFIT_NULL},
											{"text", WS_UNFIT_TEXT},
											{NULL, 0}};
static const struct choice unsup_words[] = {{"stop", WS_UNSUP_STOP},
											{"hex", WS_UNSUP_HEX},
											{"bytes", WS_UNSUP_BYTES},
											{"null", WS_UNSUP_NULL},
											{NULL, 0}};
static const struct choice toast_words[] = {
	{"stop", WS_TOAST_MISSING_STOP}, {"null", WS_TOAST_MISSING_NULL}, {NULL, 0}};
static const struct choice array_words[] = {
	{"text", WS_NULL_ARRAY_TEXT}, {"empty", WS_NULL_ARRAY_EMPTY}, {NULL, 0}};
static const struct choice drop_words[] = {
	{"keep", WS_DROP_KEEP}, {"drop", WS_DROP_DROP}, {"stop", WS_DROP_STOP}, {NULL, 0}};
static const struct choice drop_table_words[] = {{"keep", WS_DROP_KEEP},
												 {"warn", WS_DROP_WARN},
												 {"drop", WS_DROP_DROP},
												 {"stop", WS_DROP_STOP},
												 {NULL, 0}};
static const struct choice type_words[] = {
	{"rebuild", WS_TYPE_REBUILD}, {"stop", WS_TYPE_STOP}, {NULL, 0}};
static const struct choice text_words[] = {{"stop", WS_TEXT_STOP}, {"keep", WS_TEXT_KEEP}, {NULL, 0}};
static const struct choice rename_words[] = {{"rename", WS_RENAME_RENAME},
											 {"new", WS_RENAME_NEW},
											 {"keep", WS_RENAME_KEEP},
											 {"stop", WS_RENAME_STOP},
											 {NULL, 0}};
static const struct choice partition_words[] = {
	{"own", WS_PART_OWN}, {"root", WS_PART_ROOT}, {NULL, 0}};
static const struct choice load_words[] = {
	{"copy", WS_LOAD_COPY}, {"none", WS_LOAD_NONE}, {NULL, 0}};

enum opt_kind { OPT_TEXT, OPT_TEMPLATE, OPT_CHOICE, OPT_EXTRA };

/* Options of a table rule: one table for the parser and for what it says when a word is unknown. */
static const struct opt {
	const char *word;
	enum opt_kind kind;
	size_t at; /* in struct rule; of OPT_EXTRA the column */
	const struct choice *choices;
} opts[] = {
#define ROUTE(f) offsetof(struct rule, route.f)
	{"database", OPT_TEMPLATE, offsetof(struct rule, database), NULL},
	{"name", OPT_TEMPLATE, offsetof(struct rule, name), NULL},
	{"engine", OPT_TEXT, ROUTE(engine), NULL},
	{"order-by", OPT_TEXT, ROUTE(order_by), NULL},
	{"primary-key", OPT_TEXT, ROUTE(primary_key), NULL},
	{"partition-by", OPT_TEXT, ROUTE(partition_by), NULL},
	{"ttl", OPT_TEXT, ROUTE(ttl), NULL},
	{"settings", OPT_TEXT, ROUTE(settings), NULL},
	{"cluster", OPT_TEXT, ROUTE(cluster), NULL},
	{"deletes", OPT_CHOICE, ROUTE(deletes), deletes_words},
	{"keyless", OPT_CHOICE, ROUTE(keyless), keyless_words},
	{"unfit", OPT_CHOICE, ROUTE(unfit), unfit_words},
	{"unsupported", OPT_CHOICE, ROUTE(unsupported), unsup_words},
	{"toast-missing", OPT_CHOICE, ROUTE(toast_missing), toast_words},
	{"null-array", OPT_CHOICE, ROUTE(null_array), array_words},
	{"drop-table", OPT_CHOICE, ROUTE(drop_table), drop_table_words},
	{"drop-column", OPT_CHOICE, ROUTE(drop_column), drop_words},
	{"type-change", OPT_CHOICE, ROUTE(type_change), type_words},
	{"text-change", OPT_CHOICE, ROUTE(text_change), text_words},
	{"rename-table", OPT_CHOICE, ROUTE(rename_table), rename_words},
	{"load", OPT_CHOICE, ROUTE(load), load_words},
	{"partitions", OPT_CHOICE, ROUTE(partitions), partition_words},
	{"leaf-column", OPT_EXTRA, WS_X_LEAF, NULL},
	{"version-column", OPT_EXTRA, WS_X_VERSION, NULL},
	{"deleted-column", OPT_EXTRA, WS_X_DELETED, NULL},
	{"op-column", OPT_EXTRA, WS_X_OP, NULL},
	{"xid-column", OPT_EXTRA, WS_X_XID, NULL},
	{"commit-ts-column", OPT_EXTRA, WS_X_COMMIT_TS, NULL},
	{"lsn-column", OPT_EXTRA, WS_X_LSN, NULL},
#undef ROUTE
};

void
route_defaults(struct ws_route *r)
{
	static const char *const names[WS_X_COUNT] = {"_version",   "_is_deleted", "_op", "_xid",
												  "_commit_ts", "_leaf",       "_lsn"};

	memset(r, 0, sizeof *r);
	r->drop_table = WS_DROP_KEEP;
	r->drop_column = WS_DROP_DROP;
	memcpy(r->extra, names, sizeof names);
}

static bool
template_ok(struct parser *p, const char *s)
{
	for (; *s; s++) {
		if (*s == '}') {
			problem(p, "} without { in a name template");
			return false;
		}
		if (*s != '{')
			continue;
		size_t n = strcspn(s, "}") + 1;

		if (strncmp(s, "{database}", n) && strncmp(s, "{schema}", n) && strncmp(s, "{table}", n)) {
			problem(p, "unknown word in a name template: only {database}, {schema} and {table}");
			return false;
		}
		s += n - 1;
	}
	return true;
}

static void
set_choice(struct parser *p, struct rule *x, const struct opt *o, const char *value)
{
	struct ws_buf words = {0};

	for (const struct choice *c = o->choices; c->word; c++) {
		if (!strcmp(c->word, value)) {
			int *at = (int *)((char *)x + o->at); /* every enum here is an int */

			*at = c->value;
			ws_buf_free(&words);
			return;
		}
		ws_buf_printf(&words, "%s%s", c == o->choices ? "" : ", ", c->word);
	}
	problem(p, "%s=%s: not one of %s", o->word, value, ws_buf_cstr(&words));
	ws_buf_free(&words);
}

static void
set_option(struct parser *p, struct rule *x, const char *word, char *value)
{
	for (size_t i = 0; i < sizeof opts / sizeof opts[0]; i++) {
		const struct opt *o = &opts[i];

		if (strcmp(o->word, word))
			continue;
		if (!*value) {
			problem(p, "%s= has no value", word);
		} else if (o->kind == OPT_CHOICE) {
			set_choice(p, x, o, value);
		} else if (o->kind == OPT_EXTRA) {
			x->route.extra[o->at] = strcmp(value, "none") ? value : NULL;
		} else if (o->kind == OPT_TEXT || template_ok(p, value)) {
			*(char **)((char *)x + o->at) = value;
		}
		return;
	}
	problem(p, "unknown option %s", word);
}

/* ---- what cannot be together ---- */

static void
check_rule(struct parser *p, const struct rule *x)
{
	const struct ws_route *r = &x->route;
	bool replacing = !r->engine || strstr(r->engine, "ReplacingMergeTree");

	if (!r->extra[WS_X_VERSION])
		problem(p, "version-column=none: without it nothing decides which row is newer");
	if (!r->extra[WS_X_DELETED] && (r->deletes == WS_DEL_TOMBSTONE || r->deletes == WS_DEL_SOFT))
		problem(p, "deleted-column=none needs deletes=discard or deletes=history");
	if (!r->extra[WS_X_OP] && r->deletes == WS_DEL_HISTORY)
		problem(p, "op-column=none: a history without it cannot tell deletes from inserts");
	if (r->deletes == WS_DEL_HISTORY && r->engine && replacing)
		problem(p, "deletes=history does not go with a replacing engine");
	if (r->deletes == WS_DEL_HISTORY && r->keyless == WS_KEYLESS_ALL)
		problem(p, "keyless=all does not go with deletes=history");
	if (r->partitions == WS_PART_ROOT && !r->extra[WS_X_LEAF])
		problem(p, "leaf-column=none does not go with partitions=root");
	if (r->partitions == WS_PART_ROOT && r->rename_table == WS_RENAME_NEW)
		problem(p, "rename-table=new does not go with partitions=root");
	for (int i = 0; i < WS_X_COUNT; i++)
		for (int j = 0; j < i; j++)
			if (r->extra[i] && r->extra[j] && !strcmp(r->extra[i], r->extra[j]))
				problem(p, "two extra columns have the name %s", r->extra[i]);
}

/* ---- rules ---- */

static bool
set_pattern(struct parser *p, struct pattern *pat, char *word, int dots)
{
	if (*word == '~') {
		int rc = regcomp(&pat->re, word + 1, REG_EXTENDED | REG_NOSUB);

		if (rc) {
			char text[200];

			regerror(rc, &pat->re, text, sizeof text);
			problem(p, "regular expression: %s", text);
			return false;
		}
		pat->regex = true;
		return true;
	}
	int n = 0;

	for (const char *s = word; *s; s++)
		n += *s == '.';
	if (n < dots && strcmp(word, "*")) {
		problem(p,
				dots == 1 ? "%s: a table is SCHEMA.TABLE" : "%s: a column is SCHEMA.TABLE.COLUMN",
				word);
		return false;
	}
	pat->text = word;
	return true;
}

static void
column_option(struct parser *p, struct rule *x, char *word)
{
	if (!strcmp(word, "exclude"))
		x->column.excluded = true;
	else if (!strncmp(word, "name=", 5) && word[5])
		x->column.name = word + 5;
	else if (!strncmp(word, "type=", 5) && word[5])
		x->column.type = word + 5;
	else
		problem(p, "a column takes exclude, name=NAME and type=TYPE, not %s", word);
}

static void
add_rule(struct parser *p, char **words, int n)
{
	static const struct choice kinds[] = {
		{"table", RULE_TABLE}, {"exclude", RULE_EXCLUDE}, {"column", RULE_COLUMN}};
	struct rule x = {0};
	size_t k;

	for (k = 0; k < 3 && strcmp(kinds[k].word, words[0]); k++)
		;
	if (k == 3) {
		problem(p, "a rule begins with table, exclude or column, not %s", words[0]);
		return;
	}
	x.kind = (enum rule_kind)kinds[k].value;
	if (n < 2) {
		problem(p, "%s names nothing", words[0]);
		return;
	}
	route_defaults(&x.route);
	x.route.line = p->line;
	if (!set_pattern(p, &x.pat, words[1], x.kind == RULE_COLUMN ? 2 : 1))
		return;
	for (int i = 2; i < n; i++) {
		char *eq = strchr(words[i], '=');

		if (x.kind == RULE_EXCLUDE) {
			problem(p, "exclude takes no options");
			break;
		} else if (x.kind == RULE_COLUMN) {
			column_option(p, &x, words[i]);
		} else if (!eq) {
			problem(p, "an option is NAME=VALUE, not %s", words[i]);
		} else {
			*eq = 0;
			set_option(p, &x, words[i], eq + 1);
		}
	}
	if (x.kind == RULE_COLUMN && n == 2)
		problem(p, "the column rule says nothing");
	if (x.kind == RULE_COLUMN && x.column.excluded && n > 3)
		problem(p, "exclude stands alone");
	if (x.kind == RULE_TABLE) {
		p->r->has_table = true;
		check_rule(p, &x);
	}
	if (p->r->n == p->r->cap) {
		p->r->cap = p->r->cap ? p->r->cap * 2 : 16;
		p->r->rules = ws_realloc(p->r->rules, p->r->cap * sizeof x);
	}
	p->r->rules[p->r->n++] = x;
}

struct ws_routes *
ws_routes_parse(const char *text, size_t n, const char *name, struct ws_buf *problems)
{
	struct parser p = {
		.r = ws_calloc(1, sizeof *p.r), .problems = problems, .name = name, .line = 1};
	size_t at = 0;

	for (; at < n; p.line++) {
		const char *nl = memchr(text + at, '\n', n - at);
		size_t len = nl ? (size_t)(nl - text) - at : n - at;
		char *words[MAX_WORDS];
		int nw = 0;

		if (memchr(text + at, 0, len))
			problem(&p, "a NUL byte");
		else
			nw = cut(&p, text + at, len, words);
		if (nw > 0)
			add_rule(&p, words, nw);
		at += len + 1;
	}
	if (p.bad) {
		ws_routes_free(p.r);
		return NULL;
	}
	return p.r;
}

struct ws_routes *
ws_routes_load(const char *path, struct ws_err *err)
{
	struct ws_buf text = {0}, problems = {0};
	struct ws_routes *r = NULL;
	int rc = path ? ws_file_read(path, WS_ROUTES_MAX_FILE, &text, err) : 1;

	if (rc == 0)
		ws_err_usage(err, "%s: no such file", path);
	if (rc != 1)
		goto out;
	r = ws_routes_parse(text.data ? (char *)text.data : "", text.len, path ? path : "", &problems);
	if (!r) {
		char *s = ws_buf_cstr(&problems);

		s[strcspn(s, "\n")] = 0;
		ws_err_usage(err, "%s", s);
	}
out:
	ws_buf_free(&text);
	ws_buf_free(&problems);
	return r;
}

void
ws_routes_free(struct ws_routes *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		if (r->rules[i].pat.regex)
			regfree(&r->rules[i].pat.re);
	free(r->rules);
	ws_arena_free(&r->arena);
	free(r);
}
