/* Reading a tar archive (ustar) from bytes in any pieces.  Pure. */
#ifndef WS_TAR_H
#define WS_TAR_H

#include "ws/err.h"

#define WS_TAR_BLOCK 512u

struct ws_tar_member {
	char name[257];
	char link[101];
	char type; /* '0' file, '5' directory, '2' symbolic link, others as they are */
	uint64_t size;
};

/* What happens, in order: member, then data pieces that add up to size, then done. */
struct ws_tar_events {
	int (*member)(void *arg, const struct ws_tar_member *m, struct ws_err *err);
	int (*data)(void *arg, const uint8_t *p, size_t n, struct ws_err *err);
	int (*done)(void *arg, struct ws_err *err);
};

/* Zero-initialised is at an archive's start. */
struct ws_tar {
	uint8_t header[WS_TAR_BLOCK];
	size_t have;      /* bytes of header */
	uint64_t left;    /* data bytes to come */
	uint32_t padding; /* bytes to skip then */
	int zeros;        /* zero blocks seen: two end the archive */
	bool in_member;
};

/* -1: no tar archive, or an event returned -1. */
int ws_tar_feed(struct ws_tar *t, const uint8_t *p, size_t n, const struct ws_tar_events *ev, void *arg,
                struct ws_err *err);
/* True at the end of a whole archive. */
bool ws_tar_complete(const struct ws_tar *t);

#endif
