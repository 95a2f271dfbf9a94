/* Timeline history files; see ws/history.h.
 * Grammar: access/transam/timeline.c, readTimeLineHistory, fgets' limit of 1023 bytes included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/history.h"
#include "ws/mem.h"

#define LINE_MAX_BYTES 1023

/* Appends what one line says.  Returns what is wrong with it, or NULL. */
static const char *
parse_line(const char *line, struct ws_history *h)
{
	unsigned tli, hi, lo;

	while (*line == ' ' || (*line >= '\t' && *line <= '\r'))
		line++;
	if (!*line || *line == '#')
		return NULL;
	int n = sscanf(line, "%u\t%X/%X", &tli, &hi, &lo);

	if (n < 1)
		return "a numeric timeline id was expected";
	if (n != 3)
		return "the switch point's location was expected";
	if (tli == 0 || (h->n && tli <= h->entries[h->n - 1].tli))
		return "timeline ids must ascend";
	h->entries = ws_realloc(h->entries, (h->n + 1) * sizeof h->entries[0]);
	h->entries[h->n++] = (struct ws_history_entry){tli, (ws_lsn)hi << 32 | lo};
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
	free(h->entries);
	h->entries = NULL;
	h->n = 0;
}

ws_tli
ws_history_tli_at(const struct ws_history *h, ws_lsn lsn)
{
	/* From the newest, as tliOfPointInHistory does: the ends need not ascend. */
	if (!h->n || lsn >= h->entries[h->n - 1].end)
		return h->tli;
	for (size_t i = h->n - 1; i > 0; i--)
		if (lsn < h->entries[i].end && lsn >= h->entries[i - 1].end)
			return h->entries[i].tli;
	return h->entries[0].tli;
}

ws_lsn
ws_history_end(const struct ws_history *h, ws_tli tli)
{
	if (tli == h->tli)
		return UINT64_MAX;
	for (size_t i = 0; i < h->n; i++)
		if (h->entries[i].tli == tli)
			return h->entries[i].end;
	return 0;
}
