/* The record reader; see ws/walread.h.
 * Rules: access/transam/xlogreader.c (XLogDecodeNextRecord, XLogReaderValidatePageHeader,
 * ValidXLogRecordHeader).
 *
 * A state machine over bytes.  Everything fed is either handed out in place or copied by the time
 * that ws_walreader_next returns 0, so that chunks can be cut anywhere. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "walpriv.h"
#include "ws/cursor.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/walread.h"

#define PAGE_MASK       (WS_PAGE_SIZE - 1)
#define XLOG_SWITCH     0x40
#define PREFETCH        2048
#define KEEP_BUFFER     (4u * 1024 * 1024) /* a larger assembly buffer is given back */

enum state {
	PAGE,    /* at a page's start: its header is wanted */
	RECORD,  /* inside a page, where a record starts */
	COLLECT, /* a record is being put together in `part` */
	SKIP,    /* bytes up to skip_to mean nothing */
	FAILED
};

struct ws_walreader {
	/* unread bytes of the chunk; lsn is p's */
	const uint8_t *p, *end;
	ws_lsn lsn;
	enum state state;
	bool no_crc;
	bool synced;    /* a record boundary is known: a continuation must be ours */
	bool have_prev; /* prev is the last record's start */
	bool torn, clean_end;
	bool again; /* bytes below lsn come once more, and are the same */
	uint32_t segsize;
	ws_tli tli; /* of the current page */
	ws_lsn first, prev, last_end, skip_to;
	ws_lsn dropped, dropped_page;
	/* the record being put together */
	struct ws_buf part;
	uint32_t want; /* its tot_len once 4 bytes are there */
	ws_lsn part_start;
	ws_tli part_tli;
	/* a page header in pieces */
	uint8_t hdr[WS_PAGE_HDR_LONG];
	uint32_t hdrlen;
	uint64_t system_id;
	const struct ws_walver *ver;
	struct ws_err err; /* of FAILED */
};

struct ws_walreader *
ws_walreader_new(uint32_t segsize, uint64_t system_id, unsigned flags)
{
	struct ws_walreader *r = ws_calloc(1, sizeof *r);

	r->segsize = segsize;
	r->system_id = system_id;
	r->no_crc = flags & WS_READ_NO_CRC;
	return r;
}

void
ws_walreader_free(struct ws_walreader *r)
{
	if (!r)
		return;
	ws_buf_free(&r->part);
	free(r);
}

void
ws_walreader_seek(struct ws_walreader *r, ws_lsn at, ws_lsn first)
{
	r->p = r->end = NULL;
	r->lsn = at;
	r->first = first;
	r->state = PAGE;
	r->synced = r->have_prev = r->torn = r->clean_end = r->again = false;
	r->tli = 0;
	r->prev = r->last_end = r->skip_to = r->dropped = r->dropped_page = 0;
	r->part.len = 0;
	r->want = 0;
	r->hdrlen = 0;
}

void
ws_walreader_fork(struct ws_walreader *r, ws_lsn at, ws_lsn fork)
{
	ws_lsn done = r->last_end > r->first ? r->last_end : r->first, read = r->lsn + r->hdrlen;

	if (done > fork)
		done = fork;
	if (r->state != FAILED && read <= fork)
		r->again = read > at;
	else if (done >= at)
		ws_walreader_seek(r, at, done);
	/* else what comes does not follow, as feeding it says: a record was not whole past its end */
}

int
ws_walreader_feed(struct ws_walreader *r, ws_lsn at, const uint8_t *p, size_t n, struct ws_err *err)
{
	if (r->p != r->end)
		return ws_err_temp(err, "WAL fed at " WS_LSN_FMT " before all up to there was read",
		                   WS_LSN_ARG(at));
	ws_lsn want = r->lsn + r->hdrlen;

	if (r->again && at < want) {
		size_t skip = want - at < n ? (size_t)(want - at) : n;

		p += skip;
		n -= skip;
		at += skip;
		if (!n) {
			r->p = r->end = p;
			return 0;
		}
	}
	r->again = false;
	if (at != want)
		return ws_err_temp(err, "WAL does not follow: " WS_LSN_FMT " after " WS_LSN_FMT,
		                   WS_LSN_ARG(at), WS_LSN_ARG(want));
	r->p = p;
	r->end = p + n;
	return 0;
}

