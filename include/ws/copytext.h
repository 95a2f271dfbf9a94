/* Rows of COPY ... TO STDOUT in text format (commands/copyto.c: CopyAttributeOutText). */
#ifndef WS_COPYTEXT_H
#define WS_COPYTEXT_H

#include "ws/types.h"

struct ws_copyfield {
	const char *p; /* not NUL-terminated */
	size_t len;
	bool null;
};

/* Takes a row of n bytes, with or without its newline, apart in place.  -1 when it does not have
 * exactly nfields fields or holds an escape that COPY does not write.  Zero columns: an empty row. */
int ws_copytext_split(char *row, size_t n, struct ws_copyfield *fields, size_t nfields);

#endif
