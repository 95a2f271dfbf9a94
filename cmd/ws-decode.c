/* ws-decode: WAL in, committed transactions of one database out as a change stream.  See
 * ws-decode(1). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/decoding.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/routes.h"
#include "ws/shape.h"
#include "ws/tool.h"
#include "ws/value.h"

#define CONFIG_MAX 65536

static char *state, *consumer, *catalog, *database, *dbname, *encoding, *format, *start, *end,
	*memory, *max_value, *oracle, *scratch, *toast, *store, *routes_file, *hold_back;
static int trust_swaps, prepared;
static struct ws_hold hold;

static const struct poptOption options[] = {
	{"state", 0, POPT_ARG_STRING, &state, 0, "state directory (default $WALSHADOW_STATE)", "DIR"},
	{"consumer", 'c', POPT_ARG_STRING, &consumer, 0,
	 "live: decode for this consumer, following raw/", "NAME"},
	{"catalog", 'D', POPT_ARG_STRING, &catalog, 0, "catalog history (default STATE/catalog)",
	 "DIR"},
	{"database", 0, POPT_ARG_STRING, &database, 0, "database (default the consumer's)", "OID"},
	{"dbname", 'd', POPT_ARG_STRING, &dbname, 0, "its name, for the identity frame", "NAME"},
	{"encoding", 'E', POPT_ARG_STRING, &encoding, 0, "its encoding, for the identity frame (UTF8)",
	 "NAME"},
	{"format", 'F', POPT_ARG_STRING, &format, 0, "binary (ws-change(5)) or json", "FORMAT"},
	{"start", 's', POPT_ARG_STRING, &start, 0, "offline: first record", "LSN"},
	{"end", 'e', POPT_ARG_STRING, &end, 0, "offline: no record that starts at or above", "LSN"},
	{"memory", 'm', POPT_ARG_STRING, &memory, 0, "for positions of unfinished transactions (32MB)",
	 "SIZE"},
	{"max-value", 0, POPT_ARG_STRING, &max_value, 0, "longest value; a longer one stops (256MB)",
	 "SIZE"},
	{"oracle", 0, POPT_ARG_STRING, &oracle, 0,
	 "text of types that are not decoded here, from the module ws-pgext(7)", "SOCKET"},
	{"scratch", 0, POPT_ARG_STRING, &scratch, 0, "folder for WAL read from a stream ($TMPDIR)",
	 "DIR"},
	{"toast-store", 0, POPT_ARG_STRING, &store, 0,
	 "TOAST values of earlier transactions (default: the consumer's)", "DIR"},
	{"toast-missing", 0, POPT_ARG_STRING, &toast, 0,
	 "at one that is not known: rule (default), stop or absent", "WHAT"},
	{"routes", 0, POPT_ARG_STRING, &routes_file, 0,
	 "table rules, ws-routes(5) (default: STATE/routes when it exists)", "FILE"},
	{"hold-back", 0, POPT_ARG_STRING, &hold_back, 0,
	 "live: nothing that these standbys have not flushed; \"\": none", "NAMES"},
	{"prepared", 'P', POPT_ARG_NONE, &prepared, 0,
	 "list the prepared transactions that are pending, and exit", NULL},
	{"trust-swaps", 0, POPT_ARG_NONE, &trust_swaps, 0,
	 "take a table that took over another's file (pg_repack) as unchanged", NULL},
	POPT_TABLEEND};

static int
parse_oid(const char *s, ws_oid *oid, struct ws_err *err)
{
	char *e;
	unsigned long v = strtoul(s, &e, 10);

	if (!isdigit((unsigned char)*s) || *e || v == 0 || v > UINT32_MAX)
		return ws_err_usage(err, "--database: not an oid: %s", s);
	*oid = (ws_oid)v;
	return 0;
}

static int
parse_lsn(const char *opt, const char *s, ws_lsn *lsn, struct ws_err *err)
{
	return !s || ws_lsn_parse(s, lsn) == 0 ? 0 : ws_err_usage(err, "%s: not an LSN: %s", opt, s);
}

/* KEY=value of consumer/NAME/config; a value given as an option stays. */
static int
read_config(struct ws_decoding_opts *o, struct ws_err *err)
{
	char *path = ws_asprintf("%s/consumer/%s/config", state, consumer), *next;
	struct ws_buf b = {0};
	int rc = ws_file_read(path, CONFIG_MAX, &b, err);

	if (rc == 0)
		rc = ws_err_usage(err, "%s: no such consumer", path);
	for (char *line = rc == 1 ? ws_buf_cstr(&b) : NULL; line && rc == 1; line = next) {
		if ((next = strchr(line, '\n')))
			*next++ = 0;
		if (!strncmp(line, "DATABASE_OID=", 13) && !o->db && parse_oid(line + 13, &o->db, err) != 0)
			rc = ws_err_prefix(err, "%s", path);
		else if (!strncmp(line, "DATABASE=", 9) && !dbname)
			o->dbname = dbname = ws_strdup(line + 9);
		else if (!strncmp(line, "ENCODING=", 9) && !encoding)
			o->encoding = encoding = ws_strdup(line + 9);
	}
	if (rc == 1 && !o->db)
		rc = ws_err_usage(err, "%s: no DATABASE_OID", path);
	ws_buf_free(&b);
	free(path);
	return rc == 1 ? 0 : -1;
}

