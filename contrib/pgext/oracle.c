/* walshadow's oracle: text of on-disk values by their own output functions, for ws-decode.
 *
 * Preloaded into the shadow.  A launcher listens on DIRECTORY/socket; who names a database there is
 * told the socket of that database's worker, which is started when there is none. */
#include "oracle.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

#define POLL_MS        1000
#define ASK_TIMEOUT_MS 5000
#define START_WAIT_MS  10000

char *oracle_directory;
int oracle_value_timeout;
int oracle_memory_limit;

/* Workers load the module by the path that it was loaded from; where that is too long (16 has 95
 * bytes), by its name, which dynamic_library_path then has to find. */
static void
set_library(BackgroundWorker *w)
{
	Dl_info info;

	if (!dladdr((void *)_PG_init, &info) || strlen(info.dli_fname) >= sizeof w->bgw_library_name)
		info.dli_fname = "walshadow_oracle";
	snprintf(w->bgw_library_name, sizeof w->bgw_library_name, "%s", info.dli_fname);
}

void
_PG_init(void)
{
	BackgroundWorker w = {0};

	if (!process_shared_preload_libraries_in_progress)
		return;
	DefineCustomStringVariable("walshadow_oracle.directory",
							   "Where the oracle's sockets are; empty: no oracle.", NULL,
							   &oracle_directory, "", PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("walshadow_oracle.value_timeout", "Longest time for one value.", NULL,
							&oracle_value_timeout, 60, 1, 86400, PGC_POSTMASTER, GUC_UNIT_S, NULL,
							NULL, NULL);
	DefineCustomIntVariable("walshadow_oracle.memory_limit", "Memory of a worker.", NULL,
							&oracle_memory_limit, 4096, 64, 1024 * 1024, PGC_POSTMASTER,
							GUC_UNIT_MB, NULL, NULL, NULL);
	MarkGUCPrefixReserved("walshadow_oracle");
	if (!*oracle_directory)
		return;
	snprintf(w.bgw_name, BGW_MAXLEN, "walshadow oracle launcher");
	snprintf(w.bgw_type, BGW_MAXLEN, "walshadow oracle launcher");
	set_library(&w);
	snprintf(w.bgw_function_name, BGW_MAXLEN, "oracle_launcher_main");
	w.bgw_flags = BGWORKER_SHMEM_ACCESS;
	/* Also on a standby, as soon as it takes queries. */
	w.bgw_start_time = BgWorkerStart_ConsistentState;
	w.bgw_restart_time = 1;
	RegisterBackgroundWorker(&w);
}

/* ---- the directory ---- */

/* It must be nobody else's; one oracle has it at a time. */
static void
claim_directory(void)
{
	char path[MAXPGPATH];
	struct stat st;
	struct dirent *e;
	DIR *d;
	int fd;

	if (mkdir(oracle_directory, 0700) != 0 && errno != EEXIST)
		ereport(FATAL, (errcode_for_file_access(),
						errmsg("walshadow oracle: cannot make \"%s\": %m", oracle_directory)));
	if (lstat(oracle_directory, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		st.st_mode & 077)
		ereport(FATAL,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("walshadow oracle: \"%s\" must be a directory of this user with mode 0700",
						oracle_directory)));
	socket_path(path, "lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("walshadow oracle: \"%s\" is of another server: %m", oracle_directory)));
	/* Of workers that were killed. */
	d = opendir(oracle_directory);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "db.", 3)) {
			socket_path(path, e->d_name);
			(void)unlink(path);
		}
	if (d)
		closedir(d);
}

/* ---- workers ---- */

typedef struct Worker {
	Oid db;
	BackgroundWorkerHandle *handle;
} Worker;

static Worker *workers;
static int nworkers;

static Worker *
worker_of(Oid db)
{
	MemoryContext old;

	for (int i = 0; i < nworkers; i++)
		if (workers[i].db == db)
			return &workers[i];
	old = MemoryContextSwitchTo(TopMemoryContext);
	workers =
		workers ? repalloc(workers, sizeof *workers * (nworkers + 1)) : palloc(sizeof *workers);
	MemoryContextSwitchTo(old);
	workers[nworkers] = (Worker){db, NULL};
	return &workers[nworkers++];
}

