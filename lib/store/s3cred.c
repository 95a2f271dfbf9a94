/* Credentials; see s3cred.h.  They never come from the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "s3cred.h"
#include "ws/file.h"
#include "ws/mem.h"

#define FILE_MAX 65536u

static void
forget(char **s)
{
	if (*s)
		explicit_bzero(*s, strlen(*s));
	free(*s);
	*s = NULL;
}

void
s3cred_fini(struct s3cred *c)
{
	forget(&c->key);
	forget(&c->secret);
	forget(&c->token);
}

/* Cuts white space off both ends, in place. */
static char *
trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	for (n = strlen(s); n && strchr(" \t\r", s[n - 1]); n--)
		s[n - 1] = 0;
	return s;
}

static void
take(char *line, struct s3cred *c)
{
	char *eq = strchr(line, '='), **to = NULL;

	if (!eq)
		return;
	*eq = 0;
	const char *name = trim(line), *value = trim(eq + 1);

	if (!strcmp(name, "aws_access_key_id"))
		to = &c->key;
	else if (!strcmp(name, "aws_secret_access_key"))
		to = &c->secret;
	else if (!strcmp(name, "aws_session_token"))
		to = &c->token;
	if (!to)
		return;
	forget(to);
	*to = *value ? ws_strdup(value) : NULL;
}

int
s3cred_parse(const char *text, const char *profile, const char *path, struct s3cred *c,
			 struct ws_err *err)
{
	char *copy = ws_strdup(text), *next = copy, *line;
	bool mine = false, seen = false;

	*c = (struct s3cred){0};
	while ((line = strsep(&next, "\n"))) {
		line = trim(line);
		if (*line == '[') {
			char *end = strchr(line, ']');

			if (end)
				*end = 0;
			mine = end && !strcmp(trim(line + 1), profile);
			seen |= mine;
		} else if (mine && *line != '#' && *line != ';') {
			take(line, c);
		}
	}
	explicit_bzero(copy, strlen(text));
	free(copy);
	if (!seen)
		return 0;
	if (c->key && c->secret)
		return 1;
	s3cred_fini(c);
	return ws_err_usage(err, "%s: profile %s has no aws_access_key_id and aws_secret_access_key",
						path, profile);
}

static int
from_file(const char *path, const char *profile, struct s3cred *c, struct ws_err *err)
{
	struct ws_buf b = {0};
	struct stat st;
	int rc;

	if (stat(path, &st) != 0)
		return ws_err_arg(err, "%s: cannot read the credentials", path);
	if (st.st_mode & 077)
		return ws_err_usage(err, "%s: others may read it; chmod 600", path);
	rc = ws_file_read(path, FILE_MAX, &b, err);
	if (rc == 1) {
		rc = s3cred_parse(ws_buf_cstr(&b), profile, path, c, err);
		if (rc == 0)
			rc = ws_err_usage(err, "%s: there is no profile %s", path, profile);
	} else if (rc == 0) {
		rc = ws_err_usage(err, "%s: gone meanwhile", path);
	}
	if (b.data)
		explicit_bzero(b.data, b.len);
	ws_buf_free(&b);
	return rc < 0 ? -1 : 0;
}

int
s3cred_find(const struct ws_archive_opts *o, struct s3cred *c, struct ws_err *err)
{
	const char *key = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
	const char *token = getenv("AWS_SESSION_TOKEN"), *file = getenv("AWS_SHARED_CREDENTIALS_FILE");
	const char *home = getenv("HOME"), *profile = o->profile ? o->profile : getenv("AWS_PROFILE");

	*c = (struct s3cred){0};
	if (!profile || !*profile)
		profile = "default";
	if (o->credentials)
		return from_file(o->credentials, profile, c, err);
	if (key && *key && secret && *secret) {
		c->key = ws_strdup(key);
		c->secret = ws_strdup(secret);
		c->token = token && *token ? ws_strdup(token) : NULL;
		return 0;
	}
	if (file && *file)
		return from_file(file, profile, c, err);
	char *path = ws_asprintf("%s/.aws/credentials", home ? home : "");
	struct stat st;
	int rc;

	if (home && stat(path, &st) == 0)
		rc = from_file(path, profile, c, err);
	else
		rc = ws_err_usage(err, "no credentials for S3: --credentials, AWS_ACCESS_KEY_ID and "
							   "AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE");
	free(path);
	return rc;
}
