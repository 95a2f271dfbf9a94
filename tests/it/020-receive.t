#!/usr/bin/env bash
# ws-receive against real servers: the same bytes as the server's pg_wal after kills at any time, what
# ends it and how, slots, feedback, the raw limit.
. "$(dirname "$0")/lib/it.sh"

SEED=${WS_SEED:-$$}
RANDOM=$SEED
note "seed $SEED (WS_SEED repeats it)"

# same_wal DIR SERVER DESC: every byte in DIR is the server's, only the newest segment is a growing
# one; and there is something.
same_wal() {
  local f name n=0 bad='' last
  for last in "$1"/0*[0-9A-F] "$1"/0*.partial; do :; done
  for f in "$1"/0*; do
    name=${f##*/} name=${name%.partial}
    [ "$f" = "${f%.partial}" ] || [ "$f" = "$last" ] || bad+=" ${f##*/}"
    [[ $name != *.history ]] || continue
    n=$((n + 1))
    cmp -s -n "$(stat -c %s "$f")" "$f" "$T/$2/pg_wal/$name" || bad+=" $name"
  done
  if [ -z "$bad" ] && [ "$n" -gt 0 ]; then
    pass "$3 ($n segments)"
  else
    fail "$3" "$n segments, different:$bad"
  fi
}

# The end of a WAL directory by its newest file, as a number.
dir_end() {
  local f name size
  f=$(find "$1" -name '0*' ! -name '*.history' -printf '%f\n' | sort | tail -n 1)
  name=${f%.partial}
  size=$2
  [ "$f" = "$name" ] || echo $((((16#${name:8:8} << 32) + 16#${name:16:8} * size) + $(stat -c %s "$1/$f")))
  [ "$f" != "$name" ] || echo $(((16#${name:8:8} << 32) + (16#${name:16:8} + 1) * size))
}

receive() {
  bg "$1" ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws -v "${@:2}"
}

caught_up() { pos_ge "$T/st/pos/received" "$(sql src 'SELECT pg_current_wal_flush_lsn()')"; }

load() {
  sql src "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, $1) g"
}

test_major() {
  local size=$1 i loader
  pg_init src --wal-segsize="$size"
  pg_conf src wal_keep_size=512MB autovacuum=off
  pg_start src
  rm -rf "$T/st"
  sql src 'CREATE TABLE t (a int, b text)'
  status_is 0 'the slot is created' ws-receive -d "$(pg_conninfo src)" -S ws --create-slot
  isnt "$(sql src "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 'ws'")" '' 'and reserves WAL'
  status_is 2 'creating it again is refused' ws-receive -d "$(pg_conninfo src)" -S ws --create-slot
  status_is 0 'unless told otherwise' ws-receive -d "$(pg_conninfo src)" -S ws --create-slot --if-not-exists

  receive rcv
  load 20000
  ok 'it catches up' wait_for caught_up
  same_wal "$T/st/raw" src "pg_wal's bytes with segments of $size MB"
  is "$(cat "$T/st/cluster")" "$(printf 'SYSTEM_ID=%s\nMAJOR=%s\nSEGMENT_SIZE=%s' \
    "$(sql src 'SELECT system_identifier FROM pg_control_system()')" "$PG_MAJOR" $((size << 20)))" 'the cluster file'

  for i in 1 2 3 4 5 6; do
    load $((RANDOM % 8000)) &
    loader=$!
    sleep "0.0$((RANDOM % 10))"
    kill9 rcv
    cmp_is "$(lsn_num "$(pos_lsn "$T/st/pos/received")")" -le "$(dir_end "$T/st/raw" $((size << 20)))" \
      "kill $i: received is at most what is there"
    receive rcv
    wait "$loader"
  done
  ok 'it catches up after the kills' wait_for caught_up
  same_wal "$T/st/raw" src 'the same bytes after the kills'

  # The end on a segment's boundary, and a restart there.
  sql src 'SELECT pg_switch_wal()' >/dev/null
  ok 'the rest of a switched segment comes' wait_for caught_up
  stop rcv
  is "$STATUS" 0 'TERM ends it in order'
  local whole zeros=$((size << 20 > 4 << 20 ? 4 << 20 : 40000))
  whole=$(find "$T/st/raw" -name '0*[0-9A-F]' | sort | tail -n 1)
  # Killed before the full segment had its name; then also torn where it was not announced.
  mv "$whole" "$whole.partial"
  receive rcv
  load 10
  ok 'a full segment without its name gets it' wait_for caught_up
  same_wal "$T/st/raw" src 'the same bytes, and no growing segment before others'
  stop rcv
  sql src 'SELECT pg_switch_wal()' >/dev/null
  receive rcv
  wait_for caught_up
  stop rcv
  whole=$(find "$T/st/raw" -name '0*[0-9A-F]' | sort | tail -n 1)
  rm -f "$T/st/raw"/*.partial
  mv "$whole" "$whole.partial"
  head -c "$zeros" /dev/zero | tr '\0' 'Z' | dd of="$whole.partial" conv=notrunc status=none
  i=${whole##*/}
  printf '1 %s\n' "$(lsn_text $((((16#${i:8:8}) << 32) + (16#${i:16}) * (size << 20))))" >"$T/st/pos/received"
  receive rcv
  ok 'one that a crash tore is healed' wait_for caught_up
  same_wal "$T/st/raw" src 'with the right bytes and its name'
  stop rcv
  receive rcv
  load 100
  ok 'and goes on at the boundary' wait_for caught_up
  same_wal "$T/st/raw" src 'the same bytes across the boundary'

  # A tear above received, as a crash of the machine leaves it, heals; below it is refused.
  stop rcv
  local part
  part=$(echo "$T"/st/raw/0*.partial)
  head -c 3000 /dev/zero >>"$part"
  load 200
  receive rcv
  ok 'it catches up over a torn tail' wait_for caught_up
  same_wal "$T/st/raw" src 'torn bytes are replaced'
  ok 'and it says so' log_has rcv 'differ from the server'
  stop rcv
  cp "$part" "$T/keep"
  printf 'X' | dd of="$part" bs=1 seek=100 conv=notrunc status=none
  local before
  before=$(cat "$T/st/pos/received")
  status_is 3 'a flipped byte below received is refused' timeout 20 \
    ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws
  like "$ERR" 'reason=sibling_branch' 'with its reason'
  is "$(cat "$T/st/pos/received")" "$before" 'and the position stays'
  cat "$T/keep" >"$part"

  # Shutdowns: not held up, nothing missed.
  receive rcv --no-loop
  ok 'it is there again' wait_for caught_up
  i=$(now_ms)
  pg_stop src
  cmp_is $(($(now_ms) - i)) -lt 5000 'the fast shutdown is not held up'
  wait_exit rcv
  # Seldom the connection breaks before the server's goodbye is read: that end is unknown, and temporary.
  [ "$STATUS" = 4 ] || note "the end of the shutdown was not seen: $(tail -n 3 "$T/rcv.err")"
  like "$STATUS" '^[14]$' 'a shutdown ends --no-loop with 4, or 1 when its end was not seen'
  same_wal "$T/st/raw" src 'the shutdown checkpoint is there'
  pg_start src
  receive rcv --no-loop
  wait_for caught_up
  pg_stop src immediate
  wait_exit rcv
  is "$STATUS" 1 'a crash ends it with 1'
  receive rcv
  sleep 0.3
  pg_start src
  load 10
  ok 'without --no-loop it comes back by itself' wait_for caught_up

  # --confirm floor moves the slot only to the floor and does not hold up a shutdown.
  stop rcv
  echo "1 $(pos_lsn "$T/st/pos/received")" >"$T/st/pos/floor.x"
  local floor
  floor=$(pos_lsn "$T/st/pos/floor.x")
  receive rcv --confirm floor -s 0.2
  load 3000
  wait_for caught_up
  ok 'the slot follows the floor' wait_for_is t sql src \
    "SELECT restart_lsn = '$floor' FROM pg_replication_slots WHERE slot_name = 'ws'"
  i=$(now_ms)
  pg_stop src
  cmp_is $(($(now_ms) - i)) -lt 5000 'a fast shutdown with a floor far behind is not held up'
  pg_start src
  is "$(sql src "SELECT restart_lsn = '$floor' FROM pg_replication_slots WHERE slot_name = 'ws'")" t 'the slot stays'
  stop rcv
  rm "$T/st/pos/floor.x"

  # endpos: everything below, nothing above.
  local end
  end=$(sql src 'SELECT pg_current_wal_flush_lsn() + 5000')
  bg rcv ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws -E "$end"
  load 1000
  wait_exit rcv
  is "$STATUS" 0 '--endpos ends with 0'
  is "$(lsn_num "$(pos_lsn "$T/st/pos/received")")" "$(lsn_num "$end")" 'and exactly there'
  status_is 0 'again: nothing to do' ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws -E "$end"

  # The raw limit: counts what a consumer has not read.
  echo "1 $(pos_lsn "$T/st/pos/received")" >"$T/st/pos/read.x"
  receive rcv --raw-limit 2MB
  load 60000
  ok 'the raw limit disconnects' wait_for log_has rcv 'raw limit reached'
  ok 'the connection is gone' wait_for_is 0 sql src "SELECT count(*) FROM pg_stat_replication"
  not_ok 'and it is not caught up' caught_up
  while ! caught_up && [ $SECONDS -lt 1000 ]; do
    echo "1 $(pos_lsn "$T/st/pos/received")" >"$T/st/pos/.x" && mv "$T/st/pos/.x" "$T/st/pos/read.x"
    sleep 0.1
  done
  ok 'it goes on as the consumer reads' caught_up
  same_wal "$T/st/raw" src 'the same bytes with interruptions'
  rm "$T/st/pos/read.x"

  # In use; missing; dropped and made anew.
  run timeout 20 ws-receive -D "$T/other" -d "$(pg_conninfo src)" -S ws -n
  is "$STATUS" 1 'a slot in use is temporary'
  like "$ERR" 'active for PID [0-9]+' 'and the pid is named'
  run timeout 20 ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws -n
  is "$STATUS" 1 'one receiver a directory'
  like "$ERR" "pid=$(pid_of rcv)" 'which is named'
  stop rcv
  status_is 3 'a missing slot is for the operator' ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S none
  like "$ERR" 'reason=slot_missing' 'with its reason'
  before=$(cat "$T/st/pos/received")
  status_is 0 'the slot is dropped' ws-receive -d "$(pg_conninfo src)" -S ws --drop-slot
  load 100
  sql src CHECKPOINT "SELECT pg_switch_wal()" CHECKPOINT >/dev/null
  ws-receive -d "$(pg_conninfo src)" -S ws --create-slot
  status_is 3 'a slot made anew is refused' ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws
  like "$ERR" 'reason=slot_too_new' 'with its reason'
  is "$(cat "$T/st/pos/received")" "$before" 'and no position moved'

  # WAL gone.
  pg_conf src wal_keep_size=0 max_wal_size=$((size * 2))MB min_wal_size=$((size * 2))MB
  pg_reload src
  for i in 1 2 3 4 5; do
    load 100
    sql src 'SELECT pg_switch_wal()' CHECKPOINT >/dev/null
  done
  ws-receive -d "$(pg_conninfo src)" -S ws --drop-slot
  sql src 'SELECT pg_switch_wal()' CHECKPOINT 'SELECT pg_switch_wal()' CHECKPOINT >/dev/null
  status_is 3 'WAL that is gone is for the operator' timeout 20 ws-receive --state "$T/st" -d "$(pg_conninfo src)"
  like "$ERR" 'reason=wal_missing' 'with its reason'
  is "$(cat "$T/st/pos/received")" "$before" 'and no position moved'

  # Another cluster.
  pg_new other
  status_is 3 'another cluster is refused' ws-receive --state "$T/st" -d "$(pg_conninfo other)"
  like "$ERR" 'reason=system_id_changed' 'with its reason'
}

stream_has() { [ "$(stat -c %s "$T/stream")" -gt 30000000 ]; }

test_misc() {
  pg_init src
  printf 'local replication pw scram-sha-256\nlocal all all trust\nlocal replication all trust\n' \
    >"$T/src/pg_hba.conf"
  pg_conf src wal_level=replica
  pg_start src
  sql src "CREATE ROLE pw REPLICATION LOGIN PASSWORD 'right'"
  local conn="host=$T/s port=${PG_PORT[src]} user=pw"
  PGPASSWORD=wrong status_is 2 'a wrong password is a matter of configuration' \
    ws-receive -D "$T/d" -d "$conn" -w
  like "$ERR" 'password authentication failed' 'and said'
  unlike "$ERR" 'wrong|right' 'without the password'
  status_is 2 'a missing one too' ws-receive -D "$T/d" -d "$conn" -w
  PGPASSWORD=right status_is 0 'the right one is taken' ws-receive -D "$T/d" -d "$conn" -w -E 0/1
  like "$ERR" 'wal_level is replica' 'wal_level below logical is said'
  status_is 2 'no such role' ws-receive -D "$T/d" -d "host=$T/s port=${PG_PORT[src]} user=nobody"
  status_is 1 'nobody there' ws-receive -D "$T/d" -d "host=$T/nowhere" -n

  # The framed stream, and a reader that takes nothing for a while: the queue is bounded, the
  # connection lives on, then is given up; nothing is lost.
  local before end
  before=$(sql src 'SELECT pg_current_wal_flush_lsn()')
  mkfifo "$T/fifo"
  exec 8<>"$T/fifo"
  BG_OUT=$T/fifo bg rcv ws-receive -o - -d "$(pg_conninfo src)" -v
  sleep 0.5
  sql src 'CREATE TABLE t AS SELECT g, repeat(md5(g::text), 20) FROM generate_series(1, 60000) g'
  ok 'a reader that takes nothing loses the connection' wait_for log_has rcv 'took nothing for'
  BG_IN=$T/fifo BG_OUT=$T/stream bg reader cat
  exec 8>&-
  end=$(sql src 'SELECT pg_current_wal_flush_lsn()')
  cmp_is $(($(lsn_num "$end") - $(lsn_num "$before"))) -gt 30000000 'there was more than the queue holds'
  ok 'the stream goes on' wait_for stream_has
  stop rcv
  is "$STATUS" 0 'TERM ends the stream in order'
  stop reader
  status_is 0 'and it is WAL that ws-filter reads' ws-filter -D "$T/filtered" - <"$T/stream"
  for t in '-E 5' '-I x -o -' '-s x' '--sync-interval x' '--raw-limit x' '--confirm x' '-o file' '-o - -D d' \
    '-I 0/1' '--create-slot' '--drop-slot' '-S A! --create-slot' '--if-not-exists' '--synchronous --no-sync' '-w -W' \
    '--confirm floor -D d' '--raw-limit 1GB -D d' '--bogus' 'operand'; do
    # shellcheck disable=SC2086 # options
    status_is 2 "bad usage: $t" ws-receive -d "$(pg_conninfo src)" $t
  done
  status_is 2 'nowhere to write' ws-receive -d "$(pg_conninfo src)"
  status_is 2 'a malformed connection string' ws-receive -D "$T/d" -d 'host=x secret word=y'
  unlike "$ERR" secret 'is not printed'
  status_is 2 'a malformed connection URI' ws-receive -D "$T/d" -d 'postgresql://u:sec%zzret@h/db'
  unlike "$ERR" 'zzret' 'is not printed, either'
}

test_old() {
  PG_MAJOR=14
  pg_new old
  status_is 2 'PostgreSQL 14 is refused' ws-receive -D "$T/d" -d "$(pg_conninfo old)"
  like "$ERR" 'PostgreSQL 14; supported are 16 to 18' 'and said'
}

declare -A SIZE=([16]=16 [17]=1 [18]=64)
per_major() { test_major "${SIZE[$PG_MAJOR]:-16}"; }
for_majors per_major
test_misc
test_old
done_testing
