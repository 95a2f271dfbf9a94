-- Types that have PostgreSQL's text: bits, geometry, network, identifiers, text search, ranges, composites,
-- arrays of them and of any shape, and types of modules; in keys, with defaults, and changing.
CREATE EXTENSION IF NOT EXISTS hstore SCHEMA public;
CREATE EXTENSION IF NOT EXISTS citext SCHEMA public;
CREATE EXTENSION IF NOT EXISTS ltree SCHEMA public;
CREATE EXTENSION IF NOT EXISTS cube SCHEMA public;
CREATE TYPE s11.mood AS ENUM ('a', 'b "q"');
CREATE TYPE s11.pair AS (i int2, t text, n numeric(10, 2));
CREATE TYPE s11.kpair AS (i int2, t text, n numeric(10, 2));
CREATE TYPE s11.nest AS (p s11.pair, a s11.pair[], r int4range, m s11.mood, b box[], g bytea);
CREATE DOMAIN s11.dpair AS s11.pair;
CREATE DOMAIN s11.ints AS int[];
CREATE TYPE s11.trange AS RANGE (subtype = text, collation = "C");
CREATE TABLE s11.one (
	id int PRIMARY KEY, b1 bit(3), bv varbit, mo money, mac macaddr, mac8 macaddr8, x xml, tv tsvector, tq tsquery, jp jsonpath, lsn pg_lsn, ti tid,
	xi xid, xi8 xid8, ci cid, ov oidvector, iv int2vector, rc regclass, rt regtype, rp regprocedure, rn regnamespace, rf refcursor,
	po point, li line, ls lseg, bo box, pa path, pg polygon, cr circle,
	r4 int4range, r8 int8range, rn1 numrange, rts tsrange, rtz tstzrange, rd daterange, rtx s11.trange, m4 int4multirange, mn nummultirange, mtx s11.tmultirange,
	co s11.pair, ne s11.nest, dco s11.dpair, hs public.hstore, cx public.citext, lt public.ltree, lq public.lquery, lx public.ltxtquery, cu public.cube);
ALTER TABLE s11.one REPLICA IDENTITY FULL;
INSERT INTO s11.one (id) VALUES (0);
INSERT INTO s11.one VALUES
	(1, '101', '', '-92233720368547758.08', '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff', '<?xml version="1.0" encoding="UTF-8"?><a>é</a>', '''it''''s'':1A,2B c', '!(a & b) | c:*AB <-> d', 'strict $.a[1 to last] ? (@ > 1)', '0/0', '(0,0)',
	'0', '18446744073709551615', '4294967295', '', '', 'pg_class', 'int4', 'pg_sleep(float8)', 'pg_catalog', 'cur "x"',
	'(0,-0)', '{1,0,0}', '[(1,2),(3,4)]', '(1,2),(3,4)', '[(1,2),(3,4)]', '((0,0),(1,1),(1e300,5e-324))', '<(1,2),3>',
	'empty', '(,)', '[NaN,NaN]', '[-infinity,infinity)', '(,"2020-01-01 00:00:00+00")', '[2020-01-01,)', '["a,b","c\"d")', '{}', '{[1.10,2),(5,)}', '{["",a),["é ",]}',
	'(1,"a b",2.5)', ROW(ROW(1, 'q"\,()', NULL), ARRAY[ROW(2, '', 3)::s11.pair, NULL], '[1,5)', 'b "q"', '{(1,1),(0,0);(3,3),(2,2)}', '\x00ff'), '(,,)', 'a=>1, "b c"=>NULL, "\"\\"=>""', 'Straße', 'Top.Sub_1', '*.!a|b*.*{2,}', 'a & !(b | c@)', '(1,2),(3,4)'),
	(2, '000', B'1011001110001111', '1234567.89', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', 'text <b/>', '', '', '$', 'FFFFFFFF/FFFFFFFF', '(4294967295,65535)',
	'4294967295', '0', '0', '1 2', '-1 0', 0, 0, 0, 0, '',
	'(Infinity,NaN)', '{0,1,-5.5}', '[(1,2),(1,2)]', '(0,0),(0,0)', '((1,2),(3,4))', '((1,1))', '<(0,0),0>',
	'[1,2147483647)', '[-9223372036854775808,)', '(-Infinity,1.0]', 'empty', '["0001-01-01 00:00:00+00 BC",infinity]', '(,infinity]', 'empty', '{[1,3),[5,7),[9,)}', '{}', '{}',
	'(,,)', NULL, ROW(3, E'tab\tnl\n', 'NaN'), '', '', '', 'a{,3}', 'x', '(NaN)');
