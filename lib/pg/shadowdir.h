/* Private to shadowdir.c, shadowconf.c and backupcheck.c. */
#ifndef WS_SHADOWDIR_H
#define WS_SHADOWDIR_H

#include "ws/basebackup.h"

const char *shadowdir_tmp(const struct ws_shadowdir *d);
extern const char shadowconf_hba[];
void shadowconf_text(const struct ws_shadowconf *conf, const struct ws_pgcontrol *c, struct ws_buf *out);

#endif
