/* Position files; see ws/pos.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pos.h"

void
ws_pos_format(char *out, struct ws_pos pos)
{
	snprintf(out, 32, "%" PRIu32 " " WS_LSN_FMT, pos.tli, WS_LSN_ARG(pos.lsn));
}

int
ws_pos_parse(const char *s, struct ws_pos *pos)
{
	char *end;
	unsigned long tli = strtoul(s, &end, 10);

	if (end == s || *end != ' ' || tli == 0 || tli > UINT32_MAX || *s < '0' || *s > '9')
		return -1;
	char lsn[20];
	size_t n = strcspn(end + 1, "\n");

	if (n >= sizeof lsn || (end[1 + n] && end[2 + n]))
		return -1;
	memcpy(lsn, end + 1, n);
	lsn[n] = 0;
	pos->tli = (ws_tli)tli;
	return ws_lsn_parse(lsn, &pos->lsn);
}

int
ws_pos_read(const char *path, struct ws_pos *pos, struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = ws_file_read(path, 128, &b, err);

	if (rc == 1 && b.len == 0)
		rc = ws_err_temp(err, "%s: empty, as a power failure leaves it; waiting for its writer", path);
	else if (rc == 1 && (strlen((char *)b.data) != b.len || ws_pos_parse((char *)b.data, pos) != 0))
		rc = ws_err_op(err, "position_malformed", "%s: not a position (TLI LSN)", path);
	ws_buf_free(&b);
	return rc;
}

int
ws_pos_read_first(const char *path, struct ws_pos *pos, struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = ws_file_read(path, 65536, &b, err);

	if (rc == 1) {
		char *s = (char *)b.data, *lsn = strchr(s, ' '), *end = lsn ? strpbrk(lsn + 1, " \n") : NULL;

		if (end)
			*end = 0;
		if (ws_pos_parse(s, pos) != 0)
			rc = ws_err_op(err, "position_malformed", "%s: does not begin with a position (TLI LSN)", path);
	}
	ws_buf_free(&b);
	return rc;
}

int
ws_pos_write(const char *path, struct ws_pos pos, bool sync, struct ws_err *err)
{
	char s[40];

	ws_pos_format(s, pos);
	strcat(s, "\n");
	return ws_file_replace(path, s, strlen(s), 0600, sync, err);
}
