/* What a client of the WAL server says, and the answers; see walsend.h.
 *
 * Any bytes may come: a message that is not understood ends the connection with an error, never
 * more. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recvdir.h"
#include "replmsg.h"
#include "servermsg.h"
#include "walsend.h"
#include "ws/file.h"
#include "ws/history.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define T_TEXT 25u
#define T_INT8 20u

void
client_fatal(struct client *c, const char *sqlstate, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ws_warn("client %u: %s", c->id, text);
	msg_error(&c->out, "FATAL", sqlstate, text);
	c->state = CL_CLOSING;
}

static void
error(struct client *c, const char *sqlstate, const char *text)
{
	ws_debug("client %u: %s", c->id, text);
	msg_error(&c->out, "ERROR", sqlstate, text);
	msg_ready(&c->out);
}

/* ---- start ---- */

static void
welcome(struct walsend *w, struct client *c, const struct startup *s)
{
	char version[64], num[16];
	const char *const params[][2] = {{"server_version", version},
									 {"server_encoding", "UTF8"},
									 {"client_encoding", "UTF8"},
									 {"integer_datetimes", "on"},
									 {"standard_conforming_strings", "on"},
									 {"DateStyle", "ISO, MDY"},
									 {"IntervalStyle", "postgres"},
									 {"TimeZone", "UTC"},
									 {"is_superuser", "on"},
									 {"session_authorization", "walshadow"},
									 {"application_name", s->application},
									 {"default_transaction_read_only", "off"},
									 {"in_hot_standby", "off"}};

	snprintf(version, sizeof version, "%d.0 (walshadow %s)", w->cluster.major, WS_VERSION);
	snprintf(num, sizeof num, "%d0000", w->cluster.major);
	if (s->minor > 0 || s->extensions)
		msg_negotiate(&c->out);
	msg_auth_ok(&c->out);
	for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
		msg_parameter(&c->out, params[i][0], params[i][1]);
	msg_ready(&c->out);
	snprintf(c->name, sizeof c->name, "%s", s->application);
	c->state = CL_COMMAND;
	ws_debug("client %u: connected: application_name=%s", c->id, c->name);
}

/* One packet of the start, n bytes behind its length word. */
static void
startup(struct walsend *w, struct client *c, const uint8_t *p, size_t n)
{
	struct startup s;

	if (startup_parse(p, n, &s) != 0) {
		client_fatal(c, "08P01", "invalid startup packet");
		return;
	}
	switch (s.kind) {
	case STARTUP_SSL:
	case STARTUP_GSS:
		ws_buf_putc(&c->out, 'N');
		break;
	case STARTUP_CANCEL:
		c->state = CL_CLOSING;
		break;
	case STARTUP_OTHER:
		client_fatal(c, "0A000", "unsupported frontend protocol");
		break;
	case STARTUP_V3:
		if (!s.replication)
			client_fatal(c, "0A000", "only replication connections are served here");
		else
			welcome(w, c, &s);
		break;
	}
}

/* ---- commands ---- */

static void
identify(struct walsend *w, struct client *c)
{
	static const struct column cols[] = {
		{"systemid", T_TEXT}, {"timeline", T_INT8}, {"xlogpos", T_TEXT}, {"dbname", T_TEXT}};
	char sysid[24], tli[16], pos[24];
	const char *vals[] = {sysid, tli, pos, NULL};
	struct ws_err err;

	if (walsend_end(w, &err) != 0) {
		error(c, "58030", err.msg);
		return;
	}
	if (w->end.lsn == 0) {
		error(c, "57P03", "there is no WAL to serve yet");
		return;
	}
	snprintf(sysid, sizeof sysid, "%" PRIu64, w->cluster.system_id);
	snprintf(tli, sizeof tli, "%u", w->end.tli);
	snprintf(pos, sizeof pos, "%X/%X", WS_LSN_ARG(w->end.lsn));
	msg_rows(&c->out, cols, 4);
	msg_row(&c->out, vals, NULL, 4);
	msg_complete(&c->out, "IDENTIFY_SYSTEM");
	msg_ready(&c->out);
}

static void
show(struct walsend *w, struct client *c, const char *name)
{
	char version[16], num[16], seg[16];
	uint32_t mb = w->cluster.segsize >> 20;
	const char *const known[][2] = {{"wal_segment_size", seg},   {"server_version", version},
									{"server_version_num", num}, {"data_directory_mode", "0700"},
									{"wal_level", "logical"},    {"wal_sender_timeout", "0"},
									{"wal_block_size", "8192"},  {"block_size", "8192"},
									{"integer_datetimes", "on"}, {"in_hot_standby", "off"},
									{"server_encoding", "UTF8"}, {"client_encoding", "UTF8"},
									{"primary_slot_name", ""},   {"ssl", "off"}};
	struct column col = {name, T_TEXT};
	char text[160];

	snprintf(version, sizeof version, "%d.0", w->cluster.major);
	snprintf(num, sizeof num, "%d0000", w->cluster.major);
	snprintf(seg, sizeof seg, mb >= 1024 ? "%uGB" : "%uMB", mb >= 1024 ? mb / 1024 : mb);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (!strcmp(known[i][0], name)) {
			msg_rows(&c->out, &col, 1);
			msg_row(&c->out, &known[i][1], NULL, 1);
			msg_complete(&c->out, "SHOW");
			msg_ready(&c->out);
			return;
		}
	snprintf(text, sizeof text, "unrecognized configuration parameter \"%s\"", name);
	error(c, "42704", text);
}

