-- Values of every supported type at their edges, in keys, arrays, domains and enums.
CREATE TYPE s10.mood AS ENUM ('sad', 'it''s ok', 'ha"ppy', '', 'Ω,x');
CREATE DOMAIN s10.pos AS int CHECK (VALUE > 0);
CREATE DOMAIN s10.pos2 AS s10.pos NOT NULL DEFAULT 7;
CREATE DOMAIN s10.label AS varchar(20);
CREATE DOMAIN s10.ints AS int[];
CREATE TABLE s10.scalars (
	id int PRIMARY KEY, b bool, i2 int2, i4 int4, i8 int8, o oid, f4 float4, f8 float8,
	n numeric, n1 numeric(20, 5), n2 numeric(76, 10), n3 numeric(3, -2), n4 numeric(3, 5), n5 numeric(200, 50),
	t text, vc varchar(20), bc char(10), c "char", nm name, by bytea,
	d date, tm time, tm3 time(3), ttz timetz, ts timestamp, tstz timestamptz, ts0 timestamp(0), iv interval, iv2 interval day to second(2),
	u uuid, j json, jb jsonb, ip inet, cd cidr, m s10.mood, dp s10.pos, dl s10.label);
INSERT INTO s10.scalars (id) VALUES (0);
INSERT INTO s10.scalars VALUES
	(1, true, 32767, 2147483647, 9223372036854775807, 4294967295, 'Infinity', '-Infinity',
	'NaN', 999999999999999.99999, 9999999999999999999999999999999999999999999999999999999999999999.9999999999, 99900, 0.00999, 1e149,
	E'tab\tnl\ncr\r\\ ''q''"', 'äöü€𝄞', 'x', '~', 'name', '\x00ff0a5c27',
	'0001-01-01', '00:00', '23:59:59.999', '24:00:00+15:59:59', '0001-01-01 00:00:00', '0001-01-01 00:00:00+00', '1999-12-31 23:59:59.5', '178000000 years', '1 day 02:03:04.567',
	'00000000-0000-0000-0000-000000000000', '{"a" : 1,  "a":2}', '{"b":1,"a":[1,2,{"x":null}],"c":1.10,"d":"\u00e9\n"}', '255.255.255.255/32', '10.0.0.0/8', 'sad', 1, 'x'),
	(2, false, -32768, -2147483648, -9223372036854775808, 0, '-0', '-0',
	'-Infinity', -999999999999999.99999, -9999999999999999999999999999999999999999999999999999999999999999.9999999999, -99900, -0.00999, -1e149,
	'', '', '', '', '', '',
	'9999-12-31', '24:00:00', '24:00:00', '00:00:00-15:59:59', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', '2000-01-01', '-178000000 years -11 mons 5 days -00:00:00.000001', '-1 day',
	'ffffffff-ffff-ffff-ffff-ffffffffffff', 'null', 'null', '::/0', '::ffff:1.2.3.4/128', 'it''s ok', 2147483647, ''),
	(3, NULL, 0, 0, 0, 2147483648, 'NaN', 'NaN',
	'Infinity', 0, 0, 0, 0, 0.00000000000000000000000000000000000000000000000001,
	repeat('x', 1000), 'tail   ', 'tail      ', E'\\377', repeat('n', 63), decode(repeat('00', 300), 'hex'),
	'1970-01-01', '12:34:56.789012', '12:34:56.789', '12:34:56.789+02', '1970-01-01 00:00:00', '1969-12-31 23:59:59.999999+00', '1969-12-31 23:59:59', '00:00:00', '00:00:00.01',
	'12345678-9abc-def0-1234-56789abcdef0', ' [1, "x" ] ', '"str"', '192.168.1.5/24', '2001:db8::/32', 'Ω,x', 5, 'label with spaces');
INSERT INTO s10.scalars (id, n, f4, f8, jb, iv) VALUES
	(4, 1e-16383, 1e-45, 4.9406564584124654e-324, '[]', '1 mon -1 day'), (5, 1e131071, 3.4028235e38, 1.7976931348623157e308, '{}', '-1 mon +1 day'),
	(6, 0.10, 1.1, 0.1, '[[[]], {"":""}]', '1 year'), (7, 100.000, 1e15, 1e21, '1e400', '1 day'), (8, -0.0, 123456789, 123456789012345678, 'true', '1 second');
INSERT INTO s10.scalars (id, d, ts, tstz) SELECT 100 + g, date '0001-01-01' + g * 73049, timestamp '0001-01-01 11:22:33.4' + g * interval '73049 days', timestamptz '0001-01-01 01:02:03.000001+00' + g * interval '73049 days' FROM generate_series(0, 49) g;
INSERT INTO s10.scalars (id, n, n1) SELECT 200 + g, (10::numeric ^ (g - 20)) * (CASE g % 2 WHEN 0 THEN 1 ELSE -1 END), round(12345.678901 * 10::numeric ^ (g % 10), 5) FROM generate_series(0, 60) g;
UPDATE s10.scalars SET b = NOT b, t = NULL, n = n + 1 WHERE id < 3;
DELETE FROM s10.scalars WHERE id = 8;

