# shellcheck shell=bash
# The supervisor: which tools run when, and what happens when one ends.
#
# A service starts as soon as what it needs exists, so that `init` only has to bring the state
# forward step by step.  Exit 1 and 4 and deaths by signal are restarted with backoff; 2 and 3 are
# left for the operator (walshadow start tries them again).

declare -A SVC_PID SVC_NEXT SVC_BACKOFF SVC_STARTED SVC_RESTARTS
KEEP_AFTER=0
BUSY_UNTIL=5

# svc_list: sets SERVICES.
svc_list() {
  consumers
  SERVICES=(receive filter walsend shadow catalog "${CONSUMERS[@]/#/consumer.}")
}

# What a service needs before it can start.
svc_ready() {
  case $1 in
    receive) return 0 ;;
    filter) [[ -e $STATE/kept || -e $STATE/filtered/state ]] && [[ -e $STATE/pos/received ]] ;;
    walsend) [[ -e $STATE/pos/backup && -e $STATE/pos/filtered ]] ;;
    shadow) [[ -e $STATE/pos/backup && -S $STATE/run/.s.PGSQL.5432 ]] && shadow_present ;;
    catalog) [[ -S $STATE/run/.s.PGSQL.5433 ]] ;;
    consumer.*)
      local name=${1#consumer.}
      [[ -e $STATE/pos/floor.$name && -e $STATE/pos/ack.$name && ! -e $STATE/consumer/$name/paused ]]
      ;;
  esac
}

# Replaces the process by the tool of the service.
svc_exec() {
  local log=$STATE/log/$1.log
  conf_load "$STATE/walshadow.conf"
  log_rotate "$log"
  case $1 in
    receive)
      tool_options ws-receive
      exec "$BIN/ws-receive" -d "${CONF[SOURCE]}" -S "${CONF[SLOT]}" \
        --metrics "$STATE/metrics/ws-receive.prom" "${OPTS[@]}" 2>>"$log"
      ;;
    filter)
      tool_options ws-filter
      [[ -e $STATE/filtered/state ]] || OPTS+=(--kept "$STATE/kept")
      exec "$BIN/ws-filter" --follow --metrics "$STATE/metrics/ws-filter.prom" "${OPTS[@]}" 2>>"$log"
      ;;
    walsend)
      tool_options ws-walsend
      exec "$BIN/ws-walsend" --metrics "$STATE/metrics/ws-walsend.prom" "${OPTS[@]}" 2>>"$log"
      ;;
    shadow)
      shadow_options >>"$log" 2>&1
      exec "${CONF[BINDIR]}/postgres" -D "$STATE/shadow" "${OPTS[@]}" >>"$log" 2>&1
      ;;
    catalog)
      tool_options ws-catalog
      exec "$BIN/ws-catalog" capture --metrics "$STATE/metrics/ws-catalog.prom" "${OPTS[@]}" 2>>"$log"
      ;;
    consumer.*) consumer_run "${1#consumer.}" ;;
  esac
}

# The oracle, by options: a copy of the shadow's directory that is started otherwise has none.
shadow_options() {
  local module=${CONF[ORACLE]:-} workers
  OPTS=()
  [[ -n $module ]] || return 0
  if [[ ! -e $module.so ]]; then
    warn "the oracle $module.so is gone; the shadow starts without it, and consumers that have it wait"
    return 0
  fi
  workers=$(sed -n 's/^max_worker_processes *= *\([0-9]*\).*/\1/p' "$STATE"/shadow/postgresql.{,auto.}conf 2>/dev/null | tail -n 1)
  OPTS+=(-c "shared_preload_libraries=\"$module\"" -c "dynamic_library_path=\$libdir:$(dirname "$module")"
    -c "walshadow_oracle.directory=$STATE/run/oracle" -c "max_worker_processes=$((${workers:-8} + 9))")
}

