# TAP, as prove reads it.  Descriptions get the prefix TAP_PREFIX (for_majors sets it).
# shellcheck shell=bash

TAP_COUNT=0
TAP_FAILED=0
TAP_PREFIX=
# shellcheck disable=SC2034 # it_where says it
TAP_LAST=
# Of the last command that `run`, `status_is`, `stop` or `wait_exit` saw.
STATUS=0 OUT="" ERR=""

diag() { printf '%s\n' "$*" | sed 's/^/# /' >&2; }
note() { printf '%s\n' "$*" | sed 's/^/# /'; }

# pass DESC; fail DESC [DIAG...]
pass() {
  TAP_COUNT=$((TAP_COUNT + 1))
  # shellcheck disable=SC2034
  TAP_LAST=$TAP_PREFIX$1
  printf 'ok %d - %s\n' "$TAP_COUNT" "$TAP_PREFIX${1//#/\\#}"
}

fail() {
  local desc=$1 line
  shift
  TAP_COUNT=$((TAP_COUNT + 1))
  # shellcheck disable=SC2034
  TAP_LAST=$TAP_PREFIX$desc
  TAP_FAILED=$((TAP_FAILED + 1))
  printf 'not ok %d - %s\n' "$TAP_COUNT" "$TAP_PREFIX${desc//#/\\#}"
  diag "failed: $TAP_PREFIX$desc (${BASH_SOURCE[2]:-?}:${BASH_LINENO[1]:-?})"
  for line; do
    diag "  $line"
  done
  # scripts/check shows these once more at its end.
  [ -z "${WS_FAILURES:-}" ] || {
    printf '%s:%s %s\n' "$(basename "$0")" "${BASH_LINENO[1]:-?}" "$TAP_PREFIX$desc"
    for line; do printf '%s\n' "$line"; done | cut -c 1-300 | sed 's/^/    /' | head -n 60
  } >>"$WS_FAILURES"
  return 1
}

# skip DESC WHY: cannot be run here, and prove says so.
skip() {
  TAP_COUNT=$((TAP_COUNT + 1))
  printf 'ok %d - %s # SKIP %s\n' "$TAP_COUNT" "$TAP_PREFIX${1//#/\\#}" "$2"
}

# ok DESC COMMAND [ARG...]: the command succeeds.
ok() {
  local desc=$1
  shift
  if "$@"; then
    pass "$desc"
  else
    fail "$desc" "status $?: $*"
  fi
}

# not_ok DESC COMMAND [ARG...]: the command fails.
not_ok() {
  local desc=$1
  shift
  if "$@"; then
    fail "$desc" "succeeded: $*"
  else
    pass "$desc"
  fi
}

# is GOT WANTED DESC; isnt GOT UNWANTED DESC
is() {
  if [ "$1" = "$2" ]; then
    pass "$3"
  else
    fail "$3" "got:    $1" "wanted: $2"
  fi
}

isnt() {
  if [ "$1" != "$2" ]; then
    pass "$3"
  else
    fail "$3" "got: $1"
  fi
}

# cmp_is A OP B DESC: numbers, OP as of [ ]: -lt -le -gt -ge -eq -ne.
cmp_is() {
  # shellcheck disable=SC2035 # an operator
  if test "$1" "$2" "$3" 2>/dev/null; then
    pass "$4"
  else
    fail "$4" "not true: $1 $2 $3"
  fi
}

# like TEXT REGEX DESC; unlike TEXT REGEX DESC: extended regular expressions.
like() {
  if [[ $1 =~ $2 ]]; then
    pass "$3"
  else
    fail "$3" "text:  $1" "regex: $2"
  fi
}

unlike() {
  if [[ $1 =~ $2 ]]; then
    fail "$3" "text:  $1" "regex: $2"
  else
    pass "$3"
  fi
}

# same_file GOT WANTED DESC: byte for byte.
same_file() {
  local difference
  if difference=$(cmp "$1" "$2" 2>&1); then
    pass "$3"
  else
    fail "$3" "$difference"
  fi
}

# same_text GOT WANTED DESC: files of text; the first lines of the difference are shown.
same_text() {
  local difference
  if difference=$(diff -u --label got "$1" --label wanted "$2" 2>&1); then
    pass "$3"
  else
    fail "$3" "$(head -n 30 <<<"$difference")"
  fi
}

# run COMMAND [ARG...]: STATUS, OUT and ERR of a command in the foreground (files $T/out, $T/err).
run() {
  "$@" >"$T/out" 2>"$T/err"
  STATUS=$?
  # Output with NUL bytes is for the files only.
  OUT=$(tr -d '\0' <"$T/out")
  # shellcheck disable=SC2034 # for the test
  ERR=$(tr -d '\0' <"$T/err")
  return "$STATUS"
}

# status_is WANTED DESC COMMAND [ARG...]: as run; the exit status is WANTED.
status_is() {
  local want=$1 desc=$2
  shift 2
  run "$@"
  if [ "$STATUS" = "$want" ]; then
    pass "$desc"
  else
    fail "$desc" "status $STATUS, wanted $want: $*" "stdout: ${OUT:0:2000}" "stderr: ${ERR:0:2000}"
  fi
}

bail_out() {
  printf 'Bail out!  %s\n' "$*"
  exit 1
}

# die MESSAGE: the test cannot go on.
die() {
  fail "$*"
  exit 1
}

# Checks that no process is left behind, prints the plan; the last line of a test.
done_testing() {
  proc_check
  [ "$TAP_FAILED" != 0 ] || [ "${PROC_IN_VAIN:-0}" = 0 ] || fail "$PROC_IN_VAIN times something was waited for in vain"
  printf '1..%d\n' "$TAP_COUNT"
  [ "$TAP_FAILED" = 0 ] || diag "$TAP_FAILED of $TAP_COUNT failed"
  exit $((TAP_FAILED > 0))
}

# for_parts PART...: calls each, a function of that name, which PART tells, and descriptions do.
for_parts() {
  for PART; do
    TAP_PREFIX="[$PG_MAJOR] $PART: "
    "$PART"
  done
}

# for_majors FUNCTION: calls it with PG_MAJOR set to each of WS_MAJORS in turn.  What one call left
# running is stopped before the next.
for_majors() {
  local major
  for major in ${WS_MAJORS:-16 17 18}; do
    # shellcheck disable=SC2034 # pg.sh uses it
    PG_MAJOR=$major
    TAP_PREFIX="[$major] "
    proc_forget_logs
    "$@"
    proc_check
    TAP_PREFIX=
  done
}