/* The failures: what the end of WAL looks like, what only a torn or damaged record does, and what
 * no waiting will heal.  Each fills r->err and returns -1. */
enum failure { CLEAN_END, TORN, WRONG };

static int
fail(struct ws_walreader *r, enum failure kind)
{
	r->state = FAILED;
	r->torn = kind != WRONG;
	r->clean_end = kind == CLEAN_END;
	return -1;
}

#define FAIL(r, kind, reason, at, fmt, ...)                                                        \
	(ws_err_op(&(r)->err, reason, WS_LSN_FMT ": " fmt, WS_LSN_ARG(at), __VA_ARGS__), fail(r, kind))

#define CORRUPT "wal_corrupt"

static void
advance(struct ws_walreader *r, size_t n)
{
	r->p += n;
	r->lsn += n;
}

static size_t
left_fed(const struct ws_walreader *r)
{
	return (size_t)(r->end - r->p);
}

/* What a long header says about the cluster. */
static int
check_long(struct ws_walreader *r, const struct ws_page_header *h)
{
	if (h->blcksz != WS_PAGE_SIZE)
		return FAIL(r, WRONG, "wal_block_size", r->lsn, "WAL blocks of %" PRIu32 " bytes, only 8192 is known",
		            h->blcksz);
	if (!ws_segsize_ok(h->segsize))
		return FAIL(r, WRONG, CORRUPT, r->lsn, "impossible segment size %" PRIu32, h->segsize);
	if (r->segsize && h->segsize != r->segsize)
		return FAIL(r, WRONG, "segment_size_changed", r->lsn,
		            "WAL segments of %" PRIu32 " bytes, %" PRIu32 " were expected", h->segsize, r->segsize);
	if (r->system_id && h->system_id != r->system_id)
		return FAIL(r, WRONG, "system_id_changed", r->lsn,
		            "WAL of system identifier %" PRIu64 ", %" PRIu64 " was expected", h->system_id,
		            r->system_id);
	r->segsize = h->segsize;
	r->system_id = h->system_id;
	return 0;
}

static int
check_header(struct ws_walreader *r, const uint8_t *p, struct ws_page_header *h)
{
	uint16_t magic = ws_le16(p);
	const struct ws_walver *ver = r->ver && r->ver->magic == magic ? r->ver : ws_walver_by_magic(magic);

	if (!magic)
		return FAIL(r, CLEAN_END, CORRUPT, r->lsn, "%s", "zeros where a WAL page should start");
	if (!ver) {
		ws_walver_refuse(magic, r->lsn, &r->err);
		return fail(r, WRONG);
	}
	if (r->ver && ver != r->ver)
		return FAIL(r, WRONG, "major_changed", r->lsn, "WAL of PostgreSQL %d after that of %d", ver->major,
		            r->ver->major);
	if (ws_page_header_parse(p, WS_PAGE_HDR_LONG, h) != 0)
		return FAIL(r, TORN, CORRUPT, r->lsn, "unknown flags %04X in a page header", ws_le16(p + 2));
	if (h->pageaddr != r->lsn)
		return FAIL(r, h->pageaddr < r->lsn ? CLEAN_END : TORN, CORRUPT, r->lsn,
		            "page address is " WS_LSN_FMT, WS_LSN_ARG(h->pageaddr));
	if (h->size == WS_PAGE_HDR_LONG) {
		if (check_long(r, h) != 0)
			return -1;
	} else if (r->segsize && !(r->lsn & (r->segsize - 1))) {
		return FAIL(r, TORN, CORRUPT, r->lsn, "%s", "a segment starts without a long page header");
	}
	if (h->tli < r->tli || !h->tli)
		return FAIL(r, TORN, CORRUPT, r->lsn, "page of timeline %" PRIu32 " after %" PRIu32, h->tli, r->tli);
	r->ver = ver;
	r->tli = h->tli;
	return 0;
}

