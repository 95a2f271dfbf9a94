/* A store in an S3 bucket; see store.h.  Requests are signed by libcurl; the body's SHA-256 is part
 * of the signature, so that the server refuses what was damaged on the way. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "s3cred.h"
#include "s3xml.h"
#include "web.h"
#include "ws/log.h"
#include "ws/sha.h"

/* CURLOPT_AWS_SIGV4 takes a body's checksum from a header since this version. */
#define CURL_NEEDED 0x075800

struct s3store {
	struct store s;
	struct web web;
	struct ws_archive_opts o;
	char *base;   /* URL of the bucket, without a slash at its end */
	char *prefix; /* "" or "PATH/" */
	char *token_header;
	bool no_condition; /* the server does not know If-None-Match */
};

static char *
url_of(const struct s3store *s, const char *key)
{
	struct ws_buf b = {0};

	ws_buf_printf(&b, "%s/", s->base);
	web_escape(&b, s->prefix, true);
	web_escape(&b, key, true);
	return ws_buf_cstr(&b);
}

static struct curl_slist *
headers_of(const struct s3store *s, const void *p, size_t n)
{
	char header[100] = "x-amz-content-sha256: ";
	struct ws_sha sha;

	ws_sha256_init(&sha);
	ws_sha_add(&sha, p, n);
	ws_sha_hex(&sha, header + strlen(header));
	struct curl_slist *l = curl_slist_append(NULL, header);

	if (s->token_header)
		l = curl_slist_append(l, s->token_header);
	return l;
}

/* Of an answer that is no success: 0 the key is absent, -1. */
static int
failure(const struct s3store *s, const struct web_req *r, struct ws_err *err)
{
	struct xml x = {(const char *)r->text.data, r->text.len};
	char code[64] = "";

	xml_text(x, "Code", code, sizeof code);
	/* A body without a code is no S3's: who knows what answered there. */
	if (r->status == 404 && !strcmp(code, "NoSuchKey"))
		return 0;
	if (!strcmp(code, "NoSuchBucket"))
		return ws_err_op(err, "archive_missing", "%s: there is no such bucket", s->s.url);
	return web_refused(r, code, err);
}

static int
s3_get(struct store *st, const char *key, const struct sink *out, struct ws_err *err)
{
	struct s3store *s = (struct s3store *)st;
	char *url = url_of(s, key);
	struct web_req r = {
		.method = WEB_GET, .url = url, .out = out, .headers = headers_of(s, NULL, 0)};
	int rc = web_do(&s->web, &r, err);

	if (rc == 0)
		rc = r.status == 200 ? 1 : failure(s, &r, err);
	curl_slist_free_all(r.headers);
	ws_buf_free(&r.text);
	free(url);
	return rc;
}

static int
s3_put(struct store *st, const char *key, const void *p, size_t n, struct ws_err *err)
{
	struct s3store *s = (struct s3store *)st;
	char *url = url_of(s, key);
	int rc;

	for (int again = 0;; again++) {
		struct web_req r = {.method = WEB_PUT, .url = url, .body = p, .n = n};

		r.headers = headers_of(s, p, n);
		if (!s->no_condition)
			r.headers = curl_slist_append(r.headers, "If-None-Match: *");
		rc = web_do(&s->web, &r, err);
		bool unknown = rc == 0 && r.status == 501 && !s->no_condition;

		/* 409: another one is writing the same key just now. */
		if (rc == 0 && r.status == 200)
			rc = 1;
		else if (rc == 0 && r.status == 409 && !s->no_condition)
			rc = ws_err_temp(err, "%s: another writer is at work on it", url);
		else if (rc == 0 && r.status != 412 && !unknown)
			rc = failure(s, &r, err) < 0 ? -1 : web_refused(&r, NULL, err);
		curl_slist_free_all(r.headers);
		ws_buf_free(&r.text);
		if (!unknown || again)
			break;
		s->no_condition = true;
	}
	free(url);
	return rc;
}

/* ---- listing ---- */

struct page {
	struct s3store *s;
	size_t skip; /* bytes of a key before its name */
	store_each each;
	void *arg;
	char next[1100]; /* continuation token, "" at the end */
};

