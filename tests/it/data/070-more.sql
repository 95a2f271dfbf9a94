-- The rest of the types: bits, geometry, identifiers, text search, paths, ranges, composites, nested
-- arrays and what contributed modules bring; made after 070-types.sql, with its functions.  :n
-- random rows.
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
SET extra_float_digits = 1;
SET timezone = 'UTC';
SET lc_monetary = 'C';
SELECT setseed(:seed) \g /dev/null

-- A function's call for each row: a constant one would be evaluated once.
CREATE FUNCTION g.pick(VARIADIC v text[]) RETURNS text LANGUAGE sql VOLATILE AS
	$$SELECT v[g.i(1, cardinality(v))]$$;
CREATE FUNCTION g.bitstr(most int) RETURNS text LANGUAGE sql AS
	$$SELECT coalesce(string_agg(g.i(0, 1)::text, ''), '') FROM generate_series(1, g.i(0, most))$$;
CREATE FUNCTION g.f() RETURNS float8 LANGUAGE sql AS
	$$SELECT CASE g.i(0, 9) WHEN 0 THEN 'Infinity' WHEN 1 THEN '-Infinity' WHEN 2 THEN 'NaN' WHEN 3 THEN '-0' WHEN 4 THEN 0
		WHEN 5 THEN g.i(-9, 9) ELSE g.f8() END$$;

CREATE TABLE v.bits (a bit, b bit(3), c bit(64), d varbit, e varbit(70), f bit varying[], g varbit);
INSERT INTO v.bits SELECT (g.i(0, 1)::text)::bit, (g.i(0, 7)::int)::bit(3), g.bits()::bit(64), g.bitstr(9)::varbit,
	g.bitstr(70)::varbit, ARRAY[g.bitstr(9)::varbit, NULL, ''], g.bitstr(200)::varbit FROM generate_series(1, :n);
INSERT INTO v.bits (d, g) VALUES ('', repeat('10', 40000)::varbit);

CREATE TABLE v.geo (a point, b lseg, c path, d box, e polygon, f line, g circle, ap point[], ab box[], ac path[]);
INSERT INTO v.geo SELECT point(g.f(), g.f()), lseg(point(g.f(), g.f()), point(g.f8(), 1)),
	(g.pick('[(1,2),(3.5,4e300)]', '((0,0),(1,1),(-0,5e-324))', '((1,2))', '[(1,2)]', '[(NaN,Infinity),(-Infinity,1e15)]'))::path,
	box(point(g.f8(), g.f8()), point(g.f8(), g.f8())), (g.pick('((0,0),(1e100,1),(2,0.1))', '((1,1))', '((0,0),(NaN,Infinity))'))::polygon,
	line(point(g.i(-9, 9), g.i(-9, 9)), point(g.i(10, 20), 1.25)), circle(point(g.f(), g.f()), abs(g.i(0, 1000) / 8.0)),
	ARRAY[point(1, 2), NULL, point(g.f(), -0.5)], ARRAY[box(point(1, 2), point(3, 4)), NULL, box(point(g.f8(), 2), point(3, 4))],
	ARRAY['[(1,2),(3,4)]'::path] FROM generate_series(1, :n);
INSERT INTO v.geo (d, f, ab) VALUES ('(1,2),(1,2)', '{0,-1,0}', '{}'), ('(Infinity,NaN),(1,2)', '{1e300,-1e-300,0.1}', '[0:1]={NULL;(1,1),(0,0)}');

CREATE TABLE v.ids (a macaddr, b macaddr8, c money, d pg_lsn, e tid, f xid, g xid8, h cid, i regclass, j regtype, k regprocedure, l refcursor,
	m int2vector, n oidvector, o regclass[], p money[], q tid[], r xid8[], s regrole, t regnamespace, u int2vector[], w regproc, x regoper, y regconfig,
	z regcollation, aa macaddr[], bb regdictionary, cc regoperator);
