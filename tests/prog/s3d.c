/* s3d: an object store for tests, as S3 has them, or a plain HTTP server with PUT.
 *
 *   s3d -l PORT [-k KEY:SECRET] [-t TOKEN] [-p PAGE] [-b AUTHORIZATION] DIR
 *
 * Objects are files below DIR/o: BUCKET/KEY; a folder DIR/o/BUCKET is a bucket.  With -k each
 * request's signature (AWS Signature Version 4) is checked, by this program's own code, and so is
 * the body's SHA-256; region test-1.  Without, there is no listing: it is a web server, which with
 * -b wants this header.  A page of a listing has PAGE entries.
 *
 * DIR/rule, when it is there, is `ACTION COUNT REGEX`: the next COUNT requests whose `METHOD
 * TARGET` the extended regular expression finds are treated so:
 *
 *   NNN      answered with that status
 *   hang     not answered at all
 *   cut      answered with half of the body
 *   lost     carried out, not answered
 *   slow     answered one byte a second
 *   garble   answered with a byte of the body changed
 *   nocond   501 when it has If-None-Match, as by servers that do not know it
 *
 * DIR/log gets a line `STATUS METHOD TARGET` of each. */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
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
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "s3sign.h"
#include "ws/mem.h"

#define HEAD_MAX 65536

static const char *dir;
static struct s3sign signer;
static size_t page = 1000;
static const char *basic;

struct request {
	char *method, *target, *path; /* target as sent, path decoded */
	char *query;
	struct ws_buf in;
	char *head; /* lines after the first */
	const uint8_t *body;
	size_t n;
	char action[16];
};

struct answer {
	int status;
	struct ws_buf body;
	uint64_t length; /* of a HEAD */
};

static void
die(const char *what)
{
	fprintf(stderr, "s3d: %s: %s\n", what, strerror(errno));
	exit(1);
}

static bool
send_all(int fd, const void *p, size_t n)
{
	const char *b = p;

	while (n) {
		ssize_t k = send(fd, b, n, MSG_NOSIGNAL);

		if (k <= 0)
			return false;
		b += k;
		n -= (size_t)k;
	}
	return true;
}

/* ---- reading a request ---- */

static char *
decoded(const char *s, size_t n)
{
	char *out = ws_malloc(n + 1), *o = out;

	for (size_t i = 0; i < n; i++) {
		unsigned v;

		if (s[i] == '%' && i + 2 < n && sscanf(s + i + 1, "%2x", &v) == 1) {
			*o++ = (char)v;
			i += 2;
		} else {
			*o++ = s[i];
		}
	}
	*o = 0;
	return out;
}

static bool
more(int fd, struct ws_buf *b)
{
	uint8_t chunk[65536];
	ssize_t n = recv(fd, chunk, sizeof chunk, 0);

	if (n > 0)
		ws_buf_put(b, chunk, (size_t)n);
	return n > 0;
}

