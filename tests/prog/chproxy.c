/* chproxy: stands between ws-emit and ClickHouse, for tests, and stops at a chosen request.
 *
 *   chproxy [-p] -l PORT -u PORT DIR
 *
 * Requests go from the first loopback port to the second, one a connection.  DIR/rule, when it is
 * there, is one line `WHEN REGEX`; the first request whose body begins with something that the
 * extended regular expression finds uses it up (it becomes DIR/hit) and is held:
 *
 *   before   not forwarded until DIR/go is there; when its client goes first, never
 *   after    forwarded, its answer held until DIR/go is there
 *   late     not forwarded until DIR/go is there, and then also for a client that is gone
 *   lost     forwarded; instead of its answer the connection ends
 *
 * With -p it is an HTTP proxy: it takes requests for whole URLs, and CONNECT, whose tunnel goes
 * where the client says; DIR/asked has the first line of the last request.
 *
 * DIR/line has the first line of a held request; DIR/done is made when it has been dealt with. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ws/mem.h"

#define HEAD_MAX  65536
#define LOOKED_AT 4096

static const char *dir;
static bool proxy;

static void
die(const char *what)
{
	fprintf(stderr, "chproxy: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in
loopback(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static char *
path(const char *name)
{
	return ws_asprintf("%s/%s", dir, name);
}

static bool
there(const char *name)
{
	char *p = path(name);
	bool yes = access(p, F_OK) == 0;

	free(p);
	return yes;
}

static void
touch(const char *name)
{
	char *p = path(name);
	int fd = open(p, O_WRONLY | O_CREAT, 0600);

	if (fd >= 0)
		close(fd);
	free(p);
}

static bool
send_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* The whole request; *body is where its body begins. */
static bool
read_request(int fd, struct ws_buf *in, size_t *body)
{
	size_t want = SIZE_MAX;

	for (;;) {
		uint8_t chunk[65536];

		if (want == SIZE_MAX) {
			const uint8_t *end = in->len ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL;

			if (end) {
				char *head = ws_strndup((char *)in->data, (size_t)(end - in->data));
				const char *cl = strcasestr(head, "\ncontent-length:");

				*body = (size_t)(end - in->data) + 4;
				want = *body + (cl ? strtoul(cl + 16, NULL, 10) : 0);
				free(head);
			} else if (in->len > HEAD_MAX) {
				return false;
			}
		}
		if (want != SIZE_MAX && in->len >= want)
			return true;
		ssize_t n = recv(fd, chunk, sizeof chunk, 0);

		if (n <= 0)
			return false;
		ws_buf_put(in, chunk, (size_t)n);
	}
}

/* The first line of a request, into DIR/NAME. */
static char *
note_line(const struct ws_buf *in, const char *name)
{
	const uint8_t *eol = memmem(in->data, in->len, "\r\n", 2);
	char *line = ws_strndup((char *)in->data, (size_t)(eol - in->data)), *p = path(name);
	FILE *f = fopen(p, "w");

	if (f) {
		fprintf(f, "%s\n", line);
		fclose(f);
	}
	free(p);
	return line;
}

/* Takes the rule when it is for this request. */
static bool
take_rule(const struct ws_buf *in, size_t body, char *when, size_t room)
{
	char line[1024] = "", *rule = path("rule"), *hit = path("hit");
	FILE *f = fopen(rule, "r");
	bool mine = false;
	regex_t re;

	if (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		char *sp = strchr(line, ' ');

		if (sp && regcomp(&re, sp + 1, REG_EXTENDED | REG_NOSUB) == 0) {
			size_t n = in->len - body;
			char *text = ws_strndup((char *)in->data + body, n < LOOKED_AT ? n : LOOKED_AT);

			*sp = 0;
			snprintf(when, room, "%s", line);
			mine = regexec(&re, text, 0, NULL, 0) == 0;
			if (mine)
				free(note_line(in, "line"));
			mine = mine && rename(rule, hit) == 0;
			regfree(&re);
			free(text);
		}
	}
	if (f)
		fclose(f);
	free(rule);
	free(hit);
	return mine;
}

