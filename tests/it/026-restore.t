#!/usr/bin/env bash
# ws-receive --restore-command: WAL that the server has no longer comes from an archive, across promotions
# too and without a server; what an archive may not give, and nothing moved; killed on the way.
. "$(dirname "$0")/lib/it.sh"

MB=$((1 << 20))
A= # the archive at hand
B=$T/bad

load() { sql "$1" "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, $2) g"; }
received_from() { pos_ge "$T/st/pos/received" "$(sql "$1" 'SELECT pg_current_wal_flush_lsn()')"; }
tli_received() { local tli; read -r tli _ <"$T/st/pos/received" && echo "$tli"; }
raw_files() { (cd "$T/st/raw" && find . -type f ! -name .lock -printf '%P %s\n' | sort | tr '\n' ' '); }
moved() { (cd "$T/st" && cat pos/received && raw_files); }
# segment TLI LSN [N]: the name of the N-th (0) segment from the one of that byte.
segment() { printf '%08X%08X%08X\n' "$1" 0 $(($(lsn_num "$2") / MB + ${3:-0})); }
needed() { segment 1 "$(pos_lsn "$T/st/pos/received")" "${1:-0}"; }
archived() { [ -e "$A/$1" ]; }
switches() { grep -o '"event":"switched".*' "$T/st/log/timelines.log"; }
# receive SERVER COMMAND [OPTION...]
receive() { bg rcv ws-receive --state "$T/st" -d "$(pg_conninfo "$1")" -v --restore-command "$2" "${@:3}"; }

# retire SERVER NAME: it has that segment no longer; the archive does.
retire() {
  until [ ! -e "$T/$1/pg_wal/$2" ]; do
    sql "$1" 'SELECT pg_switch_wal()' CHECKPOINT >/dev/null
    load "$1" 10
  done
  wait_for archived "$2"
}

