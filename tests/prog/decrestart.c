/* Decodes WAL once, then again from the floor of every commit, as after a restart with everything
 * up to that commit acknowledged: what follows must be the same each time.
 *   decrestart CATALOG DATABASE WALDIR [START [MEMORY [MOST [STORE]]]]
 * MOST floors at most, spread evenly.  Each is followed until every transaction that was open then has
 * ended, and a few commits more: from there on a restart cannot be told from the first run.
 * With STORE, a TOAST store as of START, each restart is one after a kill -9: on a copy of the
 * store that a first life left behind, which was synced and purged for an acknowledged commit, and
 * died some commits later without another sync.
 * Compares the JSON form without relations and handles, which a restart makes anew. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/toaststore.h"
#include "ws/waldir.h"
#include "ws/walread.h"
#include "ws/xact.h"

#define MORE 5 /* commits */

static struct ws_cathist *hist;
static const char *dir;
static ws_oid db;
static size_t memory;
static const char *store; /* TOAST store to begin with, NULL: none */
static char copy[4200];   /* the one in use */

/* How a life with a TOAST store ends: commits after which it syncs for `floor`, and dies. */
struct life {
	size_t sync, die; /* 0: never */
	ws_lsn floor;
};

struct floor {
	ws_lsn end, floor;
	size_t at; /* offset in the whole text */
};

struct pass {
	ws_lsn until; /* no record beyond; 0: to the end */
	struct ws_change_reader *reader;
	struct ws_buf out, text;
	struct floor *floors;
	size_t nfloors;
};

/* Handles in schema and truncate events are renumbered. */
static void
strip(struct ws_buf *b, size_t from)
{
	static const char *const keys[] = {"\"old_handle\":", "\"new_handle\":", "\"handle\":"};
	char *s = ws_buf_cstr(b) + from;

	for (size_t k = 0; k < 3; k++)
		for (char *p = s; (p = strstr(p, keys[k]));) {
			p += strlen(keys[k]);
			/* What is there or not stays. */
			for (*p != '0' ? *p++ = '#' : 0; *p >= '0' && *p <= '9'; p++)
				*p = '#';
		}
	size_t n = from;

	for (char *p = s; *p; p++)
		if (*p != '#' || p[-1] != '#')
			b->data[n++] = (uint8_t)*p;
	b->len = n;
}

static int
flush(void *arg, struct ws_err *err)
{
	struct pass *p = arg;
	struct ws_change c;
	int rc;

	if (p->out.len)
		memcpy(ws_change_reader_room(p->reader, p->out.len), p->out.data, p->out.len);
	ws_change_reader_fed(p->reader, p->out.len);
	p->out.len = 0;
	while ((rc = ws_change_next(p->reader, &c, err)) == 1) {
		size_t from = p->text.len;

		if (c.type == WS_C_RELATION || c.type == WS_C_IDENTITY)
			continue;
		ws_change_json(&c, p->reader, &p->text);
		if (c.type == WS_C_SCHEMA || c.type == WS_C_TRUNCATE || c.type == WS_C_REPLACE_BEGIN ||
		    c.type == WS_C_REPLACE_END)
			strip(&p->text, from);
	}
	return rc;
}

static void
note(struct pass *p, const struct ws_decoder *d, ws_lsn end)
{
	ws_lsn oldest = ws_decoder_oldest(d);

	if ((p->nfloors & (p->nfloors - 1)) == 0)
		p->floors = ws_realloc(p->floors, (p->nfloors ? p->nfloors * 2 : 1) * sizeof *p->floors);
	p->floors[p->nfloors++] =
		(struct floor){end, oldest && oldest < end ? oldest : end, p->text.len};
}

/* A fresh copy of the store to begin with, or none left. */
static void
copy_store(bool again)
{
	char *s = again ? ws_asprintf("rm -rf '%s' && cp -r '%s' '%s'", copy, store, copy)
	                : ws_asprintf("rm -rf '%s'", copy);

	if (system(s) != 0)
		exit(1);
	free(s);
}