static int
check_words(struct ws_decoding_opts *o, struct ws_err *err)
{
	if (format && strcmp(format, "json") && strcmp(format, "binary"))
		return ws_err_usage(err, "--format: binary or json, not %s", format);
	if (toast && strcmp(toast, "stop") && strcmp(toast, "absent") && strcmp(toast, "rule"))
		return ws_err_usage(err, "--toast-missing: rule, stop or absent, not %s", toast);
	o->json = format && !strcmp(format, "json");
	o->allow_absent = toast && !strcmp(toast, "absent");
	if (!o->json && !prepared && isatty(STDOUT_FILENO))
		return ws_err_usage(err, "binary frames are not for a terminal: use -F json or a pipe");
	if (oracle && !*oracle)
		return ws_err_usage(err, "--oracle: no socket");
	if (memory && (ws_parse_size(memory, &o->memory) != 0 || o->memory < 65536))
		return ws_err_usage(err, "--memory: not a size of at least 64kB: %s", memory);
	o->max_value = WS_VALUE_DEFAULT_MAX;
	if (max_value && (ws_parse_size(max_value, &o->max_value) != 0 || o->max_value < 1024))
		return ws_err_usage(err, "--max-value: not a size of at least 1kB: %s", max_value);
	if (o->max_value > WS_VALUE_MAX)
		o->max_value = WS_VALUE_MAX;
	return 0;
}

/* ws-decode --state S --consumer NAME */
static int
check_live(struct ws_decoding_opts *o, int argc, struct ws_err *err)
{
	static const char *input;

	if (!state)
		return ws_err_usage(err, "--consumer needs --state or WALSHADOW_STATE");
	if (argc || start || end)
		return ws_err_usage(
			err, "a consumer reads the state's raw/ from its floor: no WAL, --start or --end");
	if (strchr(consumer, '/') || !*consumer)
		return ws_err_usage(err, "--consumer: not a name: %s", consumer);
	input = ws_asprintf("%s/raw", state);
	if (hold_back && *hold_back) {
		if (ws_hold_parse("--hold-back", hold_back, &hold, err) != 0)
			return -1;
		o->hold = &hold;
	}
	o->state = state;
	o->consumer = consumer;
	o->inputs = &input;
	o->ninputs = 1;
	return read_config(o, err);
}

