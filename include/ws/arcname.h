/* Names in a WAL archive: what PostgreSQL hands to archive_command and asks restore_command for, and
 * how archives store it.  Pure. */
#ifndef WS_ARCNAME_H
#define WS_ARCNAME_H

#include "ws/err.h"

#define WS_ARCNAME_MAX 96 /* room for any name, with checksum and suffix */

enum ws_arckind {
	WS_ARC_SEGMENT, /* 000000010000000000000001 */
	WS_ARC_PARTIAL, /* 000000010000000000000001.partial */
	WS_ARC_BACKUP,  /* 000000010000000000000001.00000028.backup */
	WS_ARC_HISTORY  /* 00000002.history */
};

struct ws_arcname {
	enum ws_arckind kind;
	ws_tli tli;
	uint32_t hi, lo; /* of a segment's name, 0 of a history's: see ws_arcname_segno */
};

/* The whole text is such a name, in upper case: 0, else -1. */
int ws_arcname_parse(const char *name, struct ws_arcname *out);

/* The segment's number; -1 when segments of that size have no such name. */
int ws_arcname_segno(const struct ws_arcname *n, uint32_t segsize, uint64_t *segno);

enum ws_comp { WS_COMP_NONE, WS_COMP_GZ, WS_COMP_LZ4, WS_COMP_ZST, WS_COMP_KINDS, WS_COMP_FOREIGN = WS_COMP_KINDS };

/* "", ".gz", ".lz4", ".zst". */
extern const char *const ws_comp_suffix[WS_COMP_KINDS];
/* "none", "gz", "lz4", "zst" -> 0 and *out, else -1. */
int ws_comp_parse(const char *s, enum ws_comp *out);

/* A file of an archive. */
struct ws_arcfile {
	char name[WS_ARCNAME_MAX]; /* without checksum and suffix */
	struct ws_arcname n;
	enum ws_comp comp; /* WS_COMP_FOREIGN: a suffix that is known and cannot be read (.br, .bz2) */
	char sha1[41];     /* of the content, "" when the name says none (pgBackRest's do) */
};

/* "NAME[-SHA1][SUFFIX]", the checksum only with it allowed: 0, else -1. */
int ws_arcfile_parse(const char *file, bool sha1, struct ws_arcfile *out);

#endif
