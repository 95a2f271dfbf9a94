/* ws-filter: keeps the catalogs' WAL, blanks the rest, every byte at its LSN.  See ws-filter(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ws/filterback.h"
#include "ws/filterrun.h"
#include "ws/histdir.h"
#include "ws/lsn.h"
#include "ws/tool.h"

static char no_stats[] = "none";
static char *opt_state, *opt_out, *opt_kept, *opt_interval;
static char *opt_stats = no_stats; /* NULL: --stats without a value */
static int opt_follow, opt_no_output, opt_no_sync, opt_rewind;

static const struct poptOption options[] = {
    {"state", 0, POPT_ARG_STRING, &opt_state, 0, "state directory: filters its raw/ into its filtered/", "DIR"},
    {"directory", 'D', POPT_ARG_STRING, &opt_out, 0, "WAL directory to write, or - for a framed stream", "DIR"},
    {"follow", 0, POPT_ARG_NONE, &opt_follow, 0, "go on at the end of the input until stopped", NULL},
    {"kept", 0, POPT_ARG_STRING, &opt_kept, 0, "catalog files at the first start (ws-catalog kept)", "FILE"},
    {"no-output", 'n', POPT_ARG_NONE, &opt_no_output, 0, "write no WAL", NULL},
    {"no-sync", 0, POPT_ARG_NONE, &opt_no_sync, 0, "do not wait for the disk", NULL},
    {"rewind", 0, POPT_ARG_NONE, &opt_rewind, 0, "go back to the fork that the filter went past, and end", NULL},
    {"stats", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, &opt_stats, 0,
     "print counts by resource manager at the end", "json"},
    {"sync-interval", 0, POPT_ARG_STRING, &opt_interval, 0, "at most this long between syncs (1s)", "TIME"},
    POPT_TABLEEND};

/* The state directory's identity comes from whoever receives. */
static int
wait_cluster(const char *state, struct ws_cluster *c, struct ws_err *err)
{
	int rc;

	while ((rc = ws_cluster_read(state, c, err)) == 0 && opt_follow && !ws_tool_stopping())
		usleep(100000);
	if (rc == 0)
		return ws_err_temp(err, "%s: no cluster file yet (ws-receive makes it)", state);
	return rc == 1 ? 0 : -1;
}

/* Where the output goes; the strings are new. */
static struct ws_filterdir_opts
output_opts(void)
{
	return (struct ws_filterdir_opts){
	    .dir = opt_out ? ws_strdup(opt_out) : ws_asprintf("%s/filtered", opt_state),
	    .pos_file = opt_out ? NULL : ws_asprintf("%s/pos/filtered", opt_state),
	    .no_sync = opt_no_sync};
}

static void
output_opts_fini(struct ws_filterdir_opts *o)
{
	free((char *)(uintptr_t)o->dir);
	free((char *)(uintptr_t)o->pos_file);
}

static int
open_output(struct ws_filterrun *r, double interval, struct ws_err *err)
{
	uint64_t system_id = 0;

	/* Frames are begun when the cluster is known. */
	if (opt_no_output || r->to_stdout)
		return 0;
	struct ws_filterdir_opts o = output_opts();

	o.received_file = opt_out ? NULL : r->received_file;
	o.stateless = r->one_file;
	o.background = !opt_follow;
	o.interval = interval;
	r->dir = ws_filterdir_new(&o);
	int rc = ws_filterdir_load(r->dir, r->filter, &r->start, &system_id, err);

	if (rc == 0)
		r->start = (struct ws_pos){0, 0};
	output_opts_fini(&o);
	return rc < 0 ? -1 : 0;
}

static int
check_usage(int argc, double *interval, struct ws_err *err)
{
	*interval = 1;
	if (opt_interval && ws_parse_seconds(opt_interval, interval) != 0)
		return ws_err_usage(err, "--sync-interval: not a time: %s", opt_interval);
	if (argc > 1)
		return ws_err_usage(err, "too many operands");
	if (argc == 1 && opt_state)
		return ws_err_usage(err, "--state names the input already");
	if (!opt_state && argc == 0)
		opt_state = ws_tool_state(NULL);
	if (!opt_state && argc == 0)
		return ws_err_usage(err, "an input is needed: --state DIR, a WAL directory, a segment, or -");
	if (argc == 1 && !opt_out && !opt_no_output)
		return ws_err_usage(err, "where to? -D DIR, -D - or --no-output");
	if (opt_out && opt_no_output)
		return ws_err_usage(err, "--directory and --no-output exclude each other");
	if (opt_rewind && (opt_follow || opt_kept || opt_no_output || opt_stats != no_stats || opt_interval))
		return ws_err_usage(err, "--rewind goes with --state, --directory, --no-sync and an input alone");
	return 0;
}

