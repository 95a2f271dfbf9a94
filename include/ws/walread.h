/* The record reader: WAL bytes in, in any chunking; whole records out.  Pure: no file, no clock.
 *
 * Feed bytes with ws_walreader_feed, then take records with ws_walreader_next until it returns 0
 * (wants more bytes).  A record inside one fed chunk is handed out in place; one that crosses a
 * page is put together in a buffer.  Every page header is checked (magic, address, system id,
 * segment size), every record's prev link and CRC.
 *
 * Handled: records across pages and segments, XLOG_SWITCH (the rest of the segment is skipped),
 * an overwritten contrecord (XLP_FIRST_IS_OVERWRITE_CONTRECORD: the partial record is dropped and
 * ws_walreader_dropped tells where it started), starting in the middle of a record (its rest is skipped). */
#ifndef WS_WALREAD_H
#define WS_WALREAD_H

#include "ws/record.h"
#include "ws/walpage.h"

struct ws_walreader;

enum ws_walreader_flags {
	WS_READ_NO_CRC = 1 /* trust the records' CRC: only for bytes already verified here */
};

/* segsize 0: taken from the first long page header.  system_id 0: any, taken from it too. */
struct ws_walreader *ws_walreader_new(uint32_t segsize, uint64_t system_id, unsigned flags);
void ws_walreader_free(struct ws_walreader *r);

/* Sets the position where records are wanted: the next fed byte must be at `at`, which is page
 * aligned and <= first; records that start below `first` are skipped, and when `first` is not a
 * record's start, the first record after it is the first handed out.  at == first == a record's
 * start inside a page is not allowed: feed from the page's start. */
void ws_walreader_seek(struct ws_walreader *r, ws_lsn at, ws_lsn first);

/* Another timeline's bytes come, from `at` on, a segment's start at or below the switch `fork`.  What was read
 * up to the switch is the same there: it is left out, so that a record that goes on over `at` is not lost.
 * What was read past the switch is forgotten; records that ended at or below it do not come again. */
void ws_walreader_fork(struct ws_walreader *r, ws_lsn at, ws_lsn fork);

/* Gives the next bytes, which follow those fed before; at is checked.  The bytes must stay valid
 * and unchanged until ws_walreader_next has returned 0.  -1 only on a wrong position. */
int ws_walreader_feed(struct ws_walreader *r, ws_lsn at, const uint8_t *p, size_t n, struct ws_err *err);

/* 1: *rec is a record, valid until the next call.  0: more bytes are needed.
 * -1: the bytes are no WAL (err names the LSN), and every further call says so until
 * ws_walreader_seek.  When the record at hand has a bad length, CRC or prev link,
 * `ws_walreader_torn` says that this may be the end of WAL not yet written (a reader that follows a
 * growing file treats it so, seeks to ws_walreader_pending and feeds again from that page). */
int ws_walreader_next(struct ws_walreader *r, struct ws_rec *rec, struct ws_err *err);

/* After -1: true when the failure is of the kind that the unwritten end of WAL gives (zeros, an
 * old page, a bad CRC). */
bool ws_walreader_torn(const struct ws_walreader *r);
/* After -1: true when the bytes are what PostgreSQL leaves behind the end of WAL in a whole segment
 * (zeros where a record or page should start, or a page of an earlier use of the file).  A CRC or
 * length that is wrong is torn but no clean end: in a finished file it is damage. */
bool ws_walreader_clean_end(const struct ws_walreader *r);
/* After -1: no byte from here on had a part in it. */
ws_lsn ws_walreader_failed_below(const struct ws_walreader *r);

/* End of the last record handed out (0 before the first): where the next must start or a page
 * header stands. */
ws_lsn ws_walreader_end(const struct ws_walreader *r);
/* Where a record not yet complete starts; else ws_walreader_end. */
ws_lsn ws_walreader_pending(const struct ws_walreader *r);
/* Start of the last partial record that was dropped because its continuation was overwritten, and
 * *page (may be NULL) the page that said so; 0 when there was none. */
ws_lsn ws_walreader_dropped(const struct ws_walreader *r, ws_lsn *page);

/* Known after the first page: layouts, system id, segment size.  NULL/0 before. */
const struct ws_walver *ws_walreader_ver(const struct ws_walreader *r);
uint64_t ws_walreader_system_id(const struct ws_walreader *r);
uint32_t ws_walreader_segsize(const struct ws_walreader *r);

#endif
