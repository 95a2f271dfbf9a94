/* The messages inside a replication stream's CopyData (protocol documentation, "Streaming
 * Replication Protocol"; replication/walsender.c).  Pure. */
#ifndef WS_PG_REPLMSG_H
#define WS_PG_REPLMSG_H

#include "ws/mem.h"

#define REPL_WAL_HDR   25 /* 'w', start, end, time */
#define REPL_REPLY_LEN 34 /* 'r', write, flush, apply, time, reply */

/* Big-endian, as everything in the protocol. */
static inline uint32_t
be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t
be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static inline void
put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void
put_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline void
put_be64(uint8_t *p, uint64_t v)
{
	put_be32(p, (uint32_t)(v >> 32));
	put_be32(p + 4, (uint32_t)v);
}

struct repl_msg {
	char kind;                  /* 'w' WAL, 'k' keepalive, 'r' status, 'h' hot standby feedback */
	ws_lsn start, end;          /* w; k has end alone */
	ws_lsn write, flush, apply; /* r */
	bool reply;                 /* k, r */
	const uint8_t *p;           /* w: the bytes */
	size_t n;
};

/* 0, or -1 when the bytes are none of these messages. */
int repl_msg_parse(const uint8_t *p, size_t n, struct repl_msg *m);

/* Microseconds since 2000-01-01 from microseconds since 1970. */
static inline int64_t
repl_time(uint64_t wall_us)
{
	return (int64_t)wall_us - INT64_C(946684800000000);
}

void repl_reply_build(uint8_t out[REPL_REPLY_LEN], ws_lsn write, ws_lsn flush, ws_lsn apply,
					  int64_t now, bool reply);

#endif
