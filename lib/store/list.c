/* What an archive holds; see ws/archive.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "ws/lsn.h"
#include "ws/mem.h"

struct listing {
	struct ws_archive *a;
	struct ws_arcmember *m;
	size_t n, cap;
	char **folders; /* of pgBackRest: still to be read */
	size_t nfolders;
};

static int
take(void *arg, const char *file, bool folder, uint64_t size, struct ws_err *err)
{
	struct listing *l = arg;
	bool back = l->a->layout == WS_ARC_PGBACKREST;
	struct ws_arcmember m = {.size = size};

	(void)err;
	if (folder && back && strlen(file) == 16 && strspn(file, "0123456789ABCDEF") == 16) {
		l->folders = ws_realloc(l->folders, (l->nfolders + 1) * sizeof *l->folders);
		l->folders[l->nfolders++] = ws_strdup(file);
	} else if (!folder && ws_arcfile_parse(file, back, &m.f) == 0) {
		if (l->n == l->cap)
			l->m = ws_realloc(l->m, (l->cap = l->cap ? 2 * l->cap : 64) * sizeof *l->m);
		l->m[l->n++] = m;
	}
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	const struct ws_arcmember *x = a, *y = b;
	int c = strcmp(x->f.name, y->f.name);

	return c ? c : (x->f.comp > y->f.comp) - (x->f.comp < y->f.comp);
}

static int
read_folders(struct listing *l, int rc, struct ws_err *err)
{
	/* Segments are not above their folder: the list does not grow here. */
	for (size_t i = 0; i < l->nfolders; i++) {
		char *folder = ws_asprintf("%s/%s", l->a->root, l->folders[i]);

		if (rc == 0)
			rc = l->a->store->ops->list(l->a->store, folder, l->folders[i], take, l, err);
		free(folder);
		free(l->folders[i]);
	}
	free(l->folders);
	return rc;
}

int
ws_archive_members(struct ws_archive *a, struct ws_arcmember **out, size_t *n, struct ws_err *err)
{
	struct listing l = {.a = a};
	int rc;

	*out = NULL;
	*n = 0;
	if (!a->store->ops->list)
		return ws_err_usage(err,
							"%s: HTTP has no way to list; give the directory or the bucket itself",
							a->store->url);
	do {
		rc = layout_settle(a, err);
		if (rc == 0)
			rc = a->store->ops->list(a->store, a->root, "", take, &l, err);
		if (rc == 0 && l.n == 0)
			rc = layout_absent(a, err);
	} while (rc == 1);
	rc = read_folders(&l, rc, err);
	if (rc != 0) {
		free(l.m);
		return -1;
	}
	if (l.n)
		qsort(l.m, l.n, sizeof *l.m, by_name);
	*out = l.m;
	*n = l.n;
	return 0;
}

int
ws_archive_list(struct ws_archive *a, FILE *out, bool json, struct ws_err *err)
{
	static const char *const kinds[] = {"segment", "partial", "backup", "history"};
	struct ws_arcmember *m;
	size_t n;

	if (ws_archive_members(a, &m, &n, err) != 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const struct ws_arcfile *f = &m[i].f;
		const char *comp = f->comp == WS_COMP_FOREIGN ? "other"
						   : f->comp                  ? ws_comp_suffix[f->comp] + 1
													  : "none";
		if (json)
			fprintf(out,
					"{\"name\":\"%s\",\"kind\":\"%s\",\"timeline\":%u,\"size\":%" PRIu64
					",\"compression\":\"%s\"}\n",
					f->name, kinds[f->n.kind], f->n.tli, m[i].size, comp);
		else
			fprintf(out, "%s %u %" PRIu64 " %s\n", f->name, f->n.tli, m[i].size, comp);
	}
	free(m);
	return 0;
}
