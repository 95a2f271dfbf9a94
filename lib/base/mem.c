/* Allocation, buffers, arenas; see ws/mem.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/log.h"
#include "ws/mem.h"

static void *
need(void *p, size_t size)
{
	if (!p && size) {
		ws_error("out of memory: size=%zu", size);
		exit(WS_ETEMP);
	}
	return p;
}

void *
ws_malloc(size_t size)
{
	return need(malloc(size ? size : 1), size);
}

void *
ws_calloc(size_t n, size_t size)
{
	return need(calloc(n ? n : 1, size ? size : 1), size);
}

void *
ws_realloc(void *p, size_t size)
{
	return need(realloc(p, size ? size : 1), size);
}

char *
ws_strdup(const char *s)
{
	return ws_strndup(s, strlen(s));
}

char *
ws_strndup(const char *s, size_t n)
{
	char *d = ws_malloc(n + 1);

	memcpy(d, s, n);
	d[n] = 0;
	return d;
}

char *
ws_asprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return need(s, 1);
}

void
ws_buf_free(struct ws_buf *b)
{
	free(b->data);
	memset(b, 0, sizeof *b);
}

void
ws_buf_reserve(struct ws_buf *b, size_t more)
{
	if (b->cap - b->len >= more)
		return;
	size_t cap = b->cap ? b->cap * 2 : 256;

	if (more > SIZE_MAX / 2 - b->len) {
		ws_error("out of memory: size=%zu", more);
		exit(WS_ETEMP);
	}
	while (cap < b->len + more)
		cap *= 2;
	b->data = ws_realloc(b->data, cap);
	b->cap = cap;
}

void
ws_buf_put(struct ws_buf *b, const void *p, size_t n)
{
	ws_buf_reserve(b, n);
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
}

void
ws_buf_putc(struct ws_buf *b, uint8_t c)
{
	ws_buf_put(b, &c, 1);
}

void
ws_buf_puts(struct ws_buf *b, const char *s)
{
	ws_buf_put(b, s, strlen(s));
}

void
ws_buf_printf(struct ws_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	ws_buf_reserve(b, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void
ws_buf_put16(struct ws_buf *b, uint16_t v)
{
	ws_buf_put(b, &v, sizeof v);
}

void
ws_buf_put32(struct ws_buf *b, uint32_t v)
{
	ws_buf_put(b, &v, sizeof v);
}

void
ws_buf_put64(struct ws_buf *b, uint64_t v)
{
	ws_buf_put(b, &v, sizeof v);
}

void
ws_buf_putstr(struct ws_buf *b, const char *s, size_t n)
{
	ws_buf_put32(b, (uint32_t)n);
	ws_buf_put(b, s, n);
}

char *
ws_buf_cstr(struct ws_buf *b)
{
	ws_buf_reserve(b, 1);
	b->data[b->len] = 0;
	return (char *)b->data;
}

struct ws_arena_block {
	struct ws_arena_block *next;
	size_t size;
	uint8_t data[] __attribute__((aligned(16)));
};

#define ARENA_BLOCK 8192

void *
ws_arena_alloc(struct ws_arena *a, size_t size)
{
	size = size ? (size + 7) & ~(size_t)7 : 8;
	if ((size_t)(a->end - a->at) < size) {
		size_t cap = a->total ? a->total : ARENA_BLOCK;

		if (cap > 1024 * 1024)
			cap = 1024 * 1024;
		if (cap < size)
			cap = size;
		struct ws_arena_block *b = ws_malloc(sizeof *b + cap);

		b->next = a->head;
		b->size = cap;
		a->head = b;
		a->at = b->data;
		a->end = b->data + cap;
		a->total += cap;
	}
	void *p = a->at;

	a->at += size;
	return p;
}

void *
ws_arena_zalloc(struct ws_arena *a, size_t size)
{
	return memset(ws_arena_alloc(a, size), 0, size);
}

void *
ws_arena_dup(struct ws_arena *a, const void *p, size_t n)
{
	void *d = ws_arena_alloc(a, n);

	if (n)
		memcpy(d, p, n);
	return d;
}

char *
ws_arena_strdup(struct ws_arena *a, const char *s)
{
	return ws_arena_dup(a, s, strlen(s) + 1);
}

void
ws_arena_reset(struct ws_arena *a)
{
	struct ws_arena_block *b = a->head, *next;

	for (; b && b->next; b = next) {
		next = b->next;
		free(b);
	}
	a->head = b;
	a->at = b ? b->data : NULL;
	a->end = b ? b->data + b->size : NULL;
	a->total = b ? b->size : 0;
}

void
ws_arena_free(struct ws_arena *a)
{
	for (struct ws_arena_block *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	memset(a, 0, sizeof *a);
}
