/* Segments of a branch that was left: out of the way of every reader; see ws/waldir.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "walnames.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/waldir.h"

static const char suffix[] = WS_WAL_ABANDONED;

bool
ws_waldir_segment(const char *name, uint32_t segsize, ws_tli *tli, ws_lsn *start)
{
	size_t n = strlen(name), m = sizeof suffix - 1;
	char plain[WS_WALNAME_MAX];
	struct ws_walname w;

	if (n > m && !strcmp(name + n - m, suffix))
		n -= m;
	if (n >= sizeof plain)
		return false;
	memcpy(plain, name, n);
	plain[n] = 0;
	if (ws_walname_parse(plain, segsize, &w) != 0)
		return false;
	*tli = w.tli;
	*start = w.start;
	return true;
}

/* Is a segment with so many bytes to go? */
static bool
is_left(const struct ws_walname *w, uint64_t size, const struct ws_history *h, bool ends)
{
	ws_lsn end = ws_history_end(h, w->tli);

	return end && (w->start >= end || (ends && size > end - w->start));
}

/* *bytes grows by what is in a segment that went. */
static int
look_at(const char *dir, const char *name, uint32_t segsize, const struct ws_history *h, bool ends,
        uint64_t *bytes, struct ws_err *err)
{
	struct ws_walname w;
	struct stat st;
	int rc = 0;

	if (ws_walname_parse(name, segsize, &w) != 0)
		return 0;
	char *from = ws_asprintf("%s/%s", dir, name), *to = ws_asprintf("%s%s", from, suffix);
	uint64_t size = segsize;

	if (w.kind == WS_SEG_PARTIAL && stat(from, &st) == 0)
		size = (uint64_t)st.st_size;
	if (is_left(&w, size, h, ends)) {
		if (rename(from, to) != 0)
			rc = ws_err_sys(err, "%s: cannot rename to %s", from, to);
		else
			*bytes += size;
	}
	free(from);
	free(to);
	return rc;
}

int
ws_waldir_set_aside(const char *dir, uint32_t segsize, const struct ws_history *h, bool ends, uint64_t *bytes,
                    struct ws_err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	*bytes = 0;
	if (!d)
		return ws_err_sys(err, "%s: cannot open", dir);
	while (rc == 0 && (e = readdir(d)))
		rc = look_at(dir, e->d_name, segsize, h, ends, bytes, err);
	closedir(d);
	return rc != 0 ? -1 : ws_fsync_path(dir, err);
}
