/* ws-archive: what becomes of WAL that was read.  So far: prune. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/prune.h"
#include "ws/tool.h"

static struct {
	char *state;
	int dry_run;
} opt;

static const struct poptOption options[] = {{"state", 0, POPT_ARG_STRING, &opt.state, 0,
											 "state directory (default: $WALSHADOW_STATE)", "DIR"},
											{"dry-run", 0, POPT_ARG_NONE, &opt.dry_run, 0,
											 "print what would be removed, remove nothing", NULL},
											POPT_TABLEEND};

static int
prune(const char *state, struct ws_err *err)
{
	struct ws_metrics *m = ws_tool_metrics();
	struct ws_prune_result r;

	if (ws_prune_run(state, opt.dry_run, opt.dry_run ? stdout : NULL, &r, err) != 0)
		return err->status;
	*ws_metric(m, WS_COUNTER, "walshadow_pruned_segments_total", "directory=\"raw\"",
			   "Segments removed.") = r.raw_segments;
	*ws_metric(m, WS_COUNTER, "walshadow_pruned_segments_total", "directory=\"filtered\"",
			   "Segments removed.") = r.filtered_segments;
	ws_info("%s: raw_segments=%u filtered_segments=%u bytes=%" PRIu64,
			opt.dry_run ? "would remove" : "removed", r.raw_segments, r.filtered_segments, r.bytes);
	return WS_OK;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	const char *state = opt.state ? opt.state : getenv("WALSHADOW_STATE");

	if (argc == 0)
		ws_err_usage(err, "a command is needed: prune");
	else if (strcmp(argv[0], "prune"))
		ws_err_usage(err, "unknown command \"%s\": there is prune", argv[0]);
	else if (argc > 1)
		ws_err_usage(err, "unexpected argument \"%s\"", argv[1]);
	if (err->status)
		return WS_EUSAGE;
	if (!state) {
		ws_err_usage(err, "--state is needed");
		return WS_EUSAGE;
	}
	return prune(state, err);
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {"ws-archive", "prune", options, run};

	return ws_tool_main(&tool, argc, argv);
}
