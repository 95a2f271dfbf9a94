#!/usr/bin/env bash
# The test library against itself: servers come and go, comparing sees what differs.
. "$(dirname "$0")/lib/it.sh"

# Runs an assertion that has to fail; the test passes when it does.
must_fail() {
  local count=$TAP_COUNT failed=$TAP_FAILED got regex=$1 desc=$2
  shift 2
  WS_FAILURES='' "$@" >"$T/mf" 2>&1
  got=$(cat "$T/mf")
  TAP_COUNT=$count TAP_FAILED=$failed PROC_IN_VAIN=0
  like "$got" "not ok .*$regex" "$desc"
}

must_fail 'wanted: 2' 'is sees a difference' is 1 2 x
must_fail 'regex' 'like sees a difference' like abc '^b' x
must_fail 'status 1, wanted 0' 'status_is sees a status' status_is 0 x false
must_fail 'status' 'ok sees a failure' ok x false
not_ok 'wait_for gives up' wait_for -t 1 false 2>/dev/null
is "$PROC_IN_VAIN" 1 'and that is remembered'
PROC_IN_VAIN=0

bg sleeper sleep 600
ok 'a process runs' alive sleeper
stop sleeper
is "$STATUS" 143 'and is stopped'
not_ok 'it is gone' alive sleeper

for i in 1 2; do
  bg "stray$i" bash -c 'sleep 600; exit' "$T/x"
  unset "PROC_PID[stray$i]"
done
must_fail 'no process is left behind' 'a process left behind is seen' proc_check
wait 2>/dev/null
ok 'and killed' proc_none_left

TABLE='CREATE TABLE t (id int PRIMARY KEY, b bool, f4 real, f8 float8, n numeric(20,4), nn numeric, t text,
  c char(5), y bytea, d date, ts timestamp, tz timestamptz, u uuid, j jsonb, a int[], ta text[], dm dom, xs text[])'

ch_table() {
  ch 'DROP DATABASE IF EXISTS d' && ch 'CREATE DATABASE d' &&
    ch "CREATE TABLE d.t (id Int32, b Nullable(Bool), f4 Nullable(Float32), f8 Nullable(Float64), n Nullable(Decimal(20,4)),
      nn Nullable(String), t Nullable(String), c Nullable(String), y Nullable(String), d Nullable(Date32),
      ts Nullable(DateTime64(6,'UTC')), tz Nullable(DateTime64(6,'UTC')), u Nullable(UUID), j Nullable(String),
      a Array(Nullable(Int32)), ta Array(Nullable(String)), dm Nullable(Int64), xs Nullable(String),
      _version UInt128, _is_deleted UInt8)
      ENGINE = ReplacingMergeTree(_version, _is_deleted) ORDER BY id"
}

