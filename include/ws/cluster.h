/* The state directory's `cluster` file: which PostgreSQL cluster this state belongs to.
 * KEY=value lines: SYSTEM_ID, MAJOR, SEGMENT_SIZE.  Made O_EXCL by the first tool, checked by all. */
#ifndef WS_CLUSTER_H
#define WS_CLUSTER_H

#include "ws/err.h"

struct ws_cluster {
	uint64_t system_id;
	int major;        /* 16, 17, ... */
	uint32_t segsize; /* bytes */
};

/* 1 when read, 0 when absent, -1 on error. */
int ws_cluster_read(const char *statedir, struct ws_cluster *c, struct ws_err *err);

/* Makes the file when absent, else compares: a difference is WS_EOPERATOR with reason
 * system_id_changed (or major_changed, segment_size_changed). */
int ws_cluster_claim(const char *statedir, const struct ws_cluster *c, struct ws_err *err);

#endif
