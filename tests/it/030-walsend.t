#!/usr/bin/env bash
# ws-walsend feeding a stock standby: everything arrives, the gate parks replay exactly after each
# boundary of a followed database, kills and reconnects move nothing, garbage is answered.
. "$(dirname "$0")/lib/it.sh"

SEED=${WS_SEED:-$$}
RANDOM=$SEED
note "seed $SEED (WS_SEED repeats it)"

replay() { sql sb 'SELECT pg_last_wal_replay_lsn()'; }

# set_pos NAME LSN: as a tool writes a position.
set_pos() {
  echo "1 $2" >"$T/st/pos/$1.tmp"
  mv "$T/st/pos/$1.tmp" "$T/st/pos/$1"
}

walsend() {
  bg send ws-walsend --state "$T/st" -D "$T/st/raw" -v --keepalive 0.5 --metrics "$T/send.prom" "$@"
}

replay_is() { [ "$(replay)" = "$1" ]; }
replay_ge() { lsn_ge "$(replay)" "$1"; }
caught_up() { pos_ge "$T/st/pos/received" "$(sql src 'SELECT pg_current_wal_flush_lsn()')"; }

# ddl DATABASE SQL: one transaction; prints the end of its commit.  Nothing else writes here.
ddl() { sql "src/$1" "$2" 'SELECT pg_current_wal_flush_lsn()'; }

# stays LSN: replay is there and does not move.
stays() {
  wait_for -m "replay at $1" replay_is "$1" || return 1
  sleep 0.3
  replay_is "$1"
}

setup() {
  pg_init src --wal-segsize=1
  pg_conf src autovacuum=off wal_keep_size=512MB checkpoint_timeout=1h
  pg_start src
  rm -rf "$T/st"
  sql src 'CREATE DATABASE other' 'CREATE TABLE t (a int, b text)'
  bg rcv ws-receive --state "$T/st" -d "$(pg_conninfo src)"
  wait_for test -s "$T/st/pos/received"
  pg_tool pg_basebackup
  run "$PGTOOL" -d "$(pg_conninfo src)" -D "$T/base" -c fast -X none || die "no base backup: $ERR"
  pg_adopt sb "$T/base"
  pg_conf sb "primary_conninfo='host=$T/st/run port=5432 user=ws'" hot_standby=on \
    wal_retrieve_retry_interval=100ms wal_receiver_status_interval=1
  touch "$T/sb/standby.signal"
}

