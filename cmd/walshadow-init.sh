# shellcheck shell=bash
# Setting up, in steps that can each be run again: slot, ws-receive, kept list, ws-filter, base
# backup, shadow, first capture, initial load.  The order is what makes it exact: the slot holds
# WAL before anything is read, the filter knows the source's catalogs before the backup starts,
# the shadow is captured before rows are copied.

cmd_init() {
  setup_options "$@"
  check_all
  ((PROBLEMS == 0)) || die 2 "$PROBLEMS problem(s); nothing was changed"
  init_plan
  [[ -z $DRY_RUN ]] || return 0
  init_configuration
  init_slot
  cmd_start
  services_reload
  wait_until 60 "WAL from the source" test -e "$STATE/pos/received"
  init_kept
  wait_until 120 "the filter" test -e "$STATE/pos/filtered"
  init_backup
  wait_until "${CONF[INIT_TIMEOUT]:-600}" "the first capture of the shadow's catalogs" database_captured
  load_tables
  wait_until 60 "consumer $CONSUMER" consumer_pair_here
  info "consumer $CONSUMER of database $DATABASE is set up and running"
}

init_plan() {
  local size
  size=$(source_sql "$DATABASE" -c "SELECT count(*) || ' tables, ' || pg_size_pretty(coalesce(sum(pg_table_size(oid)), 0))
    FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p' AND oid >= 16384")
  info "state directory $STATE, slot ${CONF[SLOT]}, consumer $CONSUMER"
  info "initial load ${LOAD:-copy}: $size"
}

init_configuration() {
  mkdir -p "$STATE" "$STATE/pos" "$STATE/run" "$STATE/log" "$STATE/metrics" "$STATE/consumer/$CONSUMER" ||
    die 1 "cannot make $STATE"
  local file=$STATE/walshadow.conf key
  for key in SOURCE SLOT BINDIR; do conf_set "$file" "$key" "${CONF[$key]}"; done
  [[ -n ${CONF[WS_CATALOG_SHADOW]:-} ]] || conf_set "$file" WS_CATALOG_SHADOW "host=$STATE/run port=5433 user=$(shadow_role)"
  if [[ -n $ORACLE_MODULE && ${CONF[ORACLE]:-} != "$ORACLE_MODULE" ]]; then
    conf_set "$file" ORACLE "$ORACLE_MODULE"
    shadow_again
  fi
  file=$STATE/consumer/$CONSUMER/config
  conf_set "$file" DATABASE "$DATABASE"
  conf_set "$file" DATABASE_OID "$DATABASE_OID"
  conf_set "$file" ENCODING "$ENCODING"
  # Once, before the consumer has anything: later its columns would change.
  if [[ -n $ORACLE_MODULE && ! -e $STATE/pos/ack.$CONSUMER ]]; then
    conf_set "$file" WS_DECODE_ORACLE "$STATE/run/oracle/socket"
    conf_set "$file" WS_COPY_ORACLE yes
  fi
  conf_set "$file" WS_EMIT_URL "$CH_URL"
  [[ -z $CH_USER ]] || conf_set "$file" WS_EMIT_USER "$CH_USER"
  [[ -z $PASSWORD_FILE ]] || conf_set "$file" WS_EMIT_PASSWORD_FILE "$PASSWORD_FILE"
  [[ -z $ROUTES ]] || conf_set "$file" WS_EMIT_ROUTES "$ROUTES"
  [[ -z $LOAD ]] || conf_set "$file" LOAD "$LOAD"
  [[ -z $JOBS ]] || conf_set "$file" WS_COPY_JOBS "$JOBS"
}

# The shadow has the source's roles; the bootstrap superuser is always among them.
shadow_role() {
  source_sql "$DATABASE" -c 'SELECT rolname FROM pg_roles WHERE oid = 10' | sed "s/['\\\\]/\\\\&/g; s/.*/'&'/"
}

# A shadow that runs starts again, with what is configured now.
shadow_again() {
  local pid
  running_supervisor >/dev/null && read -r pid 2>/dev/null <"$STATE/run/shadow.pid" || return 0
  kill -INT "$pid" 2>/dev/null
}

# Tools that read the consumers at their start look again.
services_reload() {
  local pid
  pid=$(running_supervisor) && kill -HUP "$pid"
}

init_slot() {
  [[ -e $STATE/pos/received ]] && return 0
  "$BIN/ws-receive" -q -d "${CONF[SOURCE]}" -S "${CONF[SLOT]}" --create-slot --if-not-exists ||
    die $? "the replication slot ${CONF[SLOT]} cannot be made"
}

init_kept() {
  [[ -e $STATE/kept || -e $STATE/filtered/state ]] && return 0
  "$BIN/ws-catalog" kept -d "$(source_conninfo "$DATABASE")" -o "$STATE/kept" ||
    die $? "the list of the source's rewritten catalogs cannot be read"
}

init_backup() {
  [[ -e $STATE/pos/backup ]] && return 0
  tool_options ws-backup
  "$BIN/ws-backup" -d "$(source_conninfo "$DATABASE")" --bindir "${CONF[BINDIR]}" "${OPTS[@]}" ||
    die $? "the base backup for the shadow failed"
}

# Is the database captured?  One that joins others is captured at their next boundary: every two
# seconds this makes one, which leaves nothing behind.
database_captured() {
  local other
  [[ ! -e $STATE/pos/captured.$DATABASE_OID ]] || return 0
  ((SECONDS >= ${NEXT_BOUNDARY:-0})) || return 1
  NEXT_BOUNDARY=$((SECONDS + 2))
  for other in "$STATE"/pos/captured.*; do
    other=$(source_sql "$DATABASE" -c "SELECT datname FROM pg_database WHERE oid = ${other##*.}")
    [[ -n $other ]] || continue
    source_sql "$other" -c 'CREATE TEMP TABLE walshadow_boundary ()' || warn "no boundary could be made in database $other"
  done
  return 1
}

# ws-copy | ws-emit --load, for all tables of the routes or those named.
# shellcheck disable=SC2120 # walshadow-tables.sh names some
load_tables() {
  [[ -e $STATE/pos/ack.$CONSUMER && $# -eq 0 ]] && return 0
  local copy emit status
  conf_of_consumer "$CONSUMER"
  tool_options ws-copy
  hold_back_options
  copy=("${OPTS[@]}")
  [[ -z ${CONF[WS_EMIT_ROUTES]:-} ]] || copy+=(--routes "${CONF[WS_EMIT_ROUTES]}")
  [[ -z ${CONF[LOAD]:-} ]] || copy+=(--load "${CONF[LOAD]}")
  tool_options ws-emit
  emit=("${OPTS[@]}")
  "$BIN/ws-copy" --consumer "$CONSUMER" -d "$(source_conninfo "${CONF[DATABASE]}")" "${copy[@]}" "$@" |
    "$BIN/ws-emit" --consumer "$CONSUMER" --load "${emit[@]}"
  status=("${PIPESTATUS[@]}")
  # The end that gave a reason, not the one that only saw the other go.
  [[ ${status[0]} != [23] ]] || die "${status[0]}" "the initial load failed at the source; run it again to go on"
  [[ ${status[1]} -eq 0 ]] || die "${status[1]}" "the initial load failed at the destination; run it again to go on"
  [[ ${status[0]} -eq 0 ]] || die "${status[0]}" "the initial load failed at the source; run it again to go on"
}

consumer_pair_here() {
  [[ -e $STATE/pos/ack.$CONSUMER && (-e $STATE/run/consumer.$CONSUMER.pid || -e $STATE/consumer/$CONSUMER/paused) ]]
}
