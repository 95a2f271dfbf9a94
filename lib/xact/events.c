/* What is sent beside rows: begin and commit, TRUNCATE, schema and replace marks, messages,
 * sequences. */
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "ws/cursor.h"

int
ws_ev_flush(struct ws_decoder *d, struct ws_err *err)
{
	if (!d->o.flush || d->o.out->len < d->o.flush_at)
		return 0;
	return d->o.flush(d->o.arg, err);
}

int
ws_ev_begin(struct ws_decoder *d, struct ws_err *err)
{
	struct ws_change c = {.type = WS_C_BEGIN, .begin = d->begin};

	(void)err;
	if (d->begun)
		return 0;
	d->begun = true;
	ws_change_put(d->o.out, &c);
	return 0;
}

void
ws_ev_commit(struct ws_decoder *d)
{
	struct ws_change c = {
		.type = WS_C_COMMIT,
		.commit = {d->begin.xid, d->begin.commit_lsn, d->begin.end_lsn, d->tli, d->ordinal},
	};

	if (!d->begun)
		return;
	ws_change_put(d->o.out, &c);
	d->begun = false;
	d->last_commit = d->begin.end_lsn;
	d->st.commits++;
}

static int
put(struct ws_decoder *d, const struct ws_change *c, struct ws_err *err)
{
	ws_change_put(d->o.out, c);
	return ws_ev_flush(d, err);
}

/* ---- TRUNCATE ---- */

int
ws_ev_truncate(struct ws_decoder *d, const struct ws_heaprec *h, ws_lsn lsn, struct ws_err *err)
{
	uint32_t *handles = ws_malloc(h->noids * sizeof *handles), n = 0;
	struct ws_shape *sh;
	int rc = 0;

	for (uint32_t i = 0; i < h->noids && rc >= 0; i++) {
		ws_oid oid = ws_heaprec_oid(h, i);

		/* 0: dropped later in the transaction. */
		rc = ws_shapes_rel(&d->shapes, oid, &sh, err);
		if (rc <= 0 || (sh->cls != WS_REL_USER && sh->cls != WS_REL_ROOT))
			continue;
		if (d->chain && ws_chain_judge(d->chain, 0, lsn, oid) == WS_PLACE_VOID)
			continue;
		rc = ws_ev_begin(d, err);
		if (rc == 0)
			rc = ws_shapes_describe(&d->shapes, sh, d->o.out, err);
		handles[n++] = sh->handle;
	}
	if (rc >= 0)
		rc = 0;
	if (rc == 0 && n) {
		struct ws_change c = {
			.type = WS_C_TRUNCATE,
			.truncate = {.ordinal = ++d->ordinal,
		                 .flags =
		                     (uint8_t)((h->flags & WS_HR_CASCADE ? WS_TRUNCATE_CASCADE : 0) |
		                               (h->flags & WS_HR_RESTART_SEQS ? WS_TRUNCATE_RESTART : 0)),
		                 .nhandles = n,
		                 .handles = handles},
		};

		d->st.truncates++;
		rc = put(d, &c, err);
	}
	free(handles);
	return rc;
}

/* ---- schema, replace ---- */

int
ws_ev_schema(struct ws_decoder *d, char what, struct ws_shape *before, struct ws_shape *after,
             struct ws_err *err)
{
	if (ws_ev_begin(d, err) != 0 ||
	    (before && ws_shapes_describe(&d->shapes, before, d->o.out, err) != 0) ||
	    (after && ws_shapes_describe(&d->shapes, after, d->o.out, err) != 0))
		return -1;
	struct ws_change c = {
		.type = WS_C_SCHEMA,
		.schema = {++d->ordinal, what, after ? after->rel->oid : before->rel->oid,
	               before ? before->handle : 0, after ? after->handle : 0},
	};

	d->st.schemas++;
	return put(d, &c, err);
}

int
ws_ev_replace(struct ws_decoder *d, bool begin, struct ws_shape *sh, struct ws_err *err)
{
	if (ws_ev_begin(d, err) != 0 || ws_shapes_describe(&d->shapes, sh, d->o.out, err) != 0)
		return -1;
	struct ws_change c = {
		.type = begin ? WS_C_REPLACE_BEGIN : WS_C_REPLACE_END,
		.replace = {++d->ordinal, sh->handle},
	};

	d->st.replaces += begin;
	return put(d, &c, err);
}

/* ---- messages, sequences ---- */

/* xl_logical_message: db @0, transactional @4, prefix size @8 (NUL included), size @16, then both.
 */
int
ws_ev_message(struct ws_decoder *d, const struct ws_record *r, bool transactional,
              struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(r->main, r->main_len);
	ws_oid db = ws_cur_u32(&c);

	ws_cur_skip(&c, 4);
	uint64_t plen = ws_cur_u64(&c), len = ws_cur_u64(&c);
	const uint8_t *prefix = plen && plen <= r->main_len ? ws_cur_bytes(&c, plen) : NULL;
	const uint8_t *content = prefix && len <= r->main_len ? ws_cur_bytes(&c, len) : NULL;

	if (!content || prefix[plen - 1] != 0 || memchr(prefix, 0, plen - 1))
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": malformed logical message",
		                 WS_LSN_ARG(r->rec->start));
	if (db != d->o.db)
		return 0;
	if (transactional && ws_ev_begin(d, err) != 0)
		return -1;
	struct ws_change ev = {
		.type = WS_C_MESSAGE,
		.message = {transactional ? ++d->ordinal : 0, transactional, r->rec->start,
	                (const char *)prefix, content, (uint32_t)len},
	};

	d->st.messages++;
	return put(d, &ev, err);
}

/* xl_seq_rec: locator; then the sequence's tuple with its header: hoff @22, last_value, log_cnt,
 * is_called (commands/sequence.h). */
int
ws_ev_sequence(struct ws_decoder *d, const struct ws_record *r, bool transactional,
               struct ws_err *err)
{
	const uint8_t *t = r->main + 12;
	struct ws_shape *sh = NULL;

	if (r->main_len < 12 + 24 || t[22] < 23 || r->main_len < 12u + t[22] + 17)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": malformed sequence record",
		                 WS_LSN_ARG(r->rec->start));
	struct ws_locator loc = {ws_le32(r->main), ws_le32(r->main + 4), ws_le32(r->main + 8)};

	if (loc.db != d->o.db || ws_row_file(d, &loc, r->rec->start, false, &sh, err) != 0)
		return loc.db != d->o.db ? 0 : -1;
	if (!sh || sh->cls != WS_REL_SEQUENCE)
		return 0; /* dropped by the same transaction */
	if (transactional && ws_ev_begin(d, err) != 0)
		return -1;
	t += t[22];
	struct ws_change ev = {
		.type = WS_C_SEQUENCE,
		.sequence = {transactional ? ++d->ordinal : 0, r->rec->start, sh->rel->oid,
	                 sh->rel->nspname, sh->rel->name, (int64_t)ws_le64(t), t[16] != 0},
	};

	d->st.sequences++;
	return put(d, &ev, err);
}
