#!/usr/bin/env bash
# Commits that touch temporary relations alone need no capture: they are recognised by what the WAL says
# was made, whatever else happens, and the history and the destination are as if all had been captured.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/shapes.sh"

passed() { metric_now walshadow_catalog_temporary_boundaries_total; }
boundaries() { metric_now walshadow_catalog_boundaries_total; }
metric_now() {
  local v
  v=$(sed -n "s/^$1 //p" "$S/metrics/ws-catalog.prom")
  echo "${v%.*}"
}

# captured_only PASSED ALL DESC: so many boundaries more needed no capture, of so many more in all.
# The file is written once a second.
captured_only() {
  counted() { [ "$(boundaries) $(passed)" = "$((ALL + $2)) $((PASSED + $1))" ]; }
  pipe_drained src "$3" || return
  wait_for -t 30 -m "$3" counted "$1" "$2" && pass "$3" ||
    fail "$3" "boundaries: $(($(boundaries) - ALL)), of which temporary: $(($(passed) - PASSED)), wanted: $2 $1"
  ALL=$(boundaries) PASSED=$(passed)
}

# One session's SQL, each argument a commit of its own.
session() {
  local args=() s
  for s; do args+=(-c "$s"); done
  psql_bounded -Xqt -v ON_ERROR_STOP=1 -d "$(pg_conninfo src app)" "${args[@]}" >"$T/session.out" 2>&1 || fail 'SQL' "$(head -n 5 "$T/session.out")"
}

same_history() {
  local db
  db=$(sql src "SELECT oid FROM pg_database WHERE datname = 'app'")
  shapes_of_source src/app >"$T/source.shapes"
  shapes_of_history "$S/catalog" "$db" >"$T/history.shapes"
  is "$(diff "$T/source.shapes" "$T/history.shapes" | head -n 5)" '' "$1: the history is the source's catalogs"
}

