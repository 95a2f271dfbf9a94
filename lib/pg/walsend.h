/* What the files of the WAL server share. */
#ifndef WS_PG_WALSEND_H
#define WS_PG_WALSEND_H

#include "ws/cluster.h"
#include "ws/gate.h"
#include "ws/mem.h"
#include "ws/walsend.h"

enum client_state { CL_STARTUP, CL_COMMAND, CL_STREAM, CL_CLOSING };

struct client {
	int fd;
	unsigned id;
	enum client_state state;
	struct ws_buf in, out;
	size_t out_at; /* bytes of out that are sent */
	char name[64];
	/* streaming */
	ws_tli tli;
	ws_lsn sent, write, flush, apply;
	bool copy_done; /* we ended the stream; the client's CopyDone is awaited */
	int seg_fd;
	ws_lsn seg_start;
	uint64_t last_sent_us;
	bool dead;
};

struct walsend {
	const struct ws_walsend_opts *o;
	struct ws_cluster cluster;
	struct ws_gate *gate; /* NULL until the directory has WAL */
	struct ws_pos end;    /* of the directory, as last looked */
	int listen_fd, inotify_fd, lock_fd;
	int wd_pos, wd_dir;
	char *socket_path;
	struct client **clients;
	size_t nclients;
	unsigned next_id;
	bool status_changed;
	struct ws_pos shadow_flush, shadow_replay; /* as last reported */
	uint64_t status_written_us, redo_checked_us;
	ws_lsn redo;
	uint64_t held_since_us, last_us;
	double held_s;
	double *m_sent, *m_replay, *m_gate, *m_held, *m_clients, *m_bytes, *m_limit;
};

/* Looks where the timeline that is served ends in the directory: w->end; lsn 0 when nothing is there. */
int walsend_end(struct walsend *w, struct ws_err *err);

/* ---- walcmd.c: what a client says ---- */

/* Looks at the bytes in c->in and answers into c->out; sets c->state and c->dead. */
void walsend_input(struct walsend *w, struct client *c);
void client_fatal(struct client *c, const char *sqlstate, const char *fmt, ...) WS_PRINTF(3, 4);

/* ---- walout.c: WAL to a client ---- */

/* Puts the next WAL up to the gate's limit into c->out while it is empty.  1: something, 0: nothing
 * to send now, -1: the WAL cannot be read (err). */
int walout_send(struct walsend *w, struct client *c, struct ws_err *err);
/* Whether streaming can start at pos: 0; else an SQLSTATE and a message in msg. */
const char *walout_can_start(struct walsend *w, ws_tli tli, ws_lsn lsn, char *msg, size_t n);
void walout_close(struct client *c);

#endif
