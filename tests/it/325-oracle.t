#!/usr/bin/env bash
# The whole way with values that only the oracle can read: initial load and stream, a worker and a
# shadow that are killed, two databases, and a value without text.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

make_type() {
  sql "$1" 'CREATE TYPE odd' \
    "CREATE FUNCTION odd_in(cstring) RETURNS odd AS '$TEST', 'oracle_test_in' LANGUAGE c IMMUTABLE STRICT" \
    "CREATE FUNCTION odd_out(odd) RETURNS cstring AS '$TEST', 'oracle_test_out' LANGUAGE c IMMUTABLE STRICT" \
    'CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, INTERNALLENGTH = 4, PASSEDBYVALUE, ALIGNMENT = int4)' \
    'CREATE TYPE pair AS (o odd, t text)' \
    'CREATE TABLE t (id int PRIMARY KEY, o odd, a odd[], p pair, v text)' \
    "INSERT INTO t SELECT i, (i + 10)::text::odd, ARRAY[NULL, (i + 20)::text::odd], ROW((i + 30)::text::odd, 'a, b')::pair, 'x'
       FROM generate_series(1, 1000) i"
}

same() { CMP_IGNORE='' pg_to_ch_compare "src/$1" public.t "$1.public_t" "$2"; }
worker() { pgrep -f 'walshadow oracle for' -u "$(id -u)" -P "$(pipe_pid shadow)" | head -n 1; }

whole() {
  S=$T/state$PG_MAJOR
  TEST=$WS_BUILD/pgext/$PG_MAJOR/oracle_test
  ch_start ch
  pg_new src
  sql src 'CREATE DATABASE one' 'CREATE DATABASE two'
  make_type src/one
  make_type src/two
  printf '%s\n' 'table public.t text-change=keep' 'table *' >"$T/routes"
  ok 'set up' pipe_init src/one --routes "$T/routes" || return
  like "$(cat "$T/init.out")" "oracle: .*/pgext/$PG_MAJOR/walshadow_oracle" 'init finds the module'
  same one 'the initial load has text'
  sql src/one "INSERT INTO t SELECT i, i::text::odd, NULL, ROW('55', NULL)::pair, 'y' FROM generate_series(2000, 2999) i" \
    "UPDATE t SET o = (id + 100)::text::odd, p = ROW('99', '\"') WHERE id < 500" 'DELETE FROM t WHERE id % 7 = 0'
  ok 'the stream is acknowledged' pipe_drain src
  same one 'and has the same text'
  ok 'which the metrics count' wait_for -t 20 -m 'the metrics' grep -q '^walshadow_decode_oracle_values_total [1-9]' "$S/metrics/ws-decode.main.prom"
  is "$(ch "SELECT count() FROM one.public_t FINAL WHERE o = '2500!' AND p = '(55!,)'")" 1 'it is the output function that made it'

  ok 'a consumer of another database' pipe_init src/two --consumer second || return
  sql src/two "INSERT INTO t VALUES (5000, '77', NULL, NULL, NULL)"
  sql src/one "INSERT INTO t VALUES (5000, '78', NULL, NULL, NULL)"
  ok 'both arrive' pipe_drain src second
  same two 'in the other database'
  ok 'and in the first' pipe_drain src
  same one 'as before'

  # A worker's death is a restart of the shadow; then the shadow itself.
  sql src/one "INSERT INTO t SELECT i, i::text::odd, ARRAY[i::text::odd], NULL, 'z' FROM generate_series(10000, 60000) i"
  wait_for -t 20 -m 'a worker' worker
  kill -KILL "$(worker)"
  sql src/one "ALTER TYPE pair ADD ATTRIBUTE n int" "UPDATE t SET p = ROW('88', 'q', id)"
  ok 'all is acknowledged after a worker was killed' pipe_drain src main 120
  same one 'nothing is lost or altered'
  pipe_kill9 shadow
  sql src/one "UPDATE t SET o = '55', a = '[2:3]={66,67}' WHERE id % 5 = 0" 'DROP TYPE pair CASCADE' \
    "INSERT INTO t VALUES (70000, '7', NULL, 'end')"
  ok 'and after the shadow was' pipe_drain src main 120
  same one 'nothing is lost or altered then'
  pipe_invariants main "$(sql src "SELECT oid FROM pg_database WHERE datname = 'one'")" 'the positions are in order'

  # A worker that is connected does not hold up the drop of its database.
  sql src 'CREATE DATABASE three'
  local oid
  oid=$(sql src "SELECT oid FROM pg_database WHERE datname = 'three'")
  asked() { [ "$(perl "$IT_LIB/oracle-client.pl" "$S/run/oracle/socket" "$oid" int4::int4out 42)" = 'text 42' ]; }
  wait_for -t 30 -m 'a worker of the third database' asked
  sql src 'DROP DATABASE three'
  sql src/one "INSERT INTO t VALUES (79000, '9')" 'ALTER TABLE t ADD COLUMN last odd' "UPDATE t SET last = '3000' WHERE id = 79000"
  ok 'a database that is dropped lets the shadow go on' pipe_drain src main 60
  same one 'with a column more'

  sql src/two 'CREATE TABLE acl (id int PRIMARY KEY, a aclitem[])'
  run walshadow add --consumer second acl
  isnt "$STATUS" 0 'names of catalog objects, which the oracle writes as oids, are not loaded as names'
  like "$ERR" 'column a of type aclitem\[\].*reason=type_unsupported' 'but refused'

  sql src/one "INSERT INTO t VALUES (80000, '1')"
  failed() { [[ $(walshadow status 2>&1) =~ consumer.main\ .*FAILED\ status=3 ]]; }
  wait_for -t 30 -m 'the stop' failed
  like "$(walshadow status 2>&1)" 'a value of type public.odd in the row at .*reason=oracle_value' 'a value without text stops its consumer, with the reason'
  sql src/two "INSERT INTO t VALUES (80000, '9')"
  ok 'the other one goes on' pipe_drain src second
  same two 'with its own'
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE one' && ch 'DROP DATABASE two'
}

[ -e "$WS_BUILD/pgext/17/walshadow_oracle.so" ] || bail_out 'no module: make pgext'
for_majors whole
done_testing
