# shellcheck shell=bash
# What changes in a running consumer: tables added, removed and loaded again; pausing and going on.

add_options() {
  CONSUMER=main TABLES=()
  while [[ $# -gt 0 ]]; do
    case $1 in
      --consumer) [[ $# -ge 2 ]] || die 2 "$1 needs a value"; CONSUMER=$2; shift 2 ;;
      --consumer=*) CONSUMER=${1#*=}; shift ;;
      -*) die 2 "unknown option $1; try --help" ;;
      *) TABLES+=("$1"); shift ;;
    esac
  done
  [[ ${#TABLES[@]} -gt 0 ]] || die 2 "no table named"
  [[ -e $STATE/consumer/$CONSUMER/config ]] || die 2 "no consumer $CONSUMER in $STATE"
}

consumer_pair_gone() { [[ ! -e $STATE/run/consumer.$CONSUMER.pid ]]; }

# The consumer's pair rests, until this process ends when it was not paused before; other
# consumers go on, WAL waits in raw/.
pair_rests() {
  running_supervisor >/dev/null || die 2 "not running; walshadow start first"
  if [[ ! -e $STATE/consumer/$CONSUMER/paused ]]; then
    : >"$STATE/consumer/$CONSUMER/paused"
    trap 'rm -f "$STATE/consumer/$CONSUMER/paused"' EXIT
  fi
  wait_until 60 "consumer $CONSUMER to pause" consumer_pair_gone
}

cmd_add() {
  add_options "$@"
  pair_rests
  load_tables "${TABLES[@]}"
  info "loaded into $CONSUMER: ${TABLES[*]}"
}

# What a load left is forgotten, and the tables, or all leaves of a partitioned one, are loaded into
# staging tables that take their place.
cmd_reload() {
  local table oid oids=()
  add_options "$@"
  conf_of_consumer "$CONSUMER"
  for table in "${TABLES[@]}"; do
    [[ $table == *.* ]] || table=public.$table
    oid=$(source_sql "${CONF[DATABASE]}" -v t="$table" <<'EOF'
SELECT to_regclass(:'t')::oid UNION SELECT relid::oid FROM pg_partition_tree(to_regclass(:'t'))
EOF
) || die 1 "the source does not answer"
    [[ $oid == *[0-9]* ]] || die 2 "no table $table at the source"
    mapfile -t -O "${#oids[@]}" oids <<<"$oid"
  done
  pair_rests
  for oid in "${oids[@]}"; do
    [[ -z $oid ]] || rm -f "$STATE/consumer/$CONSUMER/load/$oid"
  done
  load_tables "${TABLES[@]}"
  info "loaded into $CONSUMER again: ${TABLES[*]}"
}

consumer_named() {
  CONSUMER=${1:-main}
  [[ $# -le 1 ]] || die 2 "one consumer at a time"
  [[ -e $STATE/consumer/$CONSUMER/config ]] || die 2 "no consumer $CONSUMER in $STATE"
}

# The pair ends in order and is not started, over restarts of the supervisor too; its positions
# stay and WAL waits for it.
cmd_pause() {
  consumer_named "$@"
  : >"$STATE/consumer/$CONSUMER/paused"
  if running_supervisor >/dev/null; then
    wait_until 60 "consumer $CONSUMER to pause" consumer_pair_gone
  fi
  info "consumer $CONSUMER is paused"
}

cmd_resume() {
  consumer_named "$@"
  rm -f "$STATE/consumer/$CONSUMER/paused"
  info "consumer $CONSUMER goes on"
}

# loads_forget TABLE: it and its partitions, so that they are loaded again when they are added again.
loads_forget() {
  local db=${CONF[DATABASE_OID]} oid leaf
  oid=$("$BIN/ws-catalog" show -F json --database "$db" "$1" 2>/dev/null | sed -nE 's/^\{"relation":([0-9]+),.*/\1/p')
  [[ -n $oid ]] || return 0
  for leaf in $oid $("$BIN/ws-catalog" list -F json --database "$db" | sed -nE "/\"root\":$oid,/s/^\{\"relation\":([0-9]+),.*/\\1/p"); do
    rm -f "$STATE/consumer/$CONSUMER/load/$leaf"
  done
}

# A rule `exclude` in front of the others; the destination's table stays as it is.
cmd_remove() {
  add_options "$@"
  conf_of_consumer "$CONSUMER"
  local file=${CONF[WS_EMIT_ROUTES]:-$STATE/routes} table
  for table in "${TABLES[@]}"; do
    [[ $table == *.* ]] || table=public.$table
    "$BIN/ws-catalog" show --database "${CONF[DATABASE_OID]}" "$table" >/dev/null 2>&1 || warn "there is no table $table now"
    { printf '%s\n' "exclude $table"; [[ -e $file ]] && cat "$file"; } >"$file.tmp"
    [[ ! -e $file ]] || chmod --reference="$file" "$file.tmp"
    "$BIN/ws-emit" --check-routes --routes "$file.tmp" || die 2 "the routes would not be valid; nothing was changed"
    sync "$file.tmp" && mv "$file.tmp" "$file"
  done
  conf_set "$STATE/consumer/$CONSUMER/config" WS_EMIT_ROUTES "$file"
  if [[ -z ${CONF[WS_EMIT_ROUTES]:-} ]]; then
    # The pair started without a file: it has to start again to see one.
    : >"$STATE/consumer/$CONSUMER/paused"
    running_supervisor >/dev/null && wait_until 60 "consumer $CONSUMER to pause" consumer_pair_gone
    rm -f "$STATE/consumer/$CONSUMER/paused"
  else
    services_reload
  fi
  for table in "${TABLES[@]}"; do
    [[ $table == *.* ]] || table=public.$table
    loads_forget "$table"
  done
  info "no longer replicated by $CONSUMER: ${TABLES[*]}"
}
