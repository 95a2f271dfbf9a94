-- Columns that come, go and change, with rows before and after in the same transaction.
CREATE TABLE s50.t (id int PRIMARY KEY, a text, b int);
INSERT INTO s50.t SELECT g, 'a' || g, g FROM generate_series(1, 20) g;
-- step: added without and with defaults
ALTER TABLE s50.t ADD COLUMN c1 int;
UPDATE s50.t SET c1 = 1 WHERE id = 1;
ALTER TABLE s50.t ADD COLUMN c2 int DEFAULT 42, ADD COLUMN c3 text NOT NULL DEFAULT E'it''s a "\\ ä\n default', ADD COLUMN c4 numeric(10, 2) NOT NULL DEFAULT 1.5,
	ADD COLUMN c5 timestamptz NOT NULL DEFAULT '2020-02-02 02:02:02.020202+00', ADD COLUMN c6 bool DEFAULT true, ADD COLUMN c7 bytea NOT NULL DEFAULT '\x00ff', ADD COLUMN c8 uuid DEFAULT '12345678-9abc-def0-1234-56789abcdef0',
	ADD COLUMN c9 date NOT NULL DEFAULT '0001-01-01', ADD COLUMN c10 int[] NOT NULL DEFAULT '{1,2,NULL}', ADD COLUMN c11 text[] DEFAULT '{a,"b c"}', ADD COLUMN c12 jsonb DEFAULT '{"a": [1, 2]}', ADD COLUMN c13 float8 NOT NULL DEFAULT 0.1,
	ADD COLUMN c14 int8 DEFAULT -9223372036854775808, ADD COLUMN c15 time DEFAULT '12:00:00.5', ADD COLUMN c16 char(5) DEFAULT 'x', ADD COLUMN c17 interval DEFAULT '1 day', ADD COLUMN c18 timestamptz DEFAULT now(), ADD COLUMN c19 float4 NOT NULL DEFAULT '-0', ADD COLUMN c20 inet DEFAULT '10.0.0.1';
