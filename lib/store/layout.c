/* How archives are laid out; see archive.h.
 *
 *   plain        NAME[SUFFIX]
 *   WAL-G        wal_005/NAME[SUFFIX]
 *   pgBackRest   archive/STANZA/VERSION-N/FIRST16/NAME-SHA1[SUFFIX], histories above FIRST16 and
 *                without checksum
 *
 * With an automatic layout a directory is looked at first, which costs two stat(2).  In a bucket it
 * is done only after a name was not found: nothing that is there takes a request more, and an
 * archive of another layout is never taken for one that ends. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "ws/mem.h"

#define WALG_FOLDER "wal_005"

struct choice {
	char *name;
	unsigned n;
	bool ids;   /* only VERSION-N */
	char *list; /* for the message */
};

static bool
is_archive_id(const char *s)
{
	const char *dash = strchr(s, '-');

	return isdigit((unsigned char)*s) && dash && dash[1] &&
		   strspn(s, "0123456789.") == (size_t)(dash - s) &&
		   strspn(dash + 1, "0123456789") == strlen(dash + 1);
}

static int
choose(void *arg, const char *name, bool folder, uint64_t size, struct ws_err *err)
{
	struct choice *c = arg;

	(void)size;
	(void)err;
	if (!folder || (c->ids && !is_archive_id(name)))
		return 0;
	char *list = ws_asprintf("%s%s%s", c->n ? c->list : "", c->n ? ", " : "", name);

	free(c->list);
	c->list = list;
	if (c->n++ == 0)
		c->name = ws_strdup(name);
	return 0;
}

/* The only folder in there, unless *name is given. */
static int
only_folder(struct ws_archive *a, const char *folder, bool ids, const char *option, char **name,
			struct ws_err *err)
{
	struct choice c = {.ids = ids};
	int rc = 0;

	if (*name)
		return 0;
	if (!a->store->ops->list)
		return ws_err_usage(err, "%s: pgBackRest's layout cannot be read without listing",
							a->store->url);
	rc = a->store->ops->list(a->store, folder, "", choose, &c, err);
	if (rc == 0 && c.n == 1) {
		*name = c.name;
		c.name = NULL;
	} else if (rc == 0 && c.n == 0) {
		rc = ws_err_op(err, "archive_missing", "%s/%s: nothing of pgBackRest's is there",
					   a->store->url, folder);
	} else if (rc == 0) {
		rc = ws_err_usage(err, "%s/%s has several, choose one by %s: %s", a->store->url, folder,
						  option, c.list);
	}
	free(c.name);
	free(c.list);
	return rc;
}

static int
settle_pgbackrest(struct ws_archive *a, struct ws_err *err)
{
	int rc = only_folder(a, "archive", false, "--stanza", &a->stanza, err);

	if (rc == 0) {
		char *folder = ws_asprintf("archive/%s", a->stanza);

		rc = only_folder(a, folder, true, "--archive-id", &a->id, err);
		free(folder);
	}
	if (rc == 0 && !a->store->ops->list)
		rc = ws_err_usage(err, "%s: pgBackRest's layout cannot be read without listing",
						  a->store->url);
	if (rc == 0)
		a->root = ws_asprintf("archive/%s/%s", a->stanza, a->id);
	return rc;
}

static int
is_there(void *arg, const char *name, bool folder, uint64_t size, struct ws_err *err)
{
	(void)size;
	(void)err;
	if (!folder || strcmp(name, *(const char **)arg))
		return 0;
	*(const char **)arg = NULL;
	return 1;
}

/* Is there such a folder?  1, 0, -1. */
static int
has_folder(struct ws_archive *a, const char *name, struct ws_err *err)
{
	uint64_t size;

	if (!a->store->ops->list)
		return 0;
	if (!a->store->list_once)
		return a->store->ops->stat(a->store, name, &size, err);
	const char *wanted = name;

	if (a->store->ops->list(a->store, "", name, is_there, &wanted, err) != 0)
		return -1;
	return wanted == NULL;
}

/* The layout of what is there. */
static int
probe(struct ws_archive *a, struct ws_err *err)
{
	int walg = has_folder(a, WALG_FOLDER, err),
		back = walg == 0 ? has_folder(a, "archive", err) : 0;

	if (walg < 0 || back < 0)
		return -1;
	a->probed = true;
	a->layout = walg ? WS_ARC_WALG : back ? WS_ARC_PGBACKREST : WS_ARC_PLAIN;
	return 0;
}

int
layout_settle(struct ws_archive *a, struct ws_err *err)
{
	if (a->root)
		return 0;
	if (a->layout == WS_ARC_AUTO && a->store->ops->list && !a->store->list_once &&
		probe(a, err) != 0)
		return -1;
	if (a->layout == WS_ARC_PGBACKREST)
		return settle_pgbackrest(a, err);
	a->root = ws_strdup(a->layout == WS_ARC_WALG ? WALG_FOLDER : "");
	return 0;
}

int
layout_absent(struct ws_archive *a, struct ws_err *err)
{
	if (a->layout != WS_ARC_AUTO || a->probed || !a->store->ops->list)
		return 0;
	if (probe(a, err) != 0)
		return -1;
	if (a->layout == WS_ARC_PLAIN)
		return 0;
	free(a->root);
	a->root = NULL;
	return layout_settle(a, err) == 0 ? 1 : -1;
}
