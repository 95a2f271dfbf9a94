/* The states of segments; see ws/filterstates.h. */
#include <stdlib.h>
#include <unistd.h>

#include "walnames.h"
#include "ws/file.h"
#include "ws/filter.h"
#include "ws/filterstates.h"
#include "ws/log.h"
#include "ws/lsn.h"

/* Newest segments first; of one segment the newest timeline's. */
static int
newest_first(const void *a, const void *b)
{
	const struct ws_walname *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? 1 : -1;
	return x->tli < y->tli ? 1 : x->tli > y->tli ? -1 : 0;
}

/* Is the state in `path` one that serves?  1, 0, -1; *out is emptied but for 1. */
static int
serves(const char *path, const struct ws_history *h, ws_lsn lsn, struct ws_buf *out, struct ws_pos *pos,
       struct ws_err *err)
{
	struct ws_filter *f = ws_filter_new();
	size_t before = out->len;
	struct ws_err why = {0};
	uint64_t system_id;
	int rc = ws_file_read(path, WS_FILTER_STATE_MAX, out, err);

	if (rc == 1 &&
	    ws_filter_load(f, path, out->data + before, out->len - before, pos, &system_id, &why) != 0) {
		ws_warn("%s", why.msg);
		rc = 0;
	}
	if (rc == 1 && (pos->lsn > lsn || (h && pos->lsn > ws_history_end(h, pos->tli))))
		rc = 0;
	if (rc != 1)
		out->len = before;
	ws_filter_free(f);
	return rc;
}

int
ws_filterstates_find(const char *dir, uint32_t segsize, const struct ws_history *h, ws_lsn lsn,
                     struct ws_buf *out, struct ws_pos *pos, struct ws_err *err)
{
	char *states = ws_asprintf("%s/states", dir), name[WS_WALNAME_MAX];
	struct ws_walnames l = {0};
	int rc = 0;

	if (access(states, F_OK) == 0 && ws_walnames_list(states, segsize, &l, err) != 0)
		rc = -1;
	else if (l.n)
		qsort(l.segs, l.n, sizeof l.segs[0], newest_first);
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		const struct ws_walname *w = &l.segs[i];

		/* It begins at or above where its knowledge ends. */
		if (w->kind != WS_SEG_WHOLE || w->start > lsn || (h && !ws_history_end(h, w->tli)))
			continue;
		ws_seg_name(name, w->tli, w->start, segsize);
		char *path = ws_asprintf("%s/%s", states, name);

		rc = serves(path, h, lsn, out, pos, err);
		free(path);
	}
	ws_walnames_fini(&l);
	free(states);
	return rc;
}