static bool
read_request(int fd, struct request *r)
{
	const uint8_t *end = NULL;
	char *h;

	*r = (struct request){0};
	while (!(end = r->in.len ? memmem(r->in.data, r->in.len, "\r\n\r\n", 4) : NULL))
		if (r->in.len > HEAD_MAX || !more(fd, &r->in))
			return false;
	size_t body = (size_t)(end - r->in.data) + 4;
	char *line = ws_strndup((char *)r->in.data, body - 2), *eol = strstr(line, "\r\n");

	*eol = 0;
	r->head = eol + 2;
	r->method = strtok_r(line, " ", &h);
	r->target = strtok_r(NULL, " ", &h);
	if (!r->target)
		return false;
	r->query = strchr(r->target, '?');
	r->path = decoded(r->target, r->query ? (size_t)(r->query - r->target) : strlen(r->target));
	r->query = ws_strdup(r->query ? r->query + 1 : "");
	char *length = s3sign_header(r->head, "content-length"),
		 *expect = s3sign_header(r->head, "expect");

	r->n = length ? strtoul(length, NULL, 10) : 0;
	if (expect && r->in.len < body + r->n)
		send_all(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	while (r->in.len < body + r->n)
		if (!more(fd, &r->in))
			return false;
	r->body = r->in.data + body;
	return true;
}

/* ---- rules ---- */

static void
take_rule(struct request *r)
{
	char *path = ws_asprintf("%s/rule", dir), line[1024], action[16], regex[800];
	char *what = ws_asprintf("%s %s", r->method, r->target);
	int count, fd = open(dir, O_RDONLY | O_DIRECTORY);
	regex_t re;

	flock(fd, LOCK_EX);
	FILE *f = fopen(path, "r");

	if (f && fgets(line, sizeof line, f) &&
		sscanf(line, "%15s %d %799[^\n]", action, &count, regex) == 3 && count > 0 &&
		regcomp(&re, regex, REG_EXTENDED | REG_NOSUB) == 0) {
		if (regexec(&re, what, 0, NULL, 0) == 0) {
			FILE *to = freopen(path, "w", f);

			snprintf(r->action, sizeof r->action, "%s", action);
			f = to;
			if (f)
				fprintf(f, "%s %d %s\n", action, count - 1, regex);
		}
		regfree(&re);
	}
	if (f)
		fclose(f);
	close(fd);
	free(path);
	free(what);
}

static void
note(const struct request *r, int status)
{
	char *path = ws_asprintf("%s/log", dir);
	FILE *f = fopen(path, "a");

	if (f) {
		fprintf(f, "%d %s %s\n", status, r->method, r->target);
		fclose(f);
	}
	free(path);
}

/* ---- listing ---- */

struct keys {
	char **k;
	size_t n;
};

static void
walk(struct keys *l, const char *root, const char *sub)
{
	char *path = ws_asprintf("%s/%s", root, sub);
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		char *key = *sub ? ws_asprintf("%s/%s", sub, e->d_name) : ws_strdup(e->d_name);

		if (e->d_type == DT_DIR) {
			walk(l, root, key);
			free(key);
		} else {
			l->k = ws_realloc(l->k, (l->n + 1) * sizeof *l->k);
			l->k[l->n++] = key;
		}
	}
	if (d)
		closedir(d);
	free(path);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *
param(const struct request *r, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = r->query; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
		if (!strncmp(p, name, n) && p[n] == '=')
			return decoded(p + n + 1, strcspn(p + n + 1, "&"));
	return ws_strdup("");
}

static void
escaped(struct ws_buf *b, const char *s)
{
	for (; *s; s++)
		if (strchr("<>&'\"", *s))
			ws_buf_printf(b, "&#%d;", *s);
		else
			ws_buf_putc(b, (uint8_t)*s);
}

/* A token that has to be escaped in a query. */
#define TOKEN "k+/= &"

static void
list(const struct request *r, const char *bucket, struct answer *a)
{
	char *root = ws_asprintf("%s/o/%s", dir, bucket), *prefix = param(r, "prefix");
	char *delimiter = param(r, "delimiter"), *token = param(r, "continuation-token"), *last = NULL;
	struct keys l = {0};
	char common[1100] = "";
	size_t out = 0, i;

	walk(&l, root, "");
	if (l.n)
		qsort(l.k, l.n, sizeof *l.k, by_text);
	ws_buf_puts(&a->body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>");
	for (i = 0; i < l.n && out < page; i++) {
		const char *rest = l.k[i] + strlen(prefix), *cut;

		if (strncmp(l.k[i], prefix, strlen(prefix)) ||
			(*token && strcmp(l.k[i], token + strlen(TOKEN)) <= 0))
			continue;
		last = l.k[i];
		cut = *delimiter ? strstr(rest, delimiter) : NULL;
		if (cut) {
			char folder[1100];

			snprintf(folder, sizeof folder, "%.*s", (int)(cut + 1 - l.k[i]), l.k[i]);
			if (!strcmp(folder, common))
				continue;
			strcpy(common, folder);
			ws_buf_puts(&a->body, "<CommonPrefixes><Prefix>");
			escaped(&a->body, folder);
			ws_buf_puts(&a->body, "</Prefix></CommonPrefixes>");
		} else {
			char *path = ws_asprintf("%s/%s", root, l.k[i]);
			struct stat st = {0};

			stat(path, &st);
			ws_buf_puts(&a->body, "<Contents><Key>");
			escaped(&a->body, l.k[i]);
			ws_buf_printf(&a->body, "</Key><Size>%lld</Size></Contents>", (long long)st.st_size);
			free(path);
		}
		out++;
	}
	ws_buf_printf(&a->body, "<IsTruncated>%s</IsTruncated>", i < l.n ? "true" : "false");
	if (i < l.n) {
		ws_buf_puts(&a->body, "<NextContinuationToken>");
		escaped(&a->body, TOKEN);
		escaped(&a->body, last);
		ws_buf_puts(&a->body, "</NextContinuationToken>");
	}
	ws_buf_puts(&a->body, "</ListBucketResult>");
	a->status = 200;
}

/* ---- objects ---- */

static void
error(struct answer *a, int status, const char *code)
{
	a->status = status;
	a->body.len = 0;
	if (signer.key)
		ws_buf_printf(&a->body, "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code></Error>", code);
}

static void
get(const char *path, struct answer *a)
{
	FILE *f = fopen(path, "r");
	uint8_t chunk[65536];
	size_t n;

	if (!f) {
		error(a, 404, "NoSuchKey");
		return;
	}
	while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
		ws_buf_put(&a->body, chunk, n);
	fclose(f);
	a->status = 200;
	a->length = a->body.len;
}

static void
make_folders(char *path)
{
	for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
}

static void
put(const struct request *r, char *path, struct answer *a)
{
	char *condition = s3sign_header(r->head, "if-none-match");
	char *tmp = ws_asprintf("%s.%ld~", path, (long)getpid());

	if (condition && access(path, F_OK) == 0) {
		error(a, 412, "PreconditionFailed");
		return;
	}
	make_folders(path);
	FILE *f = fopen(tmp, "w");

	if (!f || fwrite(r->body, 1, r->n, f) != r->n || fclose(f) != 0)
		die(tmp);
	if (condition ? link(tmp, path) != 0 : rename(tmp, path) != 0)
		error(a, 412, "PreconditionFailed");
	else
		a->status = 200;
	unlink(tmp);
	free(tmp);
}

static void
carry_out(struct request *r, struct answer *a)
{
	const char *host = s3sign_header(r->head, "host");
	char bucket[100], *path, *in = NULL;
	struct stat st;

	/* BUCKET.localhost */
	if (signer.key && host && strchr(host, '.') && !isdigit((unsigned char)*host))
		in = ws_asprintf("/%.*s%s", (int)strcspn(host, "."), host, r->path);
	const char *where = in ? in : r->path;

	snprintf(bucket, sizeof bucket, "%.*s", (int)strcspn(where + 1, "/"), where + 1);
	path = ws_asprintf("%s/o/%s", dir, bucket);
	if (signer.key && stat(path, &st) != 0) {
		error(a, 404, "NoSuchBucket");
		return;
	}
	free(path);
	const char *key = strchr(where + 1, '/');

	path = ws_asprintf("%s/o%s", dir, where);
	if (strstr(where, "/../"))
		error(a, 400, "InvalidURI");
	else if (signer.key && !strcmp(r->method, "GET") && strstr(r->query, "list-type=2") &&
			 (!key || !key[1]))
		list(r, bucket, a);
	else if (!strcmp(r->method, "PUT"))
		put(r, path, a);
	else if (!strcmp(r->method, "GET") || !strcmp(r->method, "HEAD"))
		get(path, a);
	else
		error(a, 405, "MethodNotAllowed");
	free(path);
	free(in);
}

/* ---- answering ---- */

static bool
answer(int fd, const struct request *r, struct answer *a)
{
	bool head = !strcmp(r->method, "HEAD"), cut = !strcmp(r->action, "cut");
	char text[200];
	int n = snprintf(text, sizeof text, "HTTP/1.1 %d %s\r\nContent-Length: %llu\r\n\r\n", a->status,
					 a->status < 300 ? "OK" : "No",
					 (unsigned long long)(head ? a->length : a->body.len));

	if (!strcmp(r->action, "garble") && a->body.len)
		a->body.data[a->body.len / 2] ^= 1;
	if (!strcmp(r->action, "slow")) {
		for (int i = 0; i < n; i++) {
			if (!send_all(fd, text + i, 1))
				return false;
			sleep(1);
		}
	}
	return send_all(fd, text, (size_t)n) &&
		   (head || send_all(fd, a->body.data, cut ? a->body.len / 2 : a->body.len)) && !cut;
}

static bool
serve_one(int fd)
{
	struct request r;
	struct answer a = {0};

	if (!read_request(fd, &r))
		return false;
	take_rule(&r);
	if (!strcmp(r.action, "hang")) {
		struct pollfd p = {fd, POLLRDHUP, 0};

		note(&r, 0);
		poll(&p, 1, -1);
		return false;
	}
	const char *wrong =
		signer.key ? s3sign_check(&signer, r.method, r.target, r.head, r.body, r.n) : NULL;
	char *sent = s3sign_header(r.head, "authorization");
	bool condition = !strcmp(r.action, "nocond") && s3sign_header(r.head, "if-none-match");

	if (isdigit((unsigned char)*r.action))
		error(&a, atoi(r.action), "Injected");
	else if (wrong)
		error(&a, 403, wrong);
	else if (basic && (!sent || strcmp(sent, basic)))
		error(&a, 401, "");
	else if (condition)
		error(&a, 501, "NotImplemented");
	else
		carry_out(&r, &a);
	if (wrong)
		fprintf(stderr, "s3d: %s %s: %s\n", r.method, r.target, wrong);
	note(&r, a.status);
	bool on = strcmp(r.action, "lost") && answer(fd, &r, &a);

	ws_buf_free(&a.body);
	return on;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int opt, port = 0, on = 1;

	while ((opt = getopt(argc, argv, "l:k:t:p:b:")) != -1) {
		if (opt == 'l')
			port = atoi(optarg);
		else if (opt == 'k') {
			signer.key = ws_strndup(optarg, strcspn(optarg, ":"));
			signer.secret = strchr(optarg, ':') + 1;
		} else if (opt == 't')
			signer.token = optarg;
		else if (opt == 'b')
			basic = optarg;
		else if (opt == 'p')
			page = strtoul(optarg, NULL, 10);
	}
	if (!port || optind != argc - 1) {
		fprintf(stderr,
				"usage: s3d -l PORT [-k KEY:SECRET] [-t TOKEN] [-p PAGE] [-b AUTHORIZATION] DIR\n");
		return 2;
	}
	dir = argv[optind];
	signer.region = "test-1";
	signal(SIGCHLD, SIG_IGN);
	a.sin_port = htons((uint16_t)port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
		bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 64) != 0)
		die("cannot listen");
	for (;;) {
		int c = accept(fd, NULL, NULL);
		pid_t parent = getpid();

		if (c < 0)
			continue;
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(0);
			close(fd);
			while (serve_one(c))
				;
			_exit(0);
		}
		close(c);
	}
}
