#!/usr/bin/env bash
# The whole pipeline across promotions of the server that it reads from, under load: open and prepared
# transactions, DDL afterwards, tools killed; the end state is the new primary's, and the shadow's
# catalogs and the history are, too.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/shapes.sh"
. "$IT_LIB/promote.sh"
. "$IT_LIB/shadow.sh"

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
    "INSERT INTO t (v) SELECT 'loaded ' || g FROM generate_series(1, 1000) g" 'CREATE EXTENSION pg_walinspect'
  sql a "SELECT pg_create_physical_replication_slot('walshadow', true)" >/dev/null
}

tear_down() {
  local n
  ok 'it stops' pipe_stop
  for n in a b c s{1..9}; do ! alive $n || pg_stop $n; done
  ch 'DROP DATABASE app'
  rm -rf "$S"
}

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
  shadow_reads
  like "$(walshadow status)" 'received +[0-9A-F/]+ +2 .*shadow.replay +[0-9A-F/]+ +2 .*floor.main +[0-9A-F/]+ +2 .*last promotion +[^ ]+ switched: timeline 1 to 2 at ' 'status tells the timelines'
  tear_down
}

# PostgreSQL reads what it was served across the fork: every record, and the one that begins the new timeline.
shadow_reads() {
  local redo replay
  redo=$(pos_lsn "$S/pos/shadow.redo") replay=$(shadow_sql postgres 'SELECT pg_last_wal_replay_lsn()')
  ok 'the last restartpoint of the shadow is below the fork' lsn_ge "$(cut -f 2 "$S/raw/00000002.history")" "$redo"
  is "$(shadow_sql app "SELECT count(*) > 100, max(end_lsn) = '$replay', count(*) FILTER (WHERE record_type = 'END_OF_RECOVERY')
    FROM pg_get_wal_records_info('$redo', '$replay')")" 't|t|1' 'pg_walinspect reads what is filtered across it'
}

timeline_at() { sql "$1" "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"; }

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

