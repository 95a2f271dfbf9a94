/* Shortest decimal text of floats, as PostgreSQL prints them with extra_float_digits >= 1.
 *
 * The algorithm is Schubfach (R. Giulietti, "The Schubfach way to render doubles"): the value and
 * the bounds of its rounding interval are scaled by a power of ten known to 126 bits and rounded to
 * odd, which keeps all comparisons exact.  PostgreSQL (src/common/d2s.c, STRICTLY_SHORTEST 0)
 * never takes a decimal that lies exactly on a bound, so both bounds are excluded here.
 * Thresholds of fixed notation: exponents -4..14 for float8, -4..5 for float4 (d2s.c, f2s.c). */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/mem.h"
#include "value-int.h"

#define K_MIN (-324) /* powers of ten that the scaling needs */
#define K_MAX 324
#define LIMBS 72 /* 32 bits each: 2304 bits */

typedef unsigned __int128 u128;

/* For 10^k = b * 2^r with 2^125 <= b < 2^126: floor(b) + 1 as hi * 2^63 + lo. */
static struct {
	uint64_t hi, lo;
} pow10_table[K_MAX - K_MIN + 1];
static pthread_once_t pow10_once = PTHREAD_ONCE_INIT;

static void
pow10_store(int k, const uint32_t *limb)
{
	int top = LIMBS - 1;
	u128 v = 0;

	while (!limb[top])
		top--;
	int nbits = top * 32 + 32 - __builtin_clz(limb[top]);

	/* The 126 bits below nbits; smaller numbers are shifted up. */
	for (int i = nbits - 1; i >= nbits - 126; i--)
		v = v << 1 | (i >= 0 ? limb[i / 32] >> (i % 32) & 1 : 0);
	v++;
	pow10_table[k - K_MIN].hi = (uint64_t)(v >> 63);
	pow10_table[k - K_MIN].lo = (uint64_t)v & (UINT64_MAX >> 1);
}