static bool
worker_start(Worker *k)
{
	BackgroundWorker w = {0};
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	bool ok;

	if (k->handle)
		pfree(k->handle);
	k->handle = NULL;
	snprintf(w.bgw_name, BGW_MAXLEN, "walshadow oracle for database %u", k->db);
	snprintf(w.bgw_type, BGW_MAXLEN, "walshadow oracle");
	set_library(&w);
	snprintf(w.bgw_function_name, BGW_MAXLEN, "oracle_worker_main");
	w.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	w.bgw_start_time = BgWorkerStart_ConsistentState;
	w.bgw_restart_time = BGW_NEVER_RESTART;
	w.bgw_main_arg = ObjectIdGetDatum(k->db);
	w.bgw_notify_pid = MyProcPid;
	ok = RegisterDynamicBackgroundWorker(&w, &k->handle);
	MemoryContextSwitchTo(old);
	return ok;
}

/* NULL: its socket is there; else why not. */
static const char *
worker_ensure(Worker *k, const char *name)
{
	char path[MAXPGPATH];
	pid_t pid;

	socket_path(path, name);
	if (!k->handle || GetBackgroundWorkerPid(k->handle, &pid) == BGWH_STOPPED) {
		(void)unlink(path);
		if (!worker_start(k))
			return "no background worker is free (max_worker_processes)";
	}
	for (int waited = 0; waited < START_WAIT_MS; waited += 10) {
		if (access(path, F_OK) == 0)
			return NULL;
		if (GetBackgroundWorkerPid(k->handle, &pid) == BGWH_STOPPED)
			return "the database's worker ended at its start; see the server's log";
		(void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return "the database's worker does not come up";
}

/* ---- the launcher ---- */

/* The one frame that is taken: D and an oid. */
static bool
read_ask(int fd, Oid *db)
{
	char b[9];
	size_t have = 0;
	uint32 n;

	while (have < sizeof b) {
		struct pollfd w = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (poll(&w, 1, ASK_TIMEOUT_MS) <= 0)
			return false;
		got = recv(fd, b + have, sizeof b - have, 0);
		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	memcpy(&n, b, 4);
	memcpy(db, b + 5, 4);
	return n == 5 && b[4] == 'D';
}

static void
answer(int lfd)
{
	int fd = socket_accept(lfd);
	Bytes b = {0};
	Oid db;

	if (fd < 0)
		return;
	frame_hello(&b, InvalidOid, "");
	if (socket_send(fd, b.data, b.len) && read_ask(fd, &db)) {
		char name[32];
		const char *why;
		size_t at;

		snprintf(name, sizeof name, "db.%u", db);
		why = worker_ensure(worker_of(db), name);
		b.len = 0;
		at = frame_begin(&b, why ? 'N' : 'G');
		buf_str(&b, why ? why : name, strlen(why ? why : name));
		frame_end(&b, at);
		(void)socket_send(fd, b.data, b.len);
	}
	buf_free(&b);
	close(fd);
}

void
oracle_launcher_main(Datum arg)
{
	int lfd;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	claim_directory();
	lfd = socket_listen("socket");
	ereport(LOG, (errmsg("walshadow oracle: listening in \"%s\"", oracle_directory)));
	while (!ShutdownRequestPending) {
		struct pollfd w[2] = {
			{.fd = lfd, .events = POLLIN},
			{.fd = postmaster_alive_fds[POSTMASTER_FD_WATCH], .events = POLLIN},
		};
		int rc = poll(w, 2, POLL_MS);

		CHECK_FOR_INTERRUPTS();
		ResetLatch(MyLatch);
		if (rc <= 0)
			continue;
		if (w[1].revents && !PostmasterIsAlive())
			proc_exit(1);
		if (w[0].revents)
			answer(lfd);
	}
	proc_exit(0);
}
