#!/usr/bin/env bash
# kill -9 of each tool in turn under load, of all together, of the shadow, and the loss of the
# shadow's data directory: the end state equals the source, and after each kill the positions keep
# their order.  WS_SEED chooses the moments; WS_KILL_ROUNDS how often (default 5).
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

SEED=${WS_SEED:-$RANDOM}
ROUNDS=${WS_KILL_ROUNDS:-5}
RANDOM=$SEED
note "WS_SEED=$SEED"

TOOLS=(receive filter walsend shadow catalog decode.main emit.main)

nap_ms() { proc_nap "$(printf '0.%03d' "$1")"; }

# Waits until the tool runs (again), then kills it at a moment of the seed.
kill_one() {
  wait_for -t 40 -m "$1 to run" pipe_pid "$1" || return 1
  nap_ms $((RANDOM % 400))
  pipe_kill9 "$1"
  pipe_invariants main "$DBOID" "positions after kill -9 of $1 (round $2, seed $SEED)"
}

# Transactions of all kinds: small, large, rolled back, with savepoints, long open over kills, DDL.
load() {
  local n=0
  while [[ ! -e $T/load.stop ]]; do
    n=$((n + 1))
    sql src "INSERT INTO t SELECT g, md5(g::text), now() FROM generate_series($n * 1000, $n * 1000 + 300) g" \
      "BEGIN; UPDATE t SET v = v || 'x' WHERE id % 7 = $((n % 7)) AND id > $n * 1000 - 3000; SAVEPOINT s;
       DELETE FROM t WHERE id % 5 = 0; ROLLBACK TO s; DELETE FROM t WHERE id % 11 = $((n % 11)) AND id < $n * 1000; COMMIT" \
      "BEGIN; INSERT INTO u SELECT g, g FROM generate_series($n * 10, $n * 10 + 5) g; UPDATE u SET k = k + 1000000 WHERE k = $n * 10; COMMIT" \
      "BEGIN; DELETE FROM t; ROLLBACK" || return 1
    case $((n % 10)) in
    3) sql src "ALTER TABLE u ADD COLUMN c$n int DEFAULT $n" ;;
    6) sql src 'VACUUM FULL u' ;;
    8) sql src "TRUNCATE w" "INSERT INTO w SELECT g, 'n$n' FROM generate_series(1, 50) g" ;;
    esac
  done 2>>"$T/load.err"
}

kills() {
  local round tool loader
  S=$T/state$PG_MAJOR
  ch_start ch
  ch 'DROP DATABASE IF EXISTS postgres' 2>/dev/null
  pg_new src
  sql src 'CREATE TABLE t (id bigint PRIMARY KEY, v text, ts timestamptz)' 'CREATE TABLE u (k bigint PRIMARY KEY, n int)' \
    'CREATE TABLE w (id int PRIMARY KEY, v text)' "INSERT INTO t SELECT g, 'old', now() FROM generate_series(1, 500) g"
  ok 'set up' pipe_init src || return
  DBOID=$(sql src "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  wait_for -t 60 -m 'a kept copy of the shadow' compgen -G "$S/shadow.keep/????????????????"
  rm -f "$T/load.stop"
  load &
  loader=$!
  for ((round = 1; round <= ROUNDS; round++)); do
    for tool in "${TOOLS[@]}"; do kill_one "$tool" "$round"; done
    for tool in "${TOOLS[@]}"; do pipe_kill9 "$tool"; done
    pipe_invariants main "$DBOID" "positions after kill -9 of all together (round $round, seed $SEED)"
  done
  # The shadow's data directory is lost.
  wait_for -t 40 -m 'the shadow' pipe_pid shadow
  pipe_kill9 shadow
  rm -rf "$S/shadow"
  pipe_invariants main "$DBOID" "positions after the loss of the shadow (seed $SEED)"
  wait_for -t 60 -m 'the shadow to come back' pipe_pid shadow
  : >"$T/load.stop"
  wait $loader
  is $? 0 "the load ran to its end: $(tail -n 1 "$T/load.err")"
  ok "all is acknowledged (seed $SEED)" pipe_drain src main 120
  pipe_compare src postgres
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE postgres'
}

for_majors kills
done_testing
