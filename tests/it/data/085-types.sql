-- A table `sample` with values of every built-in type that a column can have, and one column for
-- each in `whole`: a composite of the type, its array and a type that nobody decodes, so that the
-- whole value goes to the oracle.  Variables: lib, the path of oracle_test.
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
CREATE TYPE odd;
CREATE FUNCTION odd_in(cstring) RETURNS odd AS :'lib', 'oracle_test_in' LANGUAGE c IMMUTABLE STRICT;
CREATE FUNCTION odd_out(odd) RETURNS cstring AS :'lib', 'oracle_test_out' LANGUAGE c IMMUTABLE STRICT;
CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, INTERNALLENGTH = 4, PASSEDBYVALUE, ALIGNMENT = int4);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very "happy", \really');
CREATE TYPE oddrange AS RANGE (SUBTYPE = text, MULTIRANGE_TYPE_NAME = oddmultirange);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN poses AS posint[];
CREATE TYPE inner_t AS (a text, "b c" numeric, d mood, e mood[], f poses, g odd);
CREATE EXTENSION hstore;
CREATE EXTENSION citext;
CREATE EXTENSION ltree;
CREATE EXTENSION cube;
CREATE EXTENSION isn;
CREATE EXTENSION seg;
CREATE EXTENSION intarray;

CREATE TABLE src_stats (a int, b int, c int);
INSERT INTO src_stats SELECT i % 10, i % 10, i % 3 FROM generate_series(1, 1000) i;
CREATE STATISTICS src_st (ndistinct, dependencies, mcv) ON a, b, c FROM src_stats;
ANALYZE src_stats;

-- What each type is tried with, as SQL expressions.
CREATE TABLE sample (typ text, v text);
INSERT INTO sample VALUES
 ('bool', '''t'''), ('bool', '''f'''), ('bytea', '''\x00ff5c22'''), ('bytea', ''''''),
 ('"char"', '''"'''), ('"char"', '''\377'''), ('name', '''a "b", c'''), ('int8', '-9223372036854775808'),
 ('int2', '-32768'), ('int2vector', '''1 2 -3'''), ('int4', '2147483647'), ('text', ''''''), ('text', '''NuLl'''),
 ('text', 'E''q"b\\s{},()[] \n\t\v\u00e9\u20ac\U0001F600'''), ('oid', '4294967295'), ('tid', '''(4294967295,65535)'''),
 ('xid', '''4294967295'''), ('cid', '''7'''), ('oidvector', '''1 4294967295'''), ('xml', '''<a b="c">d</a>'''),
 ('json', '''{"a" : [1, null]}'''), ('point', '''(1.5,-Infinity)'''), ('point', '''(1e300,0.1)'''),
 ('lseg', '''[(0,0),(1e-7,NaN)]'''), ('path', '''((0,0),(1,1),(2,0))'''), ('path', '''[(0,0),(1,1)]'''),
 ('box', '''(3,4),(1,2)'''), ('polygon', '''((0,0),(1,1),(2,0))'''), ('line', '''{1,-1,0}'''), ('cidr', '''10.1.0.0/16'''),
 ('cidr', '''2001:db8::/32'''), ('float4', '''NaN'''), ('float4', '1.17549435e-38'), ('float8', '''-Infinity'''),
 ('float8', '5e-324'), ('float8', '0.1'), ('circle', '''<(1,2),3.5>'''), ('macaddr8', '''08:00:2b:01:02:03:04:05'''),
 ('money', '''-1234567.89'''), ('macaddr', '''08:00:2b:01:02:03'''), ('inet', '''192.168.0.1/24'''), ('inet', '''::ffff:1.2.3.4'''),
 ('bpchar', '''ab  '''), ('char(6)', '''ab'''), ('varchar', '''x'''), ('varchar(3)', '''xyz'''), ('date', '''infinity'''),
 ('date', '''4713-01-01 BC'''), ('time', '''24:00:00'''), ('time(2)', '''12:34:56.789'''), ('timestamp', '''294276-12-31 23:59:59.999999'''),
 ('timestamp', '''-infinity'''), ('timestamptz', '''0044-03-15 12:00:00+00 BC'''), ('interval', '''1 year -2 mons 3 days -04:05:06.789'''),
 ('timetz', '''12:00:00.5-15:59:59'''), ('bit(5)', '''10101'''), ('bit(5)', '''00000'''), ('varbit', ''''''), ('varbit', '''110011001'''),
 ('numeric', '''NaN'''), ('numeric', '''-Infinity'''), ('numeric(10,3)', '-1234567.89'), ('numeric', '1e-50'), ('numeric', '123456789012345678901234567890.5'),
 ('refcursor', '''my cursor'''), ('uuid', '''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'''), ('pg_lsn', '''FFFFFFFF/FFFFFFFF'''),
 ('tsvector', '''''''it''''s'''':1A,2 ''''b\c'''':3'''), ('gtsvector', NULL), ('tsquery', '''a & (b:*A | !''''c d'''') <-> e'''),
 ('jsonb', '''{"b": 1.50, "a": [true, null, "x\"y"]}'''), ('jsonpath', '''$.a[*] ? (@.b > 1)'''), ('txid_snapshot', '''10:20:10,14,15'''),
 ('pg_snapshot', '''10:20:10,14,15'''), ('xid8', '''18446744073709551615'''),
 ('int4range', '''[1,5)'''), ('int4range', '''empty'''), ('numrange', '''(,5.5]'''), ('tsrange', '''["2020-01-01 00:00",infinity]'''),
 ('tstzrange', '''["2020-01-01 00:00",)'''), ('daterange', '''[2020-01-01,2020-02-01)'''), ('int8range', '''(,)'''),
 ('int4multirange', '''{[1,3),[5,)}'''), ('nummultirange', '''{}'''), ('tsmultirange', '''{["2020-01-01 00:00","2021-01-01 00:00"]}'''),
 ('tstzmultirange', '''{["2020-01-01 00:00",)}'''), ('datemultirange', '''{[2020-01-01,2020-02-01)}'''), ('int8multirange', '''{(,0),[10,20)}'''),
 ('pg_node_tree', '(SELECT ev_action FROM pg_rewrite ORDER BY oid LIMIT 1)'),
 ('pg_ndistinct', '(SELECT stxdndistinct FROM pg_statistic_ext_data LIMIT 1)'),
 ('pg_dependencies', '(SELECT stxddependencies FROM pg_statistic_ext_data LIMIT 1)'),
 ('pg_mcv_list', '(SELECT stxdmcv FROM pg_statistic_ext_data LIMIT 1)'),
 ('pg_brin_bloom_summary', NULL), ('pg_brin_minmax_multi_summary', NULL),
 -- of extensions and users
 ('hstore', '''"a b"=>"x\"y", c=>NULL, ""=>""'''), ('citext', '''MiXed'''), ('ltree', '''Top.Science.x'''), ('lquery', '''Top.*{1,2}.!x'''),
 ('ltxtquery', '''a & !b@'''), ('cube', '''(1,2),(3,4.5)'''), ('cube', '''(1)'''), ('isbn', '''978-0-393-04002-9'''), ('ean13', '''978-0-393-04002-9'''), ('issn', '''1436-4522'''), ('upc', '''220356483481'''),
 ('seg', '''1.5 .. 2.50'''), ('query_int', '''1&(2|!3)'''), ('mood', '''ok'''), ('mood', '''very "happy", \really'''), ('posint', '5'), ('poses', '''{1,2}'''),
 ('oddrange', '''("a ""b""","d(,"]'''), ('oddmultirange', '''{[a,b),[c\\,d]}'''), ('odd', '''7'''),
 ('inner_t', 'ROW(''it "is"'', 1.50, ''sad'', ''{ok,NULL}'', ''{3}'', ''9'')'), ('inner_t', 'ROW(NULL, NULL, NULL, NULL, NULL, NULL)');

