/* A server's timeline histories, looked at before they are believed or kept. */
#ifndef WS_HISTFETCH_H
#define WS_HISTFETCH_H

#include "ws/history.h"
#include "ws/pgconn.h"

/* The history of a server's timeline and, appended to *bytes, the file as it is; timeline 1 has none.
 * -1: history_missing, history_malformed, or as ws_pg_exec. */
int ws_histfetch_get(struct ws_pg *c, ws_tli tli, struct ws_history *h, struct ws_buf *bytes,
                     struct ws_err *err);

/* The same of n timelines into dir (made when absent), by ws_histdir_store: none when one is not to be
 * had.  The raw/ or filtered/ of a state directory must belong to src's cluster (ws_cluster_claim). */
int ws_histfetch_store(struct ws_pg *c, const struct ws_pg_source *src, const ws_tli *tlis, size_t n,
                       const char *dir, struct ws_err *err);

#endif