/* What the header says about a record that goes on here; r->lsn is behind the header. */
static int
continuation(struct ws_walreader *r, const struct ws_page_header *h)
{
	bool cont = h->info & WS_PAGE_FIRST_IS_CONTRECORD;

	if (r->part.len && h->info & WS_PAGE_FIRST_IS_OVERWRITE_CONTRECORD) {
		r->dropped = r->part_start;
		r->dropped_page = h->pageaddr;
		r->part.len = 0;
		r->state = RECORD;
		return 0;
	}
	if (r->part.len) {
		if (!cont || h->rem_len != r->want - (uint32_t)r->part.len)
			return FAIL(r, TORN, CORRUPT, h->pageaddr,
			            "page does not continue the record at " WS_LSN_FMT, WS_LSN_ARG(r->part_start));
		r->state = COLLECT;
		return 0;
	}
	r->state = RECORD;
	if (!cont)
		return 0;
	if (r->synced)
		return FAIL(r, TORN, CORRUPT, h->pageaddr, "%s", "page continues a record where none is open");
	/* Started in the middle of a record: its rest is skipped, page by page. */
	uint64_t room = WS_PAGE_SIZE - h->size, rest = ws_maxalign(h->rem_len);

	r->skip_to = r->lsn + (rest < room ? rest : room);
	r->state = SKIP;
	return 0;
}

/* Size of the header whose first bytes are at p. */
static uint32_t
header_size(const uint8_t *p)
{
	return ws_le16(p + 2) & WS_PAGE_LONG_HEADER ? WS_PAGE_HDR_LONG : WS_PAGE_HDR_SHORT;
}

/* The page header at r->p in one piece, taken off the chunk; NULL when more bytes are needed. */
static const uint8_t *
whole_header(struct ws_walreader *r)
{
	const uint8_t *p = r->p;
	size_t left = left_fed(r);
	uint32_t want = WS_PAGE_HDR_SHORT;

	if (!r->hdrlen && left >= want && left >= (want = header_size(p))) {
		r->p += want;
		return p;
	}
	for (;;) {
		want = r->hdrlen < WS_PAGE_HDR_SHORT ? WS_PAGE_HDR_SHORT : header_size(r->hdr);
		size_t n = want - r->hdrlen;

		if (n > left_fed(r))
			n = left_fed(r);
		if (n)
			memcpy(r->hdr + r->hdrlen, r->p, n);
		r->hdrlen += (uint32_t)n;
		r->p += n;
		if (r->hdrlen < want)
			return NULL;
		if (want == header_size(r->hdr))
			break;
	}
	r->hdrlen = 0;
	return r->hdr;
}

/* r->lsn stays at the page's start until its header is whole. */
static int
do_page(struct ws_walreader *r)
{
	struct ws_page_header h;
	const uint8_t *p = whole_header(r);

	if (!p)
		return 0;
	if (check_header(r, p, &h) != 0)
		return -1;
	r->lsn += h.size;
	return continuation(r, &h) != 0 ? -1 : 1;
}

/* The record header's own checks; p has 24 bytes. */
static int
check_record(struct ws_walreader *r, const uint8_t *p, ws_lsn start)
{
	uint64_t prev = ws_le64(p + 8);
	uint8_t rmid = p[17];

	if (rmid >= WS_RM_BUILTIN_COUNT && rmid < 128)
		return FAIL(r, TORN, CORRUPT, start, "record of unknown resource manager %u", rmid);
	if (r->have_prev ? prev != r->prev : prev >= start)
		return FAIL(r, TORN, CORRUPT, start, "record with prev link " WS_LSN_FMT ", not " WS_LSN_FMT,
		            WS_LSN_ARG(prev), WS_LSN_ARG(r->prev));
	return 0;
}

static int
bad_length(struct ws_walreader *r, uint32_t len, ws_lsn start)
{
	if (!len)
		return FAIL(r, CLEAN_END, CORRUPT, start, "%s", "zeros where a record should start");
	return FAIL(r, TORN, CORRUPT, start, "record of impossible length %" PRIu32, len);
}

static inline bool
length_ok(uint32_t len)
{
	return len >= WS_REC_HDR_SIZE && len <= WS_REC_MAX_SIZE;
}

