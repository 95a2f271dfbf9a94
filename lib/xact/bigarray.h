/* A growing array that moves into an unlinked file when it is large, so that what a transaction of
 * any size needs to remember costs page cache, not memory of the process.  Private to lib/xact. */
#ifndef WS_BIGARRAY_H
#define WS_BIGARRAY_H

#include "ws/err.h"

#define WS_BIGARRAY_AT (4u * 1024 * 1024)

struct ws_bigarray {
	void *p;
	size_t bytes;
	int fd;      /* of the file, when mapped */
	bool mapped; /* else p is from malloc */
};

/* Grows to so many bytes; what was there stays, new bytes are zero.  dir: where the file is made
 * (NULL: TMPDIR or /tmp).  A full disk is an error here, never a signal later. */
int ws_bigarray_grow(struct ws_bigarray *s, size_t bytes, const char *dir, struct ws_err *err);
void ws_bigarray_free(struct ws_bigarray *s);

#endif
