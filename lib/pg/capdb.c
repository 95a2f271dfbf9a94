/* Which databases are captured, and their position files; see capture.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "ws/file.h"
#include "ws/log.h"
#include "ws/metrics.h"
#include "ws/pos.h"
#include "ws/tool.h"

struct consumer {
	char *name, *dbname;
	ws_oid db;
};

int
cap_pos(struct cap *c, const char *name, struct ws_pos *pos, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos/%s", c->o->state, name);
	int rc = ws_pos_read(path, pos, err);

	free(path);
	return rc;
}

static struct cap_db *
find(struct cap *c, ws_oid oid)
{
	for (size_t i = 0; i < c->ndbs; i++)
		if (c->dbs[i].oid == oid)
			return &c->dbs[i];
	return NULL;
}

/* The value of KEY= in lines of KEY=value, malloc'd, or NULL. */
static char *
value_of(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, key, n) && line[n] == '=')
			return ws_strndup(line + n + 1, strcspn(line + n + 1, "\n"));
	return NULL;
}

/* 1 read, 0 no configuration (yet), -1 error. */
static int
read_consumer(struct cap *c, const char *name, struct consumer *out, struct ws_err *err)
{
	char *path = ws_asprintf("%s/consumer/%s/config", c->o->state, name), *oid = NULL;
	struct ws_buf b = {0};
	int rc = ws_file_read(path, 1 << 20, &b, err);

	if (rc == 1) {
		oid = value_of(ws_buf_cstr(&b), "DATABASE_OID");
		char *end = oid;
		unsigned long v = oid ? strtoul(oid, &end, 10) : 0;

		if (!v || v > UINT32_MAX || *end || !isdigit((unsigned char)*oid)) {
			rc = ws_err_usage(err, "%s: DATABASE_OID is missing or no oid", path);
		} else {
			out->db = (ws_oid)v;
			out->dbname = value_of((char *)b.data, "DATABASE");
			out->name = ws_strdup(name);
		}
	}
	ws_buf_free(&b);
	free(oid);
	free(path);
	return rc;
}

