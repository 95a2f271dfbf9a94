/* TOAST tables' records, and values put together from chunks; see toast.h. */
#include <string.h>

#include "toast.h"
#include "ws/cursor.h"

/* ---- the store: which tables, which places ---- */

/* Are the chunks of this TOAST table kept?  1, 0, -1.  Asked once an epoch. */
static int
kept(struct ws_decoder *d, struct ws_shape *sh, struct ws_err *err)
{
	struct ws_shape *owner = NULL;

	if (sh->keep_epoch == d->shapes.epoch)
		return sh->keep;
	int rc = sh->rel->toast_of ? ws_shapes_rel(&d->shapes, sh->rel->toast_of, &owner, err) : 0;

	if (rc < 0)
		return -1;
	/* Whose owner is not known may be anybody's. */
	bool keep = rc == 0 || owner->cls == WS_REL_USER;

	if (rc == 1 && keep && d->o.toast_use)
		keep = d->o.toast_use(d->o.toast_arg, owner->rel, owner->root, NULL) != WS_TOAST_UNUSED;
	rc = ws_toaststore_want(d->o.toast, sh->rel->oid, keep, err);
	if (rc == 1) {
		sh->keep = keep;
		sh->keep_epoch = d->shapes.epoch;
	}
	return rc < 0 ? -1 : keep;
}

static struct ws_toastplace
place(const struct ws_heaprec *h)
{
	return (struct ws_toastplace){h->loc.rel, h->blkno, h->off};
}

/* The first chunk of a value stands at this place of a page. */
static int
tuple_on_page(const uint8_t *page, uint16_t off, struct ws_toast_chunk *c)
{
	/* PageHeaderData: pd_lower @12; ItemIdData: offset 15 bits, flags 2 (1 normal), length 15 */
	uint32_t n = ws_le16(page + 12) > 24 ? (ws_le16(page + 12) - 24u) / 4 : 0, item, at, len;
	struct ws_tuple t;

	if (off < 1 || off > n || 24 + 4u * off > WS_PAGE_SIZE)
		return 0;
	item = ws_le32(page + 24 + 4 * (off - 1u));
	at = item & 0x7fff;
	len = item >> 17;
	if ((item >> 15 & 3) != 1 || at + len > WS_PAGE_SIZE ||
	    ws_tuple_from_page(page + at, len, &t) != 0)
		return 0;
	return ws_toast_chunk_parse(&t, c, NULL) == 0 && c->seq == 0;
}

/* CLUSTER and VACUUM FULL copy chunks by inserts that carry no tuple for logical decoding: it is
 * there for replay, in the block's data or, right after a checkpoint, in the page's image. */
static int
copied(struct ws_decoder *d, struct ws_shape *sh, const struct ws_rec *rec,
       const struct ws_heaprec *h, struct ws_err *err)
{
	struct ws_toastplace at = place(h);
	struct ws_toast_chunk c;
	struct ws_record r;
	uint8_t page[WS_PAGE_SIZE];
	bool first;

	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	const struct ws_block *b = ws_record_block(&r, 0);

	if (b && b->data && b->data_len >= 5) {
		struct ws_tuple t = {b->data + 5, b->data_len - 5u, ws_le16(b->data),
		                     ws_le16(b->data + 2), b->data[4]};

		first = t.hoff >= WS_TUPLE_HDR_SIZE && ws_toast_chunk_parse(&t, &c, NULL) == 0 &&
		        c.seq == 0;
	} else if (b && b->img) {
		if (ws_fpi_restore(b, page, err) != 0)
			return -1;
		first = tuple_on_page(page, h->off, &c);
	} else {
		return 0;
	}
	return first ? ws_toaststore_move(d->o.toast, sh->rel->oid, c.id, &at, err) : 0;
}

