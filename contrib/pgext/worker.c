/* A worker: one database's values.  It serves its connections in turn, a request at a time, and
 * ends when nobody has been connected for a while. */
#include "oracle.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define IDLE_END_S      60
#define MAX_CONNECTIONS 64
#define POLL_MS         1000
#define READ_STEP       (256 * 1024)

typedef struct Conn {
	int fd;
	Bytes in;
	size_t taken; /* bytes of in that were dealt with */
	Types types;
} Conn;

static Conn *conns[MAX_CONNECTIONS];
static int nconns;
static char socket_name[32];

/* ---- settings ---- */

/* Text looks like this wherever it is made; see ws-pgext(7). */
static void
pin_settings(void)
{
	static const struct {
		const char *name, *value;
	} pins[] = {
		{"timezone", "UTC"},
		{"datestyle", "ISO, MDY"},
		{"intervalstyle", "postgres"},
		{"bytea_output", "hex"},
		{"extra_float_digits", "1"},
		{"xmlbinary", "base64"},
		{"lc_monetary", "C"},
		{"search_path", "pg_catalog"},
		{"statement_timeout", "0"},
		{"quote_all_identifiers", "off"},
		{"jit", "off"},
	};

	for (size_t i = 0; i < lengthof(pins); i++)
		SetConfigOption(pins[i].name, pins[i].value, PGC_SUSET, PGC_S_OVERRIDE);
}

/* Private memory from now on; malloc then fails, which is an error of one value. */
static void
limit_memory(void)
{
	unsigned long size, resident, shared, text, lib, data;
	FILE *f = fopen("/proc/self/statm", "r");
	struct rlimit r;

	if (f &&
		fscanf(f, "%lu %lu %lu %lu %lu %lu", &size, &resident, &shared, &text, &lib, &data) == 6 &&
		getrlimit(RLIMIT_DATA, &r) == 0) {
		rlim_t want = (rlim_t)data * (rlim_t)sysconf(_SC_PAGESIZE) +
					  (rlim_t)oracle_memory_limit * 1024 * 1024;

		if (r.rlim_max == RLIM_INFINITY || want < r.rlim_max)
			r.rlim_cur = want;
		(void)setrlimit(RLIMIT_DATA, &r);
	}
	if (f)
		fclose(f);
}

/* ---- connections ---- */

static void
conn_close(int i)
{
	Conn *k = conns[i];

	close(k->fd);
	buf_free(&k->in);
	MemoryContextDelete(k->types.cxt);
	pfree(k);
	conns[i] = conns[--nconns];
}

static bool
conn_say(Conn *k, char type, const char *text)
{
	Bytes b = {0};
	size_t at = frame_begin(&b, type);
	bool ok;

	buf_str(&b, text, strlen(text));
	frame_end(&b, at);
	ok = socket_send(k->fd, b.data, b.len);
	buf_free(&b);
	return ok;
}

static void
conn_open(int lfd)
{
	int fd = socket_accept(lfd);
	Bytes b = {0};
	Conn *k;

	if (fd < 0)
		return;
	if (nconns == MAX_CONNECTIONS) {
		close(fd);
		return;
	}
	k = MemoryContextAllocZero(TopMemoryContext, sizeof *k);
	k->fd = fd;
	k->types.cxt =
		AllocSetContextCreate(TopMemoryContext, "walshadow oracle types", ALLOCSET_DEFAULT_SIZES);
	conns[nconns++] = k;
	frame_hello(&b, MyDatabaseId, GetDatabaseEncodingName());
	if (!socket_send(fd, b.data, b.len))
		conn_close(nconns - 1);
	buf_free(&b);
}

/* T: the next type. */
static bool
define(Conn *k, Cursor *c)
{
	Types *t = &k->types;
	MemoryContext old = MemoryContextSwitchTo(t->cxt);
	uint32 id = cur_u32(c);
	Desc *n = node_read(c, 0);

	if (n && id == t->n && c->p == c->end && !c->bad) {
		if (t->n == t->cap) {
			t->cap = t->cap ? t->cap * 2 : 16;
			t->v = t->v ? repalloc(t->v, sizeof(Desc *) * t->cap) : palloc(sizeof(Desc *) * t->cap);
		}
		t->v[t->n++] = n;
		MemoryContextSwitchTo(old);
		return true;
	}
	MemoryContextSwitchTo(old);
	return false;
}

