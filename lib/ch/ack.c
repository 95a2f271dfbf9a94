/* Durable positions of ws-emit: sent, ack, and what initial loads reached; see lib/ch/emit.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"
#include "ws/file.h"
#include "ws/pos.h"
#include "ws/published.h"
#include "ws/tool.h"

#define ACK_INTERVAL_US 100000

static char *
pos_path(const struct ws_emit *e, const char *what)
{
	return ws_asprintf("%s/pos/%s.%s", e->o.state, what, e->o.consumer);
}

static int
read_pos(const struct ws_emit *e, const char *what, struct ws_pos *p, bool *have,
		 struct ws_err *err)
{
	char *path = pos_path(e, what);
	int rc = ws_pos_read(path, p, err);

	free(path);
	*have = rc == 1;
	return rc < 0 ? -1 : 0;
}

/* Without ack, ws-decode sends everything from the floor, of transactions that began before it only
 * a part: what was acknowledged once must not be taken from that. */
static int
check_ack(const struct ws_emit *e, struct ws_err *err)
{
	struct ws_pos floor;
	bool have;

	if (e->have_ack || !e->have_sent || e->o.load)
		return 0;
	if (read_pos(e, "floor", &floor, &have, err) != 0)
		return -1;
	return !have
			   ? 0
			   : ws_err_op(err, "ack_missing",
						   "%s/pos/ack.%s is missing, but this consumer has sent changes: load its "
						   "tables again",
						   e->o.state, e->o.consumer);
}

int
emit_positions_open(struct ws_emit *e, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/pos", e->o.state),
		 *load = ws_asprintf("%s/consumer/%s/load", e->o.state, e->o.consumer);
	int rc = ws_mkdir_p(dir, 0700, err) != 0 || ws_mkdir_p(load, 0700, err) != 0 ? -1 : 0;

	free(dir);
	free(load);
	if (rc != 0 || read_pos(e, "ack", &e->ack, &e->have_ack, err) != 0 ||
		read_pos(e, "sent", &e->sent, &e->have_sent, err) != 0 || check_ack(e, err) != 0 ||
		emit_common_check(e, err) != 0)
		return -1;
	e->start_ack = e->have_ack ? e->ack : (struct ws_pos){0, 0};
	e->last = e->start_ack;
	*e->m_ack = (double)e->ack.lsn;
	*e->m_sent = (double)e->sent.lsn;
	return 0;
}

int
emit_sent(struct ws_emit *e, struct ws_pos p, struct ws_err *err)
{
	if (p.lsn == 0 || (e->have_sent && p.lsn <= e->sent.lsn))
		return 0;
	char *path = pos_path(e, "sent");
	int rc = ws_published_move(e->o.state, path, p, err);

	free(path);
	if (rc == 0)
		rc = emit_common_sent(e, p, err);
	if (rc == 0) {
		e->sent = p;
		e->have_sent = true;
		*e->m_sent = (double)p.lsn;
	}
	return rc;
}

int
emit_sent_seen(struct ws_emit *e, struct ws_err *err)
{
	return emit_sent(
		e, e->o.load ? (struct ws_pos){e->load_tli, e->load_hi} : (struct ws_pos){e->tli, e->seen},
		err);
}

int
emit_ack(struct ws_emit *e, bool now, struct ws_err *err)
{
	struct ws_pos p = e->oldest ? e->oldest->before : e->last;
	uint64_t us = ws_now_us();

	/* The base is delivered as a whole: no ack inside a load. */
	if (e->o.load || p.lsn == 0 || (e->have_ack && p.lsn <= e->ack.lsn) ||
		(!now && us - e->ack_us < ACK_INTERVAL_US))
		return 0;
	char *path = pos_path(e, "ack");
	int rc = ws_pos_write(path, p, true, err);

	free(path);
	if (rc == 0)
		rc = emit_common_ack(e, err);
	if (rc == 0) {
		e->ack = p;
		e->have_ack = true;
		e->ack_us = us;
		*e->m_ack = (double)p.lsn;
	}
	return rc;
}

/* ---- initial loads: consumer/NAME/load/RELOID holds `TLI LSN destination` ---- */

static char *
load_path(const struct ws_emit *e, ws_oid oid)
{
	return ws_asprintf("%s/consumer/%s/load/%u", e->o.state, e->o.consumer, oid);
}

int
emit_loaded_read(struct ws_emit *e, ws_oid oid, ws_lsn *lsn, struct ws_err *err)
{
	char *path = load_path(e, oid);
	struct ws_pos p = {0, 0};
	int rc = ws_pos_read_first(path, &p, err);

	*lsn = rc == 1 ? p.lsn : 0;
	free(path);
	return rc < 0 ? -1 : 0;
}

int
emit_loaded_write(struct ws_emit *e, const struct ch_tab *t, struct ws_pos p, struct ws_err *err)
{
	struct ws_buf text = {0};
	char pos[40], *path = load_path(e, t->oid);

	ws_pos_format(pos, p);
	ws_buf_printf(&text, "%s ", pos);
	ch_full_name(&text, t->db, t->name);
	ws_buf_putc(&text, '\n');
	int rc = ws_file_replace(path, text.data, text.len, 0600, true, err);

	if (rc == 0)
		rc = emit_common_loaded(e, t->oid, p, &text, err);
	ws_buf_free(&text);
	free(path);
	return rc;
}
