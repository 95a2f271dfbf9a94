#!/usr/bin/env bash
# ws-filter on real WAL: the servers' own programs read what it writes, its counts are theirs, and
# kill -9 anywhere changes no byte.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/shadow.sh"

SEED=${WS_SEED:-$RANDOM}
RANDOM=$SEED
note "WS_SEED=$SEED"

workload() {
  sql src 'CREATE TABLE IF NOT EXISTS t (id bigint PRIMARY KEY, v text)' 'DROP INDEX IF EXISTS t_md5_idx' 'DELETE FROM t WHERE id % 4 = 0' \
    "INSERT INTO t SELECT g, repeat(md5(g::text), 1 + (g % 300)::int) FROM generate_series((SELECT coalesce(max(id), 0) + 1 FROM t), (SELECT coalesce(max(id), 0) + 800 FROM t)) g" \
    'UPDATE t SET v = v || $$x$$ WHERE id > (SELECT max(id) - 800 FROM t)' 'VACUUM FULL pg_class' 'REINDEX TABLE pg_attribute' \
    'BEGIN; REINDEX INDEX pg_opclass_oid_index; SAVEPOINT a; REINDEX INDEX pg_opclass_oid_index; CREATE INDEX ON t (v text_pattern_ops) WHERE id < 0; ROLLBACK TO a; COMMIT' \
    'CREATE INDEX CONCURRENTLY ON t (md5(v))' "SELECT lo_from_bytea(0, convert_to(repeat('x', 100000), 'UTF8'))" \
    "SELECT pg_logical_emit_message(true, 'p', repeat('m', 100000))" >>"$T/workload.out"
}

# Counts by resource manager, as the server's own tools have them.
counts_waldump() {
  "$WALDUMP" --stats -p "$1" "$2" "$3" 2>"$T/waldump.err" |
    awk '/^[A-Z][A-Za-z0-9]+ / && $1 != "WAL" && $1 != "Type" && $1 != "Total" && $2 > 0 {print $1, $2}' | sort
}

counts_ours() {
  sed -n 's/.*"rmgr":"\([^"]*\)","records":\([0-9]*\).*/\1 \2/p' "$1" | grep -v '^total ' | sort
}

# Relations that have records in a pg_waldump listing and are no catalog's: those of catalogs that
# were rewritten since have a lock by their oid or were never created by a user.
user_records() {
  grep -oE 'rel [0-9]+/[0-9]+/[0-9]+' "$1" | sort -u | awk -F/ '$2 != 0 && ($3 >= 16384 || $3 == 2613 || $3 == 2683) {print $3}' >"$T/high"
  sql src "SELECT pg_relation_filenode(oid) FROM pg_class WHERE (oid >= 16384 OR oid IN (2613, 2683)) AND pg_relation_filenode(oid) IS NOT NULL" |
    sort >"$T/user"
  sort "$T/high" | comm -12 - "$T/user"
}

