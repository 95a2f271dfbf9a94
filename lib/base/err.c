/* Errors as values; see ws/err.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ws/err.h"

static void __attribute__((format(printf, 5, 0)))
vset(struct ws_err *err, enum ws_status status, int sys, const char *reason, const char *fmt, va_list ap)
{
	char msg[sizeof err->msg];

	if (!err)
		return;
	/* Format first: the arguments may point into *err. */
	vsnprintf(msg, sizeof msg, fmt, ap);
	memcpy(err->msg, msg, sizeof msg);
	for (char *p = err->msg; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	err->status = status;
	err->sys = sys;
	snprintf(err->reason, sizeof err->reason, "%s", reason);
}

#define SET(status, sys, reason)                                                                   \
	do {                                                                                           \
		va_list ap;                                                                                \
		va_start(ap, fmt);                                                                         \
		vset(err, status, sys, reason, fmt, ap);                                                   \
		va_end(ap);                                                                                \
	} while (0)

int
ws_err_temp(struct ws_err *err, const char *fmt, ...)
{
	SET(WS_ETEMP, 0, "");
	return -1;
}

/* Of system errors, those that stay until somebody changes a path, its owner or its file system.  The
 * rest may pass: no space, no memory, an interrupted or failing device.  A path that is not there may
 * have been moved or may come (segments are renamed and pruned): only its owner knows. */
static const char *
lasting(int sys)
{
	switch (sys) {
	case EACCES:
	case EPERM:
		return "permission_denied";
	case EROFS:
		return "read_only";
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return "bad_path";
	default:
		return NULL;
	}
}

static void
append_sys(struct ws_err *err, int sys)
{
	size_t n;

	if (!err)
		return;
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof err->msg - n, ": %s", strerror(sys));
}

int
ws_err_sys(struct ws_err *err, const char *fmt, ...)
{
	int sys = errno;
	const char *reason = lasting(sys);

	SET(reason ? WS_EOPERATOR : WS_ETEMP, sys, reason ? reason : "");
	append_sys(err, sys);
	return -1;
}

int
ws_err_missing(struct ws_err *err, const char *fmt, ...)
{
	int sys = errno;
	const char *reason = sys == ENOENT ? "path_missing" : lasting(sys);

	SET(reason ? WS_EOPERATOR : WS_ETEMP, sys, reason ? reason : "");
	append_sys(err, sys);
	return -1;
}

int
ws_err_arg(struct ws_err *err, const char *fmt, ...)
{
	int sys = errno;

	SET(sys == ENOENT || lasting(sys) ? WS_EUSAGE : WS_ETEMP, sys, "");
	append_sys(err, sys);
	return -1;
}

int
ws_err_usage(struct ws_err *err, const char *fmt, ...)
{
	SET(WS_EUSAGE, 0, "");
	return -1;
}

int
ws_err_op(struct ws_err *err, const char *reason, const char *fmt, ...)
{
	SET(WS_EOPERATOR, 0, reason);
	return -1;
}

int
ws_err_end(struct ws_err *err, const char *fmt, ...)
{
	SET(WS_EEND, 0, "");
	return -1;
}

int
ws_err_prefix(struct ws_err *err, const char *fmt, ...)
{
	char pre[256], msg[sizeof err->msg];
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vsnprintf(pre, sizeof pre, fmt, ap);
	va_end(ap);
	memcpy(msg, err->msg, sizeof msg);
	snprintf(err->msg, sizeof err->msg, "%s: %.700s", pre, msg);
	return -1;
}
