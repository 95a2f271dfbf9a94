/* ws-history: fetches, shows and checks timeline histories of a server or of a directory, and says what
 * lies on them.  See ws-history(1). */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/histfetch.h"
#include "ws/histpos.h"
#include "ws/lsn.h"
#include "ws/text.h"
#include "ws/tool.h"

#define SEGSIZE_DEFAULT (16u * 1024 * 1024) /* initdb's */

static struct {
	char *dir, *conninfo, *host, *port, *user, *format, *timeline;
	char *tli, *lsn, *from, *to, *segsize, *system_id;
	char *state;
	int no_password, password;
} opt;

static const struct poptOption options[] = {
    {"state", 0, POPT_ARG_STRING, &opt.state, 0, "positions: state directory (default $WALSHADOW_STATE)", "DIR"},
    {"directory", 'D', POPT_ARG_STRING, &opt.dir, 0, "fetch: write history files into DIR", "DIR"},
    {"timeline", 't', POPT_ARG_STRING, &opt.timeline, 0,
     "the timeline whose history is meant (default: the newest)", "TLI"},
    {"tli", 0, POPT_ARG_STRING, &opt.tli, 0, "prove: timeline of the position", "TLI"},
    {"lsn", 0, POPT_ARG_STRING, &opt.lsn, 0, "prove: the position", "LSN"},
    {"system-id", 0, POPT_ARG_STRING, &opt.system_id, 0,
     "fetch, prove: the server must have this system identifier", "ID"},
    {"from", 0, POPT_ARG_STRING, &opt.from, 0, "path: begin at LSN", "LSN"},
    {"to", 0, POPT_ARG_STRING, &opt.to, 0, "path: end before LSN", "LSN"},
    {"wal-segsize", 0, POPT_ARG_STRING, &opt.segsize, 0,
     "segment: size of a segment (default: as the segments say)", "SIZE"},
    {"format", 'F', POPT_ARG_STRING, &opt.format, 0, "text or json", "FORMAT"},
    {"dbname", 'd', POPT_ARG_STRING, &opt.conninfo, 0, "fetch, prove: connection string",
     "CONNSTR"},
    {"host", 'h', POPT_ARG_STRING, &opt.host, 0, "server host or socket directory", "HOST"},
    {"port", 'p', POPT_ARG_STRING, &opt.port, 0, "server port", "PORT"},
    {"username", 'U', POPT_ARG_STRING, &opt.user, 0, "user to connect as", "NAME"},
    {"no-password", 'w', POPT_ARG_NONE, &opt.no_password, 0, "never ask for a password", NULL},
    {"password", 'W', POPT_ARG_NONE, &opt.password, 0, "ask for a password before connecting",
     NULL},
    POPT_TABLEEND};

static bool json;
static ws_tli timeline, position_tli; /* 0: not given */
static ws_lsn position, from, to = UINT64_MAX;
static uint64_t segsize, system_id;

static int
out_flush(struct ws_buf *b, struct ws_err *err)
{
	int rc = ws_write_all(STDOUT_FILENO, b->data, b->len, err, "standard output");

	ws_buf_free(b);
	*b = (struct ws_buf){0};
	return rc;
}

/* ---- a server's ---- */
static struct ws_pg *
open_server(struct ws_pg_source *src, struct ws_err *err)
{
	struct ws_pg_opts o = {.mode = WS_PG_PHYSICAL,
	                       .conninfo = opt.conninfo,
	                       .host = opt.host,
	                       .port = opt.port,
	                       .user = opt.user,
	                       .appname = "ws-history"};
	struct ws_pg *c = ws_pg_open_asking(&o, opt.password, opt.no_password, err);

	if (!c)
		return NULL;
	if (ws_pg_identify(c, src, err) == 0) {
		if (!system_id || src->system_id == system_id)
			return c;
		ws_err_op(err, "system_id_changed",
		          "the server's system identifier is %" PRIu64 ", %" PRIu64 " was expected",
		          src->system_id, system_id);
	}
	ws_pg_close(c);
	return NULL;
}

static int
fetch_to_stdout(struct ws_pg *c, ws_tli tli, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_history h;
	int rc = ws_histfetch_get(c, tli, &h, &b, err);

	if (rc == 0 && tli == 1)
		ws_info("timeline 1 has no history file");
	if (rc == 0)
		rc = ws_write_all(STDOUT_FILENO, b.data, b.len, err, "standard output");
	ws_history_fini(&h);
	ws_buf_free(&b);
	return rc;
}

