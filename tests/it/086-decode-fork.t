#!/usr/bin/env bash
# ws-decode at a timeline switch after a restart: what an earlier run published decides, by sent.NAME,
# although nothing of it was acknowledged.
. "$(dirname "$0")/lib/it.sh"

pos() { echo "$2" >"$S/pos/$1"; }
stream_has() { grep -q -- "$1" "$T/decode.out"; }
decode() { bg decode ws-decode --state "$S" --consumer x -F json; }

fork() {
  local floor switch beyond seg end
  S=$T/state
  rm -rf "$S"
  mkdir -p "$S/pos" "$S/consumer/x" "$S/catalog"
  pg_new a
  pg_conf a autovacuum=off
  pg_reload a
  sql a 'CREATE TABLE t (id int PRIMARY KEY)'
  catfill "$S/catalog" "$(pg_conninfo a)" "$T/a/pg_wal" >"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"
  printf 'DATABASE_OID=%s\nDATABASE=postgres\n' "$(sql a "SELECT oid FROM pg_database WHERE datname = 'postgres'")" >"$S/consumer/x/config"
  floor=$(pg_lsn a)
  sql a 'INSERT INTO t VALUES (1)'
  pg_stop a
  cp -a "$T/a" "$T/copy"
  pg_adopt b "$T/copy"
  pg_start a
  sql a 'INSERT INTO t VALUES (100)' 'INSERT INTO t VALUES (101)'
  beyond=$(pg_lsn a)
  ws-receive -q --state "$S" -d "$(pg_conninfo a)" -n -E "$beyond" 2>"$T/err" || die "ws-receive: $(cat "$T/err")"
  # The other one goes its own way.
  touch "$T/b/standby.signal"
  pg_start b
  sql b 'SELECT pg_promote()' >/dev/null
  wait_for_is f sql b 'SELECT pg_is_in_recovery()'
  sql b 'INSERT INTO t SELECT g FROM generate_series(2, 20) g' 'INSERT INTO t VALUES (21)'
  switch=$(cut -f 2 "$T/b/pg_wal/00000002.history")
  ok 'the first server wrote past the switch' lsn_ge "$beyond" "$switch"
  isnt "$beyond" "$switch" 'some rows'
  pos floor.x "1 $floor"
  pos "captured.$(sql b "SELECT oid FROM pg_database WHERE datname = 'postgres'")" "2 $(pg_lsn b)"
  end=$(pg_lsn b)
  seg=$(sql b 'SELECT pg_walfile_name(pg_current_wal_lsn())')
  pg_stop b
  pg_stop a
  # As ws-receive leaves it: what is there is the end.
  head -c $(($(lsn_num "$end") & 16777215)) "$T/b/pg_wal/$seg" >"$S/raw/$seg.partial"
  cp "$T/b/pg_wal/00000002.history" "$S/raw/"

  # Sent on the ancestor, past the switch, and not acknowledged.
  pos ack.x "1 $floor"
  pos sent.x "1 $beyond"
  status_is 3 'what was published past the switch stops' timeout 60 ws-decode --state "$S" --consumer x -F json
  like "${ERR##*$'\n'}" 'timeline 1 ends at.*reason=published_past_fork' 'with the reason'
  unlike "$OUT" '"id":2\b' 'before anything of the descendant'
  # Sent before the switch.
  pos sent.x "1 $floor"
  decode
  ok 'what was published before it does not' wait_for -t 30 stream_has '"id":21'
  ok 'with its commit' wait_for -t 30 committed '"id":21'
  unlike "$(cat "$T/decode.out")" '"id":10[01]' 'and the rows that did not happen stay out'
  stop decode
  # Sent and acknowledged on the descendant, past the switch, with the floor still before it.
  rm -f "$S/pos/read.x"
  pos floor.x "1 $floor"
  pos ack.x "2 $(sed -n 's/.*"type":"commit".*"end_lsn":"\([^"]*\)".*/\1/p' "$T/decode.out" | tail -n 2 | head -n 1)"
  pos sent.x "$(cat "$S/pos/ack.x")"
  mv "$T/decode.out" "$T/decode.first"
  decode
  ok 'what the descendant published is no obstacle' wait_for -t 30 stream_has '"id":21'
  unlike "$(cat "$T/decode.out")" '"id":20\b' 'and what was acknowledged does not come again'
  stop decode
  is "$STATUS" 0 'it ends in order'
}

committed() { sed -n "/$1/,\$p" "$T/decode.out" | grep -q '"type":"commit"'; }

for_majors fork
done_testing
