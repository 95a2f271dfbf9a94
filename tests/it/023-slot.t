#!/usr/bin/env bash
# ws-slot: physical slots on one server, what is proved of them, and a slot that is kept on two standbys
# under load until one of them is promoted.
. "$(dirname "$0")/lib/it.sh"

slot() { ws-slot "$@" -d "$(pg_conninfo "${SERVER:-src}")"; }
# of SERVER SLOT COLUMN
of() { sql "$1" "SELECT $3 FROM pg_replication_slots WHERE slot_name = '$2'"; }
last_line() { echo "${1##*$'\n'}"; }
load() { sql src "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, ${1:-5000}) g"; }
lsn_pad() { printf '%X/%08X\n' "$((16#${1%/*}))" "$((16#${1#*/}))"; }

# refused STATUS REASON DESC COMMAND...
refused() {
  status_is "$1" "$3" "${@:4}"
  like "$(last_line "$ERR")" "reason=$2\$" 'with its reason, last'
  is "$OUT" '' 'and nothing on standard output'
}

# ---- one server ----
basics() {
  local before end
  status_is 1 'create without anybody to tell it to' sh -c 'exec ws-slot create ws -d "$1" >/dev/full' sh "$(pg_conninfo src)"
  is "$(of src ws slot_name)" '' 'leaves no slot'
  status_is 0 'create' slot create ws
  like "$OUT" "^slot=ws type=physical active=no restart_lsn=$(lsn_pad "$(of src ws restart_lsn)") timeline=1 wal_status=reserved" \
    'prints where it begins, with the timeline'
  status_is 2 'create again' slot create ws
  like "$ERR" 'already exists' 'says why'
  before=$(of src ws restart_lsn)
  status_is 0 'create --if-not-exists' slot create ws --if-not-exists
  is "$(of src ws restart_lsn)" "$before" 'leaves it as it is'
  sql src "SELECT pg_create_logical_replication_slot('lg', 'pgoutput'), pg_create_physical_replication_slot('un')" >/dev/null
  refused 3 slot_wrong_type 'create --if-not-exists on a logical slot' slot create lg --if-not-exists
  refused 3 slot_lost 'and on one that reserves nothing' slot create un --if-not-exists
  like "$ERR" 'reserves no WAL' 'says so'

  end=$(pg_lsn src)
  refused 3 slot_missing 'verify: missing' slot verify none --lsn "$end"
  refused 3 slot_wrong_type 'verify: logical' slot verify lg --lsn "$end"
  refused 3 slot_lost 'verify: reserves nothing' slot verify un --lsn "$end"
  refused 3 slot_too_new 'verify: too new' slot verify ws --lsn 0/100
  refused 3 timeline_not_descendant 'verify: a timeline that is not the server'"'"'s' slot verify ws --lsn "$end" --tli 7
  status_is 0 'verify' slot verify ws --lsn "$before" --tli 1 --unused
  like "$OUT" '^slot=ws .*timeline=1' 'prints the slot'

  status_is 0 'show' slot show
  is "$(cut -d' ' -f1,2 "$T/out")" $'slot=lg type=logical\nslot=un type=physical\nslot=ws type=physical' 'lists all slots'
  like "$OUT" 'slot=lg type=logical plugin=pgoutput database=postgres confirmed_flush_lsn=' 'a logical one with its database'
  status_is 0 'show as JSON' slot show ws -F json
  perl -MJSON::PP -e '$s = decode_json(<STDIN>); print join " ", $s->{slot}, $s->{type}, $s->{timeline}, $s->{active} ? 1 : 0,
    $s->{retained_bytes} > 0 ? 1 : 0, $s->{database} // "null", exists $s->{inactive_since} ? 1 : 0, defined $s->{inactive_since} ? 1 : 0' \
    <"$T/out" >"$T/json"
  is "$(cat "$T/json")" "ws physical 1 0 1 null 1 $((PG_MAJOR >= 17))" 'has all members, as the major has them'
  status_is 0 'show, with the connection in parts' ws-slot show ws -h "$T/s" -p "${PG_PORT[src]}" -U postgres
  like "$OUT" '^slot=ws ' 'is the same'
  refused 3 slot_missing 'show a missing one' slot show none
}

