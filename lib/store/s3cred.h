/* Who signs requests to S3.  Of lib/store only. */
#ifndef WS_STORE_S3CRED_H
#define WS_STORE_S3CRED_H

#include "ws/archive.h"

struct s3cred {
	char *key, *secret, *token; /* token NULL: none */
};

/* From the file given, else AWS_ACCESS_KEY_ID and its family, else the file that
 * AWS_SHARED_CREDENTIALS_FILE names, else ~/.aws/credentials. */
int s3cred_find(const struct ws_archive_opts *o, struct s3cred *c, struct ws_err *err);
void s3cred_fini(struct s3cred *c);

/* A credentials file's text: 1 the profile has a key and its secret, 0 it is not there, -1
 * malformed.  Pure; path is for messages. */
int s3cred_parse(const char *text, const char *profile, const char *path, struct s3cred *c,
				 struct ws_err *err);

#endif
