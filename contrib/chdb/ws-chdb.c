/*
 * ws-chdb: a ClickHouse server out of libchdb.so, on loopback, in the foreground.
 *
 * libchdb is clickhouse-local as a library, and SYSTEM START LISTEN makes it serve HTTP and
 * the native protocol for as long as the query that follows runs.  That query reads a fifo
 * that nobody writes: closing the fifo's write end ends it, and with it the server, in order.
 *
 * Two processes: the child runs the library, which installs signal handlers and threads of its
 * own; the parent holds the fifo, waits for the server to answer, says so, and stops it.
 * The child dies with the parent, so that killing the parent leaves nothing behind.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_TEMPORARY = 1, EXIT_USAGE = 2 };

struct options {
	const char *dir;
	const char *config;
	const char *library;
	int http_port;
	int tcp_port;
	int timeout; /* seconds to become ready, and to stop */
	char **extra;
	int nextra;
};

struct server {
	char dir[PATH_MAX]; /* absolute */
	int lock;
	int fifo; /* write end; closing it stops the server */
	int http_port;
	int tcp_port;
	pid_t pid;
};

static volatile sig_atomic_t stop_signal;

static void
on_signal(int sig)
{
	stop_signal = sig;
}

static void
complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("ws-chdb: error: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

static void
path_join(char *out, size_t size, const char *dir, const char *name)
{
	if ((size_t)snprintf(out, size, "%s/%s", dir, name) >= size) {
		complain("path too long: %s/%s", dir, name);
		exit(EXIT_USAGE);
	}
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The newest libchdb.so in a cache folder of tests/rig; a complete one has a marker file. */
static const char *
library_in(const char *cache)
{
	static char found[PATH_MAX];
	char pattern[PATH_MAX];
	glob_t g;

	path_join(pattern, sizeof(pattern), cache, "chdb-*/.complete");
	found[0] = '\0';
	if (glob(pattern, 0, NULL, &g) == 0) {
		const char *last = g.gl_pathv[g.gl_pathc - 1];
		size_t len = strlen(last) - strlen(".complete");

		if (len + strlen("libchdb.so") < sizeof(found)) {
			memcpy(found, last, len);
			memcpy(found + len, "libchdb.so", sizeof("libchdb.so"));
		}
	}
	globfree(&g);
	return found[0] ? found : NULL;
}

/* Where the library is: option, environment, the caches, the linker's path. */
static const char *
library_find(const char *option)
{
	const char *env = getenv("WALSHADOW_LIBCHDB");
	const char *rig = getenv("WALSHADOW_RIG");
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	const char *found = NULL;
	char dir[PATH_MAX];

	if (option != NULL)
		return option;
	if (env != NULL && *env != '\0')
		return env;
	if (rig != NULL && *rig != '\0')
		found = library_in(rig);
	if (found == NULL)
		found = library_in("/var/cache/walshadow-rig");
	if (found == NULL && xdg != NULL && *xdg != '\0') {
		path_join(dir, sizeof(dir), xdg, "walshadow-rig");
		found = library_in(dir);
	} else if (found == NULL && home != NULL && *home != '\0') {
		path_join(dir, sizeof(dir), home, ".cache/walshadow-rig");
		found = library_in(dir);
	}
	return found != NULL ? found : "libchdb.so";
}

/*
 * Makes a socket address of the loopback port.
 */
static struct sockaddr_in
loopback(int port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sa;
}

/* Is this port free now?  Somebody can take it before the server does: then we try again. */
static int
port_free(int port)
{
	struct sockaddr_in sa = loopback(port);
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	rc = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	if (rc == 0)
		rc = listen(fd, 1);
	close(fd);
	return rc == 0;
}

/* A free port below the range that the kernel gives to outgoing connections. */
static int
port_choose(int other)
{
	for (int i = 0; i < 1000; i++) {
		int port = 20000 + (int)(random() % 12000);

		if (port != other && port_free(port))
			return port;
	}
	complain("no free port between 20000 and 31999");
	exit(EXIT_TEMPORARY);
}

/* Is the HTTP interface answering "Ok." to /ping? */
static int
ping(int port)
{
	static const char request[] = "GET /ping HTTP/1.0\r\n\r\n";
	struct sockaddr_in sa = loopback(port);
	struct timeval limit = {.tv_sec = 1};
	char reply[512];
	size_t len = 0;
	ssize_t n = -1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	    send(fd, request, strlen(request), MSG_NOSIGNAL) > 0) {
		while (len < sizeof(reply) - 1 &&
		       (n = recv(fd, reply + len, sizeof(reply) - 1 - len, 0)) > 0)
			len += (size_t)n;
	}
	close(fd);
	reply[len] = '\0';
	return strncmp(reply, "HTTP/1.", 7) == 0 && strstr(reply, "Ok.") != NULL;
}

/* Is something listening on this port? */
static int
answers(int port)
{
	struct sockaddr_in sa = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&sa, sizeof(sa));

	if (fd >= 0)
		close(fd);
	return rc == 0;
}