test_gate() {
  local db end lsns=() i
  setup
  # Before the first capture the gate is the backup's end.
  end=$(sql src "SELECT pg_current_wal_flush_lsn()")
  set_pos backup "$end"
  ddl postgres 'CREATE TABLE early (a int)' >/dev/null
  walsend
  pg_start sb
  ok 'the shadow is parked at pos/backup' stays "$end"
  is "$(sql sb "SELECT to_regclass('early') IS NULL")" t 'what came later is not there'

  db=$(sql src "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  for i in 1 2 3 4 5 6; do
    sql src "INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, $((RANDOM % 3000))) g"
    lsns+=("$(ddl postgres "CREATE TABLE d$i (a int)")")
    sql src "INSERT INTO t SELECT g, 'y' FROM generate_series(1, 100) g"
    ddl other "CREATE TABLE o$i (a int)" >/dev/null
  done
  set_pos "captured.$db" "$end"
  wait_for replay_ge "$(sql src "SELECT '$end'::pg_lsn + 1")"
  # "early" is the first boundary.
  wait_for_is t sql sb "SELECT to_regclass('early') IS NOT NULL"
  end=$(replay)
  for i in 0 1 2 3 4 5; do
    set_pos "captured.$db" "$end"
    ok "boundary $((i + 1)): replay is exactly the commit's end" stays "${lsns[i]}"
    is "$(sql sb "SELECT count(*) FROM pg_class WHERE relname ~ '^d[0-9]'")" $((i + 1)) 'and the shadow shows it and no later one'
    if [ $((i % 2)) = 0 ]; then
      kill9 send
      walsend
      ok 'after a kill of ws-walsend it is still held' stays "${lsns[i]}"
      wait_for_is 1 sql sb 'SELECT count(*) FROM pg_stat_wal_receiver'
    fi
    if [ "$i" = 3 ]; then
      pg_kill sb
      pg_start sb
      ok 'after a kill of the shadow too' stays "${lsns[i]}"
    fi
    end=${lsns[i]}
  done
  set_pos "captured.$db" "$end"
  end=$(sql src 'SELECT pg_current_wal_flush_lsn()')
  ok 'without a boundary nothing holds, also not those of a database that is not followed' wait_for replay_is "$end"
  is "$(sql sb/other "SELECT to_regclass('o6') IS NOT NULL")" t 'the other database has its tables'
  wait_for grep -q 'walsend_held_seconds_total [0-9.]*[1-9]' "$T/send.prom"
  ok 'the held time is counted' grep -q 'walsend_held_seconds_total [0-9.]*[1-9]' "$T/send.prom"
  ok 'the replay position is written' wait_for pos_ge "$T/st/pos/shadow.replay" "$end"

  # Captured ahead of the WAL's next boundary: not held.  A second database that comes is.
  sql src 'CREATE DATABASE third' # a boundary for every database
  end=$(sql src 'SELECT pg_current_wal_flush_lsn()')
  set_pos "captured.$db" "$end"
  ok 'a boundary already captured does not hold' wait_for replay_is "$end"
  set_pos "captured.$(sql src "SELECT oid FROM pg_database WHERE datname = 'other'")" "$end"
  end=$(ddl other 'CREATE TABLE o7 (a int)')
  sql src 'INSERT INTO t VALUES (1, 2)'
  ok 'a database that is followed from now on holds' stays "$end"

  # A commit record of many messages, over pages and segments.
  set_pos "captured.$(sql src "SELECT oid FROM pg_database WHERE datname = 'other'")" "$end"
  end=$(sql src "DO \$\$ BEGIN FOR i IN 1..3000 LOOP EXECUTE format('CREATE TABLE m%s (a int)', i); END LOOP; END \$\$" \
    'SELECT pg_current_wal_flush_lsn()')
  ddl postgres 'CREATE TABLE after_m (a int)' >/dev/null
  ok 'a commit record over many pages is a boundary like any' stays "$end"
  set_pos "captured.$db" "$end"
  wait_for_is t sql sb "SELECT to_regclass('after_m') IS NOT NULL"
  set_pos "captured.$db" "$(sql src 'SELECT pg_current_wal_flush_lsn()')"
}

# Kills of everything while WAL flows and nothing is followed but caught up at once.
test_kills() {
  local i end loader
  stop send
  walsend --no-gate
  for i in 1 2 3 4 5 6; do
    sql src "INSERT INTO t SELECT g, repeat('z', 200) FROM generate_series(1, $((RANDOM % 20000))) g" &
    loader=$!
    sleep "0.$((RANDOM % 4))"
    case $((RANDOM % 3)) in
    0) kill9 send && walsend --no-gate ;;
    1) kill9 rcv && bg rcv ws-receive --state "$T/st" -d "$(pg_conninfo src)" ;;
    2) pg_kill sb && pg_start sb ;;
    esac
    wait "$loader"
  done
  end=$(sql src 'SELECT pg_current_wal_flush_lsn()')
  ok 'after random kills everything arrives' wait_for -t 60 replay_ge "$end"
  is "$(sql sb 'SELECT count(*), sum(a::bigint), md5(string_agg(b, NULL ORDER BY a, b)) FROM t')" \
    "$(sql src 'SELECT count(*), sum(a::bigint), md5(string_agg(b, NULL ORDER BY a, b)) FROM t')" 'and equals the source'
  not_ok 'no invalid record was ever seen behind the end' \
    grep -Eq 'incorrect resource manager data checksum|unexpected pageaddr' "$T/sb.err"
}