# same_wal SERVER DESC: every byte is the archive's, or the server's.
same_wal() {
  local f name from bad='' n=0
  for f in "$T"/st/raw/0*; do
    name=${f##*/}
    name=${name%.partial}
    for from in "$A/$name" "$A/$name.partial" "$T/$1/pg_wal/$name"; do
      [ ! -e "$from" ] || break
    done
    n=$((n + 1))
    cmp -s -n "$(stat -c %s "$f")" "$f" "$from" || bad+=" ${f##*/}"
  done
  if [ "$n" -gt 3 ] && [ -z "$bad" ]; then pass "$2"; else fail "$2" "$n files, different:$bad" "$(raw_files)"; fi
  is "$(find "$T/st/raw" -name '.restored*')" '' "$2: nothing else is left"
}

# ---- one timeline ----

removed() {
  A=$T/archive.$PG_MAJOR
  rm -rf "$T"/{st,st.before,asked,restored,late}
  mkdir "$A"
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=0 max_wal_size=2MB min_wal_size=2MB checkpoint_timeout=1h archive_mode=on \
    "archive_command='cp %p $A/.%f && mv $A/.%f $A/%f'"
  pg_start a
  sql a 'CREATE TABLE t (a int, b text)'
  receive a 'exit 1'
  load a 5000
  ok 'with everything on the server' wait_for received_from a
  stop rcv
  load a 20000
  retire a "$(needed 1)"
  faults
  cp -a "$T/st" "$T/st.before"
  up_to_now a --metrics "$T/prom"
  like "$ERR" 'restoring from the archive: .*from the archive: restored=[1-9].*streaming: ' 'it says so'
  cmp_is "$(sed -n 's/^walshadow_receive_restored_segments_total //p' "$T/prom")" -ge 2 'and counts'
  before
  kills
  up_to_now a
  # A slot that begins later; what is kept ends where a segment does.
  load a 10
  sql a 'SELECT pg_switch_wal()' >/dev/null
  receive a "cp $A/%f %p"
  ok 'up to the end of a segment' wait_for received_from a
  stop rcv
  load a 20000
  retire a "$(needed 1)"
  sql a "SELECT pg_create_physical_replication_slot('ws', true)" >/dev/null
  ends 3 'reason=slot_too_new$' 'a slot that begins later' 'exit 1' -S ws
  receive a "test -e $T/late && ws-archive get --store $A %f %p" -S ws
  ok 'an archive that is late is waited for' wait_for log_has rcv 'the archive does not have .* yet'
  touch "$T/late"
  ok 'it leads up to the slot' wait_for received_from a
  same_wal a 'the same bytes up to the slot'
  like "$(sql a 'SELECT active FROM pg_replication_slots')" t 'which is used'
  stop rcv
  sql a "SELECT pg_drop_replication_slot('ws')" >/dev/null
}

# up_to_now SERVER [OPTION...]
up_to_now() {
  run timeout 60 ws-receive --state "$T/st" -d "$(pg_conninfo "$1")" --restore-command "cp $A/%f %p 2>/dev/null" \
    -E "$(sql "$1" 'SELECT pg_current_wal_flush_lsn()')" "${@:2}"
  is "$STATUS" 0 'from the archive, then from the server'
  same_wal "$1" 'the same bytes'
}

# The state as it was.
before() {
  rm -rf "$T/st"
  cp -a "$T/st.before" "$T/st"
}

# ends STATUS REGEX DESC COMMAND [OPTION...]: so, and nothing moved.
ends() {
  local before
  before=$(moved)
  status_is "$1" "$3" timeout 60 ws-receive --state "$T/st" -d "$(pg_conninfo a)" --restore-command "$4" -n "${@:5}"
  like "${ERR##*$'\n'}" "$2" "$3: the reason"
  is "$(moved)" "$before" "$3: nothing moved"
}

# put OFFSET BYTES: the needed segment in the bad archive, with these bytes there.
put() {
  cp "$A/$NEED" "$B/$NEED"
  printf '%b' "$2" | dd of="$B/$NEED" bs=1 seek="$1" conv=notrunc status=none
}

faults() {
  local NEED part at
  NEED=$(needed)
  rm -rf "$B"
  mkdir "$B"
  ends 3 'reason=wal_missing$' 'neither has it' "cp $B/%f %p 2>/dev/null"
  like "$ERR" "the archive does not have $NEED" 'and which it is'
  cp "$A/$NEED" "$B/$NEED.partial"
  ends 3 'reason=wal_missing$' 'a partial segment is none' "cp $B/%f %p 2>/dev/null"
  ends 1 'exit status 200' 'a status above 125 is no absence' 'exit 200'
  ends 1 'signal 9' 'neither is a signal' 'kill -KILL $$'
  ends 2 'exit status 127' 'no such command' 'no-such-command %f %p 2>/dev/null'
  ends 1 'has written no file' 'nothing written' true
  head -c 500000 "$A/$NEED" >"$B/$NEED"
  ends 1 'may not be whole yet' 'a truncated segment' "cp $B/%f %p"
  ends 1 'exit status 254' 'which ws-archive finds, too' "ws-archive get --store $B %f %p 2>/dev/null"
  put 24 X
  ends 3 'reason=system_id_changed$' "another cluster's segment" "cp $B/%f %p"
  put 500000 'damaged here'
  ends 3 'reason=archive_corrupt$' 'a damaged record' "cp $B/%f %p"
  put 4 '\002'
  ends 3 'reason=archive_corrupt$' 'another timeline' "cp $B/%f %p"
  cp "$A/$(needed 1)" "$B/$NEED"
  ends 3 'reason=archive_corrupt$' 'another segment' "cp $B/%f %p"
  part=$T/st/raw/$NEED.partial
  at=$(($(stat -c %s "$part") / 2))
  cp "$part" "$T/keep"
  printf 'other' | dd of="$part" bs=1 seek=$at conv=notrunc status=none
  ends 3 'reason=sibling_branch$' 'other bytes than ours' "cp $A/%f %p"
  like "$ERR" "differs from the archive's" 'it says whose'
  cat "$T/keep" >"$part"
  status_is 2 'an unknown placeholder' ws-receive -D "$T/d" --restore-command 'cp %f %r'
  status_is 2 'a single percent sign' ws-receive -D "$T/d" --restore-command 'cp %'
  status_is 2 'a stream keeps nothing to go on from' ws-receive -o - --restore-command 'cp %f %p'
}

# killed AT COMMAND: killed at each call, and what is there goes on to be right.
killed() {
  local at
  for at in "${@:2}"; do
    LD_PRELOAD=$BUILD/prog/dieat.so DIE_AT=$at receive "$1" "cp $A/%f %p 2>/dev/null"
    ok "killed at $at" wait_for -t 60 not_alive rcv || stop rcv
  done 2>/dev/null # bash reports each
}

kills() {
  local at
  # While the command runs: at once, with all that it has started.
  receive a "touch $T/asked; sleep 300; true"
  wait_for test -e "$T/asked"
  at=$(now_ms)
  stop rcv
  is "$STATUS" 0 'it ends in order while it waits for the archive'
  cmp_is $(($(now_ms) - at)) -lt 5000 'and at once'
  ok 'and the command with it' wait_for_is '' proc_in "$T/st/raw"
  # Which dies with the receiver, being the command itself.
  receive a "cp $A/%f %p && touch $T/restored && exec sleep 300"
  wait_for test -e "$T/restored"
  kill9 rcv
  wait_for_is '' proc_in "$T/st/raw"
  isnt "$(find "$T/st/raw" -name '.restored*')" '' 'killed between the command and us'
  killed a pwrite:raw/0 pwrite:raw/0:3 rename:raw/0 rename:pos/received
}

# ---- promotions ----

# a, then b, then c, whose switches lie in one segment; c has nothing of it any more, and not 2's history.
promoted() {
  local fork2 fork3
  rm -rf "$T/st.before"
  # The standbys are to have all of it.
  pg_conf a wal_keep_size=64MB
  pg_reload a
  pg_standby b a
  pg_start b
  pg_standby c b
  pg_start c
  load a 20000
  sql a 'SELECT pg_switch_wal()' >/dev/null
  load a 10
  wait_for -m 'the standbys' pg_replayed c "$(pg_lsn a)"
  wait_for archived "$(segment 1 "$(pg_lsn a)" -1)"
  pg_kill a
  pg_promote b
  load b 10
  wait_for archived 00000002.history
  wait_for -m 'the cascade' pg_replayed c "$(pg_lsn b)"
  pg_kill b
  pg_promote c
  pg_conf c wal_keep_size=0
  pg_reload c
  load c 10000
  fork2=$(sed -n '/^1\t/p' "$A/00000002.history" | cut -f 2)
  fork3=$(sed -n '/^2\t/p' "$T/c/pg_wal/00000003.history" | cut -f 2)
  is "$(segment 1 "$fork2")" "$(segment 1 "$fork3")" 'two switches in one segment'
  retire c "$(segment 3 "$fork3" 1)"
  wait_for archived 00000003.history
  rm "$T/c/pg_wal/00000002.history"
  not_ok 'the promoted server has nothing of the ancestors' compgen -G "$T/c/pg_wal/0000000[12]*"
  cp -a "$T/st" "$T/st.before"
  holes

  killed c pwrite:raw/0 linkat:00000002.history pwrite:raw/00000002 linkat:00000003.history pwrite:raw/00000003 \
    rename:raw/00000003
  receive c "cp $A/%f %p 2>/dev/null"
  ok 'over two promotions' wait_for_is 3 tli_received
  ok 'to the end of the server' wait_for received_from c
  same_wal c 'the same bytes on three timelines'
  stop rcv
  like "$(switches | sed -n '/"new_timeline":2/p' | tail -n 1)" '"history":"archive"' "the server's missing history is the archive's"
  like "$(switches | tail -n 1)" '"new_timeline":3.*"history":"server"' 'the other one its own'
}

holes() {
  local before hole
  rm -rf "$B"
  mkdir "$B"
  cp "$A"/0* "$B"
  before=$(moved)
  rm "$B/$(needed)"
  status_is 3 'a hole before the switch' timeout 60 ws-receive --state "$T/st" -d "$(pg_conninfo c)" \
    --restore-command "cp $B/%f %p 2>/dev/null"
  like "${ERR##*$'\n'}" "the archive does not have $(needed) .*reason=wal_missing\$" 'is a gap'
  is "$(moved)" "$before" 'and nothing moved'
  cp "$A/$(needed)" "$B"
  hole=$(needed 1)
  rm "$B/$hole"
  status_is 3 'a hole further on' timeout 60 ws-receive --state "$T/st" -d "$(pg_conninfo c)" \
    --restore-command "cp $B/%f %p 2>/dev/null"
  like "${ERR##*$'\n'}" "the archive does not have $hole .*reason=wal_missing\$" 'is one, too'
  is "$(needed)" "$hole" 'reached exactly'
  before
}

# Nobody is there; then c is again.
alone() {
  local last before
  pg_stop c
  last=$(cd "$A" && find . -name '00000003????????????????' -printf '%P\n' | sort | tail -n 1)
  before
  before=$(moved)
  rm "$B/00000003.history"
  printf '1\t%s\tx\n' "$(lsn_text $MB)" >"$B/00000002.history"
  receive c "cp $B/%f %p 2>/dev/null"
  ok 'an archive that leaves our way below what we have' wait_for log_has rcv 'the archive goes another way'
  stop rcv
  is "$(moved)" "$before" 'is not followed'
  receive c "ws-archive get --store $A %f %p"
  ok 'to the end of the archive, without a server' wait_for pos_ge "$T/st/pos/received" \
    "$(lsn_text $(((16#${last:16} + 1) * MB)))"
  is "$(switches | grep -c '"history":"archive"')" 2 'with its histories'
  pg_start c
  load c 100
  ok 'and on with the server that is back' wait_for received_from c
  same_wal c 'the same bytes again'
  stop rcv
  pg_stop c
}

# shellcheck disable=SC2086 # words
restore_major() { for_parts ${WS_RESTORE_PARTS:-removed promoted alone}; }

for_majors restore_major
done_testing
