/* ws-catalog: captures shapes at every catalog boundary, and shows them as of any position. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/boundary.h"
#include "ws/capture.h"
#include "ws/catquery.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/shape.h"
#include "ws/tool.h"

static char *state, *catalog, *conninfo, *shadow, *output, *format, *database, *timeout;
static int all;

static const struct poptOption options[] = {
    {"state", 0, POPT_ARG_STRING, &state, 0, "state directory (default $WALSHADOW_STATE)", "DIR"},
    {"catalog", 'D', POPT_ARG_STRING, &catalog, 0, "history to read (default STATE/catalog)", "DIR"},
    {"database", 0, POPT_ARG_STRING, &database, 0, "database, when the history has several", "OID"},
    {"format", 'F', POPT_ARG_STRING, &format, 0, "text or json", "FORMAT"},
    {"all", 'a', POPT_ARG_NONE, &all, 0, "list, types: those of the system too; indexes, sequences ...", NULL},
    {"shadow", 0, POPT_ARG_STRING, &shadow, 0, "capture: the shadow (default host=STATE/run port=5433)", "CONNINFO"},
    {"timeout", 0, POPT_ARG_STRING, &timeout, 0,
     "capture: give up when the shadow makes no progress (default 300 s); kept: when catalogs stay locked", "TIME"},
    {"dbname", 'd', POPT_ARG_STRING, &conninfo, 0, "kept: the source", "CONNINFO"},
    {"output", 'o', POPT_ARG_STRING, &output, 0, "kept: file to write (default standard output)", "FILE"},
    POPT_TABLEEND};

static bool json;
static double timeout_s = 300;

static int
out_flush(struct ws_buf *b, struct ws_err *err)
{
	int rc = ws_write_all(STDOUT_FILENO, b->data, b->len, err, "standard output");

	b->len = 0;
	return rc;
}

static int
need_state(struct ws_err *err)
{
	if (!(state = ws_tool_state(state)))
		return ws_err_usage(err, "no state directory: use --state or WALSHADOW_STATE");
	/* The shadow's socket is named by it, which libpq takes for a host when it is relative. */
	char *whole = realpath(state, NULL);

	if (whole)
		state = whole;
	return 0;
}

/* ---- the history, one database, one position ---- */
struct view {
	struct ws_cathist *hist;
	ws_oid db;
	ws_lsn lsn; /* UINT64_MAX: the newest */
};

static int
parse_oid(const char *s, ws_oid *oid)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (!isdigit((unsigned char)*s) || *end || v == 0 || v > UINT32_MAX)
		return -1;
	*oid = (ws_oid)v;
	return 0;
}

static int
choose_database(struct view *v, struct ws_err *err)
{
	ws_oid *dbs;
	size_t n;

	if (database)
		return parse_oid(database, &v->db) == 0 ? 0 : ws_err_usage(err, "--database: not an oid: %s", database);
	if (ws_cathist_databases(v->hist, &dbs, &n, err) != 0)
		return -1;
	int rc = n == 1 ? 0 : n ? ws_err_usage(err, "the history has %zu databases: use --database OID", n)
	                        : ws_err_temp(err, "nothing is captured yet");

	if (rc == 0)
		v->db = dbs[0];
	free(dbs);
	return rc;
}

static int
view_open(struct view *v, struct ws_err *err)
{
	if (!catalog) {
		if (need_state(err) != 0)
			return -1;
		catalog = ws_asprintf("%s/catalog", state);
	}
	v->lsn = UINT64_MAX;
	if (!(v->hist = ws_cathist_open(catalog, false, err)))
		return -1;
	return choose_database(v, err);
}

/* Takes "@LSN" off the end of s (malloc'd), if there is one. */
static char *
split_lsn(const char *s, ws_lsn *lsn)
{
	const char *at = strrchr(s, '@');

	if (at && ws_lsn_parse(at + 1, lsn) == 0)
		return ws_strndup(s, (size_t)(at - s));
	return ws_strdup(s);
}

/* ---- show ---- */
static bool
is_called(const struct ws_rel *r, const char *name)
{
	size_t n = strlen(r->nspname);

	return !strcmp(r->name, name) || (!strncmp(r->nspname, name, n) && name[n] == '.' && !strcmp(r->name, name + n + 1));
}

