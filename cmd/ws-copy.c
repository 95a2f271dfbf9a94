/* ws-copy: the rows that tables have at the start, as a change stream; see ws-copy(1). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/copy.h"
#include "ws/file.h"
#include "ws/mem.h"
#include "ws/routes.h"
#include "ws/tool.h"
#include "ws/value.h"

#define CONFIG_MAX 65536u
#define JOBS_MAX   64

static char *state, *consumer, *conninfo, *routes_file, *load, *max_value, *toast, *hold_back;
static int jobs = 2, oracle;
static struct ws_hold hold;

static const struct poptOption options[] = {
	{"state", 0, POPT_ARG_STRING, &state, 0,
	 "state directory (default: environment WALSHADOW_STATE)", "DIR"},
	{"consumer", 0, POPT_ARG_STRING, &consumer, 0, "name of the consumer", "NAME"},
	{"dbname", 'd', POPT_ARG_STRING, &conninfo, 0, "connection string of the source", "CONNINFO"},
	{"routes", 0, POPT_ARG_STRING, &routes_file, 0,
	 "table rules, ws-routes(5) (default: DIR/routes when it exists)", "FILE"},
	{"jobs", 'j', POPT_ARG_INT, &jobs, 0, "tables read side by side (default: 2)", "N"},
	{"max-value", 0, POPT_ARG_STRING, &max_value, 0,
	 "longest value; a longer one stops (default: 256MB)", "SIZE"},
	{"oracle", 0, POPT_ARG_NONE, &oracle, 0,
	 "text of types that are not decoded, as ws-decode --oracle has it", NULL},
	{"load", 0, POPT_ARG_STRING, &load, 0,
	 "copy or none, for tables whose rule does not say (default: copy)", "MODE"},
	{"toast", 0, POPT_ARG_STRING, &toast, 0,
	 "copy or none: TOAST values for updates that keep them (default: copy)", "MODE"},
	{"hold-back", 0, POPT_ARG_STRING, &hold_back, 0,
	 "no rows of commits that these standbys have not flushed; \"\": any", "NAMES"},
	POPT_TABLEEND};

struct job {
	struct ws_copy_opts o;
	struct ws_routes *routes;
	char *dbname;
	bool none; /* unless the rule says otherwise */
};

static int
config_line(struct job *j, const char *path, char *line, struct ws_err *err)
{
	char *e;

	if (!strncmp(line, "DATABASE=", 9)) {
		free(j->dbname);
		j->dbname = ws_strdup(line + 9);
	} else if (!strncmp(line, "DATABASE_OID=", 13)) {
		unsigned long v = strtoul(line + 13, &e, 10);

		if (!isdigit((unsigned char)line[13]) || *e || v == 0 || v > UINT32_MAX)
			return ws_err_usage(err, "%s: DATABASE_OID is no oid: %s", path, line + 13);
		j->o.db = (ws_oid)v;
	}
	return 0;
}

/* KEY=value lines of consumer/NAME/config. */
static int
read_config(struct job *j, struct ws_err *err)
{
	char *path = ws_asprintf("%s/consumer/%s/config", j->o.state, consumer), *next;
	struct ws_buf b = {0};
	int rc = ws_file_read(path, CONFIG_MAX, &b, err);

	if (rc == 0)
		rc = ws_err_usage(err, "%s: no such consumer", path);
	for (char *line = rc == 1 ? ws_buf_cstr(&b) : NULL; line && rc == 1; line = next) {
		if ((next = strchr(line, '\n')))
			*next++ = 0;
		if (config_line(j, path, line, err) != 0)
			rc = -1;
	}
	if (rc == 1 && (!j->o.db || !j->dbname))
		rc = ws_err_usage(err, "%s: no DATABASE_OID or no DATABASE", path);
	j->o.dbname = j->dbname;
	ws_buf_free(&b);
	free(path);
	return rc == 1 ? 0 : -1;
}

