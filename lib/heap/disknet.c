/* Network types on disk: inet and cidr (family, bits, address; port/inet_net_ntop.c), macaddr,
 * macaddr8. */
#include <stdio.h>

#include "heap-int.h"

static char *
put_ipv4(char *o, const uint8_t *a)
{
	return o + sprintf(o, "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
}

/* The longest run of zero words, of at least two; the first of equals. */
static void
longest_zeros(const unsigned *w, int *base, int *len)
{
	*base = -1;
	*len = 1;
	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && w[i + n] == 0)
			n++;
		if (n > *len) {
			*base = i;
			*len = n;
		}
		i += n;
	}
}

static char *
put_ipv6(char *o, const uint8_t *a)
{
	unsigned w[8];
	int base, len;

	for (int i = 0; i < 8; i++)
		w[i] = (unsigned)a[2 * i] << 8 | a[2 * i + 1];
	longest_zeros(w, &base, &len);
	for (int i = 0; i < 8; i++) {
		if (base >= 0 && i >= base && i < base + len) {
			if (i == base)
				*o++ = ':';
			continue;
		}
		if (i)
			*o++ = ':';
		/* An IPv4 address in an IPv6 one. */
		if (i == 6 && base == 0 && (len == 6 || (len == 5 && w[5] == 0xffff)))
			return put_ipv4(o, a + 12);
		o += sprintf(o, "%x", w[i]);
	}
	if (base >= 0 && base + len == 8)
		*o++ = ':';
	return o;
}

static int
read_address(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, bool cidr,
			 struct ws_value *v)
{
	char s[80], *o;
	bool v4 = n == 6 && p[0] == 2, v6 = n == 18 && p[0] == 3;
	unsigned max = v4 ? 32 : 128;

	if ((!v4 && !v6) || p[1] > max)
		return -1;
	o = v4 ? put_ipv4(s, p + 2) : put_ipv6(s, p + 2);
	if (cidr || p[1] != max)
		o += sprintf(o, "/%u", p[1]);
	v->p = ws_arena_dup(in->arena, s, (size_t)(o - s));
	v->len = (uint32_t)(o - s);
	return 0;
}

WS_CODEC(ws_read_inet)
{
	return read_address(in, p, n, false, v);
}

WS_CODEC(ws_read_cidr)
{
	return read_address(in, p, n, true, v);
}

static int
read_mac(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, struct ws_value *v)
{
	char *s = ws_arena_alloc(in->arena, n * 3 + 1);

	for (uint32_t i = 0; i < n; i++)
		sprintf(s + i * 3, "%02x:", p[i]);
	v->p = (const uint8_t *)s;
	v->len = n * 3 - 1;
	return 0;
}

WS_CODEC(ws_read_macaddr)
{
	return read_mac(in, p, n, v);
}

WS_CODEC(ws_read_macaddr8)
{
	return read_mac(in, p, n, v);
}