static int
rewind_to_fork(const char *input, struct ws_err *err)
{
	struct ws_cluster cluster = {0};
	struct stat st;

	if (opt_out && !strcmp(opt_out, "-"))
		return ws_err_usage(err, "--rewind: a stream does not go back");
	if (stat(input, &st) != 0)
		return ws_err_arg(err, "%s: cannot open", input);
	if (!S_ISDIR(st.st_mode))
		return ws_err_usage(err, "%s: no WAL directory", input);
	if (opt_state && wait_cluster(opt_state, &cluster, err) != 0)
		return -1;
	int rc = opt_state ? 1 : ws_histdir_segsize(input, &cluster.segsize, err);

	if (rc == 0)
		ws_err_op(err, "wal_missing", "%s: no WAL segment there", input);
	if (rc != 1)
		return -1;
	struct ws_filterdir_opts o = output_opts();

	rc = ws_filterback(&o, input, opt_out ? NULL : opt_state, cluster.segsize, err);
	output_opts_fini(&o);
	return rc;
}

static int
prepare(struct ws_filterrun *r, double interval, struct ws_err *err)
{
	struct ws_walsrc_opts so = {.follow = opt_follow, .editable = true};
	struct ws_cluster cluster;
	struct ws_pos from;

	if (opt_state) {
		if (wait_cluster(opt_state, &cluster, err) != 0)
			return -1;
		so.segsize = cluster.segsize;
	}
	if (open_output(r, interval, err) != 0)
		return -1;
	if (!r->start.lsn && opt_kept && ws_filter_read_kept(r->filter, opt_kept, &r->since, err) != 0)
		return -1;
	if (!r->start.lsn && !r->since.lsn && opt_state)
		return ws_err_usage(err, "the first start needs --kept FILE (ws-catalog kept)");
	from = r->start;
	if (!from.lsn && r->since.lsn && so.segsize)
		from = (struct ws_pos){r->since.tli, ws_seg_start(r->since.lsn, so.segsize)};
	r->src = ws_walsrc_open(r->input, from, &so, err);
	if (!r->src)
		return -1;
	/* A list holds from its segment on; earlier WAL would only be read in vain. */
	uint32_t segsize = ws_walsrc_segsize(r->src);

	if (from.lsn || !r->since.lsn || !segsize)
		return 0;
	from = (struct ws_pos){r->since.tli, ws_seg_start(r->since.lsn, segsize)};
	return ws_walsrc_seek(r->src, from, err);
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	struct ws_filterrun r = {0};
	struct stat st;
	double interval;
	char *raw = NULL, *received = NULL;
	const char *input;

	/* `--stats INPUT`: popt takes the next word for the option's value. */
	if (opt_stats && opt_stats != no_stats && strcmp(opt_stats, "json")) {
		if (argc)
			return ws_err_usage(err, "--stats is plain or json, not %s", opt_stats), WS_EUSAGE;
		input = opt_stats;
		opt_stats = NULL;
		argv = &input;
		argc = 1;
	}
	if (check_usage(argc, &interval, err) != 0)
		return err->status;
	if (opt_state) {
		raw = ws_asprintf("%s/raw", opt_state);
		received = ws_asprintf("%s/pos/received", opt_state);
	}
	r.input = argc ? argv[0] : raw;
	r.received_file = received;
	r.follow = opt_follow;
	r.one_file = argc && strcmp(r.input, "-") && stat(r.input, &st) == 0 && S_ISREG(st.st_mode);
	r.to_stdout = opt_out && !strcmp(opt_out, "-");
	r.filter = ws_filter_new();
	bool done = opt_rewind ? rewind_to_fork(r.input, err) == 0
	                       : prepare(&r, interval, err) == 0 && ws_filterrun_loop(&r, err) == 0;
	int rc = done ? 0 : (int)err->status;

	if (rc == 0 && opt_stats != no_stats && r.stream)
		ws_filterstats_print(r.to_stdout ? stderr : stdout, ws_filterstream_stats(r.stream), opt_stats);
	/* What is being written is the source's memory, or the stream's. */
	ws_filterdir_free(r.dir);
	ws_walsrc_close(r.src);
	ws_filterrun_fini(&r);
	free(raw);
	free(received);
	return rc;
}

static const struct ws_tool tool = {"ws-filter", "[INPUT]", options, run};

int
main(int argc, char **argv)
{
	return ws_tool_main(&tool, argc, argv);
}
