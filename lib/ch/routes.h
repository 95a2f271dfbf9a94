/* The parsed form of ws-routes(5), shared by the parser and the matcher. */
#ifndef LIB_CH_ROUTES_H
#define LIB_CH_ROUTES_H

#include <regex.h>

#include "ws/routes.h"

enum rule_kind { RULE_TABLE, RULE_EXCLUDE, RULE_COLUMN };

struct pattern {
	bool regex;
	char *text; /* glob, or NULL for a regular expression */
	regex_t re;
};

struct rule {
	enum rule_kind kind;
	struct pattern pat;
	char *database, *name; /* templates */
	struct ws_route route;
	struct ws_route_column column;
};

struct ws_routes {
	struct ws_arena arena;
	struct rule *rules;
	size_t n, cap;
	bool has_table; /* some table rule: what none matches is left out */
};

/* A glob over the whole of s: * any run, ? one character, [a-z] one of, backslash takes the next
 * as it is. */
bool route_glob(const char *pat, const char *s);

void route_defaults(struct ws_route *r);

#endif