/* A page that was copied as a whole. */
static int
copied_page(struct ws_decoder *d, ws_oid rel, const struct ws_block *b, struct ws_err *err)
{
	uint8_t page[WS_PAGE_SIZE];
	struct ws_toast_chunk c;

	if (ws_fpi_restore(b, page, err) != 0)
		return -1;
	for (uint16_t off = 1; off <= WS_PAGE_SIZE / 28; off++) {
		struct ws_toastplace at = {b->loc.rel, b->blkno, off};

		if (tuple_on_page(page, off, &c) &&
		    ws_toaststore_move(d->o.toast, rel, c.id, &at, err) != 0)
			return -1;
	}
	return 0;
}

/* SET TABLESPACE, and VACUUM FULL of a TOAST table by itself, copy pages: their images tell where
 * chunks are in the new file.  They lie between the file's birth and the commit. */
static int
copied_file(struct ws_decoder *d, ws_oid rel, ws_oid file, ws_lsn birth, struct ws_err *err)
{
	ws_lsn at = d->begin.commit_lsn;
	struct ws_locator loc;
	struct ws_record r;

	while (at > birth) {
		if (ws_posread_rec(&d->rd, at, err) != 0)
			return -1;
		const struct ws_rec *rec = &d->rd.rec;

		at = rec->prev;
		if (rec->rmid != WS_RM_XLOG || (rec->info & 0xF0) != 0xB0 /* XLOG_FPI */ ||
		    !ws_rec_locator(rec->data, rec->tot_len, &loc) || loc.rel != file)
			continue;
		if (ws_record_parse(rec, &r, err) != 0)
			return -1;
		for (int i = 0; i < r.nblocks; i++)
			if (r.blocks[i].loc.rel == file && r.blocks[i].fork == 0 &&
			    copied_page(d, rel, &r.blocks[i], err) != 0)
				return -1;
	}
	return 0;
}

/* ---- a commit ---- */

void
ws_toast_begin(struct ws_decoder *d)
{
	d->toast_apply = d->o.toast && ws_toaststore_begin(d->o.toast, d->tli, d->begin.end_lsn);
}

static int
changed_table(struct ws_decoder *d, const struct ws_ddl *g, const struct ws_ddlrel *r,
              struct ws_err *err)
{
	if (!r->before || r->before->cls != WS_REL_TOAST)
		return 0;
	if (!r->after)
		return ws_toaststore_void(d->o.toast, r->oid, true, err);
	ws_oid file = r->after->rel->filenode;

	if (file == r->before->rel->filenode || !g->has_chain)
		return 0;
	for (size_t i = 0; i < g->chain.nbirths; i++) {
		const struct ws_birth *b = &g->chain.births[i];

		if (b->rel == file && b->first_image)
			return copied_file(d, r->oid, file, b->lsn, err);
	}
	return 0;
}

int
ws_toast_end(struct ws_decoder *d, const struct ws_ddl *g, const struct ws_xactrec *x,
             struct ws_err *err)
{
	if (!d->toast_apply)
		return 0;
	d->toast_apply = false;
	for (size_t i = 0; g && i < g->nrels; i++)
		if (changed_table(d, g, &g->rels[i], err) != 0)
			return -1;
	for (uint32_t i = 0; i < x->nrels; i++) {
		struct ws_locator loc = ws_xactrec_rel(x, i);

		if (loc.db == d->o.db && ws_toaststore_drop_file(d->o.toast, loc.rel, err) != 0)
			return -1;
	}
	return ws_toaststore_end(d->o.toast, err);
}

/* ---- records ---- */

