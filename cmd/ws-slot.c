/* ws-slot: replication slots: make, show, drop, prove, move, and keep one on standbys.  The work is
 * lib/pg/slot*.c's; here are the command line, the connection of the commands on one server, and
 * what they print: the slot as it is afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/slot.h"
#include "ws/tool.h"

/* An option's letter in the table of commands. */
enum {
	O_IF_NOT_EXISTS = 1,
	O_IF_EXISTS = 2,
	O_LSN = 4,
	O_TLI = 8,
	O_UNUSED = 16,
	O_FROM = 32,
	O_FOLLOW = 64,
	O_RECREATE = 128
};

static char *conninfo, *host, *port, *user, *format, *lsn_text, *tli_text, *from, *follow_text;
static int if_not_exists, if_exists, unused, recreate;

static const struct poptOption options[] = {
	{"dbname", 'd', POPT_ARG_STRING, &conninfo, 0,
	 "connection string of the server (ensure: parameters of all)", "CONNINFO"},
	{"host", 'h', POPT_ARG_STRING, &host, 0, "server host or socket directory", "HOST"},
	{"port", 'p', POPT_ARG_STRING, &port, 0, "server port", "PORT"},
	{"username", 'U', POPT_ARG_STRING, &user, 0, "user to connect as", "NAME"},
	{"format", 'F', POPT_ARG_STRING, &format, 0, "text or json", "FORMAT"},
	{"if-not-exists", 0, POPT_ARG_NONE, &if_not_exists, 0,
	 "create: one that exists and keeps WAL is no error", NULL},
	{"if-exists", 0, POPT_ARG_NONE, &if_exists, 0, "drop: one that does not exist is no error",
	 NULL},
	{"lsn", 0, POPT_ARG_STRING, &lsn_text, 0,
	 "verify: from where WAL is needed; advance, ensure: move no further", "LSN"},
	{"tli", 0, POPT_ARG_STRING, &tli_text, 0,
	 "verify: timeline of --lsn, which must be on the server's branch", "TLI"},
	{"unused", 0, POPT_ARG_NONE, &unused, 0, "verify: nobody may be using it", NULL},
	{"from", 0, POPT_ARG_STRING, &from, 0, "ensure: the server whose slot of that name is followed",
	 "HOST"},
	{"follow", 0, POPT_ARG_STRING, &follow_text, 0,
	 "ensure: again every SECONDS until told to stop", "SECONDS"},
	{"recreate", 0, POPT_ARG_NONE, &recreate, 0, "ensure: drop a lost slot and make it anew", NULL},
	POPT_TABLEEND};

static char *connection; /* of all that */
static bool json;
static ws_lsn lsn;
static ws_tli tli;
static double follow;

/* ---- output ---- */

static int
print_slot(const struct ws_slot *s, struct ws_err *err)
{
	struct ws_buf out = {0};
	struct ws_slot_line l = {.out = &out, .json = json};

	ws_slot_put(&l, s);
	ws_slot_put_end(&l);
	int rc = ws_write_all(STDOUT_FILENO, out.data, out.len, err, "standard output");

	ws_buf_free(&out);
	return rc;
}

static int
missing(const char *name, struct ws_err *err)
{
	return ws_err_op(err, "slot_missing", "replication slot \"%s\" does not exist on the server",
					 name);
}

/* The slot with its timeline: 0, or -1 also when there is none. */
static int
need_slot(struct ws_pg *c, const char *name, struct ws_slot *s, struct ws_err *err)
{
	int rc = ws_slot_look(c, name, s, err);

	if (rc == 1)
		rc = ws_slot_timeline(c, s, err);
	return rc == 1 ? 0 : rc == 0 ? missing(name, err) : -1;
}

/* ---- commands on one server ---- */

/* A slot that was made but cannot be described would keep WAL that nobody knows of. */
static int
unmake(struct ws_pg *c, const char *name, struct ws_err *err)
{
	struct ws_err why = {0};

	if (ws_pg_slot_drop(c, name, &why) != 0)
		ws_warn("the slot was made and is still there: %s", why.msg);
	return ws_err_prefix(err, "the slot was made, but");
}