static int
show_one(const struct view *v, ws_oid oid, const char *name, struct ws_buf *out, int *shown, struct ws_err *err)
{
	struct ws_rel *r;
	int rc = ws_cathist_rel(v->hist, v->db, oid, v->lsn, &r, err);

	if (rc < 0)
		return -1;
	if (rc == 1 && (!name || is_called(r, name))) {
		if (!json && (*shown)++)
			ws_buf_putc(out, '\n');
		(json ? ws_rel_json : ws_rel_text)(r, out);
		*shown += json;
	}
	ws_rel_free(r);
	return 0;
}

static int
cmd_show(const char *arg, struct ws_err *err)
{
	struct view v = {0};
	struct ws_buf out = {0};
	ws_oid *oids = NULL, oid;
	size_t n = 0;
	int shown = 0, rc = view_open(&v, err);
	char *name = split_lsn(arg, &v.lsn);

	if (rc == 0 && parse_oid(name, &oid) == 0) {
		rc = show_one(&v, oid, NULL, &out, &shown, err);
	} else if (rc == 0) {
		rc = ws_cathist_list(v.hist, v.db, v.lsn, &oids, &n, err);
		for (size_t i = 0; i < n && rc == 0; i++)
			rc = show_one(&v, oids[i], name, &out, &shown, err);
	}
	if (rc == 0)
		rc = out_flush(&out, err);
	if (rc == 0 && !shown)
		rc = ws_err_usage(err, "there is no relation %s", arg);
	free(oids);
	free(name);
	ws_buf_free(&out);
	ws_cathist_close(v.hist);
	return rc;
}

/* ---- list, types ---- */
static bool
is_listed(const struct ws_rel *r)
{
	return all || (r->oid >= WS_FIRST_NORMAL_OID && strchr("rpm", r->kind));
}

static int
list_rel(const struct view *v, ws_oid oid, struct ws_buf *out, struct ws_err *err)
{
	struct ws_rel *r;
	int rc = ws_cathist_rel(v->hist, v->db, oid, v->lsn, &r, err);

	if (rc == 1 && is_listed(r)) {
		if (json)
			ws_rel_json(r, out);
		else
			ws_buf_printf(out, "%c %u %u " WS_LSN_FMT " %s.%s\n", r->kind, r->oid, r->filenode,
			              WS_LSN_ARG(r->lsn), r->nspname, r->name);
	}
	ws_rel_free(r);
	return rc < 0 ? -1 : 0;
}

static int
list_type(const struct view *v, ws_oid oid, struct ws_buf *out, struct ws_err *err)
{
	struct ws_type *t;
	int rc = ws_cathist_type(v->hist, v->db, oid, v->lsn, &t, err);

	if (rc == 1 && (all || oid >= WS_FIRST_NORMAL_OID)) {
		if (json)
			ws_type_json(t, out);
		else
			ws_buf_printf(out, "%c %u " WS_LSN_FMT " %s.%s\n", t->typtype, t->oid, WS_LSN_ARG(t->lsn), t->nspname,
			              t->name);
	}
	ws_type_free(t);
	return rc < 0 ? -1 : 0;
}

static int
cmd_list(const char *arg, bool types, struct ws_err *err)
{
	struct view v = {0};
	struct ws_buf out = {0};
	ws_oid *oids = NULL;
	size_t n = 0;
	int rc = view_open(&v, err);

	if (rc == 0 && arg && ws_lsn_parse(arg + (*arg == '@'), &v.lsn) != 0)
		rc = ws_err_usage(err, "not a position: %s", arg);
	if (rc == 0)
		rc = (types ? ws_cathist_types : ws_cathist_list)(v.hist, v.db, v.lsn, &oids, &n, err);
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = (types ? list_type : list_rel)(&v, oids[i], &out, err);
		if (rc == 0 && out.len > 65536)
			rc = out_flush(&out, err);
	}
	if (rc == 0)
		rc = out_flush(&out, err);
	free(oids);
	ws_buf_free(&out);
	ws_cathist_close(v.hist);
	return rc;
}

