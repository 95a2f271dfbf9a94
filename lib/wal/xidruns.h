/* Which transaction a subtransaction belongs to, as runs of neighbouring xids with the same answer:
 * those of one transaction are mostly handed out one after the other.  Zero-initialised is empty.
 * Private to lib/wal. */
#ifndef WS_XIDRUNS_H
#define WS_XIDRUNS_H

#include "ws/mem.h"
#include "ws/types.h"

struct ws_xidrun {
	ws_xid first, last; /* both included; a run never crosses the wrap */
	ws_xid top;         /* 0: a single xid that was taken out, and goes at the next clean-up */
};

struct ws_xidruns {
	struct ws_xidrun *r; /* by first */
	uint32_t n, cap, dead;
};

void ws_xidruns_free(struct ws_xidruns *s);
/* 0: not here. */
ws_xid ws_xidruns_find(const struct ws_xidruns *s, ws_xid xid);
void ws_xidruns_put(struct ws_xidruns *s, ws_xid xid, ws_xid top);
void ws_xidruns_del(struct ws_xidruns *s, ws_xid xid);
/* Takes out all that precede oldest (modulo 2^32). */
void ws_xidruns_reap(struct ws_xidruns *s, ws_xid oldest);
/* Those taken out go, and neighbours become one: equal contents are equal runs then. */
void ws_xidruns_tidy(struct ws_xidruns *s);
/* xid..last belong to xid's run from now on.  False: there is none, or another one is in the way. */
bool ws_xidruns_through(struct ws_xidruns *s, ws_xid xid, ws_xid last);

static inline bool
ws_xidruns_empty(const struct ws_xidruns *s)
{
	return s->n == s->dead;
}

#endif
