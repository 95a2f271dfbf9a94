/* lib/ch: the watermark, the table's comment, and how a destination follows its source's shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/ch/emit.h"
#include "ws/pos.h"

static struct ws_err err;
static char dir[] = "/tmp/ch-emit.XXXXXX";

/* ---- an emitter without a server ---- */

static void
emitter(struct ws_emit *e)
{
	memset(e, 0, sizeof *e);
	ws_emit_defaults(&e->o);
	e->o.state = dir;
	e->o.consumer = "c";
	e->metrics = ws_metrics_new(NULL);
	e->routes = ws_routes_load(NULL, &err);
	e->srv.lim = (struct ch_limits){-719162, 2932896, INT64_MIN, INT64_MAX, true};
	e->dbname = ws_strdup("db");
	e->id.system_id = 1;
	e->id.db = 5;
	emit_status_init(e);
}

static void
emitter_free(struct ws_emit *e)
{
	ch_batch_drop_all(e);
	ws_metrics_free(e->metrics);
	ws_routes_free(e->routes);
	free(e->dbname);
	free(e->last_error);
}

static struct ws_c_column cols[] = {
    {.name = "id", .attnum = 1, .kind = WS_K_INT8, .flags = WS_COL_NOTNULL | WS_COL_IDENTITY | WS_COL_PKEY, .typid = 20, .typmod = -1, .typname = "bigint"},
    {.name = "v", .attnum = 2, .kind = WS_K_TEXT, .typid = 25, .typmod = -1, .typname = "text"}};
static struct ws_c_relation rel = {.handle = 1, .oid = 16385, .relkind = 'r', .replident = 'd', .nspname = "public", .name = "t",
                                   .root_nspname = "", .root_name = "", .lsn = 100, .ncols = 2, .cols = cols};

/* A destination as the server would tell it: "name type[!]..." where ! is a key column. */
static void
describe(struct ch_desc *d, const char *const *columns)
{
	memset(d, 0, sizeof *d);
	d->exists = true;
	d->engine = ws_arena_strdup(&d->arena, "ReplacingMergeTree");
	d->engine_full = ws_arena_strdup(&d->arena, "ReplacingMergeTree(_version, _is_deleted) ORDER BY id");
	d->sorting_key = ws_arena_strdup(&d->arena, "id");
	while (columns[d->n])
		d->n++;
	d->cols = ws_arena_zalloc(&d->arena, (size_t)d->n * sizeof *d->cols);
	for (int i = 0; i < d->n; i++) {
		char *s = ws_arena_strdup(&d->arena, columns[i]), *sp = strchr(s, ' ');

		*sp = 0;
		d->cols[i].name = s;
		d->cols[i].type = sp + 1;
		d->cols[i].kind = ws_arena_strdup(&d->arena, "");
		if (sp[strlen(sp + 1)] == '!') {
			sp[strlen(sp + 1)] = 0;
			d->cols[i].key = true;
		}
	}
}

static const char *const plain[] = {"id Int64!", "v Nullable(String)", "_version UInt128", "_is_deleted UInt8", "_xid UInt32",
                                    "_commit_ts DateTime64(6, 'UTC')", NULL};

static struct ch_tab *
table(struct ws_emit *e)
{
	struct ch_tab *t = ws_calloc(1, sizeof *t);

	assert_int_equal(ws_routes_resolve(e->routes, "db", rel.nspname, rel.name, &t->route, &err), 1);
	t->oid = rel.oid;
	t->db = ws_strdup("db");
	t->name = ws_strdup("public_t");
	t->target = ws_strdup("`db`.`public_t`");
	ch_note_of(e, t, &rel, &t->note);
	return t;
}

/* ---- watermark ---- */

static struct ws_pos
ack(struct ws_emit *e)
{
	if (emit_ack(e, true, &err) != 0)
		fail_msg("%s", err.msg);
	return e->ack;
}

static void
transaction(struct ws_emit *e, ws_lsn at)
{
	e->tx = (struct ws_c_begin){700, at, at + 8, 0, 0};
	e->in_tx = true;
}

