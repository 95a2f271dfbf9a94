/* The boundaries of a piece of WAL, for people and tests; see ws/boundary.h. */
#include <stdlib.h>

#include "ws/boundary.h"
#include "ws/history.h"
#include "ws/waldir.h"
#include "ws/walread.h"

static int
take(const struct ws_rec *rec, const struct ws_walver *ver,
     int (*each)(void *arg, const struct ws_boundary_at *b, struct ws_err *err), void *arg, struct ws_err *err)
{
	struct ws_record r;
	struct ws_xactrec x;
	int rc;

	if (rec->rmid != WS_RM_XACT)
		return 0;
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	if ((rc = ws_xactrec_parse(&r, ver, &x, err)) <= 0)
		return rc;
	struct ws_boundary_at at = {.start = rec->start, .end = {rec->tli, rec->end}, .xid = x.xid};

	at.b = ws_boundary_of(&x, ver);
	if (!at.b.is)
		return 0;
	ws_boundary_ids(&x, ver, &at.ids);
	rc = each(arg, &at, err);
	ws_boundary_ids_fini(&at.ids);
	return rc;
}

int
ws_boundary_scan(const char *wal, struct ws_pos start,
                 int (*each)(void *arg, const struct ws_boundary_at *b, struct ws_err *err), void *arg,
                 struct ws_err *err)
{
	ws_lsn reached;

	return ws_boundary_scan_to(wal, start, UINT64_MAX, &reached, each, arg, err);
}

int
ws_boundary_scan_to(const char *wal, struct ws_pos start, ws_lsn stop, ws_lsn *reached,
                    int (*each)(void *arg, const struct ws_boundary_at *b, struct ws_err *err), void *arg,
                    struct ws_err *err)
{
	const struct ws_walsrc_opts o = {0};
	struct ws_walsrc *src = ws_walsrc_open(wal, start, &o, err);
	struct ws_walreader *reader = NULL;
	struct ws_walchunk ch;
	struct ws_rec rec;
	ws_tli tli = 0;
	int rc = -1;

	*reached = 0;
	if (!src)
		return -1;
	reader = ws_walreader_new(ws_walsrc_segsize(src), 0, 0);
	while ((rc = ws_walsrc_next(src, &ch, err)) == 1) {
		/* The fork's segment comes again under the descendant's name. */
		if (tli && ch.tli != tli)
			ws_walreader_fork(reader, ch.lsn, ws_walsrc_switch(src, tli, &ch));
		else if (!tli)
			ws_walreader_seek(reader, ch.lsn, start.lsn > ch.lsn ? start.lsn : ch.lsn);
		tli = ch.tli;
		if (ws_walreader_feed(reader, ch.lsn, ch.p, ch.n, err) != 0) {
			rc = -1;
			break;
		}
		while ((rc = ws_walsrc_record(src, ch.tli, reader, &rec, err)) == 1)
			if ((rc = take(&rec, ws_walreader_ver(reader), each, arg, err)) != 0)
				break;
		if (rc < 0 && ws_walreader_clean_end(reader)) {
			err->msg[0] = 0;
			rc = 0;
			break;
		}
		if (rc != 0)
			break;
		/* A record that is not whole at a page's end has its own end behind it. */
		*reached = (ch.lsn + ch.n) & ~((ws_lsn)WS_PAGE_SIZE - 1);
		if (*reached >= stop)
			break;
	}
	if (ws_walreader_end(reader) > *reached)
		*reached = ws_walreader_end(reader);
	ws_walreader_free(reader);
	ws_walsrc_close(src);
	return rc;
}
