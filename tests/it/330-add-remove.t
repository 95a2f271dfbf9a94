#!/usr/bin/env bash
# Tables added to and removed from a running consumer.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

add_remove() {
  # shellcheck disable=SC2034 # pipe.sh reads it
  S=$T/state$PG_MAJOR
  ch_start ch
  pg_new src
  sql src 'CREATE TABLE a (id int PRIMARY KEY)' 'INSERT INTO a VALUES (1)' \
    'CREATE TABLE b (id int PRIMARY KEY, v text)' "INSERT INTO b SELECT g, 'old' FROM generate_series(1, 3000) g"
  printf 'table public.a\n' >"$T/routes"
  ok 'a consumer of one table' pipe_init src --routes "$T/routes" || return
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'postgres' AND name = 'public_b'")" 0 'the other is left out'
  sql src 'DELETE FROM b WHERE id <= 1000' "UPDATE b SET v = 'new' WHERE id > 2500"
  printf 'table public.b\n' >>"$T/routes"
  ok 'it is added' walshadow add public.b 2>>"$T/add.err"
  sql src 'INSERT INTO b VALUES (5000, NULL)' 'INSERT INTO a VALUES (2)' 'DELETE FROM b WHERE id = 2000'
  ok 'and goes on with the first' pipe_drain src
  pipe_compare src postgres
  status_is 2 'a consumer that is not there is refused' walshadow add --consumer none public.b
  ok 'it is removed' walshadow remove public.b 2>>"$T/add.err"
  wait_for -m 'the rule' grep -q '^exclude public.b' "$T/routes"
  sql src 'INSERT INTO a VALUES (3)'
  ok 'the first goes on' pipe_drain src
  sql src 'DELETE FROM b' 'INSERT INTO a VALUES (4)'
  ok 'without the removed one' pipe_drain src
  is "$(ch 'SELECT count() FROM postgres.public_a FINAL')" 4 'whose rows arrive'
  is "$(ch 'SELECT count() FROM postgres.public_b FINAL WHERE _is_deleted = 0')" 2000 'and whose old table stays'
  # What it missed meanwhile comes with it.
  sql src "INSERT INTO b VALUES (7000, 'missed')"
  pipe_drain src
  sed -i '/^exclude public.b/d' "$T/routes"
  ok 'it is added again' walshadow add public.b 2>>"$T/add.err"
  sql src "INSERT INTO b VALUES (7001, 'seen')"
  ok 'and goes on' pipe_drain src
  pg_to_ch_compare src public.b postgres.public_b 'it equals the source'
  : >"$T/add.err"
  ok 'a table that is loaded' walshadow add public.b 2>>"$T/add.err"
  like "$(cat "$T/add.err" "$S/log/"*)" 'public.b was loaded before, and is not loaded again' 'is said not to be loaded again'
  ok 'the consumer is paused' walshadow pause 2>>"$T/add.err"
  like "$(walshadow status)" 'consumer.main +paused' 'which the status tells'
  sql src 'INSERT INTO a VALUES (5)' 'CREATE TABLE c (id int)' 'DROP TABLE c'
  wait_for -m 'what is written to be decoded by nobody' pos_ge "$S/pos/captured.$(sql src "SELECT oid FROM pg_database WHERE datname = 'postgres'")" "$(pg_lsn src)"
  is "$(ch 'SELECT count() FROM postgres.public_a FINAL')" 4 'nothing comes'
  ok 'and goes on' walshadow resume main 2>>"$T/add.err"
  ok 'where it was' pipe_drain src
  is "$(ch 'SELECT count() FROM postgres.public_a FINAL')" 5 'all is there'
  ch 'ALTER TABLE postgres.public_a DELETE WHERE id < 3 SETTINGS mutations_sync = 2'
  status_is 2 'a table that is not there' walshadow reload public.nothing
  ok 'a table is loaded again' walshadow reload public.a 2>>"$T/add.err"
  sql src 'INSERT INTO a VALUES (6)' 'DELETE FROM a WHERE id = 2'
  ok 'and goes on from there' pipe_drain src
  pg_to_ch_compare src public.a postgres.public_a 'it equals the source'
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE postgres'
}

for_majors add_remove
done_testing
