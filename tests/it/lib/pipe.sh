# The whole pipeline under a supervisor, for tests: a source, a destination, a state directory.
# shellcheck shell=bash

# No command of walshadow holds a test up for ever.
walshadow() { timeout --foreground -k 10 "${WS_IT_COMMAND_TIMEOUT:-300}" walshadow "$@"; }

# pipe_init NAME[/DATABASE] [walshadow init OPTION...]: sets up state $S (default $T/state) for a
# source started by pg_new and the last ch_start, and runs everything.  The database in the connection
# string is another one, which must not matter.
pipe_init() {
  local server=${1%%/*} db=postgres
  [[ $1 != */* ]] || db=${1#*/}
  shift
  : "${S:=$T/state}"
  export WALSHADOW_STATE=$S
  pg_bin "${PG_MAJOR_OF[$server]}"
  # Tools that tests kill again and again come back soon.
  [ -e "$S/walshadow.conf" ] || { mkdir -p "$S" && echo BACKOFF_MAX=1 >"$S/walshadow.conf"; }
  walshadow init -d "$(pg_conninfo "$server")" --database "$db" \
    --url "$CH_URL" --bindir "$PGBIN" "$@" >"$T/init.out" 2>"$T/init.err" || {
    diag "init failed: $(tail -n 5 "$T/init.out" "$T/init.err")"
    pipe_logs
    return 1
  }
  pipe_pid_known
}

# The supervisor is not a child of the test: note its pid, so that nothing is left behind.
pipe_pid_known() {
  wait_for -t 10 -m 'the supervisor' test -s "$S/run/supervisor.pid"
}

# pipe_source CONNINFO: where ws-receive connects to when it starts next.
pipe_source() { sed -i "s|^SOURCE=.*|SOURCE=$1|" "$S/walshadow.conf"; }

pipe_start() { walshadow start 2>>"$T/start.err" && pipe_pid_known; }
pipe_stop() { walshadow stop 2>>"$T/stop.err"; }

# pipe_logs: the last lines of every tool's log, for a failed test.
pipe_logs() {
  local f
  for f in "$S"/log/*.log; do
    diag "--- $(basename "$f")"
    tail -n "${WS_IT_LINES:-8}" "$f" | sed 's/^/#   /' >&2
  done
}

# pipe_why: where everything is, how the consumer main ended, and what was said last.
pipe_why() {
  local f
  cat "$S"/run/consumer.main.{exit,status} 2>/dev/null
  for f in "$S"/pos/*; do printf '%s %s; ' "${f##*/}" "$(<"$f")"; done
  echo
  walshadow status 2>&1 | sed -n 's/^ *//; /[^ ]/p' | head -n 24
  for f in supervisor receive filter walsend shadow catalog decode.main emit.main; do
    tail -n 2 "$S/log/$f.log" 2>/dev/null | sed "s/^/$f: /"
  done
}

# pipe_drained SERVER DESC [SECONDS]: all that the source wrote is acknowledged; gives up at once when
# the consumer main stops.  A failure is a failed test DESC.
pipe_drained() {
  local lsn
  lsn=$(sql "$1" 'SELECT pg_current_wal_insert_lsn()')
  wait_for -t "${3:-60}" -m "ack.main at $lsn" pipe_settled "$lsn" && pos_ge "$S/pos/ack.main" "$lsn" && return
  fail "$2: drained" "wanted $lsn" "$(pipe_why)"
  return 1
}

pipe_settled() { pos_ge "$S/pos/ack.main" "$1" || grep -q '^[23] ' "$S/run/consumer.main.exit"; }

# pipe_drain SERVER [CONSUMER] [SECONDS]: until all that the source wrote is acknowledged.
pipe_drain() {
  local lsn
  # What idle servers write moves the position too: the end as of now is what counts.
  lsn=$(sql "$1" 'SELECT pg_current_wal_insert_lsn()')
  wait_for -t "${3:-60}" -m "ack.${2:-main} at $lsn" pos_ge "$S/pos/ack.${2:-main}" "$lsn" && return 0
  walshadow status 2>&1 | sed 's/^/# /' >&2
  pipe_logs
  return 1
}

# pipe_compare SERVER DATABASE [CHDATABASE]: every ordinary table, every column, every row.
pipe_compare() {
  local server=$1 db=$2 chdb=${3:-$2}
  sql "$server/$db" "SELECT format(E'%1\$I.%2\$I\t$chdb.%1\$s_%2\$s\t%1\$I.%2\$I equals $chdb.%1\$s_%2\$s', nspname, relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind = 'r' AND relpersistence = 'p' AND c.oid >= 16384 AND nspname !~ '^pg_' AND nspname <> 'information_schema'
    ORDER BY 1" >"$T/.compare.tables"
  pg_to_ch_compare_all "$server/$db" "$chdb" <"$T/.compare.tables"
}

# pipe_invariants CONSUMER DBOID DESC: the inequalities between positions.  Each file is read once,
# the lower one first, so that a position that moves on meanwhile cannot break them.
pipe_invariants() {
  local floor ack sent captured filtered received
  floor=$(pos_lsn "$S/pos/floor.$1") ack=$(pos_lsn "$S/pos/ack.$1") sent=$(pos_lsn "$S/pos/sent.$1")
  captured=$(pos_lsn "$S/pos/captured.$2") filtered=$(pos_lsn "$S/pos/filtered") received=$(pos_lsn "$S/pos/received")
  if lsn_ge "$ack" "$floor" && lsn_ge "$captured" "$ack" && lsn_ge "$captured" "${sent:-$ack}" &&
    lsn_ge "$received" "$captured" && lsn_ge "$received" "$filtered"; then
    pass "$3"
  else
    fail "$3" "floor $floor ack $ack sent $sent captured $captured filtered $filtered received $received"
    diag "$(date '+%T.%N'): $(cd "$S/pos" && ls -l --time-style=full-iso)"
    diag "$(ps -eLo pid,tid,stat,wchan:24,etimes,args | grep "[/ ]ws-[a-z]* .*$S\|[w]s-[a-z]*.*$S" | cut -c 1-150)"
  fi
}

# pipe_pid TOOL: pid of a running tool: receive, filter, walsend, shadow, catalog, decode.NAME, emit.NAME.
pipe_pid() {
  local pid
  read -r pid 2>/dev/null <"$S/run/$1.pid" && kill -0 "$pid" 2>/dev/null && echo "$pid"
}

pipe_kill9() {
  local pid
  pid=$(pipe_pid "$1") && kill -KILL "$pid"
}
