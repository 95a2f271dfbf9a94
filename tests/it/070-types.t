#!/bin/bash
# Values of every type: what lib/heap reads from the disk against what the server prints, and what
# the value made from that text is.  WS_TYPES_ROWS makes it larger, WS_TYPES_SEED another one.
# shellcheck source=lib/it.sh
. "$(dirname "$0")/lib/it.sh"

rows=${WS_TYPES_ROWS:-200}
seed=${WS_TYPES_SEED:-0.42}

# lz4 for values on disk: PostgreSQL 16 of the rig was built without.
lz4_of() {
  [ "$(sql pg "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")" = t ] &&
    echo 1 || echo 0
}

types() {
  local line table
  pg_new pg
  pg_tool psql
  status_is 0 'tables of random values' \
    "$PGTOOL" -Xq -d "$(pg_conninfo pg)" -v n="$rows" -v seed="$seed" -v lz4="$(lz4_of)" \
    -v virtual=$((PG_MAJOR >= 18)) -f "$TOP/tests/it/data/070-types.sql"
  status_is 0 'tables of the other types' \
    "$PGTOOL" -Xq -d "$(pg_conninfo pg)" -v n="$rows" -v seed="$seed" -f "$TOP/tests/it/data/070-more.sql"
  run heapcheck "$(pg_conninfo pg)" "$(pg_data pg)" \
    v.edge v.chars v.fixed v.mixed v.numbers v.arrays v.long v.longlz4 v.other v.generated v.nothing \
    v.bits v.geo v.ids v.docs v.ranges v.rows v.rows2 v.wides v.ext
  is "$STATUS" 0 'heapcheck ends well'
  [ -z "$ERR" ] || diag "$ERR"
  while read -r table line; do
    like "$line" '^rows=[1-9][0-9]* values=[0-9]+ different=0 ' "$table: $line"
  done <<<"$OUT"
  is "$(wc -l <<<"$OUT")" 20 'every table was read'
  like "$(grep v.long <<<"$OUT")" 'chunks=[1-9]' 'values came from TOAST'
  like "$(grep v.other <<<"$OUT")" 'unsupported=100 ' 'what is not decoded is counted'
}
for_majors types

done_testing
