#!/usr/bin/env bash
# Hold-back: what a synchronous standby has not flushed is received and not handed out, whatever ends; a
# promotion without it finds nothing published past the fork.
. "$(dirname "$0")/lib/it.sh"

SET='ANY 1 (a, b)'
pos() { echo "$2" >"$S/pos/.new" && mv "$S/pos/.new" "$S/pos/$1"; }
stream_has() { grep -q -- "\"id\":$1\b" "$T/decode.out"; }
committed() { sed -n "/\"id\":$1\\b/,\$p" "$T/decode.out" | grep -q '"type":"commit"'; }
start_receive() {
  bg receive ws-receive --state "$S" -d "$(pg_hosts a b) user=ws target_session_attrs=primary" --hold-back "$SET" \
    --metrics "$T/receive.prom"
}
start_decode() { bg decode ws-decode --state "$S" --consumer x -F json --hold-back "$SET" --metrics "$T/decode.prom"; }
waits() { grep -q '^walshadow_decode_hold_waiting 1' "$T/decode.prom"; }
received() { pos_ge "$S/pos/received" "$1"; }
# The highest position that went out, of a commit or by progress.
handed_out() {
  sed -nE 's/.*"type":"commit".*"end_lsn":"([^"]*)".*/\1/p; s/.*"type":"progress".*"lsn":"([^"]*)".*/\1/p' \
    "$T/decode.out" | tail -n 1
}
walreceivers() { sql a "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'b'"; }

cut_off() { pg_upstream b '' && pg_reload b && wait_for_is 0 walreceivers; }

# hang ID: a commit that waits for the standby, which is cut off.
hang() {
  cut_off
  rm -f "$T/decode.prom" # of before
  bg "hanging$1" psql -Xqt "$(pg_conninfo a)" -c "INSERT INTO t VALUES ($1)"
  wait_for_is 1 sql a "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
  END=$(sql a 'SELECT pg_current_wal_flush_lsn()')
  ok "$1: the commit that hangs is received" wait_for received "$END"
  ok "$1: it waits" wait_for waits
}

