/* HTTP; see web.h. */
#include <ctype.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"
#include "ws/log.h"
#include "ws/tool.h"

#define TEXT_MAX   16384u
#define FIRST_REST 0.25 /* seconds; doubled from try to try */
#define LAST_REST  8.0

int
web_init(struct web *w, const struct ws_archive_opts *o, struct ws_err *err)
{
	*w = (struct web){.o = o};
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		w->easy = curl_easy_init();
	return w->easy ? 0 : ws_err_temp(err, "libcurl cannot start");
}

void
web_fini(struct web *w)
{
	curl_easy_cleanup(w->easy);
	free(w->user);
	if (w->secret)
		explicit_bzero(w->secret, strlen(w->secret));
	free(w->secret);
	free(w->sigv4);
	*w = (struct web){0};
}

void
web_escape(struct ws_buf *b, const char *text, bool slashes)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (isalnum(c) || strchr("-_.~", c) || (slashes && c == '/'))
			ws_buf_putc(b, c);
		else
			ws_buf_printf(b, "%%%02X", c);
	}
}

/* ---- callbacks ---- */

static size_t
on_read(char *out, size_t size, size_t n, void *arg)
{
	struct web_req *r = arg;
	size_t k = r->n - r->at < size * n ? r->n - r->at : size * n;

	memcpy(out, (const char *)r->body + r->at, k);
	r->at += k;
	return k;
}

static int
on_seek(void *arg, curl_off_t offset, int origin)
{
	struct web_req *r = arg;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > r->n)
		return CURL_SEEKFUNC_FAIL;
	r->at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static int
to_sink(struct web_req *r, const uint8_t *p, size_t n)
{
	if (!r->begun && r->out->begin && r->out->begin(r->out->arg, r->err) != 0)
		return -1;
	r->begun = true;
	return n ? r->out->data(r->out->arg, p, n, r->err) : 0;
}

static size_t
on_write(char *p, size_t size, size_t n, void *arg)
{
	struct web_req *r = arg;
	long status = 0;

	curl_easy_getinfo(r->web->easy, CURLINFO_RESPONSE_CODE, &status);
	if (r->out && status >= 200 && status < 300) {
		int rc = to_sink(r, (const uint8_t *)p, size * n);

		r->enough = rc == 1;
		r->failed = rc < 0;
		return rc == 0 ? size * n : 0;
	}
	if (r->text.len < TEXT_MAX)
		ws_buf_put(&r->text, p, size * n);
	return size * n;
}

static int
on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)arg;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return ws_tool_stopping();
}

/* ---- one try ---- */

/* Never 0, which libcurl takes for no limit. */
static long
milliseconds(double seconds)
{
	return (long)(seconds * 1000) + 1;
}

static void
set_up(struct web *w, struct web_req *r)
{
	CURL *e = w->easy;

	curl_easy_reset(e); /* connections stay */
	curl_easy_setopt(e, CURLOPT_URL, r->url);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, w->error);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(w->o->connect_timeout));
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (milliseconds(w->o->timeout) + 999) / 1000);
	curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 262144L);
	if (w->o->cacert)
		curl_easy_setopt(e, CURLOPT_CAINFO, w->o->cacert);
	if (r->redirects && r->method != WEB_PUT) {
		curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L);
		curl_easy_setopt(e, CURLOPT_MAXREDIRS, 5L);
		curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	}
	if (w->o->netrc && !w->sigv4) {
		curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_REQUIRED);
		curl_easy_setopt(e, CURLOPT_NETRC_FILE, w->o->netrc);
	}
	if (w->sigv4) {
		curl_easy_setopt(e, CURLOPT_AWS_SIGV4, w->sigv4);
		curl_easy_setopt(e, CURLOPT_USERNAME, w->user);
		curl_easy_setopt(e, CURLOPT_PASSWORD, w->secret);
	}
	if (r->method == WEB_HEAD) {
		curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	} else if (r->method == WEB_PUT) {
		curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->n);
		curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
		curl_easy_setopt(e, CURLOPT_READDATA, r);
		curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
		curl_easy_setopt(e, CURLOPT_SEEKDATA, r);
		curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 524288L);
	}
}

static bool
is_temporary(long status)
{
	return status == 408 || status == 425 || status == 429 ||
		   (status >= 500 && status != 501 && status != 505);
}

static int
tls_failed(const struct web_req *r, CURLcode rc, struct ws_err *err)
{
	if (rc == CURLE_SSL_CACERT_BADFILE)
		return ws_err_usage(err, "--cacert: %s cannot be read as certificates", r->web->o->cacert);
	return ws_err_op(err, "archive_tls", "%s: %s", r->url,
					 r->web->error[0] ? r->web->error : curl_easy_strerror(rc));
}

/* 1: an answer; 0: none, or one that another try may change; -1. */
static int
try(struct web *w, struct web_req *r, struct ws_err *err)
{
	curl_off_t length = -1;

	r->web = w;
	r->err = err;
	r->at = 0;
	r->begun = r->enough = r->failed = false;
	r->status = 0;
	r->text.len = 0;
	w->error[0] = 0;
	set_up(w, r);
	CURLcode rc = curl_easy_perform(w->easy);

	curl_easy_getinfo(w->easy, CURLINFO_RESPONSE_CODE, &r->status);
	curl_easy_getinfo(w->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	r->length = length;
	ws_debug("%s: curl=%d status=%ld", r->url, (int)rc, r->status);
	if (r->failed)
		return -1;
	if (store_interrupted(err))
		return -1;
	if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE ||
		rc == CURLE_SSL_ISSUER_ERROR)
		return tls_failed(r, rc, err);
	if (rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_READ_ERROR)
		return ws_err_usage(err, "%s: %s", r->url, w->error[0] ? w->error : curl_easy_strerror(rc));
	if (rc != CURLE_OK && !r->enough) {
		ws_err_temp(err, "%s: %s", r->url, w->error[0] ? w->error : curl_easy_strerror(rc));
		return 0;
	}
	if (is_temporary(r->status)) {
		ws_err_temp(err, "%s: the server answers %ld", r->url, r->status);
		return 0;
	}
	/* An empty object has no call of its own. */
	if (r->out && r->status >= 200 && r->status < 300 && !r->begun && to_sink(r, NULL, 0) < 0)
		return -1;
	return 1;
}

static double
less(double a, double b)
{
	return a < b ? a : b;
}

/* Ends early on a signal. */
static void
rest(double seconds)
{
	struct pollfd p = {ws_tool_signal_fd(), POLLIN, 0};

	poll(&p, 1, (int)(seconds * 1000));
}

int
web_do(struct web *w, struct web_req *r, struct ws_err *err)
{
	uint64_t start = ws_now_us();
	double wait = FIRST_REST;

	for (bool said = false;; wait = less(2 * wait, LAST_REST)) {
		int rc = try(w, r, err);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
		double gone = (double)(ws_now_us() - start) / 1e6, left = w->o->retry - gone;

		if (left <= 0)
			return -1;
		if (!said)
			ws_warn("%s; trying again for %.0f s", err->msg, left);
		said = true;
		rest(less(wait, left));
		if (store_interrupted(err))
			return -1;
		*err = (struct ws_err){0};
	}
}

int
web_refused(const struct web_req *r, const char *detail, struct ws_err *err)
{
	const char *reason =
		r->status == 401 || r->status == 403 ? "archive_denied" : "archive_refused";

	return ws_err_op(err, reason, "%s: the server answers %ld%s%s", r->url, r->status,
					 detail && *detail ? " " : "", detail ? detail : "");
}
