/* The filter at work: reads a source to its end, or follows it, filters, and hands on what is final.
 * The source, the output and the knowledge at the start are the caller's to open. */
#ifndef WS_FILTERRUN_H
#define WS_FILTERRUN_H

#include "ws/filterdir.h"
#include "ws/waldir.h"

struct ws_filterrun {
	/* set by the caller */
	const char *input;         /* the source's name, for messages and history files */
	const char *received_file; /* what of the input is durable, or NULL */
	bool follow;
	bool one_file;  /* one segment: it is written whole */
	bool to_stdout; /* as frames */
	struct ws_walsrc *src;
	struct ws_filterdir *dir; /* output and state, or NULL */
	struct ws_pos start;      /* of a restored state, else lsn 0 */
	struct ws_pos since;      /* of the kept list, else lsn 0 */
	struct ws_filter *filter; /* owned: it changes at a switch of timeline */

	/* of the run */
	struct ws_filterstream *stream; /* NULL: there was no byte of WAL */
	struct ws_walframe *frame;
	ws_tli tli, before; /* newest timeline read; the one before it, below fork */
	ws_lsn fork;
	ws_lsn fed; /* end of the bytes read */
	double *bytes, *blanked, *records, *kept, *lsn;
};

/* Until the end, a signal or an error. */
int ws_filterrun_loop(struct ws_filterrun *r, struct ws_err *err);
/* Frees filter, stream and frame. */
void ws_filterrun_fini(struct ws_filterrun *r);

#endif