# ws-decode and ws-emit of one consumer live and die together.  The pipe has a name of its own each
# time, so that a new reader can never meet an old writer.
consumer_run() {
  local name=$1 pipe decode emit timer ds=0 es=0 s
  conf_of_consumer "$name"
  pipe=$STATE/run/$name.$BASHPID.pipe
  mkfifo -m 0600 "$pipe" || exit 1
  # Opened here for both ends: neither tool can then hang in open(2) when the other died early.
  exec 7<>"$pipe" 8>"$pipe" 6<"$pipe" 7>&-
  rm -f "$pipe"
  log_rotate "$STATE/log/decode.$name.log"
  log_rotate "$STATE/log/emit.$name.log"
  tool_options ws-decode
  # Whose TOAST values are kept follows the rules of ws-emit.
  [[ -z ${CONF[WS_EMIT_ROUTES]:-} || -n ${CONF[WS_DECODE_ROUTES]:-} ]] || OPTS+=(--routes "${CONF[WS_EMIT_ROUTES]}")
  hold_back_options
  "$BIN/ws-decode" --consumer "$name" --metrics "$STATE/metrics/ws-decode.$name.prom" "${OPTS[@]}" \
    >&8 2>>"$STATE/log/decode.$name.log" 6<&- 8>&- &
  decode=$!
  tool_options ws-emit
  "$BIN/ws-emit" --consumer "$name" --metrics "$STATE/metrics/ws-emit.$name.prom" "${OPTS[@]}" \
    <&6 2>>"$STATE/log/emit.$name.log" 6<&- 8>&- &
  emit=$!
  exec 6<&- 8>&-
  printf '%s\n' $decode >"$STATE/run/decode.$name.pid"
  printf '%s\n' $emit >"$STATE/run/emit.$name.pid"
  # Stopping: ws-decode ends its stream in order, ws-emit finishes what it has.
  trap 'kill -TERM $decode 2>/dev/null' TERM INT
  trap 'kill -HUP $decode $emit 2>/dev/null' HUP
  # A trap interrupts wait: go on until both are gone.  When ws-emit dies while nothing flows,
  # ws-decode does not notice by itself.  A child whose end bash saw before wait does not end it:
  # that is what the timer is for.
  while kill -0 $decode 2>/dev/null || kill -0 $emit 2>/dev/null; do
    sleep 5 &
    timer=$!
    wait -n $decode $emit $timer 2>/dev/null
    kill $timer 2>/dev/null
    wait $timer 2>/dev/null
    kill -0 $emit 2>/dev/null || kill -TERM $decode 2>/dev/null
  done
  wait $decode
  ds=$?
  wait $emit
  es=$?
  rm -f "$STATE/run/decode.$name.pid" "$STATE/run/emit.$name.pid"
  printf '%s %s\n' $ds $es >"$STATE/run/consumer.$name.status"
  for s in 2 3; do [[ $ds -eq $s || $es -eq $s ]] && exit $s; done
  [[ $ds -eq 0 && $es -eq 0 ]] && exit 0
  exit 1
}

log_rotate() {
  local size
  size=$(stat -c %s "$1" 2>/dev/null) || return 0
  ((size > 10485760)) && mv -f "$1" "$1.1"
  return 0
}

# A pair whose wrapper was killed goes on without it: it has to end before a new one starts.
pair_end_leftover() {
  local file pid
  for file in "$STATE/run/decode.$1.pid" "$STATE/run/emit.$1.pid"; do
    read -r pid 2>/dev/null <"$file" || continue
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -e "--consumer $1 " || continue
    kill -TERM "$pid" 2>/dev/null
    wait_gone "$pid" 10 || kill -KILL "$pid" 2>/dev/null
  done
}

svc_start() {
  local svc=$1
  [[ $svc != consumer.* ]] || pair_end_leftover "${svc#consumer.}"
  (
    # Until the tool has its own handler a HUP must not end it.
    trap - TERM INT
    trap '' HUP
    svc_exec "$svc"
  ) 9>&- &
  SVC_PID[$svc]=$!
  SVC_STARTED[$svc]=$SECONDS
  BUSY_UNTIL=$((SECONDS + 5))
  printf '%s\n' "$!" >"$STATE/run/$svc.pid"
}

# Decides what follows from a service's end.
svc_ended() {
  local svc=$1 status=$2
  local ran=$((SECONDS - SVC_STARTED[$svc])) wait most=${CONF[BACKOFF_MAX]:-30}
  unset "SVC_PID[$svc]"
  rm -f "$STATE/run/$svc.pid"
  printf '%s %s\n' "$status" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$STATE/run/$svc.exit"
  if [[ $svc != shadow && ($status -eq 2 || $status -eq 3) ]]; then
    SVC_NEXT[$svc]=never
    # shellcheck disable=SC2034 # walshadow-fork.sh: it may be past a promotion
    FORK_TLI=
    warn "$svc ended with status $status and is not restarted: $(svc_last_error "$svc")"
    return
  fi
  # One that had settled is started at once; only one that cannot settle is held back.
  ((ran >= 5)) && SVC_BACKOFF[$svc]=0
  wait=${SVC_BACKOFF[$svc]:-0}
  SVC_BACKOFF[$svc]=$((wait == 0 ? 1 : wait * 2 > most ? most : wait * 2))
  SVC_NEXT[$svc]=$((SECONDS + wait))
  SVC_RESTARTS[$svc]=$((${SVC_RESTARTS[$svc]:-0} + 1))
  printf '%s\n' "${SVC_RESTARTS[$svc]}" >"$STATE/run/$svc.restarts"
  info "$svc ended with status $status; restart in ${wait}s"
}