static void
pow10_init(void)
{
	uint32_t limb[LIMBS] = {1};

	for (int k = 0; k <= K_MAX; k++) {
		uint64_t carry = 0;

		pow10_store(k, limb);
		for (int i = 0; i < LIMBS; i++) {
			carry += (uint64_t)limb[i] * 10;
			limb[i] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	/* floor(floor(x / 10) / 10) = floor(x / 100): dividing step by step loses nothing. */
	memset(limb, 0, sizeof limb);
	limb[LIMBS - 1] = 1u << 31;
	for (int k = -1; k >= K_MIN; k--) {
		uint64_t rem = 0;

		for (int i = LIMBS - 1; i >= 0; i--) {
			rem = rem << 32 | limb[i];
			limb[i] = (uint32_t)(rem / 10);
			rem %= 10;
		}
		pow10_store(k, limb);
	}
}

/* g * cp / 2^127 rounded to odd. */
static uint64_t
round_to_odd(uint64_t g1, uint64_t g0, uint64_t cp)
{
	uint64_t x1 = (uint64_t)((u128)g0 * cp >> 64);
	u128 y = (u128)g1 * cp;
	uint64_t z = ((uint64_t)y >> 1) + x1;
	uint64_t w = (uint64_t)(y >> 64) + (z >> 63);

	return w | ((z & (UINT64_MAX >> 1)) != 0);
}

static int
floor_log10_pow2(int e)
{
	return (int)((int64_t)e * 661971961083 >> 41);
}

static int
floor_log10_three_quarters_pow2(int e)
{
	return (int)(((int64_t)e * 661971961083 - 274743187321) >> 41);
}

static int
floor_log2_pow10(int e)
{
	return (int)((int64_t)e * 913124641741 >> 38);
}

/* The shortest decimal d * 10^*exp10 inside the rounding interval of c * 2^q, the nearest one when
 * there are several.  irregular: the lower neighbour is only half as far. */
static uint64_t
shortest(uint64_t c, int q, bool irregular, int *exp10)
{
	uint64_t cb = c << 2, cbl = cb - (irregular ? 1 : 2), cbr = cb + 2;
	int k = irregular ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
	int h = q + floor_log2_pow10(-k) + 2;
	uint64_t g1 = pow10_table[-k - K_MIN].hi, g0 = pow10_table[-k - K_MIN].lo;
	uint64_t vb = round_to_odd(g1, g0, cb << h);
	uint64_t vbl = round_to_odd(g1, g0, cbl << h);
	uint64_t vbr = round_to_odd(g1, g0, cbr << h);
	uint64_t s = vb >> 2, t = s + 1;
	bool sin, tin;

	*exp10 = k;
	if (s >= 10) {
		uint64_t s10 = s / 10 * 10, t10 = s10 + 10;

		sin = vbl + 1 <= s10 << 2;
		tin = (t10 << 2) + 1 <= vbr;
		if (sin != tin)
			return sin ? s10 : t10;
	}
	sin = vbl + 1 <= s << 2;
	tin = (t << 2) + 1 <= vbr;
	if (sin != tin)
		return sin ? s : t;
	uint64_t mid = (s + t) << 1;

	return vb < mid || (vb == mid && !(s & 1)) ? s : t;
}

static size_t
format(char *out, bool neg, uint64_t d, int k, int fixed_below)
{
	char digits[24], *o = out;
	int n = 0;

	while (d % 10 == 0) {
		d /= 10;
		k++;
	}
	for (uint64_t v = d; v; v /= 10)
		n++;
	for (int i = n - 1; i >= 0; i--, d /= 10)
		digits[i] = (char)('0' + d % 10);
	int e = k + n - 1;

	if (neg)
		*o++ = '-';
	if (e >= -4 && e < fixed_below) {
		int at = 0;

		if (e < 0) {
			memcpy(o, "0.0000", 6);
			o += 1 - e;
		}
		for (; at < n; at++) {
			if (at && at == e + 1)
				*o++ = '.';
			*o++ = digits[at];
		}
		for (; at <= e; at++)
			*o++ = '0';
		return (size_t)(o - out);
	}
	*o++ = digits[0];
	if (n > 1) {
		*o++ = '.';
		memcpy(o, digits + 1, (size_t)n - 1);
		o += n - 1;
	}
	*o++ = 'e';
	*o++ = e < 0 ? '-' : '+';
	e = e < 0 ? -e : e;
	if (e >= 100)
		*o++ = (char)('0' + e / 100);
	*o++ = (char)('0' + e / 10 % 10);
	*o++ = (char)('0' + e % 10);
	return (size_t)(o - out);
}

static size_t
special(char *out, double v)
{
	const char *s = isnan(v) ? "NaN" : isinf(v) ? v > 0 ? "Infinity" : "-Infinity" : signbit(v) ? "-0" : "0";
	size_t n = strlen(s);

	memcpy(out, s, n);
	return n;
}

size_t
ws_float8_text(char *out, double v)
{
	uint64_t bits;
	int k;

	if (isnan(v) || isinf(v) || v == 0)
		return special(out, v);
	pthread_once(&pow10_once, pow10_init);
	memcpy(&bits, &v, sizeof bits);
	uint64_t m = bits & ((1ull << 52) - 1);
	int be = (int)(bits >> 52 & 0x7ff);
	uint64_t d = shortest(be ? m | 1ull << 52 : m, be ? be - 1075 : -1074, m == 0 && be > 1, &k);

	return format(out, bits >> 63, d, k, 15);
}

size_t
ws_float4_text(char *out, float v)
{
	uint32_t bits;
	int k;

	if (isnan(v) || isinf(v) || v == 0)
		return special(out, v);
	pthread_once(&pow10_once, pow10_init);
	memcpy(&bits, &v, sizeof bits);
	uint32_t m = bits & ((1u << 23) - 1);
	int be = (int)(bits >> 23 & 0xff);
	uint64_t d = shortest(be ? m | 1u << 23 : m, be ? be - 150 : -149, m == 0 && be > 1, &k);

	return format(out, bits >> 31, d, k, 6);
}
