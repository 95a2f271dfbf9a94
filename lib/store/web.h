/* HTTP by libcurl: one request at a time over connections that stay open, tried again while a
 * server is out of order.  Of lib/store only. */
#ifndef WS_STORE_WEB_H
#define WS_STORE_WEB_H

#include <curl/curl.h>

#include "store.h"

struct web {
	CURL *easy;
	const struct ws_archive_opts *o; /* the caller's, strings too */
	char *user, *secret, *sigv4;     /* s3; NULL: none */
	char error[CURL_ERROR_SIZE];
};

enum web_method { WEB_GET, WEB_HEAD, WEB_PUT };

struct web_req {
	enum web_method method;
	const char *url;
	struct curl_slist *headers; /* the caller's */
	const void *body;           /* of a PUT */
	size_t n;
	const struct sink *out; /* of a GET with status 2xx; begun again by another try */
	bool redirects;
	/* the answer */
	long status;
	int64_t length;     /* -1: not said */
	struct ws_buf text; /* the beginning of the body of any other status; the caller frees it */
	/* private */
	size_t at;
	bool begun, enough, failed;
	struct web *web;
	struct ws_err *err;
};

int web_init(struct web *w, const struct ws_archive_opts *o, struct ws_err *err);
void web_fini(struct web *w);

/* 0: an answer that another try would not change, in req->status.  -1: none in time, or out said
 * so. A request that got no answer may have been carried out. */
int web_do(struct web *w, struct web_req *req, struct ws_err *err);

/* The error of an answer that is none of those expected; returns -1.  detail may be NULL. */
int web_refused(const struct web_req *req, const char *detail, struct ws_err *err);

/* Appends text with everything encoded but what a URL's path or a query's value may hold as it is.
 */
void web_escape(struct ws_buf *b, const char *text, bool slashes);

#endif