temporary() {
  local i db old file
  S=$T/state$PG_MAJOR
  ch_start ch
  ch 'DROP DATABASE IF EXISTS app' 2>/dev/null
  pg_init src
  # Images of pages, too.
  pg_conf src autovacuum=off max_connections=12 wal_compression="$( ((PG_MAJOR % 2)) && echo pglz || echo off)"
  pg_start src
  sql src 'CREATE DATABASE app'
  sql src/app 'CREATE TABLE keep (id serial PRIMARY KEY, v text)' "CREATE TYPE mood AS ENUM ('a')"
  ok 'set up' pipe_init src/app || return
  pg_temp_schemas src/app
  pipe_drained src 'begin' || return
  proc_nap 1.2
  ALL=$(boundaries) PASSED=$(passed)

  session 'BEGIN; CREATE TEMP TABLE a (id serial PRIMARY KEY, v text, w numeric[]) ON COMMIT DROP; INSERT INTO a (v) VALUES (repeat(md5(random()::text), 200)); INSERT INTO keep (v) SELECT v FROM a; COMMIT'
  captured_only 1 1 'made and dropped in one'
  session CHECKPOINT 'CREATE TEMP TABLE a (id int PRIMARY KEY, v text)' 'INSERT INTO keep (v) VALUES (1)' 'DROP TABLE a'
  captured_only 2 2 'right after a checkpoint, dropped by another commit'
  session 'CREATE TEMP TABLE a (id int, v text)' 'CREATE INDEX ON a (id)' 'DROP TABLE a'
  captured_only 2 3 'a third commit is captured'
  session 'BEGIN; SAVEPOINT s; CREATE TEMP TABLE a (id int PRIMARY KEY); ROLLBACK TO s; CREATE TEMP TABLE b AS SELECT 1 AS x; CREATE TEMP VIEW c AS SELECT * FROM b; SAVEPOINT t; CREATE TEMP TABLE d (b b, c b[]); RELEASE t; DROP VIEW c; DROP TABLE d, b; COMMIT'
  captured_only 1 1 'views, subtransactions, row types as columns'

  session 'BEGIN; CREATE TEMP TABLE a (id int) ON COMMIT DROP; CREATE TABLE made (id int PRIMARY KEY, m mood); COMMIT' "INSERT INTO made VALUES (1, 'a')"
  captured_only 0 1 'a permanent table beside it'
  session "BEGIN; CREATE TEMP TABLE a (id int) ON COMMIT DROP; ALTER TYPE mood ADD VALUE 'b'; COMMIT" "INSERT INTO made VALUES (2, 'b')"
  captured_only 0 1 'a label beside it'
  session "BEGIN; CREATE TEMP TABLE a (id int) ON COMMIT DROP; CREATE DOMAIN money2 AS numeric(9, 2); CREATE TYPE pair AS (x int, y mood); COMMIT" 'ALTER TABLE made ADD p pair, ADD m2 money2 DEFAULT 5' "INSERT INTO made VALUES (3, 'b', (1, 'a'), 3.25)"
  captured_only 0 2 'types beside it'
  session 'BEGIN; CREATE TEMP TABLE a (id int) ON COMMIT DROP; ALTER TABLE keep ADD n int DEFAULT 7; COMMIT' "INSERT INTO keep (v) VALUES ('n')"
  captured_only 0 1 'an ALTER TABLE beside it'
  session 'CREATE TEMP TABLE a (m int) INHERITS (keep)' 'DROP TABLE a'
  captured_only 1 2 'the child of a permanent table'
  session 'BEGIN; CREATE TEMP TABLE a (id int) ON COMMIT DROP; CREATE UNLOGGED TABLE u (id int PRIMARY KEY); COMMIT' 'ALTER TABLE u SET LOGGED' 'INSERT INTO u VALUES (1)'
  captured_only 0 2 'an unlogged table beside it'
  same_history 'beside others'

  session 'VACUUM FULL pg_class' 'CREATE TEMP TABLE a (id int)' 'DROP TABLE a' 'VACUUM FULL pg_type' 'CREATE TEMP TABLE a (id int)' 'DROP TABLE a'
  captured_only 4 6 'pg_class and pg_type are rewritten'

  # What was made before the restart is not known after it, and captured.
  bg holder psql -Xqt "$(pg_conninfo src app)" -c 'CREATE TEMP TABLE a (id int)' -c 'SELECT pg_advisory_lock(1)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql src "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  captured_only 1 1 'a session that lasts'
  # The page that it begins with is not that one.
  sql src 'SELECT pg_switch_wal()' >/dev/null
  sql src/app "INSERT INTO keep (v) VALUES ('next segment')"
  pipe_drained src 'the next segment' || return
  pipe_kill9 catalog
  sql src/app "INSERT INTO keep (v) VALUES ('killed')"
  sql src "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted" >/dev/null
  wait_for not_alive holder
  pipe_drained src 'a restart between' || return
  proc_nap 1.2
  ALL=$(boundaries) PASSED=$(passed)
  cmp_is "$ALL" -ge 1 'after a restart the drop is captured'
  is "$PASSED" 0 'as anything that was not seen made'

  # After a power failure the position's file may be older, or empty, and the shadow ahead of it: what
  # was made before is not seen again, but what was passed is known.
  db=$(sql src "SELECT oid FROM pg_database WHERE datname = 'app'")
  bg holder psql -Xqt "$(pg_conninfo src app)" -c 'CREATE TEMP TABLE a (id int)' -c 'SELECT pg_advisory_lock(1)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql src "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  captured_only 1 1 'another session that lasts'
  sql src 'SELECT pg_switch_wal()' >/dev/null
  sql src/app "INSERT INTO keep (v) VALUES ('before')"
  pipe_drained src 'before a power failure' || return
  old=$(<"$S/pos/captured.$db")
  sql src "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted" >/dev/null
  wait_for not_alive holder
  captured_only 1 1 'its end needs no capture'
  sql src/app "INSERT INTO keep (v) VALUES ('past it')"
  pipe_drained src 'past its end' || return
  for file in "$old" ''; do
    ok 'it stops, as by a power failure' pipe_stop
    printf '%s' "${file:+$file$'\n'}" >"$S/pos/captured.$db"
    ok 'and starts' pipe_start
    sql src/app "INSERT INTO keep (v) VALUES ('after')"
    pipe_drained src "goes on from ${file:-nothing}" || return
  done
  proc_nap 1.2
  ALL=$(boundaries) PASSED=$(passed)

  # A column of a temporary table's row type: the type is kept as long as the column is there, with its name.
  bg holder psql -Xqt "$(pg_conninfo src app)" -c 'CREATE TEMP TABLE a (id int)' -c 'CREATE TABLE odd (k int PRIMARY KEY, a a, b a[])' -c 'INSERT INTO odd (k) VALUES (1)' -c 'ALTER TABLE a RENAME TO renamed' -c 'SELECT pg_advisory_lock(1)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql src "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  captured_only 1 3 'a permanent table with columns of its row type, which gets another name'
  same_history 'a row type that is used'
  sql src "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted" >/dev/null
  wait_for not_alive holder
  pipe_drained src 'the end' || return
  session 'CREATE TEMP TABLE a (id int)' 'CREATE TABLE odd2 (k int PRIMARY KEY, a a)' 'DROP TABLE odd2' 'DROP TABLE a'
  pipe_drained src 'a row type that was used' || return
  same_history 'the end'
  pipe_compare src app
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE app'
}

for_majors temporary
done_testing
