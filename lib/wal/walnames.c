/* What a WAL directory holds; see walnames.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walnames.h"
#include "ws/file.h"
#include "ws/lsn.h"

const char *const ws_seg_suffix[WS_SEG_KINDS] = {"", ".partial", ".gz", ".lz4", ".zst"};

int
ws_walname_parse(const char *name, uint32_t segsize, struct ws_walname *out)
{
	char seg[WS_SEGNAME_LEN + 1];

	if (strlen(name) < WS_SEGNAME_LEN)
		return -1;
	memcpy(seg, name, WS_SEGNAME_LEN);
	seg[WS_SEGNAME_LEN] = 0;
	for (int k = 0; k < WS_SEG_KINDS; k++)
		if (!strcmp(name + WS_SEGNAME_LEN, ws_seg_suffix[k])) {
			out->kind = (enum ws_seg_kind)k;
			return ws_seg_parse(seg, segsize, &out->tli, &out->start);
		}
	return -1;
}

int
ws_walnames_list(const char *dir, uint32_t segsize, struct ws_walnames *out, struct ws_err *err)
{
	DIR *d = opendir(dir);
	size_t cap = 0, hcap = 0;
	struct dirent *e;

	*out = (struct ws_walnames){0};
	if (!d)
		return ws_err_sys(err, "%s: cannot open directory", dir);
	while ((errno = 0, e = readdir(d))) {
		struct ws_walname w;
		ws_tli tli;

		if (ws_walname_parse(e->d_name, segsize, &w) == 0) {
			if (out->n == cap)
				out->segs = ws_realloc(out->segs, (cap = cap ? 2 * cap : 64) * sizeof w);
			out->segs[out->n++] = w;
		} else if (ws_history_name_parse(e->d_name, &tli) == 0) {
			if (out->nhist == hcap)
				out->hist = ws_realloc(out->hist, (hcap = hcap ? 2 * hcap : 8) * sizeof tli);
			out->hist[out->nhist++] = tli;
		}
	}
	int failed = errno;

	closedir(d);
	if (failed) {
		errno = failed;
		ws_walnames_fini(out);
		return ws_err_sys(err, "%s: cannot read directory", dir);
	}
	return 0;
}

void
ws_walnames_fini(struct ws_walnames *l)
{
	free(l->segs);
	free(l->hist);
	*l = (struct ws_walnames){0};
}

char *
ws_walnames_history_path(const char *dir, ws_tli tli)
{
	char name[WS_WALNAME_MAX];

	ws_history_name(name, tli);
	return ws_asprintf("%s/%s", dir, name);
}

int
ws_walnames_history_read(const char *path, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct ws_err why = {0};

	*h = (struct ws_history){.tli = tli};
	int rc = ws_file_read(path, WS_HISTORY_MAX, &b, &why);

	if (rc < 0 && !why.sys)
		ws_err_op(&why, "history_malformed", "%s: longer than %u bytes", path, WS_HISTORY_MAX);
	if (rc == 1 && ws_history_parse(tli, (const char *)b.data, b.len, h, &why) != 0) {
		/* The file as it is called here, in place of the name that it should have. */
		const char *place = strchr(why.msg, ' ');

		rc = ws_err_op(&why, "history_malformed", "%s%s", path, place ? place : "");
	}
	ws_buf_free(&b);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

int
ws_walnames_history(const char *dir, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	char *path = ws_walnames_history_path(dir, tli);
	int rc = ws_walnames_history_read(path, tli, h, err);

	free(path);
	return rc;
}
