/* Which rule applies to a table or column, and the names that come out; see ws/routes.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/routes.h"

static const char *const default_database = "{database}";
static const char *const default_name = "{schema}_{table}";

static bool
in_class(const char **pat, char c)
{
	const char *p = *pat;
	bool not_ = *p == '!' || *p == '^', hit = false;

	if (not_)
		p++;
	do {
		char lo = *p == '\\' && p[1] ? *++p : *p;
		char hi = lo;

		p++;
		if (*p == '-' && p[1] && p[1] != ']') {
			hi = p[1];
			p += 2;
		}
		hit |= (unsigned char)c >= (unsigned char)lo && (unsigned char)c <= (unsigned char)hi;
	} while (*p && *p != ']');
	*pat = *p ? p + 1 : p;
	return hit != not_;
}

/* Linear in the common case: only the last star is tried again. */
bool
route_glob(const char *p, const char *s)
{
	const char *star = NULL, *from = NULL;

	for (;;) {
		if (*p == '*') {
			star = ++p;
			from = s;
			continue;
		}
		const char *q = p;
		bool hit = false;

		if (*s == 0) {
			if (*p == 0)
				return true;
		} else if (*p == '[' && p[1]) {
			q = p + 1;
			hit = in_class(&q, *s);
		} else if (*p == '?') {
			q = p + 1;
			hit = true;
		} else if (*p) {
			q = *p == '\\' && p[1] ? p + 1 : p;
			hit = *q == *s;
			q++;
		}
		if (hit) {
			p = q;
			s++;
		} else if (star && *from) {
			p = star;
			s = ++from;
		} else {
			return false;
		}
	}
}

static bool
matches(const struct pattern *p, const char *s)
{
	return p->regex ? regexec(&p->re, s, 0, NULL, 0) == 0 : route_glob(p->text, s);
}

/* Fills in a template; the parser has checked its words. */
static char *
fill(const char *tmpl, const char *db, const char *nsp, const char *name)
{
	struct ws_buf b = {0};

	while (*tmpl) {
		if (!strncmp(tmpl, "{database}", 10)) {
			ws_buf_puts(&b, db);
			tmpl += 10;
		} else if (!strncmp(tmpl, "{schema}", 8)) {
			ws_buf_puts(&b, nsp);
			tmpl += 8;
		} else if (!strncmp(tmpl, "{table}", 7)) {
			ws_buf_puts(&b, name);
			tmpl += 7;
		} else {
			ws_buf_putc(&b, (uint8_t)*tmpl++);
		}
	}
	return ws_buf_cstr(&b);
}

int
ws_routes_resolve(const struct ws_routes *r, const char *dbname, const char *nspname,
				  const char *name, struct ws_route *out, struct ws_err *err)
{
	char *full = ws_asprintf("%s.%s", nspname, name);
	const struct rule *hit = NULL;
	bool excluded = false;

	for (size_t i = 0; i < r->n && !excluded; i++) {
		const struct rule *x = &r->rules[i];

		if (x->kind == RULE_EXCLUDE)
			excluded = matches(&x->pat, full);
		else if (x->kind == RULE_TABLE && !hit && matches(&x->pat, full))
			hit = x;
	}
	free(full);
	if (excluded || (!hit && r->has_table))
		return 0;
	if (hit)
		*out = hit->route;
	else
		route_defaults(out);
	out->database =
		fill(hit && hit->database ? hit->database : default_database, dbname, nspname, name);
	out->table = fill(hit && hit->name ? hit->name : default_name, dbname, nspname, name);
	size_t nd = strlen(out->database), nt = strlen(out->table);

	/* The server keeps a table as a file name in which most signs take three bytes; it refuses long
	 * ones itself, with an error of its own. */
	if (nd == 0 || nt == 0 || nd > WS_ROUTES_MAX_NAME || nt > WS_ROUTES_MAX_NAME) {
		ws_err_op(err, "route_name", "line %u: table %s.%s: destination name is empty or too long",
				  out->line, nspname, name);
		ws_route_fini(out);
		return -1;
	}
	return 1;
}

static bool
excluded(const struct ws_routes *r, const char *nspname, const char *name)
{
	char *full = ws_asprintf("%s.%s", nspname, name);
	bool hit = false;

	for (size_t i = 0; i < r->n && !hit; i++)
		hit = r->rules[i].kind == RULE_EXCLUDE && matches(&r->rules[i].pat, full);
	free(full);
	return hit;
}

int
ws_routes_resolve_leaf(const struct ws_routes *r, const char *dbname, const char *nspname,
					   const char *name, const char *root_nspname, const char *root_name,
					   struct ws_route *out, bool *shared, struct ws_err *err)
{
	*shared = false;
	if (root_name && *root_name && !excluded(r, nspname, name)) {
		int rc = ws_routes_resolve(r, dbname, root_nspname, root_name, out, err);

		if (rc < 0 || (rc == 1 && out->partitions == WS_PART_ROOT)) {
			*shared = rc == 1;
			return rc;
		}
		if (rc == 1)
			ws_route_fini(out);
	}
	return ws_routes_resolve(r, dbname, nspname, name, out, err);
}

void
ws_route_fini(struct ws_route *r)
{
	free(r->database);
	free(r->table);
	r->database = r->table = NULL;
}

void
ws_routes_column(const struct ws_routes *r, const char *nspname, const char *name,
				 const char *column, struct ws_route_column *out)
{
	char *full = ws_asprintf("%s.%s.%s", nspname, name, column);

	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < r->n; i++)
		if (r->rules[i].kind == RULE_COLUMN && matches(&r->rules[i].pat, full)) {
			*out = r->rules[i].column;
			break;
		}
	free(full);
}