/* ---- dump ---- */
static int
dump_shape(const struct ws_cathist_entry *e, struct ws_buf *out, struct ws_err *err)
{
	struct ws_rel *r = e->kind == 'R' ? ws_rel_decode(e->p, e->n, err) : NULL;
	struct ws_type *t = e->kind == 'T' ? ws_type_decode(e->p, e->n, err) : NULL;
	int rc = r || t ? 0 : -1;

	if (json && r)
		ws_rel_json(r, out);
	else if (json && t)
		ws_type_json(t, out);
	else if (rc == 0)
		ws_buf_printf(out, "%s %u " WS_LSN_FMT " %c %s.%s\n", r ? "relation" : "type", e->id, WS_LSN_ARG(e->lsn),
		              r ? r->kind : t->typtype, r ? r->nspname : t->nspname, r ? r->name : t->name);
	ws_rel_free(r);
	ws_type_free(t);
	return rc;
}

static int
dump_entry(void *arg, const struct ws_cathist_entry *e, struct ws_err *err)
{
	struct ws_buf *out = arg;
	const char *what = e->kind == 'R' ? "relation" : e->kind == 'T' ? "type" : e->kind == 'F' ? "file" : "change";
	int rc = 0;

	if (e->kind == 'F')
		ws_buf_printf(out, json ? "{\"file\":%u,\"lsn\":\"" WS_LSN_FMT "\",\"relation\":%u}\n"
		                        : "file %u " WS_LSN_FMT " %u\n",
		              e->id, WS_LSN_ARG(e->lsn), e->oid);
	else if (e->kind == 'C')
		ws_buf_printf(out, json ? "{\"change\":%u,\"lsn\":\"" WS_LSN_FMT "\"}\n" : "change %u " WS_LSN_FMT "\n", e->id,
		              WS_LSN_ARG(e->lsn));
	else if (!e->n)
		ws_buf_printf(out, json ? "{\"%s\":%u,\"lsn\":\"" WS_LSN_FMT "\",\"dropped\":true}\n"
		                        : "%s %u " WS_LSN_FMT " dropped\n",
		              what, e->id, WS_LSN_ARG(e->lsn));
	else
		rc = dump_shape(e, out, err);
	return rc == 0 && out->len > 65536 ? out_flush(out, err) : rc;
}

static int
cmd_dump(struct ws_err *err)
{
	struct view v = {0};
	struct ws_buf out = {0};
	struct ws_pos first, last;
	int rc = view_open(&v, err);

	if (rc == 0 && (rc = ws_cathist_captured(v.hist, v.db, &first, &last, err)) >= 0) {
		ws_buf_printf(&out, json ? "{\"captured\":%u,\"first\":\"" WS_LSN_FMT "\",\"last\":\"" WS_LSN_FMT "\"}\n"
		                         : "captured %u " WS_LSN_FMT " " WS_LSN_FMT "\n",
		              v.db, WS_LSN_ARG(first.lsn), WS_LSN_ARG(last.lsn));
		rc = ws_cathist_walk(v.hist, v.db, dump_entry, &out, err);
	}
	if (rc == 0)
		rc = out_flush(&out, err);
	ws_buf_free(&out);
	ws_cathist_close(v.hist);
	return rc;
}

/* ---- boundaries ---- */
static void
put_oids(struct ws_buf *out, const char *what, const ws_oid *v, size_t n)
{
	if (!json && !n)
		return;
	ws_buf_printf(out, json ? ",\"%s\":[" : " %s=", what);
	for (size_t i = 0; i < n; i++)
		ws_buf_printf(out, i ? ",%u" : "%u", v[i]);
	if (json)
		ws_buf_putc(out, ']');
}

static int
print_boundary(void *arg, const struct ws_boundary_at *b, struct ws_err *err)
{
	struct ws_buf *out = arg;
	const struct {
		bool on;
		const char *name;
	} flags[] = {{b->b.every_db, "every_database"}, {b->b.all_rels, "all_relations"}, {b->b.types, "types"},
	             {b->b.namespaces, "namespaces"}};

	ws_buf_printf(out, json ? "{\"end\":\"" WS_LSN_FMT "\",\"start\":\"" WS_LSN_FMT "\",\"xid\":%u,\"database\":%u"
	                        : WS_LSN_FMT " start=" WS_LSN_FMT " xid=%u database=%u",
	              WS_LSN_ARG(b->end.lsn), WS_LSN_ARG(b->start), b->xid, b->b.db);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
		if (flags[i].on)
			ws_buf_printf(out, json ? ",\"%s\":true" : " %s", flags[i].name);
	put_oids(out, "relations", b->ids.rels, b->ids.nrels);
	put_oids(out, "type_oids", b->ids.types, b->ids.ntypes);
	put_oids(out, "label_oids", b->ids.labels, b->ids.nlabels);
	put_oids(out, "namespace_oids", b->ids.namespaces, b->ids.nnamespaces);
	ws_buf_puts(out, json ? "}\n" : "\n");
	return out_flush(out, err);
}

