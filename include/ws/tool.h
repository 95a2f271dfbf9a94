/* The frame of every tool: common options (--help --version -v -q --log-format --metrics),
 * signals, SIGPIPE, exit status.  A tool is a table of popt options and a run function. */
#ifndef WS_TOOL_H
#define WS_TOOL_H

#include <popt.h>
#include "ws/err.h"
#include "ws/log.h"
#include "ws/metrics.h"

struct ws_tool {
	const char *name;                 /* "ws-filter" */
	const char *synopsis;             /* operands, for the usage line */
	const struct poptOption *options; /* the tool's own; NULL-terminated; may be NULL */
	/* Runs the tool with the operands left over by popt.  Returns an exit status; on an error it
	 * fills *err and returns err->status, and the frame prints it. */
	int (*run)(int argc, const char **argv, struct ws_err *err);
};

/* Parses, sets up, runs, reports; returns the exit status for main. */
int ws_tool_main(const struct ws_tool *tool, int argc, char **argv);

/* Set by SIGTERM and SIGINT (drain and end), and by SIGHUP (reload; take clears it).  The handlers
 * are installed without SA_RESTART, so that waits return EINTR. */
bool ws_tool_stopping(void);
bool ws_tool_take_hup(void);
/* A descriptor that becomes readable on any of these signals, for poll. */
int ws_tool_signal_fd(void);

/* The process's metrics (never NULL) as given by --metrics. */
struct ws_metrics *ws_tool_metrics(void);
/* True when stderr is a terminal and -q was not given: progress may be shown. */
bool ws_tool_progress(void);

/* The state directory: what --state says, else WALSHADOW_STATE (malloc'd), NULL when neither does. */
char *ws_tool_state(char *option);

/* What --format says: text, also when it was not given, or json.  -1: neither. */
int ws_tool_format(const char *format, bool *json, struct ws_err *err);

/* Sizes like 512, 64kB, 16MB, 1GB (powers of 1024). */
int ws_parse_size(const char *s, uint64_t *out);
/* Seconds with fraction, or with unit ms, s, min, h. */
int ws_parse_seconds(const char *s, double *out);

/* Monotonic and wall clock in microseconds. */
uint64_t ws_now_us(void);
uint64_t ws_wall_us(void);

#endif
