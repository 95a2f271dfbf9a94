/* Sets of standbys and what they have flushed; see ws/hold.h.  Pure. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ws/hold.h"
#include "ws/mem.h"

#define NAME_LEN 63 /* NAMEDATALEN - 1, as application_name is cut */

static bool
name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static const char *
skip_space(const char *s)
{
	return s + strspn(s, " \t");
}

static bool
known(const struct ws_hold *h, const char *name)
{
	for (unsigned i = 0; i < h->n; i++)
		if (!strcmp(h->names[i], name))
			return true;
	return false;
}

/* NAME[,NAME...] up to end, which follows it.  The rest behind it, or NULL. */
static const char *
parse_names(const char *s, char end, struct ws_hold *h)
{
	for (;;) {
		size_t n = 0;

		s = skip_space(s);
		while (name_char(s[n]))
			n++;
		if (n == 0 || n > NAME_LEN || h->n == WS_HOLD_NAMES_MAX)
			return NULL;
		char *name = ws_strndup(s, n);

		for (char *p = name; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		if (known(h, name)) {
			free(name);
			return NULL;
		}
		h->names[h->n++] = name;
		s = skip_space(s + n);
		if (*s == end)
			return end ? skip_space(s + 1) : s;
		if (*s++ != ',')
			return NULL;
	}
}

static const char *
parse(const char *s, struct ws_hold *h)
{
	const char *word = skip_space(s), *p = word + 3;
	char *digits_end;

	if (strncasecmp(word, "any", 3) || (*p != ' ' && *p != '\t')) {
		s = parse_names(s, 0, h);
		h->need = h->n;
		return s;
	}
	p = skip_space(p);
	if (!isdigit((unsigned char)*p))
		return NULL;
	unsigned long need = strtoul(p, &digits_end, 10);

	p = skip_space(digits_end);
	s = *p == '(' ? parse_names(p + 1, ')', h) : NULL;
	if (need == 0 || need > h->n)
		return NULL;
	h->need = (unsigned)need;
	return s;
}

static char *
label(const struct ws_hold *h)
{
	struct ws_buf b = {0};

	if (h->need < h->n)
		ws_buf_printf(&b, "%u:", h->need);
	for (unsigned i = 0; i < h->n; i++)
		ws_buf_printf(&b, i ? ",%s" : "%s", h->names[i]);
	return ws_buf_cstr(&b);
}

int
ws_hold_parse(const char *option, const char *text, struct ws_hold *h, struct ws_err *err)
{
	*h = (struct ws_hold){0};
	const char *rest = parse(text, h);

	if (!rest || *rest) {
		ws_hold_fini(h);
		return ws_err_usage(err, "%s: neither NAME[,NAME...] nor ANY n (NAME, ...): %s", option, text);
	}
	h->label = label(h);
	return 0;
}

void
ws_hold_fini(struct ws_hold *h)
{
	for (unsigned i = 0; i < h->n; i++)
		free(h->names[i]);
	free(h->label);
	*h = (struct ws_hold){0};
}

char *
ws_hold_path(const char *state, const struct ws_hold *h)
{
	return ws_asprintf("%s/pos/hold.%s", state, h->label);
}

static int
descending(const void *a, const void *b)
{
	const ws_lsn x = *(const ws_lsn *)a, y = *(const ws_lsn *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

ws_lsn
ws_hold_flushed(const struct ws_hold *h, const struct ws_hold_row *rows, size_t n,
                unsigned *present)
{
	ws_lsn has[WS_HOLD_NAMES_MAX];
	unsigned found = 0;

	for (unsigned i = 0; i < h->n; i++) {
		ws_lsn low = UINT64_MAX;
		bool there = false;

		for (size_t j = 0; j < n; j++) {
			ws_lsn lsn = rows[j].flush < rows[j].sent ? rows[j].flush : rows[j].sent;

			if (strcasecmp(rows[j].name, h->names[i]))
				continue;
			there = true;
			low = lsn < low ? lsn : low;
		}
		/* One that has said nothing yet is not there yet. */
		if (there && low)
			has[found++] = low;
	}
	*present = found;
	if (found < h->need)
		return 0;
	qsort(has, found, sizeof *has, descending);
	return has[h->need - 1];
}

ws_lsn
ws_hold_limit(struct ws_pos pos, ws_tli tli, const struct ws_history *newer)
{
	if (pos.tli == tli)
		return pos.lsn;
	/* Below the end of the older of the two their bytes are the same. */
	ws_lsn end = ws_history_end(newer, pos.tli < tli ? pos.tli : tli);

	return pos.lsn < end ? pos.lsn : end;
}
