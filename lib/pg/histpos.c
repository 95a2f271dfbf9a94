/* Positions against the WAL's history; see ws/histpos.h. */
#include <stdlib.h>
#include <string.h>

#include "ws/histdir.h"
#include "ws/histpos.h"
#include "ws/mem.h"
#include "ws/statepos.h"

struct way {
	const struct ws_history *h;
	bool rest; /* all but what tells what was published */
	int (*each)(void *arg, const struct ws_histpos *p, struct ws_err *err);
	void *arg;
};

static int
compare(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	const struct way *w = arg;
	const struct ws_histpos p = {name, pos, ws_history_end(w->h, pos.tli)};

	/* Of the hold-back, which ws-receive cuts at each switch. */
	if (!strncmp(name, "hold.", 5) || (w->rest && !strncmp(name, "sent.", 5)))
		return 0;
	return w->each(w->arg, &p, err);
}

int
ws_histpos_each(const char *state, int (*each)(void *arg, const struct ws_histpos *p, struct ws_err *err),
                void *arg, struct ws_err *err)
{
	char *raw = ws_asprintf("%s/raw", state);
	struct ws_history h;
	struct way w = {.h = &h, .each = each, .arg = arg};
	int rc = ws_histdir_load(raw, 0, &h, err);

	free(raw);
	if (rc != 0)
		return -1;
	rc = ws_statepos_each(state, "sent.", compare, &w, err);
	w.rest = true;
	/* Who writes one that is empty does so when it starts, and looks itself where it is. */
	if (rc == 0)
		rc = ws_statepos_known(state, "", compare, &w, err);
	ws_history_fini(&h);
	return rc;
}
