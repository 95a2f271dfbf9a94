#!/usr/bin/env bash
# The whole way under load: pgbench with DDL in its middle, VACUUM FULL of a table mid-workload,
# and the shadow's lag meanwhile.  Afterwards every table is equal, column by column.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

SECONDS_OF_LOAD=${WS_IT_LOAD_SECONDS:-30}

replay_lag() {
  local insert replay
  replay=$(pos_lsn "$S/pos/shadow.replay") insert=$(sql src 'SELECT pg_current_wal_insert_lsn()')
  echo $(($(lsn_num "$insert") - $(lsn_num "$replay")))
}

load_with_ddl() {
  local bench lag worst=0 rate i before
  pgbench src -n -T "$SECONDS_OF_LOAD" -c 8 >"$T/pgbench.out" 2>&1 &
  bench=$!
  before=$(lsn_num "$(pg_lsn src)")
  for ((i = 0; i < SECONDS_OF_LOAD * 2; i++)); do
    proc_nap 0.5
    lag=$(replay_lag)
    # The first seconds and the moment after a checkpoint's images are no steady state.
    ((i > 10 && lag > worst)) && worst=$lag
    case $i in
    $((SECONDS_OF_LOAD / 2))) sql src 'ALTER TABLE pgbench_accounts ADD COLUMN k int DEFAULT 7' ;;
    $((SECONDS_OF_LOAD))) sql src 'CREATE INDEX CONCURRENTLY pgbench_accounts_k ON pgbench_accounts (k)' ;;
    $((SECONDS_OF_LOAD * 3 / 2))) sql src 'VACUUM FULL pgbench_tellers' 'VACUUM FULL pgbench_branches' ;;
    esac
  done
  wait $bench
  is $? 0 'pgbench ends well'
  rate=$((($(lsn_num "$(pg_lsn src)") - before) / SECONDS_OF_LOAD))
  note "$(grep '^tps' "$T/pgbench.out"), WAL $rate bytes/s, worst lag of the shadow's replay $worst bytes"
  cmp_is "$worst" -lt "$rate" "the shadow's replay lags by less than one second of WAL"
}

whole_way() {
  S=$T/state$PG_MAJOR
  ch_start ch
  ch 'DROP DATABASE IF EXISTS postgres' 2>/dev/null
  pg_new src
  pgbench src -i -q -s 5 >"$T/pgbench-init.out" 2>&1 || die 'pgbench -i'
  sql src 'ALTER TABLE pgbench_history ADD COLUMN hid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
  ok 'set up' pipe_init src || return
  load_with_ddl
  ok 'all is acknowledged' pipe_drain src
  pipe_compare src postgres
  sql src 'VACUUM FULL pgbench_accounts' 'UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 10 = 0' \
    'CLUSTER pgbench_accounts USING pgbench_accounts_pkey' 'DELETE FROM pgbench_accounts WHERE aid % 7 = 0' \
    'TRUNCATE pgbench_history' 'ALTER TABLE pgbench_tellers RENAME COLUMN filler TO padding' \
    'ALTER TABLE pgbench_tellers DROP COLUMN padding' "INSERT INTO pgbench_branches VALUES (1000, 1, 'x')"
  ok 'rewrites, TRUNCATE and DDL are acknowledged' pipe_drain src
  pipe_compare src postgres
  pipe_invariants main "$(sql src "SELECT oid FROM pg_database WHERE datname = 'postgres'")" 'the positions are in order'
  local status
  status=$(walshadow status 2>&1)
  unlike "$status" 'FAILED' 'no tool failed'
  like "$status" 'ack.main' 'status shows positions'
  ok 'it stops' pipe_stop
  ok 'and starts' pipe_start
  sql src 'UPDATE pgbench_accounts SET abalance = 5 WHERE aid < 100'
  ok 'and goes on' pipe_drain src
  pipe_compare src postgres
  ok 'it stops again' pipe_stop
  ch 'DROP DATABASE postgres'
}

for_majors whole_way
done_testing
