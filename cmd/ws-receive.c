/* ws-receive: a server's WAL into a WAL directory.  Options as pg_receivewal's where they mean the
 * same; the work is lib/pg/receive.c's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/receive.h"
#include "ws/tool.h"

static struct {
	char *state, *dir, *output, *conninfo, *host, *port, *user, *slot, *endpos, *startpos, *status,
		*confirm, *raw_limit, *sync_interval, *hold_back, *restore;
	int no_password, password, create, drop, if_not_exists, no_loop, synchronous, no_sync;
} opt;

static const struct poptOption options[] = {
	{"state", 0, POPT_ARG_STRING, &opt.state, 0, "state directory (default: $WALSHADOW_STATE)",
	 "DIR"},
	{"directory", 'D', POPT_ARG_STRING, &opt.dir, 0, "write WAL into DIR instead of STATE/raw",
	 "DIR"},
	{"output", 'o', POPT_ARG_STRING, &opt.output, 0,
	 "-: write a framed WAL stream to standard output", "-"},
	{"dbname", 'd', POPT_ARG_STRING, &opt.conninfo, 0, "connection string", "CONNSTR"},
	{"host", 'h', POPT_ARG_STRING, &opt.host, 0, "server host or socket directory", "HOST"},
	{"port", 'p', POPT_ARG_STRING, &opt.port, 0, "server port", "PORT"},
	{"username", 'U', POPT_ARG_STRING, &opt.user, 0, "user to connect as", "NAME"},
	{"no-password", 'w', POPT_ARG_NONE, &opt.no_password, 0, "never ask for a password", NULL},
	{"password", 'W', POPT_ARG_NONE, &opt.password, 0, "ask for a password before connecting",
	 NULL},
	{"slot", 'S', POPT_ARG_STRING, &opt.slot, 0, "replication slot to use", "SLOT"},
	{"create-slot", 0, POPT_ARG_NONE, &opt.create, 0, "create the slot, reserving WAL, and exit",
	 NULL},
	{"drop-slot", 0, POPT_ARG_NONE, &opt.drop, 0, "drop the slot and exit", NULL},
	{"if-not-exists", 0, POPT_ARG_NONE, &opt.if_not_exists, 0,
	 "with --create-slot: one that exists is no error", NULL},
	{"endpos", 'E', POPT_ARG_STRING, &opt.endpos, 0, "exit when everything below LSN is received",
	 "LSN"},
	{"startpos", 'I', POPT_ARG_STRING, &opt.startpos, 0, "with -o -: start in the segment of LSN",
	 "LSN"},
	{"no-loop", 'n', POPT_ARG_NONE, &opt.no_loop, 0,
	 "do not connect again when the connection is lost", NULL},
	{"status-interval", 's', POPT_ARG_STRING, &opt.status, 0,
	 "time between status messages (default: 10)", "SECS"},
	{"synchronous", 0, POPT_ARG_NONE, &opt.synchronous, 0, "fsync and answer after every write",
	 NULL},
	{"no-sync", 0, POPT_ARG_NONE, &opt.no_sync, 0,
	 "never fsync (for tests: a crash of the machine loses WAL)", NULL},
	{"sync-interval", 0, POPT_ARG_STRING, &opt.sync_interval, 0,
	 "least time between fsyncs (default: 10ms)", "SECS"},
	{"confirm", 0, POPT_ARG_STRING, &opt.confirm, 0,
	 "confirm the slot at received (default) or floor", "WHAT"},
	{"restore-command", 0, POPT_ARG_STRING, &opt.restore, 0,
	 "take WAL that the server has no longer from an archive, as PostgreSQL's restore_command",
	 "COMMAND"},
	{"raw-limit", 0, POPT_ARG_STRING, &opt.raw_limit, 0,
	 "disconnect while consumers have not read SIZE of WAL", "SIZE"},
	{"hold-back", 0, POPT_ARG_STRING, &opt.hold_back, 0,
	 "keep in pos/ what these standbys have flushed, for ws-decode --hold-back", "NAMES"},
	POPT_TABLEEND};

static struct ws_hold hold;

/* Numbers and words; what they need of each other. */
static int
parse_options(struct ws_receive_opts *o, struct ws_err *err)
{
	o->status_interval = 10;
	o->sync_interval = 0.01;
	if (opt.endpos && ws_lsn_parse(opt.endpos, &o->endpos) != 0)
		return ws_err_usage(err, "--endpos: \"%s\" is not an LSN", opt.endpos);
	if (opt.startpos && ws_lsn_parse(opt.startpos, &o->startpos) != 0)
		return ws_err_usage(err, "--startpos: \"%s\" is not an LSN", opt.startpos);
	if (opt.status && ws_parse_seconds(opt.status, &o->status_interval) != 0)
		return ws_err_usage(err, "--status-interval: \"%s\" is not a time", opt.status);
	if (opt.sync_interval &&
		(ws_parse_seconds(opt.sync_interval, &o->sync_interval) != 0 || o->sync_interval > 3600))
		return ws_err_usage(err, "--sync-interval: \"%s\" is not a time of at most an hour",
							opt.sync_interval);
	if (opt.raw_limit && (ws_parse_size(opt.raw_limit, &o->raw_limit) != 0 || o->raw_limit == 0))
		return ws_err_usage(err, "--raw-limit: \"%s\" is not a size", opt.raw_limit);
	if (opt.confirm && strcmp(opt.confirm, "received") && strcmp(opt.confirm, "floor"))
		return ws_err_usage(err, "--confirm: \"%s\" is neither received nor floor", opt.confirm);
	if (opt.output && strcmp(opt.output, "-"))
		return ws_err_usage(err, "--output: only - is known; --directory writes files");
	if (opt.output && opt.dir)
		return ws_err_usage(err, "--output and --directory exclude each other");
	if (opt.startpos && !opt.output)
		return ws_err_usage(err, "--startpos needs --output -");
	if ((opt.create || opt.drop) && !opt.slot)
		return ws_err_usage(err, "%s needs --slot", opt.create ? "--create-slot" : "--drop-slot");
	if (opt.create && opt.drop)
		return ws_err_usage(err, "--create-slot and --drop-slot exclude each other");
	if (opt.if_not_exists && !opt.create)
		return ws_err_usage(err, "--if-not-exists needs --create-slot");
	if (opt.synchronous && opt.no_sync)
		return ws_err_usage(err, "--synchronous and --no-sync exclude each other");
	if (opt.password && opt.no_password)
		return ws_err_usage(err, "--password and --no-password exclude each other");
	if (opt.hold_back && (!o->state || opt.dir || opt.output))
		return ws_err_usage(err, "--hold-back needs --state, and neither --directory nor --output");
	if (opt.hold_back && ws_hold_parse("--hold-back", opt.hold_back, &hold, err) != 0)
		return -1;
	o->hold = opt.hold_back ? &hold : NULL;
	if (opt.restore && ws_receive_restore_command_check(opt.restore, err) != 0)
		return -1;
	if (opt.restore && opt.output)
		return ws_err_usage(err, "--restore-command needs a directory, not --output");
	o->confirm_floor = opt.confirm && !strcmp(opt.confirm, "floor");
	if (!o->state && (o->confirm_floor || opt.raw_limit))
		return ws_err_usage(err, "%s needs --state",
							o->confirm_floor ? "--confirm floor" : "--raw-limit");
	return 0;
}

