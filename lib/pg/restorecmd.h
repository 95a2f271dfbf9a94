/* A restore command, with PostgreSQL's contract: %f is the file's name, %p the path to write it to, %%
 * a percent sign; exit status 0 says that it is there, up to 125 that the archive does not have it,
 * above (the shell's 126 and 127 too) or a signal that nobody knows. */
#ifndef WS_PG_RESTORECMD_H
#define WS_PG_RESTORECMD_H

#include "ws/err.h"
#include "ws/mem.h"

/* Appends the command with name and path put in.  -1: WS_EUSAGE, a percent sign that means nothing. */
int restorecmd_expand(const char *command, const char *name, const char *path, struct ws_buf *out,
					  struct ws_err *err);

/* What waitpid's status says: 1 it is there, 0 it is not, -1. */
int restorecmd_judge(int status, const char *name, struct ws_err *err);

/* Runs it by the shell, in dir and in a process group of its own, its output going to stderr; path is
 * relative to dir.  Killed when the tool is told to stop: -1, temporary.  idle is called now and then. */
int restorecmd_run(const char *command, const char *dir, const char *name, const char *path,
				   void (*idle)(void *arg), void *arg, struct ws_err *err);

#endif
