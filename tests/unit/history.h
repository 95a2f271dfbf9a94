/* A timeline history from its file's text, which must be well formed. */
#ifndef HISTORY_H
#define HISTORY_H

#include <string.h>

#include "ws/history.h"

static struct ws_history
history(ws_tli tli, const char *text)
{
	struct ws_history h;

	assert_int_equal(ws_history_parse(tli, text, strlen(text), &h, NULL), 0);
	return h;
}

#endif
