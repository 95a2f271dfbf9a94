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
  fi
  [[ $state == stopped* || $state == 'not started' || $state == paused || $state == running* && $restarts -eq 0 ]] && return
  local last
  last=$(svc_last_error "$svc")
  [[ -z $last ]] || printf '%-18s   %s\n' '' "$last"
}

cmd_status() {
  local pid svc name db captured sent ack floor source received lsn shown=' '
  [[ -e $STATE/walshadow.conf ]] || die 2 "$STATE is not set up; run: walshadow --state $STATE init"
  conf_load "$STATE/walshadow.conf"
  if pid=$(running_supervisor); then
    printf 'supervisor         running pid=%s state=%s\n' "$pid" "$STATE"
  else
    printf 'supervisor         not running state=%s\n' "$STATE"
  fi
  svc_list
  for svc in "${SERVICES[@]}"; do service_line "$svc"; done
  received=$(pos_lsn received)
  # A consumer's database is one that the role is let into.
  consumers
  for name in "${CONSUMERS[@]}"; do conf_of_consumer "$name" && break; done
  source=$(PGCONNECT_TIMEOUT=3 source_sql "${CONF[DATABASE]:-postgres}" -c "SELECT CASE WHEN pg_is_in_recovery()
    THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END" 2>/dev/null)
  printf '\n%-18s %-18s %12s\n' position lsn 'lag (bytes)'
  printf '%-18s %-18s %12s\n' source "${source:-unreachable}" ''
  printf '%-18s %-18s %12s\n' received "${received:--}" "$(lag_bytes "$source" "$received")"
  for name in filtered shadow.replay; do
    lsn=$(pos_lsn "$name")
    printf '%-18s %-18s %12s\n' "$name" "${lsn:--}" "$(lag_bytes "$received" "$lsn")"
  done
  for name in "${CONSUMERS[@]}"; do
    conf_of_consumer "$name"
    db=${CONF[DATABASE_OID]:-}
    captured=$(pos_lsn "captured.$db") sent=$(pos_lsn "sent.$name")
    ack=$(pos_lsn "ack.$name") floor=$(pos_lsn "floor.$name")
    [[ $shown == *" $db "* ]] ||
      printf '%-18s %-18s %12s\n' "captured.$db" "${captured:--}" "$(lag_bytes "$received" "$captured")"
    shown+="$db "
    printf '%-18s %-18s %12s\n' "sent.$name" "${sent:--}" "$(lag_bytes "$received" "$sent")"
    printf '%-18s %-18s %12s' "ack.$name" "${ack:--}" "$(lag_bytes "$received" "$ack")"
    printf '  lag %s s\n' "$(metric "ws-emit.$name" walshadow_emit_lag_seconds || printf -- '-')"
    printf '%-18s %-18s %12s\n' "floor.$name" "${floor:--}" "$(lag_bytes "$received" "$floor")"
  done
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
