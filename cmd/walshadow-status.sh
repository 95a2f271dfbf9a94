# shellcheck shell=bash
# status and logs: what an operator looks at.

# lag_bytes NAME FROM TO: prints the distance of two LSNs, "-" when one is unknown.
lag_bytes() {
  [[ -n $1 && -n $2 ]] || { printf -- '-'; return; }
  local d=$(($(lsn_number "$1") - $(lsn_number "$2")))
  printf '%s' $((d > 0 ? d : 0))
}

# The value of a metric without labels in a .prom file.
metric() {
  [[ -r $STATE/metrics/$1.prom ]] && awk -v m="$2" '$1 == m { print $2; exit }' "$STATE/metrics/$1.prom"
}

service_line() {
  local svc=$1 pid state restarts=0 status when
  read -r pid 2>/dev/null <"$STATE/run/$svc.pid" || pid=
  read -r restarts 2>/dev/null <"$STATE/run/$svc.restarts" || restarts=0
  if [[ -e $STATE/run/$svc.copying ]] && running_supervisor >/dev/null; then
    state="stopped for a copy of it"
  elif [[ -n $pid ]] && kill -0 "$pid" 2>/dev/null; then
    state="running pid=$pid"
  elif [[ $svc == consumer.* && -e $STATE/consumer/${svc#consumer.}/paused && $(cat "$STATE/run/$svc.exit" 2>/dev/null) != [23]\ * ]]; then
    state=paused
  elif read -r status when 2>/dev/null <"$STATE/run/$svc.exit"; then
    case $status in
      2 | 3) state="FAILED status=$status at=$when" ;;
      *)
        state="waiting status=$status at=$when"
        [[ $svc == consumer.* && -e $STATE/consumer/${svc#consumer.}/paused ]] && state=paused
        ;;
    esac
  else
    state="not started"
  fi
  printf '%-18s %s restarts=%s\n' "$svc" "$state" "$restarts"
  # A destination that is down is waited for: no tool ends, but what it said last is the reason.
  if [[ $svc == consumer.* && $state == running* ]]; then
    awk -F= -v indent="$(printf '%-18s' '')" '
      $1 == "FAILING_SECONDS" { failing = $2 }
      $1 == "LAST_ERROR" { sub(/^[^=]*=/, ""); error = $0 }
      END { if (failing != "") print indent "   ws-emit: failing for " failing " s: " error }
    ' "$STATE/run/ws-emit.${svc#consumer.}.status" 2>/dev/null
    [[ $(metric "ws-decode.${svc#consumer.}" walshadow_decode_oracle_available) != 0 ]] ||
      printf '%-18s    ws-decode: waiting for the oracle\n' ''
    [[ $(metric "ws-decode.${svc#consumer.}" walshadow_decode_hold_waiting) != 1 ]] ||
      printf '%-18s    ws-decode: waiting for a standby to have flushed what comes next\n' ''
  fi
  [[ $state == stopped* || $state == 'not started' || $state == paused || $state == running* && $restarts -eq 0 ]] && return
  local last
  last=$(svc_last_error "$svc")
  [[ $state != running* || -z $last ]] || last="before: $last" # what it ended with; it has got over it
  [[ -z $last ]] || printf '%-18s   %s\n' '' "$last"
}

cmd_status() {
  local pid svc name db source tli received switched shown=' '
  [[ -e $STATE/walshadow.conf ]] || die 2 "$STATE is not set up; run: walshadow --state $STATE init"
  conf_load "$STATE/walshadow.conf"
  if pid=$(running_supervisor); then
    printf 'supervisor         running pid=%s state=%s\n' "$pid" "$STATE"
  else
    printf 'supervisor         not running state=%s\n' "$STATE"
  fi
  svc_list
  for svc in "${SERVICES[@]}"; do service_line "$svc"; done
  [[ ! -e $STATE/run/fork.exit ]] || service_line fork
  received=$(pos_lsn received)
  # A consumer's database is one that the role is let into.
  consumers
  for name in "${CONSUMERS[@]}"; do conf_of_consumer "$name" && break; done
  IFS=' ' read -r tli source <<<"$(PGCONNECT_TIMEOUT=3 source_sql "${CONF[DATABASE]:-postgres}" -c "SELECT CASE WHEN pg_is_in_recovery()
    THEN (SELECT received_tli FROM pg_stat_wal_receiver) || ' ' || pg_last_wal_receive_lsn()
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int || ' ' || pg_current_wal_lsn() END" 2>/dev/null)"
  printf '\n%-18s %-18s %8s %12s\n' position lsn timeline 'lag (bytes)'
  printf '%-18s %-18s %8s %12s\n' source "${source:-unreachable}" "$tli" ''
  position_line received "$source"
  for name in "$STATE"/pos/hold.*; do
    [[ $name != *.tmp && -e $name ]] || continue
    position_line "${name##*/}" "$(pos_lsn received)" "  $(metric ws-receive walshadow_hold_standbys) of \
$(metric ws-receive walshadow_hold_standbys_needed) standbys connected"
  done
  for name in filtered shadow.replay; do position_line "$name" "$received"; done
  for name in "${CONSUMERS[@]}"; do
    conf_of_consumer "$name"
    db=${CONF[DATABASE_OID]:-}
    [[ $shown == *" $db "* ]] || position_line "captured.$db" "$received"
    shown+="$db "
    position_line "sent.$name" "$received"
    position_line "ack.$name" "$received" "  lag $(metric "ws-emit.$name" walshadow_emit_lag_seconds || printf -- '-') s"
    position_line "floor.$name" "$received"
  done
  switched=$(tail -n 1 "$STATE/log/timelines.log" 2>/dev/null | sed -nE \
    's/^\{"time":"([^"]*)","event":"([a-z]*)",.*"old_timeline":([0-9]+),"new_timeline":([0-9]+),"switch_lsn":"([^"]*)".*/\1 \2: timeline \3 to \4 at \5/p')
  [[ -z $switched ]] || printf '\nlast promotion     %s\n' "$switched"
}

# position_line NAME REFERENCE [MORE]: a position file, and how far it is behind.
position_line() {
  local tli='' lsn=''
  [[ ! -r $STATE/pos/$1 ]] || read -r tli lsn <"$STATE/pos/$1"
  printf '%-18s %-18s %8s %12s%s\n' "$1" "${lsn:--}" "$tli" "$(lag_bytes "$2" "$lsn")" "${3:-}"
}

cmd_logs() {
  local follow='' files=() tool
  [[ ${1:-} == -f ]] && follow=-f && shift
  if [[ $# -eq 0 ]]; then
    files=("$STATE"/log/*.log)
  else
    for tool in "$@"; do files+=("$STATE"/log/"${tool#ws-}"*.log); done
  fi
  [[ ${#files[@]} -gt 0 ]] || die 2 "no such log in $STATE/log"
  exec tail -n 50 $follow "${files[@]}"
}
