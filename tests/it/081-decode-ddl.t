#!/usr/bin/env bash
# ws-decode on transactions that give tables new files, columns and names: every statement of
# the table "Rows before a filenode change", TRUNCATE, partitions, types, sequences, TOAST.
# shellcheck disable=SC2016 # dollar quotes of SQL
. "$(dirname "$0")/lib/it.sh"

capture() { catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"; }

# step SQL <EXPECTED: runs it in one go, captures, and leaves a heading in the WAL.
step() {
  pg_tool psql
  "$PGTOOL" -XAtq -v ON_ERROR_STOP=1 -d "$C" -c "$1" >"$T/step.out" 2>&1 || die "$1: $(cat "$T/step.out")"
  capture
  { cat && echo "== $1"; } >>"$T/expected"
  # Flushed: what follows is captured at the flush position.
  "$PGTOOL" -XAtq -d "$C" -c "SELECT pg_logical_emit_message(false, 'step', \$step\$$1\$step\$)" -c 'SELECT pg_switch_wal()' >/dev/null
}

# Text in external storage, short enough to read: 2500 bytes.
long() { echo "repeat('$1', 2500)"; }

setup() {
  sql a "CREATE TABLESPACE ts LOCATION ''" "
    CREATE TABLE t (id int PRIMARY KEY, v text, n int);
    INSERT INTO t SELECT i, 'r' || i, i FROM generate_series(1, 3) i;
    CREATE TABLE e0 (id int PRIMARY KEY);
    CREATE UNLOGGED TABLE u (id int PRIMARY KEY, v int);
    INSERT INTO u VALUES (1, 1);
    CREATE TABLE big (id int PRIMARY KEY, v text);
    ALTER TABLE big ALTER v SET STORAGE EXTERNAL;
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE e (id int PRIMARY KEY, m mood, ms mood[]);
    CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
    CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
    CREATE MATERIALIZED VIEW mv AS SELECT id FROM t;
    CREATE SCHEMA s2; CREATE TABLE s2.x (id int PRIMARY KEY)"
}

rewrites() {
  step 'BEGIN; DELETE FROM t WHERE id = 1; UPDATE t SET id = 33 WHERE id = 3; ALTER TABLE t ALTER n TYPE bigint; INSERT INTO t VALUES (9, $$after$$, 9); COMMIT' <<'END'
BEGIN
SCHEMA A t t
REPLACE t
public.t: INSERT: id[integer]:2 v[text]:'r2' n[bigint]:2
public.t: INSERT: id[integer]:33 v[text]:'r3' n[bigint]:3
REPLACED t
public.t: INSERT: id[integer]:9 v[text]:'after' n[bigint]:9
COMMIT
END
  step 'BEGIN; INSERT INTO t VALUES (10, $$a$$, 1); CLUSTER t USING t_pkey; UPDATE t SET v = $$post$$ WHERE id = 2; COMMIT' <<'END'
BEGIN
public.t: INSERT: id[integer]:10 v[text]:'a' n[bigint]:1
public.t: UPDATE: id[integer]:2 v[text]:'post' n[bigint]:2
COMMIT
END
  step 'BEGIN; INSERT INTO t VALUES (11, $$b$$, 1); ALTER TABLE t SET TABLESPACE ts; DELETE FROM t WHERE id = 11; COMMIT' <<'END'
BEGIN
public.t: INSERT: id[integer]:11 v[text]:'b' n[bigint]:1
public.t: DELETE: id[integer]:11
COMMIT
END
  step 'BEGIN; ALTER TABLE t ALTER n TYPE int; DELETE FROM t WHERE id = 2; ALTER TABLE t ALTER n TYPE numeric; COMMIT' <<'END'
BEGIN
SCHEMA A t t
REPLACE t
public.t: INSERT: id[integer]:9 v[text]:'after' n[numeric]:9
public.t: INSERT: id[integer]:10 v[text]:'a' n[numeric]:1
public.t: INSERT: id[integer]:33 v[text]:'r3' n[numeric]:3
REPLACED t
COMMIT
END
  step 'BEGIN; DELETE FROM t WHERE id = 9; ALTER TABLE t ADD k int DEFAULT (random() * 0)::int; CLUSTER t; INSERT INTO t VALUES (1, $$z$$, 1, 1); COMMIT' <<'END'
BEGIN
SCHEMA A t t
REPLACE t
public.t: INSERT: id[integer]:10 v[text]:'a' n[numeric]:1 k[integer]:0
public.t: INSERT: id[integer]:33 v[text]:'r3' n[numeric]:3 k[integer]:0
REPLACED t
public.t: INSERT: id[integer]:1 v[text]:'z' n[numeric]:1 k[integer]:1
COMMIT
END
  # A table made and dropped, named together with t in one invalidation record: not a swap.
  step 'BEGIN; INSERT INTO t VALUES (2, $$y$$, 2, 2); CREATE TABLE f (id int REFERENCES t, w int); INSERT INTO f VALUES (10, 1); ALTER TABLE f ADD CHECK (w > 0), ADD FOREIGN KEY (w) REFERENCES t; DROP TABLE f; CLUSTER t; COMMIT' <<'END'
BEGIN
public.t: INSERT: id[integer]:2 v[text]:'y' n[numeric]:2 k[integer]:2
COMMIT
END
  step 'BEGIN; SAVEPOINT a; ALTER TABLE t ALTER n TYPE text; ROLLBACK TO a; INSERT INTO t VALUES (3, $$sp$$, 3, 3); COMMIT' <<'END'
BEGIN
public.t: INSERT: id[integer]:3 v[text]:'sp' n[numeric]:3 k[integer]:3
COMMIT
END
  step 'BEGIN; INSERT INTO t VALUES (4, $$top$$, 4, 4); SAVEPOINT a; ALTER TABLE t ALTER k TYPE bigint; RELEASE a; DELETE FROM t WHERE id > 2; COMMIT' <<'END'
BEGIN
SCHEMA A t t
REPLACE t
public.t: INSERT: id[integer]:1 v[text]:'z' n[numeric]:1 k[bigint]:1
public.t: INSERT: id[integer]:2 v[text]:'y' n[numeric]:2 k[bigint]:2
public.t: INSERT: id[integer]:10 v[text]:'a' n[numeric]:1 k[bigint]:0
public.t: INSERT: id[integer]:33 v[text]:'r3' n[numeric]:3 k[bigint]:0
public.t: INSERT: id[integer]:3 v[text]:'sp' n[numeric]:3 k[bigint]:3
public.t: INSERT: id[integer]:4 v[text]:'top' n[numeric]:4 k[bigint]:4
REPLACED t
public.t: DELETE: id[integer]:10
public.t: DELETE: id[integer]:33
public.t: DELETE: id[integer]:3
public.t: DELETE: id[integer]:4
COMMIT
END
  step 'VACUUM FULL t' </dev/null
  step 'CLUSTER t USING t_pkey' </dev/null
  step 'ALTER TABLE e0 ADD w int DEFAULT (random() * 0)::int' <<'END'
BEGIN
SCHEMA A e0 e0
COMMIT
END
}

columns() {
  step 'BEGIN; INSERT INTO t VALUES (20, $$q$$, 1, 1); ALTER TABLE t ADD x int DEFAULT 7; UPDATE t SET v = $$nn$$ WHERE id = 2; COMMIT' <<'END'
BEGIN
SCHEMA A t t
public.t: INSERT: id[integer]:20 v[text]:'q' n[numeric]:1 k[bigint]:1 x[integer]:7
public.t: UPDATE: id[integer]:2 v[text]:'nn' n[numeric]:2 k[bigint]:2 x[integer]:7
COMMIT
END
  # CLUSTER forgets the missing value that the row from before needs.
  step 'BEGIN; ALTER TABLE t REPLICA IDENTITY FULL; DELETE FROM t WHERE id = 20; CLUSTER t; ALTER TABLE t REPLICA IDENTITY DEFAULT; COMMIT' <<'END'
BEGIN
public.t: DELETE: id[integer]:20 v[text]:'q' n[numeric]:1 k[bigint]:1 x[integer]:7
COMMIT
END
  step 'BEGIN; INSERT INTO t VALUES (21, $$w$$, 1, 1, 1); ALTER TABLE t DROP k; ALTER TABLE t ADD k text; INSERT INTO t VALUES (22, $$w$$, 1, 1, $$k$$); COMMIT' <<'END'
BEGIN
SCHEMA A t t
public.t: INSERT: id[integer]:21 v[text]:'w' n[numeric]:1 x[integer]:1 k[text]:null
public.t: INSERT: id[integer]:22 v[text]:'w' n[numeric]:1 x[integer]:1 k[text]:'k'
COMMIT
END
  step 'BEGIN; ALTER TABLE t RENAME TO told; CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1); COMMIT' <<'END'
BEGIN
SCHEMA A t told
SCHEMA C - t
public.t: INSERT: a[integer]:1
COMMIT
END
  step 'BEGIN; DROP TABLE t; ALTER TABLE told RENAME TO t; INSERT INTO t VALUES (30, $$x$$); COMMIT' <<'END'
BEGIN
SCHEMA D t -
SCHEMA A told t
public.t: INSERT: id[integer]:30 v[text]:'x' n[numeric]:null x[integer]:7 k[text]:null
COMMIT
END
  step 'BEGIN; DELETE FROM t WHERE id = 30; DROP TABLE t CASCADE; COMMIT' <<'END'
BEGIN
SCHEMA D t -
COMMIT
END
  step 'BEGIN; CREATE TABLE c (id int PRIMARY KEY, v text); INSERT INTO c VALUES (1, $$x$$); ALTER TABLE c ADD w int DEFAULT (random() * 0)::int; TRUNCATE c; INSERT INTO c VALUES (2, $$y$$, 1); COMMIT' <<'END'
BEGIN
SCHEMA C - c
REPLACE c
public.c: INSERT: id[integer]:1 v[text]:'x' w[integer]:0
REPLACED c
public.c: TRUNCATE: (no-flags)
public.c: INSERT: id[integer]:2 v[text]:'y' w[integer]:1
COMMIT
END
  step 'BEGIN; CREATE TABLE d (id int PRIMARY KEY); INSERT INTO d VALUES (1); DROP TABLE d; INSERT INTO c VALUES (3); COMMIT' <<'END'
BEGIN
public.c: INSERT: id[integer]:3 v[text]:null w[integer]:0
COMMIT
END
  step 'CREATE TABLE ctas AS SELECT 1 AS a, $$b$$::text AS b' <<'END'
BEGIN
SCHEMA C - ctas
public.ctas: INSERT: a[integer]:1 b[text]:'b'
COMMIT
END
}

truncates() {
  step 'BEGIN; INSERT INTO c VALUES (4); TRUNCATE c; INSERT INTO c VALUES (5); TRUNCATE c; INSERT INTO c VALUES (6); COMMIT' <<'END'
BEGIN
public.c: INSERT: id[integer]:4 v[text]:null w[integer]:0
public.c: TRUNCATE: (no-flags)
public.c: INSERT: id[integer]:5 v[text]:null w[integer]:0
public.c: TRUNCATE: (no-flags)
public.c: INSERT: id[integer]:6 v[text]:null w[integer]:0
COMMIT
END
  step 'BEGIN; SAVEPOINT a; TRUNCATE c; INSERT INTO c VALUES (7); ROLLBACK TO a; INSERT INTO c VALUES (8); COMMIT' <<'END'
BEGIN
public.c: INSERT: id[integer]:8 v[text]:null w[integer]:0
COMMIT
END
  step 'BEGIN; TRUNCATE c; SAVEPOINT a; INSERT INTO c VALUES (8); TRUNCATE c; INSERT INTO c VALUES (9); COMMIT' <<'END'
BEGIN
public.c: TRUNCATE: (no-flags)
public.c: INSERT: id[integer]:8 v[text]:null w[integer]:0
public.c: TRUNCATE: (no-flags)
public.c: INSERT: id[integer]:9 v[text]:null w[integer]:0
COMMIT
END
  step 'TRUNCATE c' <<'END'
BEGIN
public.c: TRUNCATE: (no-flags)
COMMIT
END
  step 'BEGIN; INSERT INTO p VALUES (1, 1), (101, 1); UPDATE p SET id = 102 WHERE id = 1; TRUNCATE p; INSERT INTO p VALUES (2, 2); COMMIT' <<'END'
BEGIN
public.p1: INSERT: id[integer]:1 v[integer]:1
public.p2: INSERT: id[integer]:101 v[integer]:1
public.p1: DELETE: id[integer]:1
public.p2: INSERT: id[integer]:102 v[integer]:1
public.p, public.p1, public.p2: TRUNCATE: (no-flags)
public.p1: INSERT: id[integer]:2 v[integer]:2
COMMIT
END
  step 'BEGIN; INSERT INTO p VALUES (3, 3); ALTER TABLE p DETACH PARTITION p1; INSERT INTO p1 VALUES (4, 4); ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (50); COMMIT' <<'END'
BEGIN
public.p1: INSERT: id[integer]:3 v[integer]:3
public.p1: INSERT: id[integer]:4 v[integer]:4
COMMIT
END
  step 'ALTER TABLE p ADD y int DEFAULT 1' <<'END'
BEGIN
SCHEMA A p p
SCHEMA A p1 p1
SCHEMA A p2 p2
COMMIT
END
  step 'ALTER TABLE p RENAME TO q' <<'END'
BEGIN
SCHEMA A p q
SCHEMA A p1 p1
SCHEMA A p2 p2
COMMIT
END
}

others() {
  step 'BEGIN; INSERT INTO u VALUES (2, 2); ALTER TABLE u SET LOGGED; INSERT INTO u VALUES (3, 3); COMMIT' <<'END'
BEGIN
SCHEMA C - u
REPLACE u
public.u: INSERT: id[integer]:1 v[integer]:1
public.u: INSERT: id[integer]:2 v[integer]:2
REPLACED u
public.u: INSERT: id[integer]:3 v[integer]:3
COMMIT
END
  step 'BEGIN; ALTER TABLE u SET UNLOGGED; DELETE FROM u; ALTER TABLE u SET LOGGED; COMMIT' <<'END'
BEGIN
REPLACE u
REPLACED u
COMMIT
END
  step 'ALTER TABLE u SET UNLOGGED' </dev/null
}

toast() {
  step "BEGIN; INSERT INTO big VALUES (1, $(long a)); UPDATE big SET id = 2; DELETE FROM big; COMMIT" <<END
BEGIN
public.big: INSERT: id[integer]:1 v[text]:'$A'
public.big: UPDATE: old-key: id[integer]:1 new-tuple: id[integer]:2 v[text]:'$A'
public.big: DELETE: id[integer]:2
COMMIT
END
  step "BEGIN; INSERT INTO big VALUES (3, $(long b)); ALTER TABLE big ADD k int DEFAULT (random() * 0)::int; UPDATE big SET k = 1; CLUSTER big USING big_pkey; UPDATE big SET id = 4; COMMIT" <<END
BEGIN
SCHEMA A big big
REPLACE big
public.big: INSERT: id[integer]:3 v[text]:'$B' k[integer]:0
REPLACED big
public.big: UPDATE: id[integer]:3 v[text]:'$B' k[integer]:1
public.big: UPDATE: old-key: id[integer]:3 new-tuple: id[integer]:4 v[text]:'$B' k[integer]:1
COMMIT
END
  step "BEGIN; INSERT INTO big VALUES (5, $(long a), 1); CLUSTER big; UPDATE big SET k = 2 WHERE id = 5; INSERT INTO big VALUES (6, $(long b), 1); COMMIT" <<END
BEGIN
public.big: INSERT: id[integer]:5 v[text]:'$A' k[integer]:1
public.big: UPDATE: id[integer]:5 v[text]:'$A' k[integer]:2
public.big: INSERT: id[integer]:6 v[text]:'$B' k[integer]:1
COMMIT
END
  step 'BEGIN; SET LOCAL default_toast_compression = pglz; TRUNCATE big; ALTER TABLE big ALTER v SET STORAGE EXTENDED; INSERT INTO big SELECT 7, string_agg(repeat(md5(i::text), 8), $$$$) FROM generate_series(1, 200) i; SELECT md5(v) FROM big; COMMIT' <<END
BEGIN
public.big: TRUNCATE: (no-flags)
public.big: INSERT: id[integer]:7 v[text]:'$M' k[integer]:0
COMMIT
END
}

types() {
  step 'INSERT INTO e VALUES (1, $$ok$$, $${sad,ok}$$)' <<'END'
BEGIN
public.e: INSERT: id[integer]:1 m[public.mood]:'ok' ms[public.mood[]]:'{sad,ok}'
COMMIT
END
  step 'ALTER TYPE mood ADD VALUE $$happy$$ BEFORE $$ok$$' <<'END'
BEGIN
SCHEMA A e e
COMMIT
END
  step 'ALTER TYPE mood RENAME VALUE $$sad$$ TO $$blue$$' <<'END'
BEGIN
SCHEMA A e e
COMMIT
END
  step 'INSERT INTO e VALUES (2, $$happy$$, $${blue,NULL}$$)' <<'END'
BEGIN
public.e: INSERT: id[integer]:2 m[public.mood]:'happy' ms[public.mood[]]:'{blue,NULL}'
COMMIT
END
  step 'ALTER SCHEMA s2 RENAME TO s3' <<'END'
BEGIN
SCHEMA A x x
COMMIT
END
  step 'BEGIN; CREATE SEQUENCE sq; SELECT nextval($$sq$$); COMMIT' <<'END'
BEGIN
SEQUENCE sq 1 0
SEQUENCE sq 33 1
COMMIT
END
  step 'BEGIN; SELECT setval($$sq$$, 100); ROLLBACK' <<'END'
SEQUENCE sq 100 1
END
  step 'CREATE TEMP TABLE tt (i int); INSERT INTO tt VALUES (1); DROP TABLE tt' </dev/null
}

major() {
  local db start
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=2GB allow_in_place_tablespaces=on
  pg_start a
  C=$(pg_conninfo a)
  A=$(printf 'a%.0s' {1..2500}) B=$(printf 'b%.0s' {1..2500})
  M=$(for i in {1..200}; do m=$(printf %s "$i" | md5sum); m=${m%% *}; printf %s "$m$m$m$m$m$m$m$m"; done)
  rm -rf "$T/cat" "$T/expected"
  setup
  capture
  start=$(pg_lsn a)
  rewrites
  columns
  truncates
  others
  toast
  types
  db=$(sql a 'SELECT oid FROM pg_database WHERE datname = current_database()')
  pg_stop a # the WAL stays as it is
  ws-decode --catalog "$T/cat" --database "$db" -s "$start" "$T/a/pg_wal" >"$T/stream" 2>"$T/err" || diag "$(cat "$T/err")"
  decodecmp -p <"$T/stream" >"$T/got" || diag "$(tail -n 1 "$T/got")"
  same_text "$T/got" "$T/expected" 'every transaction as it should be'
  run decrestart "$T/cat" "$db" "$T/a/pg_wal" "$start"
  like "$OUT" '^restarts=' 'the same from every floor'
  [ "$STATUS" = 0 ] || diag "$OUT$ERR"
  ws-decode --catalog "$T/cat" --database "$db" -s "$start" -F json "$T/a/pg_wal" >"$T/json"
  is "$(grep -c '"type":"commit"' "$T/json")" "$(grep -c '^COMMIT' "$T/expected")" 'JSON has as many transactions'
}

for_majors major
done_testing