/* 1 go on, 0 dead. */
static int
lived(struct ws_toaststore *t, const struct life *l, size_t n, struct ws_err *err)
{
	if (l->sync && n == l->sync &&
	    (ws_toaststore_sync(t, err) != 0 ||
	     ws_toaststore_purge(t, l->floor, 1000000, err) < 0))
		return -1;
	return !l->die || n < l->die;
}

static int
decode(struct pass *p, ws_lsn start, ws_lsn skip, bool keep, const struct life *life,
       struct ws_err *err)
{
	struct ws_toaststore *toast = NULL;
	struct ws_cluster cluster = {0};
	size_t ncommits = 0;
	const struct ws_walsrc_opts o = {0};
	struct ws_walsrc *s = ws_walsrc_open(dir, (struct ws_pos){0, start}, &o, err);
	struct ws_walreader *r = ws_walreader_new(s ? ws_walsrc_segsize(s) : 0, 0, 0);
	struct ws_decoder *d = NULL;
	const struct ws_c_identity id = {.db = db, .major = 17, .dbname = "", .encoding = "UTF8"};
	struct ws_change ev = {.type = WS_C_IDENTITY, .identity = id};
	struct ws_walchunk c;
	bool reached = false;
	int rc;

	if (!s)
		return -1;
	p->reader = ws_change_reader_new();
	p->text.len = p->out.len = 0;
	ws_change_put_header(&p->out);
	ws_change_put(&p->out, &ev);
	while (!reached && (rc = ws_walsrc_next(s, &c, err)) == 1) {
		struct ws_rec rec;

		if (!d) {
			if (store && ws_walsrc_cluster(s, &cluster) &&
			    !(toast = ws_toaststore_open(copy, cluster.system_id, db, err)))
				return -1;
			const struct ws_decoder_opts dopts = {.cat = hist,
			                                      .toast = toast,
			                                      .db = db,
			                                      .segsize = ws_walsrc_segsize(s),
			                                      .memory = memory,
			                                      .skip = skip,
			                                      .out = &p->out,
			                                      .flush = flush,
			                                      .arg = p};

			if (!(d = ws_decoder_new(&dopts, err)))
				return -1;
			ws_decoder_dir(d, dir);
			ws_decoder_route(d, c.tli, ws_seg_start(c.lsn, ws_walsrc_segsize(s)));
			ws_walreader_seek(r, c.lsn, start ? start : c.lsn);
		}
		if (ws_walreader_feed(r, c.lsn, c.p, c.n, err) != 0)
			return -1;
		while (!reached && (rc = ws_walreader_next(r, &rec, err)) == 1) {
			if (ws_decoder_record(d, &rec, ws_walreader_ver(r), err) != 1 || flush(p, err) < 0)
				return -1;
			if (ws_decoder_last_commit(d) != rec.end)
				continue;
			if (keep)
				note(p, d, rec.end);
			reached = p->until && rec.end >= p->until;
			rc = toast ? lived(toast, life, ++ncommits, err) : 1;
			if (rc < 0)
				return -1;
			if (rc == 0)
				goto out;
		}
		if (rc < 0)
			break;
	}
	if (rc < 0 && !ws_walreader_clean_end(r))
		return -1;
out:
	ws_decoder_free(d);
	ws_toaststore_close(toast);
	ws_walreader_free(r);
	ws_walsrc_close(s);
	ws_change_reader_free(p->reader);
	return 0;
}

/* The commit after which nothing is left of what was open at floor k. */
static size_t
settled(const struct pass *all, size_t k)
{
	ws_lsn end = all->floors[k].end;

	while (k < all->nfloors && all->floors[k].floor < end)
		k++;
	return k + MORE < all->nfloors ? k + MORE : all->nfloors;
}

