/* The states that a filter keeps of segments, DIR/states/SEGMENT of its output directory: the knowledge
 * that the segment begins with. */
#ifndef WS_FILTERSTATES_H
#define WS_FILTERSTATES_H

#include "ws/history.h"
#include "ws/mem.h"

/* The newest whose knowledge ends at or below lsn and lies on history h (NULL: any): 1 with the file in
 * *out (appended) and its position, 0 there is none, -1.  One that is damaged is told and passed over. */
int ws_filterstates_find(const char *dir, uint32_t segsize, const struct ws_history *h, ws_lsn lsn,
                         struct ws_buf *out, struct ws_pos *pos, struct ws_err *err);

#endif
