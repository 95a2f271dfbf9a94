/* Bytes that come over sockets: start packets, commands, stream messages; and pg_control. */
#include <stdlib.h>
#include <string.h>

#include "lib/pg/replmsg.h"
#include "lib/pg/servermsg.h"
#include "ws/pgcontrol.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct startup s;
	struct repl_cmd c;
	struct repl_msg m;
	struct ws_pgcontrol ctl;

	if (startup_parse(p, n, &s) == 0 && memchr(s.application, 0, sizeof s.application) == NULL)
		abort();
	if (repl_msg_parse(p, n, &m) == 0 && m.kind == 'w' && (m.p < p || m.p + m.n != p + n))
		abort();
	(void)ws_pgcontrol_parse(p, n, &ctl, NULL);
	char *text = malloc(n + 1);

	if (!text)
		return 0;
	memcpy(text, p, n);
	text[n] = 0;
	if (repl_cmd_parse(text, &c) == 0 && memchr(c.name, 0, sizeof c.name) == NULL)
		abort();
	free(text);
	return 0;
}