# Other clients, and bytes that are no client's.
test_clients() {
  local conn="host=$T/st/run port=5432 replication=true user=x" out
  pg_tool psql
  like "$("$PGTOOL" -XAt -d "$conn" -c IDENTIFY_SYSTEM)" \
    "^$(sql src 'SELECT system_identifier FROM pg_control_system()')\|1\|" 'IDENTIFY_SYSTEM'
  is "$("$PGTOOL" -XAt -d "$conn" -c 'SHOW wal_segment_size')" 1MB 'SHOW'
  like "$("$PGTOOL" -XAt -d "$conn" -c 'START_REPLICATION 0/100000' 2>&1)" 'already been removed' 'WAL that is gone'
  like "$("$PGTOOL" -XAt -d "$conn" -c 'START_REPLICATION FFFF/0 TIMELINE 1' 2>&1)" 'ahead of the WAL flush' 'WAL to come'
  like "$("$PGTOOL" -XAt -d "$conn" -c 'TIMELINE_HISTORY 9' 2>&1)" 'could not open' 'no history'
  like "$("$PGTOOL" -XAt -d "host=$T/st/run port=5432 user=x" -c 'SELECT 1' 2>&1)" 'only replication' 'no SQL'
  pg_tool pg_receivewal
  rm -rf "$T/pr"
  mkdir "$T/pr"
  bg prw "$PGTOOL" -D "$T/pr" -d "$conn" -n
  sql src "INSERT INTO t SELECT g, repeat('w', 200) FROM generate_series(1, 20000) g" 'SELECT pg_switch_wal()' >/dev/null
  # shellcheck disable=SC2016 # for the shell that is called
  ok 'pg_receivewal is served beside the shadow' wait_for bash -c 'ls "$T"/pr/*[0-9A-F]'
  stop prw INT
  for out in "$T"/pr/*[0-9A-F]; do
    same_file "$out" "$T/src/pg_wal/$(basename "$out")" "its $(basename "$out") is the server's"
  done
  # shellcheck disable=SC2016 # perl's variables
  status_is 0 'garbage does no harm' perl -e '
    use IO::Socket::UNIX; srand($ARGV[1]);
    my $junk = sub { join "", map { chr int rand 256 } 1 .. 1 + int rand 200 };
    my $start = "\0\3\0\0user\0x\0replication\0true\0\0"; $start = pack("N", 4 + length $start) . $start;
    for my $i (1 .. 400) {
      my $s = IO::Socket::UNIX->new($ARGV[0]) or die "connect: $!";
      $SIG{PIPE} = "IGNORE"; my $k = int rand 5; my $q;
      if ($k == 0) { print $s $junk->() }
      elsif ($k == 1) { print $s $start . $junk->() }
      elsif ($k == 2) { $q = $junk->() . "\0"; print $s $start . "Q" . pack("N", 4 + length $q) . $q }
      elsif ($k == 3) { $q = "START_REPLICATION " . $junk->() . "\0"; print $s $start . "Q" . pack("N", 4 + length $q) . $q }
      else { $q = "IDENTIFY_SYSTEM\0"; print $s $start . "Q" . pack("N", 4 + length $q) . $q . "d" . pack("N", 4 + int rand 40) . $junk->() }
      $s->flush; shutdown $s, 1; if ($i % 7 == 0) { my $b; 1 while sysread $s, $b, 65536 } close $s;
    }' "$T/st/run/.s.PGSQL.5432" "$SEED"
  ok 'the server lives' alive send
  is "$("$PGTOOL" --version >/dev/null; stat -c %a "$T/st/run")" 700 'its directory is its owner'\''s'
  is "$(stat -c %a "$T/st/run/.s.PGSQL.5432")" 700 'and the socket'
  ok 'the shadow goes on' wait_for replay_ge "$(sql src 'SELECT pg_current_wal_flush_lsn()')"
  status_is 1 'one server a socket' ws-walsend --state "$T/st" -D "$T/st/raw"
  stop send
  is "$STATUS" 0 'TERM ends it in order'
}

test_usage() {
  local t
  for t in '' '-D x' '-p 0 --state x' '-p 70000 --state x' '--keepalive x --state x' '--bogus' 'operand' '-D /nonexistent -k /tmp/x'; do
    # shellcheck disable=SC2086 # options
    status_is 2 "bad usage: $t" ws-walsend $t
  done
}

test_major() {
  test_gate
  test_kills
  test_clients
}
for_majors test_major
test_usage
done_testing