# The primary goes on without its standby, dies, and the standby is promoted: what came from the primary
# meanwhile is here, to the shadow and the history of shapes, but no row of it was published.
ahead() {
  local switch acked copies
  set_up
  standby b a
  ok 'set up' pipe_init a/app || return
  sql a/app "BEGIN; INSERT INTO big (v) VALUES ('prepared, carried'); PREPARE TRANSACTION 'over'" "INSERT INTO t (v) VALUES ('on both')"
  pipe_drained a 'on both' || return
  ok 'a copy of the shadow is kept' wait_for -t 60 kept_copy
  copies=("$S"/shadow.keep/*)
  wait_for -m 'the standby' pg_replayed b "$(pg_lsn a)"
  pg_stop b
  # Not ours: another database, catalogs; positions go along.
  sql a 'CREATE TABLE elsewhere (a int)' 'INSERT INTO elsewhere VALUES (1)' 'CREATE ROLE nobody_here' 'VACUUM FULL pg_class' 'CREATE DATABASE gone'
  pipe_drained a 'elsewhere' || return
  acked=$(pos_lsn "$S/pos/ack.main")
  # Ours, not published: paused.
  ok 'paused' walshadow pause
  wait_for not_running decode.main
  sql a/app "INSERT INTO t (v) SELECT 'lost' FROM generate_series(1, 10000)" 'ALTER TABLE t ADD COLUMN lost int DEFAULT 5' 'CREATE TABLE lost (id int PRIMARY KEY)' \
    'VACUUM FULL pg_attribute' 'REINDEX TABLE pg_class' "DELETE FROM t WHERE id < 100" 'SELECT pg_switch_wal()' "INSERT INTO lost VALUES (1)"
  ok 'the history of shapes has it' wait_for -t 60 captured_ge a "$(pg_lsn a)"
  ok 'the shadow, too' wait_for -t 60 pos_ge "$S/pos/shadow.replay" "$(pg_lsn a)"
  pg_kill a
  pg_start b
  pg_promote b
  sql b/app "INSERT INTO t (v) VALUES ('new')" 'ALTER TABLE t ADD COLUMN new text' 'CREATE TABLE lost (k text PRIMARY KEY, v int)' "INSERT INTO lost VALUES ('not that', 1)"
  switch=$(cut -f 2 "$T/b/pg_wal/00000002.history")
  ok 'what is acknowledged is past the switch' lsn_ge "$acked" "$switch"
  pipe_source "$(pg_hosts b)"
  pipe_kill9 receive
  ok 'the promotion is followed' wait_for -t 60 timeline_is received 2
  ok 'what is past it is taken back' wait_for -t 60 timeline_is filtered 2
  ok 'the copy is what it came from' test "${copies[0]##*/}" = "$(cd "$S/shadow.keep" && ls | head -n 1)"
  is "$(cat "$S/pos/fence")" "1 $(sed -n 's/.*"switch_lsn":"\([^"]*\)".*/\1/p' "$S/log/timelines.log")" 'nothing past it could be sent meanwhile'
  ok 'resumed' walshadow resume
  sql b/app "COMMIT PREPARED 'over'" "INSERT INTO t (v, new) VALUES ('after', 'x')"
  same_as b 'after it'
  is "$(ch "SELECT count() FROM app.public_t FINAL WHERE v = 'lost'")" 0 'what has not happened is not there'
  # Published, it is refused, and nothing moves.
  published b
  tear_down
}

published() {
  local before
  standby c "$1"
  wait_for -m 'the standby' pg_replayed c "$(pg_lsn "$1")"
  pg_stop c
  sql "$1/app" "INSERT INTO t (v) VALUES ('published')"
  pipe_drained "$1" 'published' || return
  pg_kill "$1"
  pg_start c
  pg_promote c
  before=$(cat "$S"/pos/{received,sent.main,ack.main})
  pipe_source "$(pg_hosts c)"
  pipe_kill9 receive
  ok 'what was published is refused' wait_for -t 60 grep -q '^3 ' "$S/run/receive.exit"
  like "$(walshadow status)" 'FAILED status=3.*reason=published_past_fork' 'with the reason'
  is "$(cat "$S"/pos/{received,sent.main,ack.main})" "$before" 'and nothing moved'
  is "$(timeline_of fence)" 1 'no fence is put up'
  is "$(ch "SELECT count() FROM app.public_t FINAL WHERE v = 'published'")" 1 'nor at the destination'
}

# Promotions at random moments, one after another, tools killed meanwhile: WS_FAILOVER_PARTS=chain, WS_FAILOVERS
# of them, WS_SEEDS times.  Some find us ahead of the candidate, with the consumer paused.
chain() {
  local seed=$SEED last=$((SEED + ${WS_SEEDS:-1} - 1))
  for (( ; seed <= last; seed++)); do
    RANDOM=$seed
    # shellcheck disable=SC2034 # tap.sh uses it
    TAP_PREFIX="[$PG_MAJOR] chain $seed: "
    one_chain "${WS_FAILOVERS:-5}" || return
  done
}

one_chain() {
  local n=$1 i
  NOW=a KILLS=0
  set_up
  # A copy of the shadow is kept every few seconds.
  mkdir -p "$S" && printf '%s\n' BACKOFF_MAX=1 KEEP_INTERVAL=5 >"$S/walshadow.conf"
  standby s1 a
  ok 'set up' init_from s1 || return
  for ((i = 1; i <= n; i++)); do
    CANDIDATE=s$i
    if ((RANDOM % 3)); then promotion_seen; else promotion_behind || return; fi
    NOW=$CANDIDATE
    ((i < n)) || break
    # The next candidate, which knows all that we have when we go over to it.
    standby s$((i + 1)) $NOW
    pipe_drained $NOW "before candidate $((i + 1))" 120 || return
    wait_for -m 'the candidate' pg_replayed s$((i + 1)) "$(pg_lsn $NOW)"
    read_from s$((i + 1))
  done
  start_load $NOW
  proc_nap 1
  pipe_kill9 decode.main
  end_load
  same_as $NOW "after $n promotions and $KILLS kills" || return
  is "$(timeline_of received)" $((n + 1)) 'on the last timeline'
  tear_down
}

# kills SECONDS: of random tools, for so long.
kills() {
  local until=$((SECONDS + $1)) tools=(receive filter walsend shadow catalog decode.main emit.main)
  while ((SECONDS < until)); do
    proc_nap "0.$((RANDOM % 8 + 1))"
    pipe_kill9 "${tools[RANDOM % ${#tools[@]}]}" && KILLS=$((KILLS + 1))
  done
}

promotion_seen() {
  start_load $NOW
  kills $((1 + RANDOM % 3))
  pg_kill $NOW
  pg_promote $CANDIDATE
  end_load
}

promotion_behind() {
  read_from $NOW
  start_load $NOW
  kills 1
  walshadow pause 2>>"$T/start.err"
  wait_for -m 'the pause' not_running decode.main || return
  wait_for -m 'the candidate' pg_replayed $CANDIDATE "$(pos_lsn "$S/pos/sent.main")" || return
  pg_stop $CANDIDATE
  kills $((RANDOM % 3))
  proc_nap 0.5
  pg_kill $NOW
  end_load
  pg_start $CANDIDATE
  pg_promote $CANDIDATE
  read_from $CANDIDATE
  kills $((RANDOM % 2))
  # Until then nobody knows that what is here has not happened.
  wait_for -t 60 -m 'the switch' timeline_is received "$(timeline_at $CANDIDATE)" || return
  walshadow resume 2>>"$T/start.err"
}

# init_from CANDIDATE: from the primary a; then the candidate is the source.
init_from() {
  pipe_init a/app && pipe_stop && pipe_source "$(pg_hosts "$1")" && pipe_start
}

# shellcheck disable=SC2086 # words
failover() { for_parts ${WS_FAILOVER_PARTS:-candidate quiet ahead}; }

for_majors failover
done_testing
