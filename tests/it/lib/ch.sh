# ClickHouse servers by name (ws-chdb), data in $T/NAME.  CH_URL is the last one started.
# shellcheck shell=bash

declare -A CH_HTTP=() CH_TCP=()
CH_URL=

# ch_start NAME [ws-chdb OPTION...]: a server keeps its ports over a restart.
ch_start() {
  local name=$1
  shift
  WALSHADOW_LIBCHDB=$("$TOP/tests/rig/chdb") || bail_out 'no ClickHouse'
  export WALSHADOW_LIBCHDB
  if [ -z "${CH_HTTP[$name]:-}" ]; then
    free_port
    CH_HTTP[$name]=$PORT
    free_port
    CH_TCP[$name]=$PORT
  fi
  rm -f "$T/$name/port"
  bg "$name" ws-chdb -p "${CH_HTTP[$name]}" -t "${CH_TCP[$name]}" "$@" "$T/$name"
  wait_for -t 60 -m "ClickHouse $name" ch_up_or_dead "$name"
  alive "$name" || bail_out "ClickHouse $name does not start: $(tail -n 3 "$T/$name.err")"
  CH_URL=http://127.0.0.1:${CH_HTTP[$name]}
}

ch_up_or_dead() { ! alive "$1" || [ -e "$T/$1/port" ]; }

# ch_stop NAME: in order; ch_kill NAME: as a crash.
ch_stop() { stop "$1" TERM 60; }

ch_kill() {
  kill9 "$1"
  # The server itself goes with it; its lock is free when it is gone.
  wait_for -m "the end of $1" flock -n "$T/$1/lock" true
}

# ch SQL [NAME]: prints the result (TSV) on stdout; an error on stderr, and fails.
ch() {
  local url=$CH_URL status body=$T/.ch.$BASHPID
  [ -z "${2:-}" ] || url=http://127.0.0.1:${CH_HTTP[$2]}
  : >"$body"
  status=$(curl -sS --max-time "${WS_IT_COMMAND_TIMEOUT:-300}" -o "$body" -w '%{http_code}' "$url/?wait_end_of_query=1" \
    --data-binary "$1") || status=0
  if [ "$status" = 200 ]; then
    cat "$body"
    rm -f "$body"
    return 0
  fi
  cat "$body" >&2
  rm -f "$body"
  return 1
}