/* The file's bytes as they are.  An id between the known ones that has no file is answered with
 * a comment: a standby asks for every id below the newest, and dies for want of one. */
static void
history(struct walsend *w, struct client *c, ws_tli tli)
{
	static const struct column cols[] = {{"filename", T_TEXT}, {"content", T_TEXT}};
	char name[WS_WALNAME_MAX], text[160];
	struct ws_buf b = {0};
	struct ws_err err = {0};

	ws_history_name(name, tli);
	char *path = ws_asprintf("%s/%s", w->o->dir, name);
	int rc = ws_file_read(path, WS_HISTORY_MAX, &b, &err);

	free(path);
	if (rc == 0 && tli > 1 && w->gate && tli < ws_gate_tli(w->gate)) {
		ws_buf_puts(&b, "# no timeline of this number in this server's history\n");
		rc = 1;
	}
	msg_rows(&c->out, cols, 2);
	if (rc == 1) {
		const char *vals[] = {name, b.len ? (char *)b.data : ""};
		const size_t lens[] = {strlen(name), b.len};

		msg_row(&c->out, vals, lens, 2);
		msg_complete(&c->out, "TIMELINE_HISTORY");
		msg_ready(&c->out);
	} else {
		snprintf(text, sizeof text, "could not open file \"pg_wal/%s\": No such file or directory",
				 name);
		error(c, "58P01", rc < 0 ? err.msg : text);
	}
	ws_buf_free(&b);
}

/* What follows a timeline that has ended, and where; then two completes (walsender.c, StartReplication). */
static void
end_stream(struct walsend *w, struct client *c)
{
	static const struct column cols[] = {{"next_tli", T_INT8}, {"next_tli_startpos", T_TEXT}};
	char tli[16], pos[24];
	const char *const vals[] = {tli, pos};
	ws_tli next;
	ws_lsn last = ws_gate_end_of(w->gate, c->tli, &next);

	if (last && last != UINT64_MAX) {
		snprintf(tli, sizeof tli, "%u", next);
		snprintf(pos, sizeof pos, "%X/%X", WS_LSN_ARG(last));
		msg_rows(&c->out, cols, 2);
		msg_row(&c->out, vals, NULL, 2);
		ws_info("client %u: timeline %u has ended: sent=" WS_LSN_FMT " next=%u", c->id, c->tli, WS_LSN_ARG(c->sent),
				next);
	}
	msg_complete(&c->out, "START_STREAMING");
	msg_complete(&c->out, "START_REPLICATION");
	msg_ready(&c->out);
	c->state = CL_COMMAND;
	walout_close(c);
}

static void
start(struct walsend *w, struct client *c, const struct repl_cmd *cmd)
{
	char msg[300];

	if (!w->gate) {
		error(c, "57P03", "there is no WAL to serve yet");
		return;
	}
	ws_tli tli = cmd->tli ? cmd->tli : ws_gate_tli(w->gate), next;
	const char *state = walout_can_start(w, tli, cmd->lsn, msg, sizeof msg);

	if (state) {
		ws_warn("client %u: %s", c->id, msg);
		error(c, state, msg);
		return;
	}
	c->tli = tli;
	c->sent = cmd->lsn;
	c->write = c->flush = c->apply = 0;
	c->copy_done = false;
	c->last_sent_us = ws_now_us();
	if (cmd->lsn == ws_gate_end_of(w->gate, tli, &next)) {
		end_stream(w, c);
		return;
	}
	c->state = CL_STREAM;
	msg_copy_both(&c->out);
	ws_info("client %u: streaming: application_name=%s timeline=%u start=" WS_LSN_FMT, c->id,
			c->name, c->tli, WS_LSN_ARG(c->sent));
}

static void
one_row(struct client *c, const struct column *cols, const char *const *vals, size_t n,
		const char *tag)
{
	msg_rows(&c->out, cols, n);
	msg_row(&c->out, vals, NULL, n);
	msg_complete(&c->out, tag);
	msg_ready(&c->out);
}

