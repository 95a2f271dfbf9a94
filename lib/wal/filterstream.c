/* WAL in, filtered WAL out; see ws/filter.h.
 *
 * Records are judged and edited in place: in the caller's bytes, or in a copy of them.  What lies
 * before the first record that is not whole is final; the rest is moved before the next bytes, unless
 * it is there already.  Two copies take turns, so that what was given out last is left alone. */
#include <stdlib.h>
#include <string.h>

#include "ws/filter.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/rewrite.h"
#include "ws/walread.h"

struct ws_filterstream {
	struct ws_filter *f;
	struct ws_walreader *reader;
	/* bytes not given out yet; lsn is of data[0] */
	uint8_t *data;
	size_t len;
	ws_lsn lsn;
	size_t given; /* bytes handed out by the last call, dropped by the next */
	struct ws_buf copy[2];
	int turn;     /* of copy */
	bool in_copy; /* data is in copy[turn] */
	ws_lsn first; /* nothing below it goes out */
	ws_tli tli;
	struct ws_pos pos;
	/* the state as it was where `segment` begins */
	struct ws_buf state;
	ws_lsn segment, segment_end;
	struct ws_filterstat stats[256];
};

struct ws_filterstream *
ws_filterstream_new(struct ws_filter *f, uint32_t segsize, uint64_t system_id)
{
	struct ws_filterstream *s = ws_calloc(1, sizeof *s);

	s->f = f;
	s->reader = ws_walreader_new(segsize, system_id, 0);
	return s;
}

void
ws_filterstream_free(struct ws_filterstream *s)
{
	if (!s)
		return;
	ws_walreader_free(s->reader);
	ws_buf_free(&s->copy[0]);
	ws_buf_free(&s->copy[1]);
	ws_buf_free(&s->state);
	free(s);
}

void
ws_filterstream_seek(struct ws_filterstream *s, ws_lsn at, struct ws_pos first)
{
	ws_walreader_seek(s->reader, at, first.lsn);
	s->data = NULL;
	s->len = s->given = 0;
	s->lsn = s->first = first.lsn;
	s->pos = first;
	s->segment = s->segment_end = 0;
	s->state.len = 0;
}

/* Edits the record in buf as judged. */
static void
edit(struct ws_filterstream *s, const struct ws_rec *rec, enum ws_verdict verdict)
{
	uintptr_t at = (uintptr_t)rec->data - (uintptr_t)s->data;

	if (verdict == WS_BLANK && at < s->len) {
		ws_rewrite_blank(s->data + at, rec->tot_len);
		return;
	}
	struct ws_walspan span = {s->data, s->lsn, s->len, ws_walreader_segsize(s->reader)};

	if (verdict == WS_BLANK) {
		ws_rewrite_blank_span(&span, rec);
		return;
	}
	/* A tablespace's path: the main data's rest, which ends the record. */
	uint8_t *copy = ws_malloc(rec->tot_len);
	struct ws_record r;

	memcpy(copy, rec->data, rec->tot_len);
	if (ws_record_parse(rec, &r, NULL) == 0 && r.main_len > 4)
		ws_rewrite_zero(copy, rec->tot_len, rec->tot_len - r.main_len + 4, r.main_len - 4);
	ws_rewrite_put_span(&span, rec->start, copy, rec->tot_len);
	free(copy);
}

/* Before a record is learnt: when it is the first that ends in another segment, the knowledge so
 * far is what that segment starts with. */
static void
enter_segment(struct ws_filterstream *s, const struct ws_rec *rec)
{
	uint32_t size = ws_walreader_segsize(s->reader);
	ws_lsn start = ws_seg_start(rec->end - 1, size);

	s->segment_end = start + size;
	s->segment = start;
	s->state.len = 0;
	/* Not when the stream began inside the segment: its knowledge is from there. */
	if (start >= s->first)
		ws_filter_save(s->f, s->pos, ws_walreader_system_id(s->reader), &s->state);
}

static int
judge(struct ws_filterstream *s, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_filterstat *st = &s->stats[rec->rmid];
	enum ws_verdict verdict;

	if (rec->end > s->segment_end)
		enter_segment(s, rec);
	if (ws_filter_record(s->f, rec, ws_walreader_ver(s->reader), &verdict, err) != 0)
		return -1;
	st->records++;
	st->bytes += rec->tot_len;
	if (verdict != WS_KEEP) {
		if (verdict == WS_BLANK) {
			st->blanked++;
			st->blanked_bytes += rec->tot_len;
		} else {
			st->rewritten++;
		}
		edit(s, rec, verdict);
	}
	s->pos = (struct ws_pos){s->tli, rec->end};
	return 0;
}

static void
drop_given(struct ws_filterstream *s)
{
	if (!s->given)
		return;
	s->data += s->given;
	s->len -= s->given;
	s->lsn += s->given;
	s->given = 0;
}

