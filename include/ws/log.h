/* Messages on stderr: `tool: level: text key=value`, or one JSON object a line with
 * --log-format json.  Never give it a secret or a whole connection string. */
#ifndef WS_LOG_H
#define WS_LOG_H

#include "ws/err.h"

enum ws_loglevel { WS_LOG_DEBUG, WS_LOG_INFO, WS_LOG_WARNING, WS_LOG_ERROR };

/* tool must outlive the process's logging; json selects the JSON form. */
void ws_log_init(const char *tool, enum ws_loglevel least, bool json);
bool ws_log_enabled(enum ws_loglevel level);

void ws_debug(const char *fmt, ...) WS_PRINTF(1, 2);
void ws_info(const char *fmt, ...) WS_PRINTF(1, 2);
void ws_warn(const char *fmt, ...) WS_PRINTF(1, 2);
void ws_error(const char *fmt, ...) WS_PRINTF(1, 2);

/* Logs err as an error with reason=TOKEN when it has one. */
void ws_log_err(const struct ws_err *err);

#endif
