/* WAL input of any kind; see ws/waldir.h.  The kinds: srcdir.c, srcfile.c, srcstream.c. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "walsrcpriv.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/walpage.h"
#include "ws/walread.h"

#define POLL_MS      1000 /* with inotify nothing should be missed; look all the same */
#define POLL_BLIND_MS  10 /* without it */
#define PAGE         4096u
#define MEM_SIZE     (WS_CHUNK_ROOM + WS_CHUNKS * WS_CHUNK)

struct ws_walsrc *
ws_walsrc_open(const char *spec, struct ws_pos start, const struct ws_walsrc_opts *o, struct ws_err *err)
{
	struct ws_walsrc *s = ws_calloc(1, sizeof *s);
	struct stat st;
	int rc;

	s->spec = ws_strdup(spec);
	s->segsize = o->segsize;
	s->follow = o->follow;
	s->fd = -1;
	s->editable = o->editable;
	/* On a page: read(2) into any other place was seen to take five times as long. */
	s->mem = aligned_alloc(PAGE, o->editable ? MEM_SIZE : WS_CHUNK);
	if (!s->mem)
		abort();
	if (!strcmp(spec, "-"))
		rc = ws_srcstream_open(s, 0, start, err);
	else if (stat(spec, &st) != 0)
		rc = errno == ENOENT && o->follow ? ws_srcdir_open(s, start, err)
		                                  : ws_err_arg(err, "%s: cannot open", spec);
	else if (S_ISDIR(st.st_mode))
		rc = ws_srcdir_open(s, start, err);
	else
		rc = ws_srcfile_open(s, start, err);
	if (rc == 0)
		return s;
	ws_walsrc_close(s);
	return NULL;
}

void
ws_walsrc_close(struct ws_walsrc *s)
{
	if (!s)
		return;
	if (s->ops)
		s->ops->close(s);
	ws_history_fini(&s->hist);
	free(s->mem);
	free(s->spec);
	free(s);
}

int
ws_walsrc_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err)
{
	return s->at_end ? 0 : s->ops->next(s, c, err);
}

/* The memory is filled again once its rest is too small for a chunk, after WS_CHUNKS - 1 of the largest
 * at least. */
_Static_assert(WS_CHUNK_STAYS <= WS_CHUNKS - 2, "chunks do not stay as long as ws/waldir.h says");

uint8_t *
ws_walsrc_place(struct ws_walsrc *s, ws_lsn lsn, size_t n)
{
	if (!s->editable)
		return s->mem;
	/* As far into a page as in the file. */
	if (lsn != s->next || !s->at) {
		s->at = ((s->at + PAGE - 1) & ~(size_t)(PAGE - 1)) + (lsn & (PAGE - 1));
		s->room = 0;
	}
	if (s->at < WS_CHUNK_ROOM || s->at + n > MEM_SIZE) {
		s->at = WS_CHUNK_ROOM + (lsn & (PAGE - 1));
		s->room = WS_CHUNK_ROOM;
	}
	s->next = lsn;
	return s->mem + s->at;
}

void
ws_walsrc_give(struct ws_walsrc *s, ws_lsn lsn, ws_tli tli, size_t n, struct ws_walchunk *c)
{
	uint8_t *p = ws_walsrc_place(s, lsn, n);

	*c = (struct ws_walchunk){.lsn = lsn, .tli = tli, .p = p, .n = n};
	if (!s->editable)
		return;
	c->edit = p;
	c->room = s->room;
	s->at += n;
	s->next += n;
	s->room = n;
}

int
ws_walsrc_damaged(const struct ws_walchunk *c, ws_lsn below, bool clean_end, const char *received_file,
                  struct ws_err *err)
{
	struct ws_pos received;

	/* Outside of a state directory a whole segment may be a server's, which ends anywhere. */
	if (c->whole)
		return received_file || !clean_end;
	if (!received_file)
		return 0;
	int rc = ws_pos_read(received_file, &received, err);