hold() {
  local db fork id
  S=$T/state
  rm -rf "$S"
  mkdir -p "$S/pos" "$S/consumer/x" "$S/catalog"
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=64MB
  pg_start a
  sql a 'CREATE TABLE t (id int PRIMARY KEY)' 'CREATE ROLE ws REPLICATION LOGIN' 'GRANT SELECT ON t TO ws'
  db=$(sql a "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  catfill "$S/catalog" "$(pg_conninfo a)" "$T/a/pg_wal" >"$T/catfill.log" 2>&1 ||
    die "catfill: $(tail -n 1 "$T/catfill.log")"
  printf 'DATABASE_OID=%s\nDATABASE=postgres\n' "$db" >"$S/consumer/x/config"
  # Shapes hold nothing back here.
  pos "captured.$db" '1 FFFF/0'
  pg_standby b a
  pg_start b
  wait_for_is 1 walreceivers
  pg_conf a "synchronous_standby_names='b'" && pg_reload a
  wait_for_is sync sql a 'SELECT sync_state FROM pg_stat_replication'
  # A position of another set means nothing.
  pos hold.z '1 FFFF/0'
  pos floor.x "1 $(pg_lsn a)"
  start_receive
  start_decode
  sql a 'INSERT INTO t VALUES (1)'
  ok 'a right is missing' wait_for grep -q '^walshadow_hold_queries_total [1-9]' "$T/receive.prom"
  not_ok 'nothing is known' test -e "$S/pos/hold.1:a,b"
  sql a 'GRANT pg_read_all_stats TO ws'
  ok 'what the standby has goes out' wait_for committed 1
  not_ok 'the position of another set is gone' test -e "$S/pos/hold.z"

  hang 2
  kill9 decode
  kill9 receive
  start_receive
  start_decode
  ok '2: killed, it waits again' wait_for waits
  id=$(sql a "SELECT pid FROM pg_stat_activity WHERE application_name = 'ws-receive-hold'")
  [ -z "$id" ] || sql a "SELECT pg_terminate_backend($id)" >/dev/null
  ok '2: no answer, no progress' wait_for grep -q '^walshadow_hold_standbys 0' "$T/receive.prom"
  not_ok '2: it was not handed out' stream_has 2
  not_ok '2: nor is progress past it' lsn_ge "$(handed_out)" "$END"
  not_ok '2: nor read' pos_ge "$S/pos/read.x" "$END"
  pg_upstream b a && pg_reload b
  ok '2: the standby goes on, and so does it' wait_for committed 2
  ok '2: the commit ends' wait_for not_alive hanging2

  # Not in the initial load either.
  mkdir "$S/consumer/y"
  cp "$S/consumer/x/config" "$S/consumer/y/"
  cut_off
  PGOPTIONS='-c synchronous_commit=local' sql a 'INSERT INTO t VALUES (10)'
  BG_OUT=$T/copy.stream bg copy ws-copy --state "$S" --consumer y -d "$(pg_conninfo a)" --hold-back "$SET"
  ok 'the load waits' wait_for log_has copy 'waiting for pos/hold'
  is "$(stat -c %s "$T/copy.stream")" 0 'before it writes anything'
  pg_upstream b a && pg_reload b
  ok 'until the standby is there' wait_exit copy
  is "$STATUS" 0 'it ends in order'
  cmp_is "$(stat -c %s "$T/copy.stream")" -gt 100 'and has read'

  hang 3
  # As ws-emit leaves it.
  pos sent.x "1 $(handed_out)"
  pos ack.x "1 $(handed_out)"
  pg_kill a
  kill9 hanging3
  pg_promote b
  fork=$(tail -n 1 "$T/b/pg_wal/00000002.history" | cut -f 2)
  not_ok '3: the promoted standby does not have it' lsn_ge "$fork" "$END"
  ok '3: nothing past the fork was handed out' lsn_ge "$fork" "$(handed_out)"
  ok '3: ws-receive goes on' wait_for_is 2 cut -d ' ' -f 1 "$S/pos/received"
  ok '3: the position is cut' lsn_ge "$fork" "$(pos_lsn "$S/pos/hold.1:a,b")"
  ok '3: what waited has not happened' wait_for log_has decode 'held back behind it has not happened'
  sql b 'INSERT INTO t VALUES (4)'
  ok '4: of the new primary, received' wait_for received "$(pg_lsn b)"
  ok '4: it waits for another standby' wait_for waits
  not_ok '4: before that nothing' stream_has 4
  # The old primary is made anew.
  pg_standby a b
  pg_start a
  ok '4: with it, it goes out' wait_for committed 4
  not_ok '3: what did not happen never went out' stream_has 3
  like "$(grep -c 'type":"timeline' "$T/decode.out")" '^1$' 'there is one switch'
  ok 'ws-receive runs' alive receive
  ok 'ws-decode runs' alive decode
  unlike "$(cat "$T/receive.err" "$T/decode.err")" 'reason=' 'nothing was refused'
  stop decode
  is "$STATUS" 0 'ws-decode ends in order'
  stop receive
  is "$STATUS" 0 'ws-receive ends in order'
  pg_stop a
  pg_stop b
}

for tool in ws-receive 'ws-decode --consumer x' 'ws-copy --consumer x'; do
  for bad in ',' 'a b' 'ANY 3 (a, b)' 'FIRST 1 (a)'; do
    # shellcheck disable=SC2086 # words
    status_is 2 "$tool --hold-back '$bad'" $tool --state "$T" --hold-back "$bad"
    like "$ERR" '--hold-back: neither NAME' 'and says so'
  done
done
status_is 2 'hold-back into a directory of its own' ws-receive -D "$T/raw" --hold-back b
status_is 2 'hold-back without a consumer' ws-decode -D "$T" --database 5 --hold-back b "$T"
for_majors hold
done_testing
