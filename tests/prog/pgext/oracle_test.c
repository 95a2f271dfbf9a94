/* Output functions for the oracle's test, of a type that is an int4 on disk: what they do depends
 * on the value. 1 an error   2 asleep without end, but cancellable   3 busy, never looking for
 * interrupts 4 a crash    5 memory without end   6 the session's end   anything else: NUMBER! */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(oracle_test_in);
PG_FUNCTION_INFO_V1(oracle_test_out);

extern PGDLLEXPORT Datum oracle_test_in(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum oracle_test_out(PG_FUNCTION_ARGS);

Datum
oracle_test_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(atoi(PG_GETARG_CSTRING(0)));
}

Datum
oracle_test_out(PG_FUNCTION_ARGS)
{
	int32 v = PG_GETARG_INT32(0);

	switch (v) {
	case 1:
		ereport(ERROR, (errmsg("this value has no text")));
	case 2:
		for (;;) {
			CHECK_FOR_INTERRUPTS();
			usleep(10000);
		}
	case 3:
		for (;;)
			usleep(10000);
	case 4:
		kill(getpid(), SIGKILL);
		pause();
		break;
	case 5:
		for (;;)
			(void)palloc(64 * 1024 * 1024);
	case 6:
		ereport(FATAL, (errmsg("this value ends the session")));
	}
	PG_RETURN_CSTRING(psprintf("%d!", v));
}
