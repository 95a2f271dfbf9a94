/* A store below an HTTP URL: GET, HEAD and PUT; see store.h.  There is no listing, and who asks for
 * a place that does not exist is told the same as of a name that is absent. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "web.h"

struct httpstore {
	struct store s;
	struct web web;
	struct ws_archive_opts o;
};

static char *
url_of(const struct store *s, const char *key)
{
	struct ws_buf b = {0};

	ws_buf_printf(&b, "%s/", s->url);
	web_escape(&b, key, true);
	return ws_buf_cstr(&b);
}

/* 1 a success, 0 absent, -1. */
static int
meaning(const struct web_req *r, struct ws_err *err)
{
	if (r->status >= 200 && r->status < 300)
		return 1;
	return r->status == 404 || r->status == 410 ? 0 : web_refused(r, NULL, err);
}

static int
http_get(struct store *s, const char *key, const struct sink *out, struct ws_err *err)
{
	struct httpstore *h = (struct httpstore *)s;
	char *url = url_of(s, key);
	struct web_req r = {.method = WEB_GET, .url = url, .out = out, .redirects = true};
	int rc = web_do(&h->web, &r, err);

	if (rc == 0)
		rc = meaning(&r, err);
	ws_buf_free(&r.text);
	free(url);
	return rc;
}

static int
http_stat(struct store *s, const char *key, uint64_t *size, struct ws_err *err)
{
	struct httpstore *h = (struct httpstore *)s;
	char *url = url_of(s, key);
	struct web_req r = {.method = WEB_HEAD, .url = url, .redirects = true};
	int rc = web_do(&h->web, &r, err);

	if (rc == 0)
		rc = meaning(&r, err);
	*size = r.length > 0 ? (uint64_t)r.length : 0;
	ws_buf_free(&r.text);
	free(url);
	return rc;
}

static int
http_put(struct store *s, const char *key, const void *p, size_t n, struct ws_err *err)
{
	struct httpstore *h = (struct httpstore *)s;
	char *url = url_of(s, key);
	struct curl_slist *headers = curl_slist_append(NULL, "If-None-Match: *");
	struct web_req r = {.method = WEB_PUT, .url = url, .headers = headers, .body = p, .n = n};
	int rc = web_do(&h->web, &r, err);

	if (rc == 0 && r.status == 412)
		rc = 0;
	else if (rc == 0)
		rc = r.status >= 200 && r.status < 300 ? 1 : web_refused(&r, NULL, err);
	curl_slist_free_all(headers);
	ws_buf_free(&r.text);
	free(url);
	return rc;
}

static void
http_close(struct store *s)
{
	struct httpstore *h = (struct httpstore *)s;

	web_fini(&h->web);
	free(s->url);
	free(h);
}

struct store *
http_open(const struct ws_archive_opts *o, struct ws_err *err)
{
	static const struct store_ops ops = {http_get, http_stat, http_put, NULL, NULL, http_close};
	const char *host = strstr(o->store, "://") + 3;
	size_t n = strlen(o->store);

	if (!*host || *host == '/') {
		ws_err_usage(err, "--store: %s has no host", o->store);
		return NULL;
	}
	if (memchr(host, '@', strcspn(host, "/"))) {
		ws_err_usage(err, "--store: user and password belong into --netrc, not into the URL");
		return NULL;
	}
	if (strpbrk(host, "?#")) {
		ws_err_usage(err, "--store: a URL without parameters is needed");
		return NULL;
	}
	struct stat st;

	if (o->netrc && stat(o->netrc, &st) != 0) {
		ws_err_arg(err, "--netrc: %s", o->netrc);
		return NULL;
	}
	if (o->netrc && st.st_mode & 077) {
		ws_err_usage(err, "--netrc: others may read %s; chmod 600", o->netrc);
		return NULL;
	}
	struct httpstore *h = ws_calloc(1, sizeof *h);

	while (o->store[n - 1] == '/')
		n--;
	h->o = *o;
	h->s = (struct store){&ops, ws_strndup(o->store, n), false};
	if (web_init(&h->web, &h->o, err) != 0) {
		http_close(&h->s);
		return NULL;
	}
	return &h->s;
}
