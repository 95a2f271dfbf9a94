#!/usr/bin/env bash
# ws-archive prune: what goes is what nothing needs, and nothing goes when something cannot be read.
. "$(dirname "$0")/lib/it.sh"

MB=$((1 << 20))

# segments DIR FROM TO: complete segments of 1 MB, numbered as the LSN's megabytes.
segments() {
  local i
  for ((i = $2; i <= $3; i++)); do
    truncate -s $MB "$T/st/$1/00000001$(printf '%08X%08X' $((i >> 12)) $((i & 4095)))"
  done
}

# left DIR: the numbers that are there.
left() {
  find "$T/st/$1" -maxdepth 1 -name '0*' -size +0 ! -name '*.*' -printf '%f\n' | sort |
    while read -r f; do echo -n "$((16#${f:8:8} * 4096 + 16#${f:16:8})) "; done
}

fork_at() { printf '1\t0/%s\tno recovery target specified\n' "$1" >"$T/st/raw/00000002.history"; }

# What branches that were left have behind: ends of timelines, and what is past a fork.
leftovers() {
  local name
  for name in 0000000{6.partial,5.abandoned,6.partial.abandoned,8.abandoned,8.partial.abandoned}; do
    truncate -s 100 "$T/st/$1/0000000100000000$name"
  done
}

pos() { printf '1 %X/%X\n' $(($2 >> 32)) $(($2 & 0xffffffff)) >"$T/st/pos/$1"; }
prune() { ws-archive prune --state "$T/st"; }

test_major() {
  local redo first
  pg_init src --wal-segsize=1
  pg_start src
  sql src 'CREATE TABLE t AS SELECT g, repeat(md5(g::text), 9) FROM generate_series(1, 40000) g' CHECKPOINT
  redo=$(lsn_num "$(sql src 'SELECT redo_lsn FROM pg_control_checkpoint()')")
  first=$((redo / MB))
  rm -rf "$T/st"
  mkdir -p "$T"/st/{pos,raw,filtered,shadow.keep,consumer/c}
  printf 'SYSTEM_ID=%s\nMAJOR=%s\nSEGMENT_SIZE=%s\n' "$(sql src 'SELECT system_identifier FROM pg_control_system()')" \
    "$PG_MAJOR" $MB >"$T/st/cluster"
  pg_stop src
  segments raw 3 $((first + 9))
  segments filtered 3 $((first + 9))
  fork_at 7FFFFFFF
  touch "$T/st/raw/00000001000000000000FFFF.partial"
  local all
  all=$(left raw)

  status_is 0 'before anything was captured' prune
  is "$(left raw)$(left filtered)" "$all$all" 'nothing goes'
  pos backup $((5 * MB + 100))
  pos filtered $((9 * MB))
  status_is 0 'before the first capture the backup bounds raw/' prune
  is "$(left raw | cut -d' ' -f1)" 5 'up to the segment that holds its end'
  is "$(left filtered)" "$all" 'without a shadow filtered/ stays'

  pos captured.5 $(((first + 5) * MB))
  pos captured.16400 $(((first + 3) * MB))
  pos filtered $(((first + 4) * MB))
  pos floor.c $((7 * MB + 8))
  pos floor.d $((8 * MB + 8))
  status_is 0 'dry run' ws-archive prune --state "$T/st" --dry-run
  is "$(wc -l <"$T/out")" 2 'lists what would go'
  is "$(left raw | cut -d' ' -f1)" 5 'and removes nothing'
  status_is 0 'prune' prune
  is "$(left raw | cut -d' ' -f1)" 7 'the lowest floor bounds raw/'
  pos floor.c $((8 * MB))
  pos floor.d $((8 * MB))
  leftovers raw
  prune
  is "$(left raw | cut -d' ' -f1)" 8 'a segment that ends at the floor goes'
  is "$(cd "$T/st/raw" && echo 00000001000000000000*.*)" \
    '000000010000000000000008.abandoned 000000010000000000000008.partial.abandoned 00000001000000000000FFFF.partial' 'and what was left there'
  fork_at 9F0000
  pos floor.c $((11 * MB))
  pos floor.d $((10 * MB))
  prune
  is "$(left raw | cut -d' ' -f1)" 9 'a floor past a fork counts as the fork'
  fork_at 7FFFFFFF
  echo torn >"$T/st/pos/floor.d"
  pos floor.c $((10 * MB))
  status_is 3 'an unreadable floor is refused' prune
  is "$(left raw | cut -d' ' -f1)" 9 'and nothing goes'
  rm "$T/st/pos/floor.c" "$T/st/pos/floor.d"

  cp -r "$T/src" "$T/st/shadow"
  cp -r "$T/src" "$T/st/shadow.keep/0000000000000001"
  mkdir "$T/st/shadow.keep/0000000000000002.tmp"
  pg_start src
  redo=$(lsn_num "$(sql src 'SELECT redo_lsn FROM pg_control_checkpoint()')")
  pos captured.5 $((redo + 5 * MB))
  pos captured.16400 $((redo + 5 * MB))
  segments filtered 3 $((redo / MB + 9))
  leftovers filtered
  pos sent.c $(((first + 2) * MB))
  status_is 0 'with a shadow' prune
  is "$(left filtered | cut -d' ' -f1)" $((redo / MB)) 'its REDO bounds filtered/'
  is "$(find "$T/st/filtered" -name '*.*')" '' 'what was left there goes, too'
  is "$(left raw | cut -d' ' -f1)" $((first + 2)) 'with a kept copy a promotion may take us back to what was sent'
  pos sent.c $(((first + 9) * MB))
  prune
  is "$(left raw | cut -d' ' -f1)" $((first + 4)) 'without floors filtered bounds raw/'
  sql src 'INSERT INTO t SELECT * FROM t' CHECKPOINT
  pg_stop src
  cp "$T/src/global/pg_control" "$T/st/shadow/global/pg_control"
  prune
  is "$(left filtered | cut -d' ' -f1)" $((redo / MB)) 'the older copy bounds it still'
  printf '\377' | dd of="$T/st/shadow.keep/0000000000000001/global/pg_control" bs=1 seek=47 conv=notrunc status=none
  status_is 3 'a copy with a broken pg_control is refused' prune
  like "$ERR" 'wrong CRC reason=control_malformed' 'with its reason'
  rm "$T/st/shadow.keep/0000000000000001/global/pg_control"
  status_is 3 'a copy without one too' prune
  is "$(left filtered | cut -d' ' -f1)" $((redo / MB)) 'and nothing goes'
  rm -r "$T/st/shadow.keep/0000000000000001"
  pos captured.5 $((redo + 3 * MB))
  prune
  is "$(left filtered | cut -d' ' -f1)" $((redo / MB + 3)) 'without the copy captured bounds filtered/'
  sed -i 's/^SYSTEM_ID=.*/SYSTEM_ID=1/' "$T/st/cluster"
  status_is 3 "another cluster's shadow is refused" prune
  like "$ERR" 'reason=system_id_changed' 'with its reason'
  ok 'history files and partial segments stay' test -e "$T/st/raw/00000002.history" -a \
    -e "$T/st/raw/00000001000000000000FFFF.partial"
}

for_majors test_major
status_is 2 'no command' ws-archive --state "$T/st"
status_is 2 'an unknown command' ws-archive --state "$T/st" frob
status_is 2 'too much' ws-archive --state "$T/st" prune x
status_is 2 'no state' ws-archive prune
status_is 2 'no state directory' ws-archive prune --state "$T/none"
done_testing