static int
cmd_fetch(int n, const char **args, struct ws_err *err)
{
	size_t count = n ? (size_t)n : 1;
	ws_tli *tlis = ws_calloc(count, sizeof *tlis);
	struct ws_pg_source src;
	struct ws_pg *c = NULL;
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++)
		if (ws_tli_parse(args[i], &tlis[i]) != 0)
			rc = ws_err_usage(err, "not a timeline: %s", args[i]);
	if (rc == 0 && n > 1 && !opt.dir)
		rc = ws_err_usage(err, "several history files need --directory");
	if (rc == 0 && !(c = open_server(&src, err)))
		rc = -1;
	if (rc == 0 && !n)
		tlis[0] = src.pos.tli;
	if (rc == 0)
		rc = opt.dir ? ws_histfetch_store(c, &src, tlis, count, opt.dir, err)
		             : fetch_to_stdout(c, tlis[0], err);
	ws_pg_close(c);
	free(tlis);
	return rc;
}

/* ---- show, path ---- */
static int
cmd_show(const char *spec, bool path, struct ws_err *err)
{
	struct ws_history h;
	struct ws_buf out = {0};

	if (ws_histdir_load(spec, timeline, &h, err) != 0)
		return -1;
	if (path) {
		ws_history_path(&h, from, to, json, &out);
	} else {
		if (!json && isatty(STDOUT_FILENO))
			ws_buf_printf(&out, "%-8s %-17s %-17s %s\n", "TIMELINE", "BEGIN", "END", "REASON");
		ws_history_show(&h, json, &out);
	}
	ws_history_fini(&h);
	return out_flush(&out, err);
}

/* ---- prove ---- */
static int
server_history(struct ws_history *h, struct ws_err *err)
{
	struct ws_pg_source src;
	struct ws_buf b = {0};
	struct ws_pg *c = open_server(&src, err);
	int rc = c ? ws_histfetch_get(c, timeline ? timeline : src.pos.tli, h, &b, err) : -1;

	ws_pg_close(c);
	ws_buf_free(&b);
	return rc;
}

static void
put_proof(struct ws_buf *out, const struct ws_history *h)
{
	ws_lsn end = ws_history_end(h, position_tli);
	char text[32] = "";

	if (end != UINT64_MAX)
		snprintf(text, sizeof text, WS_LSN_FMT, WS_LSN_ARG(end));
	if (json) {
		ws_buf_printf(out, "{\"timeline\":%u,\"lsn\":\"" WS_LSN_FMT "\",\"end\":", position_tli,
		              WS_LSN_ARG(position));
		ws_buf_printf(out, *text ? "\"%s\"" : "null%s", text);
		ws_buf_printf(out, ",\"history\":%u}\n", h->tli);
		return;
	}
	ws_buf_printf(out, "%u " WS_LSN_FMT " is on the history of timeline %u", position_tli,
	              WS_LSN_ARG(position), h->tli);
	if (*text)
		ws_buf_printf(out, ", which leaves %u at %s", position_tli, text);
	ws_buf_putc(out, '\n');
}

static int
cmd_prove(const char *spec, struct ws_err *err)
{
	struct ws_history h;
	struct ws_buf out = {0};

	if (!position_tli || !position)
		return ws_err_usage(err, "prove needs --tli and --lsn");
	int rc = spec ? ws_histdir_load(spec, timeline, &h, err) : server_history(&h, err);

	if (rc != 0)
		return -1;
	if ((rc = ws_history_prove(&h, position_tli, position, err)) == 0) {
		put_proof(&out, &h);
		rc = out_flush(&out, err);
	}
	ws_history_fini(&h);
	return rc;
}

/* ---- segment ---- */
static int
find_segsize(const char *dir, struct ws_err *err)
{
	uint32_t found = SEGSIZE_DEFAULT;

	if (!segsize) {
		if (ws_histdir_segsize(dir, &found, err) < 0)
			return -1;
		segsize = found;
	}
	return 0;
}

