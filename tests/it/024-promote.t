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

# The server that we are connected to is promoted, in the middle of a segment, under load; twice.
serving() {
  primary
  standby b
  standby c b
  receive "$(pg_conninfo b)"
  load a 3000
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
  receive "$(pg_conninfo c)"
  load b 2000
  ok 'from the cascaded standby' wait_for received_from b
  pg_stop b
  pg_promote c
  load c 1000
  ok 'the next promotion' wait_for_is 3 tli_received
  ok 'to its end' wait_for received_from c
  same_wal c 3 'the same bytes again'
  stop rcv
  is "$STATUS" 0 'it ends in order'
  pg_stop c
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
  pg_stop b
}

# ---- what is refused, and nothing moves ----

# ends REASON DESC CONNINFO
ends() {
  local before
  before=$(moved)
  status_is 3 "$2" timeout 60 ws-receive --state "$T/st" -d "$3" -S ws
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
  echo "1 $fork" >"$T/st/pos/sent.x"
  receive "$(pg_conninfo b)"
  ok 'sent up to the fork only: goes on' wait_for_is 2 tli_received
  ok 'on the new timeline' wait_for received_from b
  same_wal b 2 'the same bytes'
  cmp_is "$(find "$T/st/raw" -name '*.abandoned' | wc -l)" -ge 2 'whole segments past the fork are set aside'
  stop rcv
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
  sql b CHECKPOINT
  sql b "SELECT pg_create_physical_replication_slot('ws', true)" >/dev/null
  ends slot_too_new 'a slot that was made later' "$(pg_conninfo b)"
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

promote_major() {
  local part
  for part in ${WS_PROMOTE_PARTS:-serving behind boundary ahead others gap}; do
    # shellcheck disable=SC2034 # tap.sh uses it
    TAP_PREFIX="[$PG_MAJOR] $part: "
    "$part"
  done
}

for_majors promote_major
done_testing
