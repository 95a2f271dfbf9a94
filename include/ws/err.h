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
 * well.  ws_err_op wants a reason token. */
int ws_err_temp(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
/* Appends ": strerror(errno)".  Temporary, but for what lasts until an operator changes it: reasons
 * permission_denied, read_only, bad_path.  ws_err_missing: the same where a path that is not there
 * does not come by itself (path_missing).  ws_err_arg: the path is an argument, so that all these are
 * errors of usage. */
int ws_err_sys(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_missing(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_arg(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_usage(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);
int ws_err_op(struct ws_err *err, const char *reason, const char *fmt, ...) WS_PRINTF(3, 4);
int ws_err_end(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);

/* Puts "prefix: " before the message, keeps the rest; returns -1. */
int ws_err_prefix(struct ws_err *err, const char *fmt, ...) WS_PRINTF(2, 3);

#endif
