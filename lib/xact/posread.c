/* Records at known positions; see posread.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "posread.h"
#include "ws/cursor.h"

void
ws_walplace_fini(struct ws_walplace *w)
{
	for (size_t i = 0; i < w->nfiles; i++)
		free(w->files[i].path);
	free(w->files);
	free(w->route);
	free(w->dir);
	memset(w, 0, sizeof *w);
}

void
ws_walplace_add_file(struct ws_walplace *w, const char *path, ws_lsn start)
{
	w->files = ws_realloc(w->files, (w->nfiles + 1) * sizeof *w->files);
	w->files[w->nfiles++] = (struct ws_walfile){ws_strdup(path), start};
}

void
ws_walplace_route(struct ws_walplace *w, ws_tli tli, ws_lsn from)
{
	if (w->nroute && w->route[w->nroute - 1].tli == tli)
		return;
	w->route = ws_realloc(w->route, (w->nroute + 1) * sizeof *w->route);
	w->route[w->nroute++] = (struct ws_walroute){tli, from};
}

void
ws_posread_init(struct ws_posread *r, const struct ws_walplace *place)
{
	memset(r, 0, sizeof *r);
	r->place = place;
}

static void
unmap(struct ws_posread *r, struct ws_posmap *m)
{
	if (m->base)
		munmap((void *)(uintptr_t)m->base, r->place->segsize);
	m->base = NULL;
}

void
ws_posread_fini(struct ws_posread *r)
{
	for (int i = 0; i < WS_POSREAD_MAPS; i++)
		unmap(r, &r->maps[i]);
	ws_buf_free(&r->scratch);
	memset(r, 0, sizeof *r);
}

static ws_tli
tli_at(const struct ws_walplace *w, ws_lsn start)
{
	for (size_t i = w->nroute; i-- > 0;)
		if (w->route[i].from <= start)
			return w->route[i].tli;
	return w->nroute ? w->route[0].tli : 0;
}

/* Opens the segment that starts at start; path is for messages. */
static int
open_segment(const struct ws_walplace *w, ws_lsn start, char **path)
{
	char name[WS_WALNAME_MAX];

	for (size_t i = w->nfiles; i-- > 0;)
		if (w->files[i].start == start) {
			*path = ws_strdup(w->files[i].path);
			return open(*path, O_RDONLY | O_CLOEXEC);
		}
	ws_seg_name(name, tli_at(w, start), start, w->segsize);
	*path = ws_asprintf("%s/%s", w->dir ? w->dir : ".", name);
	int fd = open(*path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	/* The growing one; renamed in between, it has its plain name by then. */
	char *partial = ws_asprintf("%s.partial", *path);

	fd = open(partial, O_RDONLY | O_CLOEXEC);
	free(partial);
	return fd >= 0 || errno != ENOENT ? fd : open(*path, O_RDONLY | O_CLOEXEC);
}

const uint8_t *
ws_posread_page_slow(struct ws_posread *r, ws_lsn lsn, struct ws_err *err)
{
	ws_lsn start = ws_seg_start(lsn, r->place->segsize);
	struct ws_posmap *m = &r->maps[0];
	char *path;

	for (int i = 0; i < WS_POSREAD_MAPS; i++) {
		if (r->maps[i].base && r->maps[i].start == start) {
			m = &r->maps[i];
			goto found;
		}
		if (!r->maps[i].base || (m->base && r->maps[i].used < m->used))
			m = &r->maps[i];
	}
	r->end = 0;
	unmap(r, m);
	int fd = open_segment(r->place, start, &path);

	if (fd < 0) {
		ws_err_sys(err, "cannot open %s again for " WS_LSN_FMT, path, WS_LSN_ARG(lsn));
		free(path);
		return NULL;
	}
	void *p = mmap(NULL, r->place->segsize, PROT_READ, MAP_SHARED, fd, 0);
	int e = errno;

	close(fd);
	if (p == MAP_FAILED) {
		errno = e;
		ws_err_sys(err, "cannot map %s", path);
		free(path);
		return NULL;
	}
	free(path);
	m->base = p;
	m->start = start;
found:
	m->used = ++r->clock;
	r->base = m->base;
	r->start = start;
	r->end = start + r->place->segsize;
	return r->base + (lsn - start);
}

int
ws_posread_long(struct ws_posread *r, ws_lsn lsn, uint32_t tot_len, struct ws_err *err)
{
	uint32_t have = 0;

	if (tot_len < WS_REC_HDR_SIZE || tot_len > WS_REC_MAX_SIZE)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": record of length %u, read again",
		                 WS_LSN_ARG(lsn), tot_len);
	r->scratch.len = 0;
	ws_buf_reserve(&r->scratch, tot_len);
	while (have < tot_len) {
		uint32_t off = (uint32_t)(lsn % WS_PAGE_SIZE);

		if (off == 0) {
			off = lsn % r->place->segsize ? WS_PAGE_HDR_SHORT : WS_PAGE_HDR_LONG;
			lsn += off;
		}
		uint32_t n = WS_PAGE_SIZE - off;

		if (n > tot_len - have)
			n = tot_len - have;
		const uint8_t *p = ws_posread_at(r, lsn, err);

		if (!p)
			return -1;
		memcpy(r->scratch.data + have, p, n);
		have += n;
		lsn += n;
	}
	r->rec.data = r->scratch.data;
	return 0;
}

int
ws_posread_rec(struct ws_posread *r, ws_lsn lsn, struct ws_err *err)
{
	const uint8_t *p = ws_posread_at(r, lsn, err);

	if (!p)
		return -1;
	uint32_t tot_len = ws_le32(p);

	r->rec.start = lsn;
	r->rec.tot_len = tot_len;
	r->rec.data = p;
	if (tot_len < WS_REC_HDR_SIZE || lsn % WS_PAGE_SIZE + tot_len > WS_PAGE_SIZE) {
		if (ws_posread_long(r, lsn, tot_len, err) != 0)
			return -1;
		p = r->rec.data;
	}
	r->rec.xid = ws_le32(p + 4);
	r->rec.prev = ws_le64(p + 8);
	r->rec.info = p[16];
	r->rec.rmid = p[17];
	return 0;
}
