/* What sqlgen's tables are made of.  In SQL @ is the schema; in expressions g or $ is a number. */
#ifndef SQLGEN_H
#define SQLGEN_H

#include <stdbool.h>
#include <stddef.h>

/* ---- types and their values: the first one is a default ---- */

#define LITS(...)                                                                                  \
	{                                                                                              \
		__VA_ARGS__, NULL                                                                          \
	}

static const struct type {
	const char *name, *lits[16];
} types[] = {
	{"bool", LITS("true", "false")},
	{"int2", LITS("0", "-32768", "32767")},
	{"int4", LITS("0", "-2147483648", "2147483647", "g")},
	{"int8", LITS("0", "-9223372036854775808", "9223372036854775807", "g * 1000000000000")},
	{"oid", LITS("0", "4294967295")},
	{"float4", LITS("'-0'", "'NaN'", "'Infinity'", "1e-45", "3.4028235e38", "0.1")},
	{"float8", LITS("'-0'", "'NaN'", "'-Infinity'", "4.9406564584124654e-324", "0.1", "g / 3.0")},
	{"numeric", LITS("'NaN'", "'Infinity'", "0", "1e-200", "-1e200", "1.500", "g / 7.0")},
	{"numeric(20,5)", LITS("0", "999999999999999.99999", "-0.00001", "g / 8.0")},
	{"text", LITS("''", "'x'", "E'tab\\t nl\\n \\\\ ''quoted'' \\u00e4\\u20ac'", "md5((g)::text)",
				  "repeat('r', 300)")},
	{"varchar(20)", LITS("''", "'v' || g", "'\xc3\xa4\xe2\x82\xac'")},
	{"char(10)", LITS("''", "'c'", "'0123456789'")},
	{"\"char\"", LITS("'a'", "'~'")},
	{"name", LITS("''", "'a name'", "repeat('n', 63)::name")},
	{"bytea", LITS("''", "'\\x00ff0a5c27'", "decode(repeat('00ff', 100), 'hex')")},
	{"date", LITS("'0001-01-01'", "'1970-01-01'", "'2149-06-07'", "date '2020-01-01' + (g)::int")},
	{"time", LITS("'00:00'", "'24:00'", "'12:34:56.789012'")},
	{"timetz", LITS("'00:00+15:59'", "'24:00-15:59'")},
	{"timestamp", LITS("'1970-01-01'", "'2038-01-19 03:14:08.000001'",
					   "timestamp '2020-01-01' + g * interval '1 hour'")},
	{"timestamptz", LITS("'1970-01-01 00:00+00'", "'2200-01-01 00:00:00.999999+00'")},
	{"interval", LITS("'0'", "'178000000 years'", "'-1 mon +1 day -00:00:00.000001'")},
	{"uuid", LITS("'00000000-0000-0000-0000-000000000000'", "md5((g)::text)::uuid")},
	{"json", LITS("'null'", "'{\"a\" : 1,  \"a\":2}'")},
	{"jsonb", LITS("'{}'", "'{\"b\":1,\"a\":[1,{\"x\":null}],\"c\":1.10}'", "to_jsonb(g)")},
	{"inet", LITS("'0.0.0.0/0'", "'255.255.255.255'", "'2001:db8::1/64'")},
	{"cidr", LITS("'10.0.0.0/8'", "'::/0'")},
	{"@.mood", LITS("'sad'", "'ok'", "'it''s, \"so\"'")},
	{"@.pos", LITS("1", "2147483647")},
	{"int4[]", LITS("'{}'", "'{1,NULL,-2147483648}'", "ARRAY[(g)::int, 0]")},
	{"text[]", LITS("'{}'", "'{a,NULL,\"NULL\",\"\",\"q\\\"c\\\\\"}'")},
	{"numeric(10,3)[]", LITS("'{}'", "'{1.5,NULL,-9999999.999}'")},
	{"timestamptz[]", LITS("'{}'", "'{2020-01-01 00:00+00,NULL}'")},
	{"@.mood[]", LITS("'{}'", "'{sad,NULL,ok}'")},
};
#define NTYPES (sizeof types / sizeof types[0])

/* ---- tables ---- */

