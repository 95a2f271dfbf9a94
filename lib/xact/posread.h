/* Records at known positions, read from segment files through memory maps.  Private to lib/xact.
 *
 * Only positions whose bytes were verified before (CRC and page headers, by ws_walreader) may be
 * asked for: nothing is checked again but lengths.  A map of a growing file is longer than the
 * file; what lies past the verified end is never touched. */
#ifndef WS_POSREAD_H
#define WS_POSREAD_H

#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/record.h"
#include "ws/walpage.h"

#define WS_POSREAD_MAPS 4

/* Where segments are: a WAL directory, or files given one by one; and which timeline's. */
struct ws_walplace {
	uint32_t segsize;
	char *dir; /* NULL: only files */
	struct ws_walfile {
		char *path;
		ws_lsn start;
	} *files;
	size_t nfiles;
	struct ws_walroute {
		ws_tli tli;
		ws_lsn from; /* a segment's start */
	} *route;
	size_t nroute;
};

void ws_walplace_fini(struct ws_walplace *w);
void ws_walplace_add_file(struct ws_walplace *w, const char *path, ws_lsn start);
/* Segments from `from` on are those of tli. */
void ws_walplace_route(struct ws_walplace *w, ws_tli tli, ws_lsn from);

struct ws_posread {
	const struct ws_walplace *place;
	struct ws_posmap {
		const uint8_t *base; /* NULL: free */
		ws_lsn start;
		uint64_t used;
	} maps[WS_POSREAD_MAPS];
	const uint8_t *base; /* the map used last */
	ws_lsn start, end;   /* its range; end 0: none */
	uint64_t clock;
	struct ws_buf scratch; /* a record that crosses a page */
	struct ws_rec rec;
};

void ws_posread_init(struct ws_posread *r, const struct ws_walplace *place);
void ws_posread_fini(struct ws_posread *r);

/* The page that holds lsn, whole segments mapped; NULL: err. */
const uint8_t *ws_posread_page_slow(struct ws_posread *r, ws_lsn lsn, struct ws_err *err);
/* A record that does not lie within one page. */
int ws_posread_long(struct ws_posread *r, ws_lsn lsn, uint32_t tot_len, struct ws_err *err);

static inline const uint8_t *
ws_posread_at(struct ws_posread *r, ws_lsn lsn, struct ws_err *err)
{
	if (lsn - r->start < r->end - r->start)
		return r->base + (lsn - r->start);
	return ws_posread_page_slow(r, lsn, err);
}

/* The record at lsn, in r->rec; valid until the next call.  end and tli are not set. */
int ws_posread_rec(struct ws_posread *r, ws_lsn lsn, struct ws_err *err);

#endif
