/* Errors of the world and of input: what failed, with its place, and what that means for whoever
 * started the tool.  A bug aborts, a lack of memory exits; neither comes here. */
#ifndef WS_ERR_H
#define WS_ERR_H

#include <stdarg.h>
#include "ws/types.h"

/* The classes are the exit statuses of every tool. */
enum ws_status {
	WS_OK = 0,
	WS_ETEMP = 1,     /* a restart may help */
	WS_EUSAGE = 2,    /* usage or configuration */
	WS_EOPERATOR = 3, /* an operator is needed; reason is set */
	WS_EEND = 4       /* the server ended the stream in order */
};

struct ws_err {
	enum ws_status status;
	int sys;         /* errno at the failure, 0 when none */
	char reason[40]; /* token for reason=, "" when none */
	char msg[1024];  /* complete sentence with its place, no newline */
};

/* Each sets *err (which may be NULL) and returns -1, so that `return ws_err_temp(err, ...)` reads
 * well.  ws_err_sys appends ": strerror(errno)" and is temporary; ws_err_op wants a reason token. */
int ws_err_temp(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_sys(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_usage(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_op(struct ws_err *err, const char *reason, const char *fmt, ...) WS_PRINTF(3, 4);
int ws_err_end(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);

/* Puts "prefix: " before the message, keeps the rest; returns -1. */
int ws_err_prefix(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);

#endif
