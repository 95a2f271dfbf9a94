/* How far back a promotion may still take us; see ws/undo.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ws/mem.h"
#include "ws/statepos.h"
#include "ws/undo.h"

int
ws_undo_copies(const char *state, ws_lsn limit, ws_lsn *low, ws_lsn *high, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/shadow.keep", state);
	ws_lsn lowest = UINT64_MAX, best = 0;
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = d || errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", dir);

	while (d && (e = readdir(d))) {
		ws_lsn lsn = strtoull(e->d_name, NULL, 16);

		if (strspn(e->d_name, "0123456789ABCDEF") != 16 || e->d_name[16] || lsn > limit)
			continue;
		rc = 1;
		if (lsn < lowest)
			lowest = lsn;
		if (lsn > best)
			best = lsn;
	}
	if (d)
		closedir(d);
	free(dir);
	if (rc == 1 && low)
		*low = lowest;
	if (rc == 1 && high)
		*high = best;
	return rc;
}

static int
raise_to(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	ws_lsn *high = arg;

	(void)name;
	(void)err;
	if (pos.lsn > *high)
		*high = pos.lsn;
	return 0;
}

int
ws_undo_lowest(const char *state, ws_lsn *lsn, struct ws_err *err)
{
	int rc = ws_undo_copies(state, UINT64_MAX, lsn, NULL, err);

	if (rc == 1 && ws_statepos_each(state, "sent.", raise_to, lsn, err) != 0)
		rc = -1;
	return rc;
}
