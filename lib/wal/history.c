/* Timeline history files; see ws/history.h.
 * Grammar: access/transam/timeline.c, readTimeLineHistory, fgets' limit of 1023 bytes included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/history.h"
#include "ws/lsn.h"
#include "ws/mem.h"

#define LINE_MAX_BYTES 1023

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What stands between white space, as a string of its own. */
static char *
trimmed(const char *s)
{
	while (is_space(*s))
		s++;
	size_t n = strlen(s);

	while (n && is_space(s[n - 1]))
		n--;
	return ws_strndup(s, n);
}

/* Appends what one line says.  Returns what is wrong with it, or NULL. */
static const char *
parse_line(const char *line, struct ws_history *h)
{
	unsigned tli, hi, lo;
	int used = 0;

	while (is_space(*line))
		line++;
	if (!*line || *line == '#')
		return NULL;
	int n = sscanf(line, "%u\t%X/%X%n", &tli, &hi, &lo, &used);

	if (n < 1)
		return "a numeric timeline id was expected";
	if (n != 3)
		return "the switch point's location was expected";
	if (tli == 0 || (h->n && tli <= h->entries[h->n - 1].tli))
		return "timeline ids must ascend";
	h->entries = ws_realloc(h->entries, (h->n + 1) * sizeof h->entries[0]);
	h->entries[h->n++] = (struct ws_history_entry){tli, (ws_lsn)hi << 32 | lo, trimmed(line + used)};
	return NULL;
}

int
ws_history_parse(ws_tli tli, const char *content, size_t n, struct ws_history *out, struct ws_err *err)
{
	const char *p = content, *end = content + n, *wrong = NULL;
	int lineno = 0;

	*out = (struct ws_history){.tli = tli};
	if (n > WS_HISTORY_MAX)
		wrong = "the file is too long";
	while (p < end && !wrong) {
		char line[LINE_MAX_BYTES + 1];
		size_t len = (size_t)(end - p) < LINE_MAX_BYTES ? (size_t)(end - p) : LINE_MAX_BYTES;
		const char *nl = memchr(p, '\n', len);

		if (nl)
			len = (size_t)(nl - p) + 1;
		memcpy(line, p, len);
		line[len] = 0;
		p += len;
		lineno++;
		wrong = parse_line(line, out);
	}
	if (!wrong && out->n && out->entries[out->n - 1].tli >= tli)
		wrong = "an ancestor's id is not below the timeline's own";
	if (!wrong)
		return 0;
	ws_history_fini(out);
	return ws_err_op(err, "history_malformed", "%08X.history line %d: %s", (unsigned)tli, lineno, wrong);
}

void
ws_history_fini(struct ws_history *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->entries[i].reason);
	free(h->entries);
	h->entries = NULL;
	h->n = 0;
}

ws_tli
ws_history_tli_at(const struct ws_history *h, ws_lsn lsn)
{
	/* From the newest, as tliOfPointInHistory does: the ends need not ascend. */
	for (size_t i = h->n; i > 0; i--)
		if (lsn >= h->entries[i - 1].end)
			return i == h->n ? h->tli : h->entries[i].tli;
	return h->n ? h->entries[0].tli : h->tli;
}

struct ws_history_range
ws_history_range(const struct ws_history *h, size_t i)
{
	struct ws_history_range r = {i < h->n ? h->entries[i].tli : h->tli,
	                             i ? h->entries[i - 1].end : 0, UINT64_MAX};

	/* What is at or past a later switch belongs to a newer timeline. */
	for (size_t k = i; k < h->n; k++)
		if (h->entries[k].end < r.end)
			r.end = h->entries[k].end;
	return r;
}

/* 1 and *r, or 0: tli is not on this history. */
static int
find(const struct ws_history *h, ws_tli tli, struct ws_history_range *r)
{
	size_t i = 0;

	while (i < h->n && h->entries[i].tli != tli)
		i++;
	if (i == h->n && tli != h->tli)
		return 0;
	*r = ws_history_range(h, i);
	return 1;
}

ws_tli
ws_history_name_of(const struct ws_history *h, ws_lsn lsn, uint32_t segsize)
{
	return ws_history_tli_at(h, ws_seg_start(lsn, segsize) + segsize - 1);
}

ws_lsn
ws_history_end(const struct ws_history *h, ws_tli tli)
{
	struct ws_history_range r;

	return find(h, tli, &r) ? r.end : 0;
}

struct ws_pos
ws_history_next(const struct ws_history *h, ws_tli tli)
{
	struct ws_history_range r = {0};
	size_t i = 0;

	while (i < h->n && h->entries[i].tli <= tli)
		i++;
	for (; i <= h->n; i++) {
		r = ws_history_range(h, i);
		if (r.begin < r.end)
			break;
	}
	return (struct ws_pos){r.tli, r.begin};
}

int
ws_history_prove(const struct ws_history *h, ws_tli tli, ws_lsn lsn, struct ws_err *err)
{
	struct ws_history_range r;

	if (!find(h, tli, &r))
		return ws_err_op(err, "timeline_not_descendant",
		                 "timeline %u does not descend from timeline %u, where position " WS_LSN_FMT
		                 " is",
		                 h->tli, tli, WS_LSN_ARG(lsn));
	if (lsn > r.end)
		return ws_err_op(err, "resume_past_fork",
		                 "position " WS_LSN_FMT " is past the end of timeline %u, " WS_LSN_FMT
		                 ", where timeline %u goes on towards timeline %u",
		                 WS_LSN_ARG(lsn), tli, WS_LSN_ARG(r.end), ws_history_tli_at(h, r.end),
		                 h->tli);
	return 0;
}

int
ws_history_ascends(const struct ws_history *h, ws_tli from, struct ws_err *err)
{
	for (size_t i = 1; i < h->n; i++) {
		const struct ws_history_entry *e = &h->entries[i], *before = e - 1;

		if (before->tli >= from && e->end < before->end)
			return ws_err_op(err, "history_malformed",
			                 "the history of timeline %u does not ascend: timeline %u ends at " WS_LSN_FMT
			                 ", timeline %u before it at " WS_LSN_FMT,
			                 h->tli, e->tli, WS_LSN_ARG(e->end), before->tli, WS_LSN_ARG(before->end));
	}
	return 0;
}
