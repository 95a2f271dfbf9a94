/* Families of positions; see ws/statepos.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ws/log.h"
#include "ws/mem.h"
#include "ws/statepos.h"

static int
look(const char *state, const char *prefix, bool pass,
     int (*each)(void *arg, const char *name, struct ws_pos pos, struct ws_err *err), void *arg, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/pos", state);
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	if (!d) {
		rc = errno == ENOENT ? 0 : ws_err_sys(err, "%s: cannot open", dir);
		free(dir);
		return rc;
	}
	while (rc == 0 && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		struct ws_pos pos;

		if (*e->d_name == '.' || strncmp(e->d_name, prefix, strlen(prefix)) ||
			(n > 4 && !strcmp(e->d_name + n - 4, ".tmp")))
			continue;
		char *path = ws_asprintf("%s/%s", dir, e->d_name);
		int got = ws_pos_read(path, &pos, err);

		free(path);
		if (got < 0 && pass && err->status == WS_ETEMP && !err->sys)
			ws_warn("%s", err->msg);
		else if (got < 0)
			rc = -1;
		else if (got == 1)
			rc = each(arg, e->d_name, pos, err);
	}
	closedir(d);
	free(dir);
	return rc;
}

int
ws_statepos_each(const char *state, const char *prefix,
                 int (*each)(void *arg, const char *name, struct ws_pos pos, struct ws_err *err), void *arg,
                 struct ws_err *err)
{
	return look(state, prefix, false, each, arg, err);
}

int
ws_statepos_known(const char *state, const char *prefix,
                  int (*each)(void *arg, const char *name, struct ws_pos pos, struct ws_err *err), void *arg,
                  struct ws_err *err)
{
	return look(state, prefix, true, each, arg, err);
}

struct lowest {
	struct ws_pos *min;
	int count;
};

static int
lower(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	struct lowest *l = arg;

	(void)name;
	(void)err;
	if (l->count++ == 0 || pos.lsn < l->min->lsn)
		*l->min = pos;
	return 0;
}

int
ws_statepos_min(const char *state, const char *prefix, struct ws_pos *min, int *count,
				struct ws_err *err)
{
	struct lowest l = {min, 0};
	int rc = ws_statepos_each(state, prefix, lower, &l, err);

	*count = l.count;
	return rc;
}
