# A source, its WAL received and filtered, and the shadow that replays it: without destination and,
# with --no-gate, without captures.  State is $S.
# shellcheck shell=bash

# shadow_receive SERVER: slot, ws-receive, kept list, ws-filter.  shadow_kept makes the list.
shadow_receive() {
  S=${S:-$T/st}
  mkdir -p "$S"
  ws-receive -q -d "$(pg_conninfo "$1")" -S ws --create-slot --if-not-exists || return 1
  bg receive ws-receive --state "$S" -d "$(pg_conninfo "$1")" -S ws
  wait_for -t 60 -m 'WAL received' test -s "$S/pos/received" || return 1
  ws-catalog kept -d "$(pg_conninfo "$1")" -o "$S/kept" || return 1
  shadow_filter
}

shadow_filter() {
  bg filter ws-filter --state "$S" --follow --kept "$S/kept"
}

shadow_backup() {
  pg_bin "${PG_MAJOR_OF[$1]}"
  ws-backup --state "$S" -d "$(pg_conninfo "$1")" --bindir "$PGBIN"
}

# shadow_start SERVER [WALSEND-OPTION...]: ws-walsend and the shadow itself.
shadow_start() {
  pg_bin "${PG_MAJOR_OF[$1]}"
  shift
  bg walsend ws-walsend --state "$S" "$@"
  # shellcheck disable=SC2034,SC2154 # of proc.sh
  PROC_STOP[shadow]=INT
  bg shadow "$PGBIN/postgres" -D "$S/shadow"
  wait_for -t 60 -m 'the shadow to take queries' shadow_sql postgres 'SELECT 1' && return 0
  tail -n 20 "$T/shadow.err" "$T/walsend.err" >&2
  return 1
}

# shadow_sql DATABASE SQL...
shadow_sql() {
  local db=$1 args=() s
  shift
  for s; do args+=(-c "$s"); done
  psql_bounded -XAtq -v ON_ERROR_STOP=1 -d "host=$S/run port=5433 user=postgres dbname=$db" "${args[@]}"
}

# shadow_drain SERVER: until the shadow has replayed all that the server has written.
shadow_drain() {
  local lsn
  lsn=$(sql "$1" 'SELECT pg_logical_emit_message(false, $$x$$, $$y$$)') || return 1
  wait_for -t "${2:-60}" -m "replay of $lsn" shadow_replayed "$lsn" && return 0
  tail -n 5 "$T/shadow.err" "$T/walsend.err" "$T/filter.err" "$T/receive.err" >&2
  return 1
}

shadow_replayed() { lsn_ge "$(shadow_sql postgres 'SELECT pg_last_wal_replay_lsn()')" "$1"; }

# shadow_user_pages SERVER: prints the files of the shadow that hold pages but are no catalog's.
shadow_user_pages() {
  local file db rel
  find "$S/shadow/base" "$S/shadow/pg_tblspc" -type f -size +0 -printf '%P\n' >"$T/files"
  while read -r db; do
    sql "$1/$db" "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()) || ' ' || pg_relation_filenode(oid)
      FROM pg_class WHERE oid < 16384 AND oid NOT IN (2613, 2683) AND pg_relation_filenode(oid) IS NOT NULL"
  done < <(sql "$1" 'SELECT datname FROM pg_database WHERE datallowconn') >"$T/catalogs"
  while read -r file; do
    db=${file%/*} db=${db##*/} rel=${file##*/} rel=${rel%%[._]*}
    [[ $rel =~ ^[0-9]+$ ]] || continue
    if [ "$rel" -lt 16384 ] && [ "$rel" != 2613 ] && [ "$rel" != 2683 ]; then continue; fi
    grep -qx "$db $rel" "$T/catalogs" || echo "$file"
  done <"$T/files"
}
