/* The filter's output directory: filtered WAL, `state` (position and knowledge in one file,
 * replaced atomically) and states/SEGMENT (the knowledge that each segment begins with).
 *
 * Order of a save: the WAL up to the position is durable, then `state`, then the position file.
 * Nothing is saved above the position that the input's writer has announced as durable. */
#ifndef WS_FILTERDIR_H
#define WS_FILTERDIR_H

#include "ws/filter.h"
#include "ws/history.h"

struct ws_filterdir_opts {
	const char *dir;
	const char *pos_file;      /* also announced here; NULL: nowhere */
	const char *received_file; /* the input's durable position; NULL: no limit */
	bool no_sync;
	bool stateless; /* one segment alone: no state is read or written */
	bool background; /* appends overlap with what the caller does next, see ws_filterdir_append */
	double interval; /* seconds between saves */
};

struct ws_filterdir;

/* The strings are copied. */
struct ws_filterdir *ws_filterdir_new(const struct ws_filterdir_opts *o);
void ws_filterdir_free(struct ws_filterdir *d);

/* The saved state into a fresh f.  1, 0 when there is none, -1. */
int ws_filterdir_load(struct ws_filterdir *d, struct ws_filter *f, struct ws_pos *pos, uint64_t *system_id,
                      struct ws_err *err);
/* Opens for writing; restored is the loaded position, or lsn 0. */
int ws_filterdir_begin(struct ws_filterdir *d, uint32_t segsize, struct ws_pos restored, struct ws_err *err);
#define WS_FILTERDIR_DEPTH 4 /* appends under way at most */

/* In the background p must stay until WS_FILTERDIR_DEPTH appends later, or until the next but one and
 * ws_filterdir_settle, or until ws_filterdir_flush; each may tell the error of an earlier one. */
int ws_filterdir_append(struct ws_filterdir *d, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                        struct ws_err *err);
/* Waits for the appends in the background; settle: for all but the last. */
int ws_filterdir_flush(struct ws_filterdir *d, struct ws_err *err);
int ws_filterdir_settle(struct ws_filterdir *d, struct ws_err *err);
/* Everything up to pos has been appended: saves when it is time (now: at once). */
int ws_filterdir_save(struct ws_filterdir *d, const struct ws_filter *f, struct ws_pos pos,
                      uint64_t system_id, bool now, struct ws_err *err);
/* Writes the state that a segment begins with; removes those whose segment is gone. */
int ws_filterdir_segment(struct ws_filterdir *d, ws_tli tli, ws_lsn segment, const struct ws_buf *state,
                         struct ws_err *err);
/* The newest of those states on history h from which a segment can be filtered (again): its knowledge ends
 * at *pos, at or below `segment`.  None: WS_EOPERATOR reason=filter_state_missing. */
int ws_filterdir_segment_state(struct ws_filterdir *d, const struct ws_history *h, ws_lsn segment,
                               struct ws_buf *out, struct ws_pos *pos, struct ws_err *err);

/* A switch of timeline: copies the history file from the directory `from`; begins anew at pos. */
int ws_filterdir_history(struct ws_filterdir *d, const char *from, ws_tli tli, struct ws_err *err);
int ws_filterdir_reopen(struct ws_filterdir *d, struct ws_pos pos, struct ws_err *err);
/* WAL past the end of its timeline on h goes out of the way: ws_waldir_set_aside. */
int ws_filterdir_set_aside(struct ws_filterdir *d, const struct ws_history *h, uint64_t *bytes, struct ws_err *err);
/* Is what was saved last past the end of its timeline? */
bool ws_filterdir_past(const struct ws_filterdir *d, const struct ws_history *h);
/* The state of pos, as read from a file, is saved in the place of a later one; then the position file. */
int ws_filterdir_go_back(struct ws_filterdir *d, const struct ws_buf *state, struct ws_pos pos, struct ws_err *err);
int ws_filterdir_announce(struct ws_filterdir *d, struct ws_pos pos, struct ws_err *err);

#endif
