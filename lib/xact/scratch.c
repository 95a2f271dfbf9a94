/* A scratch WAL directory; see scratch.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

int
ws_scratch_open(struct ws_scratch *s, const char *parent, uint32_t segsize, struct ws_err *err)
{
	const char *tmp = getenv("TMPDIR");

	memset(s, 0, sizeof *s);
	s->fd = -1;
	s->segsize = segsize;
	s->dir = ws_asprintf("%s/ws-decode.XXXXXX", parent ? parent : tmp ? tmp : "/tmp");
	if (mkdtemp(s->dir))
		return 0;
	ws_err_arg(err, "%s: cannot make a scratch folder", s->dir);
	free(s->dir);
	s->dir = NULL;
	return -1;
}

static void
seg_path(const struct ws_scratch *s, ws_tli tli, ws_lsn seg, char **path)
{
	char name[WS_WALNAME_MAX];

	ws_seg_name(name, tli, seg, s->segsize);
	*path = ws_asprintf("%s/%s", s->dir, name);
}

static int
open_seg(struct ws_scratch *s, ws_tli tli, ws_lsn seg, struct ws_err *err)
{
	char *path;

	if (s->fd >= 0 && s->tli == tli && s->seg == seg)
		return 0;
	if (s->fd >= 0)
		close(s->fd);
	seg_path(s, tli, seg, &path);
	s->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int rc = s->fd >= 0 ? 0 : ws_err_sys(err, "%s: cannot create", path);

	free(path);
	if (rc != 0)
		return -1;
	s->tli = tli;
	s->seg = seg;
	s->segs = ws_realloc(s->segs, (s->nsegs + 1) * sizeof *s->segs);
	s->segs[s->nsegs++] = (struct ws_scratchseg){tli, seg};
	return 0;
}

int
ws_scratch_put(struct ws_scratch *s, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
               struct ws_err *err)
{
	while (n) {
		ws_lsn seg = ws_seg_start(lsn, s->segsize);
		size_t k = seg + s->segsize - lsn < n ? (size_t)(seg + s->segsize - lsn) : n;

		if (open_seg(s, tli, seg, err) != 0)
			return -1;
		ssize_t w = pwrite(s->fd, p, k, (off_t)(lsn - seg));

		if (w < 0) {
			if (errno == EINTR)
				continue;
			return ws_err_sys(err, "%s: cannot write", s->dir);
		}
		p += w;
		lsn += (ws_lsn)w;
		n -= (size_t)w;
	}
	return 0;
}

static void
remove_seg(const struct ws_scratch *s, const struct ws_scratchseg *g)
{
	char *path;

	seg_path(s, g->tli, g->seg, &path);
	(void)unlink(path);
	free(path);
}

void
ws_scratch_prune(struct ws_scratch *s, ws_lsn below)
{
	size_t k = 0;

	for (size_t i = 0; i < s->nsegs; i++)
		if (s->segs[i].seg + s->segsize <= below && s->segs[i].seg != s->seg)
			remove_seg(s, &s->segs[i]);
		else
			s->segs[k++] = s->segs[i];
	s->nsegs = k;
}

void
ws_scratch_close(struct ws_scratch *s)
{
	if (!s->dir)
		return;
	if (s->fd >= 0)
		close(s->fd);
	for (size_t i = 0; i < s->nsegs; i++)
		remove_seg(s, &s->segs[i]);
	(void)rmdir(s->dir);
	free(s->segs);
	free(s->dir);
	memset(s, 0, sizeof *s);
}
