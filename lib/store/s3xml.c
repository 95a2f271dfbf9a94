/* As much XML as S3 answers in; see s3xml.h: elements without attributes that do not nest in
 * themselves, and the five entities and character numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3xml.h"

int
xml_next(struct xml *in, const char *tag, struct xml *content)
{
	char open[64], close[64];
	int a = snprintf(open, sizeof open, "<%s>", tag),
		b = snprintf(close, sizeof close, "</%s>", tag);

	if (a >= (int)sizeof open || b >= (int)sizeof close)
		return 0;
	const char *start = in->n ? memmem(in->p, in->n, open, (size_t)a) : NULL;

	if (!start)
		return 0;
	start += a;
	size_t left = in->n - (size_t)(start - in->p);
	const char *end = memmem(start, left, close, (size_t)b);

	if (!end)
		return 0;
	*content = (struct xml){start, (size_t)(end - start)};
	in->n -= (size_t)(end + b - in->p);
	in->p = end + b;
	return 1;
}

/* The character of "&...;"; *used bytes.  -1: none that a name here can have. */
static int
entity(const char *p, size_t n, size_t *used)
{
	static const struct {
		const char *text;
		char c;
	} known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
	int v = 0;
	size_t i = 2;

	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
		*used = strlen(known[k].text);
		if (n >= *used && !memcmp(p, known[k].text, *used))
			return known[k].c;
	}
	bool hex = n > 3 && p[1] == '#' && (p[2] == 'x' || p[2] == 'X');

	if (n < 4 || p[1] != '#')
		return -1;
	for (i += hex; i < n && p[i] != ';' && v < 128; i++) {
		int d = p[i] >= '0' && p[i] <= '9'          ? p[i] - '0'
				: hex && p[i] >= 'a' && p[i] <= 'f' ? p[i] - 'a' + 10
				: hex && p[i] >= 'A' && p[i] <= 'F' ? p[i] - 'A' + 10
													: 128;
		v = v * (hex ? 16 : 10) + d;
	}
	*used = i + 1;
	return i < n && p[i] == ';' && v > 0 && v < 128 ? v : -1;
}

int
xml_text(struct xml content, const char *tag, char *out, size_t room)
{
	struct xml t;
	size_t len = 0;

	if (!xml_next(&content, tag, &t))
		return 0;
	for (size_t i = 0, used; i < t.n; i += used) {
		int c = t.p[i];

		used = 1;
		if (c == '&' && (c = entity(t.p + i, t.n - i, &used)) < 0)
			return -1;
		if (len + 1 >= room)
			return -1;
		out[len++] = (char)c;
	}
	out[len] = 0;
	return 1;
}
