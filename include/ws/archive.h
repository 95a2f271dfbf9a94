/* WAL archives: stores of segments, histories and backup labels, as archive_command and
 * restore_command use them; ws-archive(1) is the specification.
 *
 * Absent is what a store that works has said; a store that gives no answer is WS_ETEMP, and bytes that
 * are not what they should be are WS_EOPERATOR reason=archive_corrupt. */
#ifndef WS_ARCHIVE_H
#define WS_ARCHIVE_H

#include <stdio.h>

#include "ws/arcname.h"
#include "ws/arcpath.h"

enum ws_arclayout { WS_ARC_AUTO, WS_ARC_PLAIN, WS_ARC_WALG, WS_ARC_PGBACKREST };

/* "auto", "plain", "wal-g", "pgbackrest" -> 0 and *out, else -1. */
int ws_arclayout_parse(const char *s, enum ws_arclayout *out);

struct ws_archive_opts {
	const char *store; /* a path, file://PATH, http[s]://HOST/PATH, s3://BUCKET[/PREFIX] */
	enum ws_arclayout layout;
	const char *stanza;     /* pgBackRest; NULL: the only one */
	const char *archive_id; /* pgBackRest, "17-1"; NULL: the only one */
	/* s3; NULL: from the environment, or the defaults */
	const char *endpoint, *region, *credentials, *profile;
	bool virtual_host; /* with an endpoint: the bucket is part of the host's name */
	const char *cacert, *netrc;
	double connect_timeout, timeout; /* seconds: to connect, and without a byte */
	double retry;                    /* seconds that an outage is waited for */
};

struct ws_archive;

struct ws_archive *ws_archive_open(const struct ws_archive_opts *o, struct ws_err *err);
void ws_archive_close(struct ws_archive *a);
const char *ws_archive_url(const struct ws_archive *a); /* for messages */

enum ws_arcpush { WS_PUSH_STORED, WS_PUSH_SAME };

struct ws_arcpush_opts {
	enum ws_comp comp;
	int level; /* 0: the library's default */
};

/* The levels of comp; both 0 when it has none. */
void ws_arcpush_levels(enum ws_comp comp, int *min, int *max);

/* Stores the file under name.  0 and *how: durable, or there with the same content already; -1: other
 * content is reason archive_conflict. */
int ws_archive_push(struct ws_archive *a, const char *file, const char *name,
                    const struct ws_arcpush_opts *o, enum ws_arcpush *how, uint64_t *bytes,
                    struct ws_err *err);

struct ws_arcget_opts {
	bool no_records;    /* do not check the records of a segment */
	uint64_t system_id; /* of which a segment must be; 0: any */
};

/* Writes what is stored under name to path, atomically and durably.  1 done, 0 absent, -1. */
int ws_archive_get(struct ws_archive *a, const char *name, const char *path,
                   const struct ws_arcget_opts *o, struct ws_err *err);

#define WS_ARCSPOOL_MAX 64
struct ws_arcspool {
	const char *dir; /* made when absent; of one archive */
	int ahead;       /* segments to fetch ahead, 1 to WS_ARCSPOOL_MAX */
};

/* The same for who asks for one segment after the other: it is taken from the spool when it is
 * there, and those that follow are fetched into it in the background, side by side, by processes that
 * outlive this one.  archive: what a was opened with. */
int ws_archive_get_ahead(struct ws_archive *a, const struct ws_archive_opts *archive, const char *name,
                         const char *path, const struct ws_arcget_opts *o,
                         const struct ws_arcspool *spool, struct ws_err *err);

/* The history of tli: 1, 0 absent (*h then has no ancestors), -1. */
int ws_archive_history(struct ws_archive *a, ws_tli tli, struct ws_history *h, struct ws_err *err);

/* Every member, sorted by name; the caller frees *out. */
struct ws_arcmember {
	struct ws_arcfile f;
	uint64_t size; /* as stored */
};
int ws_archive_members(struct ws_archive *a, struct ws_arcmember **out, size_t *n,
                       struct ws_err *err);
/* One line a member. */
int ws_archive_list(struct ws_archive *a, FILE *out, bool json, struct ws_err *err);

struct ws_arccheck_opts {
	ws_tli tli;     /* 0: the newest that is there */
	const char *from; /* "LSN" or a segment's name; NULL: the oldest there */
	bool json;
};

/* Prints what is there and what is missing.  0 without a hole, else -1: reason archive_gap naming the
 * first one, history_missing, archive_empty. */
int ws_archive_check(struct ws_archive *a, const struct ws_arccheck_opts *o, FILE *out,
                     struct ws_err *err);

#endif