svc_last_error() {
  local svc=$1 files=() ds=0 es=0
  case $svc in
    consumer.*)
      files=("$STATE/log/decode.${svc#consumer.}.log" "$STATE/log/emit.${svc#consumer.}.log")
      # The one that needs an operator, not the one that only saw the other end.
      read -r ds es 2>/dev/null <"$STATE/run/$svc.status"
      if [[ $ds == [23] && $es != [23] ]]; then
        files=("${files[0]}")
      elif [[ $es == [23] && $ds != [23] ]]; then
        files=("${files[1]}")
      fi
      ;;
    *) files=("$STATE/log/$svc.log") ;;
  esac
  # What a standby says whenever it is stopped or not up yet is no error.
  tail -qn 200 "${files[@]}" 2>/dev/null | grep -E '(error|FATAL|PANIC):|"level":"error"' |
    grep -v -e 'due to administrator command' -e 'the database system is' | tail -n 1
}

# ---- the shadow and its kept copies ----
shadow_present() {
  [[ -e $STATE/shadow/global/pg_control ]] && return 0
  shadow_restore
}

# A lost data directory comes back from the newest kept copy that is not past the gate.
shadow_restore() {
  local copy
  if ! copy=$("$BIN/ws-catalog" restorable 2>>"$STATE/log/shadow.log"); then
    SVC_NEXT[shadow]=never
    printf '3 %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$STATE/run/shadow.exit"
    warn "the shadow's data directory is gone and no kept copy can take its place: $(svc_last_error shadow)"
    return 1
  fi
  shadow_put_back "$copy" "the shadow's data directory is gone"
}

# shadow_put_back COPY WHY
shadow_put_back() {
  warn "$2; restoring $1"
  rm -rf "$STATE/shadow" "$STATE/shadow.tmp"
  cp -a --reflink=auto "$1" "$STATE/shadow.tmp" && sync -f "$STATE/shadow.tmp" &&
    mv -T "$STATE/shadow.tmp" "$STATE/shadow" && sync "$STATE"
}