static int
chunk(struct ws_decoder *d, struct ws_shape *sh, const struct ws_tuple *t, const struct ws_rec *rec,
      const struct ws_toastplace *at, bool alone, struct ws_err *err)
{
	struct ws_toast_chunk c;
	int rc = 1;

	if (ws_toast_chunk_parse(t, &c, err) != 0)
		return ws_err_prefix(err, WS_LSN_FMT ": %s", WS_LSN_ARG(rec->start), sh->rel->name);
	/* Of several in a record, positions do not tell which; the store does. */
	if (!d->store_only && alone)
		rc = ws_toastmap_add(&d->toast, sh->rel->oid, c.id, c.seq, rec->start, err);
	if (rc == 0)
		return ws_err_op(err, "toast_corrupt",
		                 WS_LSN_FMT ": chunk %d of value %u in %s does not follow the one before",
		                 WS_LSN_ARG(rec->start), c.seq, c.id, sh->rel->name);
	if (rc == 1 && d->toast_apply && (rc = kept(d, sh, err)) == 1)
		rc = ws_toaststore_put(d->o.toast, sh->rel->oid, c.id, c.seq, c.data, c.len, at, err);
	return rc < 0 ? -1 : 0;
}

static int
chunks(struct ws_decoder *d, struct ws_shape *sh, const struct ws_rec *rec,
       const struct ws_heaprec *h, struct ws_err *err)
{
	struct ws_heap_multi m = ws_heap_multi(h);
	struct ws_toastplace at = place(h);
	struct ws_tuple t;
	int rc;

	while ((rc = ws_heap_multi_next(&m, &t, &at.off, err)) == 1)
		if (chunk(d, sh, &t, rec, &at, false, err) != 0)
			return -1;
	return rc;
}

int
ws_toast_super(struct ws_decoder *d, const struct ws_heaprec *h, struct ws_err *err)
{
	struct ws_toastplace at = place(h);

	return d->toast_apply ? ws_toaststore_delete(d->o.toast, &at, err) : 0;
}

int
ws_toast_record(struct ws_decoder *d, struct ws_shape *sh, const struct ws_rec *rec,
                const struct ws_heaprec *h, struct ws_err *err)
{
	struct ws_toastplace at = place(h);

	switch (h->op) {
	case WS_HEAP_INSERT:
		if (h->flags & WS_HR_NEW)
			return chunk(d, sh, &h->new_, rec, &at, true, err);
		return d->toast_apply ? copied(d, sh, rec, h, err) : 0;
	case WS_HEAP_MULTI_INSERT:
		return h->flags & WS_HR_NEW ? chunks(d, sh, rec, h, err) : 0;
	case WS_HEAP_DELETE:
		return d->toast_apply ? ws_toaststore_delete(d->o.toast, &at, err) : 0;
	default:
		return 0;
	}
}

int
ws_toast_truncate(struct ws_decoder *d, const struct ws_heaprec *h, struct ws_err *err)
{
	struct ws_shape *sh;

	for (uint32_t i = 0; d->toast_apply && i < h->noids; i++) {
		int rc = ws_shapes_rel(&d->shapes, ws_heaprec_oid(h, i), &sh, err);

		if (rc < 0 || (rc == 1 && sh->rel->toast &&
		               ws_toaststore_void(d->o.toast, sh->rel->toast, false, err) != 0))
			return -1;
	}
	return 0;
}

/* ---- values ---- */

/* Reads chunk number seq of the value again. */
static int
read_chunk(struct ws_decoder *d, ws_lsn lsn, const struct ws_toast_ptr *p, uint32_t seq,
           struct ws_toast_chunk *c, struct ws_err *err)
{
	struct ws_record r;
	struct ws_heaprec h;

	if (ws_posread_rec(&d->rd_toast, lsn, err) != 0 ||
	    ws_record_parse(&d->rd_toast.rec, &r, err) != 0 || ws_heaprec_parse(&r, &h, err) < 0 ||
	    ws_toast_chunk_parse(&h.new_, c, err) != 0)
		return -1;
	if (c->id != p->valueid || c->seq != (int32_t)seq)
		return ws_err_op(err, "toast_corrupt", WS_LSN_FMT ": not chunk %u of value %u",
		                 WS_LSN_ARG(lsn), seq, p->valueid);
	return 0;
}

