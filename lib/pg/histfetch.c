/* Timeline histories from a server into a directory; see ws/histfetch.h. */
#include <stdlib.h>
#include <string.h>

#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/histfetch.h"
#include "ws/log.h"

int
ws_histfetch_get(struct ws_pg *c, ws_tli tli, struct ws_history *h, struct ws_buf *bytes,
                 struct ws_err *err)
{
	size_t before = bytes->len;

	*h = (struct ws_history){.tli = tli};
	if (tli == 1)
		return 0;
	if (ws_pg_history(c, tli, bytes, err) != 0)
		return -1;
	return ws_history_parse(tli, (const char *)bytes->data + before, bytes->len - before, h, err);
}

static int
check_cluster(const char *dir, const struct ws_pg_source *src, struct ws_err *err)
{
	const struct ws_cluster cluster = {src->system_id, src->major, src->segsize};
	struct ws_cluster have;
	char *state = realpath(dir, NULL), *base = state ? strrchr(state, '/') : NULL;
	int rc = 0;

	if (base && (!strcmp(base, "/raw") || !strcmp(base, "/filtered"))) {
		base[base == state] = 0;
		rc = ws_cluster_read(state, &have, err);
		if (rc == 1)
			rc = ws_cluster_claim(state, &cluster, err);
	}
	free(state);
	return rc;
}

static int
keep(const char *dir, ws_tli tli, const struct ws_buf *b, struct ws_err *err)
{
	if (tli == 1) {
		ws_info("timeline 1 has no history file");
		return 0;
	}
	if (ws_histdir_store(dir, tli, b->data, b->len, true, err) != 0)
		return -1;
	ws_info("%s/%08X.history: timeline=%u bytes=%zu", dir, (unsigned)tli, tli, b->len);
	return 0;
}

int
ws_histfetch_store(struct ws_pg *c, const struct ws_pg_source *src, const ws_tli *tlis, size_t n,
                   const char *dir, struct ws_err *err)
{
	struct ws_buf *b = ws_calloc(n + 1, sizeof *b);
	struct ws_history h;
	int rc = ws_mkdir_p(dir, 0700, err) == 0 ? check_cluster(dir, src, err) : -1;

	for (size_t i = 0; i < n && rc == 0; i++)
		if ((rc = ws_histfetch_get(c, tlis[i], &h, &b[i], err)) == 0)
			ws_history_fini(&h);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = keep(dir, tlis[i], &b[i], err);
	for (size_t i = 0; i < n; i++)
		ws_buf_free(&b[i]);
	free(b);
	return rc;
}