moving() {
  local at end
  load
  at=$(of src ws restart_lsn) end=$(sql src 'SELECT pg_current_wal_flush_lsn()')
  status_is 1 'advance past the end' slot advance ws --lsn 7/0
  like "$ERR" 'has flushed .* only' 'says what there is'
  is "$(of src ws restart_lsn)" "$at" 'and does not move'
  status_is 0 'advance' slot advance ws --lsn "$end"
  is "$(of src ws restart_lsn)" "$end" 'to exactly there'
  status_is 0 'again' slot advance ws --lsn "$end"
  refused 3 slot_too_new 'advance backwards' slot advance ws --lsn "$at"
  is "$(of src ws restart_lsn)" "$end" 'does not move'
  refused 3 slot_missing 'advance a missing one' slot advance none --lsn "$end"
  refused 3 slot_wrong_type 'advance a logical one' slot advance lg --lsn "$end"
}

received() { pos_ge "$T/st/pos/received" "$(sql src 'SELECT pg_current_wal_flush_lsn()')"; }
active() { [ "$(of "$1" "$2" active)" = t ]; }

in_use() {
  rm -rf "$T/st"
  bg receive ws-receive --state "$T/st" -d "$(pg_conninfo src)" -S ws -s 0.2
  ok 'a receiver has it' wait_for active src ws
  local pid
  pid=$(of src ws active_pid)
  status_is 1 'drop, in use' slot drop ws
  like "$ERR" "active for PID $pid" 'names who has it'
  is "$(of src ws slot_name)" ws 'and it stays'
  status_is 1 'advance, in use' slot advance ws --lsn "$(of src ws restart_lsn)"
  like "$ERR" "pid $pid" 'names who has it'
  ok 'the receiver is up to date' wait_for received
  status_is 0 'verify, in use' slot verify ws --lsn "$(pg_lsn src)"
  like "$OUT" "active=yes pid=$pid" 'says by whom'
  refused 3 slot_in_use 'verify --unused' slot verify ws --lsn "$(pg_lsn src)" --unused
  like "$ERR" "pid $pid" 'says by whom'
}

dropping() {
  refused 3 slot_missing 'drop a missing one' slot drop none
  status_is 0 'drop --if-exists' slot drop none --if-exists
  refused 3 slot_wrong_type 'drop a logical one' slot drop lg
  is "$(of src lg slot_name)" lg 'it stays'
  sql src "SELECT pg_drop_replication_slot('lg')" >/dev/null
  status_is 0 'drop' slot drop un
  is "$(of src un slot_name)" '' 'it is gone'
}

# ---- a lost slot, on a server of its own ----
is_lost() {
  sql other "SELECT pg_switch_wal()" "INSERT INTO o VALUES (1)" "SELECT pg_switch_wal()" \
    "INSERT INTO o VALUES (1)" "SELECT pg_switch_wal()" "INSERT INTO o VALUES (1)" CHECKPOINT >/dev/null
  [ "$(of other old wal_status)" = lost ]
}

lost() {
  local SERVER=other
  pg_init other --wal-segsize=1
  pg_conf other max_slot_wal_keep_size=2MB min_wal_size=2MB max_wal_size=4MB autovacuum=off
  pg_start other
  sql other 'CREATE TABLE o (i int)'
  slot create old >/dev/null
  ok 'a server gives a slot up' wait_for is_lost
  refused 3 slot_lost 'verify' slot verify old --lsn "$(pg_lsn other)"
  ((PG_MAJOR < 17)) || like "$ERR" 'cause wal_removed' 'with the cause'
  refused 3 slot_lost 'create --if-not-exists' slot create old --if-not-exists
  refused 3 slot_lost 'advance' slot advance old --lsn "$(pg_lsn other)"
  status_is 0 'show' slot show old
  like "$OUT" 'wal_status=lost' 'says it'
  if ((PG_MAJOR < 18)); then
    # 16 and 17 accept a client on it, and the client's position then stands in it.
    rm -rf "$T/pgr" && mkdir "$T/pgr"
    pg_tool pg_receivewal
    bg pgr "$PGTOOL" -D "$T/pgr" -d "$(pg_conninfo other)" -S old -s 1
    ok 'a client uses the lost slot' wait_for active other old
    ok 'which then has a position again' wait_for has_position other old
    refused 3 slot_lost 'verify while it is in use' slot verify old --lsn "$(pg_lsn other)"
    stop pgr INT
    isnt "$(of other old restart_lsn)" '' 'the position stays'
    refused 3 slot_lost 'verify afterwards' slot verify old --lsn "$(pg_lsn other)"
  fi
  status_is 0 'drop a lost one' slot drop old
}
has_position() { [ -n "$(of "$1" "$2" restart_lsn)" ]; }

