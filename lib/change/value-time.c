/* Text of dates and times as PostgreSQL prints them with DateStyle ISO and TimeZone UTC, and the
 * reverse (utils/adt/datetime.c: EncodeDateOnly, EncodeTimeOnly, EncodeDateTime). */
#include <stdio.h>
#include <string.h>

#include "value-int.h"

#define US_PER_SEC 1000000ll
#define US_PER_DAY (86400 * US_PER_SEC)
#define EPOCH_DAYS 730425 /* from 0000-03-01 (proleptic Gregorian) to 2000-01-01 */
#define DAYS_400Y  146097

/* Years are counted from March, so that the leap day is the last one; 400 years are a cycle. */
static void
date_split(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
	days += EPOCH_DAYS;
	int64_t cycle = (days >= 0 ? days : days - (DAYS_400Y - 1)) / DAYS_400Y;
	unsigned d = (unsigned)(days - cycle * DAYS_400Y);
	unsigned y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
	unsigned doy = d - (365 * y + y / 4 - y / 100);
	unsigned m = (5 * doy + 2) / 153;

	*day = doy - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = (int64_t)y + cycle * 400 + (*month <= 2);
}

static int64_t
date_join(int64_t year, unsigned month, unsigned day)
{
	int64_t y = year - (month <= 2);
	int64_t cycle = (y >= 0 ? y : y - 399) / 400;
	unsigned yoc = (unsigned)(y - cycle * 400);
	unsigned doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return cycle * DAYS_400Y + yoc * 365 + yoc / 4 - yoc / 100 + doy - EPOCH_DAYS;
}

static char *
put_digits(char *o, uint64_t v, int width)
{
	char tmp[24];
	int n = 0;

	do
		tmp[n++] = (char)('0' + v % 10);
	while ((v /= 10));
	while (width-- > n)
		*o++ = '0';
	while (n)
		*o++ = tmp[--n];
	return o;
}

static char *
put_str(char *o, const char *s)
{
	size_t n = strlen(s);

	memcpy(o, s, n);
	return o + n;
}

/* The date; *bc tells that " BC" belongs at the text's end. */
static char *
put_date(char *o, int64_t days, bool *bc)
{
	int64_t year;
	unsigned month, day;

	date_split(days, &year, &month, &day);
	*bc = year <= 0;
	o = put_digits(o, (uint64_t)(*bc ? 1 - year : year), 4);
	*o++ = '-';
	o = put_digits(o, month, 2);
	*o++ = '-';
	return put_digits(o, day, 2);
}

char *
ws_time_put(char *o, int64_t us)
{
	uint64_t t = (uint64_t)us, frac = t % US_PER_SEC;

	t /= US_PER_SEC;
	o = put_digits(o, t / 3600, 2);
	*o++ = ':';
	o = put_digits(o, t / 60 % 60, 2);
	*o++ = ':';
	o = put_digits(o, t % 60, 2);
	if (frac) {
		*o++ = '.';
		o = put_digits(o, frac, 6);
		while (o[-1] == '0')
			o--;
	}
	return o;
}

size_t
ws_date_text(char *out, int32_t days)
{
	bool bc;
	char *o;

	if (days == WS_DATE_INFINITY || days == WS_DATE_MINUS_INFINITY)
		o = put_str(out, days > 0 ? "infinity" : "-infinity");
	else {
		o = put_date(out, days, &bc);
		if (bc)
			o = put_str(o, " BC");
	}
	return (size_t)(o - out);
}

size_t
ws_time_text(char *out, int64_t us)
{
	/* Not a time of day: shown as it is, for a broken stream's sake. */
	if (us < 0 || us > US_PER_DAY)
		return (size_t)sprintf(out, "%lld us", (long long)us);
	return (size_t)(ws_time_put(out, us) - out);
}

size_t
ws_timestamp_text(char *out, int64_t us, bool tz)
{
	bool bc;
	char *o;

	if (us == WS_TS_INFINITY || us == WS_TS_MINUS_INFINITY) {
		o = put_str(out, us > 0 ? "infinity" : "-infinity");
		return (size_t)(o - out);
	}
	int64_t days = us / US_PER_DAY, rest = us % US_PER_DAY;

	if (rest < 0) {
		rest += US_PER_DAY;
		days--;
	}
	o = put_date(out, days, &bc);
	*o++ = ' ';
	o = ws_time_put(o, rest);
	if (tz)
		o = put_str(o, "+00");
	if (bc)
		o = put_str(o, " BC");
	return (size_t)(o - out);
}

/* ---- parsing ---- */

struct scan {
	const char *p, *end;
	bool bad;
};

