/* Routes, ws-routes(5): which tables are replicated, where to and how.  One line a rule, first
 * match wins.  Parsing and matching are pure; nothing here knows a server. */
#ifndef WS_ROUTES_H
#define WS_ROUTES_H

#include "ws/err.h"
#include "ws/mem.h"

#define WS_ROUTES_MAX_FILE (4u * 1024 * 1024)
#define WS_ROUTES_MAX_NAME 255

enum ws_deletes { WS_DEL_TOMBSTONE, WS_DEL_SOFT, WS_DEL_DISCARD, WS_DEL_HISTORY };
enum ws_keyless { WS_KEYLESS_REFUSE, WS_KEYLESS_APPEND, WS_KEYLESS_ALL };
enum ws_unfit { WS_UNFIT_STOP, WS_UNFIT_CLAMP, WS_UNFIT_NULL, WS_UNFIT_TEXT };
enum ws_unsupported { WS_UNSUP_STOP, WS_UNSUP_HEX, WS_UNSUP_BYTES, WS_UNSUP_NULL };
enum ws_toast_missing { WS_TOAST_MISSING_STOP, WS_TOAST_MISSING_NULL };
enum ws_null_array { WS_NULL_ARRAY_TEXT, WS_NULL_ARRAY_EMPTY };
enum ws_drop { WS_DROP_KEEP, WS_DROP_DROP, WS_DROP_STOP, WS_DROP_WARN };
enum ws_type_change { WS_TYPE_REBUILD, WS_TYPE_STOP }; /* where widening in place is not enough */
enum ws_text_change { WS_TEXT_STOP, WS_TEXT_KEEP };
enum ws_rename { WS_RENAME_RENAME, WS_RENAME_KEEP, WS_RENAME_STOP, WS_RENAME_NEW };
enum ws_load { WS_LOAD_UNSAID, WS_LOAD_COPY, WS_LOAD_NONE };

enum ws_partitions { WS_PART_OWN, WS_PART_ROOT };

/* The extra columns, in the order in which created tables have them. */
enum ws_extra { WS_X_VERSION, WS_X_DELETED, WS_X_OP, WS_X_XID, WS_X_COMMIT_TS, WS_X_LEAF, WS_X_LSN, WS_X_COUNT };

/* What the file says about one table.  Strings belong to the ws_routes, but for database and table,
 * which ws_routes_resolve makes and ws_route_fini frees.  NULL: not said. */
struct ws_route {
	unsigned line; /* of the rule; 0 for the built-in default */
	char *database, *table; /* the destination's names, templates filled in */
	const char *engine, *order_by, *primary_key, *partition_by, *ttl, *settings, *cluster;
	enum ws_deletes deletes;
	enum ws_keyless keyless;
	enum ws_unfit unfit;
	enum ws_unsupported unsupported;
	enum ws_null_array null_array;
	enum ws_toast_missing toast_missing;
	enum ws_drop drop_table, drop_column;
	enum ws_type_change type_change;
	enum ws_text_change text_change; /* of values in rows that are not written */
	enum ws_rename rename_table;
	enum ws_load load;
	enum ws_partitions partitions; /* of a partitioned table: where its leaves' rows go */
	const char *extra[WS_X_COUNT]; /* names; NULL: left out */
};

struct ws_route_column {
	bool excluded;
	const char *name; /* NULL: the source's */
	const char *type; /* NULL: the default of ws-types(5) */
};

struct ws_routes;

/* Parses the text; the whole of it is checked.  Problems are appended to problems, a line each:
 * "NAME:LINE: what is wrong".  Returns NULL when there are any. */
struct ws_routes *ws_routes_parse(const char *text, size_t n, const char *name, struct ws_buf *problems);
/* The file's rules (path NULL: the built-in default, everything by default rules).  The first
 * problem becomes the error, WS_EUSAGE. */
struct ws_routes *ws_routes_load(const char *path, struct ws_err *err);
void ws_routes_free(struct ws_routes *r);
/* Tables that rules name and send to one destination, as far as the rules alone tell: appended to
 * problems as ws_routes_parse does. */
void ws_routes_conflicts(const struct ws_routes *r, const char *name, struct ws_buf *problems);

/* The rule for a table.  1 filled (ws_route_fini frees it), 0 the table is not replicated,
 * -1 the names that come out cannot be used. */
int ws_routes_resolve(const struct ws_routes *r, const char *dbname, const char *nspname,
                      const char *name, struct ws_route *out, struct ws_err *err);
/* The same for a leaf of a partitioned table (root names NULL or empty: for any table): with
 * partitions=root in the root's rule that rule counts, and *shared tells. */
int ws_routes_resolve_leaf(const struct ws_routes *r, const char *dbname, const char *nspname,
                           const char *name, const char *root_nspname, const char *root_name,
                           struct ws_route *out, bool *shared, struct ws_err *err);
void ws_route_fini(struct ws_route *r);
/* The rule for a column of a table. */
void ws_routes_column(const struct ws_routes *r, const char *nspname, const char *name,
                      const char *column, struct ws_route_column *out);

#endif
