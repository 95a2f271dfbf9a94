/* PostgreSQL's words as C types.
 *
 * An ws_lsn is a byte position in the WAL (XLogRecPtr); 0 is invalid.  Positions that the tools
 * exchange are END positions: "done" is end <= position. */
#ifndef WS_TYPES_H
#define WS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t ws_lsn;
typedef uint32_t ws_xid;
typedef uint32_t ws_oid;
typedef uint32_t ws_tli;

/* A relation's file: RelFileLocator of PostgreSQL (src/include/storage/relfilelocator.h). */
struct ws_locator {
	ws_oid spc;
	ws_oid db;
	ws_oid rel;
};

/* A timeline and a position on it; they travel together. */
struct ws_pos {
	ws_tli tli;
	ws_lsn lsn;
};

/* catalog/pg_tablespace.dat: the oids of pg_default and pg_global; access/transam.h:
 * FirstNormalObjectId. */
#define WS_DEFAULTTABLESPACE_OID 1663u
#define WS_GLOBALTABLESPACE_OID  1664u
#define WS_FIRST_NORMAL_OID      16384u

#define WS_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define WS_LSN_FMT      "%X/%08X"
#define WS_LSN_ARG(l)   (unsigned)((l) >> 32), (unsigned)((l)&0xffffffffu)

#endif
