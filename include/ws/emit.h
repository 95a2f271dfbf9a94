/* The change stream into ClickHouse: batches, statements, durable positions. */
#ifndef WS_EMIT_H
#define WS_EMIT_H

#include "ws/err.h"
#include "ws/metrics.h"

struct ws_emit_opts {
	const char *state, *consumer;
	const char *common;          /* the consumer that this is one destination of, or NULL */
	const char *const *peers;    /* then: the names of all its destinations, this one's included */
	int npeers;
	const char *const *urls;
	int nurls;
	const char *user, *password;
	const char *cacert, *cert, *key, *proxy;
	bool no_verify;
	const char *encoding;        /* none, lz4, zstd, gzip */
	const char *const *settings; /* NAME=VALUE for every insert */
	int nsettings;
	const char *routes;          /* file, or NULL: everything by default rules */
	bool sequences;              /* their values are rows of walshadow.sequences */
	bool load;                   /* the stream is a snapshot */
	bool no_loop;                /* an outage ends the run instead of being waited out */
	double flush_interval;       /* seconds: a change waits no longer for its batch to fill */
	double flush_gap;            /* seconds between two early flushes of a table */
	uint64_t batch_rows, batch_bytes, memory;
	int connections;
	double connect_timeout, request_timeout, drain_timeout;
};

void ws_emit_defaults(struct ws_emit_opts *o);
/* Reads the stream from fd to its end.  0, or -1 with the error. */
int ws_emit_run(const struct ws_emit_opts *o, int fd, struct ws_metrics *m, struct ws_err *err);

#endif
