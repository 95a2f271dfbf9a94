/* What the files of value*.c share. */
#ifndef WS_VALUE_INT_H
#define WS_VALUE_INT_H

#include "ws/value.h"

/* value-time.c: -1 when the text is not in the form that PostgreSQL prints (ISO). */
int ws_date_parse(const char *s, size_t n, int64_t *days);
int ws_time_parse(const char *s, size_t n, int64_t *us);
int ws_timestamp_parse(const char *s, size_t n, bool tz, int64_t *us);

/* value-array.c */
int ws_array_from_text(enum ws_kind elem, const char *s, size_t n, struct ws_arena *a,
                       struct ws_value *v, struct ws_err *err);

#endif