static int
differ(const struct pass *all, const struct pass *again, const struct floor *f, size_t to)
{
	size_t n = to - f->at, i = 0, line = f->at;

	if (again->text.len == n && !memcmp(all->text.data + f->at, again->text.data, n))
		return 0;
	while (i < n && i < again->text.len && all->text.data[f->at + i] == again->text.data[i]) {
		if (all->text.data[f->at + i] == '\n')
			line = f->at + i + 1;
		i++;
	}
	printf("restart after " WS_LSN_FMT " from " WS_LSN_FMT
	       " differs\n once:  %.300s\n again: %.300s\n",
	       WS_LSN_ARG(f->end), WS_LSN_ARG(f->floor), all->text.data + line,
	       again->text.data + (line - f->at));
	return 1;
}

/* A life that ends after commit `die`, its floor that of commit `ack` or somewhat below. */
static int
first_life(const struct pass *all, ws_lsn start, size_t ack, ws_lsn *floor,
           struct ws_err *err)
{
	struct pass p = {0};
	size_t synced = ack - ack / 3 % 5 % (ack + 1), die = ack + 1 + ack * 7 % 11;
	const struct life l = {synced + 1, die + 1, all->floors[synced].floor};

	*floor = l.floor;
	copy_store(true);
	int rc = decode(&p, start, 0, false, &l, err);

	ws_buf_free(&p.text);
	ws_buf_free(&p.out);
	return rc;
}

int
main(int argc, char **argv)
{
	static const struct life forever;
	struct pass all = {0}, again = {0};
	struct ws_err err;
	ws_lsn start = 0, reread = 0;

	ws_log_init("decrestart", WS_LOG_ERROR, false);
	if (argc < 4 || argc > 8 || (argc > 4 && ws_lsn_parse(argv[4], &start) != 0)) {
		fprintf(stderr,
		        "usage: decrestart CATALOG DATABASE WALDIR [START [MEMORY [MOST [STORE]]]]\n");
		return 2;
	}
	memory = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
	db = (ws_oid)strtoul(argv[2], NULL, 10);
	dir = argv[3];
	store = argc > 7 ? argv[7] : NULL;
	if (store) {
		snprintf(copy, sizeof copy, "%s.copy", store);
		copy_store(true);
	}
	if (!(hist = ws_cathist_open(argv[1], false, &err)) ||
	    decode(&all, start, 0, true, &forever, &err) != 0) {
		ws_log_err(&err);
		return 1;
	}
	ws_buf_cstr(&all.text);
	size_t most = argc > 6 ? strtoul(argv[6], NULL, 10) : all.nfloors, n = 0;

	for (size_t i = 0; i < all.nfloors; i += most && all.nfloors > most ? all.nfloors / most : 1) {
		const struct floor *f = &all.floors[i];
		size_t k = settled(&all, i);
		bool whole = store || k == all.nfloors;

		ws_lsn floor = f->floor;

		again.until = whole ? 0 : all.floors[k].end;
		if ((store && first_life(&all, start, i, &floor, &err) != 0) ||
		    decode(&again, floor, f->end, false, &forever, &err) != 0) {
			ws_log_err(&err);
			return 1;
		}
		ws_buf_cstr(&again.text);
		if (differ(&all, &again, f, whole ? all.text.len : all.floors[k].at))
			return 1;
		reread += (whole ? all.floors[all.nfloors - 1].end : again.until) - f->floor;
		n++;
	}
	size_t len = all.text.len;

	if (store)
		copy_store(false);

	ws_buf_free(&all.text);
	ws_buf_free(&again.text);
	ws_buf_free(&all.out);
	ws_buf_free(&again.out);
	free(all.floors);
	ws_cathist_close(hist);
	printf("restarts=%zu of %zu bytes=%zu reread=%" PRIu64 "\n", n, all.nfloors, len, reread);
	return 0;
}