/* Until DIR/go is there: true; false when the client went before. */
static bool
hold(int client, bool care)
{
	while (!there("go")) {
		struct pollfd p = {client, POLLRDHUP, 0};

		if (poll(&p, care ? 1 : 0, 20) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR))
			return false;
	}
	return true;
}

/* Forwards the request with Connection: close, and reads the answer to its end. */
static bool
forward(int port, const struct ws_buf *in, struct ws_buf *answer)
{
	struct sockaddr_in a = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const uint8_t *eol = memmem(in->data, in->len, "\r\n", 2);
	static const char close_it[] = "\r\nConnection: close";
	size_t line = (size_t)(eol - in->data);
	uint8_t chunk[65536];
	ssize_t n = -1;

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
		send_all(fd, in->data, line) &&
		send_all(fd, (const uint8_t *)close_it, sizeof close_it - 1) &&
		send_all(fd, in->data + line, in->len - line))
		while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
			ws_buf_put(answer, chunk, (size_t)n);
	if (fd >= 0)
		close(fd);
	return n == 0 && answer->len;
}

/* "POST http://host:port/path" becomes "POST /path". */
static void
strip_url(struct ws_buf *in)
{
	uint8_t *sp = memchr(in->data, ' ', in->len);
	size_t at = sp ? (size_t)(sp - in->data) + 1 : in->len;

	if (in->len - at < 7 || memcmp(in->data + at, "http://", 7))
		return;
	uint8_t *slash = memchr(in->data + at + 7, '/', in->len - at - 7);
	size_t end = slash ? (size_t)(slash - in->data) : in->len;

	memmove(in->data + at, in->data + end, in->len - end);
	in->len -= end - at;
}

static void
copy_both(int a, int b)
{
	struct pollfd p[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
	uint8_t chunk[65536];

	while (poll(p, 2, -1) > 0)
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			ssize_t n = recv(p[i].fd, chunk, sizeof chunk, 0);

			if (n <= 0 || !send_all(p[1 - i].fd, chunk, (size_t)n))
				return;
		}
}

static void
tunnel(int client, const char *line)
{
	static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	const char *colon = strchr(line, ':');
	struct sockaddr_in a = loopback(colon ? atoi(colon + 1) : 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
		send_all(client, (const uint8_t *)ok, sizeof ok - 1))
		copy_both(client, fd);
}

/* As a proxy: notes what is asked for; true when it was a tunnel, which is over then. */
static bool
asked(int client, struct ws_buf *in)
{
	char *line = note_line(in, "asked");
	bool connects = !strncmp(line, "CONNECT ", 8);

	if (connects)
		tunnel(client, line);
	else
		strip_url(in);
	free(line);
	return connects;
}

static void
serve(int client, int port)
{
	struct ws_buf in = {0}, answer = {0};
	char when[32] = "";
	size_t body = 0;

	if (!read_request(client, &in, &body))
		return;
	size_t whole = in.len;

	if (proxy && asked(client, &in))
		return;
	body -= whole - in.len;
	bool held = take_rule(&in, body, when, sizeof when);
	bool on = true;

	if (held && (!strcmp(when, "before") || !strcmp(when, "late")))
		on = hold(client, *when == 'b');
	if (on)
		on = forward(port, &in, &answer);
	if (held && !strcmp(when, "after"))
		on = hold(client, true) && on;
	if (on && !(held && !strcmp(when, "lost")))
		send_all(client, answer.data, answer.len);
	if (held)
		touch("done");
}

int
main(int argc, char **argv)
{
	int opt, from = 0, to = 0, on = 1;

	while ((opt = getopt(argc, argv, "l:u:p")) != -1) {
		if (opt == 'l')
			from = atoi(optarg);
		else if (opt == 'u')
			to = atoi(optarg);
		else if (opt == 'p')
			proxy = true;
	}
	if (!from || !to || optind != argc - 1) {
		fprintf(stderr, "usage: chproxy [-p] -l PORT -u PORT DIR\n");
		return 2;
	}
	dir = argv[optind];
	signal(SIGCHLD, SIG_IGN);
	struct sockaddr_in a = loopback(from);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
		bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 64) != 0)
		die("cannot listen");
	touch("ready");
	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (c < 0)
			continue;
		pid_t parent = getpid();

		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(0);
			close(fd);
			serve(c, to);
			_exit(0);
		}
		close(c);
	}
}