/* Puts the next bytes behind those held: in place when there is room, else in a copy.  In the room may
 * be the bytes held, or, when those are in a copy, what they were copied from. */
static uint8_t *
put(struct ws_filterstream *s, uint8_t *edit, size_t room, const uint8_t *p, size_t n)
{
	uint8_t *held = s->data;
	size_t len = s->len;

	if (edit && len <= room) {
		if (len && held + len != edit)
			memcpy(edit - len, held, len);
		s->data = edit - len;
		s->in_copy = false;
	} else {
		/* A copy of which nothing was given out grows, however long the record is. */
		struct ws_buf *b = &s->copy[s->turn];

		if (!len || held != b->data) {
			b = &s->copy[s->turn ^= 1];
			b->len = 0;
			if (len)
				ws_buf_put(b, held, len);
		}
		ws_buf_put(b, p, n);
		s->data = b->data;
		s->in_copy = true;
	}
	s->len = len + n;
	return s->data + len;
}

/* Hands out what is held up to `to`. */
static void
give(struct ws_filterstream *s, ws_lsn to, struct ws_filterout *out)
{
	size_t n = to > s->lsn ? (size_t)(to - s->lsn) : 0;

	if (n > s->len)
		n = s->len;
	*out = (struct ws_filterout){s->tli, s->lsn, s->data, n, s->in_copy};
	s->given = n;
}

/* edit is p to be written to, or NULL. */
static int
feed(struct ws_filterstream *s, ws_tli tli, ws_lsn lsn, const uint8_t *p, uint8_t *edit, size_t room,
     size_t n, struct ws_filterout *out, struct ws_err *err)
{
	struct ws_rec rec;
	int rc;

	*out = (struct ws_filterout){0};
	drop_given(s);
	s->tli = tli;
	size_t skip = lsn < s->first ? (size_t)(s->first - lsn < n ? s->first - lsn : n) : 0;

	/* The page's start before `first` is for the reader alone. */
	if (skip) {
		if (ws_walreader_feed(s->reader, lsn, p, skip, err) != 0 ||
		    ws_walreader_next(s->reader, &rec, err) != 0)
			return -1;
		lsn += skip;
		p += skip;
		edit = edit ? edit + skip : NULL;
		n -= skip;
	}
	if (lsn != s->lsn + s->len && n)
		return ws_err_temp(err, "WAL does not follow: " WS_LSN_FMT " after " WS_LSN_FMT, WS_LSN_ARG(lsn),
		                   WS_LSN_ARG(s->lsn + s->len));
	if (ws_walreader_feed(s->reader, lsn, put(s, edit, room, p, n), n, err) != 0)
		return -1;
	while ((rc = ws_walreader_next(s->reader, &rec, err)) == 1)
		if (judge(s, &rec, err) != 0) {
			rc = -1;
			break;
		}
	/* Without a record yet (the rest of one from before the start) nothing is held. */
	ws_lsn pending = ws_walreader_pending(s->reader);

	if (rc < 0)
		give(s, s->pos.lsn, out);
	else
		give(s, pending ? pending : UINT64_MAX, out);
	return rc;
}

int
ws_filterstream_feed(struct ws_filterstream *s, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                     struct ws_filterout *out, struct ws_err *err)
{
	return feed(s, tli, lsn, p, NULL, 0, n, out, err);
}

int
ws_filterstream_edit(struct ws_filterstream *s, ws_tli tli, ws_lsn lsn, uint8_t *p, size_t n, size_t room,
                     struct ws_filterout *out, struct ws_err *err)
{
	return feed(s, tli, lsn, p, p, room, n, out, err);
}

bool
ws_filterstream_clean_end(const struct ws_filterstream *s)
{
	return ws_walreader_clean_end(s->reader);
}

bool
ws_filterstream_torn(const struct ws_filterstream *s)
{
	return ws_walreader_torn(s->reader);
}

ws_lsn
ws_filterstream_failed_below(const struct ws_filterstream *s)
{
	return ws_walreader_failed_below(s->reader);
}

void
ws_filterstream_rest(struct ws_filterstream *s, struct ws_filterout *out)
{
	drop_given(s);
	give(s, UINT64_MAX, out);
}

struct ws_pos
ws_filterstream_pos(const struct ws_filterstream *s)
{
	return s->pos;
}

ws_lsn
ws_filterstream_segment_state(const struct ws_filterstream *s, const struct ws_buf **state)
{
	*state = &s->state;
	return s->state.len ? s->segment : 0;
}

const struct ws_filterstat *
ws_filterstream_stats(const struct ws_filterstream *s)
{
	return s->stats;
}

uint64_t
ws_filterstream_system_id(const struct ws_filterstream *s)
{
	return ws_walreader_system_id(s->reader);
}