servers() {
  ok 'a PostgreSQL server' pg_new src --wal-segsize=1
  is "$(sql src 'SHOW wal_level')" logical 'with wal_level=logical'
  like "$(sql src 'SHOW server_version')" "^$PG_MAJOR" 'of the major asked for'
  sql src 'CREATE DOMAIN dom AS bigint' "$TABLE" \
    "INSERT INTO t VALUES (1, true, 0.1, 1e300, 12.3400, 'NaN', E'a\tb\\\\c\nd''', 'ab', '\x00ff09', '2020-02-29',
      '2020-01-01 00:00:00.5', '1969-12-31 23:00:00.000001-02', '00000000-0000-0000-0000-00000000000a',
      '{\"a\": [1, \"é\"]}', '{1,NULL,-3}', ARRAY['x', NULL, E'a,\tb'], 5, '{q}')" 'INSERT INTO t VALUES (2)'
  ok 'is killed' pg_kill src
  ok 'and comes back' pg_start src
  is "$(sql src 'SELECT count(*) FROM t')" 2 'with its rows'
  ok 'clients of this or a newer major' pg_tool pg_basebackup
  ok 'a base backup' "$PGTOOL" -d "$(pg_conninfo src)" -D "$T/copy.tmp" -c fast --no-sync
  ok 'as another server' pg_adopt copy "$T/copy.tmp"
  pg_start copy
  is "$(sql copy 'SELECT count(*) FROM t')" 2 'with the same rows'
  ch_table || die 'no table'
  ch "INSERT INTO d.t VALUES (1, true, 0.1, 1e300, 12.34, 'NaN', 'a\\tb\\\\c\\nd\\'', 'ab   ', '\\0\\xff\\t', '2020-02-29',
    '2020-01-01 00:00:00.5', '1970-01-01 01:00:00.000001', '00000000-0000-0000-0000-00000000000a',
    '{\"a\": [1, \"é\"]}', [1,NULL,-3], ['x',NULL,'a,\\tb'], 5, '{q}', 1, 0), (3, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, [], [], NULL, NULL, 1, 1)"
  ch 'INSERT INTO d.t (id, _version) VALUES (2, 1)'
  pg_to_ch_compare src t d.t 'equal tables are equal'
  sql src 'CREATE TABLE "T 2" (id int PRIMARY KEY, v text)' "INSERT INTO \"T 2\" VALUES (7, 'seven')" 'CREATE TABLE e (id int)'
  ch 'CREATE TABLE d.`T 2` (id Int32, v Nullable(String)) ENGINE = MergeTree ORDER BY id'
  ch 'CREATE TABLE d.e (id Nullable(Int32)) ENGINE = Log'
  ch "INSERT INTO d.\`T 2\` VALUES (7, 'seven')"
  printf '%s\n' $'public.t\td.t\tone' $'public."T 2"\td.T 2\ttwo' $'public.e\td.e\tempty' >"$T/tables"
  all_at_once() { pg_to_ch_compare_all src d <"$T/tables"; }
  is "$(TAP_COUNT=0 && all_at_once)" "$(printf 'ok %d - %s\n' 1 "${TAP_PREFIX}one (2 rows)" 2 "${TAP_PREFIX}two (1 rows)" 3 "${TAP_PREFIX}empty (0 rows)")" 'and many at once'
  ch "INSERT INTO d.\`T 2\` VALUES (8, NULL)"
  must_fail 'two' 'which of them differs is said' all_at_once
  sql src "UPDATE t SET f8 = 1.0000000000000002e300 WHERE id = 1"
  must_fail 'source' 'one bit of a float is seen' pg_to_ch_compare src t d.t
  sql src "UPDATE t SET f8 = 1e300, t = NULL WHERE id = 1" "UPDATE t SET t = '' WHERE id = 2"
  must_fail 'only in source' 'a NULL and an empty string are told apart' pg_to_ch_compare src t d.t
  sql src "DELETE FROM t"
  must_fail 'source 0, destination 2' 'too many rows are seen' pg_to_ch_compare src t d.t
  sql src "ALTER TABLE t ADD COLUMN more int"
  must_fail 'lacks column more' 'a missing column is seen' pg_to_ch_compare src t d.t
  must_fail 'no table d.nothing' 'a missing table is seen' pg_to_ch_compare src t d.nothing
}

ch_start ch
is "$(ch 'SELECT 1')" 1 'ClickHouse answers'
ch 'CREATE DATABASE keep' && ch 'CREATE TABLE keep.t (a Int8) ENGINE = MergeTree ORDER BY a' &&
  ch 'INSERT INTO keep.t VALUES (1)'
ok 'it is killed' ch_kill ch
ch_start ch
is "$(ch 'SELECT count() FROM keep.t')" 1 'and keeps its rows'
not_ok 'an error is an error' ch 'SELECT nonsense' 2>/dev/null
ok 'it stops' ch_stop ch
is "$STATUS" 0 'in order'
with_servers() { ch_start ch && servers; }
for_majors with_servers
done_testing
