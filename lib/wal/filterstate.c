/* The filter's state as text, and the kept list of the first start; see ws/filter.h and
 * ws-filter(1).  Lines in a fixed order, so that equal knowledge gives equal bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filterpriv.h"
#include "ws/crc.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pos.h"

#define HEADER "walshadow filter state 1\n"

/* A run of neighbours is its first and, when there are more, its last. */
static void
save_subs(const struct ws_xidruns *subs, struct ws_buf *out)
{
	for (uint32_t i = 0; i < subs->n; i++) {
		const struct ws_xidrun *r = &subs->r[i];

		if (!r->top)
			continue;
		ws_buf_printf(out, "subxact %" PRIu32 " %" PRIu32 "\n", r->first, r->top);
		if (r->last != r->first)
			ws_buf_printf(out, "through %" PRIu32 " %" PRIu32 "\n", r->first, r->last);
	}
}

void
ws_filter_save(const struct ws_filter *f, struct ws_pos pos, uint64_t system_id, struct ws_buf *out)
{
	char text[40];
	size_t start = out->len;

	ws_pos_format(text, pos);
	ws_buf_printf(out, HEADER "position %s\nsystem_id %" PRIu64 "\n", text, system_id);
	if (f->have_list)
		ws_buf_printf(out, "since " WS_LSN_FMT "\n", WS_LSN_ARG(f->since));
	if (f->have_horizon)
		ws_buf_printf(out, "horizon %" PRIu32 "\n", f->horizon);
	uint64_t *keys = ws_u64map_sorted(&f->kept);

	for (uint32_t i = 0; i < f->kept.n; i++)
		ws_buf_printf(out, "%s %u %u\n",
		              *ws_u64map_get(&f->kept, keys[i]) == KEPT ? "kept" : "provisional",
		              (ws_oid)(keys[i] >> 32), (ws_oid)keys[i]);
	free(keys);
	save_subs(&f->subs, out);
	for (uint32_t i = 0; i < f->nlocks; i++)
		ws_buf_printf(out, "lock %" PRIu32 " %" PRIu32 "\n", f->locks[i].xid, f->locks[i].top);
	for (uint32_t i = 0; i < f->ncopies; i++)
		ws_buf_printf(out, "copy %u %" PRIu32 "\n", f->copies[i].db, f->copies[i].xid);
	for (uint32_t i = 0; i < f->nmoves; i++)
		ws_buf_printf(out, "move %u %u\n", f->moves[i].db, f->moves[i].spc);
	uint32_t crc = WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, out->data + start, out->len - start));

	ws_buf_printf(out, "end %08" PRIX32 "\n", crc);
}

/* Two decimal numbers of 32 bits, and nothing else. */
static bool
two_numbers(const char *s, uint32_t *a, uint32_t *b)
{
	char *end;
	unsigned long long x = strtoull(s, &end, 10), y;

	if (*s < '0' || *s > '9' || *end != ' ' || end[1] < '0' || end[1] > '9')
		return false;
	y = strtoull(end + 1, &end, 10);
	*a = (uint32_t)x;
	*b = (uint32_t)y;
	return !*end && x <= UINT32_MAX && y <= UINT32_MAX;
}

static bool
load_pair(struct ws_filter *f, const char *word, uint32_t a, uint32_t b)
{
	if (!strcmp(word, "kept") || !strcmp(word, "provisional"))
		filter_keep(f, a, b, *word == 'p');
	else if (!strcmp(word, "subxact"))
		filter_subxact(f, a, b);
	else if (!strcmp(word, "through"))
		return ws_xidruns_through(&f->subs, a, b);
	else if (!strcmp(word, "copy"))
		filter_copy_add(f, a, b);
	else if (!strcmp(word, "move"))
		filter_move_add(f, a, b);
	else if (!strcmp(word, "lock")) {
		filter_lock(f, a);
		f->locks[f->nlocks - 1].top = b;
	} else
		return false;
	return true;
}

