# A proxy in front of ClickHouse that stops at a chosen request; see tests/prog/chproxy.c.
# shellcheck shell=bash

# proxy_start NAME: before the last ch_start; PROXY_URL is its address.
proxy_start() {
  PROXY_DIR=$T/$1.ctl
  mkdir -p "$PROXY_DIR"
  free_port
  PROXY_URL=http://127.0.0.1:$PORT
  bg "$1" chproxy -l "$PORT" -u "${CH_URL##*:}" "$PROXY_DIR"
  wait_for -m 'the proxy' test -e "$PROXY_DIR/ready"
}

# proxy_rule WHEN REGEX: the next request that matches is held, see chproxy.
proxy_rule() {
  rm -f "$PROXY_DIR"/{hit,go,done}
  printf '%s %s\n' "$1" "$2" >"$PROXY_DIR/rule.new"
  mv "$PROXY_DIR/rule.new" "$PROXY_DIR/rule"
}

proxy_hit() { wait_for -t "${1:-30}" -m 'the request to stop at' test -e "$PROXY_DIR/hit"; }
proxy_go() { touch "$PROXY_DIR/go"; }
proxy_done() { wait_for -m 'the held request' test -e "$PROXY_DIR/done"; }

# The pair of consumer main by hand, for tests that kill it often: the supervisor would wait longer
# from death to death.  pair_start [WS-EMIT OPTION...]; state $S.
pair_start() {
  PAIR=("$@")
  rm -f "$T/pair"
  mkfifo "$T/pair"
  BG_OUT=$T/pair bg decode ws-decode --state "$S" --consumer main
  BG_IN=$T/pair bg emit ws-emit --state "$S" --consumer main --url "$PROXY_URL" "$@"
}

# pair_dies decode|emit: by SIGKILL, and comes again; the other one ends by itself.
pair_dies() {
  kill9 "$1"
  alive decode && stop decode
  alive emit && wait_exit emit
  pair_start "${PAIR[@]}"
}

# In order: all that was decoded is acknowledged.
pair_stop() {
  stop decode && wait_exit emit
  is "$STATUS" 0 'the pair ends in order'
}
