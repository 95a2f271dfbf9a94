/* Timeline history files (access/timeline.c): parsed by PostgreSQL's grammar, pure.
 *
 * The bytes of a history belong to the timeline after the last switch at or below them.  Switches need
 * not ascend: a recovery that was to follow timeline 2 and stopped before 2 had begun leaves
 * "1 F", "2 E" with E below F.  There 2 has no bytes, 1 ends at E, and so all functions here say. */
#ifndef WS_HISTORY_H
#define WS_HISTORY_H

#include "ws/err.h"
#include "ws/mem.h"

#define WS_HISTORY_MAX (1024u * 1024) /* bytes of a history file that we accept */

struct ws_history_entry {
	ws_tli tli;
	ws_lsn end;   /* the switch as the file has it */
	char *reason; /* the rest of the line without white space around it; any bytes but NUL */
};

struct ws_history {
	ws_tli tli; /* the file's own; its range is open */
	size_t n;
	struct ws_history_entry *entries; /* ancestors, ids ascending */
};

/* Content may be NULL/0 (no ancestors).  -1: reason history_malformed. */
int ws_history_parse(ws_tli tli, const char *content, size_t n, struct ws_history *out, struct ws_err *err);
void ws_history_fini(struct ws_history *h);

/* Timeline that holds byte lsn on this history (a switch belongs to the descendant). */
ws_tli ws_history_tli_at(const struct ws_history *h, ws_lsn lsn);
/* The timeline in the name of the segment that holds byte lsn: the newest that has bytes in it. */
ws_tli ws_history_name_of(const struct ws_history *h, ws_lsn lsn, uint32_t segsize);
/* End of tli's range: its switch, or an older one than the file has for it; UINT64_MAX for h->tli; 0
 * when tli is not on this history. */
ws_lsn ws_history_end(const struct ws_history *h, ws_tli tli);

/* The bytes of the i-th timeline from the oldest; i == n is h->tli. */
struct ws_history_range {
	ws_tli tli;
	ws_lsn begin, end; /* end UINT64_MAX: open; begin >= end: it has none */
};
struct ws_history_range ws_history_range(const struct ws_history *h, size_t i);

/* What follows timeline tli, which is on h and not h->tli: the next timeline that has bytes, and the switch. */
struct ws_pos ws_history_next(const struct ws_history *h, ws_tli tli);

/* Is what ends at lsn on timeline tli part of this history?  0: tli is h->tli or an ancestor, and lsn is
 * at or below its end there.  A switch is on both timelines; below a timeline's begin its bytes are its
 * ancestors', and so are this history's.  Else WS_EOPERATOR: timeline_not_descendant (tli is not on
 * this history), resume_past_fork (lsn is past its end). */
int ws_history_prove(const struct ws_history *h, ws_tli tli, ws_lsn lsn, struct ws_err *err);

/* Can a server that has this history be followed from timeline from on?  It sends each timeline up to the
 * switch in the file: history_malformed when a later switch is below it. */
int ws_history_ascends(const struct ws_history *h, ws_tli from, struct ws_err *err);

/* Appends a line a timeline, oldest first; json: an object a line.  show is what the file has: timeline,
 * begin, end, reason.  path is what it means, the ranges of bytes in [from, to): timeline, begin, end. */
void ws_history_show(const struct ws_history *h, bool json, struct ws_buf *out);
void ws_history_path(const struct ws_history *h, ws_lsn from, ws_lsn to, bool json, struct ws_buf *out);

#endif
