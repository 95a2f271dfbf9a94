#!/usr/bin/env bash
# ws-catalog: which commits are boundaries, and the history against the source's own catalogs as of
# every one of them; through kills, restarts, databases that join and go.
. "$(dirname "$0")/lib/it.sh"
# shellcheck source=lib/shapes.sh
. "$IT_LIB/shapes.sh"

S=$T/st

# ---- which statements make boundaries ----

# bound WANTED SQL...: a session that makes so many boundaries (+: some).
bound() {
  local want=$1 before out n
  shift
  before=$(pg_lsn p)
  sql p "$@" >/dev/null || die "SQL: $*"
  sql p 'SELECT pg_switch_wal()' >/dev/null
  out=$(ws-catalog boundaries "$T/p/pg_wal@$before" 2>&1) || out="failed: $out"
  n=$(grep -c ' database=' <<<"$out")
  if [ "$want" = + ] && [ "$n" -gt 0 ]; then want=$n; fi
  [ "$n" = "$want" ] || BOUND_BAD+="$n instead of $want boundaries: $*; "
  BOUND_OUT=$out
  BOUND_COUNT=$((BOUND_COUNT + 1))
}

boundaries() {
  BOUND_BAD='' BOUND_COUNT=0
  sql p 'CREATE SCHEMA s1' 'CREATE TABLE t (id int PRIMARY KEY, v text, n int)' \
    "CREATE TYPE mood AS ENUM ('a', 'b')" 'CREATE TYPE comp AS (a int, b text)' 'CREATE DOMAIN dom AS int' \
    'CREATE TYPE rng AS RANGE (subtype = float8)' 'CREATE SEQUENCE sq' 'CREATE ROLE r1' \
    'CREATE TABLE part (id int, k int) PARTITION BY LIST (k)' 'CREATE TABLE u (id int)' \
    'INSERT INTO t SELECT g, g, g FROM generate_series(1, 1000) g' || die 'SQL'
  bound 1 'ALTER TABLE t ADD COLUMN c int'
  bound 1 'ALTER TABLE t DROP COLUMN c'
  bound 1 'ALTER TABLE t REPLICA IDENTITY FULL'
  bound 1 'CREATE INDEX ti ON t (n)'
  bound 1 'DROP INDEX ti'
  bound 3 'CREATE INDEX CONCURRENTLY ti ON t (n)'
  bound 5 'REINDEX INDEX CONCURRENTLY ti'
  bound 3 'DROP INDEX CONCURRENTLY ti'
  bound 1 'ALTER SCHEMA s1 RENAME TO s2'
  like "$BOUND_OUT" ' namespaces namespace_oids=[0-9]+$' 'a renamed schema is named by its oid alone'
  bound 1 "ALTER TYPE mood ADD VALUE 'c'"
  like "$BOUND_OUT" "label_oids=$(sql p "SELECT oid FROM pg_enum WHERE enumlabel = 'c'")\$" 'a new label is named by its oid'
  bound 1 "ALTER TYPE mood RENAME VALUE 'a' TO 'aa'"
  bound 1 'ALTER DOMAIN dom RENAME TO dom2'
  like "$BOUND_OUT" "type_oids=[0-9,]*$(sql p "SELECT 'dom2'::regtype::oid")" 'a renamed domain is named by its oid'
  bound 1 'ALTER TYPE rng RENAME TO rng2'
  bound 1 'ALTER TYPE comp ADD ATTRIBUTE c int'
  bound 1 'CREATE TABLE t3 (a int)'
  bound 1 'DROP TABLE t3'
  bound 2 'CREATE TEMP TABLE tt (a int)'
  bound 1 'ALTER SEQUENCE sq INCREMENT 2'
  bound 0 'ALTER SEQUENCE sq OWNED BY u.id'
  bound 1 'ANALYZE t'
  bound 0 'ANALYZE t'
  bound 0 "COMMENT ON TABLE t IS 'x'"
  bound 0 'CREATE ROLE r2'
  bound 0 "ALTER ROLE r1 SET work_mem = '1MB'"
  bound 0 "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"
  bound 1 'CREATE PUBLICATION p1 FOR ALL TABLES'
  like "$BOUND_OUT" ' every_database all_relations' 'a publication for all tables asks for everything, everywhere'
  bound 0 'INSERT INTO t VALUES (5000)' 'VACUUM t' "SELECT nextval('sq')" 'SELECT lo_create(0)' \
    "SELECT pg_logical_emit_message(true, 'a', 'b')"
  bound 1 'GRANT SELECT ON t TO r1'
  bound 1 'ALTER TABLE t ALTER n SET STATISTICS 100'
  bound 1 'CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1)'
  bound 1 'ALTER TABLE part DETACH PARTITION part1'
  bound 2 'ALTER TABLE part ATTACH PARTITION part1 FOR VALUES IN (1)' 'ALTER TABLE part DETACH PARTITION part1'
  bound 1 'TRUNCATE t'
  bound 1 'VACUUM FULL t'
  bound 1 'CLUSTER t USING t_pkey'
  bound + 'VACUUM FULL pg_class'
  bound 0 'REINDEX INDEX pg_class_oid_index'
  bound + 'CREATE DATABASE d3'
  bound + 'CREATE DATABASE d4 STRATEGY file_copy'
  bound 1 'ALTER DATABASE d3 RENAME TO d5'
  like "$BOUND_OUT" ' every_database' "a database's change is everybody's boundary"
  bound + 'DROP DATABASE d5' 'DROP DATABASE d4'
  bound 1 'BEGIN' 'CREATE TABLE tp (a int)' "PREPARE TRANSACTION 'x'" "COMMIT PREPARED 'x'"
  bound 0 'BEGIN' 'CREATE TABLE tp2 (a int)' "PREPARE TRANSACTION 'x'" "ROLLBACK PREPARED 'x'"
  bound 0 'BEGIN' 'CREATE TABLE tp2 (a int)' 'ROLLBACK'
  bound 1 'BEGIN' 'SAVEPOINT a' 'CREATE TABLE tp3 (a int)' 'RELEASE a' 'COMMIT'
  bound 0 'BEGIN' 'SAVEPOINT a' 'CREATE TABLE tp4 (a int)' 'ROLLBACK TO a' 'INSERT INTO u VALUES (1)' 'COMMIT'
  bound 1 'DROP PUBLICATION p1'
  bound 1 'DROP SCHEMA s2'
  is "$BOUND_BAD" '' "$BOUND_COUNT statements make the boundaries that they should"
  sql p 'DROP TABLE t, u, part, part1, tp, tp3' 'DROP TYPE mood, comp, rng2' \
    'DROP DOMAIN dom2' 'DROP FUNCTION f' >/dev/null || die 'SQL'
}

