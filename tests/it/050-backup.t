#!/usr/bin/env bash
# ws-backup: a shadow's data directory out of a base backup, catalogs alone; the shadow starts on
# filtered WAL, becomes consistent, takes queries; what goes wrong leaves nothing half made.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/shadow.sh"

fill_source() {
  sql src 'CREATE TABLE big (id int PRIMARY KEY, v text)' \
    "INSERT INTO big SELECT g, repeat(md5(g::text), 60) FROM generate_series(1, 20000) g" \
    'CREATE TABLE small (a int, e text)' 'CREATE UNLOGGED TABLE ul (a int)' 'INSERT INTO ul VALUES (1)' \
    "SELECT lo_from_bytea(0, convert_to(repeat('x', 1000000), 'UTF8'))" \
    'CREATE DATABASE other' "SELECT pg_replication_origin_create('o1')" \
    'VACUUM FULL pg_class' 'REINDEX TABLE pg_attribute' 'VACUUM FULL pg_authid' 'VACUUM FULL pg_largeobject' >/dev/null
  sql src/other 'VACUUM FULL pg_proc' 'CREATE TABLE there AS SELECT g FROM generate_series(1, 5000) g'
  mkdir -p "$T/space"
  sql src "CREATE TABLESPACE sp LOCATION '$T/space'" 'CREATE TABLE sp_t (a int) TABLESPACE sp' \
    'INSERT INTO sp_t SELECT generate_series(1, 1000)' 'CREATE DATABASE spdb TABLESPACE sp'
  sql src/spdb 'CREATE TABLE in_space AS SELECT g FROM generate_series(1, 1000) g'
}

# What the shadow shows of a query on both.
same_query() {
  is "$(shadow_sql "$1" "$2")" "$(sql "src/$1" "$2")" "$3"
}

