/* Memory: allocation that exits when there is none, a growing buffer, an arena. */
#ifndef WS_MEM_H
#define WS_MEM_H

#include "ws/types.h"

/* Never NULL: out of memory ends the process with status 1. */
void *ws_malloc(size_t size);
void *ws_calloc(size_t n, size_t size);
void *ws_realloc(void *p, size_t size);
char *ws_strdup(const char *s);
char *ws_strndup(const char *s, size_t n);
char *ws_asprintf(const char *fmt, ...) WS_PRINTF(1, 2);

/* A growing byte buffer.  Zero-initialised is empty.  data moves when it grows. */
struct ws_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
};

void ws_buf_free(struct ws_buf *b);
void ws_buf_reserve(struct ws_buf *b, size_t more);
void ws_buf_put(struct ws_buf *b, const void *p, size_t n);
void ws_buf_putc(struct ws_buf *b, uint8_t c);
void ws_buf_puts(struct ws_buf *b, const char *s);
void ws_buf_printf(struct ws_buf *b, const char *fmt, ...) WS_PRINTF(2, 3);
/* Little-endian integers; strings as u32 length and bytes. */
void ws_buf_put16(struct ws_buf *b, uint16_t v);
void ws_buf_put32(struct ws_buf *b, uint32_t v);
void ws_buf_put64(struct ws_buf *b, uint64_t v);
void ws_buf_putstr(struct ws_buf *b, const char *s, size_t n);
/* NUL-terminates without counting the NUL; returns data as text. */
char *ws_buf_cstr(struct ws_buf *b);

/* An arena: allocations live until reset (which keeps the first block) or free.  8-byte aligned. */
struct ws_arena {
	struct ws_arena_block *head;
	uint8_t *at, *end;
	size_t total; /* bytes held from malloc */
};

void *ws_arena_alloc(struct ws_arena *a, size_t size);
void *ws_arena_zalloc(struct ws_arena *a, size_t size);
void *ws_arena_dup(struct ws_arena *a, const void *p, size_t n);
char *ws_arena_strdup(struct ws_arena *a, const char *s);
void ws_arena_reset(struct ws_arena *a);
void ws_arena_free(struct ws_arena *a);

#endif