CREATE TABLE s10.arrays (
	id int PRIMARY KEY, i4 int[], n numeric[], t text[], b bool[], ts timestamp[], m s10.mood[], u uuid[], by bytea[], f8 float8[], jb jsonb[], dp s10.pos[], di s10.ints, ip inet[],
	ni4 int[] NOT NULL, nn numeric(10, 3)[] NOT NULL, nt text[] NOT NULL, nts timestamptz[] NOT NULL, nf float4[] NOT NULL, nb bytea[] NOT NULL, nd date[] NOT NULL, nu uuid[] NOT NULL, nbl bool[] NOT NULL, nj json[] NOT NULL, nm s10.mood[] NOT NULL);
INSERT INTO s10.arrays VALUES
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'),
	(2, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{1,NULL,-2147483648}', '{1.5,NULL,-9999999.999}', '{a,NULL,"NULL","","a b","q\"c\\",äö}', '{2020-01-01 00:00+00,NULL,1970-01-01}', '{NaN,Infinity,-0,1e-45,NULL}', '{"\\x00","",NULL}', '{0001-01-01,9999-12-31,NULL}', '{00000000-0000-0000-0000-000000000000,NULL}', '{t,f,NULL}', '{"{\"a\":  1}",NULL,"null"}', '{sad,"",NULL,"Ω,x"}'),
	(3, '{1,NULL,3}', '{NaN,Infinity,1.10,NULL}', '{a,NULL,"NULL","","a b","q\"c\\","{}"}', '{t,NULL,f}', '{2020-01-01 10:11:12.5,NULL,infinity}', '{sad,"it''s ok","ha\"ppy","",NULL}', '{12345678-9abc-def0-1234-56789abcdef0}', '{"\\x00ff","\\x"}', '{-0,NaN,1e300}', '{"{\"a\":\"b,c\"}",null}', '{1,2}', '{4,5}', '{10.0.0.1,::1/64}', '{5}', '{5}', '{5}', '{2020-01-01}', '{5}', '{5}', '{2020-02-29}', '{ffffffff-ffff-ffff-ffff-ffffffffffff}', '{t}', '{5}', '{"ha\"ppy"}');
INSERT INTO s10.arrays SELECT 100 + g, array_agg(x), array_agg(x / 7.0), array_agg(repeat('é', x)), array_agg(x % 2 = 0), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, array_agg(x), array_agg((x / 7.0)::numeric(10, 3)), array_agg('t' || x), '{}', array_agg(x), '{}', '{}', '{}', '{}', '{}', '{}' FROM generate_series(1, 20) g, generate_series(0, g) x GROUP BY g;
UPDATE s10.arrays SET i4 = ni4, t = nt WHERE id IN (1, 2);

CREATE TABLE s10.domains (id s10.pos PRIMARY KEY, a s10.pos2, b s10.label DEFAULT 'dd');
INSERT INTO s10.domains (id) VALUES (1), (2);
UPDATE s10.domains SET id = 3 WHERE id = 1;
-- step: enum labels come and change their names, with rows before and after in one transaction
ALTER TYPE s10.mood ADD VALUE 'first' BEFORE 'sad';
INSERT INTO s10.scalars (id, m) VALUES (300, 'first');
BEGIN;
INSERT INTO s10.scalars (id, m) VALUES (301, 'sad');
ALTER TYPE s10.mood RENAME VALUE 'first' TO 'erster';
INSERT INTO s10.scalars (id, m) VALUES (302, 'erster');
COMMIT;
ALTER TYPE s10.mood ADD VALUE 'between' AFTER 'sad';
UPDATE s10.scalars SET m = 'between' WHERE id BETWEEN 300 AND 310;
INSERT INTO s10.arrays SELECT 400, NULL, NULL, NULL, NULL, NULL, '{between,erster}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{erster,NULL,between}';
ALTER TYPE s10.mood RENAME TO gemüt;
CREATE TYPE s10.mood AS ENUM ('other');
CREATE TABLE s10.moods (m s10.mood PRIMARY KEY, g s10.gemüt);
INSERT INTO s10.moods VALUES ('other', 'sad');
ALTER DOMAIN s10.label ADD CHECK (VALUE <> 'never');
ALTER DOMAIN s10.pos2 SET DEFAULT 8;
INSERT INTO s10.domains (id) VALUES (10);
-- step: keys of every type
CREATE TABLE s10.kb (k bool PRIMARY KEY, v int);
CREATE TABLE s10.kf (k float8 PRIMARY KEY, v int);
CREATE TABLE s10.kn (k numeric PRIMARY KEY, v int);
CREATE TABLE s10.kt (k text PRIMARY KEY, v int);
CREATE TABLE s10.kbc (k char(5) PRIMARY KEY, v int);
CREATE TABLE s10.kby (k bytea PRIMARY KEY, v int);
CREATE TABLE s10.kd (k date PRIMARY KEY, v int);
CREATE TABLE s10.ktm (k time PRIMARY KEY, v int);
CREATE TABLE s10.kttz (k timetz PRIMARY KEY, v int);
CREATE TABLE s10.kts (k timestamptz PRIMARY KEY, v int);
CREATE TABLE s10.kiv (k interval PRIMARY KEY, v int);
CREATE TABLE s10.ku (k uuid PRIMARY KEY, v int);
CREATE TABLE s10.kjb (k jsonb PRIMARY KEY, v int);
CREATE TABLE s10.kip (k inet PRIMARY KEY, v int);
CREATE TABLE s10.ka (k int[] PRIMARY KEY, v int);
CREATE TABLE s10.kta (k text[] PRIMARY KEY, v int);
CREATE TABLE s10.km (k s10.gemüt PRIMARY KEY, v int);
CREATE TABLE s10.koid (k oid, k2 "char", k3 name, v int, PRIMARY KEY (k, k2, k3));
INSERT INTO s10.kb VALUES (true, 1), (false, 2);
INSERT INTO s10.kf VALUES (0, 1), ('NaN', 2), ('Infinity', 3), ('-Infinity', 4), (1e-300, 5);
INSERT INTO s10.kn VALUES (0, 1), ('NaN', 2), ('Infinity', 3), (1.5, 4), (1e50, 5);
INSERT INTO s10.kt VALUES ('', 1), ('a', 2), ('a ', 3), ('A', 4), (repeat('k', 1500), 5), (E'n\nl', 6);
INSERT INTO s10.kbc VALUES ('', 1), ('a', 2), ('abcde', 3);
INSERT INTO s10.kby VALUES ('', 1), ('\x00', 2), ('\x0000', 3), ('\xff', 4);
INSERT INTO s10.kd VALUES ('0001-01-01', 1), ('9999-12-31', 2), ('1970-01-01', 3);
INSERT INTO s10.ktm VALUES ('00:00', 1), ('24:00', 2), ('12:00:00.000001', 3);
INSERT INTO s10.kttz VALUES ('00:00+00', 1), ('00:00+01', 2);
INSERT INTO s10.kts VALUES ('0001-01-01 00:00+00', 1), ('2024-02-29 12:00:00.000001+00', 2), ('9999-12-31 23:59:59.999999+00', 3);
INSERT INTO s10.kiv VALUES ('1 day', 1), ('2 hours', 2);
INSERT INTO s10.ku VALUES ('00000000-0000-0000-0000-000000000000', 1), ('12345678-9abc-def0-1234-56789abcdef0', 2);
INSERT INTO s10.kjb VALUES ('{}', 1), ('[1, 2]', 2), ('{"a": 1}', 3);
INSERT INTO s10.kip VALUES ('10.0.0.1', 1), ('10.0.0.1/8', 2), ('::1', 3);
INSERT INTO s10.ka VALUES ('{}', 1), ('{1,2}', 2), ('{NULL}', 3);
INSERT INTO s10.kta VALUES ('{}', 1), ('{"a,b"}', 2), ('{a,b}', 3);
INSERT INTO s10.km VALUES ('sad', 1), ('', 2), ('erster', 3);
INSERT INTO s10.koid VALUES (1, 'a', 'x', 1), (1, 'a', 'y', 2), (4294967295, '', '', 3);
DO $$ DECLARE t text; BEGIN
	FOREACH t IN ARRAY '{kb,kf,kn,kt,kbc,kby,kd,ktm,kttz,kts,kiv,ku,kjb,kip,ka,kta,km,koid}'::text[] LOOP
		EXECUTE format('UPDATE s10.%I SET v = v + 10', t);
		EXECUTE format('DELETE FROM s10.%I WHERE v = 12', t);
	END LOOP;
END $$;
UPDATE s10.kf SET k = 2 WHERE v = 13;
UPDATE s10.kt SET k = k || 'z' WHERE v = 15;
UPDATE s10.kjb SET k = '{"z": 1}' WHERE v = 11;
UPDATE s10.ka SET k = '{7}' WHERE v = 13;
UPDATE s10.kb SET k = NOT k;
-- A key that is equal for PostgreSQL but has other bytes.
UPDATE s10.kn SET k = 1.500 WHERE k = 1.5;
UPDATE s10.kf SET k = -0.0 WHERE k = 0;
UPDATE s10.kiv SET k = '24 hours' WHERE k = '1 day';
DELETE FROM s10.kip WHERE k = '::1';
INSERT INTO s10.kip VALUES ('::1', 9);
INSERT INTO s10.kn VALUES (7.0, 1);
DELETE FROM s10.kn WHERE k = 7;
INSERT INTO s10.kn VALUES (7.00, 2);