static bool
take(struct scan *s, char c)
{
	if (s->bad || s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static void
want(struct scan *s, char c)
{
	if (!take(s, c))
		s->bad = true;
}

static bool
take_str(struct scan *s, const char *t)
{
	size_t n = strlen(t);

	if (s->bad || (size_t)(s->end - s->p) < n || memcmp(s->p, t, n) != 0)
		return false;
	s->p += n;
	return true;
}

/* least to most digits. */
static int64_t
number(struct scan *s, int least, int most)
{
	int64_t v = 0;
	int n = 0;

	for (; n < most && s->p < s->end && *s->p >= '0' && *s->p <= '9'; n++)
		v = v * 10 + (*s->p++ - '0');
	if (n < least)
		s->bad = true;
	return v;
}

static bool
done(const struct scan *s)
{
	return !s->bad && s->p == s->end;
}

struct date {
	int64_t year;
	unsigned month, day;
};

static struct date
scan_date(struct scan *s)
{
	struct date d;

	d.year = number(s, 4, 7);
	want(s, '-');
	d.month = (unsigned)number(s, 2, 2);
	want(s, '-');
	d.day = (unsigned)number(s, 2, 2);
	return d;
}

static int
date_days(struct date d, bool bc, int64_t *days)
{
	static const uint8_t mdays[12] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	if (d.year < 1 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > mdays[d.month - 1])
		return -1;
	int64_t y = bc ? 1 - d.year : d.year;

	if (d.month == 2 && d.day == 29 && (y % 4 || (y % 100 == 0 && y % 400)))
		return -1;
	*days = date_join(y, d.month, d.day);
	return 0;
}

static int64_t
scan_time(struct scan *s)
{
	int64_t h = number(s, 2, 2), frac = 0;

	want(s, ':');
	int64_t m = number(s, 2, 2);

	want(s, ':');
	int64_t sec = number(s, 2, 2);

	if (take(s, '.')) {
		const char *at = s->p;

		frac = number(s, 1, 6);
		for (long n = s->p - at; n < 6; n++)
			frac *= 10;
	}
	if (h > 24 || m > 59 || sec > 59)
		s->bad = true;
	return ((h * 60 + m) * 60 + sec) * US_PER_SEC + frac;
}

/* +HH[:MM[:SS]] in seconds. */
static int64_t
scan_zone(struct scan *s)
{
	bool neg = take(s, '-');
	int64_t v;

	if (!neg)
		want(s, '+');
	v = number(s, 2, 2) * 3600;
	if (take(s, ':')) {
		v += number(s, 2, 2) * 60;
		if (take(s, ':'))
			v += number(s, 2, 2);
	}
	return neg ? -v : v;
}

static int
infinity(const char *s, size_t n)
{
	if (n == 8 && !memcmp(s, "infinity", 8))
		return 1;
	return n == 9 && !memcmp(s, "-infinity", 9) ? -1 : 0;
}

int
ws_date_parse(const char *s, size_t n, int64_t *days)
{
	struct scan c = {s, s + n, false};
	int inf = infinity(s, n);

	if (inf) {
		*days = inf > 0 ? WS_DATE_INFINITY : WS_DATE_MINUS_INFINITY;
		return 0;
	}
	struct date d = scan_date(&c);
	bool bc = take_str(&c, " BC");

	if (!done(&c) || date_days(d, bc, days) != 0)
		return -1;
	return *days > WS_DATE_MINUS_INFINITY && *days < WS_DATE_INFINITY ? 0 : -1;
}

int
ws_time_parse(const char *s, size_t n, int64_t *us)
{
	struct scan c = {s, s + n, false};

	*us = scan_time(&c);
	return done(&c) && *us <= US_PER_DAY ? 0 : -1;
}

int
ws_timestamp_parse(const char *s, size_t n, bool tz, int64_t *us)
{
	struct scan c = {s, s + n, false};
	int inf = infinity(s, n);
	int64_t days, t;

	if (inf) {
		*us = inf > 0 ? WS_TS_INFINITY : WS_TS_MINUS_INFINITY;
		return 0;
	}
	struct date d = scan_date(&c);

	want(&c, ' ');
	t = scan_time(&c);
	if (t >= US_PER_DAY)
		return -1;
	if (tz)
		t -= scan_zone(&c) * US_PER_SEC;
	bool bc = take_str(&c, " BC");

	if (!done(&c) || date_days(d, bc, &days) != 0)
		return -1;
	if (__builtin_mul_overflow(days, US_PER_DAY, us) || __builtin_add_overflow(*us, t, us))
		return -1;
	return *us != WS_TS_INFINITY && *us != WS_TS_MINUS_INFINITY ? 0 : -1;
}
