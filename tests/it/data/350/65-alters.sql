-- DDL that fails, is undone, or changes nothing of the rows; names of types, owners, other tables' files.
CREATE TYPE s65.color AS ENUM ('red', 'green');
CREATE TYPE s65.pair AS (a int, b text);
CREATE DOMAIN s65.short AS varchar(5);
CREATE TABLE s65.t (id int PRIMARY KEY, n int, v text, c s65.color, s s65.short);
CREATE TABLE s65.f (id int PRIMARY KEY, n int, v text);
ALTER TABLE s65.f REPLICA IDENTITY FULL;
INSERT INTO s65.t SELECT g, g, 'v' || g, 'red', 's' FROM generate_series(1, 50) g;
INSERT INTO s65.f SELECT g, g, 'v' || g FROM generate_series(1, 50) g;
-- step: rewrites that fail half way, alone and in savepoints
\set ON_ERROR_STOP off
ALTER TABLE s65.t ALTER n TYPE bigint USING 10 / (n - 25);
ALTER TABLE s65.t ADD COLUMN x int NOT NULL;
ALTER TABLE s65.t ADD COLUMN x float8 DEFAULT 1 / (random()::int - random()::int);
CREATE UNIQUE INDEX ON s65.t (c);
ALTER TABLE s65.t ADD CONSTRAINT c CHECK (n < 10);
BEGIN; UPDATE s65.t SET n = 1000 WHERE id = 1; SAVEPOINT a; ALTER TABLE s65.t ALTER n TYPE bigint USING 10 / (n - 25); ROLLBACK TO a; DELETE FROM s65.t WHERE id = 2;
SAVEPOINT b; ALTER TABLE s65.t ALTER n TYPE text USING n::text; INSERT INTO s65.t VALUES (51, 'text', 'undone'); SELECT 1 / 0; ROLLBACK TO b; INSERT INTO s65.t VALUES (52, 52, 'kept');
SAVEPOINT c; ALTER TABLE s65.t DROP COLUMN v, ADD COLUMN v int DEFAULT 5; UPDATE s65.t SET v = 6 WHERE id = 3; ROLLBACK TO c; UPDATE s65.t SET v = 'text' WHERE id = 3; COMMIT;
BEGIN; ALTER TABLE s65.t ALTER n TYPE bigint; INSERT INTO s65.t VALUES (53, 1::bigint << 40, 'undone'); SELECT 1 / 0; COMMIT;
BEGIN; CREATE TABLE s65.t (id int); COMMIT;
BEGIN; DROP TABLE s65.t; ROLLBACK;
BEGIN; SAVEPOINT a; DROP TABLE s65.t; CREATE TABLE s65.t (id int PRIMARY KEY, other text); INSERT INTO s65.t VALUES (1, 'undone'); ROLLBACK TO a; UPDATE s65.t SET n = 3 WHERE id = 3; COMMIT;
\set ON_ERROR_STOP on
-- step: a failed rewrite, then one that succeeds, in one transaction
BEGIN; DELETE FROM s65.t WHERE id = 4; SAVEPOINT a; ALTER TABLE s65.t ALTER id TYPE text USING 'x' || id; ROLLBACK TO a; ALTER TABLE s65.t ALTER id TYPE bigint USING id + 100; UPDATE s65.t SET v = 'after' WHERE id = 105; COMMIT;
BEGIN; UPDATE s65.t SET v = 'a' WHERE id = 106; SAVEPOINT a; ALTER TABLE s65.t ALTER id TYPE int; SAVEPOINT b; ALTER TABLE s65.t ALTER n TYPE text; ROLLBACK TO b; UPDATE s65.t SET v = 'b' WHERE id = 107; RELEASE a; DELETE FROM s65.t WHERE id = 108; COMMIT;
-- step: names of types, labels, attributes of composites; rows between in one transaction
BEGIN; INSERT INTO s65.t VALUES (200, 1, 'x', 'green', 's'); ALTER TYPE s65.color RENAME TO colour; INSERT INTO s65.t VALUES (201, 1, 'x', 'red', 's'); COMMIT;
ALTER TYPE s65.colour ADD VALUE 'blue' BEFORE 'green';
INSERT INTO s65.t VALUES (202, 1, 'x', 'blue', 's');
ALTER DOMAIN s65.short RENAME TO brief;
ALTER DOMAIN s65.brief DROP NOT NULL;
INSERT INTO s65.t VALUES (203, 1, 'x', 'blue', NULL);
UPDATE s65.t SET c = 'blue' WHERE id = 110;
ALTER TABLE s65.t ALTER c TYPE text USING c::text;
UPDATE s65.t SET c = 'any' WHERE id = 111;
-- step: owners, rights, comments, storage, statistics, triggers, policies, constraints
CREATE ROLE s65_owner;
BEGIN; UPDATE s65.t SET n = 7 WHERE id = 112; ALTER TABLE s65.t OWNER TO s65_owner; UPDATE s65.t SET n = 8 WHERE id = 113; COMMIT;
ALTER SCHEMA s65 OWNER TO s65_owner;
GRANT ALL ON s65.t TO PUBLIC; REVOKE ALL ON s65.t FROM PUBLIC;
COMMENT ON COLUMN s65.t.v IS 'a comment';
ALTER TABLE s65.t ALTER v SET STORAGE EXTERNAL, ALTER n SET STATISTICS 100, SET (fillfactor = 50, autovacuum_enabled = off), ALTER v SET COMPRESSION pglz;
BEGIN; UPDATE s65.t SET n = 9 WHERE id = 114; ALTER TABLE s65.t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON s65.t USING (true); ALTER TABLE s65.t ADD CHECK (id > 0) NOT VALID; DELETE FROM s65.t WHERE id = 115; COMMIT;
ALTER TABLE s65.t ADD UNIQUE (id, n); ALTER TABLE s65.t ADD EXCLUDE USING btree (id WITH =);
CREATE STATISTICS s65.st ON id, n FROM s65.t; ANALYZE s65.t; DROP STATISTICS s65.st;
CREATE RULE r AS ON INSERT TO s65.t WHERE NEW.id = 999 DO INSTEAD NOTHING; INSERT INTO s65.t VALUES (999), (204); DROP RULE r ON s65.t;
ALTER TABLE s65.t OWNER TO postgres; ALTER SCHEMA s65 OWNER TO postgres; DROP OWNED BY s65_owner; DROP ROLE s65_owner;
-- step: identity and key changes that keep what the destination sorts by
BEGIN; DELETE FROM s65.f WHERE id = 1; ALTER TABLE s65.f REPLICA IDENTITY DEFAULT; DELETE FROM s65.f WHERE id = 2; UPDATE s65.f SET id = 103 WHERE id = 3; ALTER TABLE s65.f REPLICA IDENTITY FULL; UPDATE s65.f SET id = 104 WHERE id = 4; COMMIT;
CREATE UNIQUE INDEX f_other ON s65.f (id);
BEGIN; UPDATE s65.f SET v = 'x' WHERE id = 5; ALTER TABLE s65.f REPLICA IDENTITY USING INDEX f_other; UPDATE s65.f SET id = 106 WHERE id = 6; ALTER TABLE s65.f DROP CONSTRAINT f_pkey; DELETE FROM s65.f WHERE id = 7; COMMIT;
ALTER TABLE s65.f ADD PRIMARY KEY USING INDEX f_other;
UPDATE s65.f SET id = 108 WHERE id = 8; DELETE FROM s65.f WHERE id = 9;
-- step: a table's files and rows in one transaction: everything at once
BEGIN;
INSERT INTO s65.f VALUES (300, 1, 'dead'); ALTER TABLE s65.f ADD COLUMN r float8 DEFAULT random();
SAVEPOINT a; TRUNCATE s65.f; INSERT INTO s65.f VALUES (301, 1, 'undone'); ROLLBACK TO a;
UPDATE s65.f SET n = -1 WHERE id = 10; ALTER TABLE s65.f SET UNLOGGED; UPDATE s65.f SET n = -2 WHERE id = 11; ALTER TABLE s65.f SET LOGGED; UPDATE s65.f SET n = -3 WHERE id = 12;
CLUSTER s65.f USING f_other; UPDATE s65.f SET n = -4 WHERE id = 13; ALTER TABLE s65.f RENAME TO g; ALTER TABLE s65.g RENAME COLUMN n TO m; UPDATE s65.g SET m = -5 WHERE id = 14; ALTER TABLE s65.g SET SCHEMA public; UPDATE public.g SET m = -6 WHERE id = 15; ALTER TABLE public.g SET SCHEMA s65;
COMMIT;
-- step: made, rewritten, renamed, dropped, in one; another of its name after
BEGIN; CREATE TABLE s65.n (id int PRIMARY KEY, v text); INSERT INTO s65.n VALUES (1, 'x'); ALTER TABLE s65.n ALTER id TYPE bigint; CLUSTER s65.n USING n_pkey; ALTER TABLE s65.n RENAME TO nn; DROP TABLE s65.nn; CREATE TABLE s65.n (k text PRIMARY KEY); INSERT INTO s65.n VALUES ('second'); SAVEPOINT a; DROP TABLE s65.n; ROLLBACK TO a; INSERT INTO s65.n VALUES ('third'); COMMIT;
BEGIN; CREATE TABLE s65.o (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE s65.o1 PARTITION OF s65.o DEFAULT; INSERT INTO s65.o VALUES (1); ALTER TABLE s65.o ADD COLUMN r float8 DEFAULT random(); INSERT INTO s65.o VALUES (2); ALTER TABLE s65.o DETACH PARTITION s65.o1; INSERT INTO s65.o1 VALUES (3); COMMIT;
-- step: two phases with a rewrite; its locks are gone before the comparison
BEGIN; DELETE FROM s65.n WHERE k = 'third'; ALTER TABLE s65.n ADD COLUMN x float8 DEFAULT random(); INSERT INTO s65.n VALUES ('fourth'); PREPARE TRANSACTION 's65a';
INSERT INTO s65.o1 VALUES (4, 4);
COMMIT PREPARED 's65a';
BEGIN; ALTER TABLE s65.n ALTER k TYPE varchar(100) USING k || '!'; PREPARE TRANSACTION 's65b';
ROLLBACK PREPARED 's65b';
INSERT INTO s65.n VALUES ('fifth', 1);
