#!/usr/bin/env bash
# ws-history beside real servers: promoted twice, forks in the middle of a segment, ids with a gap, a
# recovery that stops before the fork it was to follow, restore points whose names have newlines.  What
# it says is compared with the server's files, its records (pg_walinspect, pg_waldump), its segment names
# and its answers to START_REPLICATION.
. "$(dirname "$0")/lib/it.sh"

H=ws-history
history_of() { echo "$T/$1/pg_wal/$2.history"; }
in_recovery() { sql "$1" 'SELECT pg_is_in_recovery()'; }
promoted() { wait_for_is f in_recovery "$1"; }
replayed() { lsn_ge "$(sql "$1" 'SELECT pg_last_wal_replay_lsn()')" "$2"; }
conn() { echo "host=$T/s port=${PG_PORT[$1]} user=postgres"; }
# clone NAME 'KEY=VALUE'...: the base backup as another server.
clone() {
  rm -rf "$T/$1.new"
  cp -a "$T/base" "$T/$1.new"
  pg_adopt "$1" "$T/$1.new"
  pg_conf "$@"
}
standby() {
  clone "$1" "primary_conninfo='$(conn "$2")'"
  touch "$T/$1/standby.signal"
  pg_start "$1"
}
# Recovery from the archive to a restore point, without waiting for its end.
recovery() {
  local name=$1
  shift
  clone "$name" "restore_command='cp $T/arch/%f %p'" recovery_target_action=promote "$@"
  touch "$T/$name/recovery.signal"
  pg_launch "$name"
}
# What the server has at a position: "TYPE DESCRIPTION".
record_at() { sql "$1" "SELECT record_type || ' ' || description FROM pg_get_wal_record_info('$2')"; }
# Would the server stream from there?  Its answer comes before the first byte.
server_streams() {
  pg_tool psql
  timeout 20 "$PGTOOL" -XAtq "$(conn "$1") dbname=postgres replication=true" -c "START_REPLICATION PHYSICAL $3 TIMELINE $2" >"$T/stream" 2>&1
  ! grep -q "is not in this server's history" "$T/stream"
}
before() { lsn_text $(($(lsn_num "$1") - $2)); }
padded() { printf '%X/%08X' $(($(lsn_num "$1") >> 32)) $(($(lsn_num "$1") & 0xFFFFFFFF)); }

servers() {
  pg_init a --wal-segsize=1
  pg_conf a wal_keep_size=200MB autovacuum=off wal_retrieve_retry_interval=100ms
  pg_start a
  sql a 'CREATE EXTENSION pg_walinspect' 'CREATE TABLE t (id int, v text)'
  pg_tool pg_basebackup
  "$PGTOOL" -d "$(conn a)" -D "$T/base" -c fast -X stream --no-sync 2>"$T/backup.err" || die "pg_basebackup: $(cat "$T/backup.err")"
  standby b a
  sql a "INSERT INTO t SELECT g, repeat('x', 300) FROM generate_series(1, 5000) g" \
    "SELECT pg_create_restore_point(E'early\\n# of two lines')" 'INSERT INTO t VALUES (-1)' \
    "SELECT pg_create_restore_point(E'evil\\n7\\t0/10\\tx')" \
    "INSERT INTO t SELECT g, repeat('x', 300) FROM generate_series(1, 5000) g" >/dev/null
  ok 'a standby follows' wait_for replayed b "$(pg_lsn a)"
  sql b 'SELECT pg_promote()' >/dev/null
  promoted b
  F1=$(cut -f 2 "$(history_of b 00000002)")
  sql a "INSERT INTO t SELECT g, repeat('x', 300) FROM generate_series(1, 8000) g"
  ABANDONED=$(pg_lsn a)
  sql b "INSERT INTO t SELECT g, repeat('y', 300) FROM generate_series(1, 8000) g"
  standby c b
  ok 'a standby of the descendant crosses the fork' wait_for replayed c "$(pg_lsn b)"
  sql c 'SELECT pg_promote()' >/dev/null
  promoted c
  F2=$(sed -n 's/^2\t\([^\t]*\).*/\1/p' "$(history_of c 00000003)")
  sql c "INSERT INTO t SELECT g, repeat('z', 300) FROM generate_series(1, 8000) g"
  # The archive of the old primary, with the sibling's history.
  rm -rf "$T/arch"
  mkdir "$T/arch"
  cp "$T"/a/pg_wal/0000000100* "$(history_of b 00000002)" "$T/arch/"
}

