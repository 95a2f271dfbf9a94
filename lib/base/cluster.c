/* The `cluster` file; see ws/cluster.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/lsn.h"

static int
parse(const char *text, struct ws_cluster *c)
{
	return sscanf(text, "SYSTEM_ID=%" SCNu64 "\nMAJOR=%d\nSEGMENT_SIZE=%" SCNu32 "\n", &c->system_id,
	              &c->major, &c->segsize) == 3 &&
	               ws_segsize_ok(c->segsize) && c->major > 0
	           ? 0
	           : -1;
}

int
ws_cluster_read(const char *statedir, struct ws_cluster *c, struct ws_err *err)
{
	char *path = ws_asprintf("%s/cluster", statedir);
	struct ws_buf b = {0};
	int rc = ws_file_read(path, 1024, &b, err);

	if (rc == 1 && parse((char *)b.data, c) != 0)
		rc = ws_err_op(err, "cluster_malformed", "%s: not a cluster file", path);
	ws_buf_free(&b);
	free(path);
	return rc;
}

static int
compare(const char *statedir, const struct ws_cluster *have, const struct ws_cluster *c, struct ws_err *err)
{
	if (have->system_id != c->system_id)
		return ws_err_op(err, "system_id_changed",
		                 "%s belongs to system identifier %" PRIu64 ", this is %" PRIu64, statedir,
		                 have->system_id, c->system_id);
	if (have->major != c->major)
		return ws_err_op(err, "major_changed", "%s belongs to PostgreSQL %d, this is %d", statedir,
		                 have->major, c->major);
	if (have->segsize != c->segsize)
		return ws_err_op(err, "segment_size_changed",
		                 "%s has WAL segments of %" PRIu32 " bytes, this has %" PRIu32, statedir,
		                 have->segsize, c->segsize);
	return 0;
}

int
ws_cluster_claim(const char *statedir, const struct ws_cluster *c, struct ws_err *err)
{
	struct ws_cluster have;
	char *path = ws_asprintf("%s/cluster", statedir), *tmp = NULL;
	int rc = ws_cluster_read(statedir, &have, err), fd = -1;

	if (rc != 0) {
		rc = rc < 0 ? -1 : compare(statedir, &have, c, err);
		goto out;
	}
	char text[128];
	int n = snprintf(text, sizeof text, "SYSTEM_ID=%" PRIu64 "\nMAJOR=%d\nSEGMENT_SIZE=%" PRIu32 "\n",
	                 c->system_id, c->major, c->segsize);

	/* Complete before it has its name: link(2) fails where another tool was first. */
	tmp = ws_asprintf("%s.%ld", path, (long)getpid());
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = ws_err_missing(err, "%s: cannot create", tmp);
		goto out;
	}
	if ((rc = ws_write_all(fd, text, (size_t)n, err, tmp)) != 0)
		goto out;
	if (fsync(fd) != 0) {
		rc = ws_err_sys(err, "%s: cannot fsync", tmp);
		goto out;
	}
	if (link(tmp, path) != 0) {
		if (errno != EEXIST)
			rc = ws_err_sys(err, "%s: cannot create", path);
		else if ((rc = ws_cluster_read(statedir, &have, err)) >= 0)
			rc = compare(statedir, &have, c, err);
	} else {
		rc = ws_fsync_path(statedir, err);
	}
out:
	if (fd >= 0) {
		close(fd);
		unlink(tmp);
	}
	free(tmp);
	free(path);
	return rc;
}
