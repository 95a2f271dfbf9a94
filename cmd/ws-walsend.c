/* ws-walsend: serves a WAL directory to the shadow by the physical replication protocol. */
#include <stdlib.h>

#include "ws/mem.h"
#include "ws/tool.h"
#include "ws/walsend.h"

static struct {
	char *state, *dir, *socketdir, *port, *keepalive;
	int no_gate;
} opt;

static const struct poptOption options[] = {
	{"state", 0, POPT_ARG_STRING, &opt.state, 0, "state directory (default: $WALSHADOW_STATE)",
	 "DIR"},
	{"directory", 'D', POPT_ARG_STRING, &opt.dir, 0, "serve DIR instead of STATE/filtered", "DIR"},
	{"socket-directory", 'k', POPT_ARG_STRING, &opt.socketdir, 0,
	 "socket's directory instead of STATE/run", "DIR"},
	{"port", 'p', POPT_ARG_STRING, &opt.port, 0, "number in the socket's name (default: 5432)",
	 "PORT"},
	{"no-gate", 0, POPT_ARG_NONE, &opt.no_gate, 0,
	 "serve everything at once, whatever was captured", NULL},
	{"keepalive", 0, POPT_ARG_STRING, &opt.keepalive, 0, "time between keepalives (default: 10)",
	 "SECS"},
	POPT_TABLEEND};

static int
run(int argc, const char **argv, struct ws_err *err)
{
	/* Both directories named: nothing of the environment's state directory is served, nor its gate. */
	bool own = opt.dir && opt.socketdir;
	struct ws_walsend_opts o = {.state = own ? opt.state : ws_tool_state(opt.state),
								.port = 5432,
								.no_gate = opt.no_gate,
								.keepalive = 10};
	char *dir = NULL, *sock = NULL, *end;
	int rc;

	if (argc > 0) {
		ws_err_usage(err, "unexpected argument \"%s\"", argv[0]);
		return WS_EUSAGE;
	}
	if (opt.port) {
		unsigned long port = strtoul(opt.port, &end, 10);

		if (*opt.port < '0' || *opt.port > '9' || *end || port < 1 || port > 65535) {
			ws_err_usage(err, "--port: \"%s\" is not a port", opt.port);
			return WS_EUSAGE;
		}
		o.port = (int)port;
	}
	if (opt.keepalive &&
		(ws_parse_seconds(opt.keepalive, &o.keepalive) != 0 || o.keepalive < 0.01)) {
		ws_err_usage(err, "--keepalive: \"%s\" is not a time of at least 10ms", opt.keepalive);
		return WS_EUSAGE;
	}
	if (!o.state && (!opt.dir || !opt.socketdir)) {
		ws_err_usage(err, "--state, or both --directory and --socket-directory are needed");
		return WS_EUSAGE;
	}
	o.dir = dir = opt.dir ? ws_strdup(opt.dir) : ws_asprintf("%s/filtered", o.state);
	o.socketdir = sock = opt.socketdir ? ws_strdup(opt.socketdir) : ws_asprintf("%s/run", o.state);
	rc = ws_walsend_run(&o, err);
	free(dir);
	free(sock);
	return rc;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {"ws-walsend", "[OPTION...]", options, run};

	return ws_tool_main(&tool, argc, argv);
}
