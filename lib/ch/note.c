/* The line in a destination table's comment by which ws-emit knows it again: whose it is and
 * which source column each of its columns holds.  Text of others before it is kept. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ch/emit.h"

static const char mark[] = "walshadow=1 ";
static const char *const states[] = {[CH_NOTE_OWN] = "",
									 [CH_NOTE_LEFT] = "left",
									 [CH_NOTE_ROOT] = "root",
									 [CH_NOTE_FILLING] = "filling",
									 [CH_NOTE_LEAVING] = "leaving"};

static void
put_word(struct ws_buf *b, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (isalnum(c) || strchr("_-", c) || c >= 0x80)
			ws_buf_putc(b, c);
		else
			ws_buf_printf(b, "%%%02X", c);
	}
}

void
ch_note_format(const struct ch_note *n, struct ws_buf *out)
{
	if (n->text && *n->text)
		ws_buf_printf(out, "%s\n", n->text);
	ws_buf_printf(out, "%ssystem=%" PRIu64 " database=%u consumer=", mark, n->system_id, n->db);
	put_word(out, n->consumer);
	if (n->state != CH_NOTE_OWN)
		ws_buf_printf(out, " state=%s", states[n->state]);
	ws_buf_printf(out, " relation=%u shape=" WS_LSN_FMT " commit=" WS_LSN_FMT " columns=", n->oid,
				  WS_LSN_ARG(n->shape), WS_LSN_ARG(n->at));
	for (int i = 0; i < n->ncols; i++) {
		const struct ch_note_col *c = &n->cols[i];

		ws_buf_printf(out, "%s%d:%u:%d:%d:", i ? "," : "", c->attnum, c->typid, c->typmod,
					  c->notnull);
		put_word(out, c->name);
	}
	ws_buf_cstr(out);
}

/* Decodes up to one of the stop characters; NULL when malformed. */
static char *
get_word(const char **s, const char *stop)
{
	size_t n = strcspn(*s, stop);
	char *w = ws_malloc(n + 1), *o = w;
	const char *p = *s, *end = p + n;

	for (; p < end; p++) {
		unsigned v;

		if (*p != '%') {
			*o++ = *p;
		} else if (end - p > 2 && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2]) &&
				   sscanf(p + 1, "%2x", &v) == 1 && v) {
			*o++ = (char)v;
			p += 2;
		} else {
			free(w);
			return NULL;
		}
	}
	*o = 0;
	*s = end;
	return w;
}

static int
get_columns(const char *s, struct ch_note *n)
{
	while (*s && *s != '\n') {
		struct ch_note_col *c = ch_note_add(n);
		int notnull, used = 0;

		if (sscanf(s, "%hd:%u:%d:%d:%n", &c->attnum, &c->typid, &c->typmod, &notnull, &used) != 4 ||
			!used)
			return -1;
		c->notnull = notnull;
		s += used;
		if (!(c->name = get_word(&s, ",\n")) || !*c->name)
			return -1;
		if (*s == ',' && !*++s)
			return -1;
	}
	return 0;
}

/* " state=WORD", when it is there. */
static int
get_state(const char **s, struct ch_note *n)
{
	static const char key[] = " state=";

	if (strncmp(*s, key, sizeof key - 1))
		return 0;
	*s += sizeof key - 1;
	for (size_t i = 1; i < sizeof states / sizeof states[0]; i++) {
		size_t len = strlen(states[i]);

		if (!strncmp(*s, states[i], len) && (*s)[len] == ' ') {
			n->state = (enum ch_note_state)i;
			*s += len;
			return 0;
		}
	}
	return -1;
}

