#!/usr/bin/env bash
# ws-decode live: follows raw/, waits for the history, moves floor and read, ends in order.
. "$(dirname "$0")/lib/it.sh"

# The catalog history comes from the source itself, and pos/captured with it.
capture() {
  catfill "$S/catalog" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die catfill
}

captured() { echo "1 $1" >"$S/pos/.c" && mv "$S/pos/.c" "$S/pos/captured.$DB"; }
ack() { echo "1 $1" >"$S/pos/.a" && mv "$S/pos/.a" "$S/pos/ack.x"; }
pos() { sed 's/^[0-9]* //' "$S/pos/$1" 2>/dev/null; }
lsn_le() { [ "$(sql a "SELECT '$1'::pg_lsn <= '$2'::pg_lsn")" = t ]; }
stream_has() { grep -q -- "$1" "$T/decode.out"; }
last_end() { sed -n 's/.*"type":"commit".*"end_lsn":"\([^"]*\)".*/\1/p' "$T/decode.out" | tail -n 1; }
received() { lsn_le "$(pg_lsn a)" "$(pos received)"; }

start_decode() { bg decode ws-decode --state "$S" --consumer x -F json --metrics "$T/decode.prom"; }

major() {
  local before floor
  S=$T/state
  rm -rf "$S"
  mkdir -p "$S/pos" "$S/consumer/x" "$S/catalog"
  pg_init a
  pg_conf a autovacuum=off max_prepared_transactions=5
  pg_start a
  C=$(pg_conninfo a)
  DB=$(sql a 'SELECT oid FROM pg_database WHERE datname = current_database()')
  printf 'DATABASE_OID=%s\nDATABASE=postgres\n' "$DB" >"$S/consumer/x/config"
  sql a 'CREATE TABLE t (id int PRIMARY KEY, v text)' 'CREATE DATABASE other'
  capture
  before=$(pg_lsn a)
  start_decode
  wait_for log_has decode 'waiting for .*floor'
  ok 'without a floor it waits' alive decode
  status_is 1 'a consumer has one ws-decode' timeout 30 ws-decode --state "$S" --consumer x -F json
  like "$ERR" "decode.lock: locked by another process pid=[0-9]+" 'and is told of the other'
  ws-receive -d "$C" -S ws --create-slot --if-not-exists
  bg receive ws-receive --state "$S" -d "$C" -S ws
  wait_for received || die received
  echo "1 $before" >"$S/pos/floor.x"
  captured "$before"
  sql a "INSERT INTO t VALUES (1, 'one')"
  wait_for received || die received
  sleep 1
  not_ok 'nothing goes out before the history covers it' stream_has '"id":1'
  captured "$(pg_lsn a)"
  wait_for stream_has '"id":1'
  ok 'then it does' stream_has '"v":"one"'
  like "$(head -n 1 "$T/decode.out")" '"database":"postgres"' 'the identity names the database'

  # An open transaction holds the floor.
  bg holder psql -Xqt "$C" -c "BEGIN" -c "INSERT INTO t VALUES (50, 'held')" -c 'SELECT pg_sleep(1000)' -c COMMIT
  wait_for_is "$(printf 1)" sql a "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND pid <> pg_backend_pid()"
  floor=$(pg_lsn a)
  sql a "INSERT INTO t VALUES (2, 'two')" 'CHECKPOINT' "INSERT INTO t VALUES (3, 'three')"
  captured "$(pg_lsn a)"
  wait_for stream_has '"id":3'
  ack "$(last_end)"
  sleep 2
  ok 'the floor stays below an open transaction' lsn_le "$(pos floor.x)" "$floor"
  kill "$(sql a "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND pid <> pg_backend_pid()")"
  wait_for not_alive holder
  STATUS=0
  sql a 'SELECT pg_switch_wal()' "INSERT INTO t VALUES (4, 'four')" >/dev/null
  captured "$(pg_lsn a)"
  wait_for stream_has '"id":4'
  ack "$(last_end)"
  wait_for lsn_le "$floor" "$(pos floor.x)"
  wait_for bash -c "[ \"\$(cat '$S/pos/floor.x')\" = \"\$(cat '$S/pos/ack.x')\" ]"
  is "$(pos floor.x)" "$(pos ack.x)" 'and follows the acknowledged position without one'

  # WAL of another database moves both by progress.
  sql a/other 'CREATE TABLE o (i int)' 'INSERT INTO o SELECT generate_series(1, 1000)'
  captured "$(pg_lsn a)"
  before=$(pos "captured.$DB")
  before="\"type\":\"progress\".*\"lsn\":\"${before%/*}/0*${before#*/}\""
  wait_for stream_has "$before"
  ok 'idle WAL gives progress' stream_has "$before"
  not_ok 'rows of another database stay out' stream_has '"table":"o"'

  stop decode
  is "$STATUS" 0 'a stop is in order'
  like "$(tail -n 1 "$T/decode.out")" '"type":"end"' 'with an end frame'
  like "$(cat "$T/decode.prom")" 'walshadow_decode_transactions_total [1-9]' 'metrics are written'

  # A restart sends what was not acknowledged, once more, and nothing else.
  sql a "INSERT INTO t VALUES (5, 'five')"
  captured "$(pg_lsn a)"
  mv "$T/decode.out" "$T/decode.first"
  start_decode
  wait_for stream_has '"id":5'
  not_ok 'what was acknowledged does not come again' stream_has '"id":4'
  bg holder psql -Xqt "$C" -c "INSERT INTO t VALUES (6, 'six')"
  wait_for not_alive holder
  kill9 decode
  captured "$(pg_lsn a)"
  start_decode
  wait_for stream_has '"id":6'
  ok 'what was sent but not acknowledged comes again after a kill' stream_has '"id":5'

  # A prepared transaction holds it too, over restarts of both, however much is acknowledged meanwhile.
  floor=$(pg_lsn a)
  sql a "BEGIN; INSERT INTO t VALUES (60, 'prepared'); SAVEPOINT s; INSERT INTO t VALUES (61, 'its child'); PREPARE TRANSACTION 'held'" \
    "BEGIN; INSERT INTO t VALUES (62, 'never'); PREPARE TRANSACTION 'undone'" "INSERT INTO t VALUES (7, 'seven')" CHECKPOINT
  captured "$(pg_lsn a)"
  wait_for stream_has '"id":7'
  ack "$(last_end)"
  stop decode
  ok 'the floor stays below a prepared transaction' lsn_le "$(pos floor.x)" "$floor"
  like "$(cat "$T/decode.prom")" 'walshadow_decode_prepared_transactions 2' 'both are in the metrics'
  ws-decode --state "$S" --consumer x --prepared | cut -f 5 | sort >"$T/pending"
  is "$(tr '\n' ' ' <"$T/pending")" 'held undone ' 'and listed'
  pg_kill a
  pg_start a
  start_decode
  sql a "ROLLBACK PREPARED 'undone'" "INSERT INTO t VALUES (8, 'eight')" "COMMIT PREPARED 'held'"
  wait_for received || die received
  captured "$(pg_lsn a)"
  wait_for stream_has '"id":61'
  ok 'it comes after its commit' stream_has '"v":"prepared"'
  not_ok 'what was rolled back does not' stream_has '"v":"never"'
  ack "$(last_end)"
  sql a "INSERT INTO t VALUES (9, 'nine')"
  captured "$(pg_lsn a)"
  wait_for stream_has '"id":9'
  ack "$(last_end)"
  wait_for lsn_le "$floor" "$(pos floor.x)"
  stop decode
  is "$(ws-decode --state "$S" --consumer x --prepared)" '' 'none is listed'
  ok 'and the floor follows' bash -c "[ \"\$(cat '$S/pos/floor.x')\" = \"\$(cat '$S/pos/ack.x')\" ]"
  stop receive
  pg_stop a
}

for_majors major
done_testing
