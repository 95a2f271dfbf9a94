/* The way through an archive along a timeline's history: which file holds a position, and what is
 * missing.  Pure: names and histories in, names out.
 *
 * A reader that restores asks ws_histdir_name for the file of the next segment and gets it.  When the
 * archive does not have it, ws_arcpath_required says what that means: before the fork's segment a
 * gap, else the end of the archive so far. */
#ifndef WS_ARCPATH_H
#define WS_ARCPATH_H

#include "ws/history.h"

/* The timeline whose file holds segment number segno on history h: the newest one that has begun
 * by its end, so the fork's segment is the descendant's, and of several forks in one the last's. */
ws_tli ws_arcpath_tli(const struct ws_history *h, uint64_t segno, uint32_t segsize);

/* True when an archive that goes on past it must have it: the segment ends at or below the last
 * switch of h.  (The fork's own is complete only when the descendant has filled it.) */
bool ws_arcpath_required(const struct ws_history *h, uint64_t segno, uint32_t segsize);

struct ws_arcseg {
	ws_tli tli;
	uint64_t segno;
};

/* Segments first..last of one timeline. */
struct ws_arcspan {
	ws_tli tli;
	uint64_t first, last;
};

struct ws_arccheck {
	struct ws_arcspan *there, *missing; /* in the order of h */
	size_t nthere, nmissing;
	size_t off_path; /* segments that are not on h */
};

/* segs is sorted by this.  From segment `from` on (UINT64_MAX: the oldest on h) up to the newest on
 * h, or as far as ws_arcpath_required goes. */
void ws_arcpath_sort(struct ws_arcseg *segs, size_t n);
void ws_arcpath_check(const struct ws_history *h, uint32_t segsize, struct ws_arcseg *segs, size_t n,
                      uint64_t from, struct ws_arccheck *out);
void ws_arccheck_fini(struct ws_arccheck *c);

#endif
