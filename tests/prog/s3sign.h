/* The other side of AWS Signature Version 4, for s3d: recomputes what a request should have been
 * signed with.  Its own SHA-256, so that it does not agree with the library by sharing its bugs. */
#ifndef S3SIGN_H
#define S3SIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ws/mem.h"

struct s3sign {
	const char *key, *secret, *token, *region; /* token NULL: none */
};

/* Header lines end in \r\n; a copy of the first one's value, or NULL. */
static inline char *
s3sign_header(const char *head, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = head; p && *p; p = strstr(p, "\r\n") ? strstr(p, "\r\n") + 2 : NULL) {
		if (strncasecmp(p, name, n) || p[n] != ':')
			continue;
		p += n + 1;
		p += strspn(p, " \t");
		return ws_strndup(p, strcspn(p, "\r"));
	}
	return NULL;
}

static inline uint32_t
s3sign_ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* FIPS 180-4 as it is written there: the constants are the fractions of roots of primes. */
static inline void
s3sign_sha256(const void *p, size_t n, uint8_t out[32])
{
	static uint32_t k[64], h0[8];
	size_t len = (n + 9 + 63) / 64 * 64;
	uint8_t *m = calloc(1, len);
	uint32_t h[8];

	for (int i = 0, c = 2; !k[63]; c++) {
		int d = 2;

		while (d * d <= c && c % d)
			d++;
		if (d * d <= c)
			continue;
		/* Roots by bisection, in long double: 64 bits are enough for 32 of the fraction. */
		for (int root = 2; root <= 3; root++) {
			long double lo = 0, hi = 20;

			for (int j = 0; j < 200; j++) {
				long double x = (lo + hi) / 2;

				if ((root == 2 ? x * x : x * x * x) <= c)
					lo = x;
				else
					hi = x;
			}
			uint32_t f = (uint32_t)(uint64_t)((lo - (int)lo) * 4294967296.0L);

			if (root == 2 && i < 8)
				h0[i] = f;
			if (root == 3)
				k[i] = f;
		}
		i++;
	}
	memcpy(h, h0, sizeof h);
	if (n)
		memcpy(m, p, n);
	m[n] = 0x80;
	for (int i = 0; i < 8; i++)
		m[len - 1 - i] = (uint8_t)((uint64_t)n * 8 >> (8 * i));
	for (size_t b = 0; b < len; b += 64) {
		uint32_t w[64], v[8];

		for (int i = 0; i < 64; i++) {
			if (i < 16) {
				w[i] = (uint32_t)m[b + 4 * i] << 24 | m[b + 4 * i + 1] << 16 |
					   m[b + 4 * i + 2] << 8 | m[b + 4 * i + 3];
				continue;
			}
			uint32_t x = w[i - 15], y = w[i - 2];

			w[i] = (s3sign_ror(y, 17) ^ s3sign_ror(y, 19) ^ y >> 10) + w[i - 7] +
				   (s3sign_ror(x, 7) ^ s3sign_ror(x, 18) ^ x >> 3) + w[i - 16];
		}
		memcpy(v, h, sizeof v);
		for (int i = 0; i < 64; i++) {
			uint32_t e = v[4], a = v[0];
			uint32_t t1 = v[7] + (s3sign_ror(e, 6) ^ s3sign_ror(e, 11) ^ s3sign_ror(e, 25)) +
						  ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
			uint32_t t2 = (s3sign_ror(a, 2) ^ s3sign_ror(a, 13) ^ s3sign_ror(a, 22)) +
						  ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

			for (int j = 7; j > 0; j--)
				v[j] = v[j - 1];
			v[4] += t1;
			v[0] = t1 + t2;
		}
		for (int i = 0; i < 8; i++)
			h[i] += v[i];
	}
	for (int i = 0; i < 32; i++)
		out[i] = (uint8_t)(h[i / 4] >> (24 - i % 4 * 8));
	free(m);
}

static inline void
s3sign_hex(const uint8_t in[32], char out[65])
{
	for (int i = 0; i < 32; i++)
		sprintf(out + 2 * i, "%02x", in[i]);
}

static inline void
s3sign_hmac(const void *key, size_t nkey, const char *text, uint8_t out[32])
{
	uint8_t k[64] = {0}, inner[32];
	struct ws_buf b = {0};

	if (nkey > 64)
		s3sign_sha256(key, nkey, k);
	else
		memcpy(k, key, nkey);
	for (int i = 0; i < 64; i++)
		ws_buf_putc(&b, k[i] ^ 0x36);
	ws_buf_puts(&b, text);
	s3sign_sha256(b.data, b.len, inner);
	b.len = 0;
	for (int i = 0; i < 64; i++)
		ws_buf_putc(&b, k[i] ^ 0x5c);
	ws_buf_put(&b, inner, sizeof inner);
	s3sign_sha256(b.data, b.len, out);
	ws_buf_free(&b);
}

