/* Reading tar; see ws/tar.h.  The format is POSIX ustar as port/tar.c writes it: sizes octal, from
 * 8 GB on base-256. */
#include <stdio.h>
#include <string.h>

#include "ws/tar.h"

enum offset { NAME = 0, SIZE = 124, CHECKSUM = 148, TYPE = 156, LINK = 157, MAGIC = 257, PREFIX = 345 };

#define NAME_LEN   100
#define SIZE_LEN   12
#define SUM_LEN    8
#define PREFIX_LEN 155

/* -1: not a number. */
static int
number(const uint8_t *p, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	if (*p & 0x80) {
		v = *p & 0x3F;
		for (size_t i = 1; i < n; i++) {
			if (v >> 55)
				return -1;
			v = v << 8 | p[i];
		}
		*out = v;
		return 0;
	}
	size_t i = 0;

	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] && p[i] != ' '; i++) {
		if (p[i] < '0' || p[i] > '7' || v >> 60)
			return -1;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	*out = v;
	return 0;
}

static bool
all_zero(const uint8_t *p)
{
	for (size_t i = 0; i < WS_TAR_BLOCK; i++)
		if (p[i])
			return false;
	return true;
}

static int
parse_header(const uint8_t *h, struct ws_tar_member *m, struct ws_err *err)
{
	uint64_t sum, have = 0;

	for (size_t i = 0; i < WS_TAR_BLOCK; i++)
		have += i >= CHECKSUM && i < CHECKSUM + SUM_LEN ? ' ' : h[i];
	if (memcmp(h + MAGIC, "ustar", 5) != 0 || number(h + CHECKSUM, SUM_LEN, &sum) != 0 || sum != have ||
	    number(h + SIZE, SIZE_LEN, &m->size) != 0)
		return ws_err_temp(err, "not a tar header");
	int prefix = (int)strnlen((const char *)h + PREFIX, PREFIX_LEN);

	snprintf(m->name, sizeof m->name, "%.*s%s%.*s", prefix, (const char *)h + PREFIX, prefix ? "/" : "",
	         NAME_LEN, (const char *)h + NAME);
	snprintf(m->link, sizeof m->link, "%.*s", NAME_LEN, (const char *)h + LINK);
	m->type = h[TYPE] ? (char)h[TYPE] : '0';
	if (m->type != '0')
		m->size = m->type == '5' || m->type == '2' ? 0 : m->size;
	return 0;
}

/* A whole header block. */
static int
header(struct ws_tar *t, const struct ws_tar_events *ev, void *arg, struct ws_err *err)
{
	struct ws_tar_member m;

	t->have = 0;
	if (all_zero(t->header)) {
		t->zeros++;
		return 0;
	}
	if (t->zeros)
		return ws_err_temp(err, "tar: data behind the end of the archive");
	if (parse_header(t->header, &m, err) != 0 || ev->member(arg, &m, err) != 0)
		return -1;
	t->left = m.size;
	t->padding = (uint32_t)(-m.size & (WS_TAR_BLOCK - 1));
	t->in_member = true;
	return 0;
}

int
ws_tar_feed(struct ws_tar *t, const uint8_t *p, size_t n, const struct ws_tar_events *ev, void *arg,
            struct ws_err *err)
{
	for (;;) {
		if (t->in_member && !t->left) {
			t->in_member = false;
			if (ev->done(arg, err) != 0)
				return -1;
		}
		if (!n)
			return 0;
		size_t k;

		if (t->left) {
			k = t->left < n ? (size_t)t->left : n;
			if (ev->data(arg, p, k, err) != 0)
				return -1;
			t->left -= k;
		} else if (t->padding) {
			k = t->padding < n ? t->padding : n;
			t->padding -= (uint32_t)k;
		} else {
			k = WS_TAR_BLOCK - t->have < n ? WS_TAR_BLOCK - t->have : n;
			memcpy(t->header + t->have, p, k);
			t->have += k;
			if (t->have == WS_TAR_BLOCK && header(t, ev, arg, err) != 0)
				return -1;
		}
		p += k;
		n -= k;
	}
}

bool
ws_tar_complete(const struct ws_tar *t)
{
	return t->zeros >= 2 && !t->have && !t->left && !t->padding;
}