static void
command(struct walsend *w, struct client *c, const char *text)
{
	static const struct column slot_cols[] = {
		{"slot_type", T_TEXT}, {"restart_lsn", T_TEXT}, {"restart_tli", T_INT8}};
	static const struct column path_col = {"set_config", T_TEXT};
	static const char *const nulls[3], *const empty[] = {""};
	struct repl_cmd cmd;

	if (repl_cmd_parse(text, &cmd) != 0) {
		error(c, "42601", "syntax error");
		return;
	}
	switch (cmd.kind) {
	case CMD_IDENTIFY:
		identify(w, c);
		break;
	case CMD_SHOW:
		show(w, c, cmd.name);
		break;
	case CMD_HISTORY:
		history(w, c, cmd.tli);
		break;
	case CMD_START:
		start(w, c, &cmd);
		break;
	case CMD_READ_SLOT: /* as for one that does not exist */
		one_row(c, slot_cols, nulls, 3, "READ_REPLICATION_SLOT");
		break;
	case CMD_SEARCH_PATH:
		one_row(c, &path_col, empty, 1, "SELECT 1");
		break;
	case CMD_EMPTY: {
		size_t m;

		msg_begin(&c->out, 'I', &m);
		msg_end(&c->out, m);
		msg_ready(&c->out);
		break;
	}
	case CMD_SLOT:
		error(c, "0A000",
			  "there are no replication slots here: WAL is kept by the shadow's own positions");
		break;
	case CMD_LOGICAL:
		error(c, "0A000", "only physical replication is served here");
		break;
	case CMD_UNKNOWN:
		error(c, "42601", "not a replication command that is known here");
		break;
	}
}

/* ---- the stream's other direction ---- */

static void
reply(struct walsend *w, struct client *c, const struct repl_msg *m)
{
	c->write = m->write;
	c->flush = m->flush;
	c->apply = m->apply;
	/* A receiver that applies nothing is no shadow. */
	if (m->apply) {
		if (m->flush)
			w->shadow_flush = (struct ws_pos){c->tli, m->flush};
		w->shadow_replay = (struct ws_pos){c->tli, m->apply};
		w->status_changed = true;
	}
	if (m->reply) {
		msg_keepalive(&c->out, c->sent, repl_time(ws_wall_us()), false);
		c->last_sent_us = ws_now_us();
	}
}

static void
stream_message(struct walsend *w, struct client *c, char type, const uint8_t *p, size_t n)
{
	struct repl_msg m;

	switch (type) {
	case 'd':
		if (repl_msg_parse(p, n, &m) != 0 || (m.kind != 'r' && m.kind != 'h'))
			client_fatal(c, "08P01", "unexpected message in the stream: type 0x%02x, %zu bytes",
						 n ? p[0] : 0, n);
		else if (m.kind == 'r')
			reply(w, c, &m);
		break;
	case 'c':
		if (!c->copy_done)
			msg_copy_done(&c->out);
		end_stream(w, c);
		break;
	case 'f':
		error(c, "57014", "the client failed the stream");
		c->state = CL_COMMAND;
		walout_close(c);
		break;
	case 'H': /* Flush, Sync: allowed in a copy and without meaning */
	case 'S':
		break;
	default:
		client_fatal(c, "08P01", "unexpected message type 0x%02x in a stream", (unsigned char)type);
	}
}

static void
message(struct walsend *w, struct client *c, char type, const uint8_t *p, size_t n)
{
	if (type == 'X') {
		c->dead = true;
		return;
	}
	if (c->state == CL_STREAM) {
		stream_message(w, c, type, p, n);
		return;
	}
	switch (type) {
	case 'Q':
		if (n == 0 || p[n - 1] != 0 || memchr(p, 0, n) != p + n - 1)
			client_fatal(c, "08P01", "invalid query message");
		else
			command(w, c, (const char *)p);
		break;
	case 'd': /* what was on its way when the stream ended */
	case 'c':
	case 'f':
		break;
	case 'S':
		msg_ready(&c->out);
		break;
	case 'P': /* extended protocol: a replication connection knows none (walsender.c) */
	case 'B':
	case 'E':
	case 'D':
	case 'C':
	case 'F':
		client_fatal(c, "08P01",
					 "extended query protocol not supported in a replication connection");
		break;
	default:
		client_fatal(c, "08P01", "invalid frontend message type 0x%02x", (unsigned char)type);
	}
}

/* Takes one message off c->in from *at.  1: taken, 0: it is not whole yet. */
static int
take(struct walsend *w, struct client *c, size_t *at)
{
	size_t left = c->in.len - *at, head = c->state == CL_STARTUP ? 0 : 1;
	size_t max = head ? MESSAGE_MAX : STARTUP_MAX;

	if (left < head + 4)
		return 0;
	const uint8_t *p = c->in.data + *at;
	size_t len = be32(p + head);

	if (len < 4 || len > max) {
		client_fatal(c, "08P01", "invalid message length %zu", len);
		return 0;
	}
	if (left < head + len)
		return 0;
	*at += head + len;
	if (head)
		message(w, c, (char)p[0], p + 5, len - 4);
	else
		startup(w, c, p + 4, len - 4);
	return 1;
}

void
walsend_input(struct walsend *w, struct client *c)
{
	size_t at = 0;

	while (!c->dead && c->state != CL_CLOSING && take(w, c, &at) == 1)
		;
	if (c->dead || c->state == CL_CLOSING)
		at = c->in.len;
	if (at) {
		memmove(c->in.data, c->in.data + at, c->in.len - at);
		c->in.len -= at;
	}
}
