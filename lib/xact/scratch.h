/* A scratch WAL directory: segments of WAL that came without files to go back to (a stream, a
 * compressed segment).  Private to lib/xact. */
#ifndef WS_SCRATCH_H
#define WS_SCRATCH_H

#include "ws/lsn.h"
#include "ws/mem.h"

struct ws_scratch {
	char *dir;
	uint32_t segsize;
	int fd;
	ws_tli tli;
	ws_lsn seg; /* of fd */
	struct ws_scratchseg {
		ws_tli tli;
		ws_lsn seg;
	} *segs; /* that are there */
	size_t nsegs;
};

int ws_scratch_open(struct ws_scratch *s, const char *parent, uint32_t segsize, struct ws_err *err);
int ws_scratch_put(struct ws_scratch *s, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                   struct ws_err *err);
/* Nothing below is needed any more. */
void ws_scratch_prune(struct ws_scratch *s, ws_lsn below);
void ws_scratch_close(struct ws_scratch *s);

#endif
