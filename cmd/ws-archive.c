/* ws-archive: WAL archives as archive_command and restore_command, what they hold, whether they are
 * whole; and prune, what becomes of WAL that was read. */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/archive.h"
#include "ws/cluster.h"
#include "ws/gate.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/prune.h"
#include "ws/tool.h"

/* PostgreSQL takes 1 to 125 of restore_command for "not there", which can end a recovery, and 126
 * and above for a failure that stops it; 128 + SIGTERM for being shut down
 * (xlogarchive.c, RestoreArchivedFile). */
enum {
	GET_ABSENT = 1,
	GET_USAGE = 126,
	GET_TERM = 128 + 15,
	GET_UNREACHABLE = 253,
	GET_DAMAGED = 254
};

static struct {
	char *state, *store, *layout, *stanza, *archive_id, *compress, *format, *gate, *prefetch,
		*spool, *from, *timeline;
	char *endpoint, *region, *credentials, *profile, *cacert, *netrc;
	char *connect_timeout, *timeout, *retry;
	int dry_run, no_records, virtual_host;
} opt = {.layout = NULL};

#define STRING(name, to, help, arg)                                                                \
	{                                                                                              \
		name, 0, POPT_ARG_STRING, &opt.to, 0, help, arg                                            \
	}
#define FLAG(name, to, help)                                                                       \
	{                                                                                              \
		name, 0, POPT_ARG_NONE, &opt.to, 0, help, NULL                                             \
	}

static struct ws_archive_opts archive;

static const struct poptOption options[] = {
	STRING("store", store, "archive: directory, file://, http[s]:// or s3://BUCKET/PREFIX", "URL"),
	STRING("layout", layout, "auto, plain, wal-g or pgbackrest (default: auto)", "LAYOUT"),
	STRING("stanza", stanza, "pgBackRest's stanza (default: the only one)", "NAME"),
	STRING("archive-id", archive_id, "pgBackRest's archive, as 17-1 (default: the only one)", "ID"),
	STRING("endpoint", endpoint, "s3: http[s]://HOST[:PORT] (default: Amazon's)", "URL"),
	STRING("region", region, "s3: region (default: $AWS_REGION, us-east-1)", "REGION"),
	STRING("credentials", credentials, "s3: file with keys (default: the environment)", "FILE"),
	STRING("profile", profile, "s3: profile in it (default: $AWS_PROFILE, default)", "NAME"),
	FLAG("virtual-host", virtual_host,
		 "s3: with --endpoint, the bucket is part of the host's name"),
	STRING("netrc", netrc, "http: file with user and password", "FILE"),
	STRING("cacert", cacert, "https: authorities to trust instead of the system's", "FILE"),
	STRING("connect-timeout", connect_timeout, "time to connect (default: 10s)", "TIME"),
	STRING("timeout", timeout, "time without a byte (default: 30s)", "TIME"),
	STRING("retry", retry, "time to wait for an outage to end (default: 60s)", "TIME"),
	STRING("compress", compress, "push: none, gz, lz4 or zst, with :LEVEL (default: none)", "HOW"),
	STRING("gate", gate, "get: only WAL below the gate of this state directory", "STATE"),
	STRING("prefetch", prefetch, "get: fetch so many segments ahead into the spool", "N"),
	STRING("spool", spool, "get: folder for them", "DIR"),
	FLAG("no-verify", no_records, "get: do not look through a segment's records"),
	STRING("timeline", timeline, "check: up to this timeline (default: the newest)", "TLI"),
	STRING("from", from, "check: from this LSN or segment on (default: the oldest)", "START"),
	{"format", 'F', POPT_ARG_STRING, &opt.format, 0, "list, check: text or json", "FORMAT"},
	STRING("state", state, "prune: state directory (default: $WALSHADOW_STATE)", "DIR"),
	FLAG("dry-run", dry_run, "prune: print what would be removed, remove nothing"),
	POPT_TABLEEND};

static int
seconds(const char *text, const char *option, double fallback, double *out, struct ws_err *err)
{
	*out = fallback;
	return !text || ws_parse_seconds(text, out) == 0
			   ? 0
			   : ws_err_usage(err, "--%s: \"%s\" is no duration", option, text);
}

static int
archive_options(struct ws_archive_opts *o, struct ws_err *err)
{
	*o = (struct ws_archive_opts){.store = opt.store,
								  .stanza = opt.stanza,
								  .archive_id = opt.archive_id,
								  .endpoint = opt.endpoint,
								  .region = opt.region,
								  .credentials = opt.credentials,
								  .profile = opt.profile,
								  .virtual_host = opt.virtual_host,
								  .cacert = opt.cacert,
								  .netrc = opt.netrc};
	if (!opt.store)
		return ws_err_usage(err, "--store is needed");
	if (opt.layout && ws_arclayout_parse(opt.layout, &o->layout) != 0)
		return ws_err_usage(err, "--layout is auto, plain, wal-g or pgbackrest, not \"%s\"",
							opt.layout);
	return seconds(opt.connect_timeout, "connect-timeout", 10, &o->connect_timeout, err) == 0 &&
				   seconds(opt.timeout, "timeout", 30, &o->timeout, err) == 0 &&
				   seconds(opt.retry, "retry", 60, &o->retry, err) == 0
			   ? 0
			   : -1;
}