/*
 * Makes DIR, takes its lock and opens the fifo.  The lock is inherited by the child: it is free
 * again only when both are gone, which can be a moment after the parent was killed.
 */
static void
prepare(struct server *s, const struct options *o)
{
	char path[PATH_MAX];
	double limit = now() + o->timeout;

	if (mkdir(o->dir, 0700) < 0 && errno != EEXIST) {
		complain("cannot create %s: %s", o->dir, strerror(errno));
		exit(EXIT_USAGE);
	}
	if (realpath(o->dir, s->dir) == NULL) {
		complain("%s: %s", o->dir, strerror(errno));
		exit(EXIT_USAGE);
	}
	if (strchr(s->dir, '\'') != NULL || strchr(s->dir, '\\') != NULL) {
		complain("%s: no quotes or backslashes, please", s->dir);
		exit(EXIT_USAGE);
	}
	path_join(path, sizeof(path), s->dir, "lock");
	s->lock = open(path, O_RDWR | O_CREAT, 0600);
	if (s->lock < 0) {
		complain("cannot open %s: %s", path, strerror(errno));
		exit(EXIT_USAGE);
	}
	while (flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || now() > limit) {
			complain("%s is in use by another ws-chdb", s->dir);
			exit(EXIT_TEMPORARY);
		}
		usleep(20000);
	}
	path_join(path, sizeof(path), s->dir, "port");
	unlink(path);
	path_join(path, sizeof(path), s->dir, "fifo");
	unlink(path);
	if (mkfifo(path, 0600) < 0 || (s->fifo = open(path, O_RDWR | O_CLOEXEC)) < 0) {
		complain("cannot make %s: %s", path, strerror(errno));
		exit(EXIT_TEMPORARY);
	}
}

/* The child: the library as a server.  Does not return. */
static void
serve(const struct server *s, const struct options *o, const char *library)
{
	char path[PATH_MAX], files[PATH_MAX], http[16], tcp[16], query[PATH_MAX + 256];
	void *(*run)(int, char **) = NULL;
	const char *(*error_of)(void *) = NULL;
	const char *error;
	void *result;
	void *lib;
	char **argv = calloc((size_t)o->nextra + 16, sizeof(*argv));
	int n = 0;
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1 || argv == NULL)
		_exit(EXIT_TEMPORARY);
	/* Ctrl-C reaches the whole foreground group: only the parent acts on it. */
	signal(SIGINT, SIG_IGN);
	close(s->fifo);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	lib = dlopen(library, RTLD_NOW);
	if (lib == NULL) {
		complain("%s (see -L)", dlerror());
		_exit(EXIT_USAGE);
	}
	*(void **)&run = dlsym(lib, "chdb_query_cmdline");
	if (run == NULL) {
		complain("%s is no libchdb 26.7 or later: it has no chdb_query_cmdline", library);
		_exit(EXIT_USAGE);
	}
	path_join(path, sizeof(path), s->dir, "data");
	/* In database "default" a table that does not exist is looked for as a file. */
	path_join(files, sizeof(files), s->dir, "files");
	if ((mkdir(files, 0700) < 0 && errno != EEXIST) || chdir(files) < 0) {
		complain("%s: %s", files, strerror(errno));
		_exit(EXIT_USAGE);
	}
	snprintf(http, sizeof(http), "%d", s->http_port);
	snprintf(tcp, sizeof(tcp), "%d", s->tcp_port);
	snprintf(query, sizeof(query),
	         "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP;"
	         " SELECT count() FROM file('%s/fifo', 'LineAsString', 'line String')",
	         s->dir);
	argv[n++] = "clickhouse-local";
	argv[n++] = "--path";
	argv[n++] = path;
	argv[n++] = "--listen_host";
	argv[n++] = "127.0.0.1";
	argv[n++] = "--http_port";
	argv[n++] = http;
	argv[n++] = "--tcp_port";
	argv[n++] = tcp;
	if (o->config != NULL) {
		argv[n++] = "--config-file";
		argv[n++] = (char *)o->config;
	}
	for (int i = 0; i < o->nextra; i++)
		argv[n++] = o->extra[i];
	argv[n++] = "--query";
	argv[n++] = query;
	result = run(n, argv);
	*(void **)&error_of = dlsym(lib, "chdb_result_error");
	error = result != NULL && error_of != NULL ? error_of(result) : NULL;
	if (error != NULL)
		complain("%s", error);
	_exit(error != NULL ? EXIT_TEMPORARY : EXIT_OK);
}