-- Types that sample does not know: none may be left.  reg* and aclitem have a test of their own,
-- vectors of oids and _types come with their elements.
SELECT 'no sample: ' || format_type(t.oid, NULL) FROM pg_type t
WHERE typtype IN ('b', 'r', 'm', 'e') AND t.oid < 16384 AND NOT (typsubscript = 'array_subscript_handler'::regproc AND typelem <> 0)
  AND typname !~ '^reg' AND typname <> 'aclitem' AND typnamespace = 'pg_catalog'::regnamespace
  AND NOT EXISTS (SELECT FROM sample WHERE regexp_replace(typ, '\(.*\)', '')::regtype = t.oid) ORDER BY 1;

-- Internal types have no arrays.
CREATE VIEW numbered AS SELECT typ, v, row_number() OVER (ORDER BY typ, v) AS n, typarray <> 0 AS has,
    CASE WHEN typarray <> 0 THEN typ || '[]' ELSE 'odd[]' END AS arr
  FROM sample JOIN pg_type t ON t.oid = regexp_replace(typ, '\(.*\)', '')::regtype WHERE v IS NOT NULL;

-- Two tables, so that no row is longer than a page without TOAST.
CREATE TABLE whole (id int PRIMARY KEY);
CREATE TABLE plain (id int PRIMARY KEY);
DO $do$
DECLARE
  r record;
  i int;
BEGIN
  FOR r IN SELECT * FROM numbered LOOP
    i := r.n;
    EXECUTE format('CREATE TYPE w_%s AS (v %s, a %s, gone int, o odd, n %s)', i, r.typ, r.arr, r.typ);
    EXECUTE format('ALTER TYPE w_%s DROP ATTRIBUTE gone', i);
    EXECUTE format('ALTER TABLE whole ADD COLUMN c_%s w_%s', i, i);
    EXECUTE format('ALTER TABLE whole ADD COLUMN d_%s w_%s[]', i, i);
    EXECUTE format('ALTER TABLE plain ADD COLUMN c_%s %s', i, r.typ);
    EXECUTE format('ALTER TABLE plain ADD COLUMN d_%s %s', i, r.arr);
  END LOOP;
END $do$;
-- Old rows that carry what lies in TOAST.
ALTER TABLE whole REPLICA IDENTITY FULL;
ALTER TABLE plain REPLICA IDENTITY FULL;
