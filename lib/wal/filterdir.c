/* The filter's output directory and its state files; see ws/filterdir.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "walback.h"
#include "walnames.h"
#include "ws/file.h"
#include "ws/filterdir.h"
#include "ws/filterstates.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/waldir.h"

#define MUCH      (1024u * 1024) /* a longer append is waited for: a record of many chunks */
#define UNDER_WAY (WS_FILTERDIR_DEPTH * MUCH)

struct ws_filterdir {
	char *dir, *state_path, *states_dir, *pos_file, *received_file;
	bool no_sync, stateless, background;
	uint64_t interval_us, saved_us;
	uint32_t segsize;
	struct ws_walwriter *w;
	struct ws_walback *back; /* or NULL */
	struct ws_pos saved;
	/* a snapshot that waits until the input is durable up to it */
	struct ws_buf snap;
	struct ws_pos snap_pos; /* lsn 0: none */
};

struct ws_filterdir *
ws_filterdir_new(const struct ws_filterdir_opts *o)
{
	struct ws_filterdir *d = ws_calloc(1, sizeof *d);

	d->dir = ws_strdup(o->dir);
	d->state_path = ws_asprintf("%s/state", o->dir);
	d->states_dir = ws_asprintf("%s/states", o->dir);
	d->pos_file = o->pos_file ? ws_strdup(o->pos_file) : NULL;
	d->received_file = o->received_file ? ws_strdup(o->received_file) : NULL;
	d->no_sync = o->no_sync;
	d->stateless = o->stateless;
	d->background = o->background;
	d->interval_us = (uint64_t)(o->interval * 1e6);
	return d;
}

void
ws_filterdir_free(struct ws_filterdir *d)
{
	if (!d)
		return;
	ws_walback_free(d->back);
	ws_walwriter_close(d->w);
	ws_buf_free(&d->snap);
	free(d->dir);
	free(d->state_path);
	free(d->states_dir);
	free(d->pos_file);
	free(d->received_file);
	free(d);
}

int
ws_filterdir_load(struct ws_filterdir *d, struct ws_filter *f, struct ws_pos *pos, uint64_t *system_id,
                  struct ws_err *err)
{
	return d->stateless ? 0 : ws_filter_read(f, d->state_path, pos, system_id, err);
}

int
ws_filterdir_begin(struct ws_filterdir *d, uint32_t segsize, struct ws_pos restored, struct ws_err *err)
{
	struct ws_walwriter_opts o = {.segsize = segsize,
	                              .no_sync = d->no_sync,
	                              .preallocate = d->background,
	                              .durable = restored.lsn};

	d->segsize = segsize;
	d->saved = restored;
	d->saved_us = 0; /* whoever waits for a position sees one at once */
	d->w = ws_walwriter_open(d->dir, &o, err);
	if (!d->w)
		return -1;
	/* Without a thread it is slower, no more. */
	d->back = d->background ? ws_walback_new(d->w) : NULL;
	return d->stateless ? 0 : ws_mkdir_p(d->states_dir, 0700, err);
}

int
ws_filterdir_append(struct ws_filterdir *d, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                    struct ws_err *err)
{
	if (!d->back)
		return ws_walwriter_append(d->w, tli, lsn, p, n, err);
	if (ws_walback_append(d->back, tli, lsn, p, n, err) != 0)
		return -1;
	return n <= MUCH ? 0 : ws_filterdir_flush(d, err);
}

int
ws_filterdir_flush(struct ws_filterdir *d, struct ws_err *err)
{
	return d->back ? ws_walback_wait(d->back, 0, err) : 0;
}

int
ws_filterdir_settle(struct ws_filterdir *d, struct ws_err *err)
{
	return d->back ? ws_walback_wait(d->back, 1, err) : 0;
}

/* 1: what lies below pos is durable in the input. */
static int
input_durable(const struct ws_filterdir *d, struct ws_pos pos, struct ws_err *err)
{
	struct ws_pos received;

	if (!d->received_file)
		return 1;
	int rc = ws_pos_read(d->received_file, &received, err);

	return rc <= 0 ? rc : received.lsn >= pos.lsn;
}

int
ws_filterdir_announce(struct ws_filterdir *d, struct ws_pos pos, struct ws_err *err)
{
	return d->pos_file ? ws_pos_write(d->pos_file, pos, !d->no_sync, err) : 0;
}

int
ws_filterdir_save(struct ws_filterdir *d, const struct ws_filter *f, struct ws_pos pos,
                  uint64_t system_id, bool now, struct ws_err *err)
{
	if (d->stateless)
		return 0;
	bool due = now || ws_now_us() - d->saved_us >= d->interval_us;

	if (!d->snap_pos.lsn && due && (pos.lsn != d->saved.lsn || pos.tli != d->saved.tli)) {
		d->snap.len = 0;
		ws_filter_save(f, pos, system_id, &d->snap);
		d->snap_pos = pos;
	}
	if (!d->snap_pos.lsn)
		return 0;
	int rc = input_durable(d, d->snap_pos, err);

	if (rc <= 0)
		return rc;
	if (ws_filterdir_flush(d, err) != 0 || ws_walwriter_sync(d->w, err) != 0 ||
	    ws_file_replace(d->state_path, d->snap.data, d->snap.len, 0600, !d->no_sync, err) != 0)
		return -1;
	d->saved = d->snap_pos;
	d->snap_pos.lsn = 0;
	d->saved_us = ws_now_us();
	if (ws_filterdir_announce(d, d->saved, err) != 0)
		return -1;
	/* The end may have waited behind an older snapshot. */
	return now && pos.lsn != d->saved.lsn ? ws_filterdir_save(d, f, pos, system_id, now, err) : 0;
}

