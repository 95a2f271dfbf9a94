/* A seeded workload as SQL text, for sqlrun:
 *   sqlgen SEED STATEMENTS [SCHEMA [toast]]
 * Each line is a session's number, a tab and SQL.  Session 0 goes first and makes the tables:
 * every kind of key and replica identity, columns of every type with values at their edges.  The
 * others are side by side, over few keys, so that they meet; what fails is part of it.  toast: rows
 * with long values are updated without them also where the replica identity does not carry them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlgen.h"

#define SESSIONS 5
#define KEYS     40
#define NCOLS    7 /* typed columns of a table */

static uint64_t state;
static const char *schema = "g";
static bool toast;
static int ngid;

static unsigned
rnd(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static bool
one_in(unsigned n)
{
	return rnd(n) == 0;
}

/* Text with @ for the schema and, when n is given, $ for it. */
static void
put(const char *s, const char *n)
{
	for (; *s; s++)
		if (*s == '@')
			fputs(schema, stdout);
		else if (*s == '$' && n)
			printf("(%s)", n);
		else
			putchar(*s);
}

/* A value, g a number in it. */
static void
value(const struct type *t, bool not_null)
{
	unsigned n = 0;

	while (t->lits[n])
		n++;
	if (!not_null && one_in(6))
		fputs("NULL", stdout);
	else
		printf("(%s)::", t->lits[rnd(n)]), put(t->name, NULL);
}

/* ---- tables ---- */

static const struct type *cols[NKINDS][NCOLS];
static bool not_null[NKINDS][NCOLS];

static void
make_tables(void)
{
	printf("0\tCREATE SCHEMA %s\n", schema);
	printf("0\tSET allow_in_place_tablespaces = on\n0\tCREATE TABLESPACE %s LOCATION ''\n0\t",
	       schema);
	put("CREATE TYPE @.mood AS ENUM ('sad', 'ok', 'it''s, \"so\"')\n0\tCREATE DOMAIN @.pos AS int "
		"CHECK (VALUE > 0)\n",
		NULL);
	for (size_t i = 0; i < NKINDS; i++) {
		bool child = i && !kinds[i].keys;

		for (int c = 0; c < NCOLS; c++) {
			cols[i][c] = child ? cols[i - 1][c] : &types[rnd(NTYPES)];
			not_null[i][c] = child ? not_null[i - 1][c] : one_in(4);
		}
		if (!kinds[i].keys)
			continue;
		printf("0\tCREATE TABLE %s.%s (%s, n int DEFAULT 0", schema, kinds[i].name, kinds[i].keys);
		for (int c = 0; c < NCOLS; c++) {
			printf(", c%d ", c);
			put(cols[i][c]->name, NULL);
			if (not_null[i][c])
				printf(" NOT NULL DEFAULT "), put(cols[i][c]->lits[0], NULL);
		}
		printf(")%s\n", kinds[i].partitioned ? " PARTITION BY RANGE (k)" : "");
		if (*kinds[i].after)
			fputs("0\t", stdout), put(kinds[i].after, NULL), putchar('\n');
	}
	if (!toast)
		printf("0\tALTER TABLE %s.long REPLICA IDENTITY FULL\n", schema);
	put("0\tCREATE TABLE @.ins (v text, n int)\n0\tCREATE UNLOGGED TABLE @.unlogged (id int "
		"PRIMARY KEY, v text)\n",
		NULL);
	put("0\tCREATE SEQUENCE @.seq\n0\tCREATE MATERIALIZED VIEW @.mv AS SELECT id, n FROM "
		"@.k_int\n0\tCREATE UNIQUE INDEX ON @.mv (id)\n",
		NULL);
	/* Subtransactions of which every third fails, as deep as asked for. */
	put("0\tCREATE FUNCTION @.subs(a int, depth int) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN "
		"FOR i IN a .. a + 70 LOOP BEGIN "
		"INSERT INTO @.ren (id, n) VALUES (1000 + i, depth) ON CONFLICT (id) DO UPDATE SET n = "
		"@.ren.n + 1; IF depth > 0 AND i % 35 = 0 "
		"THEN PERFORM @.subs(a + i, depth - 1); END IF; IF i % 3 = 0 THEN RAISE EXCEPTION 'x'; END "
		"IF; EXCEPTION WHEN raise_exception "
		"THEN NULL; END; END LOOP; END $f$\n",
		NULL);
}

/* ---- statements ---- */

static unsigned session;

static void __attribute__((format(printf, 1, 2))) out(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

static void
name(size_t k)
{
	out("%s.%s%s", schema, kinds[k].name, !strcmp(kinds[k].name, "ren") && one_in(3) ? "_b" : "");
}

/* First key column's value of a number. */
static void
key(size_t k, unsigned n)
{
	char number[16], first[200];
	const char *e = kinds[k].exprs;
	size_t len = strcspn(e, ",");

	snprintf(number, sizeof number, "%u", n);
	snprintf(first, sizeof first, "%.*s", (int)len, e);
	put(first, number);
}

static void
where(size_t k)
{
	unsigned n = rnd(KEYS);

	if (one_in(3)) {
		out(" WHERE id BETWEEN ");
		key(k, n);
		out(" AND ");
		key(k, n + rnd(6));
	} else {
		out(" WHERE id = ");
		key(k, n);
	}
}

static void
long_value(void)
{
	out("(SELECT string_agg(md5(x::text || '%u'), '') FROM generate_series(1, %u) x)", rnd(1000),
		one_in(3) ? 1 + rnd(60) : 70 + rnd(400));
}

static void
set_columns(size_t k)
{
	out(" SET n = %u", rnd(1000));
	for (int c = 0; c < NCOLS; c++)
		if (one_in(3)) {
			out(", c%d = ", c);
			out("(SELECT ");
			value(cols[k][c], not_null[k][c]);
			out(" FROM (SELECT %u) x (g))", rnd(100));
		}
	if (!strcmp(kinds[k].name, "long") && one_in(2)) {
		out(", l%u = ", 1 + rnd(2));
		long_value();
	}
	if (!strcmp(kinds[k].name, "long") && one_in(4))
		out(", l3 = decode(md5('%u') || repeat('00ff', %u), 'hex')", rnd(1000), rnd(3000));
}

static void
insert(size_t k)
{
	unsigned a = rnd(KEYS), b = one_in(3) ? a + rnd(8) : a;

	if (one_in(12))
		a = 100 + rnd(1000), b = a + rnd(300);
	out("INSERT INTO ");
	name(k);
	out(" (%s, n", kinds[k].names);
	for (int c = 0; c < NCOLS; c++)
		out(", c%d", c);
	out(") SELECT ");
	put(kinds[k].exprs, "g");
	out(", g");
	for (int c = 0; c < NCOLS; c++) {
		out(", ");
		value(cols[k][c], not_null[k][c]);
	}
	out(" FROM generate_series(%u, %u) g", a, b);
	if (!strcmp(kinds[k].name, "i_index") ||
		strstr(kinds[k].keys ? kinds[k].keys : "", "PRIMARY") == NULL)
		return;
	const char *keys = kinds[k].names;

	if (one_in(3)) {
		out(" ON CONFLICT DO NOTHING");
	} else if (one_in(2)) {
		out(" ON CONFLICT (%s) DO UPDATE", keys);
		set_columns(k);
	}
}

static void
copy(size_t k)
{
	unsigned a = one_in(2) ? rnd(KEYS) : 2000 + rnd(5000);

	if (!kinds[k].copy) {
		out("COPY %s.ins FROM PROGRAM 'seq %u %u | sed \"s/.*/&\\t&/\"'", schema, a, a + rnd(1500));
		return;
	}
	out("COPY ");
	name(k);
	out(" (id) FROM PROGRAM 'seq %u %u | %s'", a, a + (one_in(4) ? rnd(1500) : rnd(5)),
		kinds[k].copy);
}

static void
change(void)
{
	size_t k = rnd(NKINDS);
	bool part = kinds[k].partitioned;

	switch (rnd(12)) {
	case 0:
	case 1:
	case 2:
		insert(k);
		break;
	case 3:
	case 4:
	case 5:
		out("UPDATE ");
		name(k);
		set_columns(k);
		where(k);
		break;
	case 6:
		out("UPDATE ");
		name(k);
		out(" SET id = ");
		key(k, rnd(KEYS));
		where(k);
		break;
	case 7:
		if (part) {
			out("UPDATE %s.part SET k = (k + %u) %% 30", schema, rnd(30));
			where(k);
		} else {
			out("MERGE INTO ");
			name(k);
			out(" t USING (SELECT x AS y FROM generate_series(%u, %u) x) s ON t.n = s.y WHEN "
				"MATCHED AND y %% 3 = 0 THEN DELETE WHEN "
				"MATCHED THEN UPDATE SET n = y + 1",
				rnd(KEYS), KEYS + rnd(KEYS));
		}
		break;
	case 8:
	case 9:
		out("DELETE FROM ");
		name(k);
		where(k);
		break;
	case 10:
		copy(k);
		break;
	case 11:
		out("UPDATE ");
		name(k);
		out(" SET n = n, c0 = c0");
		where(k);
		break;
	}
}

/* ---- DDL ---- */

static void
truncates(size_t k)
{
	static const char *const how[] = {"", " CASCADE", " RESTART IDENTITY",
									  " CONTINUE IDENTITY RESTRICT"};

	out("TRUNCATE ");
	name(k);
	if (one_in(3))
		out(", %s.part", schema);
	if (one_in(3))
		out(", %s.unlogged", schema);
	out("%s", how[rnd(4)]);
}

static void
column(size_t k)
{
	unsigned x = rnd(3);
	const struct type *t = &types[rnd(NTYPES)];

	out("ALTER TABLE ");
	name(k);
	switch (rnd(9)) {
	case 0:
	case 1:
		out(" ADD COLUMN IF NOT EXISTS x%u ", x);
		put(t->name, NULL);
		if (one_in(2)) {
			out(" %sDEFAULT (%s)::", one_in(3) ? "NOT NULL " : "", t->lits[0]);
			put(t->name, NULL);
		}
		break;
	case 2:
		out(" ADD COLUMN IF NOT EXISTS x%u float8 DEFAULT random()", x);
		break;
	case 3:
		out(" ADD COLUMN IF NOT EXISTS x%u int GENERATED ALWAYS AS (n %% 1000) STORED", x);
		break;
	case 4:
	case 5:
		out(" DROP COLUMN IF EXISTS x%u", x);
		break;
	case 6:
		out(" RENAME COLUMN x%u TO x%u", x, rnd(3));
		break;
	case 7:
		out(" ALTER COLUMN x%u TYPE text USING x%u::text", x, x);
		break;
	case 8:
		out(" ALTER COLUMN n TYPE %s", one_in(2) ? "int USING (n % 1000000)" : "bigint");
		break;
	}
}

static void
files(size_t k)
{
	const char *t = kinds[k].partitioned ? "part_a" : kinds[k].name;

	switch (rnd(8)) {
	case 0:
		out("CLUSTER %s.%s USING %s_%s", schema, t, t,
			kinds[k].partitioned || strcmp(t, "i_index") ? "pkey" : "i");
		break;
	case 1:
		out("VACUUM (FULL) %s.%s", schema, t);
		break;
	case 2:
		out("REINDEX TABLE %s.%s", schema, t);
		break;
	case 3:
		out("BEGIN; DELETE FROM %s.%s WHERE n %% 9 = 1; ALTER TABLE %s.%s SET UNLOGGED; DELETE "
			"FROM %s.%s WHERE n %% 9 = 2; ALTER TABLE "
			"%s.%s SET LOGGED; UPDATE %s.%s SET n = n + 1 WHERE n %% 9 = 3; COMMIT",
			schema, t, schema, t, schema, t, schema, t, schema, t);
		break;
	case 4:
		out("ANALYZE %s.%s", schema, t);
		break;
	case 5:
		out("VACUUM (FREEZE) %s.%s", schema, t);
		break;
	case 7:
		out("ALTER TABLE %s.%s SET TABLESPACE %s", schema, t, one_in(2) ? schema : "pg_default");
		break;
	case 6:
		out("CREATE INDEX ON %s.%s (n)", schema, t);
		break;
	}
}

/* One of the templates of sqlgen.h. */
static void template(const char *const *all, size_t n)
{
	for (const char *s = all[rnd((unsigned)n)]; *s; s++)
		if (*s == '@')
			fputs(schema, stdout);
		else if (*s == '#' && *++s)
			out("%u", *s == 'x' ? rnd(3) : *s == 'k' ? rnd(KEYS) : rnd(1000));
		else
			putchar(*s);
}

static void
statement(void)
{
	unsigned what = rnd(100);
	size_t k = rnd(NKINDS);

	if (what < 80)
		change();
	else if (what < 90)
		template(noises, sizeof noises / sizeof noises[0]);
	else if (what < 93)
		column(k);
	else if (what < 95)
		truncates(k);
	else if (what < 97)
		files(k);
	else
		template(wholes, sizeof wholes / sizeof wholes[0]);
}

int
main(int argc, char **argv)
{
	bool open[SESSIONS + 1] = {false};
	unsigned depth[SESSIONS + 1] = {0};

	if (argc < 3 || argc > 5) {
		fprintf(stderr, "usage: sqlgen SEED STATEMENTS [SCHEMA [toast]]\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
	schema = argc > 3 ? argv[3] : schema;
	toast = argc > 4;
	make_tables();
	for (long n = strtol(argv[2], NULL, 10); n > 0; n--) {
		unsigned s = session = 1 + rnd(SESSIONS), what = rnd(20);

		out("%u\t", s);
		if (!open[s] && what < 7) {
			out("BEGIN");
			open[s] = true;
		} else if (open[s] && what < 3) {
			if (one_in(6))
				out("PREPARE TRANSACTION '%s %d'", schema, ngid++);
			else
				out(one_in(5) ? "ROLLBACK" : "COMMIT");
			open[s] = false;
			depth[s] = 0;
		} else if (open[s] && what < 5) {
			out("SAVEPOINT s%u", ++depth[s]);
		} else if (open[s] && depth[s] && what < 7) {
			out("%s s%u", one_in(2) ? "ROLLBACK TO" : "RELEASE", depth[s]);
			depth[s]--;
		} else if (what == 7 && ngid && !open[s] && one_in(2)) {
			out("%s PREPARED '%s %u'", one_in(4) ? "ROLLBACK" : "COMMIT", schema,
				rnd((unsigned)ngid));
		} else {
			statement();
		}
		putchar('\n');
	}
	for (unsigned s = 1; s <= SESSIONS; s++)
		if (open[s])
			printf("%u\t%s\n", s, one_in(3) ? "ROLLBACK" : "COMMIT");
	return 0;
}
