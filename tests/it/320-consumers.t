#!/usr/bin/env bash
# Two consumers of one copy of the WAL: one rests for the whole run, the other is not held up.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

two() {
  S=$T/state$PG_MAJOR
  ch_start ch
  pg_new src
  sql src 'CREATE TABLE t (id int PRIMARY KEY, v text)' "INSERT INTO t VALUES (1, 'one')"
  printf 'table *.* database=second\n' >"$T/second.routes"
  ok 'the first consumer' pipe_init src || return
  ok 'the second consumer' pipe_init src --consumer second --routes "$T/second.routes" || return
  pg_to_ch_compare src public.t second.public_t 'both were loaded'
  : >"$S/consumer/second/paused"
  wait_for -t 30 -m 'the second to rest' test ! -e "$S/run/consumer.second.pid"
  sql src "INSERT INTO t SELECT g, 'x' FROM generate_series(2, 5000) g" 'ALTER TABLE t ADD COLUMN k int DEFAULT 3' \
    'UPDATE t SET k = id'
  ok 'the first goes on while the second rests' pipe_drain src
  pipe_compare src postgres
  is "$(ch 'SELECT count() FROM second.public_t FINAL')" 1 'the second has what it had'
  rm "$S/consumer/second/paused"
  ok 'the second catches up' pipe_drain src second
  pg_to_ch_compare src public.t second.public_t
  # A third, of another database of the cluster.
  sql src 'CREATE DATABASE other'
  sql src/other 'CREATE TABLE o (id int PRIMARY KEY)' 'INSERT INTO o VALUES (1), (2)'
  ok 'a consumer of another database' pipe_init src/other --consumer third || return
  sql src/other 'INSERT INTO o VALUES (3)' 'ALTER TABLE o ADD COLUMN v text' "INSERT INTO o VALUES (4, 'x')"
  sql src 'DELETE FROM t WHERE id % 3 = 0'
  ok 'the other database arrives' pipe_drain src third
  pipe_compare src other
  ok 'and the first as well' pipe_drain src
  pg_to_ch_compare src public.t postgres.public_t
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE other'
  ch 'DROP DATABASE postgres' && ch 'DROP DATABASE second'
}

for_majors two
done_testing
