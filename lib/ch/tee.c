/* ws-emit --tee: the stream copied to a child a destination; see ws/tee.h.  Each child is a ws-emit
 * with positions of its own, and common.c keeps the consumer's at their lowest. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "ws/file.h"
#include "ws/log.h"
#include "ws/mem.h"
#include "ws/tee.h"
#include "ws/tool.h"

#define MAX_DESTINATIONS 32
#define MAX_ARGS         256
#define CHUNK            ((size_t)256 * 1024)

struct dest {
	char *name;
	struct ws_buf text; /* of its file, cut into words */
	char *argv[MAX_ARGS + 1];
	int argc, fd;
	pid_t pid; /* 0: ended */
	int status;
};

struct tee {
	const struct ws_tee_opts *o;
	struct dest dests[MAX_DESTINATIONS];
	int n;
	bool stopping;
};

/* ---- what they are ---- */

static int
add_arg(struct dest *d, char *arg, struct ws_err *err)
{
	if (d->argc == MAX_ARGS)
		return ws_err_usage(err, "destination %s: too many options", d->name);
	d->argv[d->argc++] = arg;
	return 0;
}

/* "NAME=VALUE" or "NAME" becomes an option; what is the same for all is not theirs to say. */
static int
add_line(struct dest *d, const char *line, struct ws_err *err)
{
	static const char *const ours[] = {"state", "consumer", "tee", "load", "no-loop", "metrics"};
	size_t n = strcspn(line, "=");

	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (strlen(ours[i]) == n && !strncmp(line, ours[i], n))
			return ws_err_usage(err, "destination %s: %s is no option of a single one", d->name,
								ours[i]);
	return add_arg(d, ws_asprintf("--%s", line), err);
}

static int
read_dest(struct tee *t, struct dest *d, struct ws_err *err)
{
	const struct ws_tee_opts *o = t->o;
	char *path = ws_asprintf("%s/%s", o->dir, d->name), *next;
	int rc = ws_file_read(path, 65536, &d->text, err);
	bool routes = false;

	if (rc == 0)
		rc = ws_err_usage(err, "%s: no such file", path);
	free(path);
	if (rc < 0)
		return -1;
	add_arg(d, ws_strdup("ws-emit"), err);
	add_arg(d, ws_asprintf("--state=%s", o->state), err);
	add_arg(d, ws_asprintf("--consumer=%s", o->consumer), err);
	for (char *line = ws_buf_cstr(&d->text); line; line = next) {
		if ((next = strchr(line, '\n')))
			*next++ = 0;
		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		routes |= !strncmp(line, "routes=", 7);
		if (add_line(d, line, err) != 0)
			return -1;
	}
	if (o->routes && !routes && add_arg(d, ws_asprintf("--routes=%s", o->routes), err) != 0)
		return -1;
	if (o->metrics && add_arg(d, ws_asprintf("--metrics=%s.%s", o->metrics, d->name), err) != 0)
		return -1;
	if (o->load && add_arg(d, ws_strdup("--load"), err) != 0)
		return -1;
	return o->no_loop ? add_arg(d, ws_strdup("--no-loop"), err) : 0;
}

static int
visible(const struct dirent *f)
{
	size_t n = strlen(f->d_name);

	return f->d_name[0] != '.' && f->d_name[n - 1] != '~';
}

static int
read_all(struct tee *t, struct ws_err *err)
{
	struct dirent **files;
	int n = scandir(t->o->dir, &files, visible, alphasort), rc = 0;

	if (n < 0)
		return ws_err_usage(err, "--tee %s: %s", t->o->dir, strerror(errno));
	if (n == 0 || n > MAX_DESTINATIONS)
		rc = ws_err_usage(err, "--tee %s: between 1 and %d destinations", t->o->dir,
						  MAX_DESTINATIONS);
	for (int i = 0; i < n; i++) {
		const char *name = files[i]->d_name;

		if (rc == 0 && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
									"_-") != strlen(name))
			rc = ws_err_usage(err, "--tee: a destination's name has letters, digits, _ and -: %s",
							  name);
		if (rc == 0) {
			struct dest *d = &t->dests[t->n++];

			d->name = ws_strdup(name);
			d->fd = -1;
			rc = read_dest(t, d, err);
		}
		free(files[i]);
	}
	free(files);
	return rc;
}

/* ---- their processes ---- */

static int
spawn(struct tee *t, struct dest *d, struct ws_err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0)
		return ws_err_sys(err, "cannot make a pipe");
	d->pid = fork();
	if (d->pid == 0) {
		struct ws_buf env = {0};

		ws_buf_printf(&env, "%s.%s %s", t->o->consumer, d->name, t->o->consumer);
		for (int i = 0; i < t->n; i++)
			ws_buf_printf(&env, " %s.%s", t->o->consumer, t->dests[i].name);
		if (dup2(p[0], STDIN_FILENO) < 0 || setenv(WS_TEE_ENV, ws_buf_cstr(&env), 1) != 0)
			_exit(1);
		execv("/proc/self/exe", d->argv);
		_exit(127);
	}
	close(p[0]);
	d->fd = p[1];
	return d->pid < 0 ? ws_err_sys(err, "cannot start a process") : 0;
}

