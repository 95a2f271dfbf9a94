/* Running a restore command; see restorecmd.h.
 * PostgreSQL: access/transam/xlogarchive.c, RestoreArchivedFile; common/archive.c, BuildRestoreCommand. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "restorecmd.h"
#include "ws/tool.h"

#define ABSENT_MAX     125  /* the highest exit status that says so */
#define NOT_EXECUTABLE 126  /* the shell's */
#define NOT_FOUND      127
#define IDLE_MS        1000
#define NO_PIDFD_MS    10
#define TERM_US        2000000 /* then it is killed for good */

int
restorecmd_expand(const char *command, const char *name, const char *path, struct ws_buf *out,
				  struct ws_err *err)
{
	for (const char *p = command; *p; p++) {
		if (*p != '%') {
			ws_buf_putc(out, (uint8_t)*p);
			continue;
		}
		switch (*++p) {
		case 'f':
			ws_buf_puts(out, name);
			break;
		case 'p':
			ws_buf_puts(out, path);
			break;
		case '%':
			ws_buf_putc(out, '%');
			break;
		case 0:
			return ws_err_usage(err, "the restore command ends in a single %%");
		default:
			return ws_err_usage(err, "the restore command has %%%c; %%f, %%p and %%%% are known", *p);
		}
	}
	return 0;
}

int
restorecmd_judge(int status, const char *name, struct ws_err *err)
{
	if (WIFSIGNALED(status))
		return ws_err_temp(err, "the restore command was ended by signal %d, asked for %s", WTERMSIG(status), name);
	int code = WEXITSTATUS(status);

	if (code <= ABSENT_MAX)
		return code == 0;
	if (code == NOT_EXECUTABLE || code == NOT_FOUND)
		return ws_err_usage(err, "the restore command cannot be run, asked for %s: exit status %d", name, code);
	return ws_err_temp(err, "the restore command failed, asked for %s: exit status %d", name, code);
}

/* In the child, between fork and exec of a process with threads: only what is safe there. */
static void
become(const char *command, const char *dir)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	int in = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
		signal(caught[i], SIG_DFL);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || chdir(dir) != 0)
		_exit(NOT_EXECUTABLE);
	if (in > STDERR_FILENO)
		close(in);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(NOT_FOUND);
}

/* Waits up to IDLE_MS for the end of pid, or for a signal to us.  1 it ended, 0 not, -1. */
static int
wait_end(pid_t pid, int pidfd, int *status, struct ws_err *err)
{
	struct pollfd p[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = ws_tool_signal_fd(), .events = POLLIN}};
	pid_t rc = waitpid(pid, status, WNOHANG);

	if (rc == 0) {
		poll(p, 2, pidfd < 0 ? NO_PIDFD_MS : IDLE_MS);
		rc = waitpid(pid, status, WNOHANG);
	}
	if (rc < 0)
		return ws_err_sys(err, "cannot wait for the restore command");
	return rc == pid;
}

/* Is it a zombie?  As long as it is, its number, and so the group's, is nobody else's. */
static bool
has_ended(pid_t pid)
{
	siginfo_t si = {0};

	return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) != 0 || si.si_pid == pid;
}

/* What it has started goes with it. */
static int
end_group(pid_t pid, struct ws_err *err)
{
	uint64_t until = ws_now_us() + TERM_US;
	int status;

	kill(-pid, SIGTERM);
	while (!has_ended(pid) && ws_now_us() < until)
		poll(NULL, 0, NO_PIDFD_MS);
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return ws_err_temp(err, "interrupted");
}

int
restorecmd_run(const char *command, const char *dir, const char *name, const char *path,
			   void (*idle)(void *arg), void *arg, struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = restorecmd_expand(command, name, path, &b, err), status;

	if (rc != 0) {
		ws_buf_free(&b);
		return -1;
	}
	const char *text = ws_buf_cstr(&b);
	pid_t pid = fork();

	if (pid == 0)
		become(text, dir);
	ws_buf_free(&b);
	if (pid < 0)
		return ws_err_sys(err, "cannot run the restore command");
	setpgid(pid, pid); /* also here: it may be told to stop before it has done so itself */
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	while ((rc = wait_end(pid, pidfd, &status, err)) == 0 && !ws_tool_stopping()) {
		ws_tool_take_hup();
		idle(arg);
	}
	if (rc == 0)
		rc = end_group(pid, err);
	else if (rc == 1)
		rc = restorecmd_judge(status, name, err);
	if (pidfd >= 0)
		close(pidfd);
	return rc;
}
