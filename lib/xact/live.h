/* A consumer's positions: what ws-decode reads (captured, ack) and writes (floor, read).  Private
 * to lib/xact. */
#ifndef WS_LIVE_H
#define WS_LIVE_H

#include "ws/pos.h"
#include "ws/xact.h"

struct ws_live {
	char *captured_path, *ack_path, *floor_path, *read_path;
	struct ws_pos captured, ack, floor; /* as last read or written; lsn 0: not there */
	struct ws_pos published; /* sent.NAME at the start: an earlier run's rows may be there up to it */
	struct ws_pos read;
	uint64_t floor_us, read_us, ack_us; /* of the last write or look */
	struct ws_floorq floors;
	int inotify; /* -1: polled */
	int lock;    /* consumer/NAME/decode.lock, for life */
	/* What a floor relies on is made durable before it is written. */
	int (*before_floor)(void *arg, struct ws_err *err);
	void *arg;
};

int ws_live_open(struct ws_live *l, const char *state, const char *consumer, ws_oid db,
                 struct ws_err *err);
void ws_live_close(struct ws_live *l);

/* Waits for floor.NAME and captured.DB to exist.  1 they do, 0 stop, -1. */
int ws_live_wait_start(struct ws_live *l, struct ws_err *err);
/* Looks whether the history covers lsn.  1, 0, -1. */
int ws_live_look_captured(struct ws_live *l, ws_lsn lsn, struct ws_err *err);
/* Sleeps until a position file may have changed, ms passed, or a signal came. */
int ws_live_sleep(struct ws_live *l, int extra_fd, int ms, struct ws_err *err);
/* Reads ack when `sent` is above it, moves the floor; now: also what could wait. */
int ws_live_floor(struct ws_live *l, ws_lsn sent, bool now, struct ws_err *err);
int ws_live_read(struct ws_live *l, struct ws_pos at, bool now, struct ws_err *err);

#endif
