/* Server-side protocol messages; see servermsg.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "replmsg.h"
#include "servermsg.h"
#include "ws/lsn.h"

/* libpq/pqcomm.h */
#define CODE_CANCEL ((1234u << 16) | 5678u)
#define CODE_SSL    ((1234u << 16) | 5679u)
#define CODE_GSS    ((1234u << 16) | 5680u)

/* A NUL-terminated string at *p, or NULL. */
static const char *
take_string(const uint8_t **p, const uint8_t *end)
{
	const uint8_t *nul = memchr(*p, 0, (size_t)(end - *p));
	const char *s = (const char *)*p;

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

int
startup_parse(const uint8_t *p, size_t n, struct startup *s)
{
	const uint8_t *end = p + n;

	*s = (struct startup){.kind = STARTUP_OTHER};
	if (n < 4)
		return -1;
	uint32_t code = be32(p);

	p += 4;
	switch (code) {
	case CODE_SSL:
		s->kind = STARTUP_SSL;
		return 0;
	case CODE_GSS:
		s->kind = STARTUP_GSS;
		return 0;
	case CODE_CANCEL:
		s->kind = STARTUP_CANCEL;
		return 0;
	}
	if (code >> 16 != 3)
		return 0;
	s->kind = STARTUP_V3;
	s->minor = code & 0xffff;
	for (;;) {
		const char *key = take_string(&p, end);

		if (!key)
			return -1;
		if (!*key)
			return 0;
		const char *val = take_string(&p, end);

		if (!val)
			return -1;
		if (!strcmp(key, "replication")) {
			s->database = !strcmp(val, "database");
			s->replication = s->database || !strcasecmp(val, "true") || !strcasecmp(val, "on") ||
							 !strcasecmp(val, "yes") || !strcmp(val, "1");
		} else if (!strcmp(key, "application_name")) {
			snprintf(s->application, sizeof s->application, "%s", val);
			for (char *c = s->application; *c; c++) /* it goes into the log */
				if (!isprint((unsigned char)*c))
					*c = '?';
		} else if (!strncmp(key, "_pq_.", 5)) {
			s->extensions = true;
		}
	}
}

/* The next word: letters, digits, _ . / and -, or a quoted identifier (without its quotes). */
static bool
word(const char **s, char *out, size_t cap)
{
	size_t n = 0;

	*s += strspn(*s, " \t\r\n");
	if (**s == '"') {
		size_t len = strcspn(*s + 1, "\"");

		if ((*s)[1 + len] != '"' || len >= cap || len == 0)
			return false;
		memcpy(out, *s + 1, len);
		out[len] = 0;
		*s += len + 2;
		return true;
	}
	while (isalnum((unsigned char)**s) || (**s && strchr("_./-", **s))) {
		if (n + 1 >= cap)
			return false;
		out[n++] = *(*s)++;
	}
	out[n] = 0;
	return n > 0;
}

static bool
at_end(const char *s)
{
	return s[strspn(s, " \t\r\n;")] == 0;
}

static int
parse_tli(const char *w, ws_tli *tli)
{
	char *end;
	unsigned long v = strtoul(w, &end, 10);

	if (*w < '0' || *w > '9' || *end || v == 0 || v > UINT32_MAX)
		return -1;
	*tli = (ws_tli)v;
	return 0;
}

static int
parse_start(const char *s, struct repl_cmd *c)
{
	char w[80];

	c->kind = CMD_START;
	if (!word(&s, w, sizeof w))
		return -1;
	if (!strcasecmp(w, "SLOT") && (!word(&s, w, sizeof w) || !word(&s, w, sizeof w)))
		return -1;
	if (!strcasecmp(w, "LOGICAL")) {
		c->kind = CMD_LOGICAL;
		return 0;
	}
	if (!strcasecmp(w, "PHYSICAL") && !word(&s, w, sizeof w))
		return -1;
	if (ws_lsn_parse(w, &c->lsn) != 0)
		return -1;
	if (at_end(s))
		return 0;
	if (!word(&s, w, sizeof w) || strcasecmp(w, "TIMELINE") || !word(&s, w, sizeof w) ||
		parse_tli(w, &c->tli) != 0)
		return -1;
	return at_end(s) ? 0 : -1;
}

int
repl_cmd_parse(const char *text, struct repl_cmd *c)
{
	const char *s = text;
	char w[80];

	*c = (struct repl_cmd){.kind = CMD_UNKNOWN};
	if (at_end(s)) {
		c->kind = CMD_EMPTY;
		return 0;
	}
	if (!word(&s, w, sizeof w))
		return -1;
	if (!strcasecmp(w, "IDENTIFY_SYSTEM")) {
		c->kind = CMD_IDENTIFY;
		return at_end(s) ? 0 : -1;
	}
	if (!strcasecmp(w, "START_REPLICATION"))
		return parse_start(s, c);
	if (!strcasecmp(w, "SHOW")) {
		c->kind = CMD_SHOW;
		if (!word(&s, c->name, sizeof c->name))
			return -1;
		for (char *p = c->name; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		return at_end(s) ? 0 : -1;
	}
	if (!strcasecmp(w, "TIMELINE_HISTORY")) {
		c->kind = CMD_HISTORY;
		return word(&s, w, sizeof w) && parse_tli(w, &c->tli) == 0 && at_end(s) ? 0 : -1;
	}
	if (!strcasecmp(w, "READ_REPLICATION_SLOT")) {
		c->kind = CMD_READ_SLOT;
		return word(&s, w, sizeof w) && at_end(s) ? 0 : -1;
	}
	if (!strcasecmp(w, "CREATE_REPLICATION_SLOT") || !strcasecmp(w, "DROP_REPLICATION_SLOT") ||
		!strcasecmp(w, "ALTER_REPLICATION_SLOT"))
		c->kind = CMD_SLOT;
	else if (!strcasecmp(w, "SELECT") && strstr(s, "set_config('search_path'"))
		c->kind = CMD_SEARCH_PATH; /* libpq's clients begin with it */
	return 0;
}

/* ---- builders ---- */

static void
put32(struct ws_buf *b, uint32_t v)
{
	uint8_t x[4];

	put_be32(x, v);
	ws_buf_put(b, x, 4);
}

static void
put16(struct ws_buf *b, uint16_t v)
{
	uint8_t x[2];

	put_be16(x, v);
	ws_buf_put(b, x, 2);
}

static void
put_cstr(struct ws_buf *b, const char *s)
{
	ws_buf_put(b, s, strlen(s) + 1);
}

void
msg_begin(struct ws_buf *b, char type, size_t *mark)
{
	ws_buf_putc(b, (uint8_t)type);
	*mark = b->len;
	put32(b, 0);
}

void
msg_end(struct ws_buf *b, size_t mark)
{
	put_be32(b->data + mark, (uint32_t)(b->len - mark));
}

void
msg_auth_ok(struct ws_buf *b)
{
	size_t m;

	msg_begin(b, 'R', &m);
	put32(b, 0);
	msg_end(b, m);
}

void
msg_parameter(struct ws_buf *b, const char *name, const char *value)
{
	size_t m;

	msg_begin(b, 'S', &m);
	put_cstr(b, name);
	put_cstr(b, value);
	msg_end(b, m);
}

/* Protocol 3.0 and none of the extensions asked for. */
void
msg_negotiate(struct ws_buf *b)
{
	size_t m;

	msg_begin(b, 'v', &m);
	put32(b, 3u << 16);
	put32(b, 0);
	msg_end(b, m);
}

void
msg_ready(struct ws_buf *b)
{
	size_t m;

	msg_begin(b, 'Z', &m);
	ws_buf_putc(b, 'I');
	msg_end(b, m);
}

void
msg_rows(struct ws_buf *b, const struct column *cols, size_t n)
{
	size_t m;

	msg_begin(b, 'T', &m);
	put16(b, (uint16_t)n);
	for (size_t i = 0; i < n; i++) {
		put_cstr(b, cols[i].name);
		put32(b, 0);
		put16(b, 0);
		put32(b, cols[i].type);
		put16(b, cols[i].type == 20 ? 8 : cols[i].type == 23 ? 4 : 0xffff);
		put32(b, 0xffffffff);
		put16(b, 0);
	}
	msg_end(b, m);
}

void
msg_row(struct ws_buf *b, const char *const *values, const size_t *lens, size_t n)
{
	size_t m;

	msg_begin(b, 'D', &m);
	put16(b, (uint16_t)n);
	for (size_t i = 0; i < n; i++) {
		if (!values[i]) {
			put32(b, 0xffffffff);
			continue;
		}
		size_t len = lens ? lens[i] : strlen(values[i]);

		put32(b, (uint32_t)len);
		ws_buf_put(b, values[i], len);
	}
	msg_end(b, m);
}

void
msg_complete(struct ws_buf *b, const char *tag)
{
	size_t m;

	msg_begin(b, 'C', &m);
	put_cstr(b, tag);
	msg_end(b, m);
}

void
msg_copy_both(struct ws_buf *b)
{
	size_t m;

	msg_begin(b, 'W', &m);
	ws_buf_putc(b, 0);
	put16(b, 0);
	msg_end(b, m);
}

void
msg_copy_done(struct ws_buf *b)
{
	size_t m;

	msg_begin(b, 'c', &m);
	msg_end(b, m);
}

void
msg_error(struct ws_buf *b, const char *severity, const char *sqlstate, const char *text)
{
	const struct {
		char field;
		const char *value;
	} f[] = {{'S', severity}, {'V', severity}, {'C', sqlstate}, {'M', text}};
	size_t m;

	msg_begin(b, 'E', &m);
	for (size_t i = 0; i < sizeof f / sizeof f[0]; i++) {
		ws_buf_putc(b, (uint8_t)f[i].field);
		put_cstr(b, f[i].value);
	}
	ws_buf_putc(b, 0);
	msg_end(b, m);
}

void
msg_keepalive(struct ws_buf *b, ws_lsn end, int64_t now, bool reply)
{
	uint8_t x[18];
	size_t m;

	x[0] = 'k';
	put_be64(x + 1, end);
	put_be64(x + 9, (uint64_t)now);
	x[17] = reply;
	msg_begin(b, 'd', &m);
	ws_buf_put(b, x, sizeof x);
	msg_end(b, m);
}