-- step: old rows are updated, deleted, move their key
UPDATE s50.t SET b = 100 WHERE id = 2;
UPDATE s50.t SET id = 103 WHERE id = 3;
DELETE FROM s50.t WHERE id = 4;
INSERT INTO s50.t (id) VALUES (21);
UPDATE s50.t SET c2 = NULL, c3 = '' WHERE id = 5;
ALTER TABLE s50.t ALTER c2 SET DEFAULT 43, ALTER c3 DROP DEFAULT;
INSERT INTO s50.t (id, c3) VALUES (22, 'x');
-- step: volatile defaults, stored generated columns, identity
ALTER TABLE s50.t ADD COLUMN v1 float8 DEFAULT random();
ALTER TABLE s50.t ADD COLUMN v2 uuid NOT NULL DEFAULT gen_random_uuid(), ADD COLUMN v3 int GENERATED ALWAYS AS IDENTITY;
ALTER TABLE s50.t ADD COLUMN g int GENERATED ALWAYS AS (b * 2) STORED;
-- step:
UPDATE s50.t SET b = b + 1 WHERE id < 10;
INSERT INTO s50.t (id, c3) VALUES (23, 'y');
ALTER TABLE s50.t ALTER g DROP EXPRESSION;
UPDATE s50.t SET g = 0 WHERE id = 23;
-- step: dropped, and made again with the same name
ALTER TABLE s50.t DROP COLUMN a;
ALTER TABLE s50.t ADD COLUMN a text;
UPDATE s50.t SET a = 'new' WHERE id = 5;
ALTER TABLE s50.t DROP COLUMN c2, ADD COLUMN c2 text DEFAULT 'other type';
-- step:
UPDATE s50.t SET b = 7 WHERE id = 6;
BEGIN;
INSERT INTO s50.t (id, a, c3) VALUES (30, 'gone', 'x');
ALTER TABLE s50.t DROP COLUMN a;
INSERT INTO s50.t (id, c3) VALUES (31, 'x');
ALTER TABLE s50.t ADD COLUMN a int DEFAULT 5;
INSERT INTO s50.t (id, c3) VALUES (32, 'x');
UPDATE s50.t SET a = 6 WHERE id = 30;
UPDATE s50.t SET b = 8 WHERE id = 7;
COMMIT;
-- step: the same once more, rolled back to a savepoint
BEGIN;
INSERT INTO s50.t (id, c3) VALUES (33, 'x');
SAVEPOINT s;
ALTER TABLE s50.t DROP COLUMN a, ADD COLUMN zz int DEFAULT 1;
INSERT INTO s50.t (id, c3, zz) VALUES (34, 'x', 2);
ROLLBACK TO s;
INSERT INTO s50.t (id, c3, a) VALUES (35, 'x', 1);
ALTER TABLE s50.t ADD COLUMN zz text DEFAULT 'zz';
UPDATE s50.t SET zz = 'set' WHERE id = 33;
COMMIT;
-- step: renamed, names changed round
ALTER TABLE s50.t RENAME COLUMN b TO bb;
INSERT INTO s50.t (id, bb, c3) VALUES (40, 40, 'x');
BEGIN;
UPDATE s50.t SET bb = -1 WHERE id = 40;
ALTER TABLE s50.t RENAME COLUMN bb TO tmp;
ALTER TABLE s50.t RENAME COLUMN zz TO bb;
ALTER TABLE s50.t RENAME COLUMN tmp TO zz;
INSERT INTO s50.t (id, zz, bb, c3) VALUES (41, 41, 'forty-one', 'x');
COMMIT;
ALTER TABLE s50.t RENAME COLUMN id TO "the id";
UPDATE s50.t SET "the id" = -1 WHERE "the id" = 41;
ALTER TABLE s50.t RENAME COLUMN "the id" TO id;
-- step: NOT NULL comes and goes
ALTER TABLE s50.t ALTER c4 DROP NOT NULL;
-- step:
INSERT INTO s50.t (id, c3, c4) VALUES (50, 'x', NULL);
DELETE FROM s50.t WHERE c4 IS NULL;
ALTER TABLE s50.t ALTER c4 SET NOT NULL;
INSERT INTO s50.t (id, c3, c4) VALUES (51, 'x', 1);
-- step: types change
CREATE TABLE s50.ty (id int PRIMARY KEY, i int, s varchar(10), n numeric(8, 2), ts timestamp, j json, f float4, a text);
INSERT INTO s50.ty SELECT g, g, 's' || g, g + 0.25, timestamp '2020-01-01' + g * interval '1 hour', '{"a":  1}', g / 4.0, g::text FROM generate_series(1, 20) g;
-- step:
ALTER TABLE s50.ty ALTER i TYPE bigint;
ALTER TABLE s50.ty ALTER s TYPE varchar(30);
ALTER TABLE s50.ty ALTER s TYPE text;
ALTER TABLE s50.ty ALTER n TYPE numeric(12, 4);
INSERT INTO s50.ty VALUES (21, 1::bigint << 40, repeat('s', 25), 1.2345);
-- step:
ALTER TABLE s50.ty ALTER ts TYPE timestamptz;
ALTER TABLE s50.ty ALTER j TYPE jsonb;
ALTER TABLE s50.ty ALTER f TYPE float8;
ALTER TABLE s50.ty ALTER n TYPE numeric;
-- step:
ALTER TABLE s50.ty ALTER a TYPE int USING a::int;
ALTER TABLE s50.ty ALTER i TYPE text USING 'i' || i;
-- step: with rows before and after in the transaction, keys changed by USING
BEGIN;
INSERT INTO s50.ty (id, i, a) VALUES (30, 'thirty', 30);
DELETE FROM s50.ty WHERE id = 2;
UPDATE s50.ty SET id = 33 WHERE id = 3;
ALTER TABLE s50.ty ALTER id TYPE bigint USING id * 1000;
INSERT INTO s50.ty (id, i, a) VALUES (31, 'thirty-one', 31);
UPDATE s50.ty SET i = 'x' WHERE id = 4000;
ALTER TABLE s50.ty ADD COLUMN r float8 DEFAULT random();
DELETE FROM s50.ty WHERE id = 5000;
COMMIT;
-- step: a rewrite rolled back between rows
BEGIN;
INSERT INTO s50.ty (id) VALUES (40);
SAVEPOINT s;
ALTER TABLE s50.ty ALTER id TYPE text USING 'k' || id;
INSERT INTO s50.ty (id) VALUES ('lost');
ROLLBACK TO s;
UPDATE s50.ty SET i = 'forty' WHERE id = 40;
COMMIT;
-- step: wide
SELECT 'CREATE TABLE s50.wide (id int PRIMARY KEY, ' || string_agg(format('c%s %s', g, (ARRAY['int', 'text', 'numeric(10, 2)', 'bool', 'timestamptz', 'float8'])[g % 6 + 1]), ', ') || ')' FROM generate_series(1, 299) g \gexec
INSERT INTO s50.wide (id, c6, c299, c1) SELECT g, g, 1.5, 'x' FROM generate_series(1, 50) g;
UPDATE s50.wide SET c3 = true, c150 = 1 WHERE id % 2 = 0;
SELECT 'ALTER TABLE s50.wide ' || string_agg('DROP COLUMN c' || g, ', ') FROM generate_series(1, 290) g WHERE g % 3 = 1 \gexec
INSERT INTO s50.wide (id, c299) VALUES (100, 2.5);
ALTER TABLE s50.wide ADD COLUMN c1 int DEFAULT 3;
UPDATE s50.wide SET c1 = 4 WHERE id > 45;
