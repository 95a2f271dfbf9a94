/* A slot as a line of text or as a JSON object; see ws/slot.h. */
#include <stdio.h>
#include <string.h>

#include "ws/lsn.h"
#include "ws/slot.h"
#include "ws/text.h"

/* The key; the value follows. */
static void
put_key(struct ws_slot_line *l, const char *key)
{
	if (l->json)
		ws_buf_printf(l->out, "%c\"%s\":", l->more ? ',' : '{', key);
	else
		ws_buf_printf(l->out, l->more ? " %s=" : "%s=", key);
	l->more = true;
}

void
ws_slot_put_text(struct ws_slot_line *l, const char *key, const char *text)
{
	bool none = !text || !*text;

	if (none && !l->json)
		return;
	put_key(l, key);
	if (none)
		ws_buf_puts(l->out, "null");
	else if (l->json || strpbrk(text, " \t\n\"\\"))
		ws_text_json(l->out, text);
	else
		ws_buf_puts(l->out, text);
}

void
ws_slot_put_lsn(struct ws_slot_line *l, const char *key, ws_lsn lsn)
{
	char text[32];

	snprintf(text, sizeof text, WS_LSN_FMT, WS_LSN_ARG(lsn));
	ws_slot_put_text(l, key, lsn ? text : NULL);
}

void
ws_slot_put_number(struct ws_slot_line *l, const char *key, bool has, int64_t n)
{
	if (!has && !l->json)
		return;
	put_key(l, key);
	if (has)
		ws_buf_printf(l->out, "%lld", (long long)n);
	else
		ws_buf_puts(l->out, "null");
}

void
ws_slot_put_bool(struct ws_slot_line *l, const char *key, bool v)
{
	put_key(l, key);
	if (l->json)
		ws_buf_puts(l->out, v ? "true" : "false");
	else
		ws_buf_puts(l->out, v ? "yes" : "no");
}

void
ws_slot_put_end(struct ws_slot_line *l)
{
	ws_buf_puts(l->out, l->json ? "}\n" : "\n");
	l->more = false;
}

void
ws_slot_put(struct ws_slot_line *l, const struct ws_slot *s)
{
	ws_slot_put_text(l, "slot", s->name);
	ws_slot_put_text(l, "type", s->logical ? "logical" : "physical");
	if (s->logical || l->json) {
		ws_slot_put_text(l, "plugin", s->plugin);
		ws_slot_put_text(l, "database", s->database);
		ws_slot_put_lsn(l, "confirmed_flush_lsn", s->confirmed);
	}
	if (s->temporary || l->json)
		ws_slot_put_bool(l, "temporary", s->temporary);
	ws_slot_put_bool(l, "active", s->active);
	ws_slot_put_number(l, "pid", s->pid != 0, s->pid);
	ws_slot_put_lsn(l, "restart_lsn", s->restart.lsn);
	ws_slot_put_number(l, "timeline", s->restart.tli != 0, s->restart.tli);
	ws_slot_put_text(l, "wal_status", s->wal_status);
	ws_slot_put_number(l, "retained_bytes", s->has_retained, s->retained);
	ws_slot_put_number(l, "safe_wal_size", s->has_safe, s->safe);
	ws_slot_put_text(l, "invalidation_reason", s->invalidation);
	ws_slot_put_text(l, "inactive_since", s->inactive_since);
}
