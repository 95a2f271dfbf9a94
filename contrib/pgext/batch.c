/* A request's values to texts, each with its own error and its own limits.
 *
 * All run in one transaction, so that functions that look something up can.  After an error it is
 * aborted and another begun: texts that are done lie outside of both.  No subtransactions. */
#include "oracle.h"

#include <signal.h>
#include <unistd.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/timeout.h"

#define TICK_MS 1000

/* What the ticking handler looks at. */
static volatile sig_atomic_t value_serial; /* changes with each value */
static volatile sig_atomic_t timed_out;
static TimeoutId ticker;

static MemoryContext value_cxt;

/* ---- time ---- */

static void
on_tick(void)
{
	static sig_atomic_t last;
	static int ticks;

	if (value_serial != last) {
		last = value_serial;
		ticks = 0;
		return;
	}
	ticks++;
	if (ticks >= oracle_value_timeout) {
		timed_out = 1;
		InterruptPending = true;
		QueryCancelPending = true;
	}
	/* It does not look for interrupts: nothing but an end stops it. */
	if (ticks >= 3 * oracle_value_timeout)
		_exit(2);
}

/* Of the value before: it was noticed too late to cancel anything. */
static void
forget_timeout(void)
{
	if (!timed_out)
		return;
	timed_out = 0;
	QueryCancelPending = false;
}

void
batch_init(void)
{
	ticker = RegisterTimeout(USER_TIMEOUT, on_tick);
	value_cxt =
		AllocSetContextCreate(TopMemoryContext, "walshadow oracle value", ALLOCSET_DEFAULT_SIZES);
}

/* ---- transactions ---- */

static void
begin(void)
{
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
commit(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* ---- one value ---- */

typedef enum Outcome {
	DONE,
	FAILED,   /* the value: *text says why */
	DISTURBED /* something else: *text says what; ask again */
} Outcome;

/* Errors that say nothing about the value. */
static bool
is_disturbance(const ErrorData *e)
{
	if (timed_out)
		return false;
	switch (e->sqlerrcode) {
	case ERRCODE_QUERY_CANCELED:
	case ERRCODE_T_R_SERIALIZATION_FAILURE:
	case ERRCODE_T_R_DEADLOCK_DETECTED:
	case ERRCODE_LOCK_NOT_AVAILABLE:
	case ERRCODE_TOO_MANY_CONNECTIONS:
		return true;
	}
	return false;
}

/* After an error: a new transaction; the message in cxt. */
static char *
recover(MemoryContext cxt, Outcome *outcome)
{
	ErrorData *e;
	char *text;

	HOLD_INTERRUPTS();
	MemoryContextSwitchTo(cxt);
	e = CopyErrorData();
	FlushErrorState();
	/* What follows is not the value's time. */
	value_serial++;
	*outcome = is_disturbance(e) ? DISTURBED : FAILED;
	if (timed_out)
		text = psprintf("its output function took longer than %d s", oracle_value_timeout);
	else
		text = psprintf("%s (SQLSTATE %s)", e->message ? e->message : "",
						unpack_sql_state(e->sqlerrcode));
	FreeErrorData(e);
	forget_timeout();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(cxt);
	RESUME_INTERRUPTS();
	begin();
	MemoryContextSwitchTo(cxt);
	return text;
}

/* The text lives until value_cxt is emptied. */
static Outcome
one(Desc *n, const char *p, uint32 len, char **text)
{
	volatile Outcome outcome = DONE;
	char *volatile result = NULL;

	value_serial++;
	forget_timeout();
	MemoryContextSwitchTo(value_cxt);
	PG_TRY();
	{
		CHECK_FOR_INTERRUPTS();
		node_prepare(n);
		result = render_bytes(n, p, len);
		if (unlikely(timed_out))
			CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		Outcome o;

		result = recover(value_cxt, &o);
		outcome = o;
		node_forget(n);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(TopMemoryContext);
	*text = result;
	return outcome;
}

/* ---- the request ---- */

/* Appends the answer of every value; DISTURBED leaves *text set. */
static bool
values(Types *types, Cursor *c, uint32 n, Bytes *out, char **disturbed)
{
	*disturbed = NULL;
	for (uint32 i = 0; i < n; i++) {
		uint32 type = cur_u32(c), len = cur_u32(c);
		const char *p = cur_bytes(c, len);
		char *text;
		Outcome o;

		if (!p || type >= types->n)
			return false;
		o = one(types->v[type], p, len, &text);
		if (o == DISTURBED) {
			*disturbed = text;
			return true;
		}
		buf_u8(out, o == DONE ? 0 : 1);
		buf_str(out, text, strlen(text));
		MemoryContextReset(value_cxt);
		/* The whole must fit into a frame: what is left is asked again. */
		if (out->len > ORACLE_MAX_FRAME && i > 0) {
			*disturbed = "the answer is too long";
			return true;
		}
	}
	return c->p == c->end;
}

bool
batch_run(Types *types, Cursor *c, Bytes *out)
{
	uint32 seq = cur_u32(c), n = cur_u32(c);
	size_t at = frame_begin(out, 'R');
	char *disturbed = NULL;
	bool ok;

	if (c->bad || n > ORACLE_MAX_BATCH)
		return false;
	buf_u32(out, seq);
	buf_u32(out, n);
	MemoryContextReset(value_cxt);
	forget_timeout();
	enable_timeout_every(ticker, GetCurrentTimestamp(), TICK_MS);
	begin();
	ok = values(types, c, n, out, &disturbed);
	commit();
	disable_timeout(ticker, false);
	forget_timeout();
	MemoryContextSwitchTo(TopMemoryContext);
	if (disturbed) {
		out->len = at;
		at = frame_begin(out, 'N');
		buf_str(out, disturbed, strlen(disturbed));
	}
	frame_end(out, at);
	return ok;
}