# shadow_forget LSN: copies above it are of a branch that was left.
shadow_forget() {
  local copy limit
  limit=$(printf '%016X' "$(lsn_number "$1")")
  for copy in "$STATE"/shadow.keep/????????????????; do
    [[ ! ${copy##*/} > $limit ]] || shadow_drop "$copy"
  done
}

# shadow_drop COPY: under its name there is never a part of one.
shadow_drop() {
  rm -rf "$1.tmp"
  mv -T "$1" "$1.tmp" && rm -rf "$1.tmp"
}

# shadow_needed: prints the name, as of a copy, at or below which one has to stay: a promotion may take back
# all that no consumer has got.
shadow_needed() {
  local name lsn low=
  consumers
  for name in "${CONSUMERS[@]}"; do
    lsn=$(pos_lsn "ack.$name")
    [[ -n $lsn ]] || continue
    lsn=$(printf '%016X' "$(lsn_number "$lsn")")
    [[ -n $low && ! $lsn < $low ]] || low=$lsn
  done
  printf '%s' "${low:-FFFFFFFFFFFFFFFF}"
}

# Copies the stopped, parked shadow; names sort by position.  Without its WAL: it has it from ws-walsend again,
# and the name tells what is in the copy.
shadow_keep() {
  local lsn name
  lsn=$(pos_lsn shadow.flush)
  [[ -n $lsn ]] || return 0
  name=$(printf '%016X' "$(lsn_number "$lsn")")
  [[ -e $STATE/shadow.keep/$name ]] && { touch "$STATE/shadow.keep/$name"; return 0; }
  mkdir -p "$STATE/shadow.keep"
  rm -rf "$STATE"/shadow.keep/*.tmp
  cp -a --reflink=auto "$STATE/shadow" "$STATE/shadow.keep/$name.tmp" &&
    rm -f "$STATE/shadow.keep/$name.tmp/postmaster.pid" "$STATE/shadow.keep/$name.tmp"/pg_wal/????????????????????????* &&
    sync -f "$STATE/shadow.keep" &&
    touch "$STATE/shadow.keep/$name.tmp" && mv "$STATE/shadow.keep/$name.tmp" "$STATE/shadow.keep/$name" &&
    sync "$STATE/shadow.keep" && info "kept a copy of the shadow at $lsn"
  shadow_thin
}

# Newest copies stay, and the newest that is not past what is needed: all that lies between can be read again
# from that one.
shadow_thin() {
  local copies=("$STATE"/shadow.keep/????????????????) needed most=${CONF[KEEP_COPIES]:-2}
  needed=$(shadow_needed)
  while ((${#copies[@]} > most)) && [[ ! ${copies[1]##*/} > $needed ]]; do
    shadow_drop "${copies[0]}"
    copies=("${copies[@]:1}")
  done
  while ((${#copies[@]} > most && ${#copies[@]} > 2)); do
    shadow_drop "${copies[1]}"
    copies=("${copies[0]}" "${copies[@]:2}")
  done
}

keep_due() {
  [[ -n ${SVC_PID[shadow]:-} ]] && ((SECONDS >= KEEP_AFTER)) || return 1
  compgen -G "$STATE/pos/captured.*" >/dev/null || return 1
  KEEP_AFTER=$((SECONDS + 5)) # looked at now and then
  local newest
  newest=$(find "$STATE/shadow.keep" -mindepth 1 -maxdepth 1 -newermt "-${CONF[KEEP_INTERVAL]:-3600} seconds" \
    ! -name '*.tmp' -print -quit 2>/dev/null)
  [[ -z $newest ]]
}

# svc_end SERVICE PID: asks it to end and waits.  PostgreSQL does not hear a signal before it is up.
svc_end() {
  local end=$((SECONDS + ${CONF[STOP_TIMEOUT]:-60}))
  if [[ $1 != shadow ]]; then
    kill -TERM "$2" 2>/dev/null
    wait_gone "$2" "${CONF[STOP_TIMEOUT]:-60}"
    return
  fi
  until kill -INT "$2" 2>/dev/null; wait_gone "$2" 1; do
    ((SECONDS < end)) || return 1
  done
}

# A copy is of a shadow that has stopped in order.  A signal to us would interrupt `wait` for a process
# that still runs, so that is asked of the process.
keep_now() {
  local pid=${SVC_PID[shadow]} status
  : >"$STATE/run/shadow.copying"
  svc_end shadow "$pid" || { kill -KILL "$pid" 2>/dev/null; wait_gone "$pid" 60; }
  wait "$pid" 2>/dev/null
  status=$?
  unset "SVC_PID[shadow]"
  SVC_NEXT[shadow]=0
  if [[ $status -eq 0 ]]; then
    shadow_keep
  else
    warn "the shadow ended with status $status: no copy of it is kept this time"
    KEEP_AFTER=$((SECONDS + 10))
  fi
  svc_start shadow
  rm -f "$STATE/run/shadow.copying"
}

# ---- the loop ----
cmd_run() {
  local last_prune=$SECONDS svc
  [[ -e $STATE/walshadow.conf ]] || die 2 "$STATE is not set up; run: walshadow --state $STATE init"
  mkdir -p "$STATE/run" "$STATE/log" "$STATE/metrics"
  exec 9>"$STATE/run/supervisor.lock"
  # Whoever asks whether a supervisor runs holds the lock for a moment, too.
  flock -w 2 9 || die 1 "another supervisor runs on $STATE"
  rm -f "$STATE/run/supervisor.pid" # of one that was killed
  # Before anybody can know the pid: a HUP without its trap would end it.
  STOPPING=
  trap 'STOPPING=1' TERM INT
  trap 'services_hup' HUP
  # Nor does anybody who knows it see how tools ended the time before.
  rm -f "$STATE"/run/*.pipe "$STATE"/run/*.exit "$STATE"/run/*.restarts "$STATE"/run/*.copying
  printf '%s\n' $$ >"$STATE/run/supervisor.pid"
  conf_load "$STATE/walshadow.conf"
  orphans_end
  while [[ -z $STOPPING ]]; do
    fork_look
    svc_list
    for svc in "${SERVICES[@]}"; do
      [[ -n ${SVC_PID[$svc]:-} || ${SVC_NEXT[$svc]:-0} == never ]] && continue
      [[ -z $FORK_HELD || $svc == receive ]] || continue
      ((SECONDS >= ${SVC_NEXT[$svc]:-0})) && svc_ready "$svc" && svc_start "$svc"
    done
    consumers_pause
    keep_due && keep_now
    if ((SECONDS - last_prune >= ${CONF[PRUNE_INTERVAL]:-60})); then
      last_prune=$SECONDS
      "$BIN/ws-archive" prune -q 2>>"$STATE/log/archive.log" 9>&- ||
        warn "pruning failed: $(tail -n 1 "$STATE/log/archive.log")"
    fi
    reap
  done
  services_stop
  rm -f "$STATE/run/supervisor.pid"
}

# Rests a quarter of a second - a tenth while things come up - and then sees to every service that is
# gone: bash keeps its status for wait.  No wait -n: a child whose end bash has seen before does not
# end it, and a timer can be such a child.
reap() {
  local svc pid rest=0.25
  ((SECONDS >= BUSY_UNTIL)) || rest=0.1
  sleep $rest 9>&-
  for svc in "${!SVC_PID[@]}"; do
    pid=${SVC_PID[$svc]}
    kill -0 "$pid" 2>/dev/null && continue
    wait "$pid" 2>/dev/null
    svc_ended "$svc" $?
  done
}

# `paused` in a consumer's directory stops its pair in order; svc_ready holds it until it is gone.
consumers_pause() {
  local name svc
  for name in "${CONSUMERS[@]}"; do
    svc=consumer.$name
    if [[ -e $STATE/consumer/$name/paused && -n ${SVC_PID[$svc]:-} ]]; then
      kill -TERM "${SVC_PID[$svc]}" 2>/dev/null
      SVC_BACKOFF[$svc]=0
    fi
  done
}

services_hup() {
  local svc
  BUSY_UNTIL=$((SECONDS + 5))
  for svc in "${!SVC_PID[@]}"; do [[ $svc == shadow ]] || kill -HUP "${SVC_PID[$svc]}" 2>/dev/null; done
}

# A supervisor that was killed leaves its tools running: end them by the pids that they left.
orphans_end() {
  local file pid
  for file in "$STATE"/run/consumer.*.pid "$STATE"/run/{decode,emit}.*.pid "$STATE"/run/{receive,filter,walsend,catalog}.pid; do
    read -r pid 2>/dev/null <"$file" || continue
    if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -e ws- -e walshadow; then
      kill -TERM "$pid" 2>/dev/null
      wait_gone "$pid" 10 || kill -KILL "$pid" 2>/dev/null
    fi
    rm -f "$file"
  done
  if read -r pid 2>/dev/null <"$STATE/shadow/postmaster.pid" && grep -q postgres "/proc/$pid/comm" 2>/dev/null; then
    kill -INT "$pid" 2>/dev/null
    wait_gone "$pid" 60
  fi
}

# Downstream first, so that nothing is cut off: consumers, catalog, shadow, walsend, filter, receive.
# services_stop [BUT]: all but that one.
# shellcheck disable=SC2120 # walshadow-fork.sh gives one
services_stop() {
  local svc pid order=() but=${1:-}
  for svc in "${!SVC_PID[@]}"; do [[ $svc == consumer.* ]] && order+=("$svc"); done
  order+=(catalog shadow walsend filter receive)
  for svc in "${order[@]}"; do
    pid=${SVC_PID[$svc]:-}
    [[ -n $pid && $svc != "$but" ]] || continue
    if ! svc_end "$svc" "$pid"; then
      warn "$svc did not stop in time; killed"
      if [[ $svc == consumer.* ]]; then
        kill -KILL "$(cat "$STATE/run/decode.${svc#*.}.pid")" "$(cat "$STATE/run/emit.${svc#*.}.pid")" 2>/dev/null
      fi
      kill -KILL "$pid" 2>/dev/null
    fi
    wait "$pid" 2>/dev/null
    unset "SVC_PID[$svc]"
    rm -f "$STATE/run/$svc.pid"
  done
}

cmd_start() {
  local pid
  [[ -e $STATE/walshadow.conf ]] || die 2 "$STATE is not set up; run: walshadow --state $STATE init"
  if pid=$(running_supervisor); then
    info "already running, pid $pid"
    return 0
  fi
  mkdir -p "$STATE/run" "$STATE/log"
  log_rotate "$STATE/log/supervisor.log"
  rm -f "$STATE"/run/*.exit
  setsid "$BIN/walshadow" --state "$STATE" run </dev/null >>"$STATE/log/supervisor.log" 2>&1 &
  wait_until 10 "the supervisor" running_supervisor >/dev/null
  info "started, pid $(running_supervisor); state $STATE"
}

cmd_stop() {
  local pid
  if ! pid=$(running_supervisor); then
    info "not running"
    return 0
  fi
  kill -TERM "$pid"
  wait_gone "$pid" 120 || die 1 "supervisor $pid did not stop"
  info stopped
}
