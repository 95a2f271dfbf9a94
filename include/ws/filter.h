/* The filter: which WAL records a catalogs-only standby needs.  Pure: no file but in the load and
 * save functions, no clock.
 *
 * Every relation file is kept or dropped as a whole, from its birth to its burial: keep-then-drop is
 * safe on a standby, drop-then-keep is not.  What is known:
 *   - file numbers below 16384 are catalogs (but pg_largeobject and its index), and so is
 *     everything of database 0;
 *   - others are in the kept set: a list from the source at the start, then births (SMGR CREATE) by
 *     a transaction tree that holds an AccessExclusive lock on a catalog;
 *   - a birth by xid 0 (an unassigned subtransaction) while any such lock is held is kept until the
 *     first record that touches it with an xid, or the lock of its own oid, tells the creator;
 *   - CREATE DATABASE: copied by files it inherits its template's kept set, copied by WAL it keeps
 *     the numbers that are kept in another database (all, when no list was given);
 *   - relation map updates confirm: a mapped catalog that was not kept is an error, never a hole.
 * Keys are (database, file number): the tablespace may change. */
#ifndef WS_FILTER_H
#define WS_FILTER_H

#include <stdio.h>

#include "ws/record.h"
#include "ws/mem.h"
#include "ws/walpage.h"

enum ws_verdict {
	WS_KEEP,
	WS_BLANK,     /* becomes a NOOP */
	WS_CLEAR_PATH /* a tablespace's path is zeroed: main data from byte 4 */
};

struct ws_filter;

struct ws_filter *ws_filter_new(void);
void ws_filter_free(struct ws_filter *f);

/* Reads and learns from the next record.  -1: malformed, or reason catalog_missed. */
int ws_filter_record(struct ws_filter *f, const struct ws_rec *rec, const struct ws_walver *ver,
                     enum ws_verdict *verdict, struct ws_err *err);

/* True when the records and files of this relation are kept. */
bool ws_filter_keeps(const struct ws_filter *f, ws_oid db, ws_oid rel);
size_t ws_filter_kept_count(const struct ws_filter *f); /* beyond the fixed rules */

/* ---- state: a text file (ws-filter(1)), ended by its own checksum ---- */

#define WS_FILTER_STATE_MAX (1024u * 1024 * 1024)

/* The knowledge as of pos, appended to out. */
void ws_filter_save(const struct ws_filter *f, struct ws_pos pos, uint64_t system_id, struct ws_buf *out);
/* The reverse, into a fresh f.  name is for messages.  Damage is reason state_malformed. */
int ws_filter_load(struct ws_filter *f, const char *name, const void *p, size_t n, struct ws_pos *pos,
                   uint64_t *system_id, struct ws_err *err);
/* Reads a state file.  1, 0 when absent, -1. */
int ws_filter_read(struct ws_filter *f, const char *path, struct ws_pos *pos, uint64_t *system_id,
                   struct ws_err *err);
/* The list that `ws-catalog kept` makes: `# TLI LSN`, then `DBOID FILENODE` lines. */
int ws_filter_read_kept(struct ws_filter *f, const char *path, struct ws_pos *since, struct ws_err *err);

/* ---- the stream: WAL in, in any chunking; filtered WAL out, byte for byte as long ---- */

struct ws_filterstat { /* by resource manager */
	uint64_t records, bytes;
	uint64_t blanked, blanked_bytes;
	uint64_t rewritten;
};

struct ws_filterstream;

/* f is used, not owned.  segsize and system_id as ws_walreader_new. */
struct ws_filterstream *ws_filterstream_new(struct ws_filter *f, uint32_t segsize, uint64_t system_id);
void ws_filterstream_free(struct ws_filterstream *s);

/* Output begins at `first`, a segment's start or a state's position; bytes come from `at`, the start
 * of its page (or before). */
void ws_filterstream_seek(struct ws_filterstream *s, ws_lsn at, struct ws_pos first);

struct ws_filterout {
	ws_tli tli;
	ws_lsn lsn;
	const uint8_t *p;
	size_t n;
	/* p is the stream's own memory, valid until the next feed but one; else it is what was given to
	 * ws_filterstream_edit, or the one before, and stays as long as that does. */
	bool copied;
};

/* Takes the next bytes and gives what is final by now: everything up to the first record that is
 * not whole yet.  Chunks do not cross a segment.  -1 as ws_walreader_next; ws_filterstream_torn
 * then tells whether it looks like the end of WAL, and *out still holds what was final before. */
int ws_filterstream_feed(struct ws_filterstream *s, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                         struct ws_filterout *out, struct ws_err *err);
/* The same without a copy, in bytes that may be changed, with `room` more before them: what the last
 * feed held back is put there.  The room is either the caller's to give, or the bytes of the last
 * feed.  p must stay until the next feed but one. */
int ws_filterstream_edit(struct ws_filterstream *s, ws_tli tli, ws_lsn lsn, uint8_t *p, size_t n, size_t room,
                         struct ws_filterout *out, struct ws_err *err);
bool ws_filterstream_torn(const struct ws_filterstream *s);
/* After -1: it is what follows the end of WAL (zeros, an old page), not damage. */
bool ws_filterstream_clean_end(const struct ws_filterstream *s);
/* After -1: no byte from here on had a part in it. */
ws_lsn ws_filterstream_failed_below(const struct ws_filterstream *s);
/* The bytes still held, as they came: a record that never became whole. */
void ws_filterstream_rest(struct ws_filterstream *s, struct ws_filterout *out);

/* End of the last record judged, with its timeline; before the first, where the stream began. */
struct ws_pos ws_filterstream_pos(const struct ws_filterstream *s);
/* The state as it was before the first record that ended in the current segment: from there the
 * segment can be filtered again.  0 when there is none (the stream began in this segment). */
ws_lsn ws_filterstream_segment_state(const struct ws_filterstream *s, const struct ws_buf **state);
const struct ws_filterstat *ws_filterstream_stats(const struct ws_filterstream *s); /* [256] */
/* A table, or one JSON object with "rmgrs" and "total". */
void ws_filterstats_print(FILE *to, const struct ws_filterstat *stats, bool json);
uint64_t ws_filterstream_system_id(const struct ws_filterstream *s);

#endif