static int
cmd_create(struct ws_pg *c, const char **args, struct ws_err *err)
{
	bool made = ws_pg_slot_create(c, args[0], false, err) == 0;
	struct ws_slot s;

	if (!made && (!if_not_exists || strcmp(ws_pg_sqlstate(c), "42710")))
		return -1;
	*err = (struct ws_err){0};
	if (need_slot(c, args[0], &s, err) == 0 && ws_slot_check(&s, 0, err) == 0 &&
		print_slot(&s, err) == 0)
		return 0;
	return made ? unmake(c, args[0], err) : -1;
}

static int
show_all(struct ws_pg *c, struct ws_err *err)
{
	struct ws_slot *all;
	size_t n;
	int rc = ws_slot_list(c, &all, &n, err);

	for (size_t i = 0; i < n && rc == 0; i++) {
		int there = ws_slot_timeline(c, &all[i], err);

		rc = there < 0 ? -1 : there ? print_slot(&all[i], err) : 0;
	}
	free(all);
	return rc;
}

static int
cmd_show(struct ws_pg *c, const char **args, struct ws_err *err)
{
	struct ws_slot s;

	if (!args || !args[0])
		return show_all(c, err);
	for (; *args; args++)
		if (need_slot(c, *args, &s, err) != 0 || print_slot(&s, err) != 0)
			return -1;
	return 0;
}

static int
cmd_drop(struct ws_pg *c, const char **args, struct ws_err *err)
{
	struct ws_slot s;
	int rc = ws_slot_look(c, args[0], &s, err);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return if_exists ? 0 : missing(args[0], err);
	if (s.logical)
		return ws_err_op(err, "slot_wrong_type",
						 "replication slot \"%s\" is not a physical one: left alone", s.name);
	if (ws_pg_slot_drop(c, args[0], err) != 0) {
		if (!if_exists || strcmp(err->reason, "slot_missing"))
			return -1;
		*err = (struct ws_err){0};
	}
	if ((rc = ws_slot_look(c, args[0], &s, err)) == 1)
		ws_err_temp(err, "replication slot \"%s\" is there again", args[0]);
	return rc == 0 ? 0 : -1;
}

static int
cmd_verify(struct ws_pg *c, const char **args, struct ws_err *err)
{
	struct ws_slot s;

	if (need_slot(c, args[0], &s, err) != 0 || ws_slot_check(&s, lsn, err) != 0)
		return -1;
	if (tli && ws_slot_check_branch(c, (struct ws_pos){tli, lsn}, err) != 0)
		return -1;
	if (unused && s.active)
		return ws_err_op(err, "slot_in_use", "replication slot \"%s\" is in use by pid %d", s.name,
						 s.pid);
	return print_slot(&s, err);
}

static int
cmd_advance(struct ws_pg *c, const char **args, struct ws_err *err)
{
	struct ws_slot_server now;
	struct ws_slot s;

	if (ws_slot_server(c, &now, err) != 0 || need_slot(c, args[0], &s, err) != 0 ||
		ws_slot_check_usable(&s, err) != 0)
		return -1;
	if (s.restart.lsn > lsn)
		return ws_err_op(err, "slot_too_new",
						 "replication slot \"%s\" begins at " WS_LSN_FMT ", above " WS_LSN_FMT
						 ": it is never moved back",
						 s.name, WS_LSN_ARG(s.restart.lsn), WS_LSN_ARG(lsn));
	if (lsn > now.end)
		return ws_err_temp(
			err, "the server has %s " WS_LSN_FMT " only: the slot is not moved to " WS_LSN_FMT,
			now.standby ? "replayed" : "flushed", WS_LSN_ARG(now.end), WS_LSN_ARG(lsn));
	if (s.active)
		return ws_err_temp(err, "replication slot \"%s\" is in use by pid %d", s.name, s.pid);
	if (ws_slot_advance(c, &s, lsn, err) != 0 || ws_slot_timeline(c, &s, err) < 0)
		return -1;
	return print_slot(&s, err);
}

/* ---- ensure ---- */

static int
cmd_ensure(int argc, const char **args, struct ws_err *err)
{
	const struct ws_slot_ensure_opts o = {.slot = args[0],
										  .conninfo = connection,
										  .from = from,
										  .lsn = lsn,
										  .hosts = args + 1,
										  .nhosts = argc - 1,
										  .recreate = recreate,
										  .follow = follow,
										  .json = json};

	if (!lsn && !from) {
		ws_err_usage(err, "ensure needs --lsn or --from");
		return err->status;
	}
	return ws_slot_ensure(&o, err);
}

