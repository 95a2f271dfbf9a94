#!/usr/bin/env bash
# The whole pipeline across promotions of the server that it reads from, under load: open and prepared
# transactions, DDL afterwards, tools killed; the end state is the new primary's, and the shadow's
# catalogs and the history are, too.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/shapes.sh"

SEED=${WS_SEED:-$RANDOM}
RANDOM=$SEED
note "WS_SEED=$SEED"

# load SERVER NUMBER: small transactions until told to stop, or the server is gone.
load() {
  local n=0
  while [ ! -e "$T/load.stop" ]; do
    n=$((n + 1))
    printf '%s\n' "INSERT INTO t (v) SELECT 'c$2 ' || g FROM generate_series(1, $((RANDOM % 30))) g;" \
      "UPDATE t SET v = v || '.' WHERE id % 17 = $((RANDOM % 17));" "DELETE FROM t WHERE id % 101 = $((RANDOM % 101));" \
      "BEGIN; INSERT INTO big VALUES (DEFAULT, repeat(md5('$n'), 200)); SAVEPOINT s; UPDATE big SET n = n + 1 WHERE id = $((RANDOM % 50 + 1)); ROLLBACK TO s; COMMIT;"
    [ $((n % 9)) != 0 ] || printf '%s\n' "CREATE TABLE made_$2_$n (id int PRIMARY KEY, v text); INSERT INTO made_$2_$n VALUES ($n, 'made');" \
      "ALTER TABLE t ADD COLUMN IF NOT EXISTS c$2 int DEFAULT $n; TRUNCATE made_$2_$n; INSERT INTO made_$2_$n VALUES ($n, 'again');"
    [ $((n % 13)) != 0 ] || echo 'VACUUM FULL big; CHECKPOINT;'
  done | PGOPTIONS='-c lock_timeout=200ms' psql_bounded -Xqt -d "$(pg_conninfo "$1" app)" >>"$T/load.out" 2>&1
}

start_load() {
  local i
  rm -f "$T/load.stop"
  LOADERS=()
  for i in 1 2 3; do
    load "$1" $i &
    LOADERS+=($!)
  done
}

end_load() {
  touch "$T/load.stop"
  wait "${LOADERS[@]}" 2>/dev/null
}

standby() { pg_candidate "$1" "$2" walshadow; }

set_up() {
  S=$T/state$PG_MAJOR.$PART
  rm -f "$T/load.out"
  alive ch || ch_start ch
  ch 'DROP DATABASE IF EXISTS app' 2>/dev/null
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=512MB max_wal_size=4GB max_prepared_transactions=10
  pg_start a
  sql a 'CREATE DATABASE app'
  sql a/app 'CREATE TABLE t (id serial PRIMARY KEY, v text)' 'CREATE TABLE big (id serial PRIMARY KEY, v text, n int DEFAULT 0)' \
    "INSERT INTO big (v) SELECT repeat(md5(g::text), 200) FROM generate_series(1, 50) g" \
    "INSERT INTO t (v) SELECT 'loaded ' || g FROM generate_series(1, 1000) g"
  sql a "SELECT pg_create_physical_replication_slot('walshadow', true)" >/dev/null
}

tear_down() {
  local n
  ok 'it stops' pipe_stop
  for n in a b s{1..9}; do ! alive $n || pg_stop $n; done
  ch 'DROP DATABASE app'
}

# same_as SERVER DESC: all tables, the history of shapes, the shadow's own catalogs.
same_as() {
  local db
  pipe_drained "$1" "$2" 90 || return 1
  pipe_compare "$1" app
  db=$(sql "$1" "SELECT oid FROM pg_database WHERE datname = 'app'")
  shapes_of_source "$1/app" >"$T/source.shapes"
  shapes_of_history "$S/catalog" "$db" >"$T/history.shapes"
  is "$(diff "$T/source.shapes" "$T/history.shapes" | head -n 5)" '' "$2: the history is its catalogs"
}

timeline_of() { local tli; read -r tli _ <"$S/pos/$1" && echo "$tli"; }

# Read from the candidate: no promotion of it can leave us ahead.
candidate() {
  set_up
  standby b a
  ok 'set up' init_from b || return
  start_load a
  bg open psql -Xqt "$(pg_conninfo a app)" -c BEGIN -c "INSERT INTO t (v) VALUES ('never committed')" -c 'SAVEPOINT s' \
    -c "UPDATE t SET v = 'never' WHERE id < 5" -c 'SELECT pg_advisory_lock(7)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  sql a/app "BEGIN; INSERT INTO t (v) VALUES ('prepared'); UPDATE big SET n = 100 WHERE id = 60; PREPARE TRANSACTION 'over'" \
    "BEGIN; INSERT INTO t (v) VALUES ('prepared, rolled back'); PREPARE TRANSACTION 'gone'"
  proc_nap 1
  # The consumer stands in the middle of the old timeline.
  ok 'the consumer is paused' walshadow pause main
  proc_nap 0.5
  wait_for -m 'the standby' pg_replayed b "$(pg_lsn a)"
  pg_kill a
  pg_promote b
  end_load
  kill9 open
  start_load b
  ok 'the promotion is followed' wait_for -t 60 timeline_is received 2
  proc_nap 1
  sql b/app "COMMIT PREPARED 'over'" "ROLLBACK PREPARED 'gone'" 'CREATE TABLE after_it (id int PRIMARY KEY, v text)' \
    "INSERT INTO after_it SELECT g, 'new' FROM generate_series(1, 100) g" 'ALTER TABLE t ADD COLUMN later numeric(8, 2) DEFAULT 1.5' \
    "INSERT INTO t (v, later) VALUES ('with the new column', 2.25)"
  is "$(timeline_of floor.main)" 1 'the floor is on the old one'
  ok 'and goes on when the source is on the next timeline' walshadow resume main
  end_load
  same_as b 'after the promotion'
  ok 'the floor has crossed the fork' wait_for -t 60 timeline_is floor.main 2
  is "$(ch "SELECT count() FROM app.public_t FINAL WHERE v = 'never committed'")" 0 'what was open is gone'
  is "$(cat "$S/raw/00000002.history")" "$(cat "$T/b/pg_wal/00000002.history")" 'the history is the file of the server'
  like "$(walshadow status)" 'received +[0-9A-F/]+ +2 .*shadow.replay +[0-9A-F/]+ +2 .*floor.main +[0-9A-F/]+ +2 .*last promotion +[^ ]+ switched: timeline 1 to 2 at ' 'status tells the timelines'
  tear_down
}