recoveries() {
  recovery gap recovery_target_timeline=current "recovery_target_name='early\\n# of two lines'"
  recovery back recovery_target_timeline=2 "recovery_target_name='early\\n# of two lines'"
  recovery evil recovery_target_timeline=current "recovery_target_name='evil\\n7\\t0/10\\tx'"
}

fetch() {
  status_is 0 'fetch of the own timeline' $H fetch -d "$(conn c)"
  same_file "$T/out" "$(history_of c 00000003)" 'to standard output, byte for byte'
  status_is 0 'of two, into a directory' $H fetch -h "$T/s" -p "${PG_PORT[c]}" -U postgres -D "$T/h/x" 2 3
  same_file "$T/h/x/00000002.history" "$(history_of b 00000002)" 'the one'
  same_file "$T/h/x/00000003.history" "$(history_of c 00000003)" 'and the other'
  is "$(ls -A "$T/h/x")" $'00000002.history\n00000003.history' 'and nothing else'
  status_is 0 'again' $H fetch -d "$(conn c)" -D "$T/h/x" 3
  echo >>"$T/h/x/00000003.history"
  status_is 3 'another content there' $H fetch -d "$(conn c)" -D "$T/h/x" 2 3
  like "${ERR##*$'\n'}" '00000003.history: .*reason=history_changed' 'stops'
  cmp_is "$(stat -c %s "$T/h/x/00000003.history")" -eq $(($(stat -c %s "$(history_of c 00000003)") + 1)) 'and stays'
  rm -rf "$T/h"
  status_is 3 'one that does not exist' $H fetch -d "$(conn c)" -D "$T/h" 2 9
  like "${ERR##*$'\n'}" 'timeline 9 reason=history_missing' 'is missing'
  is "$(ls -A "$T/h")" '' 'and none is kept'
  status_is 0 'timeline 1' $H fetch -d "$(conn a)" -D "$T/h"
  like "$ERR" 'has no history file' 'has none'
  rm -rf "$T/h"
}

identity() {
  local id
  id=$(sql a 'SELECT system_identifier FROM pg_control_system()')
  status_is 0 'the system identifier that is expected' $H fetch -q -d "$(conn c)" --system-id "$id"
  status_is 3 'and another one' $H fetch -d "$(conn c)" -D "$T/h" --system-id 12345
  like "${ERR##*$'\n'}" "$id.*reason=system_id_changed" 'is refused'
  mkdir -p "$T/st/raw"
  printf 'SYSTEM_ID=%s\nMAJOR=%s\nSEGMENT_SIZE=1048576\n' "$id" "$PG_MAJOR" >"$T/st/cluster"
  status_is 0 'into the raw/ of its state' $H fetch -q -d "$(conn b)" -D "$T/st/raw"
  sed -i 's/SYSTEM_ID=./&1/' "$T/st/cluster"
  status_is 3 "into that of another's" $H fetch -q -d "$(conn c)" -D "$T/st/raw"
  like "${ERR##*$'\n'}" 'reason=system_id_changed' 'is refused, too'
  not_ok 'and nothing is written' test -e "$T/st/raw/00000003.history"
  rm -rf "$T/st"
}

show() {
  local d=$T/c/pg_wal
  $H show "$d" >"$T/shown"
  is "$(awk '{print $1, $2, $3}' "$T/shown")" "1 0/00000000 $(padded "$F1")
2 $(padded "$F1") $(padded "$F2")
3 $(padded "$F2") open" 'show: the lines of the file'
  is "$(sed -n 's/^2 .*  \([a-z]\)/\1/p' "$T/shown")" 'no recovery target specified' 'with the reasons'
  is "$($H show -t 2 "$d" | awk '{print $1}' | tr '\n' ' ')" '1 2 ' 'of another timeline'
  is "$($H show -F json "$(history_of b 00000002)" | head -n 1)" \
    "{\"timeline\":1,\"begin\":\"0/00000000\",\"end\":\"$(padded "$F1")\",\"reason\":\"no recovery target specified\"}" 'as JSON'
  is "$($H path "$d")" "1 0/00000000 $(padded "$F1")
2 $(padded "$F1") $(padded "$F2")
3 $(padded "$F2") open" 'path: the ranges'
  is "$($H path --from "$F1" --to "$F2" "$d")" "2 $(padded "$F1") $(padded "$F2")" 'or a part'
  like "$(record_at c "$F1")" '^END_OF_RECOVERY tli 2; prev tli 1' 'the server has the end of a recovery at the first fork'
  like "$(record_at c "$F2")" '^END_OF_RECOVERY tli 3; prev tli 2' 'and at the second'
}