	return rc <= 0 ? rc : received.tli == c->tli && below <= received.lsn;
}

int
ws_walsrc_seek(struct ws_walsrc *s, struct ws_pos to, struct ws_err *err)
{
	s->at_end = false;
	return s->ops->seek(s, to, err);
}

int
ws_walsrc_wait(struct ws_walsrc *s, int timeout_ms, struct ws_err *err)
{
	struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = ws_tool_signal_fd(), .events = POLLIN}};
	int most = s->fd >= 0 ? POLL_MS : POLL_BLIND_MS;

	if (timeout_ms < 0 || timeout_ms > most)
		timeout_ms = most;
	if (poll(p, 2, timeout_ms) < 0 && errno != EINTR)
		return ws_err_sys(err, "%s: cannot poll", s->spec);
	return 0;
}

int
ws_walsrc_fd(struct ws_walsrc *s)
{
	return s->fd;
}

bool
ws_walsrc_at_end(const struct ws_walsrc *s)
{
	return s->at_end;
}

uint32_t
ws_walsrc_segsize(const struct ws_walsrc *s)
{
	return s->segsize;
}

const struct ws_history *
ws_walsrc_history(const struct ws_walsrc *s)
{
	return s->hist_known ? &s->hist : NULL;
}

ws_lsn
ws_walsrc_switch(const struct ws_walsrc *s, ws_tli tli, const struct ws_walchunk *c)
{
	ws_lsn end = s->hist_known ? ws_history_end(&s->hist, tli) : 0;

	/* A stream may come without histories: it goes on from byte to byte. */
	return end && end != UINT64_MAX ? end : c->lsn;
}

int
ws_walsrc_record(const struct ws_walsrc *s, ws_tli tli, struct ws_walreader *r, struct ws_rec *rec,
                 struct ws_err *err)
{
	int rc = ws_walreader_next(r, rec, err);

	if (rc == 1) {
		ws_tli at = s->hist_known && s->hist.n ? ws_history_tli_at(&s->hist, rec->end - 1) : tli;

		/* Before the reader goes back for a switch that became known it is still in the ancestor's file. */
		rec->tli = at < tli ? at : tli;
	}
	return rc;
}

bool
ws_walsrc_cluster(const struct ws_walsrc *s, struct ws_cluster *c)
{
	if (s->cluster_known)
		*c = s->cluster;
	return s->cluster_known;
}

int
ws_walsrc_identify(struct ws_walsrc *s, const char *path, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_page_header h;
	const struct ws_walver *v;

	if (ws_page_header_parse(p, n, &h) != 0 || h.size != WS_PAGE_HDR_LONG || !h.magic)
		return ws_err_op(err, "not_wal", "%s: not a WAL segment", path);
	if (!(v = ws_walver_by_magic(h.magic))) {
		ws_walver_refuse(h.magic, h.pageaddr, err);
		return ws_err_prefix(err, "%s", path);
	}
	if (!ws_segsize_ok(h.segsize) || h.blcksz != WS_PAGE_SIZE)
		return ws_err_op(err, "not_wal", "%s: segment size %" PRIu32 " or block size %" PRIu32 " is impossible",
		                 path, h.segsize, h.blcksz);
	if (s->segsize && h.segsize != s->segsize)
		return ws_err_op(err, "segment_size_changed",
		                 "%s: WAL segments of %" PRIu32 " bytes, %" PRIu32 " were expected", path, h.segsize,
		                 s->segsize);
	if (s->cluster_known && h.system_id != s->cluster.system_id)
		return ws_err_op(err, "system_id_changed",
		                 "%s: WAL of system identifier %" PRIu64 ", %" PRIu64 " was expected", path,
		                 h.system_id, s->cluster.system_id);
	s->segsize = h.segsize;
	s->cluster = (struct ws_cluster){h.system_id, v->major, h.segsize};
	s->cluster_known = true;
	return 0;
}
