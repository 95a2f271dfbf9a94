#!/usr/bin/env bash
# WAL that is no WAL any more, under ws-filter --follow: what was durable already is damaged, and an
# operator is told once; what may not be written yet is waited for.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/shadow.sh"

# flip FILE OFFSET: one bit.
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  # shellcheck disable=SC2059
  printf "\\x$(printf %02x $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# offset_of FILE TEXT: of its last occurrence.
offset_of() { LC_ALL=C grep -obUa -- "$2" "$1" | tail -n 1 | cut -d: -f1; }

# write_wal TEXT COUNT: rows of this text, until the receiver has them.
write_wal() {
  sql src "INSERT INTO t SELECT repeat('$1', 10) FROM generate_series(1, $2)"
  wait_for -t 30 -m 'WAL received' pos_ge "$S/pos/received" "$(pg_lsn src)"
}

# find_text TEXT FILE...: the first of them with this text, and the last place of it there.
find_text() {
  FILE=$(LC_ALL=C grep -lUa -- "$@" | sort | head -n 1)
  AT=$(offset_of "$FILE" "$1")
}

filter_stops() {
  shadow_filter
  wait_exit filter 20
  is "$STATUS" "$1" "$2"
}

damage() {
  local at
  S=$T/st
  pg_new src --wal-segsize=1
  sql src 'CREATE TABLE t (v text)'
  shadow_receive src || return
  ok 'the filter reaches the end' wait_for -t 30 pos_ge "$S/pos/filtered" "$(pg_lsn src)"
  stop filter
  is "$STATUS" 0 'TERM ends it in order'

  # In a whole segment.
  write_wal whole_ 30000
  find_text whole_ "$S"/raw/0000*[0-9A-F]
  ok "a whole segment to damage, ${FILE##*/}" test -n "$AT"
  flip "$FILE" "$AT"
  : >"$T/filter.err"
  filter_stops 3 'a flipped bit in a whole segment is for the operator'
  like "$(tail -n 1 "$T/filter.err")" '[0-9A-F]+/[0-9A-F]+.*reason=wal_corrupt' 'it is located, with a reason'
  at=$(tail -n 1 "$T/filter.err" | grep -oE '[0-9A-F]+/[0-9A-F]+' | head -n 1)
  filter_stops 3 'and again: it does not pass it'
  ok 'nothing moved past it' lsn_ge "$at" "$(pos_lsn "$S/pos/filtered")"
  like "$(tail -n 1 "$T/filter.err")" "$at.*reason=wal_corrupt" 'it is the same place'
  flip "$FILE" "$AT"
  shadow_filter
  ok 'healed, it goes on to the end' wait_for -t 30 pos_ge "$S/pos/filtered" "$(pos_lsn "$S/pos/received")"
  stop filter

  # In the growing one, where it was announced as durable.
  sql src 'SELECT pg_switch_wal()' >/dev/null
  write_wal partial_ 1000
  stop receive
  find_text partial_ "$S"/raw/*.partial
  ok "a growing segment to damage, ${FILE##*/}" test -n "$AT"
  flip "$FILE" "$AT"
  : >"$T/filter.err"
  filter_stops 3 'a flipped bit below pos/received is for the operator'
  like "$(tail -n 1 "$T/filter.err")" 'reason=wal_corrupt' 'with a reason'

  # The same bit before it was announced: a crash of the machine can leave that.
  cp "$S/pos/received" "$T/received"
  printf '1 %s\n' "$(pos_lsn "$S/pos/filtered")" >"$S/pos/received"
  : >"$T/filter.err"
  filter_stops 1 'above pos/received it is temporary'
  unlike "$(cat "$T/filter.err")" 'reason=' 'without a reason'
  flip "$FILE" "$AT"

  # The end of a record is not there yet.
  cp "$FILE" "$T/growing"
  truncate -s $((AT - 20)) "$FILE"
  shadow_filter
  sleep 1
  ok 'a record whose end is not there is waited for' alive filter
  tail -c "+$((AT - 20 + 1))" "$T/growing" >>"$FILE"
  same_file "$FILE" "$T/growing" 'the end is there'
  cp "$T/received" "$S/pos/received"
  ok 'then it goes on' wait_for -t 30 pos_ge "$S/pos/filtered" "$(pos_lsn "$S/pos/received")"
  stop filter
  status_is 0 'the same WAL at once' ws-filter -q --kept "$S/kept" -D "$T/ref" "$S/raw"
  is "$(for f in "$S"/filtered/0000*; do cmp -n "$(stat -c %s "$f")" "$f" "$T/ref/${f##*/}"; done 2>&1)" '' 'gives the same bytes'
  pg_stop src
  rm -rf "$S" "$T"/{src,ref}
}

for_majors damage
done_testing
