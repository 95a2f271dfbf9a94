# The library of the integration tests.  A test is a bash script that begins with
#
#	. "$(dirname "$0")/lib/it.sh"
#
# and ends with `done_testing`.  It gives:
#   tap.sh      ok, is, like, ... in TAP, and `status_is` to run a command
#   proc.sh     bg, stop, kill9, wait_for: processes that never outlive the test
#   pg.sh       PostgreSQL of the majors in WS_MAJORS
#   ch.sh       ClickHouse
#   compare.sh  source table against destination table
#
# T is the test's own folder, removed at its end (kept when a test failed and WS_IT_KEEP is set).
# It is the working directory; the source tree is TOP.  PATH begins with the built tools, of BUILD.
#
# Servers refuse to run as root: started as root, the whole test runs again as the system user
# `walshadow`, which is created when missing.
# shellcheck shell=bash

set -u -o pipefail
export LC_ALL=C.UTF-8 TZ=UTC
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
BUILD=$(cd "${WS_BUILD:-$TOP/build}" 2>/dev/null && pwd) || BUILD=$TOP/build

it_become_user() {
  local user=walshadow
  id -u $user >/dev/null 2>&1 ||
    useradd --system --user-group --no-create-home --home-dir /nonexistent \
      --shell /usr/sbin/nologin $user || exit 1
  exec setpriv --reuid=$user --regid="$(id -g $user)" --clear-groups \
    env HOME=/nonexistent USER=$user LOGNAME=$user bash "$0" "$@"
}
[ "$(id -u)" != 0 ] || it_become_user "$@"

IT_NAME=$(basename "$0" .t)
T=$(mktemp -d "${TMPDIR:-/tmp}/wsit-${IT_NAME%%-*}.XXXXXX") || exit 1
chmod 700 "$T"
export PATH="$BUILD/bin:$BUILD/prog:$PATH" T
# Nothing of the caller's configuration reaches the tests.
unset "${!PG@}" "${!WALSHADOW_STATE@}" http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export HOME=$T
# Every process of the test works here or below: that is how those left behind are found.
cd "$T" || exit 1

IT_LIB=$TOP/tests/it/lib
# shellcheck source=tap.sh
. "$IT_LIB/tap.sh"
# shellcheck source=proc.sh
. "$IT_LIB/proc.sh"
# shellcheck source=pg.sh
. "$IT_LIB/pg.sh"
# shellcheck source=ch.sh
. "$IT_LIB/ch.sh"
# shellcheck source=compare.sh
. "$IT_LIB/compare.sh"

it_exit() {
  local status=$?
  trap - EXIT
  trap '' HUP INT TERM
  if [ "$status" != 0 ] || [ "$TAP_FAILED" != 0 ]; then
    it_show_logs
  fi
  proc_finish
  if { [ "$status" != 0 ] || [ "$TAP_FAILED" != 0 ]; } && [ -n "${WS_IT_KEEP:-}" ]; then
    diag "kept: $T"
  else
    chmod -R u+rwX "$T" 2>/dev/null
    rm -rf "$T"
  fi
  [ "$status" != 0 ] || [ "$TAP_FAILED" = 0 ] || status=1
  exit "$status"
}
# tests/watch asks a test that hangs where it does; a trap runs when the command that it waits for has
# ended.
it_where() {
  local i command=$BASH_COMMAND
  trap '' USR2
  diag "it hung in: ${command:0:500}"
  for ((i = 1; i < ${#FUNCNAME[@]}; i++)); do
    diag "  in ${FUNCNAME[i]} (${BASH_SOURCE[i]##*/}:${BASH_LINENO[i - 1]})"
  done
  diag "  after test $TAP_COUNT: ${TAP_LAST:-none}"
  exit 1
}
trap it_where USR2

trap it_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# The last lines of every process's stderr, for a failed test.
it_show_logs() {
  local name
  for name in "${PROC_NAMES[@]}"; do
    [ -s "$T/$name.err" ] || continue
    diag "--- $name.err (last lines)"
    tail -n "${WS_IT_LINES:-15}" "$T/$name.err" | sed 's/^/#   /' >&2
  done
}