/* Every consumer with a configuration; f returns 0 to go on. */
static int
each_consumer(struct cap *c, int (*f)(struct cap *c, const struct consumer *k, void *arg, struct ws_err *err),
              void *arg, struct ws_err *err)
{
	char *path = ws_asprintf("%s/consumer", c->o->state);
	DIR *d = opendir(path);
	struct dirent *e;
	int rc = 0;

	if (!d && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot open", path);
	while (d && rc == 0 && (e = readdir(d))) {
		struct consumer k = {0};

		if (e->d_name[0] == '.')
			continue;
		if ((rc = read_consumer(c, e->d_name, &k, err)) == 1)
			rc = f(c, &k, arg, err);
		free(k.name);
		free(k.dbname);
	}
	if (d)
		closedir(d);
	free(path);
	return rc;
}

static int
check_consumer_lost(struct cap *c, const struct consumer *k, void *arg, struct ws_err *err)
{
	struct cap_db *db = arg;
	struct ws_pos pos;
	char name[300];

	if (k->db != db->oid)
		return 0;
	snprintf(name, sizeof name, "ack.%s", k->name);
	int rc = cap_pos(c, name, &pos, err);

	if (rc == 1)
		return ws_err_op(err, "captured_missing",
		                 "%s/pos/captured.%u is missing, but consumer %s is at work: boundaries between could "
		                 "not be known",
		                 c->o->state, db->oid, k->name);
	return rc;
}

/* The position file, or what the history knows when that is more: a boundary is durable there
 * first.  A file that a power failure emptied is no loss either. */
static int
load_captured(struct cap *c, struct cap_db *db, struct ws_err *err)
{
	struct ws_pos first, last;
	char name[32];

	snprintf(name, sizeof name, "captured.%u", db->oid);
	int known = ws_cathist_captured(c->hist, db->oid, &first, &last, err);

	if (known < 0)
		return -1;
	int rc = cap_pos(c, name, &db->captured, err);

	if (rc < 0 && !err->sys && known) {
		ws_warn("%s; going on from the history", err->msg);
		err->msg[0] = 0;
		db->captured = last;
		rc = 1;
	}
	if (rc < 0)
		return -1;
	if (rc == 0)
		return each_consumer(c, check_consumer_lost, db, err);
	if (!known)
		return ws_err_op(err, "catalog_missing", "%s/catalog has no history of database %u, but it was captured "
		                                         "up to " WS_LSN_FMT,
		                 c->o->state, db->oid, WS_LSN_ARG(db->captured.lsn));
	if (last.lsn > db->captured.lsn)
		db->captured = last;
	db->has = true;
	*db->m_captured = (double)db->captured.lsn;
	return 0;
}

static int
follow(struct cap *c, ws_oid oid, const char *name, struct ws_err *err)
{
	struct cap_db *db = find(c, oid);
	char label[40];

	if (db) {
		if (!*db->name && name) {
			free(db->name);
			db->name = ws_strdup(name);
		}
		return 0;
	}
	c->dbs = ws_realloc(c->dbs, (c->ndbs + 1) * sizeof *c->dbs);
	db = &c->dbs[c->ndbs++];
	*db = (struct cap_db){.oid = oid, .name = ws_strdup(name ? name : "")};
	snprintf(label, sizeof label, "database=\"%u\"", oid);
	db->m_captured = ws_metric(ws_tool_metrics(), WS_GAUGE, "walshadow_catalog_captured_lsn", label,
	                           "Position up to which every boundary of the database is in the history");
	return load_captured(c, db, err);
}

static int
follow_consumer(struct cap *c, const struct consumer *k, void *arg, struct ws_err *err)
{
	(void)arg;
	return follow(c, k->db, k->dbname, err);
}

int
cap_scan(struct cap *c, struct ws_err *err)
{
	char *path = ws_asprintf("%s/pos", c->o->state);
	int rc = each_consumer(c, follow_consumer, NULL, err);
	DIR *d = rc == 0 ? opendir(path) : NULL;
	struct dirent *e;

	if (rc == 0 && !d && errno != ENOENT)
		rc = ws_err_sys(err, "%s: cannot open", path);
	/* A position without a consumer still holds the gate: it must go on. */
	while (d && rc == 0 && (e = readdir(d))) {
		char *end;

		if (strncmp(e->d_name, "captured.", 9) || !isdigit((unsigned char)e->d_name[9]))
			continue;
		unsigned long v = strtoul(e->d_name + 9, &end, 10);

		if (!*end && v && v <= UINT32_MAX)
			rc = follow(c, (ws_oid)v, NULL, err);
	}
	if (d)
		closedir(d);
	free(path);
	return rc;
}

int
cap_move(struct cap *c, struct cap_db *db, struct ws_pos to, bool sync, struct ws_err *err)
{
	if (db->has && to.lsn <= db->captured.lsn)
		return 0;
	char *path = ws_asprintf("%s/pos/captured.%u", c->o->state, db->oid);
	int rc = ws_pos_write(path, to, sync, err);

	free(path);
	if (rc != 0)
		return -1;
	db->captured = to;
	db->has = true;
	*db->m_captured = (double)to.lsn;
	return 0;
}

struct floor_arg {
	ws_oid db;
	ws_lsn floor;
	bool any;
};

static int
lower_floor(struct cap *c, const struct consumer *k, void *arg, struct ws_err *err)
{
	struct floor_arg *a = arg;
	struct ws_pos pos = {0};
	char name[300];

	if (k->db != a->db)
		return 0;
	snprintf(name, sizeof name, "floor.%s", k->name);
	int rc = cap_pos(c, name, &pos, err);

	if (rc < 0)
		return -1;
	if (!a->any || pos.lsn < a->floor)
		a->floor = pos.lsn;
	a->any = true;
	return 0;
}

int
cap_floor(struct cap *c, ws_oid db, ws_lsn *floor, struct ws_err *err)
{
	struct floor_arg a = {.db = db};
	int rc = each_consumer(c, lower_floor, &a, err);

	*floor = a.floor;
	return rc;
}

void
cap_fini(struct cap *c)
{
	for (size_t i = 0; i < c->ndbs; i++) {
		cap_disconnect(&c->dbs[i]);
		free(c->dbs[i].name);
	}
	free(c->dbs);
	free(c->shadow);
	ws_cathist_close(c->hist);
}
