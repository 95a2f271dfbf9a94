/* The frame of every tool; see ws/tool.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ws/mem.h"
#include "ws/tool.h"

static volatile sig_atomic_t got_stop, got_hup, wants_hup;
static int signal_pipe[2] = {-1, -1};
static struct ws_metrics *metrics;
static bool quiet;

static void
on_signal(int sig)
{
	int e = errno;

	if (sig == SIGHUP)
		got_hup = 1;
	else
		got_stop = 1;
	/* A tool that never takes a HUP would find the pipe readable for ever. */
	if (sig != SIGHUP || wants_hup) {
		ssize_t r = write(signal_pipe[1], "", 1);
		(void)r;
	}
	errno = e;
}

bool
ws_tool_stopping(void)
{
	return got_stop;
}

bool
ws_tool_take_hup(void)
{
	char junk[64];

	wants_hup = 1;
	if (!got_hup)
		return false;
	got_hup = 0;
	/* The pipe stays readable while a stop is pending. */
	if (!got_stop)
		while (read(signal_pipe[0], junk, sizeof junk) > 0)
			;
	return true;
}

int
ws_tool_signal_fd(void)
{
	return signal_pipe[0];
}

struct ws_metrics *
ws_tool_metrics(void)
{
	return metrics;
}

bool
ws_tool_progress(void)
{
	return !quiet && isatty(STDERR_FILENO);
}

char *
ws_tool_state(char *option)
{
	const char *env = option ? NULL : getenv("WALSHADOW_STATE");

	return env ? ws_strdup(env) : option;
}

int
ws_tool_format(const char *format, bool *json, struct ws_err *err)
{
	*json = format && !strcmp(format, "json");
	if (*json || !format || !strcmp(format, "text"))
		return 0;
	return ws_err_usage(err, "--format is text or json, not \"%s\"", format);
}

uint64_t
ws_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
ws_wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int
ws_parse_size(const char *s, uint64_t *out)
{
	static const struct {
		const char *unit;
		int shift;
	} units[] = {{"", 0}, {"B", 0}, {"kB", 10}, {"MB", 20}, {"GB", 30}, {"TB", 40}};
	char *end;

	if (*s < '0' || *s > '9')
		return -1;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);

	if (errno)
		return -1;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (!strcmp(end, units[i].unit)) {
			if (v > UINT64_MAX >> units[i].shift)
				return -1;
			*out = v << units[i].shift;
			return 0;
		}
	return -1;
}

int
ws_parse_seconds(const char *s, double *out)
{
	char *end;

	if ((*s < '0' || *s > '9') && *s != '.')
		return -1;
	double v = strtod(s, &end);

	if (!strcmp(end, "ms"))
		v /= 1000;
	else if (!strcmp(end, "min"))
		v *= 60;
	else if (!strcmp(end, "h"))
		v *= 3600;
	else if (*end && strcmp(end, "s"))
		return -1;
	if (!(v >= 0 && v < 1e9))
		return -1;
	*out = v;
	return 0;
}

static void
catch_signals(void)
{
	struct sigaction sa = {0};

	if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
		perror("pipe");
		exit(WS_ETEMP);
	}
	sa.sa_handler = on_signal;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	/* A reader that went away is an error of write(2), reported as any other. */
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
}

int
ws_tool_main(const struct ws_tool *tool, int argc, char **argv)
{
	static const struct poptOption none[] = {POPT_TABLEEND};
	int verbose = 0, version = 0, silent = 0, rc;
	char *log_format = NULL, *metrics_path = NULL;
	struct ws_err err = {0};
	struct poptOption common[] = {
	    {"verbose", 'v', POPT_ARG_NONE, NULL, 'v', "say more (twice: debugging)", NULL},
	    {"quiet", 'q', POPT_ARG_NONE, &silent, 0, "only warnings and errors, no progress", NULL},
	    {"log-format", 0, POPT_ARG_STRING, &log_format, 0, "text or json", "FORMAT"},
	    {"metrics", 0, POPT_ARG_STRING, &metrics_path, 0, "write Prometheus text to FILE", "FILE"},
	    {"version", 'V', POPT_ARG_NONE, &version, 0, "print the version and exit", NULL},
	    POPT_TABLEEND};
	const struct poptOption table[] = {
	    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(tool->options ? tool->options : none), 0, "Options:", NULL},
	    {NULL, 0, POPT_ARG_INCLUDE_TABLE, common, 0, "Common options:", NULL},
	    POPT_AUTOHELP POPT_TABLEEND};

	ws_log_init(tool->name, WS_LOG_INFO, false);
	poptContext ctx = poptGetContext(tool->name, argc, (const char **)argv, table, 0);

	poptSetOtherOptionHelp(ctx, tool->synopsis);
	while ((rc = poptGetNextOpt(ctx)) > 0)
		if (rc == 'v')
			verbose++;
	if (rc < -1) {
		fprintf(stderr, "%s: error: %s: %s\n%s: try --help\n", tool->name,
		        poptBadOption(ctx, POPT_BADOPTION_NOALIAS), poptStrerror(rc), tool->name);
		rc = WS_EUSAGE;
		goto out;
	}
	if (version) {
		printf("%s (walshadow) %s\n", tool->name, WS_VERSION);
		rc = 0;
		goto out;
	}
	if (log_format && strcmp(log_format, "text") && strcmp(log_format, "json")) {
		fprintf(stderr, "%s: error: --log-format is text or json\n", tool->name);
		rc = WS_EUSAGE;
		goto out;
	}
	quiet = silent;
	ws_log_init(tool->name, verbose ? WS_LOG_DEBUG : silent ? WS_LOG_WARNING : WS_LOG_INFO,
	            log_format && !strcmp(log_format, "json"));
	catch_signals();
	metrics = ws_metrics_new(metrics_path);
	const char **args = poptGetArgs(ctx);
	int n = 0;

	while (args && args[n])
		n++;
	rc = tool->run(n, args, &err);
	if (rc != WS_OK && err.msg[0])
		ws_log_err(&err);
	if (rc != WS_OK && rc != WS_EEND && !err.msg[0] && rc < 0)
		rc = WS_ETEMP;
	if (ws_metrics_write(metrics, 0, &err) != 0)
		ws_log_err(&err);
	ws_metrics_free(metrics);
	metrics = NULL;
out:
	poptFreeContext(ctx);
	free(log_format);
	free(metrics_path);
	return rc;
}
