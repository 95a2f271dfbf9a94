# Background processes by name, waiting, and the accounting that leaves none behind.
#
# Everything started here is killed by the kernel when the test dies, whatever kills it; so call
# these functions in the test's own shell, not in $(...) or (...).
# shellcheck shell=bash

declare -A PROC_PID=()
# A signal other than TERM to stop a process with.
declare -A PROC_STOP=()
PROC_NAMES=()
# How often wait_for gave up: a test that takes no notice of that fails in the end (done_testing).
PROC_IN_VAIN=0

now_ms() {
  local t=${EPOCHREALTIME/[.,]/}
  echo "${t%???}"
}

# wait_for [-t SECONDS] [-m WHAT] COMMAND [ARG...]: until the command succeeds; polls, ever less
# often, and says what it waited for when it gives up.  A machine that stood still for a while made
# no progress either: it has to have polled some times too.
wait_for() {
  local limit=${WS_IT_TIMEOUT:-30} what='' end start now rest polls=0
  while [[ ${1:-} == -[tm] ]]; do
    case $1 in
    -t) limit=$2 ;;
    -m) what=$2 ;;
    esac
    shift 2
  done
  start=${EPOCHREALTIME/[.,]/}
  end=$((start + limit * 1000000))
  until "$@" >/dev/null 2>&1; do
    now=${EPOCHREALTIME/[.,]/} polls=$((polls + 1))
    if ((now > end && polls > 3 * limit)); then
      diag "waited $limit s in vain for: ${what:-$*}"
      PROC_IN_VAIN=$((PROC_IN_VAIN + 1))
      return 1
    fi
    # A tenth of what it took so far, from 20 to 200 ms.
    rest=$(((now - start) / 10000))
    ((rest >= 20)) || rest=20
    ((rest <= 200)) || rest=200
    printf -v rest '0.%03d' "$rest"
    proc_nap "$rest"
  done
}

# proc_nap [SECONDS]: a short rest.  Not bash's `read -t` on a process substitution.  bash 5.2 remembers
# the pid of each, and when the kernel gives it to another child - 32768 are soon used up - it can miss
# that one's end and wait for ever.  And a trap that ends the test inside `read -t` crashes it.
# shellcheck disable=SC2120 # tests give it
proc_nap() { sleep "${1:-0.03}"; }

# wait_for_is WANTED COMMAND [ARG...]: until the command prints WANTED.
wait_for_is() {
  local want=$1 got
  shift
  wait_for -m "'$want' from: $*" proc_prints "$want" "$@" && return 0
  got=$("$@" 2>&1)
  diag "  got: ${got:0:500}"
  return 1
}

proc_prints() {
  local want=$1
  shift
  [ "$("$@" 2>/dev/null)" = "$want" ]
}