INSERT INTO v.ids SELECT (lpad(to_hex(g.i(0, 281474976710655)), 12, '0'))::macaddr, (lpad(to_hex(g.bits()), 16, '0'))::macaddr8,
	(g.pick('0', '0.01', '-0.01', '1', '-1234567.89', '999.99', '1000', '-92233720368547758.08', '92233720368547758.07', g.i(-999999, 999999)::text))::numeric::money,
	(g.pick('0/0', 'FFFFFFFF/FFFFFFFF', to_hex(g.i(0, 4294967295)) || '/' || to_hex(g.i(0, 4294967295))))::pg_lsn, ('(' || g.i(0, 4294967295) || ',' || g.i(0, 65535) || ')')::tid, (g.i(0, 4294967295)::text)::xid,
	(g.pick('0', '18446744073709551615', g.i(0, 9000000000000000000)::text))::xid8, (g.i(0, 4294967295)::text)::cid,
	(g.pick('v.bits'::regclass::oid::text, '1259', '0', '99999'))::oid::regclass, (g.pick('23', 'v.mood'::regtype::oid::text, '0'))::oid::regtype, 'pg_sleep(float8)'::regprocedure, g.text()::refcursor,
	(g.pick('', '1', '1 -2 32767 -32768'))::int2vector, (g.pick('', '1', '1 4294967295'))::oidvector, ARRAY['pg_class', NULL, 'v.bits']::regclass[],
	ARRAY[1234.5, NULL, -1]::money[], ARRAY['(1,2)', NULL]::tid[], ARRAY['1', '18446744073709551615']::xid8[], current_user::regrole, 'v'::regnamespace,
	ARRAY['1 2'::int2vector, NULL], 'pg_sleep'::regproc, '||/'::regoper, 'english'::regconfig, '"C"'::regcollation,
	ARRAY['08:00:2b:01:02:03'::macaddr, NULL], 'simple'::regdictionary, '+(int4,int4)'::regoperator
	FROM generate_series(1, :n);

