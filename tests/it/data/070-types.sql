-- Tables of random and of extreme values of every type that is decoded; :n random rows each.
-- Random values come from functions of the schema g; setseed makes them the same every time.
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS g CASCADE;
DROP SCHEMA IF EXISTS v CASCADE;
CREATE SCHEMA g;
CREATE SCHEMA v;
SET extra_float_digits = 1;
SET timezone = 'UTC';
SELECT setseed(:seed) \g /dev/null

CREATE FUNCTION g.i(lo bigint, hi bigint) RETURNS bigint LANGUAGE sql AS
	$$SELECT lo + floor(random() * (hi - lo + 1))::bigint$$;
CREATE FUNCTION g.bits() RETURNS bigint LANGUAGE sql AS
	$$SELECT (g.i(0, 4294967295)::bit(32) || g.i(0, 4294967295)::bit(32))::bit(64)::bigint >> g.i(0, 63)::int$$;
CREATE FUNCTION g.digits(n int) RETURNS text LANGUAGE sql AS
	$$SELECT coalesce(string_agg(g.i(0, 9)::text, ''), '') FROM generate_series(1, n)$$;
CREATE FUNCTION g.num() RETURNS numeric LANGUAGE sql AS
	$$SELECT ((ARRAY['', '-'])[g.i(1, 2)] || '0' || CASE WHEN random() < 0.3 THEN repeat('0', g.i(0, 30)::int) ELSE '' END
		|| g.digits(g.i(0, 40)::int) || repeat('0', g.i(0, 3)::int * g.i(0, 5)::int)
		|| CASE WHEN random() < 0.6 THEN '.' || repeat('0', g.i(0, 2)::int * g.i(0, 9)::int) || g.digits(g.i(1, 30)::int)
			|| repeat('0', g.i(0, 6)::int) ELSE '' END)::numeric$$;
CREATE FUNCTION g.f8() RETURNS float8 LANGUAGE sql AS
	$$SELECT CASE g.i(0, 5)
		WHEN 0 THEN g.bits()::float8
		WHEN 1 THEN g.bits()::float8 / 1000
		WHEN 2 THEN random()
		WHEN 3 THEN power(2::float8, g.i(-1074, 1023)::float8)
		ELSE (g.i(1, 9) || '.' || g.digits(17) || 'e' || g.i(-323, 307))::float8 END * (ARRAY[1, -1])[g.i(1, 2)]$$;
CREATE FUNCTION g.f4() RETURNS float4 LANGUAGE sql AS
	$$SELECT CASE g.i(0, 4)
		WHEN 0 THEN g.i(-2147483648, 2147483647)::float4
		WHEN 1 THEN (g.i(-2147483648, 2147483647) / 1000.0)::float4
		WHEN 2 THEN power(2::float8, g.i(-149, 127)::float8)::float4
		ELSE (g.i(1, 9) || '.' || g.digits(8) || 'e' || g.i(-44, 37))::float4 END * (ARRAY[1, -1]::float4[])[g.i(1, 2)]$$;