/* The line at s; its text is not set. */
static int
get_line(const char *s, struct ch_note *out)
{
	unsigned hi, lo, ahi, alo;
	int used = 0;

	memset(out, 0, sizeof *out);
	s += sizeof mark - 1;
	if (sscanf(s, "system=%" SCNu64 " database=%u consumer=%n", &out->system_id, &out->db, &used) !=
			2 ||
		!used)
		goto bad;
	s += used;
	if (!(out->consumer = get_word(&s, " ")) || get_state(&s, out) != 0)
		goto bad;
	used = 0;
	if (sscanf(s, " relation=%u shape=%x/%x commit=%x/%x columns=%n", &out->oid, &hi, &lo, &ahi,
			   &alo, &used) != 5 ||
		!used)
		goto bad;
	out->shape = (ws_lsn)hi << 32 | lo;
	out->at = (ws_lsn)ahi << 32 | alo;
	if (get_columns(s + used, out) == 0)
		return 1;
bad:
	ch_note_fini(out);
	return -1;
}

/* What a comment holds beside the line from s to its end. */
static char *
beside(const char *comment, const char *s)
{
	const char *end = s + strcspn(s, "\n");
	size_t before = (size_t)(s - comment);
	struct ws_buf b = {0};

	/* The line's own newline goes with it: the one before, or for the first the one behind. */
	if (before && s[-1] == '\n')
		before--;
	ws_buf_put(&b, comment, before);
	if (*end)
		ws_buf_puts(&b, before ? end : end + 1);
	return ws_buf_cstr(&b);
}

int
ch_note_next(const char **at, struct ch_note *out)
{
	const char *s = strstr(*at, mark);

	memset(out, 0, sizeof *out);
	if (!s)
		return 0;
	*at = s + strcspn(s, "\n");
	return get_line(s, out);
}

int
ch_note_parse_oid(const char *comment, ws_oid oid, struct ch_note *out)
{
	const char *s = comment;

	memset(out, 0, sizeof *out);
	while ((s = strstr(s, mark))) {
		if (get_line(s, out) != 1)
			return -1;
		if (!oid || out->oid == oid) {
			out->text = beside(comment, s);
			return 1;
		}
		ch_note_fini(out);
		s += sizeof mark - 1;
	}
	return 0;
}

int
ch_note_parse(const char *comment, struct ch_note *out)
{
	return ch_note_parse_oid(comment, 0, out);
}

void
ch_notes_rename(char **text, const char *from, const char *to)
{
	struct ws_buf out = {0};
	const char *s = *text, *line;

	while ((line = strstr(s, mark))) {
		struct ch_note n;

		ws_buf_put(&out, s, (size_t)(line - s));
		s = line + strcspn(line, "\n");
		if (get_line(line, &n) != 1) {
			ws_buf_put(&out, line, (size_t)(s - line));
			continue;
		}
		for (int i = 0; i < n.ncols; i++) {
			if (strcmp(n.cols[i].name, from))
				continue;
			free(n.cols[i].name);
			if (to) {
				n.cols[i].name = ws_strdup(to);
			} else {
				n.cols[i] = n.cols[--n.ncols];
				i--;
			}
		}
		ch_note_format(&n, &out);
		ch_note_fini(&n);
	}
	ws_buf_puts(&out, s);
	free(*text);
	*text = ws_buf_cstr(&out);
}

void
ch_note_fini(struct ch_note *n)
{
	for (int i = 0; i < n->ncols; i++)
		free(n->cols[i].name);
	free(n->cols);
	free(n->consumer);
	free(n->text);
	memset(n, 0, sizeof *n);
}

struct ch_note_col *
ch_note_find(const struct ch_note *n, int16_t attnum)
{
	for (int i = 0; i < n->ncols; i++)
		if (n->cols[i].attnum == attnum)
			return &n->cols[i];
	return NULL;
}

struct ch_note_col *
ch_note_add(struct ch_note *n)
{
	n->cols = ws_realloc(n->cols, (size_t)(n->ncols + 1) * sizeof *n->cols);
	memset(&n->cols[n->ncols], 0, sizeof *n->cols);
	return &n->cols[n->ncols++];
}
