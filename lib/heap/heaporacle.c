/* Columns of types that are not decoded, when the oracle gives their text. */
#include <string.h>

#include "heap-int.h"

void
ws_heapdesc_oracle(struct ws_heapdesc *d)
{
	for (uint16_t i = 0; i < d->ncols; i++) {
		struct ws_heapcol *c = &d->cols[i];
		const struct ws_attr *a = c->attr;
		struct ws_value *m = &d->missing[i];

		if (c->type.kind != WS_K_UNSUPPORTED)
			continue;
		c->type.kind = WS_K_OTHER;
		c->raw = true;
		memset(m, 0, sizeof *m);
		m->kind = WS_K_OTHER;
		if (!(a->flags & WS_ATT_MISSING) || !a->missing)
			continue;
		/* The history has it as text already. */
		m->state = WS_V_VALUE;
		m->p = (const uint8_t *)a->missing;
		m->len = (uint32_t)strlen(a->missing);
	}
}