/* The canonical headers of SignedHeaders; false when one is not there or what must be signed is
 * not. */
static inline bool
s3sign_headers(struct ws_buf *b, const char *head, const char *names)
{
	char *copy = ws_strdup(names), *name, *next = copy, all[1100];

	while ((name = strsep(&next, ";"))) {
		char *value = s3sign_header(head, name);

		if (!value)
			return false;
		ws_buf_printf(b, "%s:%s\n", name, value);
		free(value);
	}
	free(copy);
	snprintf(all, sizeof all, ";%s;", names);
	if (!strstr(all, ";host;"))
		return false;
	for (const char *p = head; p && *p; p = strstr(p, "\r\n") ? strstr(p, "\r\n") + 2 : NULL) {
		char one[128];

		if (strncasecmp(p, "x-amz-", 6))
			continue;
		snprintf(one, sizeof one, ";%.*s;", (int)strcspn(p, ":"), p);
		for (char *c = one; *c; c++)
			*c |= *c >= 'A' && *c <= 'Z' ? 32 : 0;
		if (!strstr(all, one))
			return false;
	}
	return true;
}

static inline bool
s3sign_sorted(const char *query)
{
	char *copy = ws_strdup(query), *next = copy, *part, *before = NULL;

	while ((part = strsep(&next, "&"))) {
		if (before && strcmp(before, part) > 0)
			return false;
		before = part;
	}
	return true;
}

/* NULL, or S3's code for what is wrong. */
static inline const char *
s3sign_check(const struct s3sign *s, const char *method, const char *target, const char *head,
			 const uint8_t *body, size_t n)
{
	char *auth = s3sign_header(head, "authorization"), *date = s3sign_header(head, "x-amz-date");
	char *sum = s3sign_header(head, "x-amz-content-sha256");
	char *token = s3sign_header(head, "x-amz-security-token");
	char key[128], day[16], region[64], names[512], signature[128], hex[65];
	struct ws_buf b = {0}, secret = {0};
	uint8_t hash[32];
	struct tm tm = {0};

	if (!auth || sscanf(auth,
						"AWS4-HMAC-SHA256 Credential=%127[^/]/%15[^/]/%63[^/]/s3/aws4_request, "
						"SignedHeaders=%511[^,], Signature=%127s",
						key, day, region, names, signature) != 5)
		return "AccessDenied";
	if (strcmp(key, s->key))
		return "InvalidAccessKeyId";
	if (strcmp(region, s->region))
		return "AuthorizationHeaderMalformed";
	if ((s->token || token) && (!s->token || !token || strcmp(s->token, token)))
		return "InvalidToken";
	if (!date || !strptime(date, "%Y%m%dT%H%M%SZ", &tm) ||
		labs((long)(timegm(&tm) - time(NULL))) > 900 || strncmp(day, date, 8))
		return "RequestTimeTooSkewed";
	s3sign_sha256(body, n, hash);
	s3sign_hex(hash, hex);
	if (!sum || strcmp(sum, hex))
		return "XAmzContentSHA256Mismatch";
	const char *query = strchr(target, '?');

	if (query && !s3sign_sorted(query + 1))
		return "SignatureDoesNotMatch";
	ws_buf_printf(&b, "%s\n%.*s\n%s\n", method, (int)strcspn(target, "?"), target,
				  query ? query + 1 : "");
	if (!s3sign_headers(&b, head, names))
		return "AccessDenied";
	ws_buf_printf(&b, "\n%s\n%s", names, sum);
	s3sign_sha256(b.data, b.len, hash);
	s3sign_hex(hash, hex);
	b.len = 0;
	ws_buf_printf(&b, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", date, day, region, hex);
	ws_buf_printf(&secret, "AWS4%s", s->secret);
	s3sign_hmac(secret.data, secret.len, day, hash);
	s3sign_hmac(hash, 32, region, hash);
	s3sign_hmac(hash, 32, "s3", hash);
	s3sign_hmac(hash, 32, "aws4_request", hash);
	s3sign_hmac(hash, 32, ws_buf_cstr(&b), hash);
	s3sign_hex(hash, hex);
	ws_buf_free(&b);
	ws_buf_free(&secret);
	return strcmp(hex, signature) ? "SignatureDoesNotMatch" : NULL;
}

#endif
