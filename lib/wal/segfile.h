/* One segment file, plain or compressed, read forward.  Of lib/wal only. */
#ifndef WS_SEGFILE_H
#define WS_SEGFILE_H

#include <sys/types.h>

#include "walnames.h"

struct ws_segfile;

/* 1 opened, 0 it does not exist, -1. */
int ws_segfile_open(const char *path, enum ws_seg_kind kind, struct ws_segfile **out, struct ws_err *err);
void ws_segfile_close(struct ws_segfile *f);

/* Up to n bytes at off, which a compressed file wants at or behind the last read's end.  0 at the
 * file's end, -1 on error. */
ssize_t ws_segfile_read(struct ws_segfile *f, uint64_t off, uint8_t *p, size_t n, struct ws_err *err);
const char *ws_segfile_path(const struct ws_segfile *f);
enum ws_seg_kind ws_segfile_kind(const struct ws_segfile *f);

#endif
