/* One change stream to several destinations: a ws-emit each, which advance together. */
#ifndef WS_TEE_H
#define WS_TEE_H

#include "ws/err.h"

struct ws_tee_opts {
	const char *state, *consumer;
	const char *dir;     /* a file a destination: its name, and options of ws-emit, a line each */
	const char *routes;  /* for those that name none; may be NULL */
	const char *metrics; /* file; .DESTINATION is appended; may be NULL */
	bool load, no_loop;
};

/* Copies fd to all of them until they are done.  0, or -1 with the worst of their ends. */
int ws_tee_run(const struct ws_tee_opts *o, int fd, struct ws_err *err);

/* What a destination's process finds in its environment: the consumer that it is of, a blank, and
 * the names of all destinations as consumers, with blanks between. */
#define WS_TEE_ENV "WALSHADOW_TEE"

#endif