/* ---- push, get ---- */

static int
compression(struct ws_arcpush_opts *o, struct ws_err *err)
{
	char *how = ws_strdup(opt.compress ? opt.compress : "none"), *level = strchr(how, ':'), *end;
	int min, max, rc = 0;

	if (level)
		*level++ = 0;
	if (ws_comp_parse(how, &o->comp) != 0) {
		rc = ws_err_usage(err, "--compress is none, gz, lz4 or zst, not \"%s\"", how);
	} else if (level) {
		long v = strtol(level, &end, 10);

		ws_arcpush_levels(o->comp, &min, &max);
		if (!*level || *end || v < min || v > max)
			rc = ws_err_usage(err, "--compress: the levels of %s are %d to %d, not \"%s\"", how,
							  min, max, level);
		o->level = (int)v;
	}
	free(how);
	return rc;
}

static int
push(struct ws_archive *a, int n, const char **args, struct ws_err *err)
{
	struct ws_arcpush_opts o = {0};
	enum ws_arcpush how;
	uint64_t bytes;

	if (compression(&o, err) != 0)
		return -1;
	char *dup = ws_strdup(args[0]);
	const char *name = n > 1 ? args[1] : basename(dup);
	int rc = ws_archive_push(a, args[0], name, &o, &how, &bytes, err);

	if (rc == 0) {
		const char *result = how == WS_PUSH_SAME ? "result=\"there\"" : "result=\"stored\"";

		*ws_metric(ws_tool_metrics(), WS_COUNTER, "walshadow_archive_pushed_total", result,
				   "Files pushed.") = 1;
		ws_debug("%s: %s bytes=%" PRIu64, name,
				 how == WS_PUSH_SAME ? "there already, with the same content" : "stored", bytes);
	}
	free(dup);
	return rc;
}

/* May it be served?  1, 0 not yet, -1. */
static int
below_gate(struct ws_archive *a, const char *name, uint64_t *system_id, struct ws_err *err)
{
	struct ws_cluster c;
	struct ws_arcname n;
	ws_lsn limit = 0;
	uint64_t segno;
	int rc = ws_cluster_read(opt.gate, &c, err);

	if (rc == 0)
		return ws_err_usage(err, "--gate: %s is no state directory", opt.gate);
	if (rc < 0 || ws_arcname_parse(name, &n) != 0)
		return rc < 0 ? -1 : ws_err_usage(err, "%s: not a name that an archive has", name);
	*system_id = c.system_id;
	/* A label holds no WAL; recovery never asks for a partial segment. */
	if (n.kind == WS_ARC_BACKUP || n.kind == WS_ARC_PARTIAL)
		return n.kind == WS_ARC_BACKUP;
	if (n.kind == WS_ARC_HISTORY) {
		struct ws_history h;

		/* Who knows of a switch goes for what is behind it. */
		if ((rc = ws_archive_history(a, n.tli, &h, err)) != 1)
			return rc;
		rc = ws_gate_history(opt.gate, &h, &limit, err);
		ws_history_fini(&h);
	} else if (ws_arcname_segno(&n, c.segsize, &segno) != 0) {
		return ws_err_usage(err, "%s: not a segment of %u bytes", name, c.segsize);
	} else {
		rc = ws_gate_segment(opt.gate, c.segsize, n.tli, segno * c.segsize, &limit, err);
	}
	if (rc == 0 && limit)
		ws_info("%s: not served, the gate stands at " WS_LSN_FMT, name, WS_LSN_ARG(limit));
	else if (rc == 0)
		ws_info("%s: not served, not on the branch that raw/ follows", name);
	return rc;
}

static int
spool_options(struct ws_arcspool *s, struct ws_err *err)
{
	char *end;

	if (!opt.prefetch && !opt.spool)
		return 0;
	if (!opt.prefetch || !opt.spool)
		return ws_err_usage(err, "--prefetch and --spool need each other");
	s->ahead = (int)strtol(opt.prefetch, &end, 10);
	if (*end || s->ahead < 1 || s->ahead > WS_ARCSPOOL_MAX)
		return ws_err_usage(err, "--prefetch: 1 to %d, not \"%s\"", WS_ARCSPOOL_MAX, opt.prefetch);
	return 0;
}

