-- Replica identities, and their changes.
CREATE TABLE s80.f (id int PRIMARY KEY, v text, n int);
ALTER TABLE s80.f REPLICA IDENTITY FULL;
BEGIN;
CREATE TABLE s80.i (id int PRIMARY KEY, u text NOT NULL, x int NOT NULL, v text);
CREATE UNIQUE INDEX i_u ON s80.i (x, u);
ALTER TABLE s80.i REPLICA IDENTITY USING INDEX i_u;
COMMIT;
CREATE TABLE s80.c (a int, b text, c date, v int, PRIMARY KEY (c, a, b));
CREATE TABLE s80.inc (id int, v text, PRIMARY KEY (id) INCLUDE (v));
INSERT INTO s80.f SELECT g, 'f', g FROM generate_series(1, 50) g;
INSERT INTO s80.i SELECT g, 'u' || g, g % 5, 'i' FROM generate_series(1, 50) g;
INSERT INTO s80.c SELECT g, 'b' || g % 3, date '2020-01-01' + g, g FROM generate_series(1, 50) g;
INSERT INTO s80.inc SELECT g, 'i' FROM generate_series(1, 20) g;
-- step: changes
UPDATE s80.f SET v = NULL WHERE id % 2 = 0; UPDATE s80.f SET id = id + 100 WHERE id % 3 = 0; DELETE FROM s80.f WHERE id % 5 = 0;
UPDATE s80.i SET v = 'x' WHERE id % 2 = 0; UPDATE s80.i SET u = u || 'y' WHERE id % 3 = 0; UPDATE s80.i SET id = -id WHERE id % 7 = 0; DELETE FROM s80.i WHERE id % 5 = 0;
UPDATE s80.c SET v = -v WHERE a % 2 = 0; UPDATE s80.c SET c = c + 365 WHERE a % 3 = 0; DELETE FROM s80.c WHERE a % 5 = 0;
UPDATE s80.inc SET v = 'changed' WHERE id < 5; DELETE FROM s80.inc WHERE id = 6; UPDATE s80.inc SET id = 100 WHERE id = 7;
-- step: keys change places row by row with FULL
BEGIN; UPDATE s80.f SET id = -1 WHERE id = 1; UPDATE s80.f SET id = 1 WHERE id = 2; UPDATE s80.f SET id = 2 WHERE id = -1; COMMIT;
-- step: another identity that keeps the key
ALTER TABLE s80.f REPLICA IDENTITY DEFAULT;
UPDATE s80.f SET n = -n; UPDATE s80.f SET id = id + 1000 WHERE id % 4 = 0; DELETE FROM s80.f WHERE id % 7 = 0;
ALTER TABLE s80.f REPLICA IDENTITY FULL;
DELETE FROM s80.f WHERE id % 11 = 0;
-- step: within a transaction
BEGIN;
UPDATE s80.c SET v = 7 WHERE a = 1;
ALTER TABLE s80.c REPLICA IDENTITY FULL;
UPDATE s80.c SET b = 'bb' WHERE a = 1; DELETE FROM s80.c WHERE a = 2;
ALTER TABLE s80.c REPLICA IDENTITY DEFAULT;
UPDATE s80.c SET a = 1000 WHERE a = 4;
COMMIT;
-- step: the key's index is made new
ALTER TABLE s80.inc DROP CONSTRAINT inc_pkey, ADD PRIMARY KEY (id);
DELETE FROM s80.inc WHERE id = 8; UPDATE s80.inc SET id = 200 WHERE id = 9;
-- step: FULL without a column that was there
ALTER TABLE s80.f ADD COLUMN d int DEFAULT 9;
UPDATE s80.f SET v = 'd' WHERE id < 20; DELETE FROM s80.f WHERE id BETWEEN 20 AND 22;
ALTER TABLE s80.f DROP COLUMN n;
UPDATE s80.f SET d = NULL WHERE id < 10; DELETE FROM s80.f WHERE id BETWEEN 23 AND 30;