static int
child_gone(struct server *s, int *status)
{
	pid_t rc;

	if (s->pid == 0)
		return 1;
	rc = waitpid(s->pid, status, WNOHANG);
	if (rc == s->pid)
		s->pid = 0;
	return s->pid == 0;
}

/* Writes DIR/port, whole or not at all: "HTTP TCP". */
static int
publish(const struct server *s)
{
	char path[PATH_MAX], temp[PATH_MAX];
	FILE *f;

	path_join(path, sizeof(path), s->dir, "port");
	path_join(temp, sizeof(temp), s->dir, "port.new");
	f = fopen(temp, "w");
	if (f == NULL || fprintf(f, "%d %d\n", s->http_port, s->tcp_port) < 0 || fclose(f) != 0 ||
	    rename(temp, path) < 0) {
		complain("cannot write %s: %s", path, strerror(errno));
		return -1;
	}
	printf("ready http=127.0.0.1:%d tcp=127.0.0.1:%d\n", s->http_port, s->tcp_port);
	fflush(stdout);
	return 0;
}

/*
 * Ends the server: closes the fifo, and kills it when that does not help in time.  A server that
 * has not come to its last query yet would open the fifo only later and wait for a writer, so
 * the fifo is opened and closed again until it is gone.
 */
static int
stop(struct server *s, int timeout)
{
	double limit = now() + timeout;
	char path[PATH_MAX];
	int status = 0;
	int fd;

	path_join(path, sizeof(path), s->dir, "port");
	unlink(path);
	path_join(path, sizeof(path), s->dir, "fifo");
	close(s->fifo);
	while (!child_gone(s, &status)) {
		if (now() > limit) {
			complain("the server did not stop within %d s: killed", timeout);
			kill(s->pid, SIGKILL);
			waitpid(s->pid, &status, 0);
			s->pid = 0;
			return EXIT_TEMPORARY;
		}
		usleep(10000);
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
	}
	return EXIT_OK;
}

/* Starts the child and waits until it answers: 1 ready, 0 told to stop, -1 gone. */
static int
start(struct server *s, const struct options *o, const char *library, int *status)
{
	double limit = now() + o->timeout;

	s->pid = fork();
	if (s->pid < 0) {
		complain("fork: %s", strerror(errno));
		exit(EXIT_TEMPORARY);
	}
	if (s->pid == 0)
		serve(s, o, library);
	while (!stop_signal) {
		if (child_gone(s, status))
			return -1;
		if (ping(s->http_port) && answers(s->tcp_port))
			return child_gone(s, status) ? -1 : 1;
		if (now() > limit) {
			complain("the server was not ready within %d s", o->timeout);
			kill(s->pid, SIGKILL);
			waitpid(s->pid, status, 0);
			s->pid = 0;
			*status = EXIT_TEMPORARY << 8;
			return -1;
		}
		usleep(10000);
	}
	return 0;
}

static int
died(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE)
		return EXIT_USAGE;
	if (WIFSIGNALED(status))
		complain("the server was ended by signal %d", WTERMSIG(status));
	else
		complain("the server ended by itself with status %d", WEXITSTATUS(status));
	return EXIT_TEMPORARY;
}