static int
get(struct ws_archive *a, int n, const char **args, struct ws_err *err)
{
	struct ws_arcget_opts o = {.no_records = opt.no_records};
	struct ws_arcspool spool = {.dir = opt.spool};
	int rc = 1;

	(void)n;
	if (spool_options(&spool, err) != 0)
		return -1;
	if (opt.gate)
		rc = below_gate(a, args[0], &o.system_id, err);
	if (rc == 1)
		rc = spool.ahead ? ws_archive_get_ahead(a, &archive, args[0], args[1], &o, &spool, err)
						 : ws_archive_get(a, args[0], args[1], &o, err);
	if (rc == 0)
		ws_debug("%s: %s does not have it", args[0], ws_archive_url(a));
	return rc < 0 ? -1 : rc == 0;
}

/* ---- list, check ---- */

static int
list(struct ws_archive *a, int n, const char **args, struct ws_err *err)
{
	bool as_json;

	(void)n;
	(void)args;
	return ws_tool_format(opt.format, &as_json, err) == 0 ? ws_archive_list(a, stdout, as_json, err) : -1;
}

static int
check(struct ws_archive *a, int n, const char **args, struct ws_err *err)
{
	struct ws_arccheck_opts o = {.from = opt.from};

	(void)n;
	(void)args;
	if (opt.timeline && (*opt.timeline == '0' || ws_tli_parse(opt.timeline, &o.tli) != 0))
		return ws_err_usage(err, "--timeline: \"%s\" is no timeline", opt.timeline);
	return ws_tool_format(opt.format, &o.json, err) == 0 ? ws_archive_check(a, &o, stdout, err) : -1;
}

/* ---- prune ---- */

static int
prune(struct ws_err *err)
{
	const char *state = ws_tool_state(opt.state);
	struct ws_metrics *m = ws_tool_metrics();
	struct ws_prune_result r;

	if (!state)
		return ws_err_usage(err, "--state is needed");
	if (ws_prune_run(state, opt.dry_run, opt.dry_run ? stdout : NULL, &r, err) != 0)
		return -1;
	*ws_metric(m, WS_COUNTER, "walshadow_pruned_segments_total", "directory=\"raw\"",
			   "Segments removed.") = r.raw_segments;
	*ws_metric(m, WS_COUNTER, "walshadow_pruned_segments_total", "directory=\"filtered\"",
			   "Segments removed.") = r.filtered_segments;
	ws_info("%s: raw_segments=%u filtered_segments=%u bytes=%" PRIu64,
			opt.dry_run ? "would remove" : "removed", r.raw_segments, r.filtered_segments, r.bytes);
	return 0;
}

static const struct command {
	const char *name;
	int min, max; /* operands */
	const char *operands;
	int (*run)(struct ws_archive *a, int n, const char **args, struct ws_err *err);
} commands[] = {{"push", 1, 2, "FILE [NAME]", push},
				{"get", 2, 2, "NAME PATH", get},
				{"list", 0, 0, "", list},
				{"check", 0, 0, "", check},
				{"prune", 0, 0, "", NULL}};

static bool getting, absent;

static int
run_command(int argc, const char **argv, struct ws_err *err)
{
	const struct command *c = NULL;
	int n = argc - 1;

	for (size_t i = 0; argc && i < sizeof commands / sizeof commands[0]; i++)
		if (!strcmp(argv[0], commands[i].name))
			c = &commands[i];
	getting = c && c->run == get;
	if (argc == 0)
		return ws_err_usage(err, "a command is needed: push, get, list, check or prune");
	if (!c)
		return ws_err_usage(err, "unknown command \"%s\": there is push, get, list, check, prune",
							argv[0]);
	if (n > c->max)
		return ws_err_usage(err, "unexpected argument \"%s\"", argv[1 + c->max]);
	if (n < c->min)
		return ws_err_usage(err, "%s wants %s", c->name, c->operands);
	if (!c->run)
		return prune(err);
	if (archive_options(&archive, err) != 0)
		return -1;
	struct ws_archive *a = ws_archive_open(&archive, err);

	if (!a)
		return -1;
	int rc = c->run(a, n, argv + 1, err);

	ws_archive_close(a);
	if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		return ws_err_sys(err, "stdout: cannot write");
	absent = rc == 1;
	return rc;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	int rc = run_command(argc, argv, err);

	return rc < 0 ? (int)err->status : rc;
}

/* What went wrong, in the terms of restore_command. */
static int
get_status(int rc)
{
	switch (rc) {
	case WS_OK:
		return 0;
	case WS_EUSAGE:
		return GET_USAGE;
	case WS_EOPERATOR:
		return GET_DAMAGED;
	default:
		return absent ? GET_ABSENT : ws_tool_stopping() ? GET_TERM : GET_UNREACHABLE;
	}
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {"ws-archive", "push|get|list|check|prune [OPERAND...]",
										options, run};

	/* An option that is wrong must not tell PostgreSQL that the archive has ended. */
	for (int i = 1; i < argc; i++)
		getting |= !strcmp(argv[i], "get");
	int rc = ws_tool_main(&tool, argc, argv);

	return getting ? get_status(rc) : rc;
}