CREATE FUNCTION g.text() RETURNS text LANGUAGE sql AS
	$$SELECT coalesce(string_agg((ARRAY['a', 'Bc', ' ', '"', '\', ',', '{', '}', 'NULL', 'null', E'\n', E'\t', E'\r', E'\f', E'\v',
		E'\b', E'\x01', E'\x1f', E'\x7f', 'é', '中', '😀', '''', '/', '[', ']', ':', '%', E'\\x', '(', ')', ';', md5(random()::text)])[g.i(1, 33)], ''), '')
		FROM generate_series(1, g.i(0, 6))$$;
CREATE FUNCTION g.name() RETURNS text LANGUAGE sql AS $$SELECT replace(g.text(), '😀', '')$$;
CREATE FUNCTION g.bytes() RETURNS bytea LANGUAGE sql AS
	$$SELECT coalesce(string_agg(decode(lpad(to_hex(g.i(0, 255)), 2, '0'), 'hex'), ''::bytea), '') FROM generate_series(1, g.i(0, 40))$$;
CREATE FUNCTION g.json(depth int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE g.i(0, CASE WHEN depth > 0 THEN 9 ELSE 5 END)
		WHEN 0 THEN to_json(g.text())::text
		WHEN 1 THEN g.num()::text
		WHEN 2 THEN 'true' WHEN 3 THEN 'false' WHEN 4 THEN 'null'
		WHEN 5 THEN g.i(-99, 99)::text || CASE WHEN random() < 0.3 THEN 'e' || g.i(-30, 30) ELSE '' END
		WHEN 6 THEN (SELECT '[' || coalesce(string_agg(g.json(depth - 1), ','), '') || ']' FROM generate_series(1, g.i(0, 5)))
		WHEN 7 THEN (SELECT '[' || coalesce(string_agg(g.json(0), ' , '), '') || ']' FROM generate_series(1, g.i(0, 80)))
		ELSE (SELECT '{' || coalesce(string_agg(to_json(g.text())::text || ' : ' || g.json(depth - 1), ','), '') || '}'
			FROM generate_series(1, g.i(0, 5))) END;
END $$;
CREATE FUNCTION g.interval() RETURNS interval LANGUAGE sql AS
	$$SELECT make_interval(months => g.i(-50, 50)::int * g.i(0, 1)::int, days => g.i(-50, 50)::int * g.i(0, 1)::int)
		+ (g.bits() / 1000 * g.i(0, 1)) * interval '1 microsecond'$$;
CREATE FUNCTION g.ts() RETURNS timestamp LANGUAGE sql AS
	$$SELECT CASE WHEN random() < 0.3 THEN timestamp '4713-01-01 BC' + make_interval(days => g.i(0, 109203000)::int)
		ELSE timestamp '2000-01-01' + make_interval(days => g.i(-20000, 20000)::int) END
		+ (CASE WHEN random() < 0.3 THEN 0 ELSE g.i(0, 86399999999) END * interval '1 microsecond')$$;
CREATE FUNCTION g.date() RETURNS date LANGUAGE sql AS
	$$SELECT CASE WHEN random() < 0.3 THEN date '4713-01-01 BC' + g.i(0, 2147483493 - 2145031948 + 2145031948)::int
		ELSE date '2000-01-01' + g.i(-300000, 300000)::int END$$;
CREATE FUNCTION g.time() RETURNS time LANGUAGE sql AS
	$$SELECT time '00:00' + ((CASE WHEN random() < 0.3 THEN g.i(0, 86399) * 1000000 ELSE g.i(0, 86399999999) END) * interval '1 microsecond')$$;
CREATE FUNCTION g.zone() RETURNS text LANGUAGE sql AS
	$$SELECT (ARRAY['+', '-'])[g.i(1, 2)] || lpad(g.i(0, 14)::text, 2, '0')
		|| (ARRAY['', ':30', ':07:05', ':00:09'])[g.i(1, 4)]$$;
CREATE FUNCTION g.timetz() RETURNS timetz LANGUAGE sql AS $$SELECT (g.time()::text || g.zone())::timetz$$;
CREATE FUNCTION g.inet() RETURNS inet LANGUAGE sql AS
	$$SELECT CASE g.i(0, 2)
		WHEN 0 THEN (g.i(0, 255) || '.' || g.i(0, 255) || '.' || g.i(0, 255) || '.' || g.i(0, 255) || (ARRAY['', '/' || g.i(0, 32)])[g.i(1, 2)])::inet
		ELSE ((SELECT string_agg(CASE WHEN random() < 0.6 THEN '0' WHEN random() < 0.2 THEN 'ffff' WHEN random() < 0.2 THEN '1' ELSE to_hex(g.i(0, 65535)) END, ':')
			FROM generate_series(1, 8)) || (ARRAY['', '/' || g.i(0, 128)])[g.i(1, 2)])::inet END$$;

CREATE TYPE v.mood AS ENUM ('sad', 'ok', 'very happy', 'NULL', '"', 'ü,{}\');
ALTER TYPE v.mood ADD VALUE 'between' BEFORE 'ok';
ALTER TYPE v.mood ADD VALUE 'first' BEFORE 'sad';
CREATE DOMAIN v.posint AS int CHECK (value > 0);
CREATE DOMAIN v.posint2 AS v.posint CHECK (value > 1);
CREATE DOMAIN v.line AS text;
CREATE DOMAIN v.feeling AS v.mood;
CREATE DOMAIN v.ints AS int[];
CREATE TYPE v.pair AS (a int, b text);

-- Extreme values, one table.
CREATE TABLE v.edge (c_bool bool, c_int2 int2, c_int4 int4, c_int8 int8, c_oid oid, c_float4 float4, c_float8 float8,
	c_numeric numeric, c_text text, c_varchar varchar(40), c_bpchar char(10), c_bytea bytea, c_char "char", c_name name,
	c_date date, c_time time, c_timetz timetz, c_ts timestamp, c_tstz timestamptz, c_interval interval, c_uuid uuid,
	c_json json, c_jsonb jsonb, c_inet inet, c_cidr cidr, c_mood v.mood, c_posint v.posint2, c_line v.line,
	c_feeling v.feeling);
INSERT INTO v.edge VALUES
(true, 32767, 2147483647, 9223372036854775807, 4294967295, 'Infinity', 'Infinity', 'Infinity', '', '', '', '', '', '',
	'infinity', '24:00:00', '24:00:00-15:59:59', 'infinity', 'infinity', '0', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
	'{"a" : [1, 2 ] }', '{}', '0.0.0.0/0', '0.0.0.0/0', 'sad', 2, '', 'first'),
(false, -32768, -2147483648, -9223372036854775808, 0, '-Infinity', '-Infinity', '-Infinity', '\N', '\N', '\N', '\x5c4e', '\', '\N',
	'-infinity', '00:00:00', '00:00:00+15:59:59', '-infinity', '-infinity', '-178000000 years', '00000000-0000-0000-0000-000000000000',
	' null', '[]', '255.255.255.255', '255.255.255.255/32', 'very happy', 3, E'\t', 'NULL'),
(NULL, 0, 0, 0, 1, 'NaN', 'NaN', 'NaN', E'a\tb\nc\\d\re', E'a\tb\nc\\d\re', 'x', '\x00', 'x', 'x', '4714-11-24 BC', '23:59:59.999999',
	'23:59:59.999999+00', '4714-11-24 00:00:00 BC', '4714-11-24 00:00:00 BC', '178000000 years', '12345678-9abc-def0-1234-56789abcdef0',
	'"\u00e9"', '"\u00e9"', '::', '::/0', 'NULL', 4, 'x', 'ü,{}\'),
(true, 1, 1, 1, 1, '-0', '-0', 0, 'x', 'x', 'x', '\xff', '\200', 'x', '5874897-12-31', '12:00:00.1', '12:00:00.10', '294276-12-31 23:59:59.999999',
	'294276-12-31 23:59:59.999999', '-1 year 2 mons -3 days 4:5:6.789', gen_random_uuid(), '[]', '[[], {}, [{}], {"": {}}, null]', '::1', '::1/128', '"', 5, 'x', '"'),
(true, 1, 1, 1, 1, 1.17549435e-38, 5e-324, 0.00, 'x', 'x', 'x', '\xff', '\377', 'x', '0001-01-01', '12:00:00.1', '12:00:00.10', '0001-01-01 00:00:00',
	'0001-12-31 00:00:00 BC', '1 year -2 mons +3 days -4:5:6.789', gen_random_uuid(), '1', '1', '::ffff:1.2.3.4', '::ffff:0:0/96', 'ü,{}\', 5, 'x', '"'),
(true, 1, 1, 1, 1, 1e-45, 2.2250738585072014e-308, -0.0000000000000000000000000000001, 'x', 'x', 'x', '\xff', E'\x7f', 'x', '0001-12-31 BC', '12:00:00.1', '12:00:00.10',
	'0044-03-15 12:00:00.5 BC', '2000-02-29 23:59:59.9+14', '-1 microsecond', gen_random_uuid(), 'true', 'true', '::1.2.3.4', '::/96', 'first', 5, 'x', '"'),
(true, 1, 1, 1, 1, 3.4028235e38, 1.7976931348623157e308, 1e131071, 'x', 'x', 'x', '\xff', E'\x01', 'x', '2000-02-29', '12:00:00.1', '12:00:00.10',
	'1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999', '1 day -00:00:01', gen_random_uuid(), '"x"', '"x"', '1::', '1::/16', 'between', 5, 'x', '"'),
(true, 1, 1, 1, 1, 1e6, 1e15, ('0.' || repeat('0', 16382) || '1')::numeric, 'x', 'x', 'x', '\xff', E'\x01', 'x', '1900-03-01', '12:00:00.1', '12:00:00.10',
	'1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999', '-1 day +00:00:01', gen_random_uuid(), '"x"', '123456789012345678901234567890.12345000', '1:0:0:2::', '1:2:3:4:5:6:7:8/128', 'between', 5, 'x', '"'),
(true, 1, 1, 1, 1, 999999, 999999999999999, repeat('9', 2000)::numeric, 'x', 'x', 'x', '\xff', E'\x01', 'x', '1900-02-28', '12:00:00.1', '12:00:00.10',
	'1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999', '1 mon', gen_random_uuid(), '"x"', '"\u0001\u001f\b\f\n\r\t\"\\/\u007f"', '1:0:0:0:1:0:0:0', '10.0.0.0/8', 'between', 5, 'x', '"');
INSERT INTO v.edge SELECT;
INSERT INTO v.edge (c_jsonb) VALUES ((repeat('[', 1000) || repeat(']', 1000))::jsonb), ((repeat('{"a":', 1000) || '1' || repeat('}', 1000))::jsonb);
-- Every "char".
CREATE TABLE v.chars (c "char");
INSERT INTO v.chars SELECT i::int4::"char" FROM generate_series(-128, 127) i;

-- Fixed width first, all of it, then varlenas.
CREATE TABLE v.fixed (c_bool bool, c_int2 int2, c_int8 int8, c_int4 int4, c_oid oid, c_float4 float4, c_float8 float8, c_date date,
	c_time time, c_timetz timetz, c_ts timestamp, c_tstz timestamptz, c_interval interval, c_uuid uuid, c_char "char",
	c_name name, c_mood v.mood, c_posint v.posint2);
INSERT INTO v.fixed SELECT random() < 0.5, g.i(-32768, 32767), g.bits(), g.i(-2147483648, 2147483647), g.i(0, 4294967295), g.f4(), g.f8(), g.date(),
	g.time(), g.timetz(), g.ts(), g.ts() AT TIME ZONE 'UTC', g.interval(), gen_random_uuid(), g.i(-128, 127)::int4::"char",
	g.name()::name, (enum_range(NULL::v.mood))[g.i(1, 8)], g.i(2, 1000) FROM generate_series(1, :n);
-- The same with NULLs, mixed with varlenas, dropped columns and a missing value.
CREATE TABLE v.mixed (c_text text, c_bool bool, gone_text text, c_numeric numeric, c_int2 int2, c_bytea bytea, c_int8 int8, c_json json,
	gone_int int, c_float8 float8, c_jsonb jsonb, c_float4 float4, c_inet inet, c_date date, c_cidr cidr, c_interval interval, c_varchar varchar(100),
	c_timetz timetz, c_bpchar char(20), c_name name, c_line v.line, c_mood v.mood, gone_last text);
CREATE FUNCTION g.maybe() RETURNS bool LANGUAGE sql AS $$SELECT random() < 0.7$$;
CREATE PROCEDURE g.fill_mixed(k int) LANGUAGE sql AS $$
INSERT INTO v.mixed (c_text, c_bool, c_numeric, c_int2, c_bytea, c_int8, c_json, c_float8, c_jsonb, c_float4, c_inet, c_date, c_cidr,
	c_interval, c_varchar, c_timetz, c_bpchar, c_name, c_line, c_mood)
SELECT CASE WHEN g.maybe() THEN g.text() END, CASE WHEN g.maybe() THEN g.maybe() END, CASE WHEN g.maybe() THEN g.num() END,
	CASE WHEN g.maybe() THEN g.i(-32768, 32767) END, CASE WHEN g.maybe() THEN g.bytes() END, CASE WHEN g.maybe() THEN g.bits() END,
	CASE WHEN g.maybe() THEN g.json(2)::json END, CASE WHEN g.maybe() THEN g.f8() END, CASE WHEN g.maybe() THEN g.json(4)::jsonb END,
	CASE WHEN g.maybe() THEN g.f4() END, CASE WHEN g.maybe() THEN g.inet() END, CASE WHEN g.maybe() THEN g.date() END,
	CASE WHEN g.maybe() THEN network(g.inet())::cidr END, CASE WHEN g.maybe() THEN g.interval() END, CASE WHEN g.maybe() THEN left(g.text(), 100) END,
	CASE WHEN g.maybe() THEN g.timetz() END, CASE WHEN g.maybe() THEN left(g.text(), 20) END, CASE WHEN g.maybe() THEN g.name()::name END,
	CASE WHEN g.maybe() THEN g.text() END, CASE WHEN g.maybe() THEN (enum_range(NULL::v.mood))[g.i(1, 8)] END
FROM generate_series(1, k)$$;
INSERT INTO v.mixed (gone_text, gone_int, gone_last, c_int8) VALUES ('x', 1, 'y', 7), (repeat('x', 3000), 1, 'y', 8);
CALL g.fill_mixed(:n / 2);
ALTER TABLE v.mixed DROP gone_text, DROP gone_int, DROP gone_last;
CALL g.fill_mixed(:n / 4);
ALTER TABLE v.mixed ADD m_text text DEFAULT E'a "quoted", \\ one\n', ADD m_int int NOT NULL DEFAULT 42, ADD m_null int, ADD m_num numeric DEFAULT 1.50,
	ADD m_ts timestamptz DEFAULT '2020-02-02 02:02:02.5+00', ADD m_arr int[] DEFAULT '[0:1]={1,NULL}', ADD m_texts text[] DEFAULT ARRAY['a,b', NULL, '"'],
	ADD m_bytes bytea DEFAULT '\x0001', ADD m_json jsonb DEFAULT '{"a": [1, "x"]}', ADD m_mood v.mood DEFAULT 'between', ADD m_f float8 DEFAULT 'NaN',
	ADD m_bool bool DEFAULT true, ADD m_empty text DEFAULT '', ADD m_date date DEFAULT 'infinity', ADD m_interval interval DEFAULT '1 day -1 hour';
CALL g.fill_mixed(:n / 4);

-- Numerics and jsonb again, many.
CREATE TABLE v.numbers (c numeric, d numeric(30, 10), e float8, f float4);
INSERT INTO v.numbers SELECT g.num(), g.i(-100000000000000000, 100000000000000000) / 1000000.0, g.f8(), g.f4() FROM generate_series(1, :n * 4);
INSERT INTO v.numbers (e, f) SELECT power(2::float8, i), CASE WHEN i BETWEEN -149 AND 127 THEN power(2::float8, i)::float4 END FROM generate_series(-1074, 1023) i;
INSERT INTO v.numbers (e, f) SELECT ('1e' || i)::float8, CASE WHEN i BETWEEN -45 AND 38 THEN ('1e' || i)::float4 END FROM generate_series(-323, 308) i;
INSERT INTO v.numbers (c) SELECT (i::text || 'e' || j)::numeric FROM generate_series(-3, 3) i, generate_series(-40, 40) j;

-- Arrays: of every type; several dimensions, lower bounds, NULLs, empty.
CREATE TABLE v.arrays (a_bool bool[], a_int2 int2[], a_int4 int4[], a_int8 int8[], a_oid oid[], a_float4 float4[], a_float8 float8[],
	a_numeric numeric[], a_text text[], a_varchar varchar(10)[], a_bpchar char(3)[], a_bytea bytea[], a_char "char"[], a_name name[],
	a_date date[], a_time time[], a_timetz timetz[], a_ts timestamp[], a_tstz timestamptz[], a_interval interval[], a_uuid uuid[],
	a_json json[], a_jsonb jsonb[], a_inet inet[], a_cidr cidr[], a_mood v.mood[], a_posint v.posint2[], a_ints v.ints, a_feeling v.feeling[]);
INSERT INTO v.arrays SELECT
	ARRAY[g.maybe(), NULL], ARRAY(SELECT g.i(-9, 9)::int2 FROM generate_series(1, g.i(0, 4))), ARRAY[[1, 2], [3, NULL]],
	ARRAY(SELECT g.bits() FROM generate_series(1, g.i(0, 20))), ARRAY[1, 4294967295]::oid[], ARRAY[g.f4(), g.f4()], ARRAY[g.f8(), NULL, g.f8()],
	ARRAY(SELECT CASE WHEN g.maybe() THEN g.num() END FROM generate_series(1, g.i(0, 9))),
	ARRAY(SELECT CASE WHEN g.maybe() THEN g.text() END FROM generate_series(1, g.i(0, 9))),
	ARRAY[left(g.text(), 10)], ARRAY['a', NULL, left(g.text(), 3)], ARRAY[g.bytes(), g.bytes()], ARRAY[g.i(-128, 127)::int4::"char"], ARRAY[g.name()::name, NULL, 'x'],
	ARRAY[g.date(), NULL], ARRAY[g.time()], ARRAY[g.timetz(), NULL, g.timetz()], ARRAY[g.ts(), 'infinity'], ARRAY[g.ts() AT TIME ZONE 'UTC'],
	ARRAY[g.interval(), NULL, g.interval()], ARRAY[gen_random_uuid(), NULL], ARRAY[g.json(2)::json, g.json(1)::json], ARRAY[g.json(3)::jsonb, NULL, g.json(1)::jsonb],
	ARRAY[g.inet(), g.inet()], ARRAY[network(g.inet())::cidr, NULL], enum_range(NULL::v.mood), ARRAY[2, 3]::v.posint2[], ARRAY[g.i(0, 9), NULL]::int[],
	ARRAY['sad', NULL]::v.feeling[]
	FROM generate_series(1, :n / 2);
INSERT INTO v.arrays (a_int4, a_text) VALUES ('{}', '{}'), ('[-2:0]={1,2,3}', '[5:5]={"[1:2]="}'), ('{{{{{{1,2}}}}}}', '{{a,NULL},{"",b}}'),
	('[0:1][2:3]={{1,2},{3,4}}', '{NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL}'), (array_fill(NULL::int, ARRAY[3, 70]), array_fill('x'::text, ARRAY[2, 2], ARRAY[0, -5]));
INSERT INTO v.arrays (a_int4) SELECT array_agg(i) FROM generate_series(1, 3000) i;

-- Long values: compressed in line, external, both; EXTERNAL storage is not compressed.
CREATE TABLE v.long (id int, c text, e text, b bytea, n numeric, j jsonb, a text[], p v.pair, d text);
ALTER TABLE v.long ALTER e SET STORAGE EXTERNAL;
INSERT INTO v.long SELECT i, repeat(g.text(), g.i(1, 4000)::int), repeat(md5(i::text), g.i(1, 200)::int),
	decode(repeat(md5(random()::text), g.i(0, 300)::int), 'hex'), CASE WHEN i % 5 = 0 THEN (g.digits(9000) || '.' || g.digits(2000))::numeric END,
	(SELECT jsonb_agg(g.json(1)::jsonb) FROM generate_series(1, g.i(0, 300))), ARRAY(SELECT g.text() FROM generate_series(1, g.i(0, 400))), ('(' || i || ',x)')::v.pair,
	(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, g.i(0, 150)))
	FROM generate_series(1, greatest(:n / 50, 20)) i;
CREATE TABLE v.longlz4 (LIKE v.long INCLUDING STORAGE);
\if :lz4
ALTER TABLE v.longlz4 ALTER c SET COMPRESSION lz4, ALTER j SET COMPRESSION lz4, ALTER a SET COMPRESSION lz4, ALTER d SET COMPRESSION lz4;
\endif
INSERT INTO v.longlz4 SELECT id, c || 'x', e, b, n, j || '1', a || 'x'::text, p, d || 'x' FROM v.long;

-- What is not decoded; between columns that are.
CREATE TABLE v.other (a int, p point, b text, r int4range, c int, box box, m macaddr, x xml, t tsvector, v v.pair, bit bit(3), money money, ar v.pair[], iv int2vector,
	q text, lsn pg_lsn, snap pg_snapshot, z int);
INSERT INTO v.other SELECT i, point(i, i), 'x' || i, int4range(i, i + 2), i, box(point(1, 2), point(3, 4)), '08:00:2b:01:02:03', '<a/>', to_tsvector('a b ' || i),
	('(' || i || ',y)')::v.pair, B'101', 12.34, ARRAY[('(' || i || ',z)')::v.pair], '1 2', 'q', '0/1', pg_current_snapshot(), i FROM generate_series(1, 100) i;
INSERT INTO v.other (a, z) VALUES (1, 2);
-- Generated columns; virtual ones (18) are not in the tuple.
CREATE TABLE v.generated (a int, s int GENERATED ALWAYS AS (a * 2) STORED, b text);
INSERT INTO v.generated (a, b) SELECT i, i FROM generate_series(1, 10) i;
\if :virtual
ALTER TABLE v.generated ADD w int GENERATED ALWAYS AS (a * 3) VIRTUAL;
INSERT INTO v.generated (a, b) SELECT i, i FROM generate_series(1, 10) i;
ALTER TABLE v.generated ADD c text DEFAULT 'later';
INSERT INTO v.generated (a, b, c) SELECT i, i, i FROM generate_series(1, 10) i;
\endif
CREATE TABLE v.nothing ();
INSERT INTO v.nothing SELECT FROM generate_series(1, 3);
CHECKPOINT;
