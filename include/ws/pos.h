/* Position files, `TLI LSN` on one line (`5 0/6B123456`), replaced atomically.
 * A position is an END position: everything that ends at or below it is done. */
#ifndef WS_POS_H
#define WS_POS_H

#include "ws/err.h"

/* 1 when read, 0 when the file does not exist, -1 on error or a malformed file.  An empty file is
 * what a power failure can leave of one that is written without sync: WS_ETEMP without err->sys,
 * since its writer makes it anew. */
int ws_pos_read(const char *path, struct ws_pos *pos, struct ws_err *err);
/* The same of a file whose line goes on with other words. */
int ws_pos_read_first(const char *path, struct ws_pos *pos, struct ws_err *err);
/* Durable before it returns 0 (unless sync is false). */
int ws_pos_write(const char *path, struct ws_pos pos, bool sync, struct ws_err *err);
/* Text form; out has room for 32 bytes. */
void ws_pos_format(char *out, struct ws_pos pos);
int ws_pos_parse(const char *s, struct ws_pos *pos);

#endif