/* One line, NUL-terminated, modified.  False when it is none of ours. */
static bool
load_line(struct ws_filter *f, char *line, struct ws_pos *pos, uint64_t *system_id)
{
	char *arg = strchr(line, ' ');
	uint32_t a, b;
	char *end;

	if (!arg)
		return false;
	*arg++ = 0;
	if (!strcmp(line, "position"))
		return ws_pos_parse(arg, pos) == 0;
	if (!strcmp(line, "system_id")) {
		*system_id = strtoull(arg, &end, 10);
		return !*end;
	}
	if (!strcmp(line, "since")) {
		f->have_list = true;
		return ws_lsn_parse(arg, &f->since) == 0;
	}
	if (!strcmp(line, "horizon")) {
		f->have_horizon = true;
		f->horizon = (ws_xid)strtoul(arg, &end, 10);
		return !*end;
	}
	return two_numbers(arg, &a, &b) && load_pair(f, line, a, b);
}

int
ws_filter_load(struct ws_filter *f, const char *name, const void *p, size_t n, struct ws_pos *pos,
               uint64_t *system_id, struct ws_err *err)
{
	const size_t tail = 13; /* "end XXXXXXXX\n" */
	char want[16];
	int rc = 0;

	if (n < sizeof HEADER - 1 + tail || memcmp(p, HEADER, sizeof HEADER - 1) != 0)
		return ws_err_op(err, "state_malformed", "%s: not a filter state", name);
	uint32_t crc = WS_CRC_FIN(ws_crc32c(WS_CRC_INIT, p, n - tail));

	snprintf(want, sizeof want, "end %08" PRIX32 "\n", crc);
	if (memcmp((const char *)p + n - tail, want, tail) != 0)
		return ws_err_op(err, "state_malformed", "%s: the filter state is damaged or cut short", name);
	char *text = ws_strndup((const char *)p + sizeof HEADER - 1, n - tail - (sizeof HEADER - 1));

	pos->lsn = 0;
	pos->tli = 0;
	*system_id = 0;
	for (char *line = text, *next; rc == 0 && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		if (!load_line(f, line, pos, system_id))
			rc = ws_err_op(err, "state_malformed", "%s: unknown line \"%.60s\" in the filter state", name,
			               line);
	}
	if (rc == 0 && !pos->lsn)
		rc = ws_err_op(err, "state_malformed", "%s: the filter state has no position", name);
	free(text);
	return rc;
}

int
ws_filter_read(struct ws_filter *f, const char *path, struct ws_pos *pos, uint64_t *system_id,
               struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = ws_file_read(path, WS_FILTER_STATE_MAX, &b, err);

	if (rc == 1 && ws_filter_load(f, path, b.data, b.len, pos, system_id, err) != 0)
		rc = -1;
	ws_buf_free(&b);
	return rc;
}

int
ws_filter_read_kept(struct ws_filter *f, const char *path, struct ws_pos *since, struct ws_err *err)
{
	struct ws_buf b = {0};
	int rc = ws_file_read(path, WS_FILTER_STATE_MAX, &b, err), lineno = 1;

	if (rc == 0)
		rc = ws_err_usage(err, "%s: no such kept list", path);
	if (rc < 0)
		goto out;
	rc = -1;
	if (!b.len || b.data[b.len - 1] != '\n' || strlen((char *)b.data) != b.len) {
		ws_err_usage(err, "%s: the kept list is empty or cut short", path);
		goto out;
	}
	for (char *line = (char *)b.data, *next; *line; line = next, lineno++) {
		uint32_t db, rel;

		next = line + strcspn(line, "\n");
		*next++ = 0;
		if (lineno == 1) {
			if (strncmp(line, "# ", 2) != 0 || ws_pos_parse(line + 2, since) != 0) {
				ws_err_usage(err, "%s: the first line must be \"# TLI LSN\"", path);
				goto out;
			}
		} else if (*line != '#') {
			if (!two_numbers(line, &db, &rel)) {
				ws_err_usage(err, "%s:%d: not \"DBOID FILENODE\"", path, lineno);
				goto out;
			}
			filter_keep(f, db, rel, false);
		}
	}
	f->have_list = true;
	f->since = since->lsn;
	rc = 0;
out:
	ws_buf_free(&b);
	return rc;
}
