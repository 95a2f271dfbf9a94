-- Files change under the rows.
CREATE TABLE s60.t (id int PRIMARY KEY, v text, n int);
CREATE TABLE s60.k (id int PRIMARY KEY, v text);
CREATE TABLE s60.e (id int PRIMARY KEY, v text);
INSERT INTO s60.t SELECT g, 'v' || g, g FROM generate_series(1, 3000) g;
INSERT INTO s60.k SELECT g, 'k' FROM generate_series(1, 100) g;
-- step: alone
VACUUM FULL s60.t;
UPDATE s60.t SET n = -n WHERE id % 3 = 0;
CLUSTER s60.t USING t_pkey;
DELETE FROM s60.t WHERE id % 5 = 0;
REINDEX TABLE s60.t;
REINDEX TABLE CONCURRENTLY s60.t;
INSERT INTO s60.t VALUES (5, 'again', 5);
VACUUM (FULL, FREEZE) s60.t;
VACUUM FULL s60.e; CLUSTER s60.e USING e_pkey; ALTER TABLE s60.e ADD COLUMN r float8 DEFAULT random(); TRUNCATE s60.e;
-- step: inside transactions, rows before and after
BEGIN;
UPDATE s60.t SET n = 1 WHERE id = 1; INSERT INTO s60.t VALUES (4001, 'x', 1); DELETE FROM s60.t WHERE id = 2;
CLUSTER s60.t;
UPDATE s60.t SET n = 2 WHERE id = 1; INSERT INTO s60.t VALUES (4002, 'x', 1); DELETE FROM s60.t WHERE id = 4001;
CLUSTER s60.t;
UPDATE s60.t SET id = 4003 WHERE id = 3;
COMMIT;
-- step: tablespaces
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE wsspace LOCATION '';
ALTER TABLE s60.t SET TABLESPACE wsspace;
UPDATE s60.t SET n = 3 WHERE id = 1;
BEGIN;
INSERT INTO s60.t VALUES (4010, 'before', 1); DELETE FROM s60.t WHERE id = 6;
ALTER TABLE s60.t SET TABLESPACE pg_default;
INSERT INTO s60.t VALUES (4011, 'after', 1); DELETE FROM s60.t WHERE id = 7;
ALTER TABLE s60.t SET TABLESPACE wsspace;
UPDATE s60.t SET n = 9 WHERE id IN (4010, 4011);
COMMIT;
CREATE TABLE s60.ts (id int PRIMARY KEY, v text) TABLESPACE wsspace;
INSERT INTO s60.ts SELECT g, 'ts' FROM generate_series(1, 10) g;
ALTER TABLE ALL IN TABLESPACE wsspace SET TABLESPACE pg_default;
UPDATE s60.ts SET v = 'moved';
DROP TABLESPACE wsspace;
-- step: unlogged and logged
CREATE UNLOGGED TABLE s60.u (id int PRIMARY KEY, v text);
INSERT INTO s60.u SELECT g, 'u' FROM generate_series(1, 100) g;
ALTER TABLE s60.u SET LOGGED;
UPDATE s60.u SET v = 'logged' WHERE id = 1;
-- step:
ALTER TABLE s60.u SET UNLOGGED;
DELETE FROM s60.u WHERE id > 50;
INSERT INTO s60.u VALUES (200, 'unlogged');
ALTER TABLE s60.u SET LOGGED;
-- step:
BEGIN;
DELETE FROM s60.k WHERE id < 10;
ALTER TABLE s60.k SET UNLOGGED;
DELETE FROM s60.k WHERE id < 20; INSERT INTO s60.k VALUES (300, 'u');
ALTER TABLE s60.k SET LOGGED;
DELETE FROM s60.k WHERE id < 30; INSERT INTO s60.k VALUES (301, 'l');
COMMIT;
-- step: several rewrites in one transaction
BEGIN;
UPDATE s60.k SET id = id + 1000 WHERE id BETWEEN 30 AND 40;
ALTER TABLE s60.k ADD COLUMN r float8 DEFAULT random();
CLUSTER s60.k USING k_pkey;
DELETE FROM s60.k WHERE id = 50;
COMMIT;
BEGIN;
DELETE FROM s60.k WHERE id = 51;
ALTER TABLE s60.k ALTER r TYPE text;
DELETE FROM s60.k WHERE id = 52;
ALTER TABLE s60.k ALTER id TYPE bigint USING id + 1;
INSERT INTO s60.k VALUES (53000, 'new', 'r');
COMMIT;
BEGIN;
DELETE FROM s60.k WHERE id = 60;
SAVEPOINT s;
ALTER TABLE s60.k ALTER id TYPE text USING 'x' || id;
SAVEPOINT t;
TRUNCATE s60.k;
ROLLBACK TO s;
DELETE FROM s60.k WHERE id = 61;
TRUNCATE s60.k; INSERT INTO s60.k VALUES (1, 'one', 'r');
CLUSTER s60.k USING k_pkey;
INSERT INTO s60.k VALUES (2, 'two', 'r');
COMMIT;
-- step: made, rewritten, dropped
BEGIN;
CREATE TABLE s60.n (id int PRIMARY KEY, v text);
INSERT INTO s60.n VALUES (1, 'one'), (2, 'two');
ALTER TABLE s60.n ADD COLUMN w int DEFAULT 7;
INSERT INTO s60.n VALUES (3, 'three', 3);
ALTER TABLE s60.n ALTER id TYPE bigint;
DELETE FROM s60.n WHERE id = 1;
CLUSTER s60.n USING n_pkey;
UPDATE s60.n SET v = 'TWO' WHERE id = 2;
COMMIT;
BEGIN; CREATE TABLE s60.brief (id int PRIMARY KEY); INSERT INTO s60.brief VALUES (1); TRUNCATE s60.brief; INSERT INTO s60.brief VALUES (2); DROP TABLE s60.brief; COMMIT;
BEGIN; CREATE TABLE s60.brief (id int PRIMARY KEY, v text); INSERT INTO s60.brief VALUES (1, repeat(md5('x'), 1000)); ALTER TABLE s60.brief ALTER id TYPE bigint; DROP TABLE s60.brief; CREATE TABLE s60.brief (v text PRIMARY KEY); INSERT INTO s60.brief VALUES ('second'); COMMIT;
CREATE TABLE s60.ctas AS SELECT g AS id, md5(g::text) AS v FROM generate_series(1, 10) g WHERE false;
ALTER TABLE s60.ctas ADD PRIMARY KEY (id);
INSERT INTO s60.ctas VALUES (1, 'x');
BEGIN; CREATE TABLE s60.ctas2 AS SELECT g AS id, md5(g::text) AS v FROM generate_series(1, 1000) g; ALTER TABLE s60.ctas2 ADD PRIMARY KEY (id); UPDATE s60.ctas2 SET v = 'x' WHERE id = 1; COMMIT;
BEGIN; SELECT g AS id, g::text AS v INTO s60.into1 FROM generate_series(1, 10) g; ALTER TABLE s60.into1 REPLICA IDENTITY FULL, ADD PRIMARY KEY (id); COMMIT;
CREATE TABLE s60.like1 (LIKE s60.t INCLUDING ALL); INSERT INTO s60.like1 SELECT * FROM s60.t LIMIT 10;
-- step: dropped and made again under the same name
DROP TABLE s60.like1;
CREATE TABLE s60.like1 (x text PRIMARY KEY);
INSERT INTO s60.like1 VALUES ('new one');
BEGIN; INSERT INTO s60.like1 VALUES ('dead'); DROP TABLE s60.like1; CREATE TABLE s60.like1 (x text PRIMARY KEY, y int); INSERT INTO s60.like1 VALUES ('third', 3); COMMIT;
-- step: two tables change names
BEGIN;
ALTER TABLE s60.ctas RENAME TO tmp; ALTER TABLE s60.ctas2 RENAME TO ctas; ALTER TABLE s60.tmp RENAME TO ctas2;
INSERT INTO s60.ctas VALUES (5000, 'was ctas2'); INSERT INTO s60.ctas2 VALUES (5000, 'was ctas');
COMMIT;
