/* Timeline history files (access/timeline.c): parsed by PostgreSQL's grammar, pure. */
#ifndef WS_HISTORY_H
#define WS_HISTORY_H

#include "ws/err.h"

#define WS_HISTORY_MAX (1024u * 1024) /* bytes of a history file that we accept */

struct ws_history_entry {
	ws_tli tli;
	ws_lsn end; /* the switch: this timeline ends here */
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
/* End of tli's range: its switch; UINT64_MAX for h->tli; 0 when tli is not on this history. */
ws_lsn ws_history_end(const struct ws_history *h, ws_tli tli);

#endif
