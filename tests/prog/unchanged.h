/* What test_decoding prints for a TOAST value that an update leaves alone; ws-decode has the value. */
#ifndef TESTS_PROG_UNCHANGED_H
#define TESTS_PROG_UNCHANGED_H

#include <stdbool.h>
#include <string.h>

#define UNCHANGED "unchanged-toast-datum"

/* Behind a quoted literal, or a bare word. */
static inline const char *
skip_literal(const char *p)
{
	if (*p != '\'')
		return p + strcspn(p, " ");
	for (p++; *p; p++)
		if (*p == '\'' && *++p != '\'')
			break;
	return p;
}

/* Equal, but for any value where `want` has UNCHANGED and `have` has not: *filled (may be NULL)
 * counts those. */
static inline bool
unchanged_matches(const char *want, const char *have, long *filled)
{
	size_t n = strlen(UNCHANGED);

	while (*want) {
		if (!strncmp(want, UNCHANGED, n) && strncmp(have, UNCHANGED, n) != 0) {
			want += n;
			have = skip_literal(have);
			if (filled)
				++*filled;
		} else if (*want++ != *have++) {
			return false;
		}
	}
	return !*have;
}

#endif
