-- Transactions: savepoints, many subtransactions, two phases, other noise.
CREATE TABLE s95.t (id int PRIMARY KEY, v text);
CREATE TABLE s95.m (id serial PRIMARY KEY, v text);
INSERT INTO s95.t SELECT g, 'v' FROM generate_series(1, 100) g;
-- step: savepoints
BEGIN;
UPDATE s95.t SET v = '1' WHERE id = 1;
SAVEPOINT a; UPDATE s95.t SET v = '2' WHERE id = 2; SAVEPOINT b; UPDATE s95.t SET v = '3' WHERE id = 3; ROLLBACK TO b; UPDATE s95.t SET v = '4' WHERE id = 4; RELEASE a;
SAVEPOINT a; DELETE FROM s95.t WHERE id > 50; ROLLBACK TO a; DELETE FROM s95.t WHERE id = 51; SAVEPOINT c; INSERT INTO s95.t VALUES (51, 'back');
COMMIT;
BEGIN; SAVEPOINT a; INSERT INTO s95.t VALUES (500, 'x'); ROLLBACK TO a; SAVEPOINT b; INSERT INTO s95.t VALUES (500, 'y'); RELEASE b; COMMIT;
BEGIN; INSERT INTO s95.t VALUES (501, 'x'); SAVEPOINT a; INSERT INTO s95.t VALUES (502, 'x'); ROLLBACK;
-- step: more than 64 subtransactions, side by side and nested
DO $$ BEGIN FOR i IN 1 .. 300 LOOP BEGIN INSERT INTO s95.t VALUES (1000 + i, 'sub'); IF i % 3 = 0 THEN RAISE EXCEPTION 'x'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$;
CREATE FUNCTION s95.nest(i int, n int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO s95.t VALUES (i + n, 'depth ' || n);
	IF n > 0 THEN BEGIN PERFORM s95.nest(i, n - 1); IF n % 50 = 0 THEN RAISE EXCEPTION 'x'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END IF;
	UPDATE s95.t SET v = v || ' up' WHERE id = i + n;
END $$;
SELECT s95.nest(2000, 120);
SELECT s95.nest(3000, 49);
BEGIN; SELECT s95.nest(4000, 100); ROLLBACK;
DO $$ BEGIN FOR i IN 1 .. 200 LOOP BEGIN CREATE TEMP TABLE x (a int); INSERT INTO s95.t VALUES (6000 + i, 'temp'); DROP TABLE x; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$;
-- step: two phases
BEGIN; UPDATE s95.t SET v = 'prepared' WHERE id = 10; INSERT INTO s95.t VALUES (700, repeat(md5('p'), 500)); SAVEPOINT a; INSERT INTO s95.t VALUES (701, 'sub'); SAVEPOINT b; INSERT INTO s95.t VALUES (702, 'x'); ROLLBACK TO b; PREPARE TRANSACTION 'p1';
BEGIN; UPDATE s95.t SET v = 'never' WHERE id = 11; PREPARE TRANSACTION 'p2';
UPDATE s95.t SET v = 'meanwhile' WHERE id = 12;
-- step: one of them with DDL, whose lock a comparison would wait for
BEGIN; ALTER TABLE s95.m ADD COLUMN w int DEFAULT 8; INSERT INTO s95.m (v) VALUES ('with DDL'); PREPARE TRANSACTION 'p3';
COMMIT PREPARED 'p1';
ROLLBACK PREPARED 'p2';
UPDATE s95.t SET v = 'after' WHERE id IN (10, 11);
COMMIT PREPARED 'p3';
INSERT INTO s95.m (v) VALUES ('after DDL');
-- step: what leaves no rows
BEGIN; SELECT pg_logical_emit_message(true, 'p', 'transactional'); SELECT pg_logical_emit_message(false, 'p', 'not'); INSERT INTO s95.t VALUES (800, 'x'); SELECT pg_logical_emit_message(true, 'p', repeat('x', 100000)); ROLLBACK;
SELECT pg_logical_emit_message(true, 'p', 'alone');
BEGIN; SELECT pg_logical_emit_message(true, 'p', 'with'); INSERT INTO s95.t VALUES (801, 'x'); COMMIT;
CREATE SEQUENCE s95.s; SELECT nextval('s95.s'), setval('s95.s', 100), nextval('s95.s'); ALTER SEQUENCE s95.s RESTART; DROP SEQUENCE s95.s;
CREATE MATERIALIZED VIEW s95.mv AS SELECT * FROM s95.t; REFRESH MATERIALIZED VIEW s95.mv; CREATE UNIQUE INDEX ON s95.mv (id); UPDATE s95.t SET v = 'mv' WHERE id = 1; REFRESH MATERIALIZED VIEW CONCURRENTLY s95.mv; DROP MATERIALIZED VIEW s95.mv;
CREATE TEMP TABLE temp1 (id int PRIMARY KEY, v text); INSERT INTO temp1 SELECT g, 'x' FROM generate_series(1, 1000) g; BEGIN; TRUNCATE temp1; INSERT INTO s95.t VALUES (802, 'x'); ALTER TABLE temp1 ADD r float8 DEFAULT random(); COMMIT; DROP TABLE temp1;
CREATE UNLOGGED TABLE s95.ul (id int PRIMARY KEY, v text); BEGIN; INSERT INTO s95.ul VALUES (1, 'x'); INSERT INTO s95.t VALUES (803, 'x'); COMMIT; DROP TABLE s95.ul;
CREATE VIEW s95.v AS SELECT * FROM s95.t; UPDATE s95.v SET v = 'through the view' WHERE id = 2; DROP VIEW s95.v;
SELECT lo_create(99999); SELECT lo_put(99999, 0, '\x00'); SELECT lo_unlink(99999);
ANALYZE s95.t; VACUUM s95.t; CREATE INDEX ON s95.t (v); DROP INDEX s95.t_v_idx; COMMENT ON TABLE s95.t IS 'comment'; GRANT SELECT ON s95.t TO PUBLIC;
BEGIN; LOCK TABLE s95.t; COMMIT; SELECT pg_switch_wal(); SELECT txid_current(); CHECKPOINT;
UPDATE s95.t SET v = 'after checkpoint' WHERE id BETWEEN 3 AND 20; DELETE FROM s95.t WHERE id = 21; INSERT INTO s95.t VALUES (21, 'image');
-- step: triggers and foreign keys
CREATE TABLE s95.child (id int PRIMARY KEY, t int REFERENCES s95.t ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO s95.child SELECT g, g FROM generate_series(30, 40) g;
CREATE FUNCTION s95.trg() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO s95.m (v) VALUES (TG_OP || ' ' || coalesce(NEW.id, OLD.id)); RETURN NULL; END $$;
CREATE TRIGGER trg AFTER INSERT OR UPDATE OR DELETE ON s95.t FOR EACH ROW EXECUTE FUNCTION s95.trg();
DELETE FROM s95.t WHERE id BETWEEN 30 AND 33; UPDATE s95.t SET id = id + 10000 WHERE id BETWEEN 34 AND 36;
-- step: large beside small
CREATE TABLE s95.big (id int PRIMARY KEY, a int, v text);
\set ECHO none
BEGIN;
INSERT INTO s95.big SELECT g, g % 1000, md5(g::text) FROM generate_series(1, 300000) g;
UPDATE s95.t SET v = 'in the large one' WHERE id = 22;
UPDATE s95.big SET a = -1 WHERE id % 1000 = 0;
DELETE FROM s95.big WHERE id % 777 = 0;
COMMIT;
UPDATE s95.t SET v = 'after the large one' WHERE id = 23;
UPDATE s95.big SET id = id + 1000000 WHERE id < 1000;
