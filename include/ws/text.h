/* Text that comes from elsewhere, for a person's terminal and as JSON. */
#ifndef WS_TEXT_H
#define WS_TEXT_H

#include "ws/mem.h"

/* Appends s as a JSON string with its quotes; a byte that is no UTF-8 becomes U+FFFD. */
void ws_text_json(struct ws_buf *out, const char *s);
/* Appends s on one line.  Bytes of control characters and what is no UTF-8 become \xHH, and so does a
 * backslash before an x, so that it can be undone. */
void ws_text_line(struct ws_buf *out, const char *s);

#endif