static bool
name_ok(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= 63 && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

static int
check(struct job *j, struct ws_err *err)
{
	j->o.state = ws_tool_state(state);
	j->o.consumer = consumer;
	j->o.conninfo = conninfo;
	j->o.jobs = jobs;
	if (!j->o.state || !*j->o.state)
		return ws_err_usage(err, "--state is missing");
	if (!consumer || !name_ok(consumer))
		return ws_err_usage(err, "--consumer: a name of letters, digits, _ and - is needed");
	if (jobs < 1 || jobs > JOBS_MAX)
		return ws_err_usage(err, "--jobs is 1 to %d", JOBS_MAX);
	if (load && strcmp(load, "copy") && strcmp(load, "none"))
		return ws_err_usage(err, "--load is copy or none");
	if (toast && strcmp(toast, "copy") && strcmp(toast, "none"))
		return ws_err_usage(err, "--toast is copy or none");
	j->o.no_toast = toast && !strcmp(toast, "none");
	j->none = load && !strcmp(load, "none");
	if (hold_back && *hold_back) {
		if (ws_hold_parse("--hold-back", hold_back, &hold, err) != 0)
			return -1;
		j->o.hold = &hold;
	}
	uint64_t max = WS_VALUE_DEFAULT_MAX;

	if (max_value && (ws_parse_size(max_value, &max) != 0 || max < 1024))
		return ws_err_usage(err, "--max-value: not a size of at least 1kB: %s", max_value);
	j->o.max_value = max > WS_VALUE_MAX ? WS_VALUE_MAX : (uint32_t)max;
	if (isatty(STDOUT_FILENO))
		return ws_err_usage(err, "binary frames are not for a terminal: pipe them to ws-emit --load");
	return read_config(j, err);
}

static int
read_routes(struct job *j, struct ws_err *err)
{
	char *path = routes_file ? ws_strdup(routes_file) : ws_asprintf("%s/routes", j->o.state);
	bool is_default = !routes_file && access(path, F_OK) != 0;

	j->routes = ws_routes_load(is_default ? NULL : path, err);
	free(path);
	return j->routes ? 0 : -1;
}

/* The rule for a table; *as is whose names its column rules go by. */
static int
resolve(struct job *j, const struct ws_rel *rel, const struct ws_rel *root, struct ws_route *r,
        const struct ws_rel **as, struct ws_err *err)
{
	bool shared;
	int rc = ws_routes_resolve_leaf(j->routes, j->dbname, rel->nspname, rel->name,
	                                root ? root->nspname : NULL, root ? root->name : NULL, r,
	                                &shared, err);

	*as = shared ? root : rel;
	return rc;
}

static int
route(void *arg, const struct ws_rel *rel, const struct ws_rel *root, bool *rows,
      struct ws_err *err)
{
	struct job *j = arg;
	struct ws_route r;
	const struct ws_rel *as;
	int rc = resolve(j, rel, root, &r, &as, err);

	if (rc != 1)
		return rc;
	*rows = r.load == WS_LOAD_UNSAID ? !j->none : r.load == WS_LOAD_COPY;
	ws_route_fini(&r);
	return 1;
}

static enum ws_copy_column
column(void *arg, const struct ws_rel *rel, const struct ws_rel *root, const struct ws_attr *a,
       bool unsupported)
{
	struct job *j = arg;
	struct ws_route_column c;
	struct ws_route r;
	struct ws_err err;
	const struct ws_rel *as;

	if (resolve(j, rel, root, &r, &as, &err) != 1)
		return WS_COPY_VALUE;
	bool null = unsupported && r.unsupported == WS_UNSUP_NULL;

	ws_route_fini(&r);
	ws_routes_column(j->routes, as->nspname, as->name, a->name, &c);
	return c.excluded ? WS_COPY_EXCLUDED : null ? WS_COPY_AS_NULL : WS_COPY_VALUE;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	struct job j = {.o = {.out = STDOUT_FILENO, .tables = argv, .ntables = argc, .route = route, .column = column}};
	int rc;

	j.o.arg = &j;
	j.o.oracle = oracle;
	rc = check(&j, err);
	if (rc == 0)
		rc = read_routes(&j, err);
	if (rc == 0)
		rc = ws_copy_run(&j.o, err);
	ws_routes_free(j.routes);
	free(j.dbname);
	ws_hold_fini(&hold);
	return rc == 0 ? WS_OK : err->status;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {.name = "ws-copy", .synopsis = "[TABLE...]", .options = options, .run = run};

	return ws_tool_main(&tool, argc, argv);
}