static int
cmd_boundaries(const char *arg, struct ws_err *err)
{
	struct ws_pos start = {0};
	struct ws_buf out = {0};
	char *wal = split_lsn(arg, &start.lsn);
	int rc = ws_boundary_scan(wal, start, print_boundary, &out, err);

	ws_buf_free(&out);
	free(wal);
	return rc;
}

/* ---- kept, rewind ---- */
static int
cmd_kept(struct ws_err *err)
{
	struct ws_buf out = {0};
	int rc = ws_catquery_kept(conninfo ? conninfo : "", (int)timeout_s, &out, err);

	if (rc == 0)
		rc = output ? ws_file_replace(output, out.data, out.len, 0600, true, err) : out_flush(&out, err);
	ws_buf_free(&out);
	return rc;
}

static int
cmd_rewind(const char *arg, struct ws_err *err)
{
	struct ws_pos pos;

	if (need_state(err) != 0)
		return -1;
	char *text = ws_strdup(arg);
	char *colon = strchr(text, ':');

	if (colon)
		*colon = ' ';
	int rc = colon && ws_pos_parse(text, &pos) == 0 ? ws_capture_rewind(state, pos, err)
	                                                : ws_err_usage(err, "not a position TLI:LSN: %s", arg);

	free(text);
	return rc;
}

static int
cmd_restorable(const char *arg, struct ws_err *err)
{
	ws_lsn limit = 0;
	char *path;

	if (arg && ws_lsn_parse(arg + (*arg == '@'), &limit) != 0)
		return ws_err_usage(err, "not a position: %s", arg);
	if (need_state(err) != 0 || ws_capture_restorable(state, limit, &path, err) != 0)
		return -1;
	puts(path);
	free(path);
	return 0;
}

static int
dispatch(int argc, const char **argv, struct ws_err *err)
{
	const char *cmd = argc ? argv[0] : "";
	const struct ws_capture_opts co = {.state = state, .shadow = shadow, .timeout = timeout_s};

	if (!strcmp(cmd, "capture") && argc == 1)
		return ws_capture_run(&co, err);
	if (!strcmp(cmd, "show") && argc == 2)
		return cmd_show(argv[1], err);
	if ((!strcmp(cmd, "list") || !strcmp(cmd, "types")) && argc <= 2)
		return cmd_list(argc == 2 ? argv[1] : NULL, *cmd == 't', err);
	if (!strcmp(cmd, "dump") && argc == 1)
		return cmd_dump(err);
	if (!strcmp(cmd, "boundaries") && argc == 2)
		return cmd_boundaries(argv[1], err);
	if (!strcmp(cmd, "kept") && argc == 1)
		return cmd_kept(err);
	if (!strcmp(cmd, "restorable") && argc <= 2)
		return cmd_restorable(argc == 2 ? argv[1] : NULL, err);
	if (!strcmp(cmd, "rewind") && argc == 2)
		return cmd_rewind(argv[1], err);
	return ws_err_usage(err, argc ? "wrong command or operands: %s" : "no command%s", cmd);
}

static int
run(int argc, const char **argv, struct ws_err *err)
{
	bool capture = argc && !strcmp(argv[0], "capture");

	if (ws_tool_format(format, &json, err) != 0)
		;
	else if (timeout && (ws_parse_seconds(timeout, &timeout_s) != 0 || timeout_s < 1))
		ws_err_usage(err, "--timeout: not a time of at least a second: %s", timeout);
	else if (capture && need_state(err) != 0)
		;
	else {
		if (dispatch(argc, argv, err) == 0)
			return WS_OK;
	}
	return err->status;
}

int
main(int argc, char **argv)
{
	static const struct ws_tool tool = {
	    .name = "ws-catalog",
	    .synopsis = "capture | show RELATION[@LSN] | list [@LSN] | types [@LSN] | dump | boundaries WAL[@LSN] | kept | restorable [@LSN] | rewind TLI:LSN",
	    .options = options,
	    .run = run,
	};

	return ws_tool_main(&tool, argc, argv);
}
