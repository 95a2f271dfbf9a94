/* ws-decode's run: WAL from a source through the decoder to a file descriptor, with the positions
 * of a consumer when it has one. */
#ifndef WS_DECODING_H
#define WS_DECODING_H

#include "ws/hold.h"
#include "ws/xact.h"

struct ws_decoding_opts {
	/* live: a consumer of a state directory */
	const char *state, *consumer; /* NULL: offline */
	const struct ws_hold *hold;   /* nothing past what these standbys have flushed; NULL: no such limit */
	/* offline */
	const char *catalog; /* history; with a state its own */
	const char *const *inputs;
	size_t ninputs;
	ws_lsn start, end; /* 0: from the first WAL there is, to the last */
	/* both */
	ws_oid db; /* 0: the consumer's */
	const char *dbname, *encoding;
	bool json;
	bool trust_swaps, allow_absent;
	uint64_t memory, max_value;
	const char *oracle;  /* its launcher's socket; NULL: types that are not decoded stay bytes */
	const char *toast; /* TOAST store; NULL: the consumer's, or none */
	/* As in ws_decoder_opts; reload is called on SIGHUP, before they are asked again. */
	enum ws_toast_use (*toast_use)(void *arg, const struct ws_rel *rel, const struct ws_rel *root,
	                               const struct ws_attr *attr);
	int (*reload)(void *arg, struct ws_err *err);
	void *toast_arg;
	const char *scratch; /* folder for WAL that has no files; NULL: TMPDIR */
	int fd;
};

/* Runs to the end of the input, or until the tool is told to stop. */
int ws_decoding_run(const struct ws_decoding_opts *o, struct ws_err *err);

/* Prints the prepared transactions that are neither committed nor rolled back where the WAL ends: a
 * line each (xid, first LSN or -, LSN of PREPARE, its time, gid; tabs between) or JSON object.  Of
 * database db (0: of all); with a consumer, from its floor on. */
int ws_decoding_prepared(const struct ws_decoding_opts *o, struct ws_err *err);

#endif
