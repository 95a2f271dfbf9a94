/* Texts of a database's encoding into UTF-8.  Private to lib/change. */
#ifndef WS_CHANGE_RECODE_H
#define WS_CHANGE_RECODE_H

#include "ws/change.h"

struct ws_recode;

/* encoding is PostgreSQL's name of a server encoding.  1 made, 0 there is nothing to convert (UTF8,
 * and SQL_ASCII, whose bytes nobody knows), -1 not known here or to the C library
 * (reason=encoding). */
int ws_recode_new(const char *encoding, struct ws_recode **out, struct ws_err *err);
void ws_recode_free(struct ws_recode *r);

/* Bytes without one above 127 stay where they are; others are converted into the arena.  With back
 * the result must give the same bytes again: two keys must not become one.  -1: not in that
 * encoding. */
int
ws_recode_text(struct ws_recode *r, const uint8_t **p, size_t *n, bool back, struct ws_arena *a);
/* The texts of a value; numbers, bytes and what is not decoded are none. */
int ws_recode_value(struct ws_recode *r, struct ws_value *v, bool back, struct ws_arena *a);
/* The names, labels and missing values of a relation. */
int ws_recode_relation(struct ws_recode *r, struct ws_c_relation *rel, struct ws_arena *a,
					   struct ws_err *err);
/* The values of a row that has some.  The column whose text is not valid, or NULL. */
const char *ws_recode_row(struct ws_recode *r, const struct ws_c_relation *rel, struct ws_value *v,
						  struct ws_arena *a);
/* A string that ends in NUL; as it is when it cannot be converted. */
const char *ws_recode_name(struct ws_recode *r, const char *s, struct ws_arena *a);

#endif
