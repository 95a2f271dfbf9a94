#!/usr/bin/env bash
# A slot that the source invalidated: ws-receive says that it is lost, and why, and does not try again.
. "$(dirname "$0")/lib/it.sh"

lost() { [ "$(sql src "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'ws'")" = lost ]; }

# Slot and copy up to date, nobody connected.
prepare() {
  rm -rf "$T/st"
  ws-receive -q -d "$(pg_conninfo src)" -S ws --create-slot
  ws-receive -q --state "$T/st" -d "$(pg_conninfo src)" -S ws -n -E "$(pg_lsn src)" 2>"$T/err" || fail 'a first run' "$(cat "$T/err")"
  before=$(cat "$T/st/pos/received")
}

refused() {
  status_is 3 "$1" timeout 60 ws-receive -q --state "$T/st" -d "$(pg_conninfo src)" -S ws
  like "${ERR##*$'\n'}" 'slot "ws" is lost.*reason=slot_lost' 'with its reason, in the last line'
  ((PG_MAJOR < 17)) || like "$ERR" "cause $2" 'and the cause'
  is "$(cat "$T/st/pos/received")" "$before" 'and no position moved'
}

slot_lost() {
  local i
  pg_init src --wal-segsize=1
  pg_conf src max_slot_wal_keep_size=2MB min_wal_size=2MB max_wal_size=4MB
  pg_start src
  sql src 'CREATE TABLE t (id int, v text)'
  prepare
  for ((i = 0; i < 20; i++)); do
    lost && break
    sql src "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 10000) g" CHECKPOINT
  done
  ok 'the source has given the slot up' lost
  refused 'a slot behind max_slot_wal_keep_size' wal_removed
  if ((PG_MAJOR >= 18)); then
    # Invalidated with its restart_lsn: only START_REPLICATION and wal_status tell.
    ws-receive -q -d "$(pg_conninfo src)" -S ws --drop-slot
    prepare
    pg_conf src idle_replication_slot_timeout=1s
    pg_reload src
    ok 'the source has timed the slot out' wait_for -t 60 timed_out
    isnt "$(sql src "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 'ws'")" '' 'which keeps its position'
    refused 'a slot that was idle for too long' idle_timeout
  fi
  # Made without reserving: another cause, and nothing is lost.
  ws-receive -q -d "$(pg_conninfo src)" -S ws --drop-slot
  sql src "SELECT pg_create_physical_replication_slot('ws')" >/dev/null
  status_is 3 'a slot that reserves nothing' timeout 60 ws-receive -q --state "$T/st" -d "$(pg_conninfo src)" -S ws
  like "$ERR" 'reserves no WAL' 'is told from a lost one'
}
timed_out() {
  sql src CHECKPOINT
  lost
}

for_majors slot_lost
done_testing
