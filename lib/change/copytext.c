/* Rows of COPY in text format; see ws/copytext.h. */
#include <string.h>

#include "ws/copytext.h"

static int
unescape(char c)
{
	switch (c) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'v':
		return '\v';
	case '\\':
		return '\\';
	default:
		return -1;
	}
}

/* One field, up to a tab or the end; *p moves to what follows it. */
static int
field(char **p, char *end, struct ws_copyfield *f)
{
	char *in = *p, *out = in;

	f->p = in;
	f->null = false;
	if (end - in >= 2 && in[0] == '\\' && in[1] == 'N') {
		f->null = true;
		f->len = 0;
		*p = in + 2;
		return *p == end || **p == '\t' ? 0 : -1;
	}
	/* Most fields have no escape: find the end, and move bytes only after the first one. */
	while (in < end && *in != '\t' && *in != '\\')
		in++;
	for (out = in; in < end && *in != '\t'; in++) {
		int c = (unsigned char)*in;

		if (c == '\\' && (++in == end || (c = unescape(*in)) < 0))
			return -1;
		*out++ = (char)c;
	}
	f->len = (size_t)(out - f->p);
	*p = in;
	return 0;
}

int
ws_copytext_split(char *row, size_t n, struct ws_copyfield *fields, size_t nfields)
{
	char *p = row, *end = row + n;

	if (n && end[-1] == '\n')
		end--;
	if (nfields == 0)
		return p == end ? 0 : -1;
	for (size_t i = 0; i < nfields; i++) {
		if (i && (p == end || *p++ != '\t'))
			return -1;
		if (field(&p, end, &fields[i]) != 0)
			return -1;
	}
	return p == end ? 0 : -1;
}
