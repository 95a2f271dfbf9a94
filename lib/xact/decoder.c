/* The decoder's life; see ws/xact.h. */
#include <stdlib.h>
#include <string.h>

#include "decoder.h"

#define DEFAULT_MEMORY (32u * 1024 * 1024)
#define DEFAULT_FLUSH  (256u * 1024)

struct ws_decoder *
ws_decoder_new(const struct ws_decoder_opts *o, struct ws_err *err)
{
	if (!ws_segsize_ok(o->segsize)) {
		ws_err_usage(err, "segment size %u is none", o->segsize);
		return NULL;
	}
	struct ws_decoder *d = ws_calloc(1, sizeof *d);
	struct ws_pos first;

	int rc = ws_cathist_captured(o->cat, o->db, &first, NULL, err);

	if (rc < 0) {
		free(d);
		return NULL;
	}
	d->first_capture = rc ? first.lsn : 0;
	d->o = *o;
	if (!d->o.flush_at)
		d->o.flush_at = DEFAULT_FLUSH;
	d->toast.dir = o->spill;
	ws_xtab_init(&d->tab, o->memory ? o->memory : DEFAULT_MEMORY);
	d->place.segsize = o->segsize;
	ws_posread_init(&d->rd, &d->place);
	ws_posread_init(&d->rd_toast, &d->place);
	ws_shapes_init(&d->shapes, o->cat, o->db);
	d->shapes.oracle = o->oracle;
	return d;
}

void
ws_decoder_free(struct ws_decoder *d)
{
	if (!d)
		return;
	ws_row_old_forget(d);
	ws_xtab_fini(&d->tab);
	ws_orphans_fini(&d->orphans);
	ws_prepset_fini(&d->prepared);
	ws_posread_fini(&d->rd);
	ws_posread_fini(&d->rd_toast);
	ws_walplace_fini(&d->place);
	ws_shapes_fini(&d->shapes);
	ws_toastmap_fini(&d->toast);
	ws_arena_free(&d->arena);
	free(d);
}

void
ws_decoder_dir(struct ws_decoder *d, const char *dir)
{
	free(d->place.dir);
	d->place.dir = ws_strdup(dir);
}

void
ws_decoder_file(struct ws_decoder *d, const char *path, ws_lsn start)
{
	ws_walplace_add_file(&d->place, path, start);
}

void
ws_decoder_route(struct ws_decoder *d, ws_tli tli, ws_lsn from)
{
	if (d->place.nroute && d->place.route[d->place.nroute - 1].tli == tli)
		return;
	ws_walplace_route(&d->place, tli, from);
	/* The fork's segment is another file now. */
	ws_posread_fini(&d->rd);
	ws_posread_fini(&d->rd_toast);
	ws_posread_init(&d->rd, &d->place);
	ws_posread_init(&d->rd_toast, &d->place);
}

void
ws_decoder_epoch(struct ws_decoder *d)
{
	ws_shapes_epoch(&d->shapes);
	memset(d->files, 0, sizeof d->files);
}

void
ws_decoder_reload(struct ws_decoder *d)
{
	ws_decoder_epoch(d);
}

ws_lsn
ws_decoder_oldest(const struct ws_decoder *d)
{
	ws_lsn tx = ws_xtab_first(&d->tab), file = ws_orphans_first(&d->orphans);

	return file && (!tx || file < tx) ? file : tx;
}

ws_lsn
ws_decoder_last_commit(const struct ws_decoder *d)
{
	return d->last_commit;
}

void
ws_decoder_get_stats(const struct ws_decoder *d, struct ws_decoder_stats *s)
{
	*s = d->st;
	s->merges = d->tab.merges;
	s->spills = d->tab.spills;
	s->memory = d->tab.bytes + d->tab.spill.bytes;
	s->unfinished = d->tab.used + d->tab.spill.n;
	s->prepared = d->prepared.n;
	s->prepared_time = d->prepared.n ? d->prepared.e[0].time : 0;
	s->oldest = ws_decoder_oldest(d);
}
