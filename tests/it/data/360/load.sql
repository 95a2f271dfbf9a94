-- Tables that are there before the initial load: the matrix of identities and storages.
CREATE FUNCTION noise(n int, seed int) RETURNS text LANGUAGE sql AS
	$$ SELECT substr(string_agg(md5(seed::text || g::text), ''), 1, n) FROM generate_series(1, n / 32 + 1) g $$;
-- Half of it compresses away.
CREATE FUNCTION twice(n int, seed int) RETURNS text LANGUAGE sql AS
	$$ SELECT string_agg(m || m, '') FROM (SELECT md5(seed::text || g::text) || md5(g::text) AS m FROM generate_series(1, n / 128 + 1) g) s $$;
SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) AS lz4 \gset
SELECT CASE WHEN :'lz4'::bool THEN 'lz4' ELSE 'pglz' END AS lz4 \gset
CREATE TABLE proto (id int, inl text, pglz text COMPRESSION pglz, lz4 text COMPRESSION :lz4, ext text, extc text COMPRESSION pglz,
	extl text COMPRESSION :lz4, b bytea, j jsonb, a text[], n int DEFAULT 0);
ALTER TABLE proto ALTER pglz SET STORAGE MAIN, ALTER lz4 SET STORAGE MAIN, ALTER ext SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL,
	ALTER a SET STORAGE EXTERNAL;
CREATE TABLE m_default (LIKE proto INCLUDING ALL, PRIMARY KEY (id));
CREATE TABLE m_full (LIKE proto INCLUDING ALL, PRIMARY KEY (id));
ALTER TABLE m_full REPLICA IDENTITY FULL;
CREATE TABLE m_index (LIKE proto INCLUDING ALL);
ALTER TABLE m_index ALTER id SET NOT NULL;
CREATE UNIQUE INDEX m_index_id ON m_index (id);
ALTER TABLE m_index REPLICA IDENTITY USING INDEX m_index_id;
DROP TABLE proto;
CREATE PROCEDURE fill(t text, a int, b int) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format($q$INSERT INTO %s SELECT g, 'short ' || g, repeat(md5(g::text), 200 + g), repeat(md5(g::text), 300 + g),
		noise(1900 + g * 300, g), twice(8000 + g * 100, g), twice(9000 + g * 100, -g), decode(noise(5000 + g * 2, g), 'hex'),
		to_jsonb(noise(4000 + g, g)), array_fill(noise(300, g), ARRAY[10 + g]), 0 FROM generate_series(%s, %s) g$q$, t, a, b);
END $$;
CALL fill('m_default', 1, 20);
CALL fill('m_full', 1, 20);
CALL fill('m_index', 1, 20);
-- Keys that are external.
CREATE TABLE k_default (k text PRIMARY KEY, v text, n int DEFAULT 0);
CREATE TABLE k_full (LIKE k_default INCLUDING ALL);
CREATE TABLE k_index (k text NOT NULL, v text, n int DEFAULT 0);
CREATE UNIQUE INDEX k_index_k ON k_index (k);
ALTER TABLE k_full REPLICA IDENTITY FULL;
ALTER TABLE k_index REPLICA IDENTITY USING INDEX k_index_k;
ALTER TABLE k_default ALTER k SET STORAGE EXTERNAL, ALTER v SET STORAGE EXTERNAL;
ALTER TABLE k_full ALTER k SET STORAGE EXTERNAL, ALTER v SET STORAGE EXTERNAL;
ALTER TABLE k_index ALTER k SET STORAGE EXTERNAL, ALTER v SET STORAGE EXTERNAL;
INSERT INTO k_default SELECT noise(2200, g), noise(5000, g), g FROM generate_series(1, 10) g;
INSERT INTO k_full SELECT * FROM k_default;
INSERT INTO k_index SELECT * FROM k_default;
-- For what moves.
CREATE TABLE t (id int PRIMARY KEY, v text, n int DEFAULT 0, c int DEFAULT 0);
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
INSERT INTO t SELECT g, noise(2500 + g * 10, g) FROM generate_series(1, 60) g;
-- Dead and rolled back chunks lie between.
INSERT INTO t SELECT g, noise(3000, g) FROM generate_series(100, 120) g;
DELETE FROM t WHERE id >= 100;
BEGIN;
INSERT INTO t SELECT g, noise(3000, g) FROM generate_series(100, 120) g;
ROLLBACK;
UPDATE t SET v = noise(4000, id) WHERE id % 5 = 0;
CREATE TABLE p (id int, part int, v text, n int DEFAULT 0, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
ALTER TABLE p ALTER v SET STORAGE EXTERNAL;
ALTER TABLE p1 ALTER v SET STORAGE EXTERNAL;
ALTER TABLE p2 ALTER v SET STORAGE EXTERNAL;
INSERT INTO p SELECT g, 1 + g % 2, noise(3000 + g, g) FROM generate_series(1, 20) g;
CREATE TABLE gone (id int PRIMARY KEY, v text);
INSERT INTO gone SELECT g, noise(9000, g) FROM generate_series(1, 20) g;
