/* Where frames go: a descriptor, as they are or as JSON.  Private to lib/xact. */
#ifndef WS_SINK_H
#define WS_SINK_H

#include "ws/change.h"

struct ws_sink {
	int fd;
	int flags; /* of fd before */
	struct ws_change_reader *json; /* NULL: binary */
	struct ws_buf text;
	uint64_t bytes;
	uint64_t blocked_us; /* time spent waiting for the reader of fd */
	uint64_t stop_us;    /* when the tool was first seen to be stopping */
};

void ws_sink_init(struct ws_sink *s, int fd, bool json);
/* Writes all of b and empties it.  A reader that takes nothing for ten seconds after the tool was
 * told to stop is an error, so that stopping always ends. */
int ws_sink_write(struct ws_sink *s, struct ws_buf *b, struct ws_err *err);
void ws_sink_fini(struct ws_sink *s);

#endif