static void
signal_all(struct tee *t, int sig)
{
	for (int i = 0; i < t->n; i++)
		if (t->dests[i].pid > 0)
			kill(t->dests[i].pid, sig);
}

static void
pass_signals(struct tee *t)
{
	if (ws_tool_take_hup())
		signal_all(t, SIGHUP);
	if (ws_tool_stopping() && !t->stopping) {
		t->stopping = true;
		signal_all(t, SIGTERM);
	}
}

/* One takes no more: the others do not go on without it. */
static void
lost(struct tee *t, struct dest *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	if (!t->stopping) {
		t->stopping = true;
		signal_all(t, SIGTERM);
	}
}

static void
give(struct tee *t, struct dest *d, const uint8_t *p, size_t n)
{
	while (n && d->fd >= 0) {
		ssize_t k = write(d->fd, p, n);

		if (k > 0) {
			p += k;
			n -= (size_t)k;
		} else if (errno == EINTR) {
			pass_signals(t);
		} else {
			lost(t, d);
		}
	}
}

static bool
any_open(const struct tee *t)
{
	for (int i = 0; i < t->n; i++)
		if (t->dests[i].fd >= 0)
			return true;
	return false;
}

/* Until the input ends or nobody takes it any more. */
static int
copy(struct tee *t, int fd, struct ws_err *err)
{
	uint8_t *chunk = ws_malloc(CHUNK);
	int rc = 0;

	while (any_open(t)) {
		struct pollfd p[MAX_DESTINATIONS + 1] = {{fd, POLLIN, 0}};

		for (int i = 0; i < t->n; i++)
			p[i + 1] = (struct pollfd){t->dests[i].fd, 0, 0};
		int got = poll(p, (nfds_t)t->n + 1, 1000);

		pass_signals(t);
		for (int i = 0; i < t->n && got > 0; i++)
			if (p[i + 1].revents & (POLLERR | POLLHUP) && t->dests[i].fd >= 0)
				lost(t, &t->dests[i]);
		if (got <= 0 || !p[0].revents)
			continue;
		ssize_t n = read(fd, chunk, CHUNK);

		if (n == 0)
			break;
		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			rc = ws_err_sys(err, "cannot read the change stream");
			break;
		}
		for (int i = 0; i < t->n && n > 0; i++)
			give(t, &t->dests[i], chunk, (size_t)n);
	}
	free(chunk);
	return rc;
}

static int
gather(struct tee *t, struct ws_err *err)
{
	static const int worst_first[] = {WS_EOPERATOR, WS_EUSAGE, WS_ETEMP};

	for (int i = 0; i < t->n; i++) {
		struct dest *d = &t->dests[i];
		int st = 0;

		if (d->fd >= 0)
			close(d->fd);
		while (d->pid > 0 && waitpid(d->pid, &st, 0) < 0 && errno == EINTR)
			pass_signals(t);
		d->pid = 0;
		d->status = WIFEXITED(st) ? WEXITSTATUS(st) : WS_ETEMP;
	}
	for (int w = 0; w < 3; w++)
		for (int i = 0; i < t->n; i++) {
			struct dest *d = &t->dests[i];

			if (d->status != worst_first[w])
				continue;
			if (d->status == WS_EOPERATOR)
				return ws_err_op(err, "destination_stopped",
								 "destination %s needs an operator, see above", d->name);
			return d->status == WS_EUSAGE
					   ? ws_err_usage(err, "destination %s: its options are not right", d->name)
					   : ws_err_temp(err, "destination %s ended", d->name);
		}
	return 0;
}

int
ws_tee_run(const struct ws_tee_opts *o, int fd, struct ws_err *err)
{
	struct tee t = {.o = o};
	char *dir = ws_asprintf("%s/consumer/%s", o->state, o->consumer);
	char *path = ws_asprintf("%s/lock", dir);
	int lock = -1, rc = read_all(&t, err);

	if (rc == 0 && (ws_mkdir_p(dir, 0700, err) != 0 || (lock = ws_lock_file(path, err)) < 0))
		rc = -1;
	for (int i = 0; i < t.n && rc == 0; i++)
		rc = spawn(&t, &t.dests[i], err);
	if (rc == 0)
		rc = copy(&t, fd, err);
	struct ws_err theirs;

	if (gather(&t, &theirs) != 0 && rc == 0) {
		*err = theirs;
		rc = -1;
	}
	for (int i = 0; i < t.n; i++) {
		for (int k = 0; k < t.dests[i].argc; k++)
			free(t.dests[i].argv[k]);
		free(t.dests[i].name);
		ws_buf_free(&t.dests[i].text);
	}
	if (lock >= 0)
		close(lock);
	free(dir);
	free(path);
	return rc;
}
