-- step: in subtransactions, some rolled back
BEGIN;
UPDATE t SET n = n + 1 WHERE id <= 20;
SAVEPOINT a;
UPDATE t SET v = noise(5000, -id) WHERE id <= 10;
SAVEPOINT b;
UPDATE t SET n = n + 1 WHERE id <= 20;
ROLLBACK TO a;
UPDATE t SET n = n + 1 WHERE id <= 5;
UPDATE t SET v = noise(6000, id * 7) WHERE id BETWEEN 11 AND 15;
RELEASE a;
UPDATE t SET n = n + 1 WHERE id <= 20;
COMMIT;
UPDATE t SET n = n + 1;
-- step: prepared
BEGIN;
UPDATE t SET v = noise(4500, id + 3), n = n + 1 WHERE id <= 8;
UPDATE t SET c = c + 1 WHERE id <= 12;
PREPARE TRANSACTION 'one';
BEGIN;
UPDATE t SET v = noise(4600, id + 4) WHERE id BETWEEN 20 AND 30;
PREPARE TRANSACTION 'two';
UPDATE t SET n = n + 1 WHERE id > 40;
COMMIT PREPARED 'one';
ROLLBACK PREPARED 'two';
UPDATE t SET c = c + 1;
-- step: places are used again after VACUUM
DELETE FROM t WHERE id % 4 = 0;
VACUUM t;
INSERT INTO t SELECT g, noise(2600 + g, g * 3) FROM generate_series(200, 230) g;
UPDATE t SET n = n + 1;
DELETE FROM t WHERE id % 3 = 0;
INSERT INTO t SELECT g, noise(2700 + g, g * 5) FROM generate_series(300, 330) g;
VACUUM t;
UPDATE t SET v = v || 'y' WHERE id % 7 = 0;
VACUUM t;
UPDATE t SET n = n + 1;
-- step: HOT updates and pruning
UPDATE t SET c = c + 1 WHERE id < 50;
UPDATE t SET c = c + 1 WHERE id < 50;
UPDATE t SET c = c + 1 WHERE id < 50;
SELECT count(v) FROM t;
UPDATE t SET c = c + 1 WHERE id < 50;
-- step: VACUUM FULL
VACUUM FULL t;
UPDATE t SET n = n + 1;
DELETE FROM t WHERE id % 5 = 0;
-- step: CLUSTER, alone and inside a transaction
CLUSTER t USING t_pkey;
UPDATE t SET n = n + 1;
BEGIN;
INSERT INTO t SELECT g, noise(3100, g * 9) FROM generate_series(400, 410) g;
UPDATE t SET v = noise(3200, id) WHERE id % 6 = 1;
UPDATE t SET n = n + 1;
CLUSTER t USING t_pkey;
UPDATE t SET n = n + 1;
DELETE FROM t WHERE id % 7 = 2;
INSERT INTO t SELECT g, noise(3300, g) FROM generate_series(420, 425) g;
COMMIT;
UPDATE t SET c = c + 1;
-- step: CLUSTER that is rolled back
BEGIN;
CLUSTER t USING t_pkey;
UPDATE t SET v = noise(3400, id) WHERE id % 2 = 0;
ROLLBACK;
UPDATE t SET c = c + 1;
-- step: after a checkpoint rows of CLUSTER are in page images alone
CHECKPOINT;
VACUUM FULL t;
CHECKPOINT;
CLUSTER t USING t_pkey;
UPDATE t SET c = c + 1;
DELETE FROM t WHERE id % 11 = 3;
-- step: SET TABLESPACE
ALTER TABLE t SET TABLESPACE other;
UPDATE t SET n = n + 1;
DELETE FROM t WHERE id % 11 = 4;
ALTER TABLE t SET TABLESPACE pg_default;
UPDATE t SET n = n + 1;
-- step: the TOAST table by itself
SELECT format('VACUUM FULL %s', reltoastrelid::regclass) FROM pg_class WHERE oid = 't'::regclass \gexec
UPDATE t SET n = n + 1;
SELECT format('REINDEX TABLE %s', reltoastrelid::regclass) FROM pg_class WHERE oid = 't'::regclass \gexec
SELECT format('VACUUM %s', reltoastrelid::regclass) FROM pg_class WHERE oid = 't'::regclass \gexec
DELETE FROM t WHERE id % 11 = 5;
UPDATE t SET n = n + 1;
-- step: rewriting ALTERs
ALTER TABLE t ALTER n TYPE bigint;
UPDATE t SET c = c + 1;
ALTER TABLE t ADD COLUMN r float8 DEFAULT random();
UPDATE t SET c = c + 1;
BEGIN;
UPDATE t SET v = noise(3500, id) WHERE id % 3 = 1;
ALTER TABLE t ALTER n TYPE int;
UPDATE t SET c = c + 1;
CLUSTER t USING t_pkey;
UPDATE t SET c = c + 1;
COMMIT;
UPDATE t SET n = n + 1;
-- step: columns come and go
ALTER TABLE t ADD COLUMN w text DEFAULT repeat('w', 100);
UPDATE t SET w = noise(5000, id) WHERE id % 2 = 0;
UPDATE t SET n = n + 1;
ALTER TABLE t DROP COLUMN w;
UPDATE t SET n = n + 1;
ALTER TABLE t ADD COLUMN w text;
UPDATE t SET w = noise(5100, id) WHERE id % 2 = 1;
UPDATE t SET n = n + 1;
-- step: storage and compression
ALTER TABLE t ALTER v SET STORAGE EXTENDED;
UPDATE t SET n = n + 1;
UPDATE t SET v = twice(20000, id) WHERE id % 4 = 2;
ALTER TABLE t ALTER v SET STORAGE MAIN;
UPDATE t SET n = n + 1;
ALTER TABLE t ALTER v SET STORAGE PLAIN;
UPDATE t SET n = n + 1 WHERE id = 1;
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
ALTER TABLE t SET (toast_tuple_target = 128);
UPDATE t SET n = n + 1;
-- step: a TOAST table that comes later
CREATE TABLE late (id int PRIMARY KEY, v varchar(20), n int DEFAULT 0);
INSERT INTO late SELECT g, 'v' || g FROM generate_series(1, 10) g;
ALTER TABLE late ALTER v TYPE text;
ALTER TABLE late ALTER v SET STORAGE EXTERNAL;
UPDATE late SET v = noise(4000, id) WHERE id > 5;
UPDATE late SET n = 1;
-- step: names change
ALTER TABLE late RENAME TO later;
UPDATE later SET n = n + 1;
CREATE SCHEMA s;
ALTER TABLE later SET SCHEMA s;
UPDATE s.later SET n = n + 1;
-- step: TRUNCATE
TRUNCATE t;
INSERT INTO t (id, v) SELECT g, noise(2500 + g, g) FROM generate_series(1, 40) g;
UPDATE t SET n = n + 1;
BEGIN;
UPDATE t SET n = n + 1;
TRUNCATE t;
INSERT INTO t (id, v) SELECT g, noise(2600 + g, g) FROM generate_series(1, 20) g;
TRUNCATE t;
INSERT INTO t (id, v) SELECT g, noise(2700 + g, g) FROM generate_series(1, 30) g;
UPDATE t SET n = n + 1;
COMMIT;
UPDATE t SET n = n + 1;
BEGIN;
TRUNCATE t;
INSERT INTO t (id, v) SELECT g, noise(2800 + g, g) FROM generate_series(1, 30) g;
ROLLBACK;
UPDATE t SET n = n + 1;
BEGIN;
SAVEPOINT a;
TRUNCATE t;
ROLLBACK TO a;
UPDATE t SET n = n + 1;
COMMIT;
UPDATE t SET n = n + 1;
-- step: DROP, and another of that name
BEGIN;
UPDATE gone SET id = id + 100;
DROP TABLE gone;
CREATE TABLE gone (id int PRIMARY KEY, v text, w text);
INSERT INTO gone SELECT g, noise(9100, g) FROM generate_series(1, 20) g;
UPDATE gone SET w = 'w';
COMMIT;
UPDATE gone SET w = 'x';
-- step: made, changed and dropped in one
BEGIN;
CREATE TABLE x (id int PRIMARY KEY, v text, n int);
INSERT INTO x SELECT g, noise(9100, g) FROM generate_series(1, 5) g;
UPDATE x SET n = 1;
DROP TABLE x;
COMMIT;
-- step: UNLOGGED and back
ALTER TABLE gone SET UNLOGGED;
UPDATE gone SET w = 'y';
DELETE FROM gone WHERE id > 15;
ALTER TABLE gone SET LOGGED;
UPDATE gone SET w = 'z';
-- step: between partitions
UPDATE p SET n = n + 1;
UPDATE p SET part = 3 - part WHERE id % 3 = 0;
UPDATE p SET n = n + 1;
VACUUM FULL p1;
UPDATE p SET n = n + 1;
ALTER TABLE p DETACH PARTITION p2;
UPDATE p2 SET n = n + 1;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
UPDATE p SET n = n + 1;
-- step: upserts and MERGE
INSERT INTO t (id, v) SELECT g, noise(2900, g) FROM generate_series(20, 50) g ON CONFLICT (id) DO UPDATE SET n = t.n + 10;
INSERT INTO t (id, v) SELECT g, noise(2900, -g) FROM generate_series(40, 60) g ON CONFLICT (id) DO UPDATE SET v = excluded.v || t.v;
MERGE INTO t USING (SELECT g AS id FROM generate_series(1, 80) g) s ON t.id = s.id
	WHEN MATCHED AND t.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = n + 1
	WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, noise(3000, s.id));
UPDATE t SET n = n + 1;
-- step: COPY
COPY t (id, v) FROM PROGRAM 'for i in $(seq 1000 1040); do printf "%s\t" $i; seq $i $((i + 900)) | tr -d "\n"; echo; done';
UPDATE t SET n = n + 1 WHERE id >= 1000;
-- step: a large one
INSERT INTO t (id, v) VALUES (5000, noise(3000000, 1));
UPDATE t SET n = 1 WHERE id = 5000;
UPDATE t SET n = 2 WHERE id = 5000;
