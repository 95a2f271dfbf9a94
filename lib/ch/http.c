/* Requests to ClickHouse; see lib/ch/http.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/ch/http.h"
#include "ws/log.h"

#define MAX_ANSWER (256u * 1024 * 1024)
/* The server closes an idle connection after 30 s. */
#define MAX_IDLE_S 25L

struct ch_http {
	CURLM *multi;
	struct ch_http_opts o;
	char **urls;
	char *user_header, *key_header;
	int current;
};

void
ch_param(struct ws_buf *b, const char *name, const char *value)
{
	if (b->len)
		ws_buf_putc(b, '&');
	ws_buf_puts(b, name);
	ws_buf_putc(b, '=');
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (isalnum(c) || strchr("-_.~", c))
			ws_buf_putc(b, c);
		else
			ws_buf_printf(b, "%%%02X", c);
	}
}

static int
check_url(const char *url, struct ws_err *err)
{
	bool http = !strncmp(url, "http://", 7), https = !strncmp(url, "https://", 8);
	const char *host = url + (https ? 8 : 7);
	size_t n = http || https ? strcspn(host, "/") : 0;

	if (n == 0)
		return ws_err_usage(err, "--url: not http://HOST:PORT or https://HOST:PORT");
	if (memchr(host, '@', n))
		return ws_err_usage(err, "--url: user and password belong into --user and --password-file");
	if (strpbrk(host, "?#"))
		return ws_err_usage(err, "--url: no parameters here, use --setting");
	return 0;
}

struct ch_http *
ch_http_new(const struct ch_http_opts *o, struct ws_err *err)
{
	for (int i = 0; i < o->nurls; i++)
		if (check_url(o->urls[i], err) != 0)
			return NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		ws_err_temp(err, "libcurl cannot start");
		return NULL;
	}
	struct ch_http *h = ws_calloc(1, sizeof *h);

	h->o = *o;
	h->multi = curl_multi_init();
	h->urls = ws_calloc((size_t)o->nurls, sizeof *h->urls);
	for (int i = 0; i < o->nurls; i++) {
		size_t n = strlen(o->urls[i]);

		while (n && o->urls[i][n - 1] == '/')
			n--;
		h->urls[i] = ws_strndup(o->urls[i], n);
	}
	if (o->user)
		h->user_header = ws_asprintf("X-ClickHouse-User: %s", o->user);
	if (o->password)
		h->key_header = ws_asprintf("X-ClickHouse-Key: %s", o->password);
	return h;
}

void
ch_http_free(struct ch_http *h)
{
	if (!h)
		return;
	curl_multi_cleanup(h->multi);
	for (int i = 0; i < h->o.nurls; i++)
		free(h->urls[i]);
	free(h->urls);
	free(h->user_header);
	if (h->key_header)
		explicit_bzero(h->key_header, strlen(h->key_header));
	free(h->key_header);
	free(h);
}

const char *
ch_http_url(const struct ch_http *h, int i)
{
	return h->urls[i];
}

int
ch_http_current(const struct ch_http *h)
{
	return h->current;
}

void
ch_http_next(struct ch_http *h, int failed)
{
	if (h->o.nurls > 1 && failed == h->current) {
		h->current = (h->current + 1) % h->o.nurls;
		ws_warn("going to the next server: url=%s", h->urls[h->current]);
	}
}

/* ---- callbacks ---- */

static size_t
on_read(char *out, size_t size, size_t n, void *arg)
{
	struct ch_req *r = arg;
	size_t room = size * n, done = 0;

	while (done < room && r->piece < r->npieces) {
		const struct ch_piece *p = &r->pieces[r->piece];
		size_t k = p->n - r->offset;

		if (k > room - done)
			k = room - done;
		memcpy(out + done, (const char *)p->p + r->offset, k);
		done += k;
		r->offset += k;
		if (r->offset == p->n) {
			r->piece++;
			r->offset = 0;
		}
	}
	return done;
}

/* libcurl would send again by itself after a connection died: whether that is right is not its
 * decision. */
static int
on_seek(void *arg, curl_off_t offset, int origin)
{
	struct ch_req *r = arg;

	if (r->piece == 0 && r->offset == 0 && offset == 0 && origin == SEEK_SET)
		return CURL_SEEKFUNC_OK;
	return CURL_SEEKFUNC_FAIL;
}

static size_t
on_write(char *p, size_t size, size_t n, void *arg)
{
	struct ch_req *r = arg;

	if (r->body.len + size * n > MAX_ANSWER)
		return 0;
	ws_buf_put(&r->body, p, size * n);
	return size * n;
}

