#!/usr/bin/env bash
# ws-decode at a timeline switch.  Transactions there: what committed before the fork is drained, what was open
# is dropped with its positions, TOAST, subtransactions and files, what was prepared goes on; an xid that
# both branches used is two; a row's record lies over the start of the fork's segment.  After a restart: what
# an earlier run published decides, by sent.NAME, although nothing of it was acknowledged.
. "$(dirname "$0")/lib/it.sh"

pos() { echo "$2" >"$S/pos/$1"; }
stream_has() { grep -q -- "$1" "$T/decode.out"; }
decode() { bg decode ws-decode --state "$S" --consumer x -F json; }

ids() { sed -n 's/.*"type":"row".*"new":{"id":\([0-9]*\).*/\1/p' "$1" | tr '\n' ' '; }
metric() { sed -n "s/^walshadow_$1 //p" "$S/decode.prom"; }

# open_in SQL...: a session with an open transaction in server a, which does not come back.
open_in() {
  local s args=()
  for s; do args+=(-c "$s"); done
  bg "open$#" psql -Xqt "$(pg_conninfo a)" -c BEGIN "${args[@]}" -c "SELECT pg_advisory_lock($#)" -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $# AND granted"
}

# Rows, and nothing else, until a segment is full: one of them lies over its end.
over_a_boundary() {
  # shellcheck disable=SC2016
  sql a 'DO $$
    DECLARE seg text := pg_walfile_name(pg_current_wal_insert_lsn());
    BEGIN
      FOR i IN 1 .. 100000 LOOP
        INSERT INTO w VALUES (i, repeat($x$x$x$, 150));
        EXIT WHEN pg_walfile_name(pg_current_wal_insert_lsn()) <> seg;
      END LOOP;
    END $$'
}

# What is open, prepared and committed where a crashes.
before_fork() {
  open_in 'INSERT INTO t VALUES (60)' 'SAVEPOINT r' 'INSERT INTO t VALUES (61)' 'RELEASE r' 'SAVEPOINT s' \
    "INSERT INTO t SELECT 62, string_agg(md5(g::text), '') FROM generate_series(1, 200) g" 'SAVEPOINT x' 'INSERT INTO t VALUES (63)' \
    'ROLLBACK TO x' 'CREATE TABLE never (id int PRIMARY KEY)' 'INSERT INTO never VALUES (64)' 'ALTER TABLE t ADD COLUMN never int'
}
before_fork_too() {
  open_in 'INSERT INTO u VALUES (65)'
  sql a "BEGIN; INSERT INTO u VALUES (50); SAVEPOINT p; INSERT INTO u VALUES (51); SAVEPOINT q; INSERT INTO u VALUES (52); ROLLBACK TO q; PREPARE TRANSACTION 'kept'" \
    "BEGIN; INSERT INTO u VALUES (53); PREPARE TRANSACTION 'gone'" 'INSERT INTO u VALUES (2)'
}

next_xid() { sql "$1" 'SELECT txid_snapshot_xmax(txid_current_snapshot())'; }

# The WAL of b, offline: from where a began, up to $1, and what the metrics then say.
offline() {
  ws-decode --catalog "$S/catalog" --database "$DB" -s "$first" -F json --metrics "$S/decode.prom" "$@" "$T/b/pg_wal" >"$T/offline" 2>"$T/err" ||
    fail 'ws-decode' "$(cat "$T/err")"
}

accounts() {
  offline -e "$decided"
  is "$(ids "$T/offline")" '1 2 3 ' 'what committed before the fork is drained, and the descendant goes on'
  # Those of 60, 61, 62, of the savepoint after the rollback, and of 65.
  is "$(metric timeline_abandoned_xacts_total)" 5 'what was open at the fork is dropped there'
  is "$(metric decode_prepared_transactions) $(metric decode_unfinished_transactions)" '2 3' 'what was prepared is kept with its subtransaction'
  is "$(grep -c '"type":"row".*"table":"w"' "$T/offline")" "$rows" "all rows before the fork's segment, and the one that lies over its start"
  offline
  is "$(ids "$T/offline")" '1 2 3 50 51 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 ' 'and commits on the descendant'
  is "$(metric decode_prepared_transactions) $(metric decode_unfinished_transactions) $(metric decode_position_bytes)" '0 0 0' 'accounts are back to zero'
  is "$(metric decode_reaped_total)" 0 'with nothing left for later'
  unlike "$(cat "$T/offline")" '"name":"never"' 'no column and no table of what was open'
  status_is 0 'the same WAL as frames' ws-decode --catalog "$S/catalog" --database "$DB" -s "$first" -F json - <"$T/frames"
  # The switch is told outside of transactions, wherever it comes to be known.
  grep -Ev '"type":"(end|timeline)"' "$T/out" >"$T/streamed"
  grep -Ev '"type":"(end|timeline)"' "$T/offline" >"$T/wanted"
  same_file "$T/streamed" "$T/wanted" 'gives the same'
  is "$(grep -c '"type":"timeline"' "$T/out") $(grep -c '"type":"timeline"' "$T/offline")" '1 1' 'and the switch once'
  status_is 3 'ws-filter does not go over a switch in frames' ws-filter -q -D "$T/filtered" - <"$T/frames"
  like "$ERR" 'timeline 2.*reason=switch_in_stream$' 'and says why'
  rm -rf "$T/filtered" "$T/frames"
}

