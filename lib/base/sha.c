/* SHA-1 and SHA-256; see ws/sha.h. */
#include <string.h>

#include "ws/sha.h"

static const uint32_t k256[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t
rol(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static uint32_t
be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
sha1_block(uint32_t *h, const uint8_t *p)
{
	static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int i = 0; i < 16; i++)
		w[i] = be32(p + 4 * i);
	for (int i = 16; i < 80; i++)
		w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20              ? (b & c) | (~b & d)
					 : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d)
										 : b ^ c ^ d;
		uint32_t t = rol(a, 5) + f + e + k[i / 20] + w[i];

		e = d;
		d = c;
		c = rol(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

static void
sha256_block(uint32_t *h, const uint8_t *p)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = be32(p + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rol(a, 25) ^ rol(a, 14) ^ a >> 3) + w[i - 7] +
			   (rol(b, 15) ^ rol(b, 13) ^ b >> 10);
	}
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t s1 = rol(v[4], 26) ^ rol(v[4], 21) ^ rol(v[4], 7);
		uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k256[i] + w[i];
		uint32_t s0 = rol(v[0], 30) ^ rol(v[0], 19) ^ rol(v[0], 10);
		uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof v[0]);
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

void
ws_sha1_init(struct ws_sha *s)
{
	static const uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

	*s = (struct ws_sha){.words = 5};
	memcpy(s->h, h, sizeof h);
}

void
ws_sha256_init(struct ws_sha *s)
{
	static const uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
								  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	*s = (struct ws_sha){.words = 8};
	memcpy(s->h, h, sizeof h);
}

void
ws_sha_add(struct ws_sha *s, const void *p, size_t n)
{
	void (*block)(uint32_t *, const uint8_t *) = s->words == 5 ? sha1_block : sha256_block;
	const uint8_t *b = p;

	while (n) {
		size_t at = s->n & 63, k = 64 - at < n ? 64 - at : n;

		if (at == 0 && n >= 64) {
			block(s->h, b);
			k = 64;
		} else {
			memcpy(s->block + at, b, k);
			if (at + k == 64)
				block(s->h, s->block);
		}
		s->n += k;
		b += k;
		n -= k;
	}
}

void
ws_sha_hex(struct ws_sha *s, char out[WS_SHA_HEX])
{
	static const char digits[] = "0123456789abcdef";
	static const uint8_t pad[64] = {0x80};
	uint64_t bits = s->n * 8;
	size_t at = s->n & 63;
	uint8_t len[8];

	for (int i = 0; i < 8; i++)
		len[i] = (uint8_t)(bits >> (56 - 8 * i));
	ws_sha_add(s, pad, at < 56 ? 56 - at : 120 - at);
	ws_sha_add(s, len, 8);
	for (int i = 0; i < s->words * 8; i++)
		out[i] = digits[s->h[i / 8] >> (28 - i % 8 * 4) & 15];
	out[s->words * 8] = 0;
}
