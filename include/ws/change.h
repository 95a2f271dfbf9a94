/* The change stream, ws-change(5): committed transactions as typed row changes.
 *
 * Reader and writer know frames, not files: the reader is fed bytes, the writer fills a buffer
 * that its owner sends.  Events are structs whose pointers live until the next call. */
#ifndef WS_CHANGE_H
#define WS_CHANGE_H

#include "ws/value.h"

#define WS_CHANGE_MAGIC     "WSCHANGE"
#define WS_CHANGE_VERSION   1
#define WS_CHANGE_MAX_FRAME (1100u * 1024 * 1024)
#define WS_CHANGE_MAX_COLS  1664 /* MaxTupleAttributeNumber */

enum ws_change_type {
	WS_C_IDENTITY = 'I',
	WS_C_RELATION = 'R',
	WS_C_BEGIN = 'B',
	WS_C_ROW = 'W',
	WS_C_TRUNCATE = 'T',
	WS_C_REPLACE_BEGIN = 'P', /* what follows, up to the end mark, is the table's whole content */
	WS_C_REPLACE_END = 'p',
	WS_C_SCHEMA = 'S',
	WS_C_MESSAGE = 'M',
	WS_C_SEQUENCE = 'Q',
	WS_C_COMMIT = 'C',
	WS_C_PROGRESS = 'K',
	WS_C_TIMELINE = 'L',
	WS_C_SNAPSHOT_BEGIN = 'N',
	WS_C_SNAPSHOT_END = 'n',
	WS_C_END = 'E'
};

struct ws_c_identity {
	uint64_t system_id;
	ws_tli tli;
	ws_oid db;
	uint16_t major;
	const char *dbname;   /* NUL-terminated, as every string below */
	const char *encoding; /* PostgreSQL's name: UTF8 */
};

#define WS_COL_NOTNULL   0x01
#define WS_COL_IDENTITY  0x02 /* part of the replica identity's key */
#define WS_COL_PKEY      0x04
#define WS_COL_GENERATED 0x08
#define WS_COL_MISSING   0x10 /* missing is set */

struct ws_c_column {
	const char *name;
	int16_t attnum; /* the column's identity across renames */
	uint8_t kind, elem_kind;
	uint8_t flags;
	ws_oid typid;
	int32_t typmod;
	const char *typname; /* format_type */
	/* The value of rows that are older than the column (attmissingval), as text under the settings
	 * of ws_value_text; only with WS_COL_MISSING. */
	const char *missing;
	/* Enum labels in order, for the destination's type.  Of any other column: the labels of
	 * enums within, and a text for each composite, that the text of its values depends on. */
	uint16_t nlabels;
	const char **labels;
};

/* handle names this shape in rows; a new shape of the same relation gets a new handle.  Defined
 * before its first use; handles are small integers from 1, never reused with another meaning. */
struct ws_c_relation {
	uint32_t handle;
	ws_oid oid;
	char relkind, replident;
	const char *nspname, *name;
	ws_oid root; /* of a partition: the topmost table, else 0 */
	const char *root_nspname, *root_name;
	ws_lsn lsn; /* of the boundary that gave the shape */
	uint16_t ncols; /* live columns only, in attnum order */
	struct ws_c_column *cols;
};

struct ws_c_begin {
	ws_xid xid;
	ws_lsn commit_lsn; /* start of the commit record: upper half of _version */
	ws_lsn end_lsn;    /* its end */
	int64_t time;      /* microseconds since 2000-01-01 UTC */
	uint16_t origin;
};

/* Same fields as the begin. nchanges counts every change of the transaction. */
struct ws_c_commit {
	ws_xid xid;
	ws_lsn commit_lsn, end_lsn;
	ws_tli tli;
	uint64_t nchanges;
};

#define WS_ROW_NEW      0x01 /* has a new tuple (insert, update, snapshot row) */
#define WS_ROW_OLD_KEY  0x02 /* has an old tuple: key columns are values, the others absent */
#define WS_ROW_OLD_FULL 0x04 /* has an old tuple: all columns */

struct ws_c_row {
	char op; /* 'I' 'U' 'D' */
	uint8_t flags;
	uint32_t handle;
	uint64_t ordinal; /* of the change in its transaction, from 1; 0 for snapshot rows */
	const struct ws_c_relation *rel;
	const struct ws_value *new_; /* rel->ncols values, or NULL */
	const struct ws_value *old;
	/* With ws_change_reader_utf8: a column whose text cannot be converted, NULL when all are. */
	const char *invalid;
};

