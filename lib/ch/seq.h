/* A sequence's value as a row of the table walshadow.sequences. */
#ifndef WS_CH_SEQ_H
#define WS_CH_SEQ_H

#include "ws/change.h"

#define EMIT_SEQ_COLS 5

struct emit_seq {
	struct ws_value v[EMIT_SEQ_COLS];
	struct ws_change row;    /* refers to v */
	struct ws_c_begin begin; /* of an event outside a transaction */
};

/* The row's texts are the event's. */
void emit_seq_row(const struct ws_c_sequence *s, struct emit_seq *out);

#endif
