/* Compression of archive members: whole buffers in, and a decoder that takes pieces.  Of lib/store
 * only. */
#ifndef WS_STORE_CODEC_H
#define WS_STORE_CODEC_H

#include "ws/arcname.h"
#include "ws/mem.h"

/* Where bytes go.  data returns 0, 1 when it wants no more, -1 on error. */
struct sink {
	int (*begin)(void *arg,
				 struct ws_err *err); /* from the start, perhaps once more; may be NULL */
	int (*data)(void *arg, const uint8_t *p, size_t n, struct ws_err *err);
	void *arg;
};

struct codec;

/* what names the bytes in messages and must live as long; damage and more than max bytes of output
 * are reason archive_corrupt.  Output goes to out->data. */
struct codec *codec_new(enum ws_comp comp, const struct sink *out, uint64_t max, const char *what,
						struct ws_err *err);
void codec_free(struct codec *c);
/* As sink.data. */
int codec_feed(struct codec *c, const uint8_t *p, size_t n, struct ws_err *err);
/* After the last byte: -1 when something is missing. */
int codec_finish(struct codec *c, struct ws_err *err);

/* One frame with a checksum and, where the format has it, the content's size.  level 0: the
 * library's default. */
int codec_compress(enum ws_comp comp, int level, const uint8_t *p, size_t n, struct ws_buf *out,
				   struct ws_err *err);
/* The levels of comp; both 0 when it has none. */
void codec_levels(enum ws_comp comp, int *min, int *max);

#endif