/* A value that this transaction wrote. */
static int
own_value(struct ws_decoder *d, const struct ws_toastval *v, const struct ws_toast_ptr *p,
          uint8_t *out, struct ws_err *err)
{
	struct ws_toast_chunk c;
	uint32_t have = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		if (read_chunk(d, ws_toastmap_chunk(&d->toast, v, i), p, i, &c, err) != 0)
			return -1;
		if (c.len > p->extsize - have)
			break;
		memcpy(out + have, c.data, c.len);
		have += c.len;
	}
	if (have != p->extsize)
		return ws_err_op(err, "toast_corrupt",
		                 "value %u of TOAST table %u has %u bytes in its chunks, not %u",
		                 p->valueid, p->toastrelid, have, p->extsize);
	return 1;
}

int
ws_toast_fetch(void *arg, const struct ws_toast_ptr *p, struct ws_arena *a, const uint8_t **data,
               struct ws_err *err)
{
	struct ws_decoder *d = arg;
	const struct ws_toastval *v = ws_toastmap_find(&d->toast, p->toastrelid, p->valueid);
	int rc = WS_TOAST_UNKNOWN;
	/* A row whose old version is logged whole keeps what is not new: it is there in line. */
	bool look = v || (d->o.toast && !d->old_whole);

	uint8_t *out = look ? ws_arena_alloc(a, p->extsize) : NULL;

	if (v)
		rc = own_value(d, v, p, out, err);
	else if (look)
		rc = ws_toaststore_fetch(d->o.toast, p->toastrelid, p->valueid, d->begin.end_lsn,
		                         p->extsize, out, err);
	if (rc < 0 || rc == WS_TOAST_FOUND) {
		*data = out;
		return rc;
	}
	if (d->nmiss < WS_CHANGE_MAX_COLS)
		d->miss[d->nmiss++] =
			(struct ws_toastmiss){p->toastrelid, p->valueid, rc == WS_TOAST_BEFORE_LOAD};
	return 0;
}

static int
missing(struct ws_decoder *d, const struct ws_shape *sh, uint16_t col,
        const struct ws_toastmiss *m, struct ws_err *err)
{
	const struct ws_attr *att = sh->desc->cols[col].attr;

	/* What came before the table was loaded is left out by whoever reads the stream. */
	if (d->o.allow_absent || m->before_load)
		return 0;
	if (d->o.toast_use &&
	    d->o.toast_use(d->o.toast_arg, sh->rel, sh->root, att) != WS_TOAST_STOP) {
		d->st.toast_absent++;
		return 0;
	}
	return ws_err_op(err, "toast_missing",
	                 "%s.%s, column %s: the row at " WS_LSN_FMT " keeps TOAST value %u of table "
	                 "%u, which an earlier transaction wrote and %s: load the table again, let its "
	                 "rule say toast-missing=null, or give it REPLICA IDENTITY FULL",
	                 sh->rel->nspname, sh->rel->name, att->name, WS_LSN_ARG(d->row_lsn), m->id,
	                 m->rel,
	                 d->o.toast ? "the TOAST store does not have" : "there is no TOAST store");
}

int
ws_toast_fill(struct ws_decoder *d, const struct ws_shape *sh, const struct ws_value *old,
              struct ws_value *v, struct ws_err *err)
{
	static const struct ws_toastmiss unknown;
	unsigned k = 0;

	for (uint16_t i = 0; i < sh->desc->ncols; i++) {
		if (v[i].state != WS_V_ABSENT)
			continue;
		/* In the order of the columns, as they were asked for. */
		const struct ws_toastmiss *m = k < d->nmiss ? &d->miss[k++] : &unknown;

		if (old && old[i].state == WS_V_VALUE)
			v[i] = old[i];
		else if (missing(d, sh, i, m, err) != 0)
			return -1;
	}
	return 0;
}