# ---- standbys ----
standbys() {
  local name
  pg_tool pg_basebackup
  "$PGTOOL" -D "$T/base" -d "$(pg_conninfo src)" -X none -c fast --no-sync 2>"$T/basebackup.log" ||
    die "pg_basebackup: $(tail -n 3 "$T/basebackup.log")"
  rm -rf "$T/base/pg_replslot"/*
  touch "$T/base/standby.signal"
  for name in a b; do
    cp -r "$T/base" "$T/base.$name"
    pg_adopt "$name" "$T/base.$name"
    pg_conf "$name" hot_standby=on wal_retrieve_retry_interval=100ms \
      "primary_conninfo='$(pg_conninfo src)'"
    pg_start "$name"
  done
  rm -rf "$T/base"
}

ensure() { ws-slot ensure "$@" "$T/s:${PG_PORT[a]}" "$(pg_conninfo b)" -d user=postgres; }
replayed() { sql "$1" 'SELECT pg_last_wal_replay_lsn()'; }
caught_up() { lsn_ge "$(replayed "$1")" "$(sql src 'SELECT pg_current_wal_flush_lsn()')"; }
at_source() { [ "$(of "$1" ws restart_lsn)" = "$(of src ws restart_lsn)" ]; }
line_of() { grep "host=$T/s:${PG_PORT[$1]} " "${2:-$T/out}" | tail -n 1; }

confirmed() { lsn_ge "$(of src ws restart_lsn)" "$(replayed a)"; }

# Never past what the source's slot has, nor past what was replayed: the standby's is read first, and
# the others only grow.
never_past() {
  local mine
  mine=$(of "$1" ws restart_lsn)
  if [ -n "$mine" ]; then
    lsn_ge "$(of src ws restart_lsn)" "$mine" || past+=" source:$1:$mine"
    lsn_ge "$(replayed "$1")" "$mine" || past+=" replay:$1:$mine"
  fi
}

ensure_once() {
  ok 'the standbys are up to date' wait_for caught_up a
  wait_for caught_up b
  # A new slot begins where the standby's last restartpoint does.
  load 100
  ok "the source's slot is past where the standbys began" wait_for confirmed
  status_is 0 'ensure on two standbys' ensure ws --from "$(pg_conninfo src)"
  is "$(grep -c . <<<"$OUT")" 2 'a line each'
  like "$(line_of a)" 'state=created slot=ws type=physical active=no restart_lsn=[0-9A-F/]+ timeline=1 .*target_lsn=.* replay_lsn=' \
    'the slot was made'
  like "$(line_of b)" 'state=created' 'on both'
  status_is 0 'again' ensure ws --from "$(pg_conninfo src)"
  like "$(line_of a)" 'state=(kept|moved)' 'it is there'
  status_is 0 'as JSON' ensure ws --from "$(pg_conninfo src)" -F json
  perl -MJSON::PP -ne '$s = decode_json($_); print join(" ", map { $s->{$_} // "null" } qw(slot state timeline error)), "\n";
    print STDERR "no position\n" unless $s->{target_lsn} && $s->{replay_lsn}' <"$T/out" >"$T/json" 2>&1
  like "$(cat "$T/json")" $'^ws (kept|moved) 1 null\nws (kept|moved) 1 null$' 'has the same'
  # A limit.
  local limit
  limit=$(of a ws restart_lsn)
  load 2000
  wait_for received
  wait_for caught_up a
  status_is 0 'ensure --lsn' ws-slot ensure ws --lsn "$limit" "$(pg_conninfo a)"
  is "$(of a ws restart_lsn)" "$limit" 'goes no further'
  status_is 1 'a slot above what is wanted' ws-slot ensure ws --lsn 0/100 "$(pg_conninfo a)"
  like "$OUT" 'state=kept.* reason=slot_too_new' 'is said'
  is "$(of a ws restart_lsn)" "$limit" 'and not moved back'
  refused_all
}

# What ensures nothing.
refused_all() {
  status_is 3 'no slot at the source' ensure none --from "$(pg_conninfo src)"
  like "$(last_line "$ERR")" 'source .*reason=slot_missing$' 'is the reason'
  is "$(of a none slot_name)" '' 'nothing is made'
  status_is 3 'another cluster among the hosts' ws-slot ensure ws --from "$(pg_conninfo src)" "$(pg_conninfo a)" "$(pg_conninfo other)"
  like "$(last_line "$ERR")" 'reason=system_id_changed$' 'is refused'
  is "$(of other ws slot_name)" '' 'and nothing is made on it'
  status_is 3 'a primary without the slot' ws-slot ensure none --lsn "$(pg_lsn src)" "$(pg_conninfo src)"
  like "$(last_line "$ERR")" 'is a primary.*reason=slot_missing$' 'is said'
  is "$(of src none slot_name)" '' 'and none is made'
  sql a "SELECT pg_create_physical_replication_slot('un')" >/dev/null
  status_is 3 'a slot that reserves nothing' ws-slot ensure un --lsn "$(pg_lsn src)" "$(pg_conninfo a)"
  sql a "SELECT pg_drop_replication_slot('un')" >/dev/null
  status_is 1 'a host that cannot be reached' ws-slot ensure ws --from "$(pg_conninfo src)" "host=$T/none" "$(pg_conninfo a)"
  like "$OUT" 'state=failed .*error=.*'$'\n'".*host=$T/s:.* state=(kept|moved)" 'and the others all the same'
}

under_load() {
  local i past=''
  bg ensure ws-slot ensure ws --from "$(pg_conninfo src)" "$T/s:${PG_PORT[a]}" "$(pg_conninfo b)" -d user=postgres --follow 0.1 \
    --metrics "$T/slot.prom"
  for i in 1 2 3 4 5 6; do
    load 3000
    never_past a
    never_past b
  done
  sql b 'SELECT pg_wal_replay_pause()' >/dev/null
  ok 'b replays nothing more' wait_for_is paused sql b 'SELECT pg_get_wal_replay_pause_state()'
  for i in 1 2 3; do
    load 3000
    never_past a
    never_past b
  done
  wait_for received
  ok "a comes to the source's position" wait_for at_source a
  ok 'b to what it has replayed' wait_for at_replay
  ok 'which is less' isnt_at_source b
  sql b 'SELECT pg_wal_replay_resume()' >/dev/null
  ok 'and then to the position' wait_for at_source b
  is "$past" '' 'never past the source or the replay'
  ((PG_MAJOR < 18)) || idle
  [ "$PG_MAJOR" != "${WS_MAJORS##* }" ] || stalled
  # b crashes, and is away for a while.  Its slot begins again where its last restartpoint left it.
  pg_kill b
  ok 'a host that is gone is said' wait_for grep -q "host=$T/s:${PG_PORT[b]} state=failed" "$T/ensure.out"
  load 1000
  wait_for received
  ok 'the other is moved as before' wait_for at_source a
  pg_start b
  ok 'and the first when it is back' wait_for at_source b
  stop ensure
  is "$STATUS" 0 'TERM ends it, with the status of the hosts'
  like "$(cat "$T/slot.prom")" "walshadow_slot_ok\\{host=\"$T/s:${PG_PORT[a]}\"\\} 1" 'metrics say that all is well'
}
# A server that gives up what is idle does not give up what is visited.
idle() {
  sql a "SELECT pg_create_physical_replication_slot('idle', true)" "ALTER SYSTEM SET idle_replication_slot_timeout = '1s'" >/dev/null
  pg_reload a
  ok 'a standby times a slot out' wait_for idle_lost
  is "$(of a ws wal_status)" reserved 'but not the one that is kept'
  sql a "SELECT pg_drop_replication_slot('idle')" 'ALTER SYSTEM RESET idle_replication_slot_timeout' >/dev/null
  pg_reload a
}
idle_lost() {
  sql src CHECKPOINT
  wait_for caught_up a
  sql a CHECKPOINT
  [ "$(of a idle invalidation_reason)" = idle_timeout ]
}
# A server that takes connections and says nothing: one major is as good as another, it takes 10 s.
stalled() {
  local pids
  mapfile -t pids < <(proc_in "$T/b")
  kill -STOP "${pids[@]}"
  load 1000
  wait_for received
  ok 'a host that stands still is said' wait_for grep -q "host=$T/s:${PG_PORT[b]} state=failed .*no answer" "$T/ensure.out"
  ok 'the other is moved as before' wait_for at_source a
  kill -CONT "${pids[@]}"
  ok 'and the first when it goes on' wait_for at_source b
  : >"$T/ensure.out"
}
at_replay() { [ "$(of b ws restart_lsn)" = "$(replayed b)" ]; }
isnt_at_source() { ! at_source "$1"; }

held_and_lost() {
  # Somebody has it on b.
  rm -rf "$T/pgb" && mkdir "$T/pgb"
  pg_tool pg_receivewal
  bg pgb "$PGTOOL" -D "$T/pgb" -d "$(pg_conninfo b)" -S ws -s 60
  wait_for active b ws
  local before
  before=$(of b ws restart_lsn)
  status_is 0 'ensure where it is in use' ensure ws --from "$(pg_conninfo src)"
  like "$(line_of b)" "state=in_use .*pid=$(of b ws active_pid)" 'says so'
  stop pgb INT
  # Lost on a: a slot that nobody moves there.
  sql src "SELECT pg_create_physical_replication_slot('keep', true)" >/dev/null
  status_is 0 'another slot' ws-slot ensure keep --lsn "$(of src keep restart_lsn)" "$(pg_conninfo a)"
  pg_conf a max_slot_wal_keep_size=1MB min_wal_size=2MB max_wal_size=2MB
  pg_reload a
  ok 'is lost on a' wait_for lost_on_a
  sql a 'ALTER SYSTEM SET max_slot_wal_keep_size = -1'
  pg_reload a
  status_is 3 'ensure says so' ws-slot ensure keep --from "$(pg_conninfo src)" "$(pg_conninfo a)"
  like "$OUT" 'state=failed .*wal_status=lost.*reason=slot_lost' 'in its line'
  like "$(last_line "$ERR")" 'reason=slot_lost$' 'and as its reason'
  sql src "SELECT pg_replication_slot_advance('keep', pg_current_wal_flush_lsn())" >/dev/null
  wait_for caught_up a
  status_is 0 'with --recreate' ws-slot ensure keep --from "$(pg_conninfo src)" "$(pg_conninfo a)" --recreate
  like "$OUT" 'state=recreated .*wal_status=reserved' 'it is made anew'
  like "$ERR" 'was lost.* and was dropped.*'$'\n''.*was made anew' 'which is said'
}
lost_on_a() {
  sql src 'SELECT pg_switch_wal()' "INSERT INTO t VALUES (1, '')" 'SELECT pg_switch_wal()' "INSERT INTO t VALUES (1, '')" \
    'SELECT pg_switch_wal()' "INSERT INTO t VALUES (1, '')" CHECKPOINT >/dev/null
  wait_for caught_up a
  # The other slot moves on as it would.
  ensure ws --from "$(pg_conninfo src)" >/dev/null 2>&1
  sql a CHECKPOINT
  [ "$(of a keep wal_status)" = lost ]
}

promotion() {
  local at received fork segment
  load 3000
  wait_for received
  wait_for caught_up a
  status_is 0 'before the promotion' ensure ws --from "$(pg_conninfo src)"
  load 3000
  wait_for received
  wait_for caught_up a
  wait_for caught_up b
  # Kept through the promotion, the source being whichever is the primary.
  bg keeper ws-slot ensure ws --from "host=$T/s,$T/s port=${PG_PORT[src]},${PG_PORT[a]} target_session_attrs=primary" \
    "$(pg_conninfo a)" "$(pg_conninfo b)" -d user=postgres --follow 0.2
  ok 'kept on both' wait_for kept_lines 2
  stop receive
  received=$(pos_lsn "$T/st/pos/received")
  pg_kill src
  sql a 'SELECT pg_promote()' >/dev/null
  at=$(of a ws restart_lsn)
  isnt "$at" '' 'the slot is on the promoted server'
  status_is 0 'and verify says that it keeps what is needed' ws-slot verify ws --lsn "$received" --tli 1 --unused -d "$(pg_conninfo a)"
  sql a CHECKPOINT
  segment=$(printf '00000001%08X%08X' "$((16#${at%/*}))" "$((16#${at#*/} >> 20))")
  ok 'whose WAL is there' test -e "$T/a/pg_wal/$segment"
  fork=$(cut -f 2 "$T/a/pg_wal/00000002.history")
  refused 3 resume_past_fork 'a position past the fork' ws-slot verify ws --lsn "$(lsn_text $(($(lsn_num "$fork") + 1)))" --tli 1 -d "$(pg_conninfo a)"
  status_is 0 'on the new timeline' ws-slot verify ws --lsn "$(pg_lsn a)" --tli 2 -d "$(pg_conninfo a)"

  # b follows a, and the slot there a's.
  pg_conf b "primary_conninfo='$(pg_conninfo a)'"
  pg_reload b
  ok 'b follows' wait_for_is streaming followed_by_b
  sql a "SELECT pg_replication_slot_advance('ws', pg_current_wal_flush_lsn())" >/dev/null
  ok "the keeper brings b's to a's" wait_for b_is_at_a
  ok 'and leaves a, now a primary, alone' wait_for keeper_says a 'state=primary .*timeline=2'
  ok 'b has moved on the new timeline' wait_for keeper_says b 'state=moved .*timeline=2'
  stop keeper
  is "$STATUS" 0 'all is well'
  # The old primary comes back: its branch is not b's.
  pg_start src
  local before
  before=$(of b ws restart_lsn)
  status_is 3 'ensure from the old primary' ws-slot ensure ws --from "$(pg_conninfo src)" "$(pg_conninfo b)"
  like "$(last_line "$ERR")" 'reason=timeline_not_descendant$' 'is refused'
  is "$(of b ws restart_lsn)" "$before" 'and nothing moved'
  status_is 3 'and the old primary as a host' ws-slot ensure ws --from "$(pg_conninfo a)" "$(pg_conninfo src)"
  like "$(last_line "$ERR")" 'past the end of timeline 1.*reason=resume_past_fork$' 'is refused'
}
followed_by_b() { sql a "SELECT state FROM pg_stat_replication WHERE application_name = 'walreceiver'"; }
b_is_at_a() { [ "$(of b ws restart_lsn)" = "$(of a ws restart_lsn)" ]; }
keeper_says() { [[ $(line_of "$1" "$T/keeper.out") =~ $2 ]]; }
kept_lines() { [ "$(wc -l <"$T/keeper.out")" -ge "$1" ]; }

