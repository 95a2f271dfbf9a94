-- Partitions: rows that move, partitions that come and go; inheritance.
CREATE TABLE s70.p (id int, k text, v int, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
CREATE TABLE s70.pa PARTITION OF s70.p FOR VALUES IN ('a');
CREATE TABLE s70.pb (v int, k text NOT NULL, id int NOT NULL, PRIMARY KEY (id, k));
ALTER TABLE s70.pb DROP COLUMN v, ADD COLUMN v int;
INSERT INTO s70.pb VALUES ('b', 1000, 1);
ALTER TABLE s70.p ATTACH PARTITION s70.pb FOR VALUES IN ('b');
CREATE TABLE s70.pd PARTITION OF s70.p DEFAULT PARTITION BY HASH (id);
CREATE TABLE s70.pd0 PARTITION OF s70.pd FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE s70.pd1 PARTITION OF s70.pd FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO s70.p SELECT g, chr(97 + g % 4), g FROM generate_series(1, 200) g;
-- step: moves
UPDATE s70.p SET k = 'b' WHERE k = 'a' AND id % 3 = 0;
UPDATE s70.p SET k = 'z' WHERE k = 'b' AND id % 5 = 0;
UPDATE s70.p SET id = id + 1000 WHERE k = 'z' AND id % 2 = 0;
BEGIN;
UPDATE s70.p SET k = 'a' WHERE k = 'z' AND id > 50;
UPDATE s70.p SET k = 'b', v = -1 WHERE k = 'a' AND id > 60;
UPDATE s70.p SET k = 'a' WHERE k = 'b' AND id > 70;
SAVEPOINT s; UPDATE s70.p SET k = 'd'; ROLLBACK TO s;
COMMIT;
COPY s70.p FROM PROGRAM 'for i in $(seq 5000 6500); do case $((i % 3)) in 0) k=a ;; 1) k=b ;; *) k=q$i ;; esac; printf "%s\t%s\t%s\n" $i $k 7; done';
INSERT INTO s70.p VALUES (1, 'b', 5), (2, 'c', 5) ON CONFLICT (id, k) DO UPDATE SET v = 99;
-- step: columns
ALTER TABLE s70.p ADD COLUMN w text DEFAULT 'w';
UPDATE s70.p SET w = 'x' WHERE id < 10;
ALTER TABLE s70.p DROP COLUMN v;
INSERT INTO s70.p VALUES (7000, 'a', 'new'), (7000, 'b', 'new'), (7000, 'y', 'new');
ALTER TABLE s70.p ALTER w TYPE varchar(20);
-- step: detached, attached, dropped
ALTER TABLE s70.p DETACH PARTITION s70.pb;
INSERT INTO s70.pb (k, id, w) VALUES ('free', 1, 'x');
DELETE FROM s70.pb WHERE k = 'free';
-- step:
ALTER TABLE s70.p ATTACH PARTITION s70.pb FOR VALUES IN ('b');
INSERT INTO s70.p VALUES (8000, 'b', 'back');
BEGIN;
CREATE TABLE s70.pe (LIKE s70.p INCLUDING ALL); INSERT INTO s70.pe VALUES (1, 'e', 'e');
ALTER TABLE s70.p DETACH PARTITION s70.pd;
ALTER TABLE s70.p ATTACH PARTITION s70.pe FOR VALUES IN ('e'); INSERT INTO s70.p VALUES (2, 'e', 'e');
COMMIT;
DROP TABLE s70.pa;
ALTER TABLE s70.p DETACH PARTITION s70.pe CONCURRENTLY;
UPDATE s70.pe SET w = 'detached';
UPDATE s70.pd SET id = id + 1 WHERE id < 100;
-- step: a row moves into a partition made by the same transaction
BEGIN;
CREATE TABLE s70.pn PARTITION OF s70.p FOR VALUES IN ('n');
UPDATE s70.p SET k = 'n' WHERE k = 'b' AND id > 100;
COMMIT;
-- step: inheritance
CREATE TABLE s70.parent (id int PRIMARY KEY, v text);
CREATE TABLE s70.child (extra int, PRIMARY KEY (id)) INHERITS (s70.parent);
INSERT INTO s70.parent VALUES (1, 'p'); INSERT INTO s70.child VALUES (2, 'c', 3);
UPDATE s70.parent SET v = v || '!';
ALTER TABLE s70.parent ADD COLUMN w int DEFAULT 4;
UPDATE s70.parent SET w = 5;
DELETE FROM ONLY s70.parent;
ALTER TABLE s70.child NO INHERIT s70.parent;
INSERT INTO s70.child VALUES (10, 'x', 1, 1);
