#!/usr/bin/env bash
# First capture while a transaction with more subtransactions than shared memory holds was open at the
# backup: the shadow takes no queries at the backup's end, and the record that lets it is behind the gate.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

open_subxacts() {
  {
    echo 'BEGIN;'
    for ((i = 1; i <= 100; i++)); do printf 'SAVEPOINT s%d; INSERT INTO t VALUES (1000 + %d, %d);\n' $i $i $i; done
    echo 'CREATE TABLE hidden (id int PRIMARY KEY);'
    echo "SELECT pg_sleep(1000);"
  } >"$T/holder.sql"
  pg_tool psql
  bg holder "$PGTOOL" -Xqt -v ON_ERROR_STOP=1 -f "$T/holder.sql" "$(pg_conninfo o)"
  wait_for -m 'the open transaction' sleeping
}
sleeping() { [ "$(sql o "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND pid <> pg_backend_pid()")" = 1 ]; }
end_it() { sql o "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND pid <> pg_backend_pid()" >/dev/null; }
refused() { grep -q 'the shadow refuses connections' "$S/log/catalog.log"; }
moved() { grep -q 'the first capture is at' "$S/log/catalog.log"; }

overflow() {
  S=$T/state$PG_MAJOR
  ch_start ch
  pg_new o
  sql o 'CREATE TABLE t (id int PRIMARY KEY, v int)' 'CREATE TABLE other (id int PRIMARY KEY)' 'INSERT INTO t VALUES (1, 1)' 'INSERT INTO other VALUES (1)'
  open_subxacts
  export WALSHADOW_STATE=$S
  pg_bin
  bg init "$(type -P walshadow)" init -d "host=$T/s port=${PG_PORT[o]} user=postgres" --database postgres --url "$CH_URL" --bindir "$PGBIN"
  ok 'the shadow refuses connections at the end of the backup' wait_for -t 60 refused || { pipe_logs; cat "$T/init.err" >&2; }
  like "$(cat "$S/log/shadow.log")" 'consistent|recovery snapshot' 'it has replayed it'
  sql o 'CREATE TABLE later (id int PRIMARY KEY)' 'INSERT INTO later VALUES (7)'
  end_it
  sql o CHECKPOINT
  ok 'the place of the first capture moves' wait_for -t 60 moved
  wait_exit init 200
  is "$STATUS" 0 'and everything is set up'
  unlike "$(ws-catalog list --state "$S")" hidden 'what was not committed is not there'
  like "$(ws-catalog list --state "$S")" 'public\.later' 'what was committed since the backup is'
  sql o 'INSERT INTO t VALUES (2, 2)' 'ALTER TABLE other ADD COLUMN d int' 'INSERT INTO other VALUES (2, 3)'
  ok 'it follows' pipe_drain o
  pipe_compare o postgres
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE postgres'
}

for_majors overflow
done_testing
