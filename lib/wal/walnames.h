/* What a WAL directory holds, by its names.  Of lib/wal only. */
#ifndef WS_WALNAMES_H
#define WS_WALNAMES_H

#include "ws/err.h"
#include "ws/history.h"

enum ws_seg_kind { WS_SEG_WHOLE, WS_SEG_PARTIAL, WS_SEG_GZ, WS_SEG_LZ4, WS_SEG_ZST, WS_SEG_KINDS };

/* Suffix of a segment's name by kind: "", ".partial", ".gz", ".lz4", ".zst". */
extern const char *const ws_seg_suffix[WS_SEG_KINDS];

struct ws_walname {
	ws_tli tli;
	ws_lsn start;
	enum ws_seg_kind kind;
};

struct ws_walnames {
	size_t n; /* segments, in no order */
	struct ws_walname *segs;
	size_t nhist; /* timelines that have a history file */
	ws_tli *hist;
};

/* "SEGMENT[SUFFIX]": 0 and *out, or -1. */
int ws_walname_parse(const char *name, uint32_t segsize, struct ws_walname *out);

/* 0 or -1; a directory that does not exist is an error. */
int ws_walnames_list(const char *dir, uint32_t segsize, struct ws_walnames *out, struct ws_err *err);
void ws_walnames_fini(struct ws_walnames *l);

/* dir/TLI.history: 1 read and parsed, 0 absent (*h then has no ancestors), -1. */
int ws_walnames_history(const char *dir, ws_tli tli, struct ws_history *h, struct ws_err *err);
/* The same of the file path; and the path of dir's, malloc'd. */
int ws_walnames_history_read(const char *path, ws_tli tli, struct ws_history *h, struct ws_err *err);
char *ws_walnames_history_path(const char *dir, ws_tli tli);

#endif
