#!/usr/bin/env bash
# A branch that was left is taken back, whatever dies meanwhile: the supervisor before each step of it and
# while a copy of the shadow is removed, a disk that is full, ws-catalog between two positions.  WAL and
# shapes that this needs are not pruned; a transaction prepared at the fork is not lost.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/shapes.sh"
. "$IT_LIB/promote.sh"

# What the supervisor runs first does what $T/hook says, once: the name, a part of the arguments, what to do.
wrap() {
  local f name dir mv
  mv=$(type -P mv)
  mkdir -p "$T/bin" "$T/tools"
  for f in "$BUILD"/bin/*; do
    case ${f##*/} in
      walshadow*) cp "$f" "$T/bin/" ;;
      *) ln -sf "$f" "$T/bin/" ;;
    esac
  done
  for name in ws-catalog ws-filter ws-history cp mv rm; do
    dir=$T/tools f=$(type -P $name)
    [[ $name != ws-* ]] || dir=$T/bin
    rm -f "$T/bin/$name"
    cat >"$dir/$name" <<XX
#!/bin/bash
real=$f
if { read -r name && read -r match && read -r action; } 2>/dev/null <"$T/hook" && [[ \$name == $name && " \$* " == *"\$match"* ]]; then
  $mv "$T/hook" "$T/fired" && eval "\$action"
fi
exec "\$real" "\$@"
XX
    chmod +x "$dir/$name"
  done
  export PATH="$T/bin:$T/tools:$PATH"
}

# hook NAME PART ACTION
hook() {
  rm -f "$T/fired"
  printf '%s\n' "$@" >"$T/hook.new"
  mv "$T/hook.new" "$T/hook"
}

# shellcheck disable=SC2016 # for the hook
KILL='kill -KILL "$(cat "$WALSHADOW_STATE/run/supervisor.pid")"; exit 1'

# kill_at NAME:PART: the supervisor dies before that.
# shellcheck disable=SC2016 # for the hook
kill_at() {
  case $1 in
    # A part of the copy is gone then.
    rm:shadow.keep) hook rm shadow.keep 'rm -rf "${@: -1}/base"; '"$KILL" ;;
    *) hook "${1%%:*}" "${1#*:}" "$KILL" ;;
  esac
}

died_at() { ok "killed before $1" wait_for -t 20 test -e "$T/fired" && wait_for supervisor_gone; }
supervisor_gone() { ! kill -0 "$(cat "$S/run/supervisor.pid")" 2>/dev/null; }

set_up() {
  S=$T/state
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=512MB max_wal_size=4GB max_prepared_transactions=10
  pg_start a
  sql a 'CREATE DATABASE app' "SELECT pg_create_physical_replication_slot('walshadow', true)" >/dev/null
  sql a/app 'CREATE TABLE t (id serial PRIMARY KEY, v text)' 'CREATE TABLE big (id int PRIMARY KEY, v text, n int DEFAULT 0)' \
    'ALTER TABLE big ALTER v SET STORAGE EXTERNAL' "INSERT INTO big SELECT g, repeat('old', 1000) FROM generate_series(1, 9) g" \
    "INSERT INTO t (v) SELECT 'loaded ' || g FROM generate_series(1, 300) g"
  mkdir -p "$S" && printf '%s\n' BACKOFF_MAX=1 KEEP_INTERVAL=2 KEEP_COPIES=3 PRUNE_INTERVAL=1 >"$S/walshadow.conf"
  pipe_init a/app
}

# left_behind SERVER: what was not published, up to the shadow and the history of shapes; none of it happens.
left_behind() {
  local lsn
  # Another database: floors go along, and with them what could be pruned.
  sql "$1" 'CREATE TABLE elsewhere (a int, b text)' "INSERT INTO elsewhere SELECT g, repeat('x', 500) FROM generate_series(1, 7000) g" 'VACUUM FULL pg_class'
  pipe_drained "$1" 'elsewhere' || return
  lsn=$(sql "$1" 'SELECT pg_current_wal_lsn() - 1048576')
  walshadow pause 2>>"$T/start.err"
  sql "$1/app" 'ALTER TABLE big ADD COLUMN lost int' "UPDATE big SET v = repeat('lost', 1000) WHERE id < 6" 'UPDATE big SET n = n + 1' "INSERT INTO t (v) SELECT 'lost' FROM generate_series(1, 500)" \
    'CREATE TABLE lost (id int PRIMARY KEY)' 'VACUUM FULL pg_attribute' 'DELETE FROM t WHERE id < 100'
  ok 'floors went along' wait_for pos_ge "$S/pos/floor.main" "$lsn"
  lsn=$(pg_lsn "$1")
  wait_for captured_ge "$1" "$lsn"
  ok 'the shadow is past the fork' wait_for pos_ge "$S/pos/shadow.replay" "$lsn"
  ok 'a copy of it, too' wait_for kept_past "$2"
  # Of a consumer that is gone.
  cp "$S/pos/floor.main" "$S/pos/floor.gone"
}

