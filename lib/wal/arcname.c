/* Names in a WAL archive; see ws/arcname.h.
 * PostgreSQL: access/xlog_internal.h (IsXLogFileName, IsBackupHistoryFileName and their family). */
#include <stdio.h>
#include <string.h>

#include "ws/arcname.h"
#include "ws/lsn.h"

const char *const ws_comp_suffix[WS_COMP_KINDS] = {"", ".gz", ".lz4", ".zst"};

/* Exactly 8 upper-case hex digits. */
static int
hex8(const char *s, uint32_t *out)
{
	uint32_t v = 0;

	for (int i = 0; i < 8; i++) {
		if (s[i] >= '0' && s[i] <= '9')
			v = v << 4 | (uint32_t)(s[i] - '0');
		else if (s[i] >= 'A' && s[i] <= 'F')
			v = v << 4 | (uint32_t)(s[i] - 'A' + 10);
		else
			return -1;
	}
	*out = v;
	return 0;
}

int
ws_arcname_parse(const char *name, struct ws_arcname *out)
{
	uint32_t offset;

	*out = (struct ws_arcname){0};
	if (hex8(name, &out->tli) || out->tli == 0)
		return -1;
	if (!strcmp(name + 8, ".history")) {
		out->kind = WS_ARC_HISTORY;
		return 0;
	}
	if (hex8(name + 8, &out->hi) || hex8(name + 16, &out->lo) || out->lo > 0xfff)
		return -1;
	const char *rest = name + WS_SEGNAME_LEN;

	if (!*rest)
		out->kind = WS_ARC_SEGMENT;
	else if (!strcmp(rest, ".partial"))
		out->kind = WS_ARC_PARTIAL;
	else if (*rest == '.' && hex8(rest + 1, &offset) == 0 && !strcmp(rest + 9, ".backup"))
		out->kind = WS_ARC_BACKUP;
	else
		return -1;
	return 0;
}

int
ws_arcname_segno(const struct ws_arcname *n, uint32_t segsize, uint64_t *segno)
{
	uint64_t per_id = 0x100000000ull / segsize;

	if (n->kind == WS_ARC_HISTORY || n->lo >= per_id)
		return -1;
	*segno = n->hi * per_id + n->lo;
	return 0;
}

int
ws_comp_parse(const char *s, enum ws_comp *out)
{
	for (int i = 0; i < WS_COMP_KINDS; i++)
		if (!strcmp(s, i ? ws_comp_suffix[i] + 1 : "none")) {
			*out = (enum ws_comp)i;
			return 0;
		}
	return -1;
}

/* Cuts the suffix of a compression off text. */
static enum ws_comp
cut_suffix(char *text)
{
	/* What WAL-G and pgBackRest write besides. */
	static const char *const foreign[] = {".br", ".bz2", ".lzma", ".lzo", ".xz"};
	char *dot = strrchr(text, '.');

	for (int i = 1; dot && i < WS_COMP_KINDS; i++)
		if (!strcmp(dot, ws_comp_suffix[i])) {
			*dot = 0;
			return (enum ws_comp)i;
		}
	for (size_t i = 0; dot && i < sizeof foreign / sizeof foreign[0]; i++)
		if (!strcmp(dot, foreign[i])) {
			*dot = 0;
			return WS_COMP_FOREIGN;
		}
	return WS_COMP_NONE;
}

int
ws_arcfile_parse(const char *file, bool sha1, struct ws_arcfile *out)
{
	*out = (struct ws_arcfile){0};
	if (strlen(file) >= sizeof out->name)
		return -1;
	strcpy(out->name, file);
	out->comp = cut_suffix(out->name);
	char *dash = sha1 ? strchr(out->name, '-') : NULL;

	if (dash) {
		if (strlen(dash + 1) != 40 || strspn(dash + 1, "0123456789abcdef") != 40)
			return -1;
		strcpy(out->sha1, dash + 1);
		*dash = 0;
	}
	return ws_arcname_parse(out->name, &out->n);
}
