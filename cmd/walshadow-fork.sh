# shellcheck shell=bash
# shellcheck disable=SC2034 # the loop of walshadow-services.sh reads these
# A promotion that left behind what had been received: ws-receive goes on on the new timeline, and what was
# made from the WAL that did not happen - filtered/, the shadow, the history of shapes, positions that went
# along where nothing was sent - is taken back to the fork.  Each step may be repeated, and filtered's position
# is the last to go back: until then the next look finds the rest to do.

FORK_TLI=    # looked at
FORK_AFTER=0 # not before
FORK_HELD=   # nothing but ws-receive starts

# Looks when the timeline has changed, and when a tool has ended for an operator.
fork_look() {
  local tli status
  read -r tli _ 2>/dev/null <"$STATE/pos/received" || return 0
  [[ $tli != "$FORK_TLI" ]] && ((SECONDS >= FORK_AFTER)) || return 0
  "$BIN/ws-history" positions --state "$STATE" >/dev/null 2>>"$STATE/log/fork.log" 9>&- || fork_undo
  status=$?
  case $status in
    0)
      FORK_TLI=$tli FORK_HELD=
      rm -f "$STATE/run/fork.exit"
      return
      ;;
    2 | 3)
      warn "what a promotion left behind cannot be taken back: $(svc_last_error fork)"
      FORK_TLI=$tli
      ;;
    *)
      info "what a promotion left behind cannot be taken back yet: $(svc_last_error fork)"
      FORK_AFTER=$((SECONDS + 1))
      ;;
  esac
  FORK_HELD=1
  printf '%s %s\n' "$status" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$STATE/run/fork.exit"
}

fork_undo() {
  local log=$STATE/log/fork.log past status tli='' end='' copy=''
  warn "a promotion left behind what is past it here; stopping what reads it"
  services_stop receive
  # What consumers had under way counts.
  past=$("$BIN/ws-history" positions --state "$STATE" 2>>"$log" 9>&-)
  status=$?
  if [[ $status -eq 3 ]]; then
    read -r tli end <<<"$(fork_lowest "$past")"
    [[ -n $end ]] || return 3 # published
    if grep -qE '^(filtered|shadow\.[a-z]+) .* past ' <<<"$past"; then
      copy=$("$BIN/ws-catalog" restorable --state "$STATE" "$end" 2>>"$log" 9>&-) || return
    fi
    "$BIN/ws-catalog" rewind --state "$STATE" "$tli:$end" 2>>"$log" 9>&- || return
    if [[ -n $copy ]]; then
      shadow_put_back "$copy" "the shadow is past the promotion at $end" || return 1
      shadow_forget "$end"
      rm -f "$STATE"/pos/shadow.*
    fi
    "$BIN/ws-filter" --rewind --state "$STATE" 2>>"$log" 9>&- || return
  elif [[ $status -ne 0 ]]; then
    return $status
  fi
  fork_resume
}

# fork_lowest POSITIONS: timeline and fork of the line whose fork is lowest; nothing when rows were published.
fork_lowest() {
  local name tli what end low=''
  while read -r name tli _ what end; do
    [[ $what == past ]] || continue
    [[ $name != sent.* ]] || return 0
    if [[ -z $low ]] || (($(lsn_number "$end") < $(lsn_number "${low#* }"))); then low="$tli $end"; fi
  done <<<"$1"
  printf '%s\n' "$low"
}

# Those that ended because of it may start again.
fork_resume() {
  local svc
  svc_list
  for svc in "${SERVICES[@]}"; do
    [[ $svc != receive ]] || continue
    SVC_NEXT[$svc]=0 SVC_BACKOFF[$svc]=0
    rm -f "$STATE/run/$svc.exit"
  done
  info "what a promotion left behind is taken back"
}