backup_major() {
  local other=18 bin
  S=$T/st
  pg_init src
  pg_conf src autovacuum=off max_connections=77 max_locks_per_transaction=99 max_prepared_transactions=7
  pg_start src
  fill_source
  printf '%s\n' 'BEGIN;' 'CREATE TABLE prepared (a int);' "PREPARE TRANSACTION 'p1';" | sql src
  shadow_receive src || return

  # What must be refused, each before the source is asked for its files.
  [ "$PG_MAJOR" != 18 ] || other=17
  bin=$("$TOP/tests/rig/pg" $other)
  status_is 2 'programs of another major' ws-backup --state "$S" -d "$(pg_conninfo src)" --bindir "$bin"
  like "$ERR" "same major" 'it says so'
  status_is 2 'no programs' ws-backup --state "$S" -d "$(pg_conninfo src)" --bindir "$T/nowhere"
  mkdir "$S/shadow"
  echo x >"$S/shadow/file"
  pg_bin
  status_is 2 'a directory that is not empty' ws-backup --state "$S" -d "$(pg_conninfo src)" --bindir "$PGBIN"
  rm -r "$S/shadow"
  echo '1 0/1000000' >"$S/pos/captured.5"
  status_is 3 'a state that has captures' ws-backup --state "$S" -d "$(pg_conninfo src)" --bindir "$PGBIN"
  like "$ERR" 'reason=backup_above_captured' 'the reason is named'
  rm "$S/pos/captured.5"

  # Cancelled by the server in its middle, and killed: nothing is there that could be started.
  bg backup ws-backup --state "$S" -d "$(pg_conninfo src)" --bindir "$PGBIN" --max-rate 1MB
  ok 'members arrive' wait_for members_arrive
  sql src "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'ws-backup'" >/dev/null
  wait_exit backup
  is "$STATUS" 1 'a cancelled backup is temporary'
  ok 'nothing is left of it' test ! -e "$S/shadow" -a ! -e "$S/shadow.tmp" -a ! -e "$S/pos/backup"
  bg backup ws-backup --state "$S" -d "$(pg_conninfo src)" --bindir "$PGBIN" --max-rate 1MB
  ok 'members arrive' wait_for members_arrive
  kill9 backup
  ok 'a killed one has no data directory' test ! -e "$S/shadow" -a ! -e "$S/pos/backup"

  # The real one, while the source works.
  sql src/postgres 'INSERT INTO small SELECT g, g FROM generate_series(1, 1000) g' 'VACUUM FULL pg_proc' &
  status_is 0 'the backup' shadow_backup src
  wait $!
  ok 'its end is announced' pos_ge "$S/pos/backup" "$(pos_lsn "$S/pos/backup.start")"
  ok 'nothing temporary is left' test ! -e "$S/shadow.tmp"
  is "$(stat -c %a "$S/shadow")" 700 'only we may read it'
  status_is 0 'done is done: a second run only announces' shadow_backup src
  rm "$S/pos/backup"
  status_is 0 'one that died before it announced' shadow_backup src
  ok 'is announced now' test -s "$S/pos/backup"
  ok 'it is small' test "$(du -sm "$S/shadow" | cut -f1)" -lt "$(du -sm "$T/src/base" | cut -f1)"
  ok 'the shadow starts' shadow_start src || return

  # It stands at the backup's end, which is the gate before the first capture.
  shadow_sleeps_at "$(pos_lsn "$S/pos/backup")"
  is "$(shadow_sql postgres 'SELECT pg_is_in_recovery()')" t 'it is a standby'
  same_query postgres 'SELECT count(*), sum(hashtext(c::text)) FROM pg_attribute c' 'pg_attribute'
  for name in max_connections max_locks_per_transaction max_prepared_transactions; do
    same_query postgres "SHOW $name" "$name"
  done
  stop walsend
  bg walsend ws-walsend --state "$S" --no-gate
  sql src 'CREATE TABLE later (x int, y numeric(10,2))' 'ALTER TABLE small ADD COLUMN late int DEFAULT 7' \
    "COMMIT PREPARED 'p1'" 'INSERT INTO later SELECT 1, 2 FROM generate_series(1, 1000)'
  ok 'it follows' shadow_drain src
  for db in postgres other spdb template1; do
    same_query "$db" "SELECT relname, relnatts, relfilenode, ctid, xmin FROM pg_class ORDER BY oid" "pg_class of $db"
  done
  same_query postgres 'SELECT * FROM pg_replication_origin' 'origins'
  same_query postgres "SELECT oid, spcname FROM pg_tablespace ORDER BY 1" 'tablespaces'
  is "$(shadow_user_pages src)" '' 'no page of a user relation, none of a large object'
  # A crash of the shadow, and one in the middle of everything.
  kill9 shadow
  rm -f "$S/shadow/postmaster.pid"
  kill9 filter
  shadow_filter
  sql src 'CREATE TABLE after_crash (a int)'
  stop walsend
  ok 'a killed shadow starts again' shadow_start src --no-gate || return
  ok 'and follows' shadow_drain src
  same_query postgres "SELECT relname FROM pg_class WHERE oid >= 16384 ORDER BY oid" 'its tables'
  stop shadow INT
  proc_stop_all
  rm -rf "$S" "$T/src" "$T/space"
}

members_arrive() { [ -n "$(find "$S/shadow.tmp" -name PG_VERSION)" ]; }

shadow_sleeps_at() {
  wait_for -t 20 -m "replay at $1" shadow_is_at "$1" && pass "it is parked at the backup's end" && return
  fail "it is parked at the backup's end" "replay at $(shadow_sql postgres 'SELECT pg_last_wal_replay_lsn()'), end $1"
}

shadow_is_at() { [ "$(lsn_num "$(shadow_sql postgres 'SELECT pg_last_wal_replay_lsn()')")" = "$(lsn_num "$1")" ]; }

for_majors backup_major

status_is 2 'no state' ws-backup -d x
status_is 2 'a bad checkpoint' ws-backup --state "$T" --checkpoint now -d x
status_is 2 'a bad rate' ws-backup --state "$T" --max-rate 1kB -d x
status_is 2 'operands' ws-backup --state "$T" x
done_testing