filter_major() {
  local first last data=$T/src lsn n i name
  S=$T/st
  pg_init src --wal-segsize=1
  pg_conf src wal_keep_size=1GB max_wal_size=2GB checkpoint_timeout=1h autovacuum=off full_page_writes=on
  pg_start src
  sql src 'CREATE EXTENSION pg_walinspect' 'CHECKPOINT' 'SELECT pg_switch_wal()' >/dev/null
  lsn=$(sql src 'SELECT pg_current_wal_insert_lsn()')
  first=$(sql src "SELECT pg_walfile_name('$lsn')")
  for ((i = 0; i < 6; i++)); do workload 2>/dev/null; done
  sql src 'CHECKPOINT' 'SELECT pg_switch_wal()' 'CREATE TABLE behind_the_switch ()' >/dev/null
  last=$(sql src "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
  mkdir "$T/in"
  for name in "$data"/pg_wal/0000*; do
    name=${name##*/}
    if [[ ! $name < $first ]] && [[ $name < $last ]]; then cp "$data/pg_wal/$name" "$T/in/"; fi
  done
  n=$(find "$T/in" -type f | wc -l)
  ok "$n segments to filter" test "$n" -gt 6

  # Offline, a whole directory.
  status_is 0 'a directory is filtered' ws-filter -q --stats=json -D "$T/filtered" "$T/in"
  printf '%s\n' "$OUT" >"$T/stats.json"
  last=$(find "$T/in" -name '0000*' -printf '%f\n' | sort | tail -n 1)
  is "$(cd "$T/filtered" && stat -c '%n %s' 0000*[0-9A-F])" "$(cd "$T/in" && stat -c '%n %s' 0000*)" 'every segment has its name and size'
  ok 'user data is blanked' test "$(grep -c 'xxxxxxxxxx' "$T/filtered/$first")" = 0
  pg_bin
  WALDUMP=$PGBIN/pg_waldump # sql may look for a client elsewhere
  if [ -x "$WALDUMP" ]; then
    ok 'pg_waldump reads the output' "$WALDUMP" -q -p "$T/filtered" "$first" "$last"
    is "$(counts_ours "$T/stats.json")" "$(counts_waldump "$T/in" "$first" "$last")" 'counts are those of pg_waldump --stats'
    is "$(counts_waldump "$T/filtered" "$first" "$last" | awk '{n += $2} END {print n}')" \
      "$(counts_waldump "$T/in" "$first" "$last" | awk '{n += $2} END {print n}')" 'as many records as before'
    "$WALDUMP" -p "$T/filtered" "$first" "$last" >"$T/dump" 2>/dev/null
    is "$(grep -cE '^rmgr: (Standby .*desc: LOCK|LogicalMessage)' "$T/dump")" 0 'no lock and no message is left'
    is "$(user_records "$T/dump")" '' 'no record of a user relation is left'
  else
    lsn=$(sql src "SELECT min(start_lsn) || ' ' || max(end_lsn) FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
      WHERE pg_walfile_name(start_lsn) <= '$last'")
    walinspect_counts() {
      sql src "SELECT resource_manager, count(*) FROM pg_get_wal_records_info('${lsn% *}', '${lsn#* }')
        GROUP BY 1" | tr '|' ' ' | sort
    }
    walinspect_counts >"$T/before"
    is "$(counts_ours "$T/stats.json")" "$(cat "$T/before")" 'counts are those of pg_walinspect'
    # The server reads the filtered segments in the place of its own.
    pg_stop src
    cp "$T"/filtered/0000*[0-9A-F] "$data/pg_wal/"
    pg_start src
    walinspect_counts >"$T/after"
    is "$(awk '{n += $2} END {print n}' "$T/after")" "$(awk '{n += $2} END {print n}' "$T/before")" 'pg_walinspect reads as many records in the output'
    is "$(awk '$1 == "LogicalMessage"' "$T/after")" '' 'messages are blanked'
    cp "$T"/in/0000* "$data/pg_wal/"
  fi

  # One segment alone: byte for byte as long, its torn ends as they came.
  status_is 0 'one segment' ws-filter -q -D "$T/one" "$T/in/$first"
  is "$(stat -c %s "$T/one/$first")" 1048576 'one segment gives one segment'

  # Again from the state: nothing changes; the output of a stream is the same.
  status_is 0 'from the saved state on' ws-filter -q -D "$T/filtered" "$T/in"

  # Killed anywhere while WAL comes in.
  shadow_receive src || return
  for ((i = 0; i < 8; i++)); do
    workload 2>/dev/null &
    proc=$!
    proc_nap "0.$((RANDOM % 9))$((RANDOM % 10))"
    kill9 filter
    shadow_filter
    [ $((i % 3)) != 0 ] || kill9 receive
    alive receive || bg receive ws-receive --state "$S" -d "$(pg_conninfo src)" -S ws
    wait $proc
  done
  lsn=$(sql src 'SELECT pg_switch_wal()') || return
  sql src 'CREATE TABLE last_one ()' >/dev/null
  lsn=$(pg_lsn src)
  ok 'the filter reaches the end' wait_for -t 60 pos_ge "$S/pos/filtered" "$lsn"
  is "$(lsn_ge "$(pos_lsn "$S/pos/received")" "$(pos_lsn "$S/pos/filtered")" && echo yes)" yes 'filtered <= received'
  stop filter
  is "$STATUS" 0 'TERM ends it in order'
  stop receive
  status_is 0 'the same WAL without interruption' ws-filter -q --kept "$S/kept" -D "$T/ref" "$S/raw"
  is "$(filter_diff)" '' 'not a byte differs from an uninterrupted run'
  ok 'states of segments are kept' test "$(find "$S/filtered/states" -type f | wc -l)" -gt 5
  pg_stop src
  rm -rf "$S" "$T"/{src,in,filtered,one,ref}
}

filter_diff() {
  local f
  for f in "$S"/filtered/0000*; do
    cmp -n "$(stat -c %s "$f")" "$f" "$T/ref/${f##*/}" 2>&1 || cmp "$f" "$T/ref/${f##*/}"
  done
  for f in "$S"/filtered/states/0000*; do
    cmp "$f" "$T/ref/states/${f##*/}"
  done
}

for_majors filter_major

# Usage.
status_is 2 'no input' ws-filter
status_is 2 'no output' ws-filter "$T"
status_is 2 'bad interval' ws-filter --sync-interval=x -n "$T"
status_is 2 'bad statistics' ws-filter --stats=xml -n "$T"
mkdir "$T/empty"
status_is 2 'a kept list that is none' ws-filter --kept /dev/null -D "$T/o" "$T/empty"
done_testing
