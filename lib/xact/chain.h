/* Filenode chains: which relation a file belongs to, record by record, in a transaction that gives
 * relations new files.  Pure; private to lib/xact.
 *
 * In such a transaction a relation goes F0 -> F1 -> ...  Each step is a link, placed where the
 * invalidation record stands that made it visible:
 *   - a swap: a transient table X is made (its oid is its file's number), filled, and exchanges
 *     files with the relation: one invalidation record names both;
 *   - a new file for the relation itself (TRUNCATE, SET TABLESPACE): the next invalidation record
 *     after the file's birth names the relation.
 * A swap is replacing when X was filled by rows (or by nothing): everything before it is void, and
 * X's rows are the table's whole content.  It is copying when X was filled by page images.  A new
 * file of its own never replaces: TRUNCATE has a record of its own, images copy.
 *
 * The ends are known from the catalog history: the relation's file before the transaction and at
 * its commit.  A chain that does not lead from the one to the other is an error, as is a file
 * taken over from another relation (unless trusted): no row is ever attributed by a guess. */
#ifndef WS_CHAIN_H
#define WS_CHAIN_H

#include "ws/err.h"
#include "xtx.h"

/* What the history says about a relation around the commit. */
struct ws_chain_rel {
	bool before, after;      /* exists */
	char kind;               /* relkind, of whichever exists */
	char pers_before, pers_after;
	ws_oid file_before, file_after;
	bool same_types;         /* no column has another type at the commit than before */
	const char *name;        /* for messages */
};

struct ws_chain_inval {
	ws_lsn at;
	const ws_oid *oids; /* relations it names, of our database */
	size_t n;
};

struct ws_chain_input {
	const struct ws_birth *births; /* ascending lsn */
	size_t nbirths;
	const struct ws_chain_inval *invals; /* ascending lsn */
	size_t ninvals;
	const ws_oid *dropped; /* files that the commit removes */
	size_t ndropped;
	const ws_oid *changed; /* relations whose catalog entry the commit changed */
	size_t nchanged;
	ws_lsn commit;
	bool no_rows;     /* the transaction has no heap record of ours at all */
	bool trust_swaps;
	/* 1/0/-1.  rel fills *out (before and after may both be false: 0). */
	int (*rel)(void *arg, ws_oid oid, struct ws_chain_rel *out, struct ws_err *err);
	int (*file)(void *arg, ws_oid file, bool after, ws_oid *oid, struct ws_err *err);
	/* Does a change of pg_class between the two positions set rel's relfilenode to file?  1 yes,
	 * 0 no, 2 cannot be told, -1. */
	int (*sets_file)(void *arg, ws_lsn from, ws_lsn to, ws_oid rel, ws_oid file,
	                 struct ws_err *err);
	void *arg;
};

enum ws_linkkind {
	WS_LINK_REPLACE,  /* the rows in the new file, up to the link, are the whole content */
	WS_LINK_COPY,     /* the new file holds what the old one held */
	WS_LINK_UNLOGGED, /* the table left the WAL */
	WS_LINK_TAKEN     /* the file was another relation's */
};

struct ws_link {
	ws_lsn at;
	ws_oid rel;  /* whose file changed */
	ws_oid from, to;
	enum ws_linkkind kind;
	bool swap; /* with a transient table */
	ws_lsn birth; /* of the new file; 0 when it is older than the transaction */
};

/* A replacing link that counts, as two marks in record order. */
struct ws_mark {
	ws_lsn at; /* begin: the new file's birth; end: the link */
	ws_oid rel;
	bool begin;
};

struct ws_chain {
	struct ws_link *links;
	size_t nlinks, links_cap;
	struct ws_mark *marks; /* ascending */
	size_t nmarks;
	struct ws_birth *births; /* copies */
	size_t nbirths;
	struct ws_chain_file {
		ws_oid file;
		uint32_t birth; /* index */
	} *by_file;       /* births by file, ascending */
	ws_oid *owner;    /* of each birth before any link: the relation made with it, or 0 */
	ws_oid *dropped;  /* ascending */
	size_t ndropped;
};

/* 0, or -1: reason filenode_chain, filenode_swap or unknown_relation. */
int ws_chain_build(const struct ws_chain_input *in, struct ws_chain *c, struct ws_err *err);
void ws_chain_fini(struct ws_chain *c);

enum ws_place {
	WS_PLACE_KNOWN,   /* *rel owns the file, the record counts */
	WS_PLACE_VOID,    /* *rel owns it, but a later rewrite supersedes the record */
	WS_PLACE_GONE,    /* of a table made and dropped in the transaction */
	WS_PLACE_OLDER,   /* not a file of this transaction: ask the history before it */
	WS_PLACE_UNKNOWN
};

/* Of a record at lsn in file. */
enum ws_place ws_chain_place(const struct ws_chain *c, ws_oid file, ws_lsn lsn, ws_oid *rel);
/* The same for a file that is known to be rel's then: KNOWN or VOID. */
enum ws_place ws_chain_judge(const struct ws_chain *c, ws_oid file, ws_lsn lsn, ws_oid rel);
/* True when a swap at or after lsn copied rel's file: it filled in, in the copies, what older
 * tuples lack, and the catalog forgot it. */
bool ws_chain_copied_after(const struct ws_chain *c, ws_oid rel, ws_lsn lsn);

#endif
