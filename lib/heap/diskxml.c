/* xml on disk is its text; what is printed has another declaration (utils/adt/xml.c:
 * xml_out_internal, parse_xml_decl, print_xml_decl): no encoding, and none at all when it says
 * nothing else. */
#include <string.h>

#include "heap-int.h"

struct decl {
	const char *p, *end;
	const char *version; /* NULL: no declaration */
	size_t vlen;
	int standalone; /* -1 not said */
};

static void
blanks(struct decl *d)
{
	while (d->p < d->end && (*d->p == ' ' || *d->p == '\t' || *d->p == '\n' || *d->p == '\r'))
		d->p++;
}

static bool
take(struct decl *d, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(d->end - d->p) < n || memcmp(d->p, s, n) != 0)
		return false;
	d->p += n;
	return true;
}

/* NAME = after blanks; false when it does not come, and nothing is taken then. */
static int
attribute(struct decl *d, const char *name)
{
	const char *at = d->p;

	blanks(d);
	if (!take(d, name)) {
		d->p = at;
		return 0;
	}
	blanks(d);
	if (!take(d, "="))
		return -1;
	blanks(d);
	return 1;
}

static int
quoted(struct decl *d, const char **s, size_t *n)
{
	if (d->p == d->end || (*d->p != '\'' && *d->p != '"'))
		return -1;
	const char *e = memchr(d->p + 1, *d->p, (size_t)(d->end - d->p) - 1);

	if (!e)
		return -1;
	*s = d->p + 1;
	*n = (size_t)(e - d->p) - 1;
	d->p = e + 1;
	return 0;
}

/* Whether c goes on a name, as in <?xml-stylesheet.  Bytes above 127 begin a letter or a sign that
 * no well-formed xml has there. */
static bool
is_name(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
		   c == '-' || c == '_' || c == ':' || c > 127;
}

/* 0 parsed, or there is none; -1 malformed: xml_in takes no such text. */
static int
parse(struct decl *d)
{
	const char *encoding, *start = d->p;
	size_t n;
	int rc;

	if (!take(d, "<?xml"))
		return 0;
	if (d->p < d->end && is_name((unsigned char)*d->p)) {
		d->p = start;
		return 0;
	}
	if (attribute(d, "version") != 1 || quoted(d, &d->version, &d->vlen) != 0)
		return -1;
	rc = attribute(d, "encoding");
	if (rc < 0 || (rc == 1 && quoted(d, &encoding, &n) != 0))
		return -1;
	rc = attribute(d, "standalone");
	if (rc == 1)
		d->standalone = take(d, "'yes'") || take(d, "\"yes\"") ? 1
						: take(d, "'no'") || take(d, "\"no\"") ? 0
															   : -2;
	if (rc < 0 || d->standalone == -2)
		return -1;
	blanks(d);
	return take(d, "?>") ? 0 : -1;
}

WS_CODEC(ws_read_xml)
{
	struct decl d = {.p = (const char *)p, .end = (const char *)p + n, .standalone = -1};
	struct ws_buf *out = in->text;

	if (parse(&d) != 0) {
		/* Printed as it is, with a warning. */
		v->p = p;
		v->len = n;
		return 0;
	}
	bool version = d.version && !(d.vlen == 3 && !memcmp(d.version, "1.0", 3));

	out->len = 0;
	if (version || d.standalone >= 0) {
		ws_buf_puts(out, "<?xml version=\"");
		if (version)
			ws_buf_put(out, d.version, d.vlen);
		else
			ws_buf_puts(out, "1.0");
		ws_buf_puts(out, "\"");
		if (d.standalone >= 0)
			ws_buf_puts(out, d.standalone ? " standalone=\"yes\"" : " standalone=\"no\"");
		ws_buf_puts(out, "?>");
	} else if (d.p < d.end && *d.p == '\n') {
		/* No empty line where the declaration was. */
		d.p++;
	}
	ws_buf_put(out, d.p, (size_t)(d.end - d.p));
	ws_codec_done(in, out, v);
	return 0;
}
