/* Messages of a replication stream; see replmsg.h. */
#include "replmsg.h"

int
repl_msg_parse(const uint8_t *p, size_t n, struct repl_msg *m)
{
	*m = (struct repl_msg){0};
	if (n < 1)
		return -1;
	m->kind = (char)p[0];
	switch (m->kind) {
	case 'w':
		if (n < REPL_WAL_HDR)
			return -1;
		m->start = be64(p + 1);
		m->end = be64(p + 9);
		m->p = p + REPL_WAL_HDR;
		m->n = n - REPL_WAL_HDR;
		return m->start + m->n < m->start ? -1 : 0;
	case 'k':
		if (n < 18)
			return -1;
		m->end = be64(p + 1);
		m->reply = p[17] != 0;
		return 0;
	case 'r':
		if (n < REPL_REPLY_LEN)
			return -1;
		m->write = be64(p + 1);
		m->flush = be64(p + 9);
		m->apply = be64(p + 17);
		m->reply = p[33] != 0;
		return 0;
	case 'h': /* time, xmin, its epoch, catalog xmin, its epoch: nothing of it is of use here */
		return n < 25 ? -1 : 0;
	}
	return -1;
}

void
repl_reply_build(uint8_t out[REPL_REPLY_LEN], ws_lsn write, ws_lsn flush, ws_lsn apply, int64_t now,
				 bool reply)
{
	out[0] = 'r';
	put_be64(out + 1, write);
	put_be64(out + 9, flush);
	put_be64(out + 17, apply);
	put_be64(out + 25, (uint64_t)now);
	out[33] = reply;
}