static const struct kind {
	const char *name, *keys, *names, *exprs; /* columns, their names, their values of a number */
	const char *after;                       /* SQL that makes the identity */
	const char *copy;                        /* of numbers into rows for COPY, or NULL */
	bool partitioned, identity_full;
} kinds[] = {
	{"k_int", "id int PRIMARY KEY", "id", "$", "", "cat", false, false},
	{"k_text", "id text PRIMARY KEY", "id", "'k' || $", "", "sed s/^/k/", false, false},
	{"k_multi", "k2 date, id int, k3 uuid, PRIMARY KEY (k3, id, k2)", "id, k2, k3",
	 "$, date '2020-01-01' + $ % 3, md5(($ % 4)::text)::uuid", "", NULL, false, false},
	{"k_num", "id numeric PRIMARY KEY", "id", "$ / 4.0", "", "sed s/$/.25/", false, false},
	{"k_time", "id timestamptz PRIMARY KEY", "id",
	 "timestamptz '2020-01-01 00:00+00' + $ * interval '1 hour'", "", NULL, false, false},
	{"i_full", "id bigint PRIMARY KEY", "id", "$", "ALTER TABLE @.i_full REPLICA IDENTITY FULL",
	 "cat", false, true},
	{"i_index", "id int NOT NULL, u text NOT NULL", "id, u", "$, 'u' || $",
	 "CREATE UNIQUE INDEX i_index_i ON @.i_index (u, id); ALTER TABLE @.i_index REPLICA IDENTITY "
	 "USING INDEX i_index_i",
	 NULL, false, false},
	{"part", "id int, k int, PRIMARY KEY (id, k)", "id, k", "$, $ * 7 % 30",
	 "CREATE TABLE @.part_a PARTITION OF @.part FOR VALUES FROM (MINVALUE) TO (10); CREATE TABLE "
	 "@.part_b PARTITION OF @.part "
	 "FOR VALUES FROM (10) TO (20) PARTITION BY HASH (id); CREATE TABLE @.part_b0 PARTITION OF "
	 "@.part_b FOR VALUES WITH (MODULUS 2, "
	 "REMAINDER 0); CREATE TABLE @.part_b1 PARTITION OF @.part_b FOR VALUES WITH (MODULUS 2, "
	 "REMAINDER 1); CREATE TABLE @.part_d "
	 "PARTITION OF @.part DEFAULT; ALTER TABLE @.part_b1 REPLICA IDENTITY FULL",
	 NULL, true, false},
	{"ren", "id int PRIMARY KEY", "id", "$", "", "cat", false, false},
	{"parent", "id int PRIMARY KEY", "id", "$",
	 "CREATE TABLE @.child (extra int, PRIMARY KEY (id)) INHERITS (@.parent)", "cat", false, false},
	{"child", NULL, "id", "$", "", "cat", false, false}, /* parent's columns */
	{"long", "id int PRIMARY KEY, l1 text, l2 text, l3 bytea", "id", "$",
	 "ALTER TABLE @.long ALTER l1 SET STORAGE EXTERNAL, ALTER l3 SET STORAGE EXTERNAL", "cat",
	 false, false},
};
#define NKINDS (sizeof kinds / sizeof kinds[0])

/* ---- statements: #x is a number below 3, #k a key, #n any ---- */

static const char *const noises[] = {
	("CREATE TEMP TABLE IF NOT EXISTS tmp (id int, v text); INSERT INTO tmp VALUES (1, 'x'); "
	 "DROP TABLE tmp"),
	"INSERT INTO @.unlogged VALUES (#k, 'x') ON CONFLICT (id) DO UPDATE SET v = 'y'",
	"REFRESH MATERIALIZED VIEW @.mv",
	"REFRESH MATERIALIZED VIEW CONCURRENTLY @.mv",
	"SELECT nextval('@.seq'), setval('@.seq', 1 + #n)",
	"SELECT pg_logical_emit_message(true, 'p', 'm#n')",
	"SELECT pg_logical_emit_message(false, 'p', 'm#n')",
	"CHECKPOINT",
	"CHECKPOINT",
	"SELECT @.subs(#k, #x)",
	"INSERT INTO @.ins SELECT 'i' || g, g FROM generate_series(1, #k) g",
	"SELECT pg_sleep(0.00#x)",
	"SELECT txid_current()",
	"LOCK TABLE @.k_int; SELECT pg_switch_wal()",
};

/* Whole tables; `brief` is for those that a transaction makes and drops. */
static const char *const wholes[] = {
	"CREATE TABLE IF NOT EXISTS @.n#x (id int PRIMARY KEY, v text)",
	"INSERT INTO @.n#x VALUES (#k, 'n') ON CONFLICT DO NOTHING",
	"CREATE TABLE IF NOT EXISTS @.n#x (id, v, PRIMARY KEY (id)) AS SELECT 1, 'x'",
	"DROP TABLE IF EXISTS @.n#x",
	("BEGIN; CREATE TABLE @.brief (id int PRIMARY KEY, v text); INSERT INTO @.brief SELECT g, 'b' "
	 "FROM generate_series(1, 20) g; ALTER TABLE @.brief ALTER id TYPE bigint; TRUNCATE @.brief; "
	 "INSERT INTO @.brief VALUES (1, 'x'); DROP TABLE @.brief; COMMIT"),
	"ALTER TABLE @.ren RENAME TO ren_b",
	"ALTER TABLE @.ren_b RENAME TO ren",
	"ALTER TABLE @.k_int REPLICA IDENTITY FULL",
	"ALTER TABLE @.k_int REPLICA IDENTITY DEFAULT",
	"ALTER TABLE @.part DETACH PARTITION @.part_a",
	"ALTER TABLE @.part ATTACH PARTITION @.part_a FOR VALUES FROM (MINVALUE) TO (10)",
	"ALTER TYPE @.mood ADD VALUE IF NOT EXISTS 'more#x'",
	"ALTER TABLE @.k_int DROP CONSTRAINT k_int_pkey, ADD PRIMARY KEY (id)",
	"ALTER TABLE @.k_text OWNER TO CURRENT_USER; UPDATE @.k_text SET n = #n WHERE id = 'k#k'",
	"COMMENT ON TABLE @.k_int IS 'c#n'; GRANT SELECT ON @.k_int TO PUBLIC",
	/* Fails in the middle of a rewrite. */
	("ALTER TABLE @.k_int ALTER COLUMN n TYPE int USING (CASE WHEN id % 7 = 3 THEN 1 / 0 ELSE n "
	 "END)"),
};
#endif
