/* Fuzz target: the routes file, and the rule that comes out for a table and a column. */
#include <string.h>

#include "ws/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ws_buf problems = {0};
	struct ws_routes *r;
	struct ws_route route;
	struct ws_route_column column;
	struct ws_err err;

	/* regcomp(3) itself takes any memory for nested repetitions. */
	if (memchr(data, '~', size) && memchr(data, '{', size))
		return 0;
	r = ws_routes_parse((const char *)data, size, "fuzz", &problems);
	if (r) {
		if (ws_routes_resolve(r, "db", "public", "t", &route, &err) == 1)
			ws_route_fini(&route);
		ws_routes_column(r, "public", "t", "c", &column);
	}
	ws_routes_free(r);
	ws_buf_free(&problems);
	return 0;
}