static size_t
on_header(char *p, size_t size, size_t n, void *arg)
{
	static const char code[] = "X-ClickHouse-Exception-Code:", summary[] = "X-ClickHouse-Summary:";
	static const char rows[] = "\"written_rows\":\"";
	struct ch_req *r = arg;
	size_t len = size * n;

	if (len > sizeof code && !strncasecmp(p, code, sizeof code - 1)) {
		for (size_t i = sizeof code - 1; i < len; i++)
			if (isdigit((unsigned char)p[i]) && r->code < 1000000)
				r->code = r->code * 10 + (p[i] - '0');
	} else if (len > sizeof summary && !strncasecmp(p, summary, sizeof summary - 1)) {
		const char *at = memmem(p, len, rows, sizeof rows - 1), *end = p + len;

		if (at) {
			r->has_written = true;
			r->written = 0;
			for (at += sizeof rows - 1; at < end && isdigit((unsigned char)*at); at++)
				r->written = r->written * 10 + (uint64_t)(*at - '0');
		}
	}
	return len;
}

/* ---- requests ---- */

static void
set_tls(CURL *e, const struct ch_http_opts *o)
{
	if (o->cacert)
		curl_easy_setopt(e, CURLOPT_CAINFO, o->cacert);
	if (o->cert)
		curl_easy_setopt(e, CURLOPT_SSLCERT, o->cert);
	if (o->key)
		curl_easy_setopt(e, CURLOPT_SSLKEY, o->key);
	if (o->no_verify) {
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static void
set_headers(const struct ch_http *h, struct ch_req *r)
{
	static const char *const encodings[] = {NULL, "Content-Encoding: lz4", "Content-Encoding: zstd",
											"Content-Encoding: gzip"};
	struct curl_slist *s = curl_slist_append(NULL, "Expect:");

	s = curl_slist_append(s, "Content-Type: application/octet-stream");
	if (encodings[r->encoding])
		s = curl_slist_append(s, encodings[r->encoding]);
	if (h->user_header)
		s = curl_slist_append(s, h->user_header);
	if (h->key_header)
		s = curl_slist_append(s, h->key_header);
	r->headers = s;
}

int
ch_http_start(struct ch_http *h, struct ch_req *r, struct ws_err *err)
{
	struct ws_buf url = {0}, params = {0};
	curl_off_t total = 0;
	CURL *e = curl_easy_init();
	double timeout = r->timeout == 0 ? h->o.request_timeout : r->timeout;

	if (!e)
		return ws_err_temp(err, "libcurl cannot make a request");
	r->used_url = r->url >= 0 ? r->url : h->current;
	r->done = r->has_written = false;
	r->code = 0;
	r->status = 0;
	r->piece = 0;
	r->offset = 0;
	r->body.len = 0;
	r->error[0] = 0;
	for (int i = 0; i < r->npieces; i++)
		total += (curl_off_t)r->pieces[i].n;
	ch_param(&params, "query_id", r->query_id);
	if (r->params && *r->params)
		ws_buf_printf(&params, "&%s", r->params);
	ws_buf_printf(&url, "%s/?%s", h->urls[r->used_url], ws_buf_cstr(&params));
	set_headers(h, r);
	curl_easy_setopt(e, CURLOPT_URL, ws_buf_cstr(&url));
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, total);
	curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(e, CURLOPT_READDATA, r);
	curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(e, CURLOPT_SEEKDATA, r);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);
	curl_easy_setopt(e, CURLOPT_PRIVATE, r);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, MAX_IDLE_S);
	curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, total > 262144 ? 524288L : 65536L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)(h->o.connect_timeout * 1000));
	if (timeout > 0)
		curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(timeout * 1000));
	if (h->o.proxy)
		curl_easy_setopt(e, CURLOPT_PROXY, h->o.proxy);
	set_tls(e, &h->o);
	r->easy = e;
	ws_buf_free(&url);
	ws_buf_free(&params);
	if (curl_multi_add_handle(h->multi, e) != CURLM_OK) {
		ch_http_cancel(h, r);
		return ws_err_temp(err, "libcurl cannot start a request");
	}
	return 0;
}

void
ch_http_cancel(struct ch_http *h, struct ch_req *r)
{
	if (r->easy) {
		curl_multi_remove_handle(h->multi, r->easy);
		curl_easy_cleanup(r->easy);
		r->easy = NULL;
	}
	curl_slist_free_all(r->headers);
	r->headers = NULL;
}

void
ch_req_fini(struct ch_req *r)
{
	ws_buf_free(&r->body);
}

struct ch_req *
ch_http_step(struct ch_http *h)
{
	int running, left;
	CURLMsg *m;

	curl_multi_perform(h->multi, &running);
	while ((m = curl_multi_info_read(h->multi, &left))) {
		struct ch_req *r;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
		r->result = m->data.result;
		curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &r->status);
		ch_http_cancel(h, r);
		r->done = true;
		return r;
	}
	return NULL;
}

void
ch_http_wait(struct ch_http *h, struct curl_waitfd *fds, unsigned nfds, int ms)
{
	for (unsigned i = 0; i < nfds; i++)
		fds[i].revents = 0;
	curl_multi_poll(h->multi, fds, nfds, ms < 0 ? 0 : ms, NULL);
}