/* ---- the command line ---- */

static const struct command {
	const char *name;
	int min, max; /* operands */
	int may, must;
	int (*run)(struct ws_pg *, const char **,
			   struct ws_err *); /* NULL: ensure, which has many servers */
} commands[] = {
	{"create", 1, 1, O_IF_NOT_EXISTS, 0, cmd_create},
	{"show", 0, INT16_MAX, 0, 0, cmd_show},
	{"drop", 1, 1, O_IF_EXISTS, 0, cmd_drop},
	{"verify", 1, 1, O_LSN | O_TLI | O_UNUSED, O_LSN, cmd_verify},
	{"advance", 1, 1, O_LSN, O_LSN, cmd_advance},
	{"ensure", 2, INT16_MAX, O_LSN | O_FROM | O_FOLLOW | O_RECREATE, 0, NULL},
};

static int
check_given(const struct command *cmd, struct ws_err *err)
{
	const struct {
		int bit;
		bool given;
		const char *name;
	} all[] = {{O_IF_NOT_EXISTS, if_not_exists, "if-not-exists"},
			   {O_IF_EXISTS, if_exists, "if-exists"},
			   {O_LSN, lsn_text, "lsn"},
			   {O_TLI, tli_text, "tli"},
			   {O_UNUSED, unused, "unused"},
			   {O_FROM, from, "from"},
			   {O_FOLLOW, follow_text, "follow"},
			   {O_RECREATE, recreate, "recreate"}};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (all[i].given && !(cmd->may & all[i].bit))
			return ws_err_usage(err, "%s takes no --%s", cmd->name, all[i].name);
		if (!all[i].given && (cmd->must & all[i].bit))
			return ws_err_usage(err, "%s needs --%s", cmd->name, all[i].name);
	}
	return 0;
}

static int
parse_values(struct ws_err *err)
{
	if (ws_tool_format(format, &json, err) != 0)
		return -1;
	if (lsn_text && (ws_lsn_parse(lsn_text, &lsn) != 0 || !lsn))
		return ws_err_usage(err, "--lsn: not a position: %s", lsn_text);
	if (tli_text && ws_tli_parse(tli_text, &tli) != 0)
		return ws_err_usage(err, "--tli: not a timeline: %s", tli_text);
	if (follow_text && (ws_parse_seconds(follow_text, &follow) != 0 || follow < 0.1))
		return ws_err_usage(err, "--follow: not a time of at least 0.1 seconds: %s", follow_text);
	return 0;
}

/* -h, -p and -U over -d. */
static int
merge_connection(struct ws_err *err)
{
	char *over = ws_slot_parameters(host, port, user);

	connection = ws_slot_conninfo(conninfo, over, err);
	free(over);
	return connection ? 0 : -1;
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	const struct command *cmd = NULL;
	struct ws_pg *c;

	for (size_t i = 0; argc && i < sizeof commands / sizeof commands[0]; i++)
		if (!strcmp(argv[0], commands[i].name))
			cmd = &commands[i];
	if (!cmd || argc - 1 < cmd->min || argc - 1 > cmd->max) {
		ws_err_usage(err, argc ? "wrong command or operands: %s" : "no command%s",
					 argc ? argv[0] : "");
		return err->status;
	}
	if (parse_values(err) != 0 || check_given(cmd, err) != 0)
		return err->status;
	for (int i = 1; i < argc && (i == 1 || !strcmp(cmd->name, "show")); i++)
		if (ws_pg_slot_name_check(argv[i], err) != 0)
			return err->status;
	if (merge_connection(err) != 0)
		return err->status;
	if (!cmd->run)
		return cmd_ensure(argc - 1, argv + 1, err);
	if (!(c = ws_slot_connect(connection, 0, err)))
		return err->status;
	int rc = cmd->run(c, argv + 1, err);

	ws_pg_close(c);
	return rc == 0 ? WS_OK : err->status;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {
		.name = "ws-slot",
		.synopsis = "create SLOT | show [SLOT...] | drop SLOT | verify SLOT --lsn LSN | advance "
					"SLOT --lsn LSN | ensure SLOT --lsn LSN|--from HOST HOST...",
		.options = options,
		.run = run,
	};

	return ws_tool_main(&tool, argc, argv);
}
