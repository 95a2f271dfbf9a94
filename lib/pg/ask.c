/* Connections for a person at a terminal, who may type the password; see ws/pgconn.h. */
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "ws/pgconn.h"

/* Reads a password from the terminal, without echo.  NULL when there is no terminal. */
static char *
ask_password(void)
{
	struct termios was, now;
	char line[1024];
	FILE *tty = fopen("/dev/tty", "r+e");
	char *got;

	if (!tty)
		return NULL;
	tcgetattr(fileno(tty), &was);
	now = was;
	now.c_lflag &= ~(tcflag_t)ECHO;
	tcsetattr(fileno(tty), TCSAFLUSH, &now);
	fputs("Password: ", tty);
	fflush(tty);
	got = fgets(line, sizeof line, tty);
	tcsetattr(fileno(tty), TCSAFLUSH, &was);
	fputs("\n", tty);
	fclose(tty);
	if (!got)
		return NULL;
	line[strcspn(line, "\n")] = 0;
	char *copy = ws_strdup(line);

	explicit_bzero(line, sizeof line);
	return copy;
}

struct ws_pg *
ws_pg_open_asking(struct ws_pg_opts *o, bool always, bool never, struct ws_err *err)
{
	bool needs;

	if (always)
		o->password = ask_password();
	struct ws_pg *c = ws_pg_open(o, &needs, err);

	if (!c && needs && !never && !o->password && isatty(STDERR_FILENO) &&
	    (o->password = ask_password()))
		c = ws_pg_open(o, NULL, err);
	return c;
}
