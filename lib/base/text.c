/* Text of foreign origin; see ws/text.h. */
#include <string.h>

#include "ws/text.h"

/* Bytes of the UTF-8 character at s, 0 when there is none (Unicode, table 3-7). */
static int
utf8_length(const unsigned char *s)
{
	int n = 0;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and what is past U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void
ws_text_json(struct ws_buf *out, const char *s)
{
	ws_buf_putc(out, '"');
	while (*s) {
		unsigned char c = (unsigned char)*s;
		int n = utf8_length((const unsigned char *)s);

		if (c == '"' || c == '\\')
			ws_buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			ws_buf_printf(out, "\\u%04x", c);
		else if (n)
			ws_buf_put(out, s, (size_t)n);
		else
			ws_buf_puts(out, "\\ufffd");
		s += n ? n : 1;
	}
	ws_buf_putc(out, '"');
}

void
ws_text_line(struct ws_buf *out, const char *s)
{
	while (*s) {
		const unsigned char *c = (const unsigned char *)s;
		int n = utf8_length(c);
		/* U+0080 to U+009F are control characters, too. */
		bool plain = n && *c >= 0x20 && *c != 0x7f && !(*c == '\\' && c[1] == 'x') &&
		             !(*c == 0xc2 && c[1] < 0xa0);

		n += !n;
		if (plain)
			ws_buf_put(out, s, (size_t)n);
		for (int i = 0; i < n && !plain; i++)
			ws_buf_printf(out, "\\x%02x", c[i]);
		s += n;
	}
}