CREATE TABLE v.docs (a xml, b tsvector, c tsquery, d jsonpath, at tsvector[], aq tsquery[], aj jsonpath[], ax xml[]);
INSERT INTO v.docs (b) SELECT (SELECT coalesce(string_agg(quote_literal(replace(replace(g.text(), '\', '\\'), E'\x01', '') || 'x') || ':' || g.i(1, 20000) || g.pick('', 'A', 'B', 'C', 'D'), ' '), '')
	FROM generate_series(1, g.i(0, 20)))::tsvector FROM generate_series(1, :n);
INSERT INTO v.docs (b, at) VALUES ('', '{}'), ($$'a b':1,2A,3 'it''s':16383 c '\\x'$$, ARRAY['a:1'::tsvector, NULL, '', 'b c']), ('x', NULL),
	((SELECT string_agg('w' || i || ':' || i % 16000 + 1, ' ') FROM generate_series(1, 3000) i)::tsvector, NULL),
	(strip('a:1 b:2'::tsvector), NULL), (to_tsvector('english', 'The quick brown fox jumps over the lazy dog''s back'), NULL),
	(array_to_tsvector('{z,a,"b c",é}'), NULL), (setweight('a:1 b:2'::tsvector, 'B') || 'c:3'::tsvector, NULL);
INSERT INTO v.docs (c, aq) SELECT x::tsquery, ARRAY[x::tsquery, NULL] FROM unnest(ARRAY['', 'a', '!a', '!!a', 'a & b', 'a | b', 'a <-> b', 'a <5> b', 'a <0> b', 'a & b | c', 'a & (b | c)',
	'!(a & b)', '!a & b', '!(a | !b) & c', '(a <-> b) <-> c', 'a <-> (b <-> c)', 'a <-> (b <3> c) & d', 'a <-> (b & c)', '(a | b) <-> (c | d)', '!(a <-> b)', 'a:*', 'a:AB', 'a:*ABCD & b:D',
	$$'it''s' & '\\x' | 'a b':*C$$, '(a & b & c & d) | (e & f & g)', 'a <16384> b', '!a <-> !b', '(!a | b) & !(c <-> d)', 'é & "中"']) x;
INSERT INTO v.docs (c) SELECT string_agg('w' || i, ' & ')::tsquery FROM generate_series(1, 200) i;
INSERT INTO v.docs (c) SELECT (repeat('!(a | ', 100) || 'b' || repeat(')', 100))::tsquery;
INSERT INTO v.docs (c) SELECT websearch_to_tsquery('english', x) FROM unnest(ARRAY['"quick fox" -lazy or dog', 'a or the', 'cats "big dogs" -"small birds"']) x;
INSERT INTO v.docs (d, aj) SELECT x::jsonpath, ARRAY[x::jsonpath, NULL] FROM unnest(ARRAY['$', 'strict $', 'lax $', '$.a', '$."a b"', '$.*', '$.**', '$.**{2}', '$.**{2 to 5}', '$.**{last}', '$.**{2 to last}',
	'$.**{last to 3}', '$[*]', '$[0]', '$[0, 1 to 3, last]', '$[last - 1]', '$[$.a]', '$.a.b[*].c', '1', '-1', '1.50', '"x"', 'true', 'false', 'null', '$x', '$"x y"', '$.a + 1', '$.a + $.b * 2',
	'($.a + $.b) * 2', '$.a - ($.b - 1)', '-$.a', '+(-1)', '-($.a + 1)', '$.a % 2', '1 / 2', '$ ? (@ > 1)', '$.a ? (@.b == 1 && @.c != "x")', '$ ? (@.a > 1 || @.b < 2 && @.c >= 3)',
	'$ ? ((@.a > 1 || @.b < 2) && @.c <= 3)', '$ ? (!(@.a == 1))', '$ ? ((@.a == 1) is unknown)', '$ ? (exists (@.a))', '$ ? (exists (@.a ? (@ > 1)))', '$ ? (@ starts with "a")', '$ ? (@ starts with $v)',
	'$ ? (@ like_regex "^a.*b$")', '$ ? (@ like_regex "a" flag "i")', '$ ? (@ like_regex "a\"b" flag "ism")', '$ ? (@ like_regex "a" flag "q")', '$.type()', '$.a.size()', '$.abs().floor().ceiling()',
	'$.double()', '$.datetime()', '$.datetime("HH24:MI")', '$.keyvalue()', '$.keyvalue().key', '(1).type()', '(1.5).abs()', '("x").type()', '(true).type()', '$.a.b.c.d ? (@.e[*].f > 1 && @.g == null)',
	'($.a == 1) || ($.b == 2)', '$.a == $.b', '$ ? (@.a + 1 > 2 * @.b - 3)', '$.a[*] ? (@ > 1) ? (@ < 5).b', '"\u00e9\n\"\\"', '$."\u0001\t"', '($).a', '(($.a + 1).abs() - 2).floor()', '1 + 2 + 3', '1 - (2 - 3)',
	'(1 + 2) * (3 + 4)', '-(-(-1))', '$[1 + 1 to $.a * 2]', '$.a ? (@ like_regex "x" && !(@ starts with "y"))', '$varname.a[*]', '12345678901234567890.123', '1e10', '0.0', '-0']) x;
INSERT INTO v.docs (d) SELECT ('$ ? (' || repeat('!(', 300) || '@ == 1' || repeat(')', 300) || ')')::jsonpath;
INSERT INTO v.docs (d) SELECT ('$' || repeat('.a[*]', 2000))::jsonpath;
SELECT current_setting('server_version_num')::int >= 170000 AS newer \gset
\if :newer
INSERT INTO v.docs (d) SELECT x::jsonpath FROM unnest(ARRAY['$.bigint()', '$.boolean()', '$.date()', '$.decimal()', '$.decimal(5)', '$.decimal(5, 2)', '$.decimal(-5, -2)', '$.integer()', '$.number()', '$.string()', '$.time()', '$.time(3)',
	'$.time_tz()', '$.time_tz(2)', '$.timestamp()', '$.timestamp(6)', '$.timestamp_tz()', '$.timestamp_tz(0)', '$.a.decimal(5,2).string()']) x;
\endif
SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'xml_is_well_formed') AND current_setting('xmloption', true) IS NOT NULL AS x \gset
CREATE FUNCTION g.xml(t text) RETURNS xml LANGUAGE plpgsql AS $$BEGIN RETURN t::xml; EXCEPTION WHEN feature_not_supported THEN RETURN NULL; END$$;
INSERT INTO v.docs (a, ax) SELECT g.xml(x), ARRAY[g.xml(x), NULL] FROM unnest(ARRAY['<a/>', '', 'text & nothing'::text, '<?xml version="1.0"?><a/>', '<?xml version="1.0" encoding="UTF-8"?><a>é</a>', E'<?xml version="1.0"?>\n<a/>',
	E'<?xml version="1.0"?>\n\n<a/>', '<?xml version="1.0" standalone="yes"?><a/>', $$<?xml  version = '1.0'  encoding='utf-8' standalone='no' ?><a/>$$, '<?xml version="1.1"?><a/>', '<?xml-stylesheet href="x"?><a/>', '<?xml version="1.1" standalone="yes"?><b/>',
	'<a b="c,d">"x"</a><c/>', E' \n<a/>']) x WHERE x !~ '&';

-- Ranges and multiranges, of built-in and of own subtypes.
CREATE TYPE v.textrange AS RANGE (subtype = text, collation = "C");
CREATE TYPE v.floatrange AS RANGE (subtype = float8, subtype_diff = float8mi);
CREATE TYPE v.moodrange AS RANGE (subtype = v.mood);
CREATE TYPE v.timerange AS RANGE (subtype = time);
CREATE TYPE v.charrange AS RANGE (subtype = "char");
CREATE TYPE v.arrrange AS RANGE (subtype = int[]);
CREATE TYPE v.rangerange AS RANGE (subtype = int4range);
CREATE DOMAIN v.span AS int4range;
CREATE TABLE v.ranges (a int4range, b int8range, c numrange, d tsrange, e tstzrange, f daterange, g v.textrange, h v.floatrange, i v.moodrange, j v.timerange, k v.charrange, l v.arrrange, m v.rangerange,
	n int4multirange, o int8multirange, p nummultirange, q tsmultirange, r datemultirange, s v.textmultirange, t v.span, aa int4range[], at v.textrange[], an int4multirange[], ac v.charmultirange, ar v.multirangerange);
INSERT INTO v.ranges (a) VALUES ('empty'), ('(,)'), ('[1,2)'), ('(,5]'), ('[5,)'), (NULL), ('[-2147483648,2147483647)');
INSERT INTO v.ranges (f, d, c) VALUES ('(,infinity)', '[-infinity,infinity]', '(NaN,)'), ('[-infinity,infinity]', '["4714-11-24 00:00:00 BC",)', '[-Infinity,Infinity]'), ('[2000-01-01,2000-02-01)', '(,)', '[1.10,2.2]');
INSERT INTO v.ranges SELECT int4range(g.i(-9, 0)::int, g.i(1, 9)::int, g.pick('[]', '[)', '(]', '()')), int8range(g.i(-9, 0), NULL), numrange(-abs(g.num()), abs(g.num()), g.pick('[]', '[)', '(]', '()')),
	tsrange(least(t.x, t.y), greatest(t.x, t.y), '[]'), tstzrange(least(t.x, t.y) AT TIME ZONE 'UTC', NULL), daterange(date '2000-01-01' - g.i(0, 9999)::int, NULL, '(]'),
	v.textrange(least(t.a COLLATE "C", t.b COLLATE "C"), greatest(t.a COLLATE "C", t.b COLLATE "C"), g.pick('[]', '[)', '(]', '()')),
	v.floatrange(least(t.f, t.h), greatest(t.f, t.h), '[]'), v.moodrange('first', (enum_range(NULL::v.mood))[g.i(2, 8)]), v.timerange('00:00', g.time(), '[]'),
	v.charrange('"', 'z', g.pick('[]', '[)', '(]', '()')), v.arrrange('{0,NULL}', ARRAY[g.i(1, 5), 2]::int[]), v.rangerange(int4range(0, 3), int4range(g.i(4, 9)::int, NULL)),
	int4multirange(int4range(1, 3), int4range(5, g.i(6, 9)::int), int4range(20, NULL)), int8multirange(), nummultirange(numrange(-abs(g.num()) - 1, -1), numrange(0, abs(g.num()))),
	tsmultirange(tsrange(NULL, least(t.x, t.y)), tsrange(greatest(t.x, t.y) + interval '1 day', NULL)), datemultirange(daterange('-infinity', '2000-01-01')),
	v.textmultirange(v.textrange('a', 'b'), v.textrange('b' || repeat('x', g.i(1, 300)::int), 'c,"\'), v.textrange('d', 'é', '[]'), v.textrange('y (', NULL)), int4range(1, g.i(2, 5)::int),
	ARRAY[int4range(1, 2), NULL, 'empty'], ARRAY[v.textrange('a,b', 'c"d'), v.textrange('', NULL)], ARRAY[int4multirange(int4range(1, 2), int4range(4, 5)), '{}'],
	v.charmultirange(v.charrange('a', 'c'), v.charrange('e', 'g', '[]')), v.multirangerange(v.rangerange(int4range(0, 3), int4range(4, 5)))
	FROM generate_series(1, :n), LATERAL (SELECT g.ts() AS x, g.ts() AS y, g.text() AS a, g.text() AS b, g.f8() AS f, g.f8() AS h) t;
INSERT INTO v.ranges (n, p, s) SELECT range_agg(int4range(i, i + 1)), range_agg(numrange(i * 1.5, i * 1.5 + 0.25)), range_agg(v.textrange(lpad(i::text, 5, '0'), lpad(i::text, 5, '0') || 'x')) FROM generate_series(1, 1999, 2) i;

-- Composites: nested, quoted, with dropped and added attributes, of a table's row type, in arrays and domains.
CREATE TYPE v.inner_t AS (i int2, t text, gone int8, n numeric);
CREATE TYPE v.outer_t AS (a v.inner_t, b v.inner_t[], r int4range, c "char", d date, j jsonb, m v.mood, dm v.posint2, p point, big text, e box[], mo money);
CREATE DOMAIN v.outer_d AS v.outer_t;
CREATE TYPE v.empty_t AS ();
CREATE TABLE v.rowtype (id int, name text, gone text, at timestamptz);
CREATE TABLE v.rows (a v.inner_t, b v.outer_t, c v.outer_d, d v.inner_t[], e v.rowtype, f v.outer_d[], g v.empty_t, h v.pair[], i v.ints[]);
CREATE PROCEDURE g.fill_rows(k int) LANGUAGE sql AS $$
INSERT INTO v.rows (a, b, c, d, e, f, g, h, i) SELECT x.i, x.o, x.o, ARRAY[x.i, NULL, x.i], ROW(g.i(0, 9), g.text(), g.text(), g.ts() AT TIME ZONE 'UTC')::v.rowtype, ARRAY[x.o]::v.outer_d[], ROW()::v.empty_t,
	ARRAY[ROW(1, g.text())::v.pair, ROW(NULL, NULL)::v.pair, NULL], '{"{1,2}","{}",NULL,"[0:1]={1,NULL}"}'::v.ints[]
	FROM generate_series(1, k), LATERAL (SELECT ROW(g.i(-9, 9), CASE WHEN g.maybe() THEN g.text() END, 7, CASE WHEN g.maybe() THEN g.num() END)::v.inner_t AS i) y,
	LATERAL (SELECT y.i, ROW(y.i, ARRAY[y.i, NULL], int4range(1, g.i(2, 9)::int), g.pick('"', '\', ',', 'x', '', '(', ' '), g.date(), g.json(2)::jsonb, 'very happy', g.i(2, 9), point(1, g.f8()),
		repeat(g.text(), g.i(0, 700)::int), ARRAY[box(point(1, 2), point(3, 4)), NULL], g.i(-99999, 99999) / 100.0::float8::numeric)::v.outer_t AS o) x$$;
CREATE FUNCTION g.maybe2() RETURNS bool LANGUAGE sql AS $$SELECT g.maybe()$$;
CALL g.fill_rows(:n / 4);
ALTER TABLE v.rows ALTER b SET STORAGE EXTENDED;
INSERT INTO v.rows (a) VALUES (ROW(NULL, NULL, NULL, NULL)), (ROW(1, '', 2, 3)), (ROW(1, ' ', 2, 'NaN')), (ROW(1, '"\(),' || E'\n\t\v', 2, 3)), (NULL);
CREATE TABLE v.rows2 (a v.inner_t, e v.rowtype, x v.inner_t[]);
INSERT INTO v.rows2 SELECT a, e, d FROM v.rows;
ALTER TYPE v.inner_t DROP ATTRIBUTE gone;
ALTER TYPE v.inner_t ADD ATTRIBUTE later text;
ALTER TYPE v.inner_t RENAME ATTRIBUTE t TO text;
ALTER TABLE v.rowtype DROP gone;
ALTER TABLE v.rowtype ADD added int;
INSERT INTO v.rows2 VALUES (ROW(1, 'x', 2, 'later'), ROW(1, 'n', now(), 5), ARRAY[ROW(1, 'x', 2, NULL)]::v.inner_t[]);
-- Values of a table's row that are stored out of line and compressed become inline here.
CREATE TABLE v.wide (id int, t text, u text);
INSERT INTO v.wide SELECT i, repeat('wide' || i, 3000), (SELECT string_agg(md5((i * 100 + k)::text), '') FROM generate_series(1, 200) k) FROM generate_series(1, 5) i;
CREATE TABLE v.wides (w v.wide, a v.wide[]);
INSERT INTO v.wides SELECT w, ARRAY[w, NULL] FROM v.wide w;
INSERT INTO v.wides (w) SELECT ROW(1, repeat('c', 500), 'x')::v.wide;

CREATE TABLE v.ext (id int);
DO $$
DECLARE e text;
BEGIN
	FOREACH e IN ARRAY ARRAY['hstore', 'citext', 'ltree', 'cube', 'isn', 'vector'] LOOP
		IF EXISTS (SELECT FROM pg_available_extensions WHERE name = e) THEN
			EXECUTE format('CREATE EXTENSION IF NOT EXISTS %I SCHEMA v', e);
		END IF;
	END LOOP;
END $$;
SET search_path = v, public;
SELECT count(*) = 4 AS ext FROM pg_extension WHERE extname IN ('hstore', 'citext', 'ltree', 'cube') \gset
\if :ext
ALTER TABLE v.ext ADD h hstore, ADD ah hstore[], ADD c citext, ADD ac citext[], ADD l ltree, ADD al ltree[], ADD q lquery, ADD x ltxtquery, ADD u cube, ADD au cube[];
INSERT INTO v.ext SELECT i, (SELECT hstore(array_agg(g.text() || k), array_agg(CASE WHEN g.maybe() THEN g.text() END)) FROM generate_series(1, g.i(1, 9)) k), ARRAY[hstore('a', g.text()), NULL, ''], g.text(), ARRAY[g.text(), NULL],
	(SELECT string_agg(g.pick('a', 'Bcd', '_x', 'é1', repeat('y', 200)), '.') FROM generate_series(1, g.i(1, 9)))::ltree, ARRAY['a.b'::ltree, NULL, ''], NULL, NULL, cube(ARRAY[g.f8(), g.i(1, 5)], ARRAY[g.i(1, 5), g.f8()]),
	ARRAY[cube(1), NULL, '(1,2),(1,2)'] FROM generate_series(1, :n) i;
INSERT INTO v.ext (id, h, l, u) VALUES (-1, '', '', '()'), (-2, 'a=>NULL', 'a', '1'), (-3, '"a\"b\\c"=>"", ""=>"NULL"', 'a.b', '(NaN,Infinity)'), (-4, (SELECT hstore(array_agg(i::text), array_agg(repeat('v', 100))) FROM generate_series(1, 500) i), 'x', '(1,-0),(1,0)');
INSERT INTO v.ext (id, q) SELECT -10, x::lquery FROM unnest(ARRAY['a', 'a.b', '*', '*.a.*', '*{2}', '*{2,}', '*{,3}', '*{2,5}', '!a', 'a|b.c', '!a|b%|c@*.d', 'a{2}', 'a|b{1,3}', 'a*@%', 'é.*{0}', 'a{,}', 'a{3,}', '!a{,2}']) x;
INSERT INTO v.ext (id, x) SELECT -20, x::ltxtquery FROM unnest(ARRAY['a', '!a', 'a & b', 'a | b', 'a & (b | c)', '!(a & b)', '!(a | b)', '!a & b', 'a@ & b%* | c', '(a | b) & (c | !d)', '!!a', 'a & b & c', 'a | b | c']) x;
\endif
CHECKPOINT;
