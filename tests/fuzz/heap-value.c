/* Fuzz target: the bytes of one varlena on disk, without header, as the type that the first byte
 * chooses: numeric, jsonb, arrays, inet, and all that have a form of their own. */
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ws_attr row_attrs[] = {{.name = "i", .typid = 21, .attnum = 1, .len = 2, .align = 's'},
                                     {.name = "d", .attnum = 2, .len = -1, .align = 'i', .flags = WS_ATT_DROPPED},
                                     {.name = "r", .typid = 30010, .attnum = 3, .len = -1, .align = 'i'},
                                     {.name = "a", .typid = 30031, .attnum = 4, .len = -1, .align = 'i'}};
static struct ws_rel row = {.natts = 4, .attrs = row_attrs};

#define TYPE(id, tt, al, ...) {.oid = id, .typtype = tt, .len = -1, .align = al, .delim = ',', __VA_ARGS__}
#define INNER .out_lib = "", .out_sym = "array_out"
#define EXT(lib, sym) .out_lib = "$libdir/" lib, .out_sym = sym
static const struct ws_type found[] = {
    TYPE(3904, 'r', 'i', .subtype = 23, INNER), TYPE(4451, 'm', 'i', .subtype = 3904, INNER),
    TYPE(30010, 'r', 'i', .subtype = 25, INNER), TYPE(30011, 'm', 'i', .subtype = 30010, INNER),
    TYPE(30020, 'c', 'd', .relid = 1, .row = &row, INNER), TYPE(30021, 'b', 'd', .elem = 30020, INNER),
    TYPE(30030, 'd', 'i', .base = 1007, INNER), TYPE(30031, 'b', 'i', .elem = 30030, INNER),
    TYPE(30040, 'b', 'i', EXT("hstore", "hstore_out")), TYPE(30041, 'b', 'i', EXT("ltree", "ltree_out")),
    TYPE(30042, 'b', 'i', EXT("ltree", "lquery_out")), TYPE(30043, 'b', 'i', EXT("ltree", "ltxtq_out")),
    TYPE(30044, 'b', 'd', EXT("cube", "cube_out")), TYPE(30046, 'b', 'i', EXT("vector", "vector_out"))};

static int
lookup(void *arg, ws_oid oid, const struct ws_type **t, struct ws_err *err)
{
	(void)arg, (void)err;
	for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
		if (found[i].oid == oid) {
			*t = &found[i];
			return 1;
		}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ws_oid types[] = {1700, 3802, 1007, 1009, 3807, 1231, 869, 650, 1270, 1001,
	                               1560, 602, 604, 22, 30, 142, 3614, 3615, 4072, 3904, 4451, 30010, 30011, 30020, 30021,
	                               30031, 30040, 30041, 30042, 30043, 30044, 30046, 1020, 3643};
	struct ws_attr attr = {.name = "c", .len = -1, .align = 'i', .typname = "t"};
	struct ws_rel rel = {.nspname = "s", .name = "r", .attrs = &attr, .natts = 1};
	struct ws_arena arena = {0};
	const struct ws_heapenv env = {.arena = &arena};
	struct ws_buf text = {0};
	struct ws_value v, w;

	if (size < 1)
		return 0;
	attr.typid = types[data[0] % (sizeof types / sizeof types[0])];
	uint8_t *body = malloc(size + 4); /* one byte of padding (hoff 24), header, bytes */

	body[0] = 0;
	ws_store32(body + 1, (uint32_t)(size + 3) << 2);
	memcpy(body + 5, data + 1, size - 1);
	const struct ws_tuple t = {body, (uint32_t)size + 4, 1, 0, 24};
	struct ws_heapdesc *d = ws_heapdesc_new(&rel, lookup, NULL, NULL);

	if (ws_heap_decode(d, &t, 0, &env, &v, NULL) == 0) {
		ws_value_text(&v, &text);
		/* What was decoded is what its text gives, but for text with bytes that no server sends. */
		if (attr.typid != 3807 && attr.typid != 1009 && attr.typid != 30021 && attr.typid != 3643 &&
		    ws_value_from_text(v.kind, d->cols[0].type.elem, (char *)text.data, text.len, &arena, &w, NULL) != 0)
			abort();
	}
	ws_buf_free(&text);
	ws_heapdesc_free(d);
	ws_arena_free(&arena);
	free(body);
	return 0;
}