#define WS_TRUNCATE_CASCADE 1
#define WS_TRUNCATE_RESTART 2

struct ws_c_truncate {
	uint64_t ordinal;
	uint8_t flags;
	uint32_t nhandles;
	const uint32_t *handles;
};

struct ws_c_replace { /* begin and end */
	uint64_t ordinal;
	uint32_t handle;
};

struct ws_c_schema {
	uint64_t ordinal;
	char what;            /* 'C' created, 'A' altered, 'D' dropped */
	ws_oid oid;
	uint32_t old_handle;  /* 0 when created or never described in this stream */
	uint32_t new_handle;  /* 0 when dropped */
};

struct ws_c_message {
	uint64_t ordinal; /* 0 when not transactional */
	bool transactional;
	ws_lsn lsn;
	const char *prefix;
	const uint8_t *content;
	uint32_t len;
};

struct ws_c_sequence {
	uint64_t ordinal; /* 0 when outside a transaction */
	ws_lsn lsn;
	ws_oid oid;
	const char *nspname, *name;
	int64_t last_value;
	bool is_called;
};

struct ws_c_timeline {
	ws_tli old_tli, new_tli;
	ws_lsn lsn;
};

struct ws_c_snapshot {
	uint32_t handle;
	ws_lsn lsn;     /* consistent point: version of the rows is lsn << 64; commits whose end is <= lsn are in it */
	ws_tli tli;
	uint64_t rows;  /* end only */
	bool with_rows; /* begin: false for initial load none */
};

struct ws_change {
	enum ws_change_type type;
	size_t size; /* of the frame in bytes */
	union {
		struct ws_c_identity identity;
		const struct ws_c_relation *relation;
		struct ws_c_begin begin;
		struct ws_c_row row;
		struct ws_c_truncate truncate;
		struct ws_c_replace replace;
		struct ws_c_schema schema;
		struct ws_c_message message;
		struct ws_c_sequence sequence;
		struct ws_c_commit commit;
		struct ws_pos progress; /* everything that commits at or below has been sent */
		struct ws_c_timeline timeline;
		struct ws_c_snapshot snapshot;
		struct ws_pos end; /* everything at or below has been sent; nothing follows */
	};
};

/* ---- writer: appends frames to out ---- */
#define WS_CHANGE_ROW_HEAD 19 /* bytes of a row's frame before its tuples */
void ws_change_put_header(struct ws_buf *out);
void ws_change_put(struct ws_buf *out, const struct ws_change *c);
/* The hot path of ws_change_put for rows: ncols values each; new_ or old may be NULL. */
void ws_change_put_row(struct ws_buf *out, char op, uint32_t handle, uint64_t ordinal, uint16_t ncols,
                       const struct ws_value *new_, const struct ws_value *old, bool old_full);

/* ---- reader ---- */
struct ws_change_reader;
struct ws_change_reader *ws_change_reader_new(void);
void ws_change_reader_free(struct ws_change_reader *r);
/* From here on texts, names and labels come in UTF-8, whatever the database's encoding; those of
 * SQL_ASCII as they are.  A row with a text that is not valid in its encoding says so (`invalid`), a
 * name is an error (reason=invalid_encoding), an encoding that is not known here one of the identity
 * frame (reason=encoding). */
void ws_change_reader_utf8(struct ws_change_reader *r);
/* Room for at least n bytes to read(2) into; then tell how many came.  Compacts: pointers of
 * earlier events end here. */
uint8_t *ws_change_reader_room(struct ws_change_reader *r, size_t n);
void ws_change_reader_fed(struct ws_change_reader *r, size_t n);
/* 1 an event (relation structs live as long as the reader; all else until the next call);
 * 0 more bytes are needed; -1 malformed.  Checks order: header, identity, rows only in a transaction or
 * a snapshot, known handles, ordinals that do not decrease, commit equal to its begin. */
int ws_change_next(struct ws_change_reader *r, struct ws_change *c, struct ws_err *err);
/* At end of input: true after an end frame; false: the producer died. */
bool ws_change_ended(const struct ws_change_reader *r);
const struct ws_c_relation *ws_change_relation(const struct ws_change_reader *r, uint32_t handle);

/* One JSON object and a newline. */
void ws_change_json(const struct ws_change *c, const struct ws_change_reader *r, struct ws_buf *out);

#endif
