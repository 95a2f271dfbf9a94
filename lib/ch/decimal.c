/* PostgreSQL's numeric text into ClickHouse's Decimal; see lib/ch/column.h. */
#include <string.h>

#include "lib/ch/column.h"
#include "ws/cursor.h"

/* x = x * 10 + d over 256 bits. */
static void
mul10_add(uint64_t x[4], unsigned d)
{
	unsigned __int128 carry = d;

	for (int i = 0; i < 4; i++) {
		carry += (unsigned __int128)x[i] * 10;
		x[i] = (uint64_t)carry;
		carry >>= 64;
	}
}

static void
store(uint64_t x[4], bool neg, unsigned width, uint8_t *out)
{
	if (neg) {
		unsigned __int128 carry = 1;

		for (int i = 0; i < 4; i++) {
			carry += (uint64_t)~x[i];
			x[i] = (uint64_t)carry;
			carry >>= 64;
		}
	}
	memcpy(out, x, width);
}

static void
nines(uint64_t x[4], int precision)
{
	memset(x, 0, 4 * sizeof *x);
	for (int i = 0; i < precision; i++)
		mul10_add(x, 9);
}

/* NaN has no neighbour; the infinities have the ends of the range. */
static int
special(const uint8_t *s, size_t n, bool neg, unsigned width, int precision, bool clamp, uint8_t *out)
{
	uint64_t x[4];

	if (!clamp || n < 3 || memcmp(s, "Inf", 3))
		return -1;
	nines(x, precision);
	store(x, neg, width, out);
	return 0;
}

int
ch_decimal(const uint8_t *s, size_t n, unsigned width, int precision, int scale, bool clamp, uint8_t *out)
{
	const uint8_t *end = s + n;
	bool neg = s < end && *s == '-';
	uint64_t small = 0, x[4] = {0};
	int digits = 0, frac = -1; /* significant digits so far; digits after the point */
	size_t seen = 0;
	bool wide = precision > 18, over = false;

	if (s < end && (*s == '-' || *s == '+'))
		s++;
	if (s < end && (*s == 'N' || *s == 'I'))
		return special(s, (size_t)(end - s), neg, width, precision, clamp, out);
	for (; s < end; s++) {
		unsigned d = (unsigned)*s - '0';

		if (*s == '.' && frac < 0) {
			frac = 0;
			continue;
		}
		if (d > 9)
			return -1;
		seen++;
		if (frac >= 0 && frac == scale) {
			/* Beyond the scale: zeros say nothing, other digits would be cut. */
			if (d && !clamp)
				return -1;
			continue;
		}
		if (frac >= 0)
			frac++;
		if (digits || d)
			digits++;
		if (digits > precision) {
			over = true;
			continue;
		}
		if (wide)
			mul10_add(x, d);
		else
			small = small * 10 + d;
	}
	if (seen == 0)
		return -1;
	for (int f = frac < 0 ? 0 : frac; f < scale; f++) {
		if (digits && ++digits > precision) {
			over = true;
			break;
		}
		if (wide)
			mul10_add(x, 0);
		else
			small *= 10;
	}
	if (over) {
		if (!clamp)
			return -1;
		nines(x, precision);
	} else if (!wide) {
		if (width <= 8) {
			uint64_t v = neg ? 0 - small : small;

			memcpy(out, &v, width);
			return 0;
		}
		x[0] = small;
	}
	store(x, neg, width, out);
	return 0;
}
