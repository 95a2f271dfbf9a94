/* LSNs and the names of WAL files; see ws/lsn.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/lsn.h"

/* Exactly n hex digits, upper or lower case, or -1. */
static int
hex_fixed(const char *s, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'A' && c <= 'F')
			v = v << 4 | (uint64_t)(c - 'A' + 10);
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return -1;
	}
	*out = v;
	return 0;
}

int
ws_lsn_parse(const char *s, ws_lsn *lsn)
{
	const char *slash = strchr(s, '/');
	uint64_t hi, lo;

	if (!slash)
		return -1;
	size_t a = (size_t)(slash - s), b = strlen(slash + 1);

	if (a < 1 || a > 8 || b < 1 || b > 8 || hex_fixed(s, a, &hi) || hex_fixed(slash + 1, b, &lo))
		return -1;
	*lsn = hi << 32 | lo;
	return 0;
}

int
ws_tli_parse(const char *s, ws_tli *tli)
{
	char *end;

	errno = 0;
	unsigned long v = strtoul(s, &end, 10);

	if (*s < '0' || *s > '9' || *end || errno || v == 0 || v > UINT32_MAX)
		return -1;
	*tli = (ws_tli)v;
	return 0;
}

void
ws_seg_name(char *out, ws_tli tli, ws_lsn lsn, uint32_t segsize)
{
	uint64_t segno = lsn / segsize, per_id = 0x100000000ull / segsize;

	snprintf(out, WS_WALNAME_MAX, "%08X%08X%08X", (unsigned)tli, (unsigned)(segno / per_id),
	         (unsigned)(segno % per_id));
}

int
ws_seg_parse(const char *name, uint32_t segsize, ws_tli *tli, ws_lsn *start)
{
	uint64_t t, hi, lo;

	if (strlen(name) != WS_SEGNAME_LEN || hex_fixed(name, 8, &t) || hex_fixed(name + 8, 8, &hi) ||
	    hex_fixed(name + 16, 8, &lo))
		return -1;
	if (!t || lo >= 0x100000000ull / segsize)
		return -1;
	*tli = (ws_tli)t;
	*start = hi << 32 | lo * segsize;
	return 0;
}

int
ws_history_name_parse(const char *name, ws_tli *tli)
{
	uint64_t t;

	if (strlen(name) != 16 || strcmp(name + 8, ".history") || hex_fixed(name, 8, &t) || !t)
		return -1;
	*tli = (ws_tli)t;
	return 0;
}

void
ws_history_name(char *out, ws_tli tli)
{
	snprintf(out, WS_WALNAME_MAX, "%08X.history", (unsigned)tli);
}
