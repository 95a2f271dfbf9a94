/* The receiver's output: a thread that writes what the network thread hands over.
 *
 * A stream begins at or below the end of what is kept already; the bytes below that end are
 * compared with the kept ones and never written again.  Bytes that were never announced as received
 * (above pos/received, in a .partial) may be torn after a crash of the machine: a difference there
 * cuts the file; any other difference means another history of the same cluster and is an error. */
#ifndef WS_PG_RECVOUT_H
#define WS_PG_RECVOUT_H

#include "ws/cluster.h"
#include "ws/err.h"
#include "ws/history.h"

struct recvout;

struct recvout_opts {
	const char *dir;      /* WAL directory; NULL: framed stream to stdout */
	const char *pos_path; /* pos/received, or NULL */
	struct ws_cluster cluster;
	bool no_sync, synchronous;
	double sync_interval; /* seconds */
};

struct recvout *recvout_open(const struct recvout_opts *o, struct ws_err *err);
/* Writes and syncs what is queued, waiting at most timeout_ms; with end, a framed stream gets its
 * end frame.  After an error or a timeout the rest is dropped, and -1 is returned. */
int recvout_close(struct recvout *o, bool end, int timeout_ms, struct ws_err *err);

/* Position to go on from: the end of what is kept, or {0,0} when there is nothing.  Only while
 * nothing is queued. */
struct ws_pos recvout_kept(struct recvout *o);
/* True when pos/received says so already, or is not written: else the last bytes must be compared with
 * what comes before they are believed.  Only while nothing is queued. */
bool recvout_announced(struct recvout *o);
/* True when a segment (complete or partial) that holds byte lsn is in the directory. */
bool recvout_has_segment(struct recvout *o, ws_tli tli, ws_lsn lsn);
/* A stream begins at pos, at or below what is kept.  whose ("the server's") is for messages. */
void recvout_begin(struct recvout *o, struct ws_pos pos, const char *whose);
/* What is kept counts up to lsn only, where its timeline ends on the server.  Only while nothing is
 * queued. */
void recvout_cut_back(struct recvout *o, ws_lsn lsn);
/* The timeline has ended at lsn, and every byte below is here: what lies above is set aside
 * (ws_waldir_set_aside; *abandoned says how many bytes), pos/received goes back there if it must.  h is the
 * next timeline's history, which is in the directory already.  Only while nothing is queued. */
int recvout_timeline_end(struct recvout *o, const struct ws_history *h, ws_lsn lsn, uint64_t *abandoned,
						 struct ws_err *err);
/* The stream of the next timeline begins at start, where a segment does, at or below the switch that was
 * given to recvout_timeline_end: bytes below are compared, and nothing there is received anew. */
void recvout_begin_fork(struct recvout *o, struct ws_pos start);
/* Gives n bytes at lsn; owner is freed by ws_pg_free.  They follow the ones before. */
void recvout_push(struct recvout *o, void *owner, ws_lsn lsn, const uint8_t *p, size_t n);
/* Gives a copy of them. */
void recvout_push_copy(struct recvout *o, ws_lsn lsn, const uint8_t *p, size_t n);
int recvout_history(struct recvout *o, ws_tli tli, const void *p, size_t n, struct ws_err *err);

/* True while the queue holds as much as it may; then nothing more is read from the server. */
bool recvout_full(struct recvout *o);
/* True when everything pushed is written, and synced unless the kept bytes are yet to be compared. */
bool recvout_idle(struct recvout *o);
/* Ends: written, and fsynced (0 until the kept bytes were compared; always 0 for a stream). */
void recvout_positions(struct recvout *o, ws_lsn *written, ws_lsn *synced);
/* The bytes compared with kept ones so far. */
uint64_t recvout_verified(struct recvout *o);
/* 0, or -1 with the thread's error. */
int recvout_check(struct recvout *o, struct ws_err *err);
/* Readable after syncs, errors and when a full queue has room again; recvout_check empties it. */
int recvout_fd(const struct recvout *o);

#endif