# anon_peak PROGRAM [ARG...]: runs it and prints the most anonymous memory it had, in kB.  The program
# itself, not a function: that would be a shell's memory.
anon_peak() {
  local pid most=0 now
  (exec "$@") >/dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    now=$(sed -n 's/RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
    [ "${now:-0}" -le "$most" ] || most=$now
    proc_nap
  done
  wait "$pid" && echo "$most"
}

# bg NAME COMMAND [ARG...]: starts it; output in $T/NAME.out and $T/NAME.err (appended).  With
# BG_IN and BG_OUT set, for that call, to a file or fifo, these are its stdin and stdout.
bg() {
  local name=$1
  shift
  if alive "$name"; then
    bail_out "bg: $name is running already"
  fi
  [[ " ${PROC_NAMES[*]-} " == *" $name "* ]] || PROC_NAMES+=("$name")
  if [ -n "${BG_OUT:-}" ]; then
    setpriv --pdeathsig KILL "$@" <"${BG_IN:-/dev/null}" >"$BG_OUT" 2>>"$T/$name.err" &
  else
    setpriv --pdeathsig KILL "$@" <"${BG_IN:-/dev/null}" >>"$T/$name.out" 2>>"$T/$name.err" &
  fi
  PROC_PID[$name]=$!
}

pid_of() { echo "${PROC_PID[$1]:-}"; }

# alive NAME: is it running?
alive() {
  local pid=${PROC_PID[$1]:-} state
  [ -n "$pid" ] && [ -e "/proc/$pid/stat" ] && read -r state 2>/dev/null <"/proc/$pid/stat" &&
    state=${state##*) } && [ "${state%% *}" != Z ]
}

not_alive() { ! alive "$1"; }

# wait_exit NAME [SECONDS]: waits for its end; STATUS is its exit status.  A process that does not
# end in time is killed, and the call fails.
wait_exit() {
  local name=$1 pid=${PROC_PID[$1]:-} rc=0
  [ -n "$pid" ] || return 1
  if ! wait_for -t "${2:-30}" -m "the end of $name" not_alive "$name"; then
    kill -KILL "$pid" 2>/dev/null
    rc=1
  fi
  wait "$pid" 2>/dev/null
  STATUS=$?
  unset "PROC_PID[$name]"
  return $rc
}

# proc_is_shell PID: is that child of this shell no program yet?  What a signal does then is the trap's.
proc_is_shell() {
  local ours theirs
  mapfile -d '' ours <"/proc/$$/cmdline"
  mapfile -d '' theirs 2>/dev/null <"/proc/$1/cmdline"
  [ "${ours[*]}" = "${theirs[*]}" ]
}

# stop NAME [SIGNAL [SECONDS]]: asks it to end (TERM) and waits; STATUS is its exit status.
stop() {
  local pid=${PROC_PID[$1]:-} i
  [ -n "$pid" ] || return 1
  for ((i = 0; i < 50; i++)); do
    proc_is_shell "$pid" || break
    proc_nap
  done
  kill "-${2:-TERM}" "$pid" 2>/dev/null
  wait_exit "$1" "${3:-30}"
}

# kill9 NAME: as a crash.
kill9() {
  stop "$1" KILL 2>/dev/null # bash would report it
  # shellcheck disable=SC2034 # for the test
  STATUS=137
}

# log_has NAME REGEX: has its stderr a line like this?
log_has() { grep -Eq -- "$2" "$T/$1.err" 2>/dev/null; }

# What processes that are gone have said is not what their namesakes say next.
proc_forget_logs() {
  local name
  for name in "${PROC_NAMES[@]}"; do
    alive "$name" || rm -f "$T/$name".{err,out}
  done
}

# proc_in DIR...: the processes that work there.
proc_in() {
  local dir tests=()
  for dir; do tests+=(${tests[@]:+-o} -lname "$dir"); done
  find /proc/[0-9]*/cwd -maxdepth 0 \( "${tests[@]}" \) -printf '%h\n' 2>/dev/null | sed 's|/proc/||'
}

# Processes of this test: those that work in its folder, which children inherit; without this shell
# and what looked for them, which is gone again.
proc_left() {
  local pid
  for pid in $(proc_in "$T" "$T/*"); do
    [ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ] || [ ! -e "/proc/$pid" ] || echo "$pid"
  done
}

proc_none_left() { [ -z "$(proc_left)" ]; }

# Stops what runs, newest first, so that clients go before their servers.
proc_stop_all() {
  local i name
  for ((i = ${#PROC_NAMES[@]} - 1; i >= 0; i--)); do
    name=${PROC_NAMES[i]}
    [ -n "${PROC_PID[$name]:-}" ] || continue
    stop "$name" "${PROC_STOP[$name]:-TERM}" 20
  done
}

# Stops everything; a process that is left behind then is a failed test.
proc_check() {
  local pid
  proc_stop_all
  wait_for -t 10 -m 'the last processes' proc_none_left && return 0
  for pid in $(proc_left); do
    diag "left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    kill -KILL "$pid" 2>/dev/null
  done
  fail 'no process is left behind'
}

# The same at the end of a test that went wrong: quick and without words.
proc_finish() {
  local name pid
  for name in "${!PROC_PID[@]}"; do
    kill -KILL "${PROC_PID[$name]}" 2>/dev/null
  done
  wait 2>/dev/null
  for pid in $(proc_left); do
    kill -KILL "$pid" 2>/dev/null
  done
  wait_for -t 5 proc_none_left
}

# free_port: sets PORT to a free loopback port, reserved for this test among tests; below the
# range that the kernel uses for outgoing connections.
free_port() {
  local fd dir=/tmp/wsit-ports-$UID range=${WS_IT_PORTS:-20000-29999} i
  local low=${range%-*} high=${range#*-}
  mkdir -p "$dir"
  for ((i = 0; i < 2000; i++)); do
    PORT=$((low + (RANDOM * 32768 + RANDOM) % (high - low + 1)))
    exec {fd}>"$dir/$PORT"
    # The lock goes with this shell and its children.
    if flock -n "$fd" && ! (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
      return 0
    fi
    exec {fd}>&-
  done
  bail_out 'no free port'
}

# unlocked FILE: nobody holds a lock on it.  Asked without taking it, which would keep it from others.
unlocked() { ! grep -q ":$(stat -c %i "$1") " /proc/locks; }
