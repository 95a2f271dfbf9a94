/* TOAST in the decoder: chunks of the transaction at hand by position, older ones in the store.
 * Private to lib/xact. */
#ifndef WS_XACT_TOAST_H
#define WS_XACT_TOAST_H

#include "ddl.h"
#include "ws/toaststore.h"

/* A commit begins: are its changes to be applied to the store?  Sets d->toast_apply. */
void ws_toast_begin(struct ws_decoder *d);
/* Its records were read.  g: what it did to the catalog, or NULL. */
int ws_toast_end(struct ws_decoder *d, const struct ws_ddl *g, const struct ws_xactrec *x,
                 struct ws_err *err);

/* A record of a TOAST table, rec parsed into h. */
int ws_toast_record(struct ws_decoder *d, struct ws_shape *sh, const struct ws_rec *rec,
                    const struct ws_heaprec *h, struct ws_err *err);
/* A speculative row is taken back, or one of its chunks: what is kept of that dies. */
int ws_toast_super(struct ws_decoder *d, const struct ws_heaprec *h, struct ws_err *err);
int ws_toast_truncate(struct ws_decoder *d, const struct ws_heaprec *h, struct ws_err *err);

/* ws_toast_fn; arg is the decoder. */
int ws_toast_fetch(void *arg, const struct ws_toast_ptr *p, struct ws_arena *a,
                   const uint8_t **data, struct ws_err *err);
/* Values of v that ws_toast_fetch did not find: from the old row, or what the policy is. */
int ws_toast_fill(struct ws_decoder *d, const struct ws_shape *sh, const struct ws_value *old,
                  struct ws_value *v, struct ws_err *err);
#endif
