/* Timeline histories as files: one of a directory, the segment that holds a position, and whether all
 * that lies there goes together. */
#ifndef WS_HISTDIR_H
#define WS_HISTDIR_H

#include "ws/err.h"
#include "ws/history.h"

/* Reads a history.  spec is a history file, whose name tells the timeline, or tli does when the name is
 * another one; or a directory: timeline tli's there (0: the newest of its history files and segments;
 * timeline 1 has no file).  Absent in a directory: history_missing; a spec that cannot be opened is an
 * error of usage. */
int ws_histdir_load(const char *spec, ws_tli tli, struct ws_history *h, struct ws_err *err);

/* Size of dir's segments, as the oldest says.  1 known, 0 there is none, -1. */
int ws_histdir_segsize(const char *dir, uint32_t *segsize, struct ws_err *err);

/* Name of the segment with byte lsn: of the newest timeline that has bytes in it. */
void ws_histdir_name(const struct ws_history *h, ws_lsn lsn, uint32_t segsize, char *name);
/* The file in dir that has byte lsn of this history: 1 and *path (malloc'd), 0 there is none, -1.
 * Under that name, else of an older timeline that reaches to lsn; whole, partial or compressed. */
int ws_histdir_segment(const char *dir, const struct ws_history *h, ws_lsn lsn, uint32_t segsize,
                       char **path, struct ws_err *err);

/* What is wrong, and where.  reason: history_malformed; history_conflict: it does not begin with its
 * ancestor's lines; history_not_ascending; history_missing: segments of a timeline that nothing tells the
 * begin of; wal_off_path: a segment outside of its timeline's part of every history. */
struct ws_histdir_finding {
	const char *reason, *path, *text;
};
typedef void (*ws_histdir_found)(void *arg, const struct ws_histdir_finding *f);

/* Checks a history file, with those of its ancestors beside it, or all of a directory and its segments.
 * Findings are no errors: 0 all was looked at, -1 something could not be read. */
int ws_histdir_check(const char *spec, ws_histdir_found found, void *arg, struct ws_err *err);

/* Writes timeline tli's history file into dir, durable and atomic; needs no lock, and nothing is written
 * when the same is there.  One with other content is left alone: reason=history_changed. */
int ws_histdir_store(const char *dir, ws_tli tli, const void *p, size_t n, bool sync,
                     struct ws_err *err);

#endif