# kept_past LSN: is there a copy of the shadow past it?
kept_past() {
  local copies=("$S"/shadow.keep/????????????????)
  [[ ${copies[-1]##*/} > $(printf '%016X' "$(lsn_num "$1")") ]]
}

kills() {
  local copy i steps=(ws-history:positions ws-catalog:restorable ws-catalog:rewind rm:/shadow\  cp:shadow.tmp mv:shadow.tmp rm:shadow.keep ws-filter:--rewind)
  pg_candidate b a walshadow
  pipe_drained a 'before' || return
  ok 'a copy of the shadow is kept' wait_for kept_copy
  wait_for -m 'the standby' pg_replayed b "$(pg_lsn a)"
  pg_stop b
  left_behind a "$(pg_lsn a)" || return
  pg_kill a
  pg_start b
  pg_promote b
  sql b/app "UPDATE big SET v = repeat('new', 1000) WHERE id < 4" 'UPDATE big SET n = n + 2' 'CREATE TABLE lost (k text PRIMARY KEY, v int)' "INSERT INTO lost VALUES ('not that', 1)"
  kill_at "${steps[0]}"
  read_from b
  for ((i = 0; i < ${#steps[@]}; i++)); do
    died_at "${steps[i]}" || { diag "$(pipe_why; tail -n 3 "$S/log/fork.log" "$T/start.err")"; return; }
    ((i == ${#steps[@]} - 1)) || kill_at "${steps[i + 1]}"
    pipe_start
  done
  ok 'what is past it is taken back' wait_for timeline_is filtered 2
  for copy in "$S"/shadow.keep/????????????????; do
    [ -d "$copy/base" ] || fail "a part of a copy has a copy's name" "$copy"
  done
  # As a power failure leaves what was written without waiting for the disk.
  pipe_stop
  : >"$S/pos/read.main"
  : >"$S/pos/shadow.replay"
  rm "$S/pos/floor.gone"
  walshadow resume 2>>"$T/start.err"
  pipe_start
  sql b/app 'UPDATE big SET n = n + 3'
  same_as b 'after it'
}

# Prepared below the fork, rolled back on the branch that was left, committed on the other before it lists what
# runs there: its rows are gone here, and that is said.
prepared() {
  local fork
  sql "$1/app" "BEGIN; INSERT INTO t (v) VALUES ('prepared'); PREPARE TRANSACTION 'over'"
  pg_candidate c "$1" walshadow
  # Its checkpoint after the promotion has much to write before it lists anything.
  sql "$1" "CREATE TABLE much AS SELECT g, repeat('x', 1000) FROM generate_series(1, 10000) g"
  pipe_drained "$1" 'prepared' || return
  fork=$(pg_lsn "$1")
  wait_for -m 'the standby' pg_replayed c "$fork"
  pg_stop c
  sql "$1/app" "ROLLBACK PREPARED 'over'"
  sql "$1" 'DELETE FROM much WHERE g < 1000'
  pipe_drained "$1" 'rolled back' || return
  walshadow pause 2>>"$T/start.err"
  ok 'the floor is past it' wait_for pos_ge "$S/pos/floor.main" "$fork"
  pg_kill "$1"
  pg_conf c checkpoint_timeout=1h
  pg_start c
  sql c 'SELECT pg_promote(false)' >/dev/null
  wait_for sql c/app "COMMIT PREPARED 'over'"
  sql c CHECKPOINT
  read_from c
  ok 'what was prepared is refused' wait_for grep -q '^3 ' "$S/run/fork.exit"
  like "$(walshadow status)" 'fork .*reason=prepared_xact_present' 'with the reason'
}

ch_start ch
wrap
# What dies is the supervisor and its commands: one major is as good as another.
ok 'set up' set_up && kills && prepared b
ok 'it stops' pipe_stop
done_testing