static int
run(const struct options *o)
{
	struct server s = {.fifo = -1};
	const char *library = library_find(o->library);
	int status = 0;
	int rc = -1;

	prepare(&s, o);
	/* A port that we chose can be taken before the server listens: then choose again. */
	for (int tries = 0; rc < 0 && tries < 3; tries++) {
		s.http_port = o->http_port != 0 ? o->http_port : port_choose(o->tcp_port);
		s.tcp_port = o->tcp_port != 0 ? o->tcp_port : port_choose(s.http_port);
		for (int i = 0; i < 2; i++) {
			int port = i == 0 ? s.http_port : s.tcp_port;

			if (!port_free(port)) {
				complain("port %d is in use", port);
				return EXIT_TEMPORARY;
			}
		}
		rc = start(&s, o, library, &status);
		if (rc < 0 && (WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_USAGE ||
		               (o->http_port != 0 && o->tcp_port != 0)))
			break;
	}
	if (rc < 0)
		return died(status);
	if (rc > 0 && publish(&s) < 0)
		return stop(&s, o->timeout), EXIT_TEMPORARY;
	while (!stop_signal) {
		if (child_gone(&s, &status)) {
			stop(&s, 0);
			return died(status);
		}
		/* Woken by any signal, SIGCHLD included; the limit covers one that came just before. */
		poll(NULL, 0, 200);
	}
	return stop(&s, o->timeout);
}

static void
usage(FILE *out)
{
	fputs("usage: ws-chdb [options] DIR [-- ARGUMENT...]\n"
	      "A ClickHouse server on loopback with its data in DIR, until it is told to stop.\n"
	      "\n"
	      "  -C, --config=FILE      configuration of ClickHouse, as of clickhouse-local\n"
	      "  -L, --library=FILE     libchdb.so (default: WALSHADOW_LIBCHDB, the rig's cache)\n"
	      "  -p, --http-port=PORT   HTTP (default 8123; 0 chooses a free one)\n"
	      "  -t, --tcp-port=PORT    native protocol (default 9000; 0 chooses a free one)\n"
	      "      --timeout=SECONDS  to become ready, and to stop (default 60)\n"
	      "      --help             show this help\n"
	      "      --version          show the version\n"
	      "\n"
	      "When the server answers, a line is printed and the ports are in DIR/port.\n",
	      out);
}

static int
number(const char *text, int min, int max, const char *what)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || n < min || n > max) {
		complain("%s: not a number from %d to %d: \"%s\"", what, min, max, text);
		exit(EXIT_USAGE);
	}
	return (int)n;
}

static const char *
full_path(const char *path)
{
	char *full = realpath(path, NULL);

	if (full == NULL) {
		complain("%s: %s", path, strerror(errno));
		exit(EXIT_USAGE);
	}
	return full;
}

static struct options
parse(int argc, char **argv)
{
	static const struct option table[] = {
	    {"config", required_argument, NULL, 'C'},    {"library", required_argument, NULL, 'L'},
	    {"http-port", required_argument, NULL, 'p'}, {"tcp-port", required_argument, NULL, 't'},
	    {"timeout", required_argument, NULL, 'T'},   {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'},         {NULL, 0, NULL, 0},
	};
	struct options o = {.http_port = 8123, .tcp_port = 9000, .timeout = 60};
	int c;

	while ((c = getopt_long(argc, argv, "+C:L:p:t:", table, NULL)) != -1) {
		switch (c) {
		case 'C':
			o.config = optarg;
			break;
		case 'L':
			o.library = optarg;
			break;
		case 'p':
			o.http_port = number(optarg, 0, 65535, "--http-port");
			break;
		case 't':
			o.tcp_port = number(optarg, 0, 65535, "--tcp-port");
			break;
		case 'T':
			o.timeout = number(optarg, 1, 3600, "--timeout");
			break;
		case 'h':
			usage(stdout);
			exit(EXIT_OK);
		case 'V':
			printf("ws-chdb (walshadow) %s\n", WS_VERSION);
			exit(EXIT_OK);
		default:
			usage(stderr);
			exit(EXIT_USAGE);
		}
	}
	if (optind >= argc) {
		complain("which directory?");
		usage(stderr);
		exit(EXIT_USAGE);
	}
	o.dir = argv[optind++];
	if (optind < argc && strcmp(argv[optind], "--") != 0) {
		complain("too many arguments: \"%s\"", argv[optind]);
		exit(EXIT_USAGE);
	}
	if (optind < argc) {
		o.extra = argv + optind + 1;
		o.nextra = argc - optind - 1;
	}
	/* Whole paths: the server's working directory is another. */
	if (o.config != NULL)
		o.config = full_path(o.config);
	if (o.library != NULL)
		o.library = full_path(o.library);
	return o;
}

int
main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct options o = parse(argc, argv);
	struct timespec ts;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	clock_gettime(CLOCK_REALTIME, &ts);
	srandom((unsigned)ts.tv_nsec ^ (unsigned)getpid());
	return run(&o);
}