static int
check(struct ws_decoding_opts *o, int argc, const char **argv, struct ws_err *err)
{
	state = ws_tool_state(state);
	if (!catalog && state)
		catalog = ws_asprintf("%s/catalog", state);
	if (!catalog && !prepared)
		return ws_err_usage(err, "no catalog history: use --catalog or --state");
	o->catalog = catalog;
	o->dbname = dbname;
	o->encoding = encoding;
	if (check_words(o, err) != 0 || (database && parse_oid(database, &o->db, err) != 0))
		return -1;
	if (consumer)
		return check_live(o, argc, err);
	if (hold_back)
		return ws_err_usage(err, "--hold-back needs --consumer");
	if (!argc)
		return ws_err_usage(err, "nothing to decode: give WAL, or --consumer");
	if (!o->db && !prepared)
		return ws_err_usage(err, "--database is needed without a consumer");
	o->inputs = argv;
	o->ninputs = (size_t)argc;
	if (parse_lsn("--start", start, &o->start, err) != 0)
		return -1;
	return parse_lsn("--end", end, &o->end, err);
}

/* ---- routes: whose TOAST values are kept ---- */

static struct ws_routes *routes;

static int
load_routes(void *arg, struct ws_err *err)
{
	const struct ws_decoding_opts *o = arg;
	char *path = routes_file ? ws_strdup(routes_file)
	             : o->state  ? ws_asprintf("%s/routes", o->state)
	                         : NULL;
	bool none = !path || (!routes_file && access(path, F_OK) != 0);
	struct ws_routes *r = ws_routes_load(none ? NULL : path, err);

	free(path);
	if (!r && routes) {
		/* As ws-emit does. */
		ws_warn("the old rules stay: %s", err->msg);
		return 0;
	}
	ws_routes_free(routes);
	routes = r;
	return r ? 0 : -1;
}

static int
resolve(const char *db, const struct ws_rel *rel, struct ws_route *r)
{
	return rel ? ws_routes_resolve(routes, db, rel->nspname, rel->name, r, NULL) : 0;
}

/* A partition is replicated by its own rule, or by that of the table that it is part of. */
static enum ws_toast_use
toast_use(void *arg, const struct ws_rel *rel, const struct ws_rel *root,
          const struct ws_attr *attr)
{
	const struct ws_decoding_opts *o = arg;
	struct ws_route_column c = {0};
	struct ws_route r;
	int rc = resolve(o->dbname ? o->dbname : "", rel, &r);

	if (rc == 0)
		rc = resolve(o->dbname ? o->dbname : "", root, &r);
	if (rc < 0)
		return WS_TOAST_STOP; /* ws-emit says what is wrong with it */
	/* A swap gives a table the values of one that need not be replicated. */
	if (rc == 0)
		return o->trust_swaps ? WS_TOAST_ABSENT : WS_TOAST_UNUSED;
	bool null = r.toast_missing == WS_TOAST_MISSING_NULL && !(toast && !strcmp(toast, "stop"));

	ws_route_fini(&r);
	if (attr)
		ws_routes_column(routes, rel->nspname, rel->name, attr->name, &c);
	return c.excluded ? WS_TOAST_UNUSED : null ? WS_TOAST_ABSENT : WS_TOAST_STOP;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	struct ws_decoding_opts o = {
		.fd = STDOUT_FILENO, .trust_swaps = trust_swaps, .oracle = oracle, .scratch = scratch,
		.toast = store};

	if (check(&o, argc, argv, err) != 0)
		return err->status;
	if (consumer || routes_file) {
		o.toast_use = toast_use;
		o.reload = load_routes;
		o.toast_arg = &o;
		if (load_routes(&o, err) != 0)
			return err->status;
	}
	int rc = (prepared ? ws_decoding_prepared : ws_decoding_run)(&o, err);

	ws_routes_free(routes);
	ws_hold_fini(&hold);
	return rc == 0 ? WS_OK : err->status;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {"ws-decode", "[--consumer NAME | WAL...]", options, run};

	return ws_tool_main(&tool, argc, argv);
}