# ---- the pipeline up to the catalog ----

start_receive() { bg receive ws-receive --state "$S" -d "$(pg_conninfo p)" -S ws; }
start_filter() { bg filter ws-filter --state "$S" --follow --kept "$S/kept" --no-sync; }
start_walsend() { bg walsend ws-walsend --state "$S"; }
start_catalog() { bg catalog ws-catalog capture -v --state "$S" --metrics "$S/catalog.prom"; }

start_shadow() {
  # shellcheck disable=SC2034,SC2154 # the library's
  PG_MAJOR_OF[shadow]=$PG_MAJOR
  pg_launch shadow
}

follow_database() { # CONSUMER DATABASE
  mkdir -p "$S/consumer/$1"
  printf 'DATABASE=%s\nDATABASE_OID=%s\n' "$2" "$(sql p "SELECT oid FROM pg_database WHERE datname = '$2'")" \
    >"$S/consumer/$1/config"
}

make_shadow() {
  local end
  pg_tool pg_basebackup
  "$PGTOOL" -D "$T/shadow" -d "$(pg_conninfo p)" -X none -c fast --no-sync 2>"$T/basebackup.log" ||
    die "pg_basebackup: $(tail -n 3 "$T/basebackup.log")"
  end=$(sed -n 's/.*"End-LSN": "\([^"]*\)".*/\1/p' "$T/shadow/backup_manifest")
  pg_conf shadow "port=5433" "unix_socket_directories='$S/run'" "listen_addresses=''" hot_standby=on \
    allow_in_place_tablespaces=on autovacuum=off wal_retrieve_retry_interval=100ms \
    "primary_conninfo='host=$S/run port=5432 user=postgres'"
  touch "$T/shadow/standby.signal"
  echo "1 $end" >"$S/pos/backup"
}