/* A whole, header-checked record whose last byte is before r->lsn: checks the CRC, fills *rec, moves
 * on.  1 to hand it out, 0 when it is below the start asked for, -1. */
static int
finish(struct ws_walreader *r, struct ws_rec *rec, const uint8_t *p, uint32_t len, ws_lsn start, ws_tli tli)
{
	if (!r->no_crc && !ws_record_crc_check(p, len))
		return FAIL(r, TORN, CORRUPT, start, "bad CRC in a record of %" PRIu32 " bytes", len);
	ws_lsn end = ws_maxalign(r->lsn);

	rec->start = start;
	rec->tli = tli;
	rec->data = p;
	rec->tot_len = len;
	rec->xid = ws_le32(p + 4);
	rec->prev = ws_le64(p + 8);
	rec->info = p[16];
	rec->rmid = p[17];
	if (rec->rmid == WS_RM_XLOG && (rec->info & 0xF0) == XLOG_SWITCH) {
		if (!r->segsize)
			return FAIL(r, WRONG, CORRUPT, start, "%s", "segment switch in WAL of unknown segment size");
		end = ws_seg_start(end + r->segsize - 1, r->segsize);
	}
	rec->end = end;
	r->prev = start;
	r->have_prev = r->synced = true;
	r->last_end = end;
	if (r->lsn == end) {
		r->state = RECORD;
	} else {
		r->skip_to = end;
		r->state = SKIP;
	}
	return start >= r->first;
}

/* At a record's start.  In place when all of it is on this page and fed, else by do_collect. */
static int
do_record(struct ws_walreader *r, struct ws_rec *rec)
{
	const uint8_t *p = r->p;
	size_t left = left_fed(r), room = WS_PAGE_SIZE - (r->lsn & PAGE_MASK);

	if (room == WS_PAGE_SIZE) {
		r->state = PAGE;
		return 0;
	}
	if (left > room)
		left = room;
	if (left >= WS_REC_HDR_SIZE) {
		uint32_t len = ws_le32(p);
		ws_lsn start = r->lsn;

		if (!length_ok(len))
			return bad_length(r, len, start);
		if (check_record(r, p, start) != 0)
			return -1;
		if (len <= left) {
			/* The padding too when it is there: the next record is then at hand. */
			size_t whole = (size_t)ws_maxalign(len);

			advance(r, whole <= left ? whole : len);
			return finish(r, rec, p, len, start, r->tli);
		}
	}
	if (r->part.cap > KEEP_BUFFER)
		ws_buf_free(&r->part);
	r->part.len = 0;
	r->part_start = r->lsn;
	r->part_tli = r->tli;
	r->state = COLLECT;
	return 0;
}

/* 1 a record, 0 go on with the state machine (which ends when no byte is left), -1. */
static int
do_collect(struct ws_walreader *r, struct ws_rec *rec)
{
	struct ws_buf *b = &r->part;

	/* In steps: the length, the header, the whole; each is checked before more is believed. */
	for (;;) {
		size_t goal = b->len < 4 ? 4 : b->len < WS_REC_HDR_SIZE ? WS_REC_HDR_SIZE : r->want;
		size_t n = goal - b->len, room = WS_PAGE_SIZE - (r->lsn & PAGE_MASK);

		if (room == WS_PAGE_SIZE && b->len) {
			r->state = PAGE;
			return 0;
		}
		if (n > room)
			n = room;
		if (n > left_fed(r))
			n = left_fed(r);
		if (!n)
			return 0;
		ws_buf_put(b, r->p, n);
		advance(r, n);
		if (b->len < goal)
			continue;
		if (goal == 4) {
			r->want = ws_le32(b->data);
			if (!length_ok(r->want))
				return bad_length(r, r->want, r->part_start);
			continue;
		}
		if (goal == WS_REC_HDR_SIZE && check_record(r, b->data, r->part_start) != 0)
			return -1;
		if (b->len == r->want)
			break;
	}
	int rc = finish(r, rec, b->data, r->want, r->part_start, r->part_tli);

	if (rc >= 0)
		b->len = 0;
	return rc;
}

