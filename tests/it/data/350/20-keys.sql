-- Keys that change, change places, and come back; upserts, MERGE, COPY.
CREATE TABLE s20.t (id int PRIMARY KEY, v text, n int DEFAULT 0);
CREATE TABLE s20.c (a int, b text, v int, PRIMARY KEY (b, a));
CREATE TABLE s20.f (id int PRIMARY KEY DEFERRABLE, u int NOT NULL UNIQUE, v text);
CREATE UNIQUE INDEX f_u ON s20.f (u);
ALTER TABLE s20.f REPLICA IDENTITY USING INDEX f_u;
INSERT INTO s20.t SELECT g, 'v' || g FROM generate_series(1, 200) g;
INSERT INTO s20.c SELECT g % 10, 'b' || g / 10, g FROM generate_series(0, 99) g;
INSERT INTO s20.f SELECT g, g + 100, 'f' FROM generate_series(1, 20) g;
-- step: moved keys
UPDATE s20.t SET id = id + 1000 WHERE id <= 50;
UPDATE s20.t SET id = -id WHERE id BETWEEN 60 AND 80;
UPDATE s20.c SET a = a + 100 WHERE v % 3 = 0;
UPDATE s20.c SET b = b || 'x', a = a - 1 WHERE v % 5 = 0;
UPDATE s20.f SET u = u + 1000, id = id + 1 WHERE id > 10;
-- step: swapped in one transaction
BEGIN;
UPDATE s20.t SET id = 999999 WHERE id = 100;
UPDATE s20.t SET id = 100 WHERE id = 101;
UPDATE s20.t SET id = 101 WHERE id = 999999;
COMMIT;
BEGIN;
UPDATE s20.t SET id = 999999 WHERE id = 102;
UPDATE s20.t SET id = 102 WHERE id = 103;
UPDATE s20.t SET id = 103 WHERE id = 104;
UPDATE s20.t SET id = 104 WHERE id = 999999;
UPDATE s20.t SET id = 102, v = v || '!' WHERE id = 102;
COMMIT;
-- step: one key deleted and inserted again and again
BEGIN;
DELETE FROM s20.t WHERE id = 110; INSERT INTO s20.t VALUES (110, 'again'); DELETE FROM s20.t WHERE id = 110;
INSERT INTO s20.t VALUES (110, 'third'); UPDATE s20.t SET v = 'fourth' WHERE id = 110;
DELETE FROM s20.t WHERE id = 111; INSERT INTO s20.t VALUES (111, 'x'); DELETE FROM s20.t WHERE id = 111;
INSERT INTO s20.t VALUES (5000, 'brief'); DELETE FROM s20.t WHERE id = 5000;
COMMIT;
DELETE FROM s20.t WHERE id = 112;
INSERT INTO s20.t VALUES (112, 'back');
DELETE FROM s20.t WHERE id = 113;
DO $$ BEGIN FOR i IN 1 .. 500 LOOP UPDATE s20.t SET n = i WHERE id = 114; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1 .. 200 LOOP UPDATE s20.t SET n = i WHERE id = 115; COMMIT; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1 .. 100 LOOP DELETE FROM s20.t WHERE id = 116; INSERT INTO s20.t VALUES (116, 'round ' || i, i); COMMIT; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1 .. 51 LOOP UPDATE s20.t SET id = CASE id WHEN 117 THEN 7117 ELSE 117 END, n = i WHERE id IN (117, 7117); COMMIT; END LOOP; END $$;
-- step: empty tables that are rewritten: one never had rows, one has none any more
CREATE TABLE s20.never (id int PRIMARY KEY, x float8, y text);
CREATE TABLE s20.gone (id int PRIMARY KEY, x float8, y text);
INSERT INTO s20.gone SELECT g, g / 3.0, 'y' FROM generate_series(1, 10) g;
DELETE FROM s20.gone;

-- step: their columns become what no cast of the destination's values gives
ALTER TABLE s20.never ALTER x TYPE text USING x::text;
ALTER TABLE s20.gone ALTER x TYPE text USING x::text;
INSERT INTO s20.never VALUES (1, 'one', 'y');
INSERT INTO s20.gone VALUES (1, 'one', 'y');

-- step: an empty table again, and filled
DELETE FROM s20.c;
-- step:
INSERT INTO s20.c VALUES (1, 'b0', 1);
-- step: ON CONFLICT
INSERT INTO s20.t VALUES (1, 'new'), (120, 'old one'), (2, 'new') ON CONFLICT DO NOTHING;
INSERT INTO s20.t VALUES (3, 'new'), (121, 'replaced'), (122, 'replaced') ON CONFLICT (id) DO UPDATE SET v = excluded.v, n = s20.t.n + 1;
INSERT INTO s20.t VALUES (123, 'x') ON CONFLICT (id) DO UPDATE SET id = 8123;
INSERT INTO s20.t SELECT g, 'many' FROM generate_series(115, 1200) g ON CONFLICT (id) DO UPDATE SET v = s20.t.v || '+', n = 77 WHERE s20.t.id % 2 = 0;
BEGIN;
INSERT INTO s20.t VALUES (9001, 'a') ON CONFLICT (id) DO UPDATE SET v = 'conflict';
INSERT INTO s20.t VALUES (9001, 'a') ON CONFLICT (id) DO UPDATE SET v = 'conflict';
SAVEPOINT s;
INSERT INTO s20.t VALUES (9002, 'a') ON CONFLICT (id) DO NOTHING;
ROLLBACK TO s;
INSERT INTO s20.t VALUES (9002, 'b') ON CONFLICT (id) DO NOTHING;
COMMIT;
-- step: MERGE
MERGE INTO s20.t USING (SELECT g AS id, 'm' || g AS v FROM generate_series(100, 400, 3) g) s ON s20.t.id = s.id
	WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, n = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
MERGE INTO s20.t USING (SELECT g AS id FROM generate_series(10000, 10100) g) s ON s20.t.id = s.id
	WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND s.id % 2 = 0 THEN INSERT (id, v) VALUES (s.id, 'merged');
-- step: COPY
COPY s20.c FROM STDIN;
1	copy	\N
2	copy\ttab	2
3	ä\\	3
\.
BEGIN;
COPY s20.t (id, v) FROM PROGRAM 'seq 20000 25000 | sed "s/.*/&\tcopied &/"';
UPDATE s20.t SET n = 5 WHERE id BETWEEN 20100 AND 20200;
DELETE FROM s20.t WHERE id BETWEEN 20150 AND 20160;
COPY s20.t (id, v) FROM PROGRAM 'seq 20150 20155 | sed "s/.*/&\tagain/"';
SAVEPOINT a;
COPY s20.t (id, v) FROM PROGRAM 'seq 30000 31500 | sed "s/.*/&\tundone/"';
ROLLBACK TO a;
COPY s20.t (id, v) FROM PROGRAM 'seq 30000 30010 | sed "s/.*/&\tdone/"';
COMMIT;
BEGIN;
CREATE TABLE s20.frozen (id int PRIMARY KEY, v text);
COPY s20.frozen FROM PROGRAM 'seq 1 3000 | sed "s/.*/&\tfrozen/"' WITH (FREEZE);
COMMIT;
BEGIN;
TRUNCATE s20.frozen;
COPY s20.frozen FROM PROGRAM 'seq 2000 4000 | sed "s/.*/&\tagain/"' WITH (FREEZE);
COMMIT;