INSERT INTO s11.one (id, tv, m4, mtx, ne, hs, bv) SELECT 10 + g, (SELECT string_agg('w' || i || ':' || i, ' ') FROM generate_series(1, 400) i)::tsvector,
	(SELECT range_agg(int4range(i * 3, i * 3 + 2)) FROM generate_series(1, 300) i), (SELECT range_agg(s11.trange(lpad(i::text, 6), lpad(i::text, 6) || 'x')) FROM generate_series(1, 300) i),
	ROW(ROW(g, repeat('long ', 900), g)::s11.pair, ARRAY(SELECT ROW(i, repeat('e', 50), i)::s11.pair FROM generate_series(1, 50) i), NULL, 'a', NULL, decode(repeat('ab', 3000), 'hex'))::s11.nest,
	public.hstore(ARRAY(SELECT 'k' || i FROM generate_series(1, 200) i), ARRAY(SELECT nullif(repeat('v', i), 'v') FROM generate_series(1, 200) i)), repeat('01', 20000)::varbit FROM generate_series(1, 3) g;
UPDATE s11.one SET po = '(7,8)', co = ROW(9, 'updated', 1), hs = hs || 'new=>1' WHERE id IN (1, 11);
DELETE FROM s11.one WHERE id = 12;
-- step: arrays of them
CREATE TABLE s11.arr (
	id int PRIMARY KEY, bv varbit[], po point[], bo box[], pa path[], mo money[], mac macaddr[], r4 int4range[], m4 int4multirange[], tr s11.trange[], co s11.pair[], dco s11.dpair[], di s11.ints[], xi8 xid8[],
	rc regclass[], tv tsvector[], tq tsquery[], jp jsonpath[], x xml[], hs public.hstore[], cx public.citext[], lt public.ltree[], cu public.cube[], lsn pg_lsn[], ti tid[], iv int2vector[],
	npo point[] NOT NULL DEFAULT '{}', nmo money[] NOT NULL DEFAULT '{}', nco s11.pair[] NOT NULL DEFAULT '{}', nxi xid8[] NOT NULL DEFAULT '{}', nrc regclass[] NOT NULL DEFAULT '{}', nhs public.hstore[] NOT NULL DEFAULT '{}', ntv tsvector[] NOT NULL DEFAULT '{}',
	nr numrange[] NOT NULL DEFAULT '{}', ncx public.citext[] NOT NULL DEFAULT '{}');
