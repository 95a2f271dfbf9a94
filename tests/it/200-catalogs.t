#!/usr/bin/env bash
# Every catalog is rewritten while other sessions run DDL, databases and tablespaces come and go;
# then every catalog of the shadow equals the source's row for row, its indexes are sound, and it
# holds no page of a user's.  WS_SEED chooses, WS_CATALOG_ROUNDS says how often (default 1).
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/shadow.sh"

SEED=${WS_SEED:-$RANDOM}
ROUNDS=${WS_CATALOG_ROUNDS:-1}
RANDOM=$SEED
note "WS_SEED=$SEED"

catalogs() { # oid and name of those that can be rewritten one by one
  sql src/app "SELECT c.oid::regclass FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'pg_catalog'::regnamespace
    AND c.oid < 16384 ORDER BY random()"
}

# Every catalog alone, in transactions with savepoints where they are allowed, then all at once.
rewrites() {
  local cat round
  for ((round = 0; round < ROUNDS; round++)); do
    for cat in $(catalogs); do
      printf 'VACUUM FULL %s;\nREINDEX TABLE %s;\n' "$cat" "$cat"
      printf 'BEGIN; SAVEPOINT a; REINDEX TABLE %s; SAVEPOINT b; REINDEX TABLE %s; ROLLBACK TO b; REINDEX TABLE %s; RELEASE a; COMMIT;\n' "$cat" "$cat" "$cat"
    done
    printf '%s\n' 'REINDEX SYSTEM app;' 'BEGIN; REINDEX TABLE pg_opclass; SAVEPOINT a; REINDEX TABLE pg_opclass; CREATE TABLE rolled (a int); ROLLBACK;' \
      'CLUSTER pg_attrdef USING pg_attrdef_oid_index;' 'VACUUM (FULL, ANALYZE) pg_statistic;' 'VACUUM FREEZE;'
  done >"$T/rewrites.sql"
  # Deadlocks with the others, and what cannot be done in a subtransaction, are part of it.
  "$PSQL" -XAtq -d "$(pg_conninfo src app)" -f "$T/rewrites.sql" >"$T/rewrites.out" 2>"$T/rewrites.err"
}

# One session's DDL, until told to stop.
ddl() {
  local n=0 me=$1
  while [[ ! -e $T/ddl.stop ]]; do
    n=$((n + 1))
    cat <<-SQL
		CREATE SCHEMA s${me}_$n;
		CREATE TYPE s${me}_$n.e AS ENUM ('a', 'b');
		CREATE TYPE s${me}_$n.c AS (x int, y text);
		CREATE DOMAIN s${me}_$n.d AS int CHECK (value > 0);
		CREATE TABLE s${me}_$n.t (id int PRIMARY KEY, e s${me}_$n.e, v text DEFAULT 'x', d s${me}_$n.d);
		INSERT INTO s${me}_$n.t SELECT g, 'a', repeat('y', g % 2500), g FROM generate_series(1, 200) g;
		ALTER TYPE s${me}_$n.e ADD VALUE 'c';
		ALTER TABLE s${me}_$n.t ADD COLUMN w int DEFAULT 5, ALTER COLUMN v TYPE varchar(3000);
		CREATE INDEX ON s${me}_$n.t (v);
		CREATE INDEX CONCURRENTLY ON s${me}_$n.t (w, id);
		COMMENT ON TABLE s${me}_$n.t IS '$(head -c 3000 /dev/zero | tr '\0' z)';
		BEGIN; TRUNCATE s${me}_$n.t; SAVEPOINT a; CREATE TABLE s${me}_$n.u AS SELECT g FROM generate_series(1, 100) g; ROLLBACK TO a; INSERT INTO s${me}_$n.t VALUES (1); COMMIT;
		CREATE FUNCTION s${me}_$n.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
		ALTER TABLE s${me}_$n.t DROP COLUMN v;
		VACUUM FULL s${me}_$n.t;
		SELECT lo_from_bytea(0, convert_to(repeat('o', 20000), 'UTF8'));
		GRANT SELECT ON s${me}_$n.t TO PUBLIC;
		CREATE ROLE r${me}_$n;
		DROP ROLE r${me}_$n;
		ANALYZE s${me}_$n.t;
		VACUUM pg_attribute;
	SQL
    [ $((n % 3)) != 0 ] || echo "DROP SCHEMA s${me}_$((n - 1)) CASCADE;"
    [ $((n % 7)) != 0 ] || echo 'CHECKPOINT;'
  done | "$PSQL" -XAtq -d "$(pg_conninfo src app)" >>"$T/ddl$me.out" 2>>"$T/ddl$me.err"
}

# Databases and tablespaces, by both strategies, from a template whose catalogs were rewritten.
databases() {
  local n=0
  while [[ ! -e $T/ddl.stop ]]; do
    n=$((n + 1))
    {
      mkdir -p "$T/space$n"
      sql src "CREATE TABLESPACE sp$n LOCATION '$T/space$n'"
      sql src "CREATE DATABASE w$n TEMPLATE tmpl STRATEGY wal_log" "CREATE DATABASE f$n TEMPLATE tmpl STRATEGY file_copy"
      sql "src/w$n" 'CREATE TABLE x (a int)' 'VACUUM FULL pg_class' 'REINDEX TABLE pg_type'
      sql "src/f$n" 'CREATE TABLE x (a int)' 'VACUUM FULL pg_attribute'
      sql src "ALTER DATABASE w$n SET TABLESPACE sp$n" "CREATE DATABASE c$n TEMPLATE w$n STRATEGY file_copy"
      sql "src/w$n" 'CREATE TABLE moved AS SELECT g FROM generate_series(1, 100) g' 'VACUUM FULL pg_proc'
      sql src/app "CREATE TABLE in_sp$n (a int) TABLESPACE sp$n" "INSERT INTO in_sp$n VALUES (1)"
      [ $((n % 2)) != 0 ] || sql src "DROP DATABASE f$n"
    } >>"$T/databases.out" 2>>"$T/databases.err"
    proc_nap 0.5
  done
}

