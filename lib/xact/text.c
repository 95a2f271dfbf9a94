/* Text from the oracle before frames go out.  It may be away: the shadow restarts, or does not take
 * connections.  A consumer waits for it without end, and nothing is sent otherwise meanwhile. */
#include <unistd.h>

#include "live.h"
#include "run.h"
#include "ws/tool.h"

#define RETRY_US   100000u
#define SAY_US     10000000u
#define OFFLINE_US 10000000u

/* Not there: says so now and then. */
static void
say_away(struct ws_run *r, uint64_t *said)
{
	uint64_t now = ws_now_us();

	if (r->oracle_away && now - *said < SAY_US)
		return;
	ws_warn("waiting for the oracle: values=%zu: %s", ws_oracle_deferred(r->oracle),
			ws_oracle_why(r->oracle));
	r->oracle_away = true;
	*said = now;
}

int
ws_run_text(struct ws_run *r, struct ws_err *err)
{
	uint64_t said = 0, from = ws_now_us();
	int rc;

	while ((rc = ws_oracle_resolve(r->oracle, &r->out, err)) == 0) {
		if (ws_tool_stopping())
			return ws_err_temp(err, "told to stop while values wait for the oracle: %s",
							   ws_oracle_why(r->oracle));
		if (!r->live && ws_now_us() - from > OFFLINE_US)
			return ws_err_temp(err, "the oracle is not there: %s", ws_oracle_why(r->oracle));
		say_away(r, &said);
		if (ws_run_look_after(r, false, err) != 0)
			return -1;
		usleep(RETRY_US);
	}
	if (rc == 1 && r->oracle_away) {
		ws_info("the oracle is back");
		r->oracle_away = false;
	}
	return rc == 1 ? 0 : -1;
}