static char *
list_url(const struct s3store *s, const char *prefix, const char *token)
{
	struct ws_buf b = {0};

	/* Sorted by name, since not every libcurl sorts what it signs. */
	ws_buf_printf(&b, "%s/?", s->base);
	if (*token) {
		ws_buf_puts(&b, "continuation-token=");
		web_escape(&b, token, false);
		ws_buf_putc(&b, '&');
	}
	ws_buf_puts(&b, "delimiter=%2F&list-type=2&prefix=");
	web_escape(&b, prefix, false);
	return ws_buf_cstr(&b);
}

/* 0 go on, 1 enough, -1. */
static int
entry(struct page *p, struct xml x, bool folder, struct ws_err *err)
{
	char key[1100], size[24] = "0";

	if (xml_text(x, folder ? "Prefix" : "Key", key, sizeof key) != 1 ||
		(!folder && xml_text(x, "Size", size, sizeof size) != 1) || strlen(key) < p->skip)
		return ws_err_op(err, "archive_refused", "%s: a listing that cannot be read", p->s->s.url);
	char *name = key + p->skip;
	size_t n = strlen(name);

	if (folder && n && name[n - 1] == '/')
		name[n - 1] = 0;
	return *name ? p->each(p->arg, name, folder, strtoull(size, NULL, 10), err) : 0;
}

static int
read_page(struct page *p, struct xml all, struct ws_err *err)
{
	struct xml in = all, x;
	char truncated[8] = "";
	int rc = 0;

	while (rc == 0 && xml_next(&in, "Contents", &x))
		rc = entry(p, x, false, err);
	in = all;
	while (rc == 0 && xml_next(&in, "CommonPrefixes", &x))
		rc = entry(p, x, true, err);
	p->next[0] = 0;
	if (rc != 0)
		return rc;
	if (xml_text(all, "IsTruncated", truncated, sizeof truncated) != 1 ||
		(!strcmp(truncated, "true") &&
		 xml_text(all, "NextContinuationToken", p->next, sizeof p->next) != 1))
		return ws_err_op(err, "archive_refused", "%s: a listing that cannot be read", p->s->s.url);
	return 0;
}

static int
page_begin(void *arg, struct ws_err *err)
{
	(void)err;
	((struct ws_buf *)arg)->len = 0;
	return 0;
}

static int
page_data(void *arg, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_buf *b = arg;

	/* 1000 keys of 1 kB, escaped. */
	if (b->len + n > 8u << 20)
		return ws_err_op(err, "archive_refused", "a listing that is too long");
	ws_buf_put(b, p, n);
	return 0;
}

static int
fetch_page(struct s3store *s, const char *prefix, struct page *p, struct ws_err *err)
{
	char *url = list_url(s, prefix, p->next);
	struct ws_buf b = {0};
	struct sink out = {page_begin, page_data, &b};
	struct web_req r = {
		.method = WEB_GET, .url = url, .out = &out, .headers = headers_of(s, NULL, 0)};
	int rc = web_do(&s->web, &r, err);

	if (rc == 0 && r.status == 200)
		rc = read_page(p, (struct xml){(const char *)b.data, b.len}, err);
	else if (rc == 0)
		rc = failure(s, &r, err) < 0 ? -1 : web_refused(&r, NULL, err);
	curl_slist_free_all(r.headers);
	ws_buf_free(&r.text);
	ws_buf_free(&b);
	free(url);
	return rc;
}

static int
s3_list(struct store *st, const char *folder, const char *prefix, store_each each, void *arg,
		struct ws_err *err)
{
	struct s3store *s = (struct s3store *)st;
	char *full = ws_asprintf("%s%s%s%s", s->prefix, folder, *folder ? "/" : "", prefix);
	struct page p = {.s = s, .skip = strlen(full) - strlen(prefix), .each = each, .arg = arg};
	int rc;

	do
		rc = fetch_page(s, full, &p, err);
	while (rc == 0 && p.next[0]);
	free(full);
	return rc < 0 ? -1 : 0;
}

/* ---- opening ---- */

