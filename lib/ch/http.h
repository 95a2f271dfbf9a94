/* ClickHouse over HTTP by libcurl's multi interface: requests that run side by side, and what their
 * answers mean.  The server says 200 to much that failed: see ch_req_outcome. */
#ifndef LIB_CH_HTTP_H
#define LIB_CH_HTTP_H

#include <curl/curl.h>

#include "lib/ch/column.h"
#include "ws/err.h"

enum ch_encoding { CH_ENC_NONE, CH_ENC_LZ4, CH_ENC_ZSTD, CH_ENC_GZIP };

struct ch_http_opts {
	const char *const *urls; /* http://host:port[/path], at least one */
	int nurls;
	const char *user, *password; /* NULL: the server's default user */
	const char *cacert, *cert, *key, *proxy;
	bool no_verify;
	double connect_timeout, request_timeout; /* seconds */
};

enum ch_outcome {
	CH_OK,
	CH_TEMP,    /* the server says no for now */
	CH_UNKNOWN, /* no answer: it may have happened, or happen later */
	CH_REFUSED, /* an operator is needed */
	CH_BUG      /* the server could not read what was sent */
};

struct ch_req {
	/* Set by the caller before ch_http_start; the bytes stay valid until it is done. */
	const char *query_id;
	const char *params; /* "name=value&..." already escaped; may be NULL */
	const struct ch_piece *pieces;
	int npieces;
	enum ch_encoding encoding;
	bool insert;    /* the answer must be empty, the rows counted */
	uint64_t rows;  /* sent by an insert */
	int url;        /* index; -1: the current one */
	double timeout; /* seconds; 0: the default; negative: none */
	/* Set when done. */
	bool done;
	CURLcode result;
	long status;
	int code; /* the server's exception code, 0 none */
	bool has_written;
	uint64_t written;
	struct ws_buf body;
	int used_url;
	/* Private. */
	void *owner; /* the caller's */
	CURL *easy;
	struct curl_slist *headers;
	int piece;
	size_t offset;
	char error[CURL_ERROR_SIZE];
};

struct ch_http;

struct ch_http *ch_http_new(const struct ch_http_opts *o, struct ws_err *err);
void ch_http_free(struct ch_http *h);
const char *ch_http_url(const struct ch_http *h, int i); /* for messages: no secrets in it */
int ch_http_current(const struct ch_http *h);
/* Goes to the next server, after one gave no answer. */
void ch_http_next(struct ch_http *h, int failed);

int ch_http_start(struct ch_http *h, struct ch_req *r, struct ws_err *err);
void ch_http_cancel(struct ch_http *h, struct ch_req *r);
void ch_req_fini(struct ch_req *r);
/* Moves all requests on; returns one that got done, or NULL. */
struct ch_req *ch_http_step(struct ch_http *h);
/* Waits until something can move, one of the descriptors is readable, or the time is over.  Sets
 * revents. */
void ch_http_wait(struct ch_http *h, struct curl_waitfd *fds, unsigned nfds, int ms);

/* What a done request means; err gets the message for all but CH_OK. */
enum ch_outcome ch_req_outcome(const struct ch_http *h, const struct ch_req *r, struct ws_err *err);

/* Compresses the pieces into one frame with a content checksum; out is empty before. */
int ch_compress(enum ch_encoding e, const struct ch_piece *pieces, int n, struct ws_buf *out,
				struct ws_err *err);

/* Appends name=value, percent-encoded, with & before it when b is not empty. */
void ch_param(struct ws_buf *b, const char *name, const char *value);

#endif