static int
segment(const struct ws_history *h, ws_lsn lsn, const char *dir, struct ws_err *err)
{
	char name[WS_WALNAME_MAX], *path = NULL;
	struct ws_buf out = {0};
	int rc = dir ? ws_histdir_segment(dir, h, lsn, (uint32_t)segsize, &path, err) : 1;

	ws_histdir_name(h, lsn, (uint32_t)segsize, name);
	if (rc == 0)
		ws_err_temp(err, "%s: " WS_LSN_FMT " is not there; it belongs into %s", dir, WS_LSN_ARG(lsn),
		            name);
	if (rc <= 0)
		return -1;
	if (json) {
		ws_buf_printf(&out, "{\"lsn\":\"" WS_LSN_FMT "\",\"timeline\":%u,\"segment\":\"%s\"",
		              WS_LSN_ARG(lsn), ws_history_tli_at(h, lsn), name);
		if (path) {
			ws_buf_puts(&out, ",\"path\":");
			ws_text_json(&out, path);
		}
		ws_buf_puts(&out, "}\n");
	} else {
		ws_buf_printf(&out, "%s\n", path ? path : name);
	}
	free(path);
	return out_flush(&out, err);
}

static int
cmd_segment(const char *arg, const char *spec, struct ws_err *err)
{
	struct ws_history h;
	struct stat st;
	char *copy;
	ws_lsn lsn;
	int rc = -1;

	if (ws_lsn_parse(arg, &lsn) != 0)
		return ws_err_usage(err, "not a position: %s", arg);
	if (ws_histdir_load(spec, timeline, &h, err) != 0)
		return -1;
	bool dir = stat(spec, &st) == 0 && S_ISDIR(st.st_mode);

	copy = ws_strdup(spec);
	if (find_segsize(dir ? spec : dirname(copy), err) == 0)
		rc = segment(&h, lsn, dir ? spec : NULL, err);
	ws_history_fini(&h);
	free(copy);
	return rc;
}

/* ---- check ---- */
struct findings {
	size_t n;
	char reason[40]; /* of the first */
	char *first;
	struct ws_buf out;
};

static void
print_finding(void *arg, const struct ws_histdir_finding *f)
{
	struct findings *all = arg;

	if (json) {
		ws_buf_puts(&all->out, "{\"path\":");
		ws_text_json(&all->out, f->path);
		ws_buf_printf(&all->out, ",\"reason\":\"%s\",\"text\":", f->reason);
		ws_text_json(&all->out, f->text);
		ws_buf_puts(&all->out, "}\n");
	} else {
		ws_buf_printf(&all->out, "%s: %s reason=%s\n", f->path, f->text, f->reason);
	}
	if (all->n++)
		return;
	snprintf(all->reason, sizeof all->reason, "%s", f->reason);
	all->first = ws_asprintf("%s: %s", f->path, f->text);
}

static int
cmd_check(int n, const char **specs, struct ws_err *err)
{
	struct findings all = {0};
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++)
		rc = ws_histdir_check(specs[i], print_finding, &all, err);
	/* What was found is said also when the rest could not be read. */
	if (all.n && out_flush(&all.out, rc == 0 ? err : NULL) != 0)
		rc = -1;
	else if (rc == 0 && all.n)
		rc = ws_err_op(err, all.reason, "%zu finding%s, first %s", all.n, all.n > 1 ? "s" : "",
		               all.first);
	free(all.first);
	ws_buf_free(&all.out);
	return rc;
}

/* ---- positions ---- */

struct positions {
	struct ws_buf out;
	char *past; /* the first that is past, and of those that tell what was published, the first */
	bool published, foreign;
};

static int
print_position(void *arg, const struct ws_histpos *p, struct ws_err *err)
{
	struct positions *all = arg;
	bool past = ws_histpos_past(p), published = past && !strncmp(p->name, "sent.", 5);

	(void)err;
	ws_buf_printf(&all->out, json ? "{\"position\":\"%s\",\"timeline\":%u,\"lsn\":\"" WS_LSN_FMT "\",\"past\":%s"
	                              : "%s %u " WS_LSN_FMT " %s",
	              p->name, p->pos.tli, WS_LSN_ARG(p->pos.lsn),
	              json ? past ? "true" : "false" : past ? "past" : "ok");
	if (past)
		ws_buf_printf(&all->out, json ? ",\"end\":\"" WS_LSN_FMT "\"" : " " WS_LSN_FMT, WS_LSN_ARG(p->end));
	ws_buf_puts(&all->out, json ? "}\n" : "\n");
	if (!past || (all->past && (!published || all->published)))
		return 0;
	free(all->past);
	all->past = ws_asprintf("%s, " WS_LSN_FMT " of timeline %u", p->name, WS_LSN_ARG(p->pos.lsn), p->pos.tli);
	all->published |= published;
	all->foreign |= !p->end;
	return 0;
}

