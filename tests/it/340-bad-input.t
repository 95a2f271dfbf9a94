#!/usr/bin/env bash
# Bad input and bad circumstances: a clear message, the documented exit status, nothing moved.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

# A source with some WAL, and a copy of one whole segment of it in $T/seg.
some_wal() {
  local first
  pg_new src --wal-segsize=1
  sql src 'CREATE TABLE t (id int PRIMARY KEY, v text)' "INSERT INTO t SELECT g, repeat('x', 50) FROM generate_series(1, 20000) g"
  first=$(sql src "SELECT pg_walfile_name(pg_current_wal_lsn() - 1048576)")
  mkdir -p "$T/seg"
  rm -f "$T"/seg/*
  cp "$T/src/pg_wal/$first" "$T/seg/"
  SEG=$T/seg/$first
}

# flip FILE OFFSET: one bit.
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  # shellcheck disable=SC2059
  printf "\\x$(printf %02x $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

offline() {
  some_wal
  status_is 0 'a good segment is filtered' ws-filter -q -D "$T/out$PG_MAJOR" "$SEG"
  cp "$SEG" "$T/good"
  flip "$SEG" 500000
  status_is 3 'a flipped bit stops' ws-filter -q -D "$T/out-flip$PG_MAJOR" "$SEG"
  like "$ERR" "$(basename "$SEG")|[0-9A-F]+/[0-9A-F]+" 'and is located'
  like "$ERR" 'reason=' 'with a reason'
  cp "$T/good" "$SEG"
  truncate -s 700000 "$SEG"
  run ws-filter -q -D "$T/out-cut$PG_MAJOR" "$SEG"
  isnt "$STATUS" 0 'a truncated segment is no success'
  like "$ERR" '[0-9A-F]+/[0-9A-F]+|bytes' 'and says where it ends'
  cp "$T/good" "$SEG"
  # Another cluster's segment of the same name and place.
  pg_new other --wal-segsize=1
  while ! lsn_ge "$(pg_lsn other)" "$(pg_lsn src)"; do
    sql other 'SELECT pg_switch_wal()' 'CREATE TABLE IF NOT EXISTS x (a int)' 'INSERT INTO x VALUES (1)' >/dev/null
  done
  sql other 'SELECT pg_switch_wal()' >/dev/null
  mkdir -p "$T/foreign"
  rm -f "$T"/foreign/*
  cp "$T/good" "$T/foreign/$(basename "$SEG")"
  local next
  next=$(sql src "SELECT pg_walfile_name(pg_walfile_offset_lsn) FROM (SELECT pg_current_wal_lsn() AS pg_walfile_offset_lsn) x")
  cp "$T/other/pg_wal/$next" "$T/foreign/" 2>/dev/null || cp "$T/other/pg_wal/$(basename "$SEG")" "$T/foreign/$next"
  run ws-filter -q -D "$T/out-foreign$PG_MAJOR" "$T/foreign"
  is "$STATUS" 3 'a foreign segment stops'
  like "$ERR" 'system identifier' 'and both identifiers are named'
  like "$ERR" 'reason=system_id_changed' 'as a reason'
}

old_wal() {
  local wal
  PG_MAJOR=14
  pg_new old
  wal=$(sql old 'SELECT pg_walfile_name(pg_current_wal_lsn())')
  run ws-filter -q -D "$T/out14" "$T/old/pg_wal/$wal"
  isnt "$STATUS" 0 'WAL of PostgreSQL 14 is refused'
  like "$ERR" '14' 'by its name'
  status_is 2 'ws-receive refuses a PostgreSQL 14 server' ws-receive -q -n -D "$T/raw14" -d "$(pg_conninfo old)"
  like "$ERR" '14' 'by its version'
  not_ok 'and wrote nothing' compgen -G "$T/raw14/*0*"
}

replica_level() {
  pg_init low
  pg_conf low wal_level=replica
  pg_start low
  S=$T/low-state
  export WALSHADOW_STATE=$S
  pg_bin
  status_is 2 'check refuses wal_level=replica' walshadow check -d "host=$T/s port=${PG_PORT[low]} user=postgres" --database postgres --url "$CH_URL" --bindir "$PGBIN"
  like "$OUT" 'problem: .*wal_level=replica' 'and says so'
  sql low 'CREATE TABLE nokey (a int)'
  status_is 2 'and so does init' walshadow init -d "host=$T/s port=${PG_PORT[low]} user=postgres" --database postgres --url http://127.0.0.1:1 --bindir "$PGBIN"
  like "$OUT" 'problem: .*wal_level' 'all problems at once: the level,'
  like "$OUT" 'problem: .*nokey' 'the table without a key,'
  like "$OUT" 'problem: destination' 'the destination'
  not_ok 'and nothing was made' test -e "$S"
}

password() {
  pg_new secret
  sql secret "CREATE ROLE r LOGIN REPLICATION PASSWORD 'right'"
  printf 'local all postgres trust\nlocal all all scram-sha-256\nlocal replication all scram-sha-256\n' >"$T/secret/pg_hba.conf"
  pg_reload secret
  local conn="host=$T/s port=${PG_PORT[secret]} user=r"
  printf '*:*:*:r:wrong\n' >"$T/pgpass"
  chmod 600 "$T/pgpass"
  wait_for -m 'the new pg_hba.conf' not_connects
  PGPASSFILE=$T/pgpass run ws-receive -q -n -D "$T/raw-secret" -d "$conn"
  isnt "$STATUS" 0 'a wrong password ends it'
  like "$ERR" 'password authentication failed' 'with the message of the server'
  unlike "$ERR" 'wrong' 'and without the password'
  printf '*:*:*:r:right\n' >"$T/pgpass"
  PGPASSFILE=$T/pgpass status_is 0 'the right one from PGPASSFILE is taken' ws-receive -q -n -D "$T/raw-secret" -d "$conn" -E "$(pg_lsn secret)"
}
not_connects() { ! PGPASSWORD=wrong psql -XAtq -h "$T/s" -p "${PG_PORT[secret]}" -U r -c 'SELECT 1' postgres; }

destination_down() {
  S=$T/down-state$PG_MAJOR
  pg_new up
  sql up 'CREATE TABLE t (id int PRIMARY KEY, v text)' 'INSERT INTO t VALUES (1)'
  ok 'set up' pipe_init up || return
  ok 'the destination dies' ch_kill ch
  sql up 'INSERT INTO t SELECT g FROM generate_series(2, 1000) g'
  wait_for -t 30 -m 'ws-emit to complain' grep -qiE 'refused|connect' "$S/log/emit.main.log"
  ok 'status shows why' wait_for -t 10 status_refused
  ok 'and it keeps trying' pipe_pid emit.main
  damaged_raw
  ok 'all arrives when it is back' pipe_drain up
  pipe_compare up postgres
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE postgres'
}

# A flipped bit in WAL that is durable and waits for the destination: ws-decode says so once.
damaged_raw() {
  local lsn file at
  sql up "INSERT INTO t VALUES (1001, 'damaged_row')"
  lsn=$(sql up 'SELECT pg_current_wal_insert_lsn()')
  DBOID=$(sql up "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  wait_for -t 30 -m 'the row captured' pos_ge "$S/pos/captured.$DBOID" "$lsn"
  pipe_stop
  file=$(LC_ALL=C grep -lUa damaged_row "$S"/raw/0000* | sort | tail -n 1)
  at=$(LC_ALL=C grep -obUa damaged_row "$file" | tail -n 1 | cut -d: -f1)
  ok 'a row to damage' test -n "$at"
  flip "$file" "$at"
  ch_start ch
  pipe_start
  ok 'damaged WAL stops the consumer' wait_for -t 30 status_failed
  like "$(tail -n 1 "$S/log/decode.main.log")" '[0-9A-F]+/[0-9A-F]+.*reason=wal_corrupt' 'where, and the reason'
  pipe_stop
  flip "$file" "$at"
  pipe_start
}

status_refused() {
  local status
  status=$(walshadow status 2>&1)
  [[ $status =~ ws-emit:.*([Cc]onnect|refused) ]]
}

# A table that gets no key while everything runs stops its consumer by default, and nothing is lost.
keyless() {
  S=$T/keyless-state$PG_MAJOR
  pg_new kl
  sql kl 'CREATE TABLE t (id int PRIMARY KEY)'
  ok 'set up' pipe_init kl || return
  sql kl 'INSERT INTO t VALUES (1)' 'CREATE TABLE bad (a int)' 'INSERT INTO bad VALUES (1)' 'INSERT INTO t VALUES (2)'
  wait_for -t 30 -m 'the consumer to stop' grep -q 'reason=' "$S/log/emit.main.log"
  like "$(tail -n 1 "$S/log/emit.main.log")" 'bad.*reason=' 'the table and the reason are named'
  ok 'status says so' wait_for -t 10 status_failed
  sql kl 'ALTER TABLE bad ADD PRIMARY KEY (a)'
  printf 'exclude public.bad\n' >"$T/keyless.routes"
  printf 'WS_EMIT_ROUTES=%s\n' "$T/keyless.routes" >>"$S/consumer/main/config"
  pipe_stop
  ok 'with a rule it goes on' pipe_start
  ok 'and nothing of the others was lost' pipe_drain kl
  is "$(ch 'SELECT count() FROM postgres.public_t FINAL')" 2 'both rows are there'
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE postgres'
}
status_failed() {
  local status
  status=$(walshadow status 2>&1)
  [[ $status =~ consumer.main\ *FAILED\ status=3 ]]
}

ch_start ch
for_majors offline
TAP_PREFIX='[14] ' old_wal
proc_check
PG_MAJOR=${WS_MAJORS##* }
ch_start ch
replica_level
password
destination_down
keyless
done_testing