INSERT INTO s11.arr (id) VALUES (0);
INSERT INTO s11.arr VALUES (1, '{101,NULL,""}', '{"(1,2)",NULL}', '[0:1]={(1,1),(0,0);NULL}', '{"[(1,2),(3,4)]"}', '{1.5,NULL,-1234567.89}', '{08:00:2b:01:02:03}', '{"[1,2)",empty,NULL}', '{"{[1,2),[4,5)}"}', '{"[a,\"b c\")"}',
	ARRAY[ROW(1, 'x y', 2)::s11.pair, NULL], ARRAY[ROW(1, '"', 2)::s11.pair]::s11.dpair[], '{"{1,2}","[0:0]={NULL}",NULL}', '{18446744073709551615,0}', '{pg_class,0,NULL}', ARRAY['a:1 b'::tsvector, ''], '{"a & b",NULL}', '{$.a,NULL}', '{<a/>}', '{"a=>1",NULL}',
	'{Ab,NULL}', '{a.b}', '{"(1,2)","(3),(4)"}', '{0/1}', '{"(1,2)"}', '{"1 2"}', '{"(1,2)",NULL}', '{1.5,NULL,-0.01}', ARRAY[ROW(1, 'x y', 2)::s11.pair, NULL], '{18446744073709551615,NULL}', '{pg_class,NULL}', '{"a=>1",NULL}', ARRAY['a:1 b'::tsvector, NULL],
	'{"[1.10,2)",NULL}', '{Ab,NULL}'),
	(2, '{{1,0},{11,00}}', '[5:6]={"(1,2)","(3,4)"}', '{}', '{{"[(1,2)]"}}', '{{1},{2}}', '{}', '{{empty},{"(,)"}}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{{a},{b}}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
UPDATE s11.arr SET nmo = '{7}', nco = nco || ROW(5, 'more', NULL)::s11.pair WHERE id = 1;
-- step: keys
CREATE TABLE s11.kbit (k bit(8) PRIMARY KEY, v int);
CREATE TABLE s11.kmac (k macaddr PRIMARY KEY, v int);
CREATE TABLE s11.kmoney (k money PRIMARY KEY, v int);
CREATE TABLE s11.klsn (k pg_lsn PRIMARY KEY, v int);
CREATE TABLE s11.ktid (k tid PRIMARY KEY, v int);
CREATE TABLE s11.kxid8 (k xid8 PRIMARY KEY, v int);
CREATE TABLE s11.krange (k int4range PRIMARY KEY, v int);
CREATE TABLE s11.kmulti (k nummultirange PRIMARY KEY, v int);
CREATE TABLE s11.krow (k s11.kpair PRIMARY KEY, v int);
CREATE TABLE s11.kreg (k regclass PRIMARY KEY, v int);
CREATE TABLE s11.khstore (k public.hstore PRIMARY KEY, v int);
CREATE TABLE s11.kltree (k public.ltree, l public.citext, v int, PRIMARY KEY (k, l));
CREATE TABLE s11.kts (k tsvector PRIMARY KEY, v int);
INSERT INTO s11.kbit VALUES ('00000000', 1), ('11111111', 2), ('10000001', 3);
INSERT INTO s11.kmac VALUES ('00:00:00:00:00:00', 1), ('ff:ff:ff:ff:ff:ff', 2), ('08:00:2b:01:02:03', 3);
INSERT INTO s11.kmoney VALUES (0, 1), (-0.01, 2), (1234.5, 3);
INSERT INTO s11.klsn VALUES ('0/0', 1), ('0/1', 2), ('FFFFFFFF/0', 3);
INSERT INTO s11.ktid VALUES ('(0,0)', 1), ('(0,1)', 2), ('(1,0)', 3);
INSERT INTO s11.kxid8 VALUES ('0', 1), ('1', 2), ('18446744073709551615', 3);
INSERT INTO s11.krange VALUES ('empty', 1), ('(,)', 2), ('[1,2]', 3);
INSERT INTO s11.kmulti VALUES ('{}', 1), ('{(,)}', 2), ('{[1.0,2]}', 3);
INSERT INTO s11.krow VALUES ('(1,a,1)', 1), ('(,,)', 2), ('(1,"",1)', 3);
INSERT INTO s11.kreg VALUES ('pg_class', 1), (0, 2), ('pg_type', 3);
INSERT INTO s11.khstore VALUES ('', 1), ('a=>NULL', 2), ('a=>1,b=>2', 3);
INSERT INTO s11.kltree VALUES ('', 'A', 1), ('a', 'b', 2), ('a.b', '', 3);
INSERT INTO s11.kts VALUES ('', 1), ('a', 2), ('a:1', 3);
DO $$ DECLARE t text; BEGIN
	FOREACH t IN ARRAY '{kbit,kmac,kmoney,klsn,ktid,kxid8,krange,kmulti,krow,kreg,khstore,kltree,kts}'::text[] LOOP
		EXECUTE format('UPDATE s11.%I SET v = v + 10', t);
		EXECUTE format('DELETE FROM s11.%I WHERE v = 12', t);
	END LOOP;
END $$;
UPDATE s11.krange SET k = '[5,9)' WHERE v = 13;
UPDATE s11.krow SET k = ROW(7, 'new', NULL) WHERE v = 11;
UPDATE s11.kmoney SET k = 99.99 WHERE v = 13;
INSERT INTO s11.kreg VALUES (0, 22);
-- step: columns that come later, with defaults for the rows that are there
ALTER TABLE s11.kbit ADD po point DEFAULT '(1,2)', ADD r numrange DEFAULT '[1.5,2)', ADD c s11.pair DEFAULT ROW(1, 'd "q"', 2)::s11.pair, ADD m money DEFAULT 1234.5, ADD b box DEFAULT '(1,1),(0,0)', ADD bb box[] DEFAULT '{(1,1),(0,0);(2,2),(1,1)}',
	ADD x8 xid8 DEFAULT '18446744073709551615', ADD h public.hstore DEFAULT 'a=>1', ADD nm money[] NOT NULL DEFAULT '{1234.5,NULL}', ADD tv tsvector DEFAULT 'a:1', ADD vb varbit DEFAULT '101', ADD np point[] NOT NULL DEFAULT '{"(1,2)"}', ADD mm int4multirange DEFAULT '{[1,2)}';
INSERT INTO s11.kbit VALUES ('10101010', 5, '(3,4)', 'empty', NULL, 1, NULL, NULL, '1', 'b=>2', '{}', '', '', '{}', '{}');
UPDATE s11.kbit SET v = 6 WHERE v = 13;
-- step: composites change their attributes, with rows before and after in one transaction
BEGIN;
INSERT INTO s11.one (id, co, dco) VALUES (100, '(1,before,2)', '(3,before,4)');
ALTER TYPE s11.pair ADD ATTRIBUTE extra text;
INSERT INTO s11.one (id, co, dco, ne) VALUES (101, '(1,after,2,"e x")', '(3,after,4,)', ROW(ROW(1, 't', 2, 'inner')::s11.pair, ARRAY[ROW(2, 'u', 3, NULL)]::s11.pair[], NULL, NULL, NULL, NULL));
COMMIT;
UPDATE s11.one SET cx = 'same';
UPDATE s11.arr SET cx = '{same}';
UPDATE s11.kbit SET v = v + 100;
ALTER TYPE s11.pair DROP ATTRIBUTE t;
UPDATE s11.one SET cx = 'again';
UPDATE s11.arr SET cx = '{again}';
UPDATE s11.kbit SET v = v + 100;
INSERT INTO s11.one (id, co) VALUES (102, '(1,2.00,last)');
ALTER TYPE s11.mood RENAME TO humour;
ALTER TYPE s11.nest RENAME ATTRIBUTE m TO mm;
INSERT INTO s11.one (id, ne) VALUES (103, ROW(NULL, NULL, NULL, 'a', NULL, NULL));