/* Removes the state files whose segment is not in the directory any more.  What lies closely before
 * `segment` may be on its way there. */
static int
prune_states(struct ws_filterdir *d, ws_tli tli, ws_lsn segment, struct ws_err *err)
{
	DIR *dir = opendir(d->states_dir);
	struct dirent *e;

	if (!dir)
		return ws_err_sys(err, "%s: cannot open", d->states_dir);
	while ((e = readdir(dir))) {
		struct ws_walname name;
		bool there = false;

		if (strlen(e->d_name) != WS_SEGNAME_LEN || ws_walname_parse(e->d_name, d->segsize, &name) != 0 ||
		    (name.tli == tli && name.start + d->segsize + UNDER_WAY > segment))
			continue;
		for (int i = 0; i < WS_SEG_KINDS && !there; i++) {
			char *path = ws_asprintf("%s/%s%s", d->dir, e->d_name, ws_seg_suffix[i]);

			there = access(path, F_OK) == 0;
			free(path);
		}
		if (!there && unlinkat(dirfd(dir), e->d_name, 0) != 0 && errno != ENOENT) {
			ws_err_sys(err, "%s/%s: cannot remove", d->states_dir, e->d_name);
			closedir(dir);
			return -1;
		}
	}
	closedir(dir);
	return 0;
}

static char *
segment_path(const struct ws_filterdir *d, ws_tli tli, ws_lsn segment)
{
	char name[WS_WALNAME_MAX];

	ws_seg_name(name, tli, segment, d->segsize);
	return ws_asprintf("%s/%s", d->states_dir, name);
}

int
ws_filterdir_segment(struct ws_filterdir *d, ws_tli tli, ws_lsn segment, const struct ws_buf *state,
                     struct ws_err *err)
{
	if (d->stateless)
		return 0;
	char *path = segment_path(d, tli, segment);
	int rc = ws_file_replace(path, state->data, state->len, 0600, !d->no_sync, err);

	free(path);
	return rc == 0 ? prune_states(d, tli, segment, err) : -1;
}

int
ws_filterdir_segment_state(struct ws_filterdir *d, const struct ws_history *h, ws_lsn segment, struct ws_buf *out,
                           struct ws_pos *pos, struct ws_err *err)
{
	int rc = ws_filterstates_find(d->dir, d->segsize, h, segment, out, pos, err);

	if (rc == 0)
		ws_err_op(err, "filter_state_missing", "%s: no state from which " WS_LSN_FMT " can be filtered again",
		          d->states_dir, WS_LSN_ARG(segment));
	return rc == 1 ? 0 : -1;
}

int
ws_filterdir_set_aside(struct ws_filterdir *d, const struct ws_history *h, uint64_t *bytes, struct ws_err *err)
{
	return ws_filterdir_flush(d, err) == 0 ? ws_waldir_set_aside(d->dir, d->segsize, h, true, bytes, err) : -1;
}

bool
ws_filterdir_past(const struct ws_filterdir *d, const struct ws_history *h)
{
	return d->saved.lsn > ws_history_end(h, d->saved.tli);
}

int
ws_filterdir_go_back(struct ws_filterdir *d, const struct ws_buf *state, struct ws_pos pos, struct ws_err *err)
{
	if (ws_file_replace(d->state_path, state->data, state->len, 0600, !d->no_sync, err) != 0)
		return -1;
	return ws_filterdir_announce(d, pos, err);
}

int
ws_filterdir_history(struct ws_filterdir *d, const char *from, ws_tli tli, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];
	struct ws_buf b = {0};

	if (ws_filterdir_flush(d, err) != 0)
		return -1;
	ws_history_name(name, tli);
	char *path = ws_asprintf("%s/%s", from, name);
	int rc = ws_file_read(path, WS_HISTORY_MAX, &b, err);

	if (rc == 0)
		rc = ws_err_op(err, "history_missing", "%s: absent", path);
	else if (rc == 1)
		rc = ws_walwriter_history(d->w, tli, b.data, b.len, err);
	free(path);
	ws_buf_free(&b);
	return rc;
}

int
ws_filterdir_reopen(struct ws_filterdir *d, struct ws_pos pos, struct ws_err *err)
{
	if (ws_filterdir_flush(d, err) != 0)
		return -1;
	ws_walback_free(d->back);
	d->back = NULL;
	ws_walwriter_close(d->w);
	d->w = NULL;
	d->snap_pos.lsn = 0;
	return ws_filterdir_begin(d, d->segsize, pos, err);
}