fork() {
  local DB decided xid first rows floor switch beyond mid seg end
  S=$T/state
  rm -rf "$S"
  mkdir -p "$S/pos" "$S/consumer/x" "$S/catalog"
  pg_new a --wal-segsize=1
  pg_conf a autovacuum=off max_prepared_transactions=10 wal_keep_size=64MB
  pg_restart a
  DB=$(sql a "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  sql a 'CREATE TABLE t (id int PRIMARY KEY, v text STORAGE EXTERNAL)' 'CREATE TABLE u (id int PRIMARY KEY)' \
    'CREATE TABLE w (n int, v text)'
  catfill "$S/catalog" "$(pg_conninfo a)" "$T/a/pg_wal" >"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"
  printf 'DATABASE_OID=%s\nDATABASE=postgres\n' "$DB" >"$S/consumer/x/config"
  first=$(pg_lsn a)
  over_a_boundary
  rows=$(sql a 'SELECT count(*) FROM w')
  floor=$(pg_lsn a)
  sql a 'INSERT INTO t VALUES (1)'
  before_fork
  before_fork_too
  pg_kill a
  wait_for not_alive open1
  wait_for not_alive open12
  cp -a "$T/a" "$T/copy"
  pg_adopt b "$T/copy"
  pg_start a
  xid=$(next_xid a)
  sql a 'INSERT INTO u VALUES (100)'
  mid=$(pg_lsn a)
  sql a "ROLLBACK PREPARED 'gone'" 'INSERT INTO u VALUES (101)'
  bg late psql -Xqt "$(pg_conninfo a)" -c BEGIN -c 'INSERT INTO u VALUES (102)' -c 'SELECT pg_advisory_lock(9)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 9 AND granted"
  beyond=$(pg_lsn a)
  ws-receive -q --state "$S" -d "$(pg_conninfo a)" -n -E "$beyond" 2>"$T/err" || die "ws-receive: $(cat "$T/err")"
  # The other one goes its own way.
  kill9 late
  # The fork has an END_OF_RECOVERY record after a promotion, a checkpoint at the end of an archive.
  if [ "$PG_MAJOR" = 17 ]; then
    pg_conf b restore_command=false
    touch "$T/b/recovery.signal"
    pg_start b
    wait_for_is f sql b 'SELECT pg_is_in_recovery()'
  else
    touch "$T/b/standby.signal"
    pg_start b
    pg_promote b
  fi
  is "$(next_xid b)" "$xid" 'both branches go on with the same xids'
  sql b 'INSERT INTO u VALUES (3)' CHECKPOINT
  decided=$(pg_lsn b)
  sql b "COMMIT PREPARED 'kept'" "ROLLBACK PREPARED 'gone'" 'INSERT INTO t SELECT g FROM generate_series(2, 20) g' 'INSERT INTO t VALUES (21)'
  switch=$(cut -f 2 "$T/b/pg_wal/00000002.history")
  ok 'the first server wrote past the switch' lsn_ge "$beyond" "$switch"
  isnt "$beyond" "$switch" 'some rows'
  pos floor.x "1 $floor"
  pos "captured.$DB" "2 $(pg_lsn b)"
  end=$(pg_lsn b)
  seg=$(sql b 'SELECT pg_walfile_name(pg_current_wal_lsn())')
  is "$(sql b "SELECT pg_walfile_name('$floor')")" "$seg" "the fork's segment is the one behind"
  # All of it as frames, over the switch.
  status_is 0 'b has it all' timeout 60 ws-receive -q -o - -d "$(pg_conninfo b)" -I "$first" -n -E "$end"
  mv "$T/out" "$T/frames"
  pg_stop b
  pg_stop a
  accounts
  # As ws-receive leaves it: what is there is the end.
  head -c $(($(lsn_num "$end") & 1048575)) "$T/b/pg_wal/$seg" >"$S/raw/$seg.partial"
  cp "$T/b/pg_wal/00000002.history" "$S/raw/"

  # Sent on the ancestor, past the switch, and not acknowledged.
  pos ack.x "1 $floor"
  pos sent.x "1 $beyond"
  status_is 3 'what was published past the switch stops' timeout 60 ws-decode --state "$S" --consumer x -F json
  like "${ERR##*$'\n'}" 'timeline 1 ends at.*reason=published_past_fork' 'with the reason'
  unlike "$OUT" '"id":3\b' 'before anything of the descendant'
  # Sent before the switch.
  pos sent.x "1 $floor"
  decode
  ok 'what was published before it does not' wait_for -t 30 stream_has '"id":21'
  ok 'with its commit' wait_for -t 30 committed '"id":21'
  unlike "$(cat "$T/decode.out")" '"id":(10[012]|6[0-5])\b' 'and the rows that did not happen stay out'
  stop decode
  # Sent and acknowledged on the descendant, past the switch, with the floor still before it.
  rm -f "$S/pos/read.x"
  pos floor.x "1 $floor"
  pos ack.x "2 $(commits | tail -n 2 | head -n 1)"
  pos sent.x "$(cat "$S/pos/ack.x")"
  mv "$T/decode.out" "$T/decode.first"
  bg decode ws-decode --state "$S" --consumer x -F json --metrics "$S/decode.prom"
  ok 'what the descendant published is no obstacle' wait_for -t 30 stream_has '"id":21'
  unlike "$(cat "$T/decode.out")" '"id":20\b' 'and what was acknowledged does not come again'
  is "$(metric floor_timeline)" 1 'the floor is on the old timeline'
  ok 'with its commit, again' wait_for -t 30 committed '"id":21'
  pos ack.x "2 $(commits | tail -n 1)"
  ok 'and with the acknowledgement on the new one' wait_for_is 2 metric floor_timeline
  stop decode
  is "$STATUS" 0 'it ends in order'
  back
}

# An ack that only went along with the ancestor.
back() {
  local before
  pos sent.x "1 $floor"
  pos ack.x "1 $beyond"
  pos floor.x "1 $mid"
  status_is 3 'an ack past the switch alone is no publication' timeout 60 ws-decode --state "$S" --consumer x
  like "${ERR##*$'\n'}" 'reason=past_fork' 'and has its own reason'
  sed -n 's/^\([^ ]*\) .* past .*/\1/p' < <(ws-history positions --state "$S" 2>"$T/err" | sort) >"$T/out"
  is "$(tr '\n' ' ' <"$T/out")" 'ack.x floor.x received ' 'ws-history tells what is past it'
  like "$(cat "$T/err")" 'reason=past_fork$' 'and why it matters'
  before=$(cat "$S"/pos/*)
  status_is 3 'what was prepared at the switch, and ended in what was passed' ws-catalog rewind --state "$S" "1:$switch"
  like "${ERR##*$'\n'}" 'reason=prepared_xact_present' 'cannot be had back'
  is "$(cat "$S"/pos/*)" "$before" 'and nothing moves'
  pos ack.x "1 $mid"
  pos sent.x "1 $beyond"
  status_is 3 'nor can what was published' ws-catalog rewind --state "$S" "1:$switch"
  like "${ERR##*$'\n'}" 'reason=published_past_fork' 'which has its reason, too'
  is "$(ws-history positions --state "$S" 2>&1 >/dev/null | sed 's/.*reason=//')" published_past_fork 'ws-history says so'
  pos sent.x "1 $floor"
  status_is 0 'what still is prepared holds the floor' ws-catalog rewind --state "$S" "1:$switch"
  is "$(cat "$S"/pos/{ack,floor}.x | sort -u)" "$(printf '1 %X/%08X' $(($(lsn_num "$switch") >> 32)) $(($(lsn_num "$switch") & 0xFFFFFFFF)))" 'positions are at the switch'
  decode
  ok 'from where ws-decode goes on' wait_for -t 30 stream_has '"id":21'
  unlike "$(cat "$T/decode.out")" '"id":10[012]' 'without what has not happened'
  stop decode
}

commits() { sed -n 's/.*"type":"commit".*"end_lsn":"\([^"]*\)".*/\1/p' "$T/decode.out"; }
committed() { sed -n "/$1/,\$p" "$T/decode.out" | grep -q '"type":"commit"'; }

for_majors fork
done_testing
