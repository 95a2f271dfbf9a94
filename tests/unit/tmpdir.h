/* A folder for each unit test: its name in `dir`, made by setup, removed by teardown. */
#ifndef TMPDIR_H
#define TMPDIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static int
setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ws-unit-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
teardown(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd);
}

/* A file in it; four are there at a time. */
static char *
path(const char *name)
{
	static char p[4][256];
	static int i;

	i = (i + 1) & 3;
	snprintf(p[i], sizeof p[i], "%s/%s", dir, name);
	return p[i];
}

#endif
