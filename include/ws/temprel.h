/* Commits that touch temporary relations alone.  Nobody replicates these, and the catalog history does
 * not keep them: such a boundary needs no capture.
 *
 * A commit's messages name relations and types by oid only.  What they are is known for those whose
 * creation was seen: the rows that went into pg_class and pg_type.  Nothing is concluded from what was
 * not seen, so that reading may begin anywhere. */
#ifndef WS_TEMPREL_H
#define WS_TEMPREL_H

#include "ws/boundary.h"

struct ws_temprels;

struct ws_temprels *ws_temprels_new(void);
void ws_temprels_free(struct ws_temprels *t);
/* The files of a database's pg_class and pg_type from here on; 0: not known. */
void ws_temprels_files(struct ws_temprels *t, ws_oid db, ws_oid class_file, ws_oid type_file);
/* Any record.  Total: a row of these files that cannot be read may be anything, and makes all forgotten. */
void ws_temprels_record(struct ws_temprels *t, const struct ws_rec *rec, const struct ws_walver *ver);
/* Does the boundary change nothing of db but temporary relations, their indexes, sequences, TOAST tables,
 * views and row types?  To be asked once a boundary, in order: each object counts for its creation and
 * one commit more, since its oid may be another's after that. */
bool ws_temprels_only(struct ws_temprels *t, ws_oid db, const struct ws_boundary *b,
                      const struct ws_boundary_ids *ids);

#endif
