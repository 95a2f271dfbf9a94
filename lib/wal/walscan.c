/* Every record of a piece of WAL; see ws/walscan.h. */
#include "ws/waldir.h"
#include "ws/walread.h"
#include "ws/walscan.h"

int
ws_walscan(const char *wal, struct ws_pos start, ws_lsn stop, ws_lsn *reached,
           int (*each)(void *arg, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err),
           void *arg, struct ws_err *err)
{
	const struct ws_walsrc_opts o = {0};
	struct ws_walsrc *src = ws_walsrc_open(wal, start, &o, err);
	struct ws_walchunk ch;
	struct ws_rec rec;
	ws_tli tli = 0;
	ws_lsn seen = 0;
	int rc = 0;

	if (!src)
		return -1;
	struct ws_walreader *reader = ws_walreader_new(ws_walsrc_segsize(src), 0, 0);

	while (seen < stop && (rc = ws_walsrc_next(src, &ch, err)) == 1) {
		/* The fork's segment comes again under the descendant's name. */
		if (tli && ch.tli != tli)
			ws_walreader_fork(reader, ch.lsn, ws_walsrc_switch(src, tli, &ch));
		else if (!tli)
			ws_walreader_seek(reader, ch.lsn, start.lsn > ch.lsn ? start.lsn : ch.lsn);
		tli = ch.tli;
		rc = ws_walreader_feed(reader, ch.lsn, ch.p, ch.n, err);
		while (rc == 0 && (rc = ws_walsrc_record(src, tli, reader, &rec, err)) == 1)
			if ((rc = each(arg, &rec, ws_walreader_ver(reader), err)) != 0)
				goto out;
		if (rc < 0 && (ws_walreader_clean_end(reader) ||
		               (ws_walreader_torn(reader) && ws_walreader_failed_below(reader) > stop))) {
			err->msg[0] = 0;
			rc = 0;
			break;
		}
		if (rc != 0)
			break;
		/* A record that is not whole at a page's end has its own end behind it. */
		seen = (ch.lsn + ch.n) & ~((ws_lsn)WS_PAGE_SIZE - 1);
	}
out:
	if (ws_walreader_end(reader) > seen)
		seen = ws_walreader_end(reader);
	if (reached)
		*reached = seen;
	ws_walreader_free(reader);
	ws_walsrc_close(src);
	return rc;
}
