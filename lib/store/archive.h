/* An archive: a store with a layout.  Of lib/store only. */
#ifndef WS_STORE_ARCHIVE_H
#define WS_STORE_ARCHIVE_H

#include "store.h"
#include "ws/sha.h"
#include "ws/walread.h"

struct ws_archive {
	struct store *store;
	enum ws_arclayout layout;
	bool probed;  /* an automatic layout was looked for */
	char *stanza; /* pgBackRest: as given, or found */
	char *id;
	char *root; /* folder of the members: "", "wal_005", "archive/STANZA/ID" */
};

struct member {
	struct ws_arcfile f;
	char *key;
	uint64_t size; /* as stored */
};

void member_fini(struct member *m);

/* The member of that name: 1, 0 absent, -1. */
int arc_find(struct ws_archive *a, const char *name, struct member *m, struct ws_err *err);
/* Its content to out.  1, 0 gone meanwhile, -1. */
int
arc_read(struct ws_archive *a, const struct member *m, const struct sink *out, struct ws_err *err);
/* A small one whole; as arc_read. */
int
arc_read_small(struct ws_archive *a, const struct member *m, struct ws_buf *b, struct ws_err *err);
/* The segment size that a stored segment's first page says: 0 or -1. */
int
arc_segsize(struct ws_archive *a, const struct member *m, uint32_t *segsize, struct ws_err *err);

/* ---- layout.c ---- */

/* Settles layout and root before the first look-up.  With absent: after a name was not found in
 * what could be another layout; 1 when it was another, look again. */
int layout_settle(struct ws_archive *a, struct ws_err *err);
int layout_absent(struct ws_archive *a, struct ws_err *err);

/* ---- verify.c: is this content what the name says? ---- */
struct verify {
	const struct ws_arcfile *f;
	const char *what; /* for messages */
	uint64_t system_id;
	bool records; /* each record's CRC too */
	uint64_t size;
	uint8_t head[WS_PAGE_HDR_LONG];
	struct ws_walreader *rd;
	bool no_more; /* records: the end of WAL was met */
	uint32_t segsize;
	ws_lsn start;
	struct ws_sha sha;
};

void verify_init(struct verify *v, const struct ws_arcfile *f, const char *what, uint64_t system_id,
				 bool records);
int verify_data(struct verify *v, const uint8_t *p, size_t n, struct ws_err *err);
int verify_end(struct verify *v, struct ws_err *err);
void verify_fini(struct verify *v);

#endif