static int
cmd_positions(struct ws_err *err)
{
	struct positions all = {0};

	if (!(opt.state = ws_tool_state(opt.state)))
		return ws_err_usage(err, "no state directory: use --state or WALSHADOW_STATE");
	int rc = ws_histpos_each(opt.state, print_position, &all, err);

	if (rc == 0)
		rc = out_flush(&all.out, err);
	if (rc == 0 && all.past) {
		const char *reason = all.published ? "published_past_fork" : all.foreign ? "timeline_not_descendant" : "past_fork";

		rc = ws_err_op(err, reason, "not on the way of the newest timeline: %s", all.past);
	}
	ws_buf_free(&all.out);
	free(all.past);
	return rc;
}

static int
dispatch(int argc, const char **argv, struct ws_err *err)
{
	const char *cmd = argc ? argv[0] : "";
	bool server = opt.conninfo || opt.host || opt.port || opt.user;

	if (!strcmp(cmd, "fetch"))
		return cmd_fetch(argc - 1, argv + 1, err);
	if ((!strcmp(cmd, "show") || !strcmp(cmd, "path")) && argc == 2 && !server)
		return cmd_show(argv[1], *cmd == 'p', err);
	if (!strcmp(cmd, "check") && argc >= 2 && !server)
		return cmd_check(argc - 1, argv + 1, err);
	if (!strcmp(cmd, "segment") && argc == 3 && !server)
		return cmd_segment(argv[1], argv[2], err);
	if (!strcmp(cmd, "prove") && argc == 1)
		return cmd_prove(NULL, err);
	if (!strcmp(cmd, "prove") && argc == 2 && !server && !system_id)
		return cmd_prove(argv[1], err);
	if (!strcmp(cmd, "positions") && argc == 1 && !server)
		return cmd_positions(err);
	return ws_err_usage(err, argc ? "wrong command, operands or options: %s" : "no command%s", cmd);
}

static int
parse_options(struct ws_err *err)
{
	char *end;

	if (ws_tool_format(opt.format, &json, err) != 0)
		return -1;
	if (opt.timeline && ws_tli_parse(opt.timeline, &timeline) != 0)
		return ws_err_usage(err, "--timeline: not a timeline: %s", opt.timeline);
	if (opt.tli && ws_tli_parse(opt.tli, &position_tli) != 0)
		return ws_err_usage(err, "--tli: not a timeline: %s", opt.tli);
	if (opt.lsn && (ws_lsn_parse(opt.lsn, &position) != 0 || !position))
		return ws_err_usage(err, "--lsn: not a position: %s", opt.lsn);
	if (opt.from && ws_lsn_parse(opt.from, &from) != 0)
		return ws_err_usage(err, "--from: not a position: %s", opt.from);
	if (opt.to && ws_lsn_parse(opt.to, &to) != 0)
		return ws_err_usage(err, "--to: not a position: %s", opt.to);
	if (opt.segsize && (ws_parse_size(opt.segsize, &segsize) != 0 || segsize > UINT32_MAX ||
	                    !ws_segsize_ok((uint32_t)segsize)))
		return ws_err_usage(err, "--wal-segsize: not a power of two from 1MB to 1GB: %s",
		                    opt.segsize);
	if (opt.system_id) {
		errno = 0;
		system_id = strtoull(opt.system_id, &end, 10);
		if (*opt.system_id < '0' || *opt.system_id > '9' || *end || errno || !system_id)
			return ws_err_usage(err, "--system-id: not a system identifier: %s", opt.system_id);
	}
	if (opt.password && opt.no_password)
		return ws_err_usage(err, "--password and --no-password exclude each other");
	return 0;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	return parse_options(err) == 0 && dispatch(argc, argv, err) == 0 ? WS_OK : (int)err->status;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {
	    .name = "ws-history",
	    .synopsis = "fetch [TLI...] | show FILE|DIR | check FILE|DIR... | "
	                "prove --tli TLI --lsn LSN [FILE|DIR] | path FILE|DIR | segment LSN FILE|DIR | "
	                "positions",
	    .options = options,
	    .run = run,
	};

	return ws_tool_main(&tool, argc, argv);
}
