/* Messages on stderr; see ws/log.h.  One write(2) a message, so that the lines of several
 * processes on one descriptor do not mix. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ws/log.h"

static const char *tool_name = "walshadow";
static enum ws_loglevel least_level = WS_LOG_INFO;
static bool as_json;

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void
ws_log_init(const char *tool, enum ws_loglevel least, bool json)
{
	tool_name = tool;
	least_level = least;
	as_json = json;
}

bool
ws_log_enabled(enum ws_loglevel level)
{
	return level >= least_level;
}

/* Appends s as a JSON string body; returns the new length. */
static size_t
json_escape(char *out, size_t n, size_t cap, const char *s)
{
	for (; *s && n + 8 < cap; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c < 0x20) {
			n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
		} else {
			out[n++] = (char)c;
		}
	}
	return n;
}

static void
emit(enum ws_loglevel level, const char *reason, const char *text)
{
	char line[4096];
	size_t n;

	if (as_json) {
		struct timespec ts;
		struct tm tm;

		clock_gettime(CLOCK_REALTIME, &ts);
		gmtime_r(&ts.tv_sec, &tm);
		n = strftime(line, sizeof line, "{\"time\":\"%Y-%m-%dT%H:%M:%S", &tm);
		n += (size_t)snprintf(line + n, sizeof line - n, ".%06ldZ\",\"tool\":\"%s\",\"level\":\"%s\",\"text\":\"",
		                      ts.tv_nsec / 1000, tool_name, level_names[level]);
		n = json_escape(line, n, sizeof line - 80, text);
		n += (size_t)snprintf(line + n, sizeof line - n, "\"");
		if (*reason)
			n += (size_t)snprintf(line + n, sizeof line - n, ",\"reason\":\"%s\"", reason);
		n += (size_t)snprintf(line + n, sizeof line - n, "}\n");
	} else {
		n = (size_t)snprintf(line, sizeof line, "%s: %s: %.3900s%s%s\n", tool_name, level_names[level],
		                     text, *reason ? " reason=" : "", reason);
	}
	if (n > sizeof line - 1)
		n = sizeof line - 1;
	ssize_t r = write(STDERR_FILENO, line, n);
	(void)r;
}

static void __attribute__((format(printf, 2, 0)))
vlog(enum ws_loglevel level, const char *fmt, va_list ap)
{
	char text[3900];

	if (level < least_level)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	emit(level, "", text);
}

#define LOGFN(name, level)                                                                         \
	void name(const char *fmt, ...)                                                                \
	{                                                                                              \
		va_list ap;                                                                                \
		va_start(ap, fmt);                                                                         \
		vlog(level, fmt, ap);                                                                      \
		va_end(ap);                                                                                \
	}

LOGFN(ws_debug, WS_LOG_DEBUG)
LOGFN(ws_info, WS_LOG_INFO)
LOGFN(ws_warn, WS_LOG_WARNING)
LOGFN(ws_error, WS_LOG_ERROR)

void
ws_log_err(const struct ws_err *err)
{
	emit(WS_LOG_ERROR, err->reason, err->msg);
}
