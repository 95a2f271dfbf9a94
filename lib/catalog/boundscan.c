/* The boundaries of a piece of WAL; see ws/boundary.h. */
#include "ws/boundary.h"
#include "ws/walscan.h"

struct scan {
	int (*each)(void *arg, const struct ws_boundary_at *b, struct ws_err *err);
	void *arg;
};

static int
take(void *arg, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err)
{
	const struct scan *s = arg;
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
	rc = s->each(s->arg, &at, err);
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
	struct scan s = {each, arg};

	*reached = 0;
	return ws_walscan(wal, start, stop, reached, take, &s, err);
}
