/* Fuzz target: a tuple against a shape with every kind of column; values are printed, too. */
#include <string.h>

#include "ws/heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	ws_oid typid;
	int16_t len;
	char align;
} cols[] = {{16, 1, 'c'},    {0, -1, 'i'},    {1700, -1, 'i'}, {3802, -1, 'i'}, {1007, -1, 'i'}, {1009, -1, 'i'}, {3807, -1, 'i'}, {1231, -1, 'i'},
            {25, -1, 'i'},   {869, -1, 'i'},  {1186, 16, 'd'}, {1266, 12, 'd'}, {701, 8, 'd'},   {2950, 16, 'c'}, {600, 16, 'd'},  {2275, -2, 'c'},
            {1270, -1, 'd'}, {1002, -1, 'i'}, {19, 64, 'c'},   {1187, -1, 'd'}, {3904, -1, 'i'}};

#define NCOLS (sizeof cols / sizeof cols[0])

static int
give(void *arg, const struct ws_toast_ptr *p, struct ws_arena *a, const uint8_t **data, struct ws_err *err)
{
	(void)arg, (void)err;
	if (p->extsize > 65536)
		return 0;
	*data = ws_arena_zalloc(a, p->extsize);
	return 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ws_attr attrs[NCOLS];
	static struct ws_rel rel = {.nspname = "s", .name = "r", .attrs = attrs};
	struct ws_arena arena = {0};
	const struct ws_heapenv env = {.arena = &arena, .toast = give};
	struct ws_value out[NCOLS];
	struct ws_buf text = {0};
	struct ws_tuple t;

	/* The first byte says where the columns begin, so that each can be the first one. */
	if (size < 1 + 23)
		return 0;
	rel.natts = (int)NCOLS;
	for (size_t i = 0; i < NCOLS; i++) {
		size_t c = (i + data[0]) % NCOLS;

		attrs[i] = (struct ws_attr){.name = "c", .typid = cols[c].typid, .len = cols[c].len, .align = cols[c].align, .typname = "t"};
		if (!cols[c].typid)
			attrs[i].flags = WS_ATT_DROPPED;
	}
	struct ws_heapdesc *d = ws_heapdesc_new(&rel, NULL, NULL, NULL);

	if (ws_tuple_from_page(data + 1, size - 1, &t) == 0 &&
	    ws_heap_decode(d, &t, data[0] & 0x80 ? WS_DECODE_KEY : 0, &env, out, NULL) == 0)
		for (int i = 0; i < d->ncols; i++)
			if (out[i].state == WS_V_VALUE)
				ws_value_text(&out[i], &text);
	ws_buf_free(&text);
	ws_heapdesc_free(d);
	ws_arena_free(&arena);
	return 0;
}