static int
slot_command(struct ws_pg_opts *c, struct ws_err *err)
{
	struct ws_pg_source src;
	struct ws_pg *pg = ws_pg_open_asking(c, opt.password, opt.no_password, err);
	int rc = -1;

	if (pg && ws_pg_identify(pg, &src, err) == 0)
		rc = opt.create ? ws_pg_slot_create(pg, opt.slot, opt.if_not_exists, err)
						: ws_pg_slot_drop(pg, opt.slot, err);
	ws_pg_close(pg);
	return rc == 0 ? WS_OK : err->status;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	/* The environment's state directory is not meant where the output has a place of its own: its
	 * positions are of its raw/. */
	bool own = opt.dir || opt.output;
	struct ws_receive_opts o = {.state = own ? opt.state : ws_tool_state(opt.state),
								.slot = opt.slot,
								.restore_command = opt.restore && *opt.restore ? opt.restore : NULL,
								.synchronous = opt.synchronous,
								.no_sync = opt.no_sync,
								.no_loop = opt.no_loop};
	struct ws_pg_opts *c = &o.conn;
	char *dir = NULL;
	int rc;

	*c = (struct ws_pg_opts){.mode = WS_PG_PHYSICAL,
							 .conninfo = opt.conninfo,
							 .host = opt.host,
							 .port = opt.port,
							 .user = opt.user,
							 .appname = "ws-receive"};
	if (argc > 0) {
		ws_err_usage(err, "unexpected argument \"%s\"", argv[0]);
		return WS_EUSAGE;
	}
	if (parse_options(&o, err) != 0)
		return err->status;
	if (opt.create || opt.drop)
		return slot_command(c, err);
	if (!o.state && !opt.dir && !opt.output) {
		ws_err_usage(err, "--state, --directory or --output - is needed");
		return WS_EUSAGE;
	}
	if (opt.password || (!opt.no_password && isatty(STDERR_FILENO))) {
		/* A terminal: find out now whether a password must be typed. */
		struct ws_pg *pg = ws_pg_open_asking(c, opt.password, opt.no_password, err);

		if (!pg && err->status == WS_EUSAGE)
			return err->status;
		ws_pg_close(pg);
		*err = (struct ws_err){0};
	}
	if (o.state && !opt.output) {
		char *pos = ws_asprintf("%s/pos", o.state);

		rc = ws_mkdir_p(pos, 0700, err);
		free(pos);
		if (rc != 0)
			return err->status;
	}
	if (!opt.output)
		o.dir = dir = opt.dir ? ws_strdup(opt.dir) : ws_asprintf("%s/raw", o.state);
	rc = ws_receive_run(&o, err);
	ws_hold_fini(&hold);
	free(dir);
	return rc;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {"ws-receive", "[OPTION...]", options, run};

	return ws_tool_main(&tool, argc, argv);
}