/* False: the connection is to be closed. */
static bool
serve(Conn *k, char type, const char *p, size_t n)
{
	Cursor c = {p, p + n, false};
	Bytes out = {0};
	bool ok = false;

	if (type == 'T') {
		ok = define(k, &c);
		return ok ? true : (conn_say(k, 'X', "malformed type description"), false);
	}
	if (type == 'V') {
		pgstat_report_activity(STATE_RUNNING, "rendering");
		ok = batch_run(&k->types, &c, &out);
		pgstat_report_activity(STATE_IDLE, NULL);
	}
	ok =
		ok ? socket_send(k->fd, out.data, out.len) : (conn_say(k, 'X', "malformed request"), false);
	buf_free(&out);
	return ok;
}

/* Whole frames that have come.  False: close. */
static bool
conn_frames(Conn *k)
{
	uint32 n;

	while (k->in.len - k->taken >= 5) {
		const char *p = k->in.data + k->taken;

		memcpy(&n, p, 4);
		if (n < 1 || n > ORACLE_MAX_FRAME)
			return conn_say(k, 'X', "malformed frame"), false;
		if (k->in.len - k->taken - 4 < n)
			break;
		k->taken += 4 + (size_t)n;
		if (!serve(k, p[4], p + 5, n - 1))
			return false;
	}
	if (k->taken == k->in.len) {
		k->in.len = k->taken = 0;
		/* What one large value needed is not kept. */
		if (k->in.cap > 64 * 1024 * 1024)
			buf_free(&k->in);
	} else if (k->taken) {
		memmove(k->in.data, k->in.data + k->taken, k->in.len - k->taken);
		k->in.len -= k->taken;
		k->taken = 0;
	}
	return true;
}

static bool
conn_read(Conn *k)
{
	size_t want = READ_STEP;
	ssize_t got;

	if (k->in.len - k->taken >= 4) {
		uint32 n;

		memcpy(&n, k->in.data + k->taken, 4);
		if (n <= ORACLE_MAX_FRAME && 4 + (size_t)n > k->in.len + want)
			want = 4 + (size_t)n - k->in.len;
	}
	/* Not all at once: a length that was only said costs nothing. */
	if (want > 16 * 1024 * 1024)
		want = 16 * 1024 * 1024;
	buf_reserve(&k->in, want);
	got = recv(k->fd, k->in.data + k->in.len, want, 0);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return false;
	k->in.len += (size_t)got;
	return conn_frames(k);
}

/* ---- the loop ---- */

static void
remove_socket(int code, Datum arg)
{
	char path[MAXPGPATH];

	socket_path(path, socket_name);
	(void)unlink(path);
}

static void
turn(int lfd)
{
	struct pollfd w[MAX_CONNECTIONS + 2];
	int n = nconns, rc;

	w[0] = (struct pollfd){.fd = lfd, .events = POLLIN};
	w[1] = (struct pollfd){.fd = postmaster_alive_fds[POSTMASTER_FD_WATCH], .events = POLLIN};
	for (int i = 0; i < n; i++)
		w[i + 2] = (struct pollfd){.fd = conns[i]->fd, .events = POLLIN};
	rc = poll(w, (nfds_t)n + 2, POLL_MS);
	CHECK_FOR_INTERRUPTS();
	if (rc <= 0)
		return;
	if (w[1].revents && !PostmasterIsAlive())
		proc_exit(1);
	/* From the last, since closing moves the last into the gap. */
	for (int i = n - 1; i >= 0; i--)
		if (w[i + 2].revents && !conn_read(conns[i]))
			conn_close(i);
	if (w[0].revents)
		conn_open(lfd);
}

void
oracle_worker_main(Datum arg)
{
	Oid db = DatumGetObjectId(arg);
	TimestampTz used;
	int lfd;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(db, InvalidOid, 0);
	pin_settings();
	batch_init();
	snprintf(socket_name, sizeof socket_name, "db.%u", db);
	lfd = socket_listen(socket_name);
	before_shmem_exit(remove_socket, (Datum)0);
	pgstat_report_appname("walshadow oracle");
	limit_memory();
	ereport(DEBUG1, (errmsg("walshadow oracle: serving database %u", db)));
	used = GetCurrentTimestamp();
	for (;;) {
		turn(lfd);
		if (nconns)
			used = GetCurrentTimestamp();
		else if (TimestampDifferenceExceeds(used, GetCurrentTimestamp(), IDLE_END_S * 1000))
			break;
	}
	proc_exit(0);
}