# Every option with a bad value, every command with a wrong operand or option.
usage() {
  local args
  while IFS= read -r args; do
    # shellcheck disable=SC2086 # words
    status_is 2 "usage: ws-slot $args" ws-slot $args
  done <<'EOT'

create
create Wrong
create a b
create a --lsn 0/1
show a --unused
show --format xml
drop
verify a
verify a --lsn 7
verify a --lsn 0/0
verify a --lsn 0/1 --tli x
verify a --lsn 0/1 --tli 0
verify a --lsn 0/1 --recreate
advance a
ensure a
ensure a h
ensure a h --lsn x
ensure a h --lsn 0/1 --follow x
ensure a h --lsn 0/1 --follow 0
ensure a h --lsn 0/1 --if-exists
ensure a dbname=x= --lsn 0/1 -d x=
remove a
EOT
  status_is 1 'a server that cannot be reached' ws-slot verify a --lsn 0/1 -d "host=$T/none"
  like "$ERR" 'cannot connect' 'is said'
  unlike "$ERR" 'reason=' 'and is no matter for an operator'
}

slots() {
  pg_init src --wal-segsize=1
  pg_conf src wal_keep_size=16MB autovacuum=off
  pg_start src
  sql src 'CREATE TABLE t (id int, v text)'
  basics
  moving
  in_use
  dropping
  lost
  standbys
  ensure_once
  under_load
  held_and_lost
  promotion
}

usage
for_majors slots
done_testing