static void
do_skip(struct ws_walreader *r)
{
	uint64_t n = r->skip_to - r->lsn;

	if (n > left_fed(r))
		n = left_fed(r);
	advance(r, (size_t)n);
	if (r->lsn == r->skip_to)
		r->state = r->lsn & PAGE_MASK ? RECORD : PAGE;
}

/* The common case at once: a good record, whole on its page with its padding, after one already
 * handed out.  False, with nothing changed, when it is any other case: the state machine finds out
 * which. */
static inline bool
fast_path(struct ws_walreader *r, struct ws_rec *rec)
{
	const uint8_t *p = r->p;
	ws_lsn start = r->lsn;
	size_t left = left_fed(r), room = WS_PAGE_SIZE - (start & PAGE_MASK);

	if (left > room)
		left = room;
	if (left < WS_REC_HDR_SIZE || r->state != RECORD || !r->have_prev || room == WS_PAGE_SIZE)
		return false;
	uint32_t len = ws_le32(p);
	size_t whole = (size_t)ws_maxalign(len);
	uint8_t info = p[16], rmid = p[17];

	if (len < WS_REC_HDR_SIZE || whole > left || ws_le64(p + 8) != r->prev || start < r->first ||
	    (rmid >= WS_RM_BUILTIN_COUNT && rmid < 128) || (rmid == WS_RM_XLOG && (info & 0xF0) == XLOG_SWITCH))
		return false;
	__builtin_prefetch(p + PREFETCH);
	__builtin_prefetch(p + PREFETCH + 64);
	if (!r->no_crc && !ws_record_crc_check(p, len))
		return false;
	rec->start = start;
	rec->end = r->last_end = r->lsn = start + whole;
	rec->tli = r->tli;
	rec->data = p;
	rec->tot_len = len;
	rec->xid = ws_le32(p + 4);
	rec->prev = r->prev;
	rec->info = info;
	rec->rmid = rmid;
	r->prev = start;
	r->p = p + whole;
	return true;
}

/* Apart from the common case, which then saves no registers. */
static __attribute__((noinline)) int
next_slow(struct ws_walreader *r, struct ws_rec *rec, struct ws_err *err)
{
	int rc = 0;

	while (r->p != r->end && r->state != FAILED) {
		switch (r->state) {
		case RECORD:
			rc = do_record(r, rec);
			break;
		case COLLECT:
			rc = do_collect(r, rec);
			break;
		case PAGE:
			rc = do_page(r) < 0 ? -1 : 0;
			break;
		case SKIP:
			do_skip(r);
			break;
		case FAILED:
			break;
		}
		if (rc > 0)
			return 1;
	}
	if (r->state != FAILED)
		return 0;
	if (err)
		*err = r->err;
	return -1;
}

int
ws_walreader_next(struct ws_walreader *r, struct ws_rec *rec, struct ws_err *err)
{
	return fast_path(r, rec) ? 1 : next_slow(r, rec, err);
}

bool
ws_walreader_torn(const struct ws_walreader *r)
{
	return r->torn;
}

bool
ws_walreader_clean_end(const struct ws_walreader *r)
{
	return r->clean_end;
}

/* Where it stood, and at most a header that was looked at there. */
ws_lsn
ws_walreader_failed_below(const struct ws_walreader *r)
{
	return r->lsn + WS_PAGE_HDR_LONG;
}

ws_lsn
ws_walreader_end(const struct ws_walreader *r)
{
	return r->last_end;
}

ws_lsn
ws_walreader_pending(const struct ws_walreader *r)
{
	return r->part.len ? r->part_start : r->last_end;
}

ws_lsn
ws_walreader_dropped(const struct ws_walreader *r, ws_lsn *page)
{
	if (page)
		*page = r->dropped_page;
	return r->dropped;
}

const struct ws_walver *
ws_walreader_ver(const struct ws_walreader *r)
{
	return r->ver;
}

uint64_t
ws_walreader_system_id(const struct ws_walreader *r)
{
	return r->system_id;
}

uint32_t
ws_walreader_segsize(const struct ws_walreader *r)
{
	return r->segsize;
}