start_pipeline() {
  rm -rf "$S" "$T/shadow"
  mkdir -p "$S/pos" "$S/run"
  follow_database a postgres
  ws-receive -q --state "$S" -d "$(pg_conninfo p)" -S ws --create-slot || die 'no slot'
  start_receive
  wait_for -m received test -e "$S/pos/received" || die 'no WAL is received'
  ws-catalog kept -q -d "$(pg_conninfo p)" -o "$S/kept" || die 'no kept list'
  start_filter
  wait_for -m filtered test -e "$S/filtered/state" || die 'nothing is filtered'
  make_shadow
  start_walsend
  start_shadow
  start_catalog
  DB=$(sql p "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  wait_for -t 60 -m 'the first capture' test -e "$S/pos/captured.$DB" || die 'no first capture'
}

captured() { wait_for -t "${2:-90}" -m "captured $1" pos_ge "$S/pos/captured.$DB" "$1"; }

# ---- the history against the source ----

STEPS=0

# Remembers what the source looks like, and where it looks so.
remember() {
  STEPS=$((STEPS + 1))
  STEP_LSN[STEPS]=$(pg_lsn p)
  shapes_of_source p >"$T/want.$STEPS" || die 'cannot read the source'
}

# step SQL...: and waits, so that every boundary of it is met at once.
step() {
  sql p "$@" >/dev/null || die "SQL: $*"
  remember
}

# What differs between the history as of step N and the source then.
step_differs() {
  shapes_of_history "$S/catalog" "$DB" "@${STEP_LSN[$1]}" >"$T/got" 2>"$T/got.err" || cat "$T/got.err"
  diff "$T/want.$1" "$T/got"
}

compare_steps() { # FROM TO DESC
  local i bad=''
  captured "${STEP_LSN[$2]}" 180 || { fail "$3" "$(tail -n 3 "$T/catalog.err")"; return; }
  for ((i = $1; i <= $2; i++)); do
    step_differs "$i" >"$T/diff" && continue
    bad+="step $i at ${STEP_LSN[i]}: $(head -c 1500 "$T/diff")"$'\n'
  done
  is "$bad" '' "$3 ($(($2 - $1 + 1)) positions, $(wc -l <"$T/want.$2") relations and types at the end)"
}

zoo() {
  local first=$((STEPS + 1))
  step "CREATE TYPE mood AS ENUM ('sad', 'ok')" 'CREATE TYPE comp AS (a int, b text)' \
    'CREATE DOMAIN positive AS int CHECK (VALUE > 0)' 'CREATE TYPE rng AS RANGE (subtype = float8)' 'CREATE SCHEMA s1'
  step 'CREATE TABLE a (id int PRIMARY KEY, "Odd ""näme" text, n numeric(10, 2), m mood, ms mood[], c comp, p positive)'
  step 'INSERT INTO a (id) SELECT generate_series(1, 100)'
  step "ALTER TABLE a ADD d1 text DEFAULT E'it''s \"q\" \\\\ {,}\n\ttab', ADD d2 box DEFAULT '(1,1),(0,0)'" \
    "ALTER TABLE a ADD d3 int[] DEFAULT '{1,NULL,3}', ADD d4 text[] DEFAULT '{a,\"b c\",NULL,\"NULL\"}'" \
    "ALTER TABLE a ADD d5 timestamptz DEFAULT '2020-01-01 12:00:00.123456+02', ADD d6 bytea DEFAULT '\\x00ff'"
  step "ALTER TABLE a ADD d7 float8 DEFAULT 0.1::float4, ADD d8 interval DEFAULT '1 mon -2 days 03:04:05'" \
    "ALTER TABLE a ADD d9 date DEFAULT '2020-02-29', ADD e1 mood DEFAULT 'ok', ADD e2 comp DEFAULT '(1,\"x,y\")'" \
    "ALTER TABLE a ADD e3 box[] DEFAULT '{(1,1),(0,0);(2,2),(1,1)}', ADD e4 text DEFAULT '', ADD e5 jsonb DEFAULT '{\"a\": [1, \"b\"]}'" \
    "ALTER TABLE a ADD e6 char(5) DEFAULT 'ab', ADD e7 \"char\" DEFAULT 'x', ADD e8 text DEFAULT 'NULL', ADD e9 positive DEFAULT 7" \
    "ALTER TABLE a ADD f1 text DEFAULT repeat('long ', 1000)"
  step 'ALTER TABLE a DROP COLUMN n, DROP COLUMN d4'
  step 'ALTER TABLE a ADD n2 text' "ALTER TABLE a ALTER id TYPE bigint"
  step "ALTER TYPE mood ADD VALUE 'happy' BEFORE 'ok'"
  step "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"
  step 'ALTER TYPE mood RENAME TO humour' 'ALTER TYPE humour SET SCHEMA s1'
  step 'ALTER TYPE comp ADD ATTRIBUTE c int' 'ALTER TYPE comp RENAME ATTRIBUTE a TO aa'
  step 'ALTER TYPE comp DROP ATTRIBUTE b'
  step 'ALTER DOMAIN positive RENAME TO natural_number'
  step 'ALTER TYPE rng RENAME TO rng2'
  step 'ALTER SCHEMA s1 RENAME TO s2'
  step 'ALTER TABLE a SET SCHEMA s2' 'ALTER TABLE s2.a RENAME TO b'
  step 'ALTER TABLE s2.b RENAME COLUMN m TO mm' 'ALTER TABLE s2.b SET SCHEMA public'
  step 'CREATE TABLE k (a int NOT NULL, b int NOT NULL, c int, x text)' 'CREATE UNIQUE INDEX k_ba ON k (b, a)'
  step 'ALTER TABLE k REPLICA IDENTITY USING INDEX k_ba'
  step 'ALTER TABLE k REPLICA IDENTITY FULL'
  step 'ALTER TABLE k REPLICA IDENTITY NOTHING' 'ALTER TABLE k ADD PRIMARY KEY (a) INCLUDE (c) DEFERRABLE'
  step 'ALTER TABLE k REPLICA IDENTITY DEFAULT'
  step 'ALTER TABLE k DROP CONSTRAINT k_pkey' 'ALTER TABLE k ADD PRIMARY KEY (c, a)'
  step 'ALTER TABLE k REPLICA IDENTITY USING INDEX k_ba' 'DROP INDEX CONCURRENTLY k_ba'
  step 'CREATE UNIQUE INDEX CONCURRENTLY k_x ON k (b) INCLUDE (x)' 'ALTER TABLE k REPLICA IDENTITY USING INDEX k_x' \
    'REINDEX INDEX CONCURRENTLY k_x'
  step 'CREATE UNIQUE INDEX k_partial ON k (a) WHERE a > 0' 'CREATE UNIQUE INDEX k_expr ON k ((a + 1))'
  step "SELECT lo_from_bytea(0, 'x')" 'VACUUM FULL k' 'CLUSTER k USING k_pkey' 'TRUNCATE k'
  step 'BEGIN' 'TRUNCATE k' 'ALTER TABLE k ADD v int DEFAULT random()' 'SAVEPOINT x' 'ALTER TABLE k ADD w int' \
    'ROLLBACK TO x' 'COMMIT'
  step 'CREATE UNLOGGED TABLE ul (a int)' 'ALTER TABLE k SET UNLOGGED'
  step 'ALTER TABLE k SET LOGGED' 'ALTER TABLE ul SET LOGGED'
  step 'CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a + 1) STORED, c int GENERATED BY DEFAULT AS IDENTITY)'
  step 'CREATE TABLE root (id int, k int, PRIMARY KEY (id, k)) PARTITION BY LIST (k)' \
    'CREATE TABLE root1 PARTITION OF root FOR VALUES IN (1)' \
    'CREATE TABLE sub (id int NOT NULL, k int NOT NULL) PARTITION BY LIST (k)' \
    'CREATE TABLE sub2 PARTITION OF sub FOR VALUES IN (2)' 'CREATE TABLE sub3 PARTITION OF sub FOR VALUES IN (3)'
  step 'ALTER TABLE root ATTACH PARTITION sub FOR VALUES IN (2, 3)'
  step 'ALTER TABLE root ADD COLUMN extra text DEFAULT 1' 'ALTER TABLE root RENAME COLUMN extra TO more'
  step 'ALTER TABLE root RENAME TO trunk'
  step 'ALTER TABLE trunk DETACH PARTITION sub'
  step 'ALTER TABLE trunk ATTACH PARTITION sub FOR VALUES IN (2, 3)' 'ALTER TABLE trunk DETACH PARTITION sub CONCURRENTLY'
  step 'ALTER TABLE trunk DETACH PARTITION root1 CONCURRENTLY' 'DROP TABLE trunk'
  step 'CREATE TABLE par (a int, b text)' 'CREATE TABLE child (c int) INHERITS (par)' 'ALTER TABLE par ADD d int DEFAULT 4' \
    'ALTER TABLE child NO INHERIT par'
  step 'SET allow_in_place_tablespaces = on' "CREATE TABLESPACE ts LOCATION ''" 'ALTER TABLE par SET TABLESPACE ts' \
    'CREATE INDEX par_a ON par (a) TABLESPACE ts'
  step 'ALTER TABLE par SET TABLESPACE pg_default' 'REINDEX INDEX par_a'
  step 'CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM par' 'REFRESH MATERIALIZED VIEW mv' 'CREATE VIEW vw AS SELECT 1 AS x'
  step 'CREATE SEQUENCE sq' 'ALTER SEQUENCE sq RESTART 5' 'CREATE TABLE ser (a serial)' 'TRUNCATE ser RESTART IDENTITY'
  step 'CREATE EXTENSION hstore' 'CREATE TABLE h (a int)' "ALTER TABLE h ADD b hstore DEFAULT 'a=>\"b c\"'"
  step 'CREATE EXTENSION citext' "ALTER TABLE h ADD c citext[] DEFAULT '{A,b}'"
  step 'CREATE TABLE w AS SELECT 1 AS one' 'DROP EXTENSION hstore CASCADE' 'DROP TABLE h'
  step 'BEGIN' 'CREATE TABLE two_phase (a int)' "PREPARE TRANSACTION 'tp'" "COMMIT PREPARED 'tp'"
  step 'BEGIN' 'CREATE TEMP TABLE tmp (a int)' 'SAVEPOINT a' 'CREATE TABLE kept_one (a int)' 'RELEASE a' 'SAVEPOINT b' \
    'CREATE TABLE lost_one (a int)' 'ROLLBACK TO b' 'COMMIT'
  step 'CREATE PUBLICATION pub FOR ALL TABLES' 'DROP PUBLICATION pub'
  step 'VACUUM FULL pg_class' 'VACUUM FULL pg_attribute' 'REINDEX TABLE pg_type'
  step 'VACUUM FULL pg_type' 'VACUUM FULL pg_enum' 'VACUUM FULL pg_namespace' 'CREATE TABLE after_vacuum (a int)'
  step 'VACUUM FULL pg_proc' 'CLUSTER pg_index USING pg_index_indexrelid_index' 'VACUUM FULL pg_database' \
    'CREATE TABLE after_vacuum2 (a int)'
  if [ "$PG_MAJOR" -ge 18 ]; then
    step 'CREATE TABLE v (a int, b int GENERATED ALWAYS AS (a * 2) VIRTUAL)' \
      'ALTER TABLE v ADD CONSTRAINT nn NOT NULL a NOT VALID'
    step 'ALTER TABLE v VALIDATE CONSTRAINT nn'
  fi
  step 'CREATE SCHEMA gone' 'CREATE TABLE gone.x (a int, b text)' 'CREATE TYPE gone.t AS (a int)'
  step 'DROP SCHEMA gone CASCADE' 'DROP TYPE rng2' 'DROP TABLE w, par, child CASCADE'
  compare_steps "$first" "$STEPS" 'the history is the source as it was, at every step'
  ZOO_FIRST=$first
}

# A session of DDL that goes on by itself, in one transaction per statement.
start_ddl() {
  local i
  for ((i = 0; i < 150; i++)); do
    printf '%s;\n' "CREATE TABLE churn$i (a int PRIMARY KEY, b text)" "ALTER TABLE churn$i ADD c int DEFAULT $i" \
      "ALTER TABLE churn$i DROP b" "ALTER TABLE churn$i ALTER c TYPE text" 'SELECT pg_sleep(0.005)'
    [ $((i % 3)) != 0 ] || printf 'DROP TABLE churn%d;\n' "$i"
  done >"$T/ddl.sql"
  pg_tool psql
  BG_IN=$T/ddl.sql bg ddl "$PGTOOL" -XAtq -v ON_ERROR_STOP=1 -d "$(pg_conninfo p)"
}

kills() {
  local i first
  RANDOM=$((60 + PG_MAJOR))
  start_ddl
  for ((i = 0; i < 8; i++)); do
    proc_nap "0.$((RANDOM % 40 + 10))"
    kill9 catalog
    start_catalog
    if [ $((i % 3)) = 1 ]; then
      pg_kill shadow
      start_shadow
    elif [ $((i % 3)) = 2 ]; then
      kill9 walsend
      start_walsend
    fi
  done
  wait_exit ddl 240
  # shellcheck disable=SC2153 # set by wait_exit
  is "$STATUS" 0 'DDL ran beside the kills'
  first=$((STEPS + 1))
  step 'CREATE TABLE after_kills (a int)'
  compare_steps "$first" "$STEPS" 'after kill -9 of ws-catalog (8), the shadow and ws-walsend'
  # Every boundary in the WAL is one that the history knows.
  ws-catalog boundaries "$S/raw@$(pos_lsn "$S/pos/backup")" | sed 's/ .*//' | sort -u >"$T/in-wal"
  ws-catalog dump --state "$S" | awk '$1 == "change" { print $3 }' | sort -u >"$T/in-history"
  is "$(comm -13 "$T/in-wal" "$T/in-history")" '' 'every change in the history is at a boundary of the WAL'
  cmp_is "$(wc -l <"$T/in-history")" -gt 400 'and there are many'
}

# What a power failure can leave of a position that is written without fsync: nothing.
power() {
  kill9 catalog
  kill9 walsend
  pg_kill shadow
  : >"$S/pos/captured.$DB"
  start_walsend
  start_shadow
  start_catalog
  step 'CREATE TABLE after_power (a int)'
  compare_steps "$STEPS" "$STEPS" 'an emptied position is written anew, and the gate waits for it'
}

# What a kill leaves between a capture and the moment its boundary is durable in raw/.
ahead() {
  local before=${STEP_LSN[STEPS - 1]} last=${STEP_LSN[STEPS]}
  kill9 catalog
  stop receive
  echo "1 $before" >"$S/pos/received"
  echo "1 $before" >"$S/pos/captured.$DB"
  start_catalog
  ok 'a history that is ahead of received waits for it' wait_for -t 20 log_has catalog "waiting for pos/received to reach $last"
  is "$(pos_lsn "$S/pos/captured.$DB")" "$before" 'and the position with it'
  start_receive
  captured "$last"
  is "$(pos_ge "$S/pos/received" "$last"; echo $?)" 0 'received is there first'
}

databases() {
  local db2 lsn
  sql p 'CREATE DATABASE other' >/dev/null || die 'SQL'
  sql p/other 'CREATE TABLE o (id int PRIMARY KEY)' >/dev/null || die 'SQL'
  follow_database b other
  db2=$(sql p "SELECT oid FROM pg_database WHERE datname = 'other'")
  kill -HUP "$(pid_of catalog)"
  sql p/other 'CREATE TABLE o2 (id int PRIMARY KEY)' >/dev/null
  step 'CREATE TABLE a_boundary (a int)'
  wait_for -t 90 -m 'the second database' test -e "$S/pos/captured.$db2" || die "$(tail -n 2 "$T/catalog.err")"
  sql p/other 'ALTER TABLE o ADD x text' 'DROP TABLE o2' >/dev/null
  sql p/other 'ALTER DATABASE postgres SET work_mem = 65536' >/dev/null
  lsn=$(pg_lsn p)
  ok 'a database that joins is captured' wait_for -t 90 pos_ge "$S/pos/captured.$db2" "$lsn"
  captured "$lsn"
  shapes_of_source p/other >"$T/want.other"
  shapes_of_history "$S/catalog" "$db2" '' >"$T/got.other"
  same_text "$T/got.other" "$T/want.other" 'and its history is right'
  status_is 2 'show needs to know which database' ws-catalog show --state "$S" o
  # Renamed while nobody is connected, then gone.
  stop catalog
  pg_kill shadow
  sql p 'ALTER DATABASE other RENAME TO renamed' >/dev/null || die 'SQL'
  sql p/renamed 'CREATE TABLE o3 (a int)' >/dev/null
  start_shadow
  start_catalog
  lsn=$(pg_lsn p)
  ok 'a renamed database is found again' wait_for -t 90 pos_ge "$S/pos/captured.$db2" "$lsn"
  like "$(ws-catalog list --state "$S" --database "$db2")" 'public\.o3' 'and captured'
  sql p 'DROP DATABASE renamed' >/dev/null || die 'SQL'
  step 'CREATE TABLE after_drop (a int)'
  ok 'a dropped database holds up nobody' captured "${STEP_LSN[STEPS]}"
  ok 'and its position goes on' wait_for -t 90 pos_ge "$S/pos/captured.$db2" "${STEP_LSN[STEPS]}"
  compare_steps "$STEPS" "$STEPS" 'the first database is as it should be'
}

# What is asked of a history by hand, and going back in it.
commands() {
  local back=$((ZOO_FIRST + 12)) lsn
  like "$(ws-catalog show --state "$S" --database "$DB" public.b)" 'primary key: id' 'show by schema and name'
  like "$(ws-catalog show --state "$S" --database "$DB" b -F json)" '^\{"relation":[0-9]+,"database":' 'show by name, as JSON'
  status_is 2 'show of what is not there' ws-catalog show --state "$S" --database "$DB" nothing
  status_is 2 'a bad format' ws-catalog list --state "$S" -F xml
  status_is 2 'a bad database' ws-catalog list --state "$S" --database x
  status_is 2 'a bad position' ws-catalog list --state "$S" --database "$DB" @x
  status_is 2 'a bad timeout' ws-catalog capture --state "$S" --timeout none
  status_is 2 'a bad position to go back to' ws-catalog rewind --state "$S" 0/0
  status_is 2 'no command' ws-catalog --state "$S"
  status_is 2 'a malformed connection string' ws-catalog kept -d 'host='"'x"
  status_is 1 'a history that is not there' ws-catalog list -D "$T/nothing"
  status_is 1 'one capture at a time' ws-catalog capture --state "$S"
  mkdir -p "$S/shadow.keep/0000000000000010" "$S/shadow.keep/00000FFFFFFFFFFF" "$S/shadow.keep/0000000000000020.tmp"
  is "$(ws-catalog restorable --state "$S" 0/FFFF)" "$S/shadow.keep/0000000000000010" 'the copy to restore is not past the limit'
  status_is 3 'no copy is old enough' ws-catalog restorable --state "$S" 0/F
  like "$ERR" 'reason=shadow_transition_failed' 'for a promotion there'
  stop catalog
  is "$STATUS" 0 'told to stop, it ends in order'
  lsn=${STEP_LSN[back]}
  sql p 'CREATE TABLE gated (a int)' >/dev/null
  wait_for -m 'WAL' pos_ge "$S/pos/received" "$(pg_lsn p)"
  mkdir -p "$S/shadow.keep/$(printf %016X $(($(lsn_num "$(pos_lsn "$S/pos/captured.$DB")"))))"
  is "$(ws-catalog restorable --state "$S")" \
    "$S/shadow.keep/$(printf %016X $(($(lsn_num "$(pos_lsn "$S/pos/captured.$DB")"))))" 'nor past the gate'
  echo "1 $(pg_lsn p)" >"$S/pos/sent.a"
  status_is 3 'what was published cannot be taken back' ws-catalog rewind --state "$S" "1:$lsn"
  like "$ERR" 'reason=published_past_fork' 'and the reason says so'
  rm -f "$S/pos/sent.a" "$S/pos/captured".*
  echo "1 ${STEP_LSN[STEPS]}" >"$S/pos/captured.$DB"
  status_is 0 'going back in the history' ws-catalog rewind -q --state "$S" "1:$lsn"
  is "$(pos_lsn "$S/pos/captured.$DB")" "$lsn" 'the position is back'
  shapes_of_history "$S/catalog" "$DB" '' >"$T/got"
  same_text "$T/got" "$T/want.$back" 'and the history ends where it was then'
  start_catalog
  wait_exit catalog
  is "$STATUS" 3 'a shadow that is past the history is noticed'
  ok 'with its reason' log_has catalog 'reason=shadow_ahead'
}

catalog() {
  STEPS=0
  declare -ga STEP_LSN=()
  pg_init p
  pg_conf p max_prepared_transactions=10 autovacuum=off
  pg_start p
  boundaries
  start_pipeline
  remember
  compare_steps 1 1 'the first capture is the whole source'
  zoo
  kills
  power
  ahead
  databases
  commands
}

for_majors catalog
done_testing
