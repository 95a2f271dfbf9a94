/* ws-emit: a change stream on standard input into ClickHouse tables; see ws-emit(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ws/emit.h"
#include "ws/file.h"
#include "ws/mem.h"
#include "ws/routes.h"
#include "ws/tee.h"
#include "ws/tool.h"

static char *state, *consumer, *user, *password_file, *compression, *routes, *cacert, *cert, *key, *proxy, *tee;
static char *flush_interval, *flush_gap, *batch_bytes, *memory, *connect_timeout, *request_timeout;
static char **urls, **settings;
static int load, sequences, no_loop, no_verify, check_routes, connections, batch_rows;

static const struct poptOption options[] = {
    {"state", 0, POPT_ARG_STRING, &state, 0, "state directory (default: environment WALSHADOW_STATE)", "DIR"},
    {"consumer", 0, POPT_ARG_STRING, &consumer, 0, "name of the consumer", "NAME"},
    {"url", 'u', POPT_ARG_ARGV, &urls, 0, "http://HOST:PORT of the server; again for more servers", "URL"},
    {"user", 'U', POPT_ARG_STRING, &user, 0, "user (default: environment CLICKHOUSE_USER)", "NAME"},
    {"password-file", 0, POPT_ARG_STRING, &password_file, 0, "file with the password (default: environment CLICKHOUSE_PASSWORD)", "FILE"},
    {"routes", 0, POPT_ARG_STRING, &routes, 0, "table rules, ws-routes(5) (default: DIR/routes when it exists)", "FILE"},
    {"tee", 0, POPT_ARG_STRING, &tee, 0,
     "several destinations: a file each in DIR, with its options", "DIR"},
    {"check-routes", 0, POPT_ARG_NONE, &check_routes, 0, "check the rules and exit", NULL},
    {"sequences", 0, POPT_ARG_NONE, &sequences, 0, "the values of sequences as rows of the table walshadow.sequences", NULL},
    {"load", 0, POPT_ARG_NONE, &load, 0, "the stream is an initial load", NULL},
    {"no-loop", 'n', POPT_ARG_NONE, &no_loop, 0, "end instead of waiting out an outage", NULL},
    {"flush-interval", 0, POPT_ARG_STRING, &flush_interval, 0, "a change waits no longer for its batch to fill (default: 200ms)", "TIME"},
    {"flush-gap", 0, POPT_ARG_STRING, &flush_gap, 0, "between two early flushes of a table (default: 50ms)", "TIME"},
    {"batch-rows", 0, POPT_ARG_INT, &batch_rows, 0, "rows of a full batch (default: 262144)", "N"},
    {"batch-bytes", 0, POPT_ARG_STRING, &batch_bytes, 0, "bytes of a full batch (default: 24MB)", "SIZE"},
    {"memory", 0, POPT_ARG_STRING, &memory, 0, "bytes in all batches (default: 72MB)", "SIZE"},
    {"connections", 'j', POPT_ARG_INT, &connections, 0, "inserts at a time (default: 2)", "N"},
    {"compression", 0, POPT_ARG_STRING, &compression, 0, "none, lz4, zstd or gzip (default: none)", "METHOD"},
    {"setting", 0, POPT_ARG_ARGV, &settings, 0, "a setting for each INSERT; may be repeated", "NAME=VALUE"},
    {"cacert", 0, POPT_ARG_STRING, &cacert, 0, "certificates of authorities to trust", "FILE"},
    {"cert", 0, POPT_ARG_STRING, &cert, 0, "client certificate", "FILE"},
    {"key", 0, POPT_ARG_STRING, &key, 0, "key of the client certificate", "FILE"},
    {"insecure-no-verify", 0, POPT_ARG_NONE, &no_verify, 0, "do not verify the server's certificate", NULL},
    {"proxy", 0, POPT_ARG_STRING, &proxy, 0, "HTTP proxy", "URL"},
    {"connect-timeout", 0, POPT_ARG_STRING, &connect_timeout, 0, "for a connection (default: 10s)", "TIME"},
    {"request-timeout", 0, POPT_ARG_STRING, &request_timeout, 0, "for the answer to an INSERT (default: 300s)", "TIME"},
    POPT_TABLEEND};

/* The file's first line, or the environment's; a header cannot carry control characters. */
static int
read_password(char **out, struct ws_err *err)
{
	struct ws_buf b = {0};
	const char *env = getenv("CLICKHOUSE_PASSWORD");

	*out = NULL;
	if (!password_file) {
		*out = env ? ws_strdup(env) : NULL;
	} else {
		int rc = ws_file_read(password_file, 4096, &b, err);

		if (rc <= 0)
			return rc < 0 ? -1 : ws_err_usage(err, "--password-file %s: no such file", password_file);
		b.data[strcspn((char *)b.data, "\r\n")] = 0;
		*out = ws_strdup((char *)b.data);
		explicit_bzero(b.data, b.cap);
		ws_buf_free(&b);
	}
	for (const char *s = *out; s && *s; s++)
		if ((unsigned char)*s < 0x20)
			return ws_err_usage(err, "the password has a control character");
	return 0;
}

static int
seconds(const char *name, const char *s, double *out, struct ws_err *err)
{
	if (s && ws_parse_seconds(s, out) != 0)
		return ws_err_usage(err, "--%s %s: not a time", name, s);
	return 0;
}

static int
size(const char *name, const char *s, uint64_t *out, struct ws_err *err)
{
	if (s && (ws_parse_size(s, out) != 0 || *out < 65536))
		return ws_err_usage(err, "--%s %s: not a size of at least 64kB", name, s);
	return 0;
}

