#!/usr/bin/env bash
# ws-receive across promotions of real standbys: under the connection, behind it, several at once; what it
# refuses, with nothing moved; and killed at each step of the way.
. "$(dirname "$0")/lib/it.sh"

receive() { bg rcv ws-receive --state "$T/st" -d "$1" -S ws -v "${@:2}"; }
load() { sql "$1" "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, $2) g"; }
received_from() { pos_ge "$T/st/pos/received" "$(sql "$1" 'SELECT pg_current_wal_flush_lsn()')"; }
tli_received() { local tli; read -r tli _ <"$T/st/pos/received" && echo "$tli"; }
hosts() { echo "$(pg_hosts "$@") target_session_attrs=primary"; }

# The names of the files in raw/, whatever they are.
raw_files() { (cd "$T/st/raw" && find . -type f ! -name .lock -printf '%P\n' | sort | tr '\n' ' '); }
moved() { (cd "$T/st" && cat pos/received && raw_files); }

# same_wal SERVER TLI DESC: what is there of that timeline is the server's, byte for byte up to its end, the
# history too; and no segment of the newest timeline is missing behind the first.
same_wal() {
  local f name bad='' n=0
  for f in "$T/st/raw/$(printf %08X "$2")"*; do
    name=${f##*/}
    name=${name%.partial}
    n=$((n + 1))
    cmp -s -n "$(stat -c %s "$f")" "$f" "$T/$1/pg_wal/$name" || bad+=" ${f##*/}"
  done
  if [ "$n" -gt 1 ] && [ -z "$bad" ]; then pass "$3"; else fail "$3" "$n files, different:$bad" "$(raw_files)"; fi
}


switch_of() { tail -n 1 "$T/st/raw/$1.history" | cut -f 2; }

# A primary a with a table and the slot, receiver state emptied.
primary() {
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=256MB max_wal_size=4GB checkpoint_timeout=1h
  pg_start a
  rm -rf "$T/st"
  sql a 'CREATE TABLE t (a int, b text)' "SELECT pg_create_physical_replication_slot('ws', true)" >/dev/null
}

standby() { pg_candidate "$1" "${2:-a}" ws; }

# ---- what is followed ----

metric() { sed -n "s/^walshadow_$1 //p" "$T/rcv.prom"; }

# The server that we are connected to is promoted, in the middle of a segment, under load; twice.
serving() {
  primary
  standby b
  standby c b
  receive "$(pg_conninfo b)" --metrics "$T/rcv.prom"
  ws-catalog kept -d "$(pg_conninfo a)" -o "$T/kept"
  bg filter ws-filter --state "$T/st" --follow --kept "$T/kept"
  pg_standby stock a
  load a 12000
  wait_for -m 'the standby' pg_replayed b "$(pg_lsn a)"
  pg_stop a
  load_b() { while [ ! -e "$T/load.stop" ]; do sql b "INSERT INTO t SELECT g, 'y' FROM generate_series(1, 500) g" 2>/dev/null; done; }
  rm -f "$T/load.stop"
  pg_promote b
  load_b &
  ok 'the promotion of the server that we read from is followed' wait_for_is 2 tli_received
  touch "$T/load.stop"
  wait $!
  ok 'to its end' wait_for received_from b
  same_wal b 2 'the same bytes on the new timeline'
  is "$(cut -f 1 "$T/st/raw/00000002.history")" 1 'its history is there'
  like "$(tail -n 1 "$T/st/log/timelines.log")" '"event":"switched".*"old_timeline":1,"new_timeline":2,"switch_lsn":"[0-9A-F]+/[0-9A-F]+".*"slot":"ws","history":"server"' 'and in the log of timelines'
  # Its own standby next: a cascade, whose upstream goes.
  stop rcv
  is "$(metric source_timeline) $(metric timeline_switches_total) $(metric timeline_switch_lsn)" "2 1 $(lsn_num "$(switch_of 00000002)")" \
    'metrics tell the timeline and its switch'
  cmp_is "$(metric timeline_prefix_bytes_verified_total)" -ge $(($(lsn_num "$(switch_of 00000002)") % 1048576)) 'and how much was compared'
  kill9 filter
  bg filter ws-filter --state "$T/st" --follow
  receive "$(pg_conninfo c)"
  load b 8000
  ok 'from the cascaded standby' wait_for received_from b
  pg_stop b
  pg_promote c
  load c 1000
  ok 'the next promotion' wait_for_is 3 tli_received
  ok 'to its end' wait_for received_from c
  same_wal c 3 'the same bytes again'
  rest
  pg_stop c
}

# What PostgreSQL itself makes of raw/ and filtered/, which go over three timelines.
rest() {
  local lsn
  lsn=$(sql c 'SELECT pg_switch_wal()' 'CREATE TABLE behind_the_switch ()')
  wait_for -m 'the last segment' received_from c
  stop rcv
  is "$STATUS" 0 'it ends in order'
  ok 'ws-filter goes over both switches' wait_for pos_ge "$T/st/pos/filtered" "$lsn"
  stop filter
  is "$STATUS" 0 'and ends in order'
  status_is 0 'the same WAL at once' ws-filter -q --kept "$T/kept" -D "$T/ref" "$T/st/raw"
  same_filtered "$T/st/filtered" "$T/ref"
  # A stock standby that has nothing but raw/, later one that has nothing but filtered/.
  cp -a "$T/stock" "$T/blank"
  pg_upstream stock ''
  pg_conf stock "restore_command='ws-archive get --store $T/st/raw %f %p'" recovery_target_timeline=latest hot_standby=on
  pg_start stock
  wait_for -m 'recovery to the end of raw/' pg_replayed stock "$lsn"
  is "$(table_of stock)" "$(table_of c)" 'a stock standby recovers from raw/ across the promotions to its end'
  pg_stop stock
  filtered_is_wal "$lsn"
  rm -rf "$T/ref" "$T/blank"
}

table_of() { sql "$1" "SELECT count(*), sum(hashtext(t::text)::bigint) FROM t"; }

# State and bytes of a filter that was stopped and went along are those of one that read it all afterwards.
same_filtered() {
  local f bad='' n=0
  for f in "$2"/0000* "$2"/states/0000*; do
    f=${f#"$2"/}
    n=$((n + 1))
    case $f in
    # Of the growing file as much as both have.
    *.partial) cmp "$1/$f" "$2/$f" >"$T/cmp" 2>&1 || [[ $(<"$T/cmp") = *'EOF on'* ]] || bad+=" $f" ;;
    # A position below a switch has either timeline.
    states/*) cmp -s <(state_of "$1/$f") <(state_of "$2/$f") || bad+=" $f" ;;
    *) cmp -s "$1/$f" "$2/$f" || bad+=" $f" ;;
    esac
  done
  is "$bad" '' "bytes and states of the filter that went along are the same, $n files"
}

state_of() { sed 's/^position [0-9]* /position /; /^end /d' "$1"; }

# filtered_is_wal END: every timeline's segments, up to there, are read by PostgreSQL.
filtered_is_wal() {
  local tli begin end n=0
  pg_bin
  if [ ! -x "$PGBIN/pg_waldump" ]; then
    # The rig's 16 has only the server: recovery reads it.
    pg_adopt blank "$T/blank"
    pg_upstream blank ''
    pg_conf blank "restore_command='cp $T/st/filtered/%f %p'" recovery_target_timeline=latest
    pg_start blank
    ok 'recovery reads filtered/ over both switches' wait_for pg_replayed blank "$1"
    pg_stop blank
    return
  fi
  # From segment to segment, as their names say: that of a switch has the descendant's.
  ws-history path --from "$(oldest_in "$T/st/filtered")" --to "$1" "$T/st/filtered" >"$T/ranges"
  while read -r tli begin end; do
    begin=$(segment_of "$begin")
    [ "$end" = "$(padded "$1")" ] || end=$(segment_of "$end")
    "$PGBIN/pg_waldump" -p "$T/st/filtered" -t "$tli" -s "$begin" -e "$end" >"$T/dump" 2>"$T/dump.err"
    is "$?:$(grep -v 'first record is after' "$T/dump.err")" '0:' "pg_waldump reads timeline $tli of filtered/ from $begin to $end"
    is "$(wc -l <"$T/dump")" "$("$PGBIN/pg_waldump" -p "$T/st/raw" -t "$tli" -s "$begin" -e "$end" 2>/dev/null | wc -l)" 'as many records as in raw/'
    n=$((n + $(wc -l <"$T/dump")))
  done <"$T/ranges"
  is "$(cut -d ' ' -f 1 "$T/ranges" | tr '\n' ' ')" '1 2 3 ' 'all three'
  cmp_is "$n" -gt 1000 'with many records'
}

segment_of() { lsn_text $(($(lsn_num "$1") / 1048576 * 1048576)); }
padded() { printf '%X/%08X' $(($(lsn_num "$1") >> 32)) $(($(lsn_num "$1") & 0xFFFFFFFF)); }
oldest_in() {
  local f
  f=$(cd "$1" && echo 0000*)
  f=${f%% *}
  lsn_text $((16#${f:16:8} * 1048576))
}

# The connection drops and the endpoint is another server, two timelines on; killed at each step.
behind() {
  local at
  primary
  standby b
  standby c b
  receive "$(hosts a b c)"
  load a 2000
  ok 'from the primary of three hosts' wait_for received_from a
  # The old primary dies with everything replayed.
  stop rcv
  load a 1000
  wait_for -m 'the standbys' pg_replayed c "$(pg_lsn a)"
  pg_kill a
  pg_promote b
  load b 6000
  wait_for -m 'the cascade' pg_replayed c "$(pg_lsn b)"
  pg_stop b
  pg_promote c
  load c 500
  for at in PQputCopyEnd: PQsendQuery:TIMELINE_HISTORY:1 PQsendQuery:TIMELINE_HISTORY:2 linkat:00000002.history \
    PQsendQuery:"TIMELINE 2" pwrite:raw/00000002 pwrite:raw/00000002:2 rename:pos/received PQputCopyEnd: PQsendQuery:TIMELINE_HISTORY:2 \
    linkat:00000003.history PQsendQuery:"TIMELINE 3" pwrite:raw/00000003 rename:pos/received; do
    LD_PRELOAD=$TOP/build/prog/dieat.so DIE_AT=$at bg rcv ws-receive --state "$T/st" -d "$(hosts a b c)" -S ws
    ok "killed at $at" wait_for -t 60 not_alive rcv || stop rcv
  done 2>/dev/null # bash reports each
  receive "$(hosts a b c)"
  ok 'two timelines are walked' wait_for received_from c
  is "$(tli_received)" 3 'to the newest'
  same_wal c 3 'the same bytes after kills at each step'
  ok 'every history on the way' test -e "$T/st/raw/00000002.history"
  stop rcv
  pg_stop c
}

# The fork at a segment's start, exactly at the end of what we have.
boundary() {
  primary
  standby b
  receive "$(hosts a b)"
  load a 1000
  sql a 'SELECT pg_switch_wal()' >/dev/null
  wait_for -m 'the standby' pg_replayed b "$(sql a 'SELECT pg_current_wal_flush_lsn()')"
  ok 'up to the switch' wait_for received_from a
  stop rcv
  pg_kill a
  pg_promote b
  load b 500
  receive "$(hosts a b)"
  ok 'a fork at a segment boundary' wait_for received_from b
  is "$(($(lsn_num "$(switch_of 00000002)") % 1048576))" 0 'it was one'
  same_wal b 2 'the same bytes'
  stop rcv
  # Promoted twice more before the segment is full, while nobody reads.
  pg_upstream b ''
  again b
  again b
  load b 12000
  bg rcv ws-receive --state "$T/st" -d "$(pg_conninfo b)"
  ok 'two forks in one segment, without a slot' wait_for received_from b
  is "$(tli_received)" 4 'to the newest timeline'
  is "$(($(lsn_num "$(switch_of 00000003)") / 1048576))" "$(($(lsn_num "$(switch_of 00000004)") / 1048576))" 'it was one'
  same_wal b 4 'the same bytes on the last'
  ok "the segment has the last timeline's name" test -e "$T/st/raw/$(sql b "SELECT pg_walfile_name('$(switch_of 00000004)'::pg_lsn)")"
  stop rcv
  pg_stop b
}

# again NAME: a primary becomes a standby of nobody and is promoted.
again() {
  pg_stop "$1"
  touch "$T/$1/standby.signal"
  pg_start "$1"
  pg_promote "$1"
}

# ---- what is refused, and nothing moves ----

# ends REASON DESC CONNINFO [OPTION...]: refused; with the slot ws unless there are options.
ends() {
  local before
  before=$(moved)
  [ $# -gt 3 ] || set -- "$@" -S ws
  status_is 3 "$2" timeout 60 ws-receive --state "$T/st" -d "$3" --metrics "$T/rcv.prom" "${@:4}"
  like "${ERR##*$'\n'}" "reason=$1\$" "$2: the reason"
  is "$(moved)" "$before" "$2: nothing moved"
}

# The old primary was ahead of the standby: whole segments, and one that other consumers saw.
ahead() {
  local fork
  primary
  standby b
  receive "$(pg_conninfo a)"
  load a 1000
  wait_for -m 'the standby' pg_replayed b "$(pg_lsn a)"
  pg_stop b immediate
  load a 30000
  ok 'more from the old primary' wait_for received_from a
  stop rcv
  pg_kill a
  pg_upstream b ''
  pg_start b
  pg_promote b
  load b 3000
  fork=$(tail -n 1 "$T/b/pg_wal/00000002.history" | cut -f 2)
  not_ok 'what was received lies past the fork' lsn_ge "$fork" "$(pos_lsn "$T/st/pos/received")"
  cp "$T/st/pos/received" "$T/st/pos/sent.x"
  ends published_past_fork 'sent past the fork' "$(pg_conninfo b)"
  like "$(tail -n 1 "$T/st/log/timelines.log")" '"event":"refused".*"reason":"published_past_fork"' 'and in the log of timelines'
  is "$(metric 'timeline_switch_failures_total{reason="published_past_fork"}')" 1 'and in the metrics'
  echo "1 $fork" >"$T/st/pos/sent.x"
  receive "$(pg_conninfo b)" --metrics "$T/rcv.prom"
  ok 'sent up to the fork only: goes on' wait_for_is 2 tli_received
  ok 'on the new timeline' wait_for received_from b
  same_wal b 2 'the same bytes'
  cmp_is "$(find "$T/st/raw" -name '*.abandoned' | wc -l)" -ge 2 'whole segments past the fork are set aside'
  stop rcv
  cmp_is "$(metric timeline_abandoned_bytes_total)" -ge 2097152 'and counted'
  # The old primary, promoted where it ended: the same id, another switch.
  pg_upstream a ''
  touch "$T/a/standby.signal"
  pg_start a
  pg_promote a
  ends sibling_branch 'a sibling of the same id with another history' "$(pg_conninfo a)"
  pg_stop a
  pg_stop b
}

# Two standbys and ws-receive have all of a primary, which is gone.
siblings() {
  primary
  standby b
  standby c
  receive "$(pg_conninfo a)"
  load a 1000
  wait_for -m 'both' pg_replayed b "$(pg_lsn a)"
  wait_for -m 'both' pg_replayed c "$(pg_lsn a)"
  ok 'all of the primary' wait_for received_from a
  stop rcv
  pg_kill a
}

slot_is() { [ "$(sql b "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'ws'")" = "$1" ]; }

# Two standbys promoted at the same place; a server that knows nothing of us; slots.
others() {
  siblings
  pg_promote b
  pg_promote c
  load b 300
  load c 300
  receive "$(pg_conninfo b)"
  ok 'one of two siblings' wait_for received_from b
  stop rcv
  is "$(tail -n 1 "$T/b/pg_wal/00000002.history" | cut -f 2)" "$(tail -n 1 "$T/c/pg_wal/00000002.history" | cut -f 2)" 'they have the same history'
  ends sibling_branch 'a sibling with the same history' "$(pg_conninfo c)"
  sql b "SELECT pg_drop_replication_slot('ws')" >/dev/null
  ends slot_missing 'no slot there' "$(pg_conninfo b)"
  load b 300
  sql b "SELECT pg_switch_wal()" >/dev/null
  load b 300
  # What was received last is of a segment that the server has removed.
  pg_conf b wal_keep_size=0
  pg_reload b
  sql b CHECKPOINT
  ends wal_missing 'WAL that the server does not have any more' "$(pg_conninfo b)" -v
  sql b "SELECT pg_create_physical_replication_slot('ws', true)" >/dev/null
  ends slot_too_new 'a slot that was made later' "$(pg_conninfo b)"
  pg_conf b max_slot_wal_keep_size=1MB min_wal_size=2MB max_wal_size=2MB
  pg_reload b
  for _ in {1..20}; do
    ! slot_is lost || break
    sql b "INSERT INTO t SELECT FROM generate_series(1, 30000)" "SELECT pg_switch_wal()" CHECKPOINT >/dev/null
  done
  ok 'the promoted server has given a slot up' slot_is lost
  ends slot_lost 'a slot that is lost' "$(pg_conninfo b)"
  # The old primary is back, on the timeline that was left.
  pg_start a
  ends timeline_not_descendant 'the old primary' "$(pg_conninfo a)"
  pg_stop a
  pg_stop b
  pg_stop c
  pg_new d --wal-segsize=1
  ends system_id_changed 'another cluster' "$(pg_conninfo d)"
  pg_stop d
}

# A timeline that was left before ours began: the ids of our way are 1 and 3.
gap() {
  siblings
  pg_promote b
  pg_stop c
  cp -a "$T/c" "$T/behind"
  # c saw that there is a timeline 2, and takes the next.
  cp "$T/b/pg_wal/00000002.history" "$T/archived.history"
  pg_upstream c ''
  pg_conf c "restore_command='test %f = 00000002.history && cp $T/archived.history %p'" recovery_target_timeline=current
  pg_start c
  pg_promote c
  load c 500
  is "$(sql c 'SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)')" 00000003 'the new timeline is 3'
  receive "$(pg_conninfo c)"
  ok 'ids with a gap' wait_for received_from c
  is "$(tli_received)" 3 'from 1 to 3'
  same_wal c 3 'the same bytes'
  # A stock standby asks for the history of every id: ws-walsend has an answer to 2, too.
  pg_adopt behind "$T/behind"
  pg_conf behind "primary_conninfo='host=$T/st/run port=5432 user=x'"
  bg send ws-walsend --state "$T/st" -D "$T/st/raw" --no-gate
  pg_start behind
  wait_for -m 'replay over the gap' pg_replayed behind "$(pos_lsn "$T/st/pos/received")"
  is "$(table_of behind)" "$(table_of c)" 'a stock standby behind ws-walsend goes over the gap'
  pg_stop behind
  stop send
  rm -rf "$T/behind"
  # Whoever follows 2 is on a branch that 3 does not come from.
  stop rcv
  pg_stop c
  rm -rf "$T/st"
  sql b "SELECT pg_drop_replication_slot('ws')" "SELECT pg_create_physical_replication_slot('ws', true)" >/dev/null
  receive "$(pg_conninfo b)"
  load b 100
  ok 'on the sibling' wait_for received_from b
  stop rcv
  pg_stop b
  pg_start c
  ends timeline_not_descendant 'a sibling with a higher id' "$(pg_conninfo c)"
  pg_stop c
}

# shellcheck disable=SC2086 # words
promote_major() { for_parts ${WS_PROMOTE_PARTS:-serving behind boundary ahead others gap}; }

for_majors promote_major
done_testing