# Every range by pg_waldump, under the names of its timeline: it reads the last record, and from the next
# switch on there is another branch.
waldump() {
  local tli begin end first=$1
  pg_bin
  # 16's rig has none; pg_walinspect was asked the same.
  [ "$PG_MAJOR" != 16 ] || return
  $H path --from "$first" --to "$(pg_lsn c)" "$T/c/pg_wal" >"$T/ranges"
  while read -r tli begin end; do
    "$PGBIN/pg_waldump" -p "$T/c/pg_wal" -t "$tli" -s "$begin" -e "$end" >"$T/dump" 2>"$T/dump.err"
    is "$?:$(cat "$T/dump.err")" '0:' "pg_waldump reads $begin-$end on timeline $tli"
    ((tli == 1)) || like "$(head -n 1 "$T/dump")" "lsn: $begin.*END_OF_RECOVERY tli $tli; prev tli $((tli - 1))" 'from the switch on'
  done <"$T/ranges"
  is "$(wc -l <"$T/ranges")" 3 'all three'
}

# For every segment of the server's, the names of its first and last byte.
segments() {
  local d=$T/c/pg_wal file start lsn n=0 wrong='' end
  end=$(lsn_num "$(pg_lsn c)")
  for file in "$d"/????????????????????????; do
    start=$((16#${file: -8} * 1048576))
    ((start < end)) || continue
    # An ancestor's file of a fork's segment is not the newest.
    [[ $(sql c "SELECT max(name) FROM pg_ls_waldir() WHERE name LIKE '%${file: -16}'") = "${file##*/}" ]] || continue
    for lsn in $start $((start + 1048575)); do
      n=$((n + 1))
      [ "$($H segment "$(lsn_text "$lsn")" "$d" 2>&1)" = "$file" ] || wrong+=" $(lsn_text "$lsn")"
    done
  done
  is "$wrong" '' "the segments of $n positions"
  cmp_is "$n" -gt 12 'of several segments'
  is "$($H segment "$(before "$F1" 1)" "$(history_of c 00000003)")" "$(printf '00000002%s' "$(sql b "SELECT substr(pg_walfile_name('$F1'::pg_lsn - 1), 9)")")" \
    "the first fork's segment is the descendant's"
  is "$($H segment "$F2" "$(history_of c 00000003)")" "$(sql c "SELECT pg_walfile_name('$F2'::pg_lsn)")" "the second's, by pg_walfile_name"
  is "$($H segment -t 2 "$F1" "$T/b/pg_wal")" "$T/b/pg_wal/$(sql b "SELECT pg_walfile_name('$F1'::pg_lsn)")" 'and on the other server'
  status_is 1 'a position that is nowhere' $H segment 7/0 "$d"
  is "$($H segment --wal-segsize 16MB 0/1000000 "$(history_of c 00000003)")" 000000030000000000000001 'another segment size'
}

# proves NAME WANTED TLI LSN: our answer from the file, from the server, and the server's own.
proves() {
  local how=${5:-}
  run $H prove --tli "$3" --lsn "$4" "$T/$1/pg_wal"
  is "$STATUS:$(grep -o 'reason=.*' <<<"${ERR##*$'\n'}")" "$2" "prove $3 $4"
  run $H prove --tli "$3" --lsn "$4" -d "$(conn "$1")"
  is "$STATUS:$(grep -o 'reason=.*' <<<"${ERR##*$'\n'}")" "$2" 'and by the server'
  [ -z "$how" ] || return
  if [ "${2%%:*}" = 0 ]; then
    ok 'which streams from there' server_streams "$1" "$3" "$4"
  else
    not_ok 'which does not stream from there' server_streams "$1" "$3" "$4"
  fi
}

prove_all() {
  local past=3:reason=resume_past_fork none=3:reason=timeline_not_descendant
  proves c 0: 1 "$(before "$F1" 8)"
  proves c 0: 1 "$F1"
  proves c $past 1 "$(before "$F1" -8)"
  proves c $past 1 "$ABANDONED"
  proves c 0: 2 "$F1"
  proves c 0: 2 "$F2"
  proves c $past 2 "$(before "$F2" -8)"
  proves c 0: 3 "$F2"
  proves c 0: 3 "$(pg_lsn c)" file
  proves c $none 4 "$F2"
  proves b $none 3 "$F2"
  proves a $none 2 "$F1"
  status_is 3 'prove against a timeline that the server lacks' $H prove --tli 1 --lsn "$F1" -t 7 -d "$(conn c)"
  like "${ERR##*$'\n'}" 'reason=history_missing' 'its history is missing'
  status_is 3 'and the directory' $H prove --tli 1 --lsn "$F1" -t 7 "$T/c/pg_wal"
  like "${ERR##*$'\n'}" 'reason=history_missing' 'likewise'
  status_is 3 'prove by a server of another cluster' $H prove --tli 1 --lsn "$F1" -d "$(conn c)" --system-id 1
  like "${ERR##*$'\n'}" 'reason=system_id_changed' 'is no proof'
}

# The pid in it tells; a try to take it might keep ws-receive from it.
locked() { [ "$(cat "$1")" = "$(pid_of receive)" ]; }

check() {
  status_is 0 'check: three real pg_wal' $H check "$T/a/pg_wal" "$T/b/pg_wal" "$T/c/pg_wal"
  is "$OUT" '' 'have nothing'
  # As the receiver of the old primary has it when the new one's history comes.
  status_is 0 'WAL of the old primary' timeout 60 ws-receive -q -n -D "$T/raw" -d "$(conn a)" -E "$ABANDONED"
  status_is 0 'which is on its own history' $H check "$T/raw"
  bg receive ws-receive -q -D "$T/raw" -d "$(conn a)"
  wait_for -m 'the lock of ws-receive' locked "$T/raw/.lock"
  status_is 0 'gets the history, while ws-receive is at work there' $H fetch -q -d "$(conn b)" -D "$T/raw"
  ok 'which goes on' alive receive
  stop receive
  run $H check "$T/raw"
  is "$STATUS" "$(lsn_ge "$(before "$ABANDONED" 1048576)" "$F1" && echo 3)" 'and is past the fork'
  like "$OUT" "$T/raw/0000000100000000000000[0-9A-F]*(.partial)?: on no path: timeline 1 ends at $(padded "$F1") reason=wal_off_path" 'by segments'
  like "${ERR##*$'\n'}" 'findings?, first .*reason=wal_off_path' 'as the last line says'
  rm -rf "$T/raw"
}

# What the three recoveries left, all timeline 3 or 2.
recovered() {
  local e tli
  promoted gap
  promoted back
  e=$(cut -f 2 "$(history_of gap 00000003)" | head -n 1)
  is "$(cd "$T/gap/pg_wal" && echo *.history)" 00000003.history 'an id was left out'
  status_is 0 'ids with a gap' $H check "$(history_of gap 00000003)"
  is "$($H show -F json "$T/gap/pg_wal" | head -n 1)" \
    "{\"timeline\":1,\"begin\":\"0/00000000\",\"end\":\"$(padded "$e")\",\"reason\":\"at restore point \\\"early\"}" \
    'a reason of two lines'
  proves gap 0: 1 "$e"
  proves gap 3:reason=resume_past_fork 1 "$F1"
  proves gap 3:reason=timeline_not_descendant 2 "$F1"
  # It was to follow timeline 2 and stopped before.
  is "$(sed -n 's/^\([0-9]*\)\t\([^\t]*\).*/\1 \2/p' "$(history_of back 00000003)" | tr '\n' ' ')" "1 $F1 2 $e " 'switches that do not ascend'
  status_is 3 'are told' $H check "$(history_of back 00000003)"
  like "${ERR##*$'\n'}" 'timeline 2 ends at .*reason=history_not_ascending' 'as what they are'
  is "$($H path "$T/back/pg_wal")" "1 0/00000000 $(padded "$e")
3 $(padded "$e") open" 'the ancestor ends at the lower one'
  like "$(record_at back "$e")" 'tli 3; prev tli 1' 'where the server went on from it'
  proves back 0: 1 "$e" file
  proves back 3:reason=resume_past_fork 1 "$F1" file
  is "$($H segment "$e" "$T/back/pg_wal")" "$T/back/pg_wal/$(sql back "SELECT pg_walfile_name('$e'::pg_lsn)")" 'its segment'
  follows_not back 'switches that do not ascend'
  # The name of a restore point as a line of its own.
  wait_for -m 'the history of evil' compgen -G "$T/evil/pg_wal/*.history" >/dev/null
  evil
}

# follows_not SERVER DESC: ws-receive has WAL up to where its timeline 1 ends, and does not follow it.
follows_not() {
  local lsn=$e seg
  seg=$(sql a "SELECT pg_walfile_name('$lsn'::pg_lsn - 1)")
  rm -rf "$T/st"
  mkdir -p "$T/st/raw" "$T/st/pos"
  head -c $(($(lsn_num "$lsn") % 1048576)) "$T/arch/$seg" >"$T/st/raw/$seg.partial"
  echo "1 $lsn" >"$T/st/pos/received"
  status_is 3 "ws-receive does not follow $2" timeout 60 ws-receive --state "$T/st" -d "$(conn "$1")"
  like "${ERR##*$'\n'}" 'reason=history_malformed' 'as malformed'
  is "$(cat "$T/st/pos/received") $(cd "$T/st/raw" && echo *)" "1 $lsn $seg.partial" 'and nothing moves'
  like "$(cat "$T/st/log/timelines.log")" '"event":"refused".*"reason":"history_malformed"' 'which the log of timelines has'
}

evil() {
  local file
  file=$(compgen -G "$T/evil/pg_wal/*.history" | tail -n 1)
  like "$(tail -n 1 "$file")" $'^7\t0/10' 'a restore point wrote a line of its own'
  status_is 3 'which check finds' $H check "$T/evil/pg_wal"
  like "$OUT" "$file: line 2: .*below the timeline's own reason=history_malformed" 'where it is'
  like "${ERR##*$'\n'}" 'reason=history_malformed' 'and why'
  # It goes on with what it has in memory.
  promoted evil
  rm -rf "$T/h"
  status_is 3 'fetch from that server' $H fetch -d "$(conn evil)" -D "$T/h"
  like "${ERR##*$'\n'}" 'reason=history_malformed' 'is refused'
  is "$(ls -A "$T/h")" '' 'and not kept'
  status_is 3 'to standard output' $H fetch -d "$(conn evil)"
  is "$OUT" '' 'neither'
  follows_not evil 'a line that a restore point wrote'
  status_is 3 'prove by it' $H prove --tli 1 --lsn 0/1000000 -d "$(conn evil)"
  like "${ERR##*$'\n'}" 'reason=history_malformed' 'is no proof'
}

whole() {
  local name
  servers
  recoveries
  fetch
  identity
  show
  waldump "$(sed -n 's/^START WAL LOCATION: \([^ ]*\).*/\1/p' "$T/base/backup_label")"
  segments
  prove_all
  check
  recovered
  # Nothing of theirs is needed any more.
  # shellcheck disable=SC2034 # proc.sh uses it
  for name in a b c gap back evil; do PROC_STOP[$name]=QUIT; done
  rm -rf "$T/base" "$T/arch"
}

bad_values() {
  local words
  while IFS='|' read -r words message; do
    # shellcheck disable=SC2086
    status_is 2 "ws-history $words" $H $words
    like "$ERR" "$message" "says $message"
  done <<'LIST'
|no command
nonsense|nonsense
show|show
show a b|show
show -d x a|show
positions x|positions
positions -d x|positions
positions|state
show none|none
show -F xml .|--format
show -t 0 .|--timeline
show -t x .|--timeline
check|check
check none|none
check /etc/passwd|not the name
path --from x .|--from
path --to 0/ .|--to
prove .|--tli and --lsn
prove --tli 1 --lsn 0/0 .|--lsn
prove --tli -1 --lsn 0/1 .|--tli
prove --tli 4294967296 --lsn 0/1 .|--tli
prove --tli 1 --lsn 0/1 --system-id 1 .|prove
prove --tli 1 --lsn 0/1 --system-id x|--system-id
segment . .|not a position
segment 0/1|segment
segment --wal-segsize 3MB 0/1 .|--wal-segsize
segment --wal-segsize 2GB 0/1 .|--wal-segsize
fetch -d x= 0|not a timeline
fetch 2 3|--directory
fetch -d ===|connection string
fetch -w -W|exclude
LIST
  status_is 1 'no server' $H fetch -h "$T/none" -p 1
}

for_majors whole
bad_values
done_testing
