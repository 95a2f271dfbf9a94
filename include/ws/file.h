/* Files: whole reads with a limit, atomic durable replacement, locks. */
#ifndef WS_FILE_H
#define WS_FILE_H

#include "ws/mem.h"
#include "ws/err.h"

/* Reads the whole file into *out (appended; NUL-terminated beyond len).  A file above max is an
 * error.  Returns 1 when read, 0 when it does not exist, -1 on error. */
int ws_file_read(const char *path, size_t max, struct ws_buf *out, struct ws_err *err);

/* Replaces path by the bytes, atomically and durably: temporary file, fsync, rename, fsync of the
 * directory.  mode as for open.  With sync false neither fsync is done. */
int ws_file_replace(const char *path, const void *p, size_t n, int mode, bool sync, struct ws_err *err);

int ws_fsync_path(const char *path, struct ws_err *err); /* file or directory */
int ws_mkdir_p(const char *path, int mode, struct ws_err *err);
int ws_write_all(int fd, const void *p, size_t n, struct ws_err *err, const char *what);

/* Takes an exclusive flock on path (made when absent, 0600) for the life of the returned
 * descriptor.  Held by another process: WS_ETEMP naming the holder's pid when known. */
int ws_lock_file(const char *path, struct ws_err *err);

#endif
