/* A store: named objects in a directory, below a URL or in a bucket.  It knows nothing of WAL.  Of
 * lib/store only.
 *
 * Absent and unreachable are never the same: absent is only what a store that works has said. */
#ifndef WS_STORE_STORE_H
#define WS_STORE_STORE_H

#include "codec.h"
#include "ws/archive.h"

struct store;

/* One entry of a listing: a name without its folder. */
typedef int (*store_each)(void *arg, const char *name, bool folder, uint64_t size,
						  struct ws_err *err);

struct store_ops {
	/* 1 all of it went to out (or as much as it wanted), 0 absent, -1. */
	int (*get)(struct store *s, const char *key, const struct sink *out, struct ws_err *err);
	/* 1 there, 0 absent, -1; NULL with list_once. */
	int (*stat)(struct store *s, const char *key, uint64_t *size, struct ws_err *err);
	/* All or nothing, never over another object.  1 stored and durable, 0 the key exists, -1. */
	int (*put)(struct store *s, const char *key, const void *p, size_t n, struct ws_err *err);
	/* What was found there becomes durable; NULL: it is. */
	int (*sync)(struct store *s, const char *key, struct ws_err *err);
	/* Entries of folder ("" the store's own) whose names begin with prefix, in any order.  each
	 * returns 0 to go on, 1 to end.  0 or -1; NULL: this store cannot list. */
	int (*list)(struct store *s, const char *folder, const char *prefix, store_each each, void *arg,
				struct ws_err *err);
	void (*close)(struct store *s);
};

struct store {
	const struct store_ops *ops;
	char *url;      /* for messages: no secret is in it */
	bool list_once; /* one listing costs less than asking for several names */
};

/* By the URL's scheme. */
struct store *store_open(const struct ws_archive_opts *o, struct ws_err *err);
void store_close(struct store *s);

struct store *dir_open(const char *path, struct ws_err *err);
/* http:// or https:// */
struct store *http_open(const struct ws_archive_opts *o, struct ws_err *err);
struct store *s3_open(const struct ws_archive_opts *o, struct ws_err *err);

/* True, with *err set, when a signal asks to end. */
bool store_interrupted(struct ws_err *err);

#endif