timeline_is() { [ "$(timeline_of "$1")" = "$2" ]; }

# Positions right behind a switch, in a page that has the ancestor's timeline in its header.
quiet() {
  local switch n
  set_up
  standby b a
  # Until then from the primary, held back by the standby.
  mkdir -p "$S" && printf '%s\n' BACKOFF_MAX=1 WS_RECEIVE_HOLD_BACK=b >"$S/walshadow.conf"
  ok 'set up' pipe_init a/app || return
  like "$(walshadow status)" 'hold\.b +[0-9A-F/]+ +1 +[0-9]+ +1 of 1 standbys connected' 'status tells what the standby has'
  like "$(tr '\0' ' ' <"/proc/$(cat "$S/run/decode.main.pid")/cmdline")" '--hold-back b ' 'the consumer is held back'
  pipe_drained a 'held back' || return
  pipe_stop
  sed -i '/^WS_RECEIVE_HOLD_BACK=/d' "$S/walshadow.conf"
  pipe_source "$(pg_hosts b)" && pipe_start
  sql a/app "INSERT INTO t (v) VALUES ('before')"
  pipe_drained a 'before' || return
  wait_for -m 'the standby' pg_replayed b "$(pg_lsn a)"
  pg_kill a
  pg_promote b
  ok 'a promotion and nothing else' wait_for -t 60 timeline_is received 2
  # The shadow has switched, and dies with all that are beside it before the next boundary is captured.
  ok 'the shadow switches' wait_for -t 60 timeline_is shadow.replay 2
  for n in shadow walsend catalog filter; do pipe_kill9 $n; done
  # Known from the start, the fork's segment is read under the descendant's name.
  pipe_kill9 decode.main
  sql b/app "INSERT INTO t (v) VALUES ('after')" 'CREATE TABLE behind (id int PRIMARY KEY)'
  pipe_drained b 'after' || return
  switch=$(tail -n 1 "$S/raw/00000002.history" | cut -f 2)
  ok 'the floor is behind the switch' wait_for -t 60 floor_past "$switch"
  is "$(timeline_of floor.main)" 2 'and on the new timeline'
  pipe_kill9 decode.main
  sql b/app "INSERT INTO t (v) VALUES ('again')"
  same_as b 'restarted there'
  tear_down
}

floor_past() { ! lsn_ge "$1" "$(pos_lsn "$S/pos/floor.main")"; }

# Promotions at random moments, one after another, always from the candidate, tools killed meanwhile:
# WS_FAILOVER_PARTS=chain, WS_FAILOVERS of them.
chain() {
  local n=${WS_FAILOVERS:-2} i now=a kills=0 until tools=(receive filter walsend shadow catalog decode.main emit.main)
  set_up
  standby s1 a
  ok 'set up' init_from s1 || return
  for ((i = 1; i <= n; i++)); do
    start_load $now
    until=$((SECONDS + 1 + RANDOM % 3))
    while ((SECONDS < until)); do
      proc_nap "0.$((RANDOM % 8 + 1))"
      pipe_kill9 "${tools[RANDOM % ${#tools[@]}]}" && kills=$((kills + 1))
    done
    pg_kill $now
    pg_promote s$i
    end_load
    now=s$i
    ((i < n)) || break
    # The next candidate, which knows all that we have when we go over to it.
    standby s$((i + 1)) $now
    pipe_drained $now "before candidate $((i + 1))" 120 || return
    wait_for -m 'the candidate' pg_replayed s$((i + 1)) "$(pg_lsn $now)"
    pipe_source "$(pg_hosts s$((i + 1)))"
    pipe_kill9 receive
  done
  start_load $now
  proc_nap 1
  pipe_kill9 decode.main
  end_load
  same_as $now "after $n promotions and $kills kills, seed $SEED"
  is "$(timeline_of received)" $((n + 1)) 'on the last timeline'
  tear_down
}

# init_from CANDIDATE: from the primary a; then the candidate is the source.
init_from() {
  pipe_init a/app && pipe_stop && pipe_source "$(pg_hosts "$1")" && pipe_start
}

failover() {
  local PART
  for PART in ${WS_FAILOVER_PARTS:-candidate quiet}; do
    # shellcheck disable=SC2034 # tap.sh uses it
    TAP_PREFIX="[$PG_MAJOR] $PART: "
    "$PART"
  done
}

for_majors failover
done_testing