static void
s3_close(struct store *st)
{
	struct s3store *s = (struct s3store *)st;

	web_fini(&s->web);
	if (s->token_header)
		explicit_bzero(s->token_header, strlen(s->token_header));
	free(s->token_header);
	free(s->base);
	free(s->prefix);
	free(st->url);
	free(s);
}

static const char *
first_env(const char *a, const char *b)
{
	const char *v = getenv(a);

	if (!v || !*v)
		v = getenv(b);
	return v && *v ? v : NULL;
}

/* Where the bucket is. */
static int
locate(struct s3store *s, const char *bucket, const char *region, struct ws_err *err)
{
	const char *given =
		s->o.endpoint ? s->o.endpoint : first_env("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
	char *endpoint = given ? ws_strdup(given) : ws_asprintf("https://s3.%s.amazonaws.com", region);
	size_t n = strlen(endpoint);
	char *host = strstr(endpoint, "://");
	int rc = 0;

	while (n && endpoint[n - 1] == '/')
		endpoint[--n] = 0;
	if ((strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8)) || !host[3] ||
		strpbrk(host + 3, "/@?#")) {
		rc = ws_err_usage(err, "--endpoint: \"%s\" is not http[s]://HOST[:PORT]", endpoint);
	} else if ((given && !s->o.virtual_host) || strchr(bucket, '.')) {
		/* A name with dots has no certificate as part of a host's name. */
		s->base = ws_asprintf("%s/%s", endpoint, bucket);
	} else {
		*host = 0;
		s->base = ws_asprintf("%s://%s.%s", endpoint, bucket, host + 3);
	}
	free(endpoint);
	return rc;
}

static int
sign_as(struct s3store *s, const char *region, struct ws_err *err)
{
	struct s3cred c;

	if (strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
		strlen(region))
		return ws_err_usage(err, "--region: \"%s\" is none", region);
	if (s3cred_find(&s->o, &c, err) != 0)
		return -1;
	s->web.user = c.key;
	s->web.secret = c.secret;
	s->web.sigv4 = ws_asprintf("aws:amz:%s:s3", region);
	c.key = c.secret = NULL;
	if (c.token)
		s->token_header = ws_asprintf("x-amz-security-token: %s", c.token);
	s3cred_fini(&c);
	return 0;
}

static int
set_up(struct s3store *s, const char *bucket, struct ws_err *err)
{
	const char *region = s->o.region ? s->o.region : first_env("AWS_REGION", "AWS_DEFAULT_REGION");

	if (!region)
		region = "us-east-1";
	if (web_init(&s->web, &s->o, err) != 0 || locate(s, bucket, region, err) != 0)
		return -1;
	if (curl_version_info(CURLVERSION_NOW)->version_num < CURL_NEEDED)
		return ws_err_usage(err, "s3:// needs libcurl 7.88 or newer");
	return sign_as(s, region, err);
}

struct store *
s3_open(const struct ws_archive_opts *o, struct ws_err *err)
{
	static const struct store_ops ops = {s3_get, NULL, s3_put, NULL, s3_list, s3_close};
	const char *name = o->store + strlen("s3://"), *slash = strchr(name, '/');
	size_t n = strlen(o->store);
	char *bucket = ws_strndup(name, slash ? (size_t)(slash - name) : strlen(name));
	struct s3store *s = NULL;

	if (!*bucket ||
		strspn(bucket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
			strlen(bucket)) {
		ws_err_usage(err, "--store: %s has no bucket", o->store);
		free(bucket);
		return NULL;
	}
	s = ws_calloc(1, sizeof *s);
	while (o->store[n - 1] == '/')
		n--;
	s->o = *o;
	s->s = (struct store){&ops, ws_strndup(o->store, n), true};
	const char *prefix = s->s.url + strlen("s3://") + strlen(bucket);

	s->prefix = *prefix ? ws_asprintf("%s/", prefix + 1) : ws_strdup("");
	if (set_up(s, bucket, err) != 0) {
		s3_close(&s->s);
		s = NULL;
	}
	free(bucket);
	return s ? &s->s : NULL;
}
