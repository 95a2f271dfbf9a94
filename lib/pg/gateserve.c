/* What of an archive may be handed to the shadow; see ws/gate.h.
 *
 * The gate was looked for along raw/.  So it says nothing of another branch than raw/'s: a segment
 * or a history of a timeline that raw/ does not follow, or not yet, is not served, wherever the
 * gate stands. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "ws/arcname.h"
#include "ws/arcpath.h"
#include "ws/gate.h"
#include "ws/histdir.h"
#include "ws/lsn.h"
#include "ws/mem.h"

/* The highest timeline in raw/, 0 when there is no WAL. */
static int
newest(const char *raw, ws_tli *tli, struct ws_err *err)
{
	DIR *d = opendir(raw);
	struct dirent *e;

	*tli = 0;
	if (!d)
		return errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", raw);
	while ((errno = 0, e = readdir(d))) {
		struct ws_arcname n;

		if (ws_arcname_parse(e->d_name, &n) == 0 && n.tli > *tli)
			*tli = n.tli;
	}
	int failed = errno;

	closedir(d);
	errno = failed;
	return failed ? ws_err_sys(err, "%s: cannot read", raw) : 0;
}

/* The history that raw/ follows: 1, 0 nothing is there, -1. */
static int
followed_history(const char *state, struct ws_history *h, struct ws_err *err)
{
	char *raw = ws_asprintf("%s/raw", state);
	ws_tli tli;
	int rc = newest(raw, &tli, err);

	*h = (struct ws_history){0};
	if (rc == 0 && tli)
		rc = ws_histdir_load(raw, tli, h, err) == 0 ? 1 : -1;
	free(raw);
	return rc;
}

int
ws_gate_segment(const char *state, uint32_t segsize, ws_tli tli, ws_lsn start, ws_lsn *limit,
				struct ws_err *err)
{
	struct ws_history h;
	int rc = followed_history(state, &h, err);

	*limit = 0;
	if (rc == 1)
		rc = ws_arcpath_tli(&h, ws_segno(start, segsize), segsize) == tli;
	if (rc == 1)
		rc = ws_gate_ask(state, start + segsize, limit, err) == 0 ? *limit >= start + segsize : -1;
	ws_history_fini(&h);
	return rc;
}

int
ws_gate_history(const char *state, const struct ws_history *of, ws_lsn *limit, struct ws_err *err)
{
	struct ws_history h;
	ws_lsn need = of->n ? of->entries[of->n - 1].end : 0;
	int rc = followed_history(state, &h, err);

	*limit = 0;
	if (rc == 1)
		rc = ws_history_end(&h, of->tli) != 0;
	if (rc == 1)
		rc = ws_gate_ask(state, need, limit, err) == 0 ? *limit >= need : -1;
	ws_history_fini(&h);
	return rc;
}