# Every catalog with its TOAST table, in one line a table: rows, and a digest with places and xmin.
# pg_largeobject is user data and not there.
digest_sql() {
  cat <<-'SQL'
	SET DateStyle = ISO; SET bytea_output = hex; SET extra_float_digits = 1; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
	SELECT format('SELECT %L, count(*), coalesce(sum(hashtextextended(ctid::text || xmin::text || t::text, 0)), 0) FROM %s t;', oid::regclass::text, oid::regclass)
	FROM pg_class WHERE oid < 16384 AND oid <> 2613 AND relkind IN ('r', 't')
	  AND relnamespace IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace) ORDER BY oid
	\gexec
	SQL
}

compare_database() {
  local rows
  digest_sql | "$PSQL" -XAtq -d "$(pg_conninfo src "$1")" >"$T/source.digest" 2>&1
  digest_sql | "$PSQL" -XAtq -d "host=$S/run port=5433 user=postgres dbname=$1" >"$T/shadow.digest" 2>&1
  rows=$(wc -l <"$T/source.digest")
  ok "$rows catalogs of $1 to compare" test "$rows" -gt 95
  is "$(diff "$T/source.digest" "$T/shadow.digest")" '' "every catalog of $1 equals the source's, row for row"
}

# Indexes and heaps, on the shadow.  The extension's functions are in the source's database.
amcheck_sql() {
  cat <<-'SQL'
	SELECT count(*) FROM (SELECT bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	  WHERE indexrelid < 16384 AND indexrelid <> 2683 AND relam = 403 AND indisvalid) x;
	SELECT oid::regclass, v.* FROM pg_class c, verify_heapam(c.oid) v WHERE c.oid < 16384 AND c.oid <> 2613 AND relkind IN ('r', 't', 'm');
	SQL
}

catalogs_major() {
  local db writers=() pid
  S=$T/st
  pg_tool psql
  PSQL=$PGTOOL
  pg_init src
  pg_conf src autovacuum=off max_wal_size=4GB max_connections=60 deadlock_timeout=200ms max_prepared_transactions=5 wal_log_hints=on
  pg_start src
  sql src 'CREATE DATABASE app' 'CREATE DATABASE tmpl'
  sql src/app 'CREATE EXTENSION amcheck' 'VACUUM FULL pg_class' 'REINDEX TABLE pg_attribute'
  sql src/tmpl 'CREATE EXTENSION amcheck' 'VACUUM FULL pg_class' 'VACUUM FULL pg_type' 'REINDEX TABLE pg_depend' \
    'CREATE TABLE in_template AS SELECT g FROM generate_series(1, 2000) g'
  shadow_receive src || return
  rm -f "$T/ddl.stop"
  status_is 0 'the backup' shadow_backup src
  ok 'the shadow starts' shadow_start src --no-gate || return

  for ((i = 1; i <= 3; i++)); do
    ddl $i &
    writers+=($!)
  done
  databases &
  writers+=($!)
  rewrites
  touch "$T/ddl.stop"
  for pid in "${writers[@]}"; do wait "$pid"; done
  note "$(wc -l <"$T/rewrites.sql") rewriting commands, $(sql src "SELECT count(*) FROM pg_database") databases," \
    "$(grep -c ERROR "$T"/{rewrites,ddl?,databases}.err | tr '\n' ' ')errors"
  note "errors of the rewrites: $(sed -n 's/.*ERROR: *//p' "$T/rewrites.err" | sed 's/"[^"]*"/X/g' | sort | uniq -c | sort -rn | head -n 5 | tr '\n' ';')"
  unlike "$(cat "$T"/*.err)" 'PANIC|invalid page|could not read block' 'no server complains of a page'
  ok 'the shadow has it all' shadow_drain src 40 || return
  while read -r db; do
    compare_database "$db"
  done < <(sql src "SELECT datname FROM pg_database WHERE datallowconn AND (datname IN ('postgres', 'app', 'tmpl') OR datname ~ '^[cfw][1-3]\$') ORDER BY 1")
  for db in app tmpl; do
    like "$(amcheck_sql | "$PSQL" -XAtq -d "host=$S/run port=5433 user=postgres dbname=$db" 2>&1)" '^[0-9]+$' "amcheck finds nothing in $db"
  done
  is "$(shadow_user_pages src)" '' 'no page of a user relation on the shadow'
  ok 'the filter knows what is gone' test "$(grep -c '^kept' "$S/filtered/state")" -lt "$(($(sql src 'SELECT count(*) FROM pg_database') * 400))"
  proc_stop_all
  rm -rf "$S" "$T"/src "$T"/space* "$T"/*.err "$T"/*.out
}

for_majors catalogs_major
done_testing