static void
insert(struct ws_emit *e, struct ch_tab *t, uint64_t ordinal)
{
	struct ws_value v[2] = {{.state = WS_V_VALUE, .kind = WS_K_INT8, .i = 1}, {.state = WS_V_NULL, .kind = WS_K_TEXT}};
	struct ws_c_row row = {'I', WS_ROW_NEW, 1, ordinal, &rel, v, NULL, NULL};

	if (emit_row(e, t, &row, 20, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
test_watermark(void **state)
{
	struct ws_emit e;
	struct ch_desc d;

	(void)state;
	emitter(&e);
	assert_int_equal(emit_positions_open(&e, &err), 0);
	struct ch_tab *a = table(&e), *b = table(&e);

	describe(&d, plain);
	assert_int_equal(emit_layout(&e, a, &rel, &d, &err), 0);
	assert_int_equal(emit_layout(&e, b, &rel, &d, &err), 0);
	assert_int_equal(emit_tab_bind(&e, a, &rel, &err), 0);
	assert_int_equal(emit_tab_bind(&e, b, &rel, &err), 0);
	/* A transaction without rows is done at once. */
	e.last = (struct ws_pos){1, 0x108};
	assert_int_equal(ack(&e).lsn, 0x108);
	/* One with rows is not: ack stays before it, whatever completes later. */
	transaction(&e, 0x200);
	insert(&e, a, 1);
	e.last = (struct ws_pos){1, 0x208};
	assert_int_equal(ack(&e).lsn, 0x108);
	transaction(&e, 0x300);
	insert(&e, b, 1);
	insert(&e, a, 2);
	e.last = (struct ws_pos){1, 0x308};
	assert_int_equal(e.oldest->tab == a, 1);
	assert_int_equal(e.oldest->before.lsn, 0x108);
	assert_int_equal(e.newest->before.lsn, 0x208);
	assert_int_equal(e.oldest->rows, 2);
	assert_int_equal(ack(&e).lsn, 0x108);
	/* Versions: the commit's LSN above the ordinal. */
	assert_true(e.oldest->vmin == ((unsigned __int128)0x200 << 64 | 1));
	assert_true(e.oldest->vmax == ((unsigned __int128)0x300 << 64 | 2));
	/* In the middle of a transaction: no further than its predecessor. */
	ch_batch_drop_all(&e);
	transaction(&e, 0x400);
	assert_int_equal(ack(&e).lsn, 0x308);
	insert(&e, a, 1);
	assert_int_equal(ack(&e).lsn, 0x308);
	/* It is on disk, and as nothing has left there is no sent. */
	struct ws_pos p;
	char *sent = ws_asprintf("%s/pos/sent.c", dir), *acked = ws_asprintf("%s/pos/ack.c", dir);

	assert_int_equal(ws_pos_read(acked, &p, &err), 1);
	assert_int_equal(p.lsn, 0x308);
	assert_int_equal(ws_pos_read(sent, &p, &err), 0);
	free(sent);
	free(acked);
	ch_batch_drop_all(&e);
	emit_tab_free(a);
	emit_tab_free(b);
	ch_desc_fini(&d);
	emitter_free(&e);
}

/* A statement, too, leaves only when sent covers it. */
static void
test_sent_seen(void **state)
{
	struct ws_emit e;
	struct ws_pos p;
	char *path = ws_asprintf("%s/pos/sent.seen", dir);

	(void)state;
	emitter(&e);
	e.o.consumer = "seen";
	assert_int_equal(emit_positions_open(&e, &err), 0);
	assert_int_equal(emit_sent_seen(&e, &err), 0);
	assert_int_equal(ws_pos_read(path, &p, &err), 0);
	e.tli = 3;
	e.seen = 0x508;
	e.last = (struct ws_pos){3, 0x408};
	assert_int_equal(emit_sent_seen(&e, &err), 0);
	assert_int_equal(ws_pos_read(path, &p, &err), 1);
	assert_int_equal(p.tli, 3);
	assert_int_equal(p.lsn, 0x508);
	/* It never goes back. */
	e.seen = 0x500;
	assert_int_equal(emit_sent_seen(&e, &err), 0);
	assert_int_equal(ws_pos_read(path, &p, &err), 1);
	assert_int_equal(p.lsn, 0x508);
	free(path);
	emitter_free(&e);
}

/* Rows of a history's load are told apart: an unknown outcome is settled by counting a batch's. */
static void
test_history_load(void **state)
{
	struct ws_emit e;
	struct ch_desc d;

	(void)state;
	emitter(&e);
	struct ch_tab *t = table(&e);

	describe(&d, plain);
	assert_int_equal(emit_layout(&e, t, &rel, &d, &err), 0);
	assert_int_equal(emit_tab_bind(&e, t, &rel, &err), 0);
	t->history = true;
	t->phase = CH_LOAD;
	t->snap.lsn = 0x5000;
	insert(&e, t, 0);
	insert(&e, t, 0);
	unsigned __int128 first = e.newest->vmax;

	assert_true(e.newest->vmin < first);
	t->open = NULL;
	insert(&e, t, 0);
	assert_true(e.newest->vmin > first);
	/* Below everything that is streamed behind the load. */
	assert_true(e.newest->vmax < (unsigned __int128)0x5000 << 64);
	ch_batch_drop_all(&e);
	emit_tab_free(t);
	ch_desc_fini(&d);
	emitter_free(&e);
}

/* ---- the comment ---- */

static void
test_note(void **state)
{
	static const char *const bad[] = {"walshadow=1 ", "walshadow=1 system=1 database=2 consumer=c relation=3 shape=0/1 commit=0/1 columns=x",
	                                  "walshadow=1 system=1 database=2 consumer=c relation=3 shape=0/1 commit=0/1 columns=1:2:3:0:",
	                                  "walshadow=1 system=1 database=2 consumer=c relation=3 shape=0/1 commit=0/1 columns=1:2:3:0:a,",
	                                  "walshadow=1 system=1 database=2 consumer=%zz relation=3 shape=0/1 commit=0/1 columns="};
	struct ws_emit e;
	struct ws_buf text = {0}, again = {0};
	struct ch_note n, m;

	(void)state;
	emitter(&e);
	struct ch_tab *t = table(&e);

	ch_note_fini(&t->note);
	ch_note_of(&e, t, &rel, &n);
	free(n.text);
	n.text = ws_strdup("two\nlines");
	free(n.cols[1].name);
	n.cols[1].name = ws_strdup("a,b c:\n%é");
	ch_note_format(&n, &text);
	assert_int_equal(ch_note_parse((char *)text.data, &m), 1);
	ch_note_format(&m, &again);
	assert_string_equal((char *)text.data, (char *)again.data);
	assert_string_equal(m.text, "two\nlines");
	assert_string_equal(ch_note_find(&m, 2)->name, "a,b c:\n%é");
	assert_int_equal(m.shape, 100);
	assert_null(ch_note_find(&m, 3));
	ch_note_fini(&n);
	ch_note_fini(&m);
	assert_int_equal(ch_note_parse("somebody's table", &m), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (ch_note_parse(bad[i], &m) != -1)
			fail_msg("taken: %s", bad[i]);
	ws_buf_free(&text);
	ws_buf_free(&again);
	emit_tab_free(t);
	emitter_free(&e);
}

/* The lines of a table that partitions share. */
static void
test_note_lines(void **state)
{
#define LINE "walshadow=1 system=1 database=2 consumer=c"
	static const char comment[] = "of mine\n" LINE
								  " state=root relation=10 shape=0/1 commit=0/0 columns=\n" LINE
								  " relation=11 shape=0/1 commit=0/1 columns=1:20:-1:1:id,2:25:-1:0:v\n" LINE
								  " state=leaving relation=12 shape=0/1 commit=0/1 columns=3:25:-1:0:v";
	struct ws_buf text = {0};
	struct ch_note n;
	int lines = 0;

	(void)state;
	for (const char *at = comment; ch_note_next(&at, &n) == 1; ch_note_fini(&n))
		assert_int_equal(n.oid, 10 + lines++);
	assert_int_equal(lines, 3);
	assert_int_equal(ch_note_parse(comment, &n), 1);
	assert_int_equal(n.state, CH_NOTE_ROOT);
	ch_note_fini(&n);
	assert_int_equal(ch_note_parse_oid(comment, 13, &n), 0);
	assert_int_equal(ch_note_parse_oid(comment, 12, &n), 1);
	assert_int_equal(n.state, CH_NOTE_LEAVING);
	assert_string_equal(ch_note_find(&n, 3)->name, "v");
	ch_note_fini(&n);
	/* The line that changes goes last; the others stay as they are, but for a column's new name. */
	assert_int_equal(ch_note_parse_oid(comment, 11, &n), 1);
	assert_int_equal(n.ncols, 2);
	assert_null(strstr(n.text, "relation=11"));
	ch_notes_rename(&n.text, "v", "w");
	free(ch_note_find(&n, 2)->name);
	ch_note_find(&n, 2)->name = ws_strdup("w");
	ch_note_format(&n, &text);
	assert_string_equal(
		(char *)text.data,
		"of mine\n" LINE " state=root relation=10 shape=0/00000001 commit=0/00000000 columns=\n" LINE
		" state=leaving relation=12 shape=0/00000001 commit=0/00000001 columns=3:25:-1:0:w\n" LINE
		" relation=11 shape=0/00000001 commit=0/00000001 columns=1:20:-1:1:id,2:25:-1:0:w");
	ch_notes_rename(&n.text, "w", NULL);
	assert_null(strstr(n.text, "3:25"));
	ch_note_fini(&n);
	ws_buf_free(&text);
	assert_int_equal(ch_note_parse_oid(LINE " state=odd relation=1 shape=0/1 commit=0/1 columns=", 1, &n), -1);
#undef LINE
}

/* ---- shapes ---- */

/* The next ALTER for a new shape, without the comment; "" none. */
static char *
next_alter(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *to, const char *const *columns, bool *retype)
{
	struct ch_step s;
	struct ch_desc d;

	describe(&d, columns);
	int rc = ch_shape_step(e, t, to, &d, &s, &err);

	ch_desc_fini(&d);
	if (rc < 0) {
		ws_buf_free(&s.sql);
		ch_note_fini(&s.note);
		return ws_asprintf("error %s", err.reason);
	}
	char *text = ws_strdup(rc ? (char *)s.sql.data : ""), *cut = strstr(text, "MODIFY COMMENT");

	if (cut)
		*(cut > text ? cut - 2 : cut) = 0;
	*retype = s.retype;
	ws_buf_free(&s.sql);
	if (rc) {
		ch_note_fini(&t->note);
		t->note = s.note;
	} else {
		ch_note_fini(&s.note);
	}
	return text;
}

static void
alters(struct ws_emit *e, struct ch_tab *t, const struct ws_c_relation *to, const char *const *columns, const char *want)
{
	bool retype;
	char *got = next_alter(e, t, to, columns, &retype);

	if (strcmp(got, want))
		fail_msg("%s, wanted %s", got, want);
	free(got);
}

static void
test_shape(void **state)
{
	struct ws_c_column c[4];
	struct ws_c_relation to = rel;
	struct ws_emit e;
	bool retype;

	(void)state;
	emitter(&e);
	struct ch_tab *t = table(&e);

	to.cols = c;
	memcpy(c, cols, sizeof cols);
	alters(&e, t, &to, plain, "");
	/* A new column, a renamed one, a dropped one. */
	c[2] = (struct ws_c_column){.name = "w x", .attnum = 3, .kind = WS_K_INT4, .typid = 23, .typmod = -1, .typname = "integer"};
	to.ncols = 3;
	alters(&e, t, &to, plain, "ADD COLUMN IF NOT EXISTS `w x` Nullable(Int32) AFTER `v`");
	static const char *const with_w[] = {"id Int64!", "v Nullable(String)", "w Nullable(Int32)", NULL};

	c[2].name = "w";
	ch_note_fini(&t->note);
	ch_note_of(&e, t, &to, &t->note);
	alters(&e, t, &to, with_w, "");
	c[2].name = "z";
	alters(&e, t, &to, with_w, "RENAME COLUMN `w` TO `z`");
	static const char *const with_z[] = {"id Int64!", "v Nullable(String)", "z Nullable(Int32)", NULL};

	/* Names change places: by way of a third. */
	c[1].name = "z";
	c[2].name = "v";
	alters(&e, t, &to, with_z, "RENAME COLUMN `z` TO `z_moving_3`");
	static const char *const moving[] = {"id Int64!", "v Nullable(String)", "z_moving_3 Nullable(Int32)", NULL};

	alters(&e, t, &to, moving, "RENAME COLUMN `v` TO `z`");
	static const char *const half[] = {"id Int64!", "z Nullable(String)", "z_moving_3 Nullable(Int32)", NULL};

	alters(&e, t, &to, half, "RENAME COLUMN `z_moving_3` TO `v`");
	static const char *const swapped[] = {"id Int64!", "z Nullable(String)", "v Nullable(Int32)", NULL};

	alters(&e, t, &to, swapped, "");
	/* A wider type in place; a narrower one needs nothing; another one needs the rows again. */
	c[2].kind = WS_K_INT8;
	c[2].typid = 20;
	alters(&e, t, &to, swapped, "MODIFY COLUMN `v` Nullable(Int64)");
	static const char *const wide[] = {"id Int64!", "z Nullable(String)", "v Nullable(Int64)", NULL};

	c[2].kind = WS_K_INT2;
	c[2].typid = 21;
	alters(&e, t, &to, wide, "");
	c[2].kind = WS_K_DATE;
	c[2].typid = 1082;
	free(next_alter(&e, t, &to, wide, &retype));
	assert_true(retype);
	c[2].kind = WS_K_INT2;
	c[2].typid = 21;
	/* Dropped, by policy; a key column stays and a rename of it is not followed. */
	to.ncols = 2;
	t->route.drop_column = WS_DROP_STOP;
	alters(&e, t, &to, wide, "error column_dropped");
	t->route.drop_column = WS_DROP_KEEP;
	alters(&e, t, &to, wide, "");
	/* A new column takes the name of what was kept. */
	c[2] = (struct ws_c_column){.name = "v", .attnum = 9, .kind = WS_K_TEXT, .typid = 25, .typmod = -1, .typname = "text"};
	to.ncols = 3;
	alters(&e, t, &to, wide, "RENAME COLUMN `v` TO `v_dropped_3`");
	t->route.drop_column = WS_DROP_DROP;
	static const char *const kept[] = {"id Int64!", "z Nullable(String)", "v_dropped_3 Nullable(Int64)", NULL};

	alters(&e, t, &to, kept, "DROP COLUMN IF EXISTS `v_dropped_3`");
	c[0].name = "key";
	static const char *const last[] = {"id Int64!", "z Nullable(String)", "v Nullable(String)", NULL};

	alters(&e, t, &to, last, "");
	emit_tab_free(t);
	emitter_free(&e);
}

/* ---- statements ---- */

/* CREATE TABLE by the rules of text, up to its comment. */
static void
creates(const char *text, const char *want)
{
	struct ws_buf problems = {0}, sql = {0};
	struct ws_emit e;

	emitter(&e);
	ws_routes_free(e.routes);
	e.routes = ws_routes_parse(text, strlen(text), "f", &problems);
	if (!e.routes)
		fail_msg("%s", ws_buf_cstr(&problems));
	struct ch_tab *t = table(&e);

	ch_create_sql(&e, t, &rel, "db", "t", NULL, &t->note, &sql);
	char *cut = strstr((char *)sql.data, " COMMENT ");

	assert_non_null(cut);
	*cut = 0;
	if (strcmp((char *)sql.data, want))
		fail_msg("%s, wanted %s", (char *)sql.data, want);
	ws_buf_free(&sql);
	emit_tab_free(t);
	emitter_free(&e);
}

static void
test_create(void **state)
{
#define COLUMNS                                                                                    \
	"(`id` Int64, `v` Nullable(String), `_version` UInt128 CODEC(ZSTD(1)), `_is_deleted` UInt8, "   \
	"`_xid` UInt32 CODEC(T64, ZSTD(1)), `_commit_ts` DateTime64(6, 'UTC') CODEC(ZSTD(1)), "         \
	"`_lsn` UInt64 ALIAS toUInt64(bitShiftRight(`_version`, 64)))"
	(void)state;
	creates("table *", "CREATE TABLE IF NOT EXISTS `db`.`t` " COLUMNS
					   " ENGINE = ReplacingMergeTree(`_version`, `_is_deleted`) ORDER BY (`id`)");
	/* A cluster and replicated engines: the rig's server runs neither, the text is what is tested. */
	creates("table * cluster=\"my cluster\" engine=\"ReplicatedReplacingMergeTree('/ch/{uuid}/{shard}', '{replica}')\"",
			"CREATE TABLE IF NOT EXISTS `db`.`t` ON CLUSTER `my cluster` " COLUMNS
			" ENGINE = ReplicatedReplacingMergeTree('/ch/{uuid}/{shard}', '{replica}', `_version`, "
			"`_is_deleted`) ORDER BY (`id`)");
	creates("table * cluster=c engine=ReplicatedReplacingMergeTree() partition-by=intDiv(id,10) ttl=\"_commit_ts + INTERVAL 1 DAY\" settings=a=1",
			"CREATE TABLE IF NOT EXISTS `db`.`t` ON CLUSTER `c` " COLUMNS
			" ENGINE = ReplicatedReplacingMergeTree(`_version`, `_is_deleted`) PARTITION BY intDiv(id,10) "
			"ORDER BY (`id`) TTL _commit_ts + INTERVAL 1 DAY SETTINGS a=1");
	creates("table * engine=\"Distributed(c, db, local, id)\" primary-key=id",
			"CREATE TABLE IF NOT EXISTS `db`.`t` " COLUMNS " ENGINE = Distributed(c, db, local, id) PRIMARY KEY (id)");
#undef COLUMNS
}

/* ---- checks of a table ---- */

static void
checked(struct ch_tab *t, const struct ws_c_relation *r, const char *engine_full, const char *key, const char *want)
{
	struct ch_desc d;
	char name[60];

	describe(&d, plain);
	snprintf(name, sizeof name, "%.*s", (int)strcspn(engine_full, "( "), engine_full);
	d.engine = name;
	d.engine_full = ws_arena_strdup(&d.arena, engine_full);
	d.sorting_key = ws_arena_strdup(&d.arena, key);
	for (int i = 0; i < d.n; i++)
		d.cols[i].key = strstr(key, d.cols[i].name) != NULL;
	err.reason[0] = 0;
	int rc = ch_check_table(t, r, &d, &err);

	if (rc != (*want ? -1 : 0) || strcmp(err.reason, want))
		fail_msg("%s ORDER BY %s: %s, wanted %s", engine_full, key, rc ? err.msg : "ok", want);
	ch_desc_fini(&d);
}

static void
test_check(void **state)
{
	static const char rmt[] = "ReplacingMergeTree(_version, _is_deleted) ORDER BY id";
	struct ws_c_relation full = rel;
	struct ws_emit e;

	(void)state;
	emitter(&e);
	struct ch_tab *t = table(&e);

	full.replident = 'f';
	checked(t, &rel, rmt, "id", "");
	checked(t, &rel, rmt, "(id)", "");
	checked(t, &rel, "ReplicatedReplacingMergeTree('/a', '{r}', _version, _is_deleted) ORDER BY id", "id", "");
	checked(t, &rel, "ReplacingMergeTree(_version) ORDER BY id", "id", "engine_mismatch");
	checked(t, &rel, "ReplacingMergeTree ORDER BY id", "id", "engine_mismatch");
	checked(t, &rel, "MergeTree ORDER BY id", "id", "engine_mismatch");
	checked(t, &rel, "Null", "", "");
	checked(t, &rel, rmt, "bitAnd(id, 1)", "sort_key");
	checked(t, &rel, rmt, "bitAnd(id, 1), id", "");
	checked(t, &rel, rmt, "id, v", "sort_key");
	checked(t, &full, rmt, "id, v", "");
	checked(t, &rel, rmt, "id, _version", "sort_key");
	t->route.deletes = WS_DEL_SOFT;
	checked(t, &rel, "ReplacingMergeTree(_version) ORDER BY id", "id", "soft_needs_full");
	checked(t, &full, "ReplacingMergeTree(_version) ORDER BY id", "id", "");
	t->route.deletes = WS_DEL_HISTORY;
	t->history = true;
	checked(t, &rel, "MergeTree ORDER BY id", "id", "");
	checked(t, &rel, rmt, "id", "engine_mismatch");
	emit_tab_free(t);
	emitter_free(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_watermark),
		cmocka_unit_test(test_sent_seen),
		cmocka_unit_test(test_history_load), cmocka_unit_test(test_note), cmocka_unit_test(test_note_lines), cmocka_unit_test(test_create),
		cmocka_unit_test(test_shape),
	                                   cmocka_unit_test(test_check)};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	char *cmd = ws_asprintf("rm -rf '%s'", dir);

	if (system(cmd) != 0)
		rc = 1;
	free(cmd);
	return rc;
}
