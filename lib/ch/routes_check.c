/* Rules that send two tables to one destination; see ws/routes.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/ch/routes.h"

/* The one table that a rule is for; NULL when its pattern may match several. */
static char *
only_table(const struct rule *x)
{
	if (x->kind != RULE_TABLE || x->pat.regex || x->pat.text[strcspn(x->pat.text, "*?[\\")] ||
		!strchr(x->pat.text, '.'))
		return NULL;
	return ws_strdup(x->pat.text);
}

/* Where it goes, "DATABASE.TABLE" with the source's database as the template says it. */
static char *
destination(const struct ws_routes *r, char *table, struct ws_err *err)
{
	char *dot = strchr(table, '.'), *to = NULL;
	struct ws_route route;

	*dot = 0;
	if (ws_routes_resolve(r, "{database}", table, dot + 1, &route, err) == 1) {
		to = ws_asprintf("%s.%s", route.database, route.table);
		ws_route_fini(&route);
	}
	*dot = '.';
	return to;
}

void
ws_routes_conflicts(const struct ws_routes *r, const char *name, struct ws_buf *problems)
{
	char **tables = ws_calloc(r->n + 1, sizeof *tables), **to = ws_calloc(r->n + 1, sizeof *to);
	struct ws_err ignored;

	for (size_t i = 0; i < r->n; i++) {
		tables[i] = only_table(&r->rules[i]);
		to[i] = tables[i] ? destination(r, tables[i], &ignored) : NULL;
		for (size_t j = 0; j < i && to[i]; j++) {
			if (!to[j] || strcmp(to[i], to[j]) || !strcmp(tables[i], tables[j]))
				continue;
			ws_buf_printf(problems, "%s:%u: %s goes to %s, as %s does by line %u\n", name,
						  r->rules[i].route.line, tables[i], to[i], tables[j],
						  r->rules[j].route.line);
			break;
		}
	}
	for (size_t i = 0; i < r->n; i++) {
		free(tables[i]);
		free(to[i]);
	}
	free(tables);
	free(to);
}
