/* Connection strings for slots: one's parameters over another's, hosts, the session that knows both
 * replication commands and SQL; see ws/slot.h. */
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "ws/pgcopy.h"
#include "ws/slot.h"

/* What libpq takes for a connection string and not for a database's name. */
static bool
is_conninfo(const char *s)
{
	return strchr(s, '=') || !strncmp(s, "postgresql://", 13) || !strncmp(s, "postgres://", 11);
}

/* All parameters that there are, with values or without.  Free by PQconninfoFree. */
static PQconninfoOption *
parse(const char *s, struct ws_err *err)
{
	struct ws_buf b = {0};

	if (s && *s && !is_conninfo(s)) {
		pg_put_parameter(&b, "dbname", s);
		s = ws_buf_cstr(&b);
	}
	/* libpq's own message could quote a part of a password. */
	PQconninfoOption *opts = PQconninfoParse(s ? s : "", NULL);

	ws_buf_free(&b);
	if (!opts)
		ws_err_usage(err, "malformed connection string");
	return opts;
}

static const char *
value_of(const PQconninfoOption *o, const char *key)
{
	for (; o->keyword; o++)
		if (!strcmp(o->keyword, key))
			return o->val && *o->val ? o->val : NULL;
	return NULL;
}

/* What belongs to the hosts that it was given with, and not to another. */
static bool
is_of_hosts(const PQconninfoOption *o)
{
	return !strcmp(o->keyword, "hostaddr") || !strcmp(o->keyword, "target_session_attrs") ||
		   !strcmp(o->keyword, "load_balance_hosts") ||
		   (!strcmp(o->keyword, "port") && o->val && strchr(o->val, ','));
}

/* Both lists have the same keywords in the same order. */
static char *
merge(const PQconninfoOption *base, const PQconninfoOption *over)
{
	bool new_host = value_of(over, "host") || value_of(over, "hostaddr");
	bool database = value_of(base, "service") || value_of(over, "service") || getenv("PGSERVICE") ||
					getenv("PGDATABASE");
	struct ws_buf b = {0};

	for (; base->keyword; base++, over++) {
		const char *v = over->val ? over->val : base->val;

		if (new_host && !over->val && is_of_hosts(base))
			continue;
		if (!v || !strcmp(base->keyword, "replication"))
			continue;
		pg_put_parameter(&b, base->keyword, v);
		database |= !strcmp(base->keyword, "dbname");
	}
	if (!database)
		pg_put_parameter(&b, "dbname", "postgres");
	return ws_buf_cstr(&b);
}

char *
ws_slot_conninfo(const char *base, const char *over, struct ws_err *err)
{
	PQconninfoOption *b = parse(base, err), *o = b ? parse(over, err) : NULL;
	char *s = o ? merge(b, o) : NULL;

	PQconninfoFree(b);
	PQconninfoFree(o);
	return s;
}

char *
ws_slot_parameters(const char *host, const char *port, const char *user)
{
	const char *const given[][2] = {{"host", host}, {"port", port}, {"user", user}};
	struct ws_buf b = {0};

	for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
		if (given[i][1])
			pg_put_parameter(&b, given[i][0], given[i][1]);
	return ws_buf_cstr(&b);
}

/* HOST[:PORT] into parameters; an address of IPv6 with a port stands in brackets. */
static char *
of_host(const char *host)
{
	const char *colon = strrchr(host, ':'), *end = host + strlen(host), *port = NULL;
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	bool bracket = *host == '[' && strchr(host, ']');

	if (colon && digits && !colon[1 + digits] &&
		(bracket ? colon[-1] == ']' : *host == '/' || strchr(host, ':') == colon)) {
		port = colon + 1;
		end = colon;
	}
	if (bracket && end[-1] == ']') {
		host++;
		end--;
	}
	char *name = ws_strndup(host, (size_t)(end - host));

	char *s = ws_slot_parameters(name, port, NULL);

	free(name);
	return s;
}

/* Host and port, and nothing else of it. */
static char *
name_of(const PQconninfoOption *o)
{
	const char *host = value_of(o, "host"), *port = value_of(o, "port");

	if (!host)
		host = value_of(o, "hostaddr");
	if (!host && value_of(o, "service"))
		return ws_asprintf("service=%s", value_of(o, "service"));
	if (!host)
		host = "local";
	return port ? ws_asprintf("%s:%s", host, port) : ws_strdup(host);
}

int
ws_slot_candidate(const char *base, const char *host, char **conninfo, char **name,
				  struct ws_err *err)
{
	char *over = is_conninfo(host) ? ws_strdup(host) : of_host(host);
	PQconninfoOption *o = NULL;

	*name = NULL;
	*conninfo = ws_slot_conninfo(base, over, err);
	if (*conninfo)
		o = parse(is_conninfo(host) ? *conninfo : over, err);
	if (o)
		*name = is_conninfo(host) ? name_of(o) : ws_strdup(host);
	PQconninfoFree(o);
	free(over);
	if (*name)
		return 0;
	free(*conninfo);
	*conninfo = NULL;
	return -1;
}

struct ws_pg *
ws_slot_connect(const char *conninfo, int timeout_ms, struct ws_err *err)
{
	struct ws_pg_opts o = {.mode = WS_PG_DATABASE,
						   .appname = "ws-slot",
						   .timeout_ms = timeout_ms,
						   .answer_ms = timeout_ms};
	char *whole = ws_slot_conninfo(conninfo, NULL, err);
	struct ws_pg *c = NULL;

	o.conninfo = whole;
	if (whole)
		c = ws_pg_open(&o, NULL, err);
	free(whole);
	/* It may rest for long between two visits. */
	if (c && ws_pg_no_timeouts(c, err) != 0) {
		ws_pg_close(c);
		c = NULL;
	}
	return c;
}
