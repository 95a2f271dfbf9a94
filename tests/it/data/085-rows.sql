-- Rows for the tables of 085-types.sql, written while the history knows them.
\set ON_ERROR_STOP 1
INSERT INTO whole (id) SELECT generate_series(1, 3);
INSERT INTO plain (id) SELECT generate_series(1, 3);
CREATE FUNCTION pg_temp.set_all(what text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format(what, n, v, typ,
    CASE WHEN has THEN format('ARRAY[(%s)::%s, NULL]::%s', v, typ, arr) ELSE '''{7,NULL}''::odd[]' END), ', ')
  FROM numbered
$$;
DO $do$
BEGIN
  EXECUTE 'UPDATE whole SET ' || pg_temp.set_all('c_%1$s = ROW((%2$s)::%3$s, %4$s, ''8'', NULL)::w_%1$s,
    d_%1$s = ARRAY[ROW((%2$s)::%3$s, NULL, NULL, (%2$s)::%3$s)::w_%1$s, NULL]') || ' WHERE id = 1';
  EXECUTE 'UPDATE whole SET ' || pg_temp.set_all('d_%1$s[0:1] = ARRAY[NULL,
    ROW((%2$s)::%3$s, array_fill((%4$s)[1], ARRAY[2], ARRAY[-1]), ''8'', NULL)::w_%1$s]') || ' WHERE id = 2';
  EXECUTE 'UPDATE plain SET ' || pg_temp.set_all('c_%1$s = (%2$s)::%3$s, d_%1$s = %4$s') || ' WHERE id = 1';
  EXECUTE 'UPDATE plain SET ' || pg_temp.set_all('d_%1$s[2:3] = %4$s') || ' WHERE id = 2';
END $do$;
UPDATE whole SET id = id + 10;
UPDATE plain SET id = id + 10;