static bool
name_ok(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= 63 && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

/* One of several destinations is a consumer of its own, whose positions make the common ones. */
static void
destination_of(struct ws_emit_opts *o)
{
	static const char *peers[64];
	const char *env = getenv(WS_TEE_ENV);
	char *save, *words = env ? ws_strdup(env) : NULL;

	if (!env)
		return;
	o->consumer = strtok_r(words, " ", &save);
	o->common = strtok_r(NULL, " ", &save);
	while (o->npeers < 64 && (peers[o->npeers] = strtok_r(NULL, " ", &save)))
		o->npeers++;
	o->peers = peers;
}

static int
run_tee(const struct ws_emit_opts *o, struct ws_err *err)
{
	struct ws_tee_opts t = {.state = o->state,
	                        .consumer = o->consumer,
	                        .dir = tee,
	                        .routes = routes,
	                        .metrics = ws_metrics_path(ws_tool_metrics()),
	                        .load = load,
	                        .no_loop = no_loop};

	return ws_tee_run(&t, STDIN_FILENO, err) == 0 ? WS_OK : (int)err->status;
}

static int
fill(struct ws_emit_opts *o, struct ws_err *err)
{
	ws_emit_defaults(o);
	o->state = ws_tool_state(state);
	o->consumer = consumer;
	if (!o->state || !*o->state)
		return ws_err_usage(err, "--state is missing");
	if (!consumer || !name_ok(consumer))
		return ws_err_usage(err, "--consumer: a name of letters, digits, _ and - is needed");
	if (tee)
		return urls ? ws_err_usage(err, "--tee: the destinations' files name their --url") : 0;
	if (!urls)
		return ws_err_usage(err, "--url is missing");
	destination_of(o);
	o->urls = (const char *const *)urls;
	while (urls[o->nurls])
		o->nurls++;
	o->settings = (const char *const *)settings;
	for (; settings && settings[o->nsettings]; o->nsettings++)
		if (!strchr(settings[o->nsettings], '=') || settings[o->nsettings][0] == '=')
			return ws_err_usage(err, "--setting %s: not NAME=VALUE", settings[o->nsettings]);
	if (seconds("flush-interval", flush_interval, &o->flush_interval, err) != 0 ||
	    seconds("flush-gap", flush_gap, &o->flush_gap, err) != 0 ||
	    seconds("connect-timeout", connect_timeout, &o->connect_timeout, err) != 0 ||
	    seconds("request-timeout", request_timeout, &o->request_timeout, err) != 0 ||
	    size("batch-bytes", batch_bytes, &o->batch_bytes, err) != 0 || size("memory", memory, &o->memory, err) != 0)
		return -1;
	if (connections < 0 || connections > 64 || batch_rows < 0)
		return ws_err_usage(err, "--connections is 1 to 64, --batch-rows positive");
	if (connections)
		o->connections = connections;
	if (batch_rows)
		o->batch_rows = (uint64_t)batch_rows;
	if (compression)
		o->encoding = compression;
	o->user = user ? user : getenv("CLICKHOUSE_USER");
	for (const char *s = o->user; s && *s; s++)
		if ((unsigned char)*s < 0x20)
			return ws_err_usage(err, "--user: a control character");
	o->cacert = cacert;
	o->cert = cert;
	o->key = key;
	o->proxy = proxy;
	o->no_verify = no_verify;
	o->load = load;
	o->sequences = sequences;
	o->no_loop = no_loop;
	return 0;
}

/* All problems at once, each with its line. */
static int
check(struct ws_err *err)
{
	struct ws_buf text = {0}, problems = {0};

	if (!routes)
		return ws_err_usage(err, "--check-routes needs --routes");
	int rc = ws_file_read(routes, WS_ROUTES_MAX_FILE, &text, err);

	if (rc <= 0)
		return rc < 0 ? -1 : ws_err_usage(err, "%s: no such file", routes);
	struct ws_routes *r = ws_routes_parse((char *)text.data, text.len, routes, &problems);

	if (r)
		ws_routes_conflicts(r, routes, &problems);
	rc = r && problems.len == 0 ? 0 : -1;
	if (rc != 0) {
		fputs(ws_buf_cstr(&problems), stderr);
		ws_err_usage(err, "%s: not valid", routes);
	}
	ws_routes_free(r);
	ws_buf_free(&text);
	ws_buf_free(&problems);
	return rc;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	struct ws_emit_opts o;
	char *password = NULL, *default_routes = NULL;

	if (argc > 0) {
		ws_err_usage(err, "unexpected operand %s", argv[0]);
		return err->status;
	}
	if (check_routes)
		return check(err) == 0 ? WS_OK : (int)err->status;
	if (fill(&o, err) != 0)
		return err->status;
	if (tee)
		return run_tee(&o, err);
	if (read_password(&password, err) != 0)
		return err->status;
	o.password = password;
	o.routes = routes;
	if (!routes) {
		default_routes = ws_asprintf("%s/routes", o.state);
		if (access(default_routes, F_OK) == 0)
			o.routes = default_routes;
	}
	int rc = ws_emit_run(&o, STDIN_FILENO, ws_tool_metrics(), err);

	if (password)
		explicit_bzero(password, strlen(password));
	free(password);
	free(default_routes);
	return rc == 0 ? WS_OK : (int)err->status;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {"ws-emit", "[OPTION...] <CHANGES", options, run};

	return ws_tool_main(&tool, argc, argv);
}
