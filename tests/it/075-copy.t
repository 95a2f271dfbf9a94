#!/bin/bash
# ws-copy: rows, consistent points, tables that change under it, restart, refusals.  The catalog
# history is filled from the source itself, and the test moves pos/captured.
# shellcheck source=lib/it.sh
. "$(dirname "$0")/lib/it.sh"

state=$T/state

capture() { catfill "$state/catalog" "$(pg_conninfo pg)" "$(pg_data pg)/pg_wal" >/dev/null; }

# The position files of tools that are not here.
pos() { echo "1 $2" >"$state/pos/$1.tmp" && mv "$state/pos/$1.tmp" "$state/pos/$1"; }

setup() {
  rm -rf "$state"
  mkdir -p "$state"/{pos,consumer/main/load}
  pg_new pg
  sql pg "$1"
  capture
  db=$(sql pg "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  printf 'DATABASE_OID=%s\nDATABASE=postgres\n' "$db" >"$state/consumer/main/config"
  pos received "$(pg_lsn pg)"
  pos "captured.$db" "FFFFFFFF/0"
}

copy() { ws-copy --state "$state" --consumer main -d "$(pg_conninfo pg)" "$@"; }
copy_bg() {
  BG_OUT=$T/$1.stream bg "$1" ws-copy --state "$state" --consumer main -d "$(pg_conninfo pg)" "${@:2}"
}

# rows_of TEXT TABLE: its rows in the stream; rows_are TEXT TABLE SELECT DESC: as the server has them.
rows_of() { sed -n "s/^row $2\t//p" "$1" | sort; }
rows_are() {
  pg_tool psql
  "$PGTOOL" -Xq -d "$(pg_conninfo pg)" -c 'SET extra_float_digits = 1' -c "COPY ($3) TO STDOUT" | sort >"$T/want"
  rows_of "$1" "$2" >"$T/got"
  same_text "$T/got" "$T/want" "$4"
}

# ---- rows ----

values() {
  local t q
  setup 'CREATE TABLE public.t0 (a int)'
  pg_tool psql
  "$PGTOOL" -Xq -d "$(pg_conninfo pg)" -v n=40 -v seed=0.3 -v lz4=0 -v virtual=$((PG_MAJOR >= 18)) \
    -f "$TOP/tests/it/data/070-types.sql"
  sql pg 'CREATE SCHEMA "odd ""one"' 'CREATE TABLE "odd ""one"."T\x,." ("A b" int, "c""d" text)' \
    'INSERT INTO "odd ""one"."T\x,." VALUES (1, 2), (3, NULL)' \
    'CREATE TABLE part (k int, v text) PARTITION BY RANGE (k)' \
    'CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (10)' \
    'CREATE TABLE part2 (v text, gone int, k int)' 'ALTER TABLE part2 DROP gone' \
    'ALTER TABLE part ATTACH PARTITION part2 FOR VALUES FROM (10) TO (20)' \
    "INSERT INTO part SELECT i, 'p' || i FROM generate_series(0, 19) i" \
    'CREATE UNLOGGED TABLE unlogged (a int)' 'INSERT INTO unlogged VALUES (1)' \
    'CREATE MATERIALIZED VIEW matview AS SELECT 1 AS one' 'CREATE TABLE parent (a int)' \
    'CREATE TABLE child () INHERITS (parent)' 'INSERT INTO parent VALUES (1)' 'INSERT INTO child VALUES (2)' \
    'DROP TABLE v.other, v.long, v.longlz4'
  capture
  status_is 0 'ws-copy ends well' copy -j 4
  cp "$T/out" "$T/stream"
  status_is 0 'its stream is well formed' changetext <"$T/stream"
  cp "$T/out" "$T/text"
  like "$(head -n 1 "$T/text")" "^identity $db postgres UTF8$" 'the identity comes first'
  for t in v.edge v.chars v.fixed v.mixed v.numbers v.arrays public.part1 public.part2; do
    rows_are "$T/text" "$t" "SELECT * FROM $t" "$t"
  done
  q='SELECT a, s, b FROM v.generated'
  [ "$PG_MAJOR" -lt 18 ] || q='SELECT a, s, b, NULL, c FROM v.generated'
  rows_are "$T/text" v.generated "$q" 'generated columns; virtual ones are NULL'
  like "$(grep '^end v.nothing' "$T/text")" ' 3$' 'a table without columns has its rows'
  rows_are "$T/text" public.parent 'SELECT * FROM ONLY parent' 'a table without its children'
  rows_are "$T/text" public.child 'SELECT * FROM child' 'an inherited table'
  is "$(grep -c '^row odd "one.T' "$T/text")" 2 'a table with an odd name'
  is "$(grep -cE '(unlogged|matview|public.part) ' "$T/text")" 0 'no unlogged table, no view, no partition root'
  is "$(grep -c ^relation "$T/text")" "$(grep -c '^end ' "$T/text")" 'each table has an end'
  is "$(sed -n 's/^end .* \([0-9]*\)$/\1/p' "$T/text" | paste -sd+ | bc)" "$(grep -c '^row ' "$T/text")" 'ends count the rows'
  is "$(tail -n 1 "$T/text")" "END $(sed -n 's/^begin .* \(.*\) rows$/\1/p' "$T/text" | sort -u)" 'one consistent point, and it is the end'
  is "$(sql pg 'SELECT count(*) FROM pg_replication_slots')" 0 'no slot is left'
  is "$(lsn_num "$(pos_lsn "$state/pos/floor.main")")" "$(lsn_num "$(pos_lsn "$state/pos/received")")" 'the floor is what was received'
}
for_majors values

# ---- consistent points ----

open_transactions() {
  setup 'CREATE TABLE t (a int)'
  sql pg 'CREATE TABLE u (a int)'
  capture
  # shellcheck disable=SC2034
  mkfifo "$T/session"
  pg_tool psql
  BG_IN=$T/session bg open "$PGTOOL" -Xq -d "$(pg_conninfo pg) application_name=opened"
  exec 5>"$T/session"
  echo 'BEGIN; INSERT INTO t VALUES (1);' >&5
  wait_for_is 1 sql pg "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND application_name = 'opened'"
  copy_bg waits
  wait_for log_has waits 'older transactions: session [0-9]+ \(opened\)'
  sql pg 'INSERT INTO t VALUES (2)'
  is "$(stat -c %s "$T/waits.stream")" 0 'nothing is written before the consistent point'
  echo 'COMMIT;' >&5
  exec 5>&-
  wait_exit waits
  is "$STATUS" 0 'it waits for open transactions'
  rm -f "$T/session"
  changetext <"$T/waits.stream" >"$T/text"
  is "$(rows_of "$T/text" public.t | paste -sd,)" 1,2 'both rows are in'
}

# Tables that change between the consistent point and their turn.
changes() {
  setup 'CREATE TABLE calm (a int); INSERT INTO calm VALUES (1)'
  sql pg 'CREATE TABLE added (a int); INSERT INTO added VALUES (1)' \
    'CREATE TABLE rewritten (a int); INSERT INTO rewritten VALUES (1)' \
    'CREATE TABLE emptied (a int); INSERT INTO emptied VALUES (1)' \
    'CREATE TABLE renamed (a int); INSERT INTO renamed VALUES (1)' \
    'CREATE TABLE swapped (a int, b int); INSERT INTO swapped VALUES (1, 2)' \
    'CREATE TABLE readded (a int, b int); INSERT INTO readded VALUES (1, 2)' \
    'CREATE TABLE dropped (a int); INSERT INTO dropped VALUES (1)' \
    "CREATE TYPE mood AS ENUM ('x', 'y')" "CREATE TABLE moods (m mood); INSERT INTO moods VALUES ('x')" \
    'CREATE SCHEMA s1' 'CREATE TABLE s1.moved (a int); INSERT INTO s1.moved VALUES (1)' \
    'CREATE TABLE clustered (a int PRIMARY KEY); INSERT INTO clustered VALUES (1)'
  capture
  pos "captured.$db" "$(pg_lsn pg)"
  sql pg 'INSERT INTO calm VALUES (2)'
  copy_bg changes -j 3
  wait_for log_has changes 'consistent point'
  p1=$(sed -n 's/.*consistent point //p' "$T/changes.err")
  sql pg 'INSERT INTO calm VALUES (3)' 'ALTER TABLE added ADD b int DEFAULT 7' \
    'ALTER TABLE rewritten ALTER a TYPE text USING a + 1' 'TRUNCATE emptied' 'ALTER TABLE renamed RENAME TO other' \
    'CREATE TABLE renamed (x text)' 'ALTER TABLE swapped RENAME a TO c' 'ALTER TABLE swapped RENAME b TO a' \
    'ALTER TABLE swapped RENAME c TO b' 'ALTER TABLE readded DROP b' 'ALTER TABLE readded ADD b int DEFAULT 5' \
    'DROP TABLE dropped' "ALTER TYPE mood RENAME VALUE 'x' TO 'z'" 'ALTER SCHEMA s1 RENAME TO s2' 'VACUUM FULL clustered'
  capture
  pos "captured.$db" "FFFFFFFF/0"
  wait_exit changes
  is "$STATUS" 0 'ws-copy ends well though tables changed'
  changetext <"$T/changes.stream" >"$T/text"
  rows() { rows_of "$T/text" "$1" | paste -sd';' | tr '\t' ,; }
  is "$(rows public.calm)" '1;2' 'a table that did not change: its rows at the first point'
  is "$(grep -c "^begin .* $p1 rows" "$T/text")" 1 'the only one with the first point'
  is "$(rows public.added)" 1,7 'a column was added'
  is "$(rows public.rewritten)" 2 'rewritten with another type'
  is "$(rows public.emptied)" '' 'truncated'
  is "$(rows public.other)" 1 'renamed, its name taken by another'
  is "$(rows public.swapped)" 1,2 'columns that swapped their names keep their values'
  is "$(rows public.readded)" 1,5 'a column dropped and added again'
  is "$(rows public.moods)" z 'a label was renamed'
  is "$(rows s2.moved)" 1 'its schema was renamed'
  is "$(rows public.clustered)" 1 'VACUUM FULL'
  is "$(grep -c dropped "$T/text")" 0 'a dropped table does not come'
  is "$(tail -n 1 "$T/text")" "END $p1" 'the end is the lowest point'
}

# ---- rules, restart ----

rules() {
  setup 'CREATE TABLE a (i int, secret text, p pg_snapshot, l int); CREATE TABLE b (i int); CREATE TABLE c (i int, p pg_snapshot)'
  sql pg "INSERT INTO a VALUES (1, 'x', NULL, 2), (2, NULL, '1:2:', 3)" 'INSERT INTO b VALUES (1)' \
    'INSERT INTO c VALUES (1, NULL)'
  capture
  status_is 3 'a value of a type that is not decoded' copy
  like "$ERR" 'public.a column p .*reason=type_unsupported' 'names the column and the reason'
  cp "$T/out" "$T/stream"
  run changetext <"$T/stream"
  is "$STATUS" 1 'its stream has no end'
  status_is 0 'only NULLs of such a type are no obstacle' copy c
  printf '%s\n' 'table * unsupported=hex' >"$state/routes"
  status_is 3 'the bytes that unsupported=hex wants are not to be had by SQL' copy a
  like "$ERR" 'unsupported=hex.*reason=type_unsupported' 'which is said'
  printf '%s\n' 'column public.a.secret exclude' 'table public.a unsupported=null' 'table public.b load=none' \
    'exclude public.c' >"$state/routes"
  copy 2>"$T/err" | changetext >"$T/text" || fail 'a load by rules' "$(cat "$T/err")"
  is "$(rows_of "$T/text" public.a | paste -sd';' | tr '\t' ,)" '1,\A,\N,2;2,\A,\N,3' 'excluded is absent, unsupported NULL'
  like "$(grep public.b "$T/text" | paste -sd';')" 'begin public.b .* none;end public.b .* 0$' 'load none: no rows'
  is "$(grep -c public.c "$T/text")" 0 'an excluded table'
  copy --load none a 2>/dev/null | changetext >"$T/text"
  is "$(grep -cE '^(row|begin .* rows)' "$T/text")" 0 '--load none'
  is "$(grep -c '^begin public.a .* none' "$T/text")" 1 'only the table named'
  echo "1 0/1000 postgres.public_a" >"$state/consumer/main/load/$(sql pg "SELECT 'a'::regclass::oid")"
  copy 2>"$T/err" | changetext >"$T/text"
  is "$(grep -c 'relation public.a' "$T/text")" 0 'what was loaded before is skipped'
  is "$(tail -n 1 "$T/text")" 'END 0/00001000' 'and counts for the end'
  pos floor.main 0/42
  copy >/dev/null 2>&1
  is "$(cat "$state/pos/floor.main")" '1 0/42' 'a floor that is there stays'
  # What is received may end in the zeros behind a segment switch: the first floor is a record's end.
  rm -f "$state"/pos/{floor,ack}.main "$state"/consumer/main/load/*
  sql pg 'INSERT INTO a VALUES (1000)'
  local last
  last=$(pg_lsn pg)
  pos received 7/0
  pos "captured.$db" "$last"
  copy_bg floored
  ok 'a first floor' wait_for test -s "$state/pos/floor.main"
  pos "captured.$db" FFFFFFFF/0
  wait_exit floored
  is "$(lsn_num "$(pos_lsn "$state/pos/floor.main")")" "$(lsn_num "$last")" 'is what is captured, not what is received'
}

# ---- into ClickHouse, interrupted and gone on with ----

clickhouse() {
  local t
  setup 'CREATE TABLE t0 (a int PRIMARY KEY)'
  pgbench pg -i -q -s 1 >/dev/null 2>&1
  sql pg "CREATE TABLE types (id int PRIMARY KEY, f float8, n numeric(20, 5), t text, b bytea, ts timestamptz, d date, u uuid, j jsonb, a int[])" \
    "INSERT INTO types SELECT i, random(), i / 7.0, 't' || i, decode(md5(i::text), 'hex'), now() + i * interval '1 s', date '2000-01-01' + i,
      gen_random_uuid(), jsonb_build_object('i', i), ARRAY[i, -i] FROM generate_series(1, 3000) i"
  capture
  echo 'table * keyless=append' >"$state/routes"
  ch_start ch
  ch 'CREATE DATABASE postgres'
  copy pgbench_branches types 2>"$T/copy.err" |
    ws-emit --state "$state" --consumer main --url "$CH_URL" --load 2>"$T/emit.err"
  is "${PIPESTATUS[*]}" '0 0' 'two tables' || diag "$(tail -n 5 "$T/copy.err" "$T/emit.err")"
  p1=$(pos_lsn "$state/pos/ack.main")
  sql pg 'SELECT pg_logical_emit_message(true, $$x$$, $$y$$)' >/dev/null
  rm "$state/pos/ack.main" # as if the first run had died at its end
  copy -j 3 2>"$T/copy.err" |
    ws-emit --state "$state" --consumer main --url "$CH_URL" --load 2>"$T/emit.err"
  is "${PIPESTATUS[*]}" '0 0' 'the others' || diag "$(tail -n 5 "$T/copy.err" "$T/emit.err")"
  is "$(pos_lsn "$state/pos/ack.main")" "$p1" 'acknowledged is the lowest point, which is that of the first'
  is "$(grep -c 'loaded before: skipped' "$T/copy.err")" 2 'what was loaded is not read again'
  for t in pgbench_accounts pgbench_branches pgbench_tellers types; do
    pg_to_ch_compare pg "public.$t" "postgres.public_$t"
  done
}

# ---- refusals, failures ----

failures() {
  setup 'CREATE TABLE t (a int, b text); INSERT INTO t SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 50000) i'
  status_is 2 'an unknown table' copy nosuch
  like "$ERR" 'no table nosuch' 'is named'
  status_is 2 '--jobs 0' copy -j 0
  status_is 2 '--load all' copy --load all
  status_is 2 'a bad size' copy --max-value 3x
  status_is 2 'no consumer' copy --consumer other
  status_is 2 'a file of rules that is not there' copy --routes "$T/nosuch"
  status_is 2 'another database' ws-copy --state "$state" --consumer main -d "$(pg_conninfo pg template1)"
  sql pg 'CREATE ROLE reader LOGIN REPLICATION' 'GRANT SELECT ON t TO reader' 'ALTER TABLE t ENABLE ROW LEVEL SECURITY'
  capture
  status_is 2 'row security is not silent' ws-copy --state "$state" --consumer main \
    -d "$(pg_conninfo pg) user=reader"
  like "$ERR" 'row-level security|row security' 'and says so'
  sql pg 'ALTER TABLE t DISABLE ROW LEVEL SECURITY'
  capture
  # A reader that goes away, a server that dies.
  copy 2>"$T/err" | head -c 100000 >/dev/null
  is "${PIPESTATUS[0]}" 1 'the reader went away'
  mkfifo "$T/slow"
  copy_bg dies
  wait_for -m 'rows' test -s "$T/dies.stream"
  pg_stop pg immediate
  wait_exit dies
  is "$STATUS" 1 'the server died'
  run changetext <"$T/dies.stream"
  is "$STATUS" 1 'no end in its stream'
  pg_start pg
  sed 's/SYSTEM_ID=.*/SYSTEM_ID=1/' "$state/cluster" >"$T/cluster" && cp "$T/cluster" "$state/cluster"
  status_is 3 'another cluster' copy
  like "$ERR" reason=system_id_changed 'has its reason'
}

PG_MAJOR=${WS_MAJORS##* }
# shellcheck disable=SC2034 # tap.sh uses TAP_PREFIX
for part in ${WS_COPY_PARTS:-open_transactions changes rules clickhouse failures}; do
  TAP_PREFIX="$part: "
  $part
  proc_check
done

TAP_PREFIX='' done_testing
