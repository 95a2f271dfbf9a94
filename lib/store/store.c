/* Which store a URL means; see store.h. */
#include <stdlib.h>
#include <string.h>

#include "store.h"
#include "ws/tool.h"

bool
store_interrupted(struct ws_err *err)
{
	if (!ws_tool_stopping())
		return false;
	ws_err_temp(err, "interrupted by a signal");
	return true;
}

struct store *
store_open(const struct ws_archive_opts *o, struct ws_err *err)
{
	const char *url = o->store, *colon = strstr(url, "://");

	if (!strncmp(url, "file://", 7)) {
		if (url[7] != '/') {
			ws_err_usage(err, "%s: a file:// URL has a whole path, file:///PATH", url);
			return NULL;
		}
		return dir_open(url + 7, err);
	}
	if (!colon || memchr(url, '/', (size_t)(colon - url)))
		return dir_open(url, err);
	if (!strncmp(url, "http://", 7) || !strncmp(url, "https://", 8))
		return http_open(o, err);
	if (!strncmp(url, "s3://", 5))
		return s3_open(o, err);
	ws_err_usage(err, "%s: not a directory, file://, http://, https:// or s3://", url);
	return NULL;
}

void
store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}
