#!/usr/bin/env bash
# ws-decode offline against PostgreSQL's own logical decoding of the same WAL, on a random workload of
# concurrent sessions: same transactions in the same order, same rows; and from every commit's floor.
# shellcheck disable=SC2016 # dollar quotes of SQL
. "$(dirname "$0")/lib/it.sh"

: "${WS_SEED:=1}" "${WS_STEPS:=3000}"

tables() {
  sql a "
    CREATE TABLE m_def (id int PRIMARY KEY, v text);
    CREATE TABLE m_def2 (id int, v varchar(30000), PRIMARY KEY (id) INCLUDE (v)) WITH (fillfactor = 40);
    CREATE TABLE m_full (id int, v text);
    ALTER TABLE m_full REPLICA IDENTITY FULL;
    CREATE TABLE m_idx (id int NOT NULL, v text);
    CREATE UNIQUE INDEX m_idx_i ON m_idx (id);
    ALTER TABLE m_idx REPLICA IDENTITY USING INDEX m_idx_i;
    CREATE TABLE m_none (id int, v text);
    ALTER TABLE m_none REPLICA IDENTITY NOTHING;
    CREATE TABLE m_toast (id int PRIMARY KEY, v text, k text, n int DEFAULT 0);
    ALTER TABLE m_toast ALTER v SET STORAGE EXTERNAL;
    ALTER TABLE m_toast REPLICA IDENTITY FULL;
    CREATE TABLE m_part (id int PRIMARY KEY, a text, b text) PARTITION BY RANGE (id);
    CREATE TABLE m_part1 PARTITION OF m_part FOR VALUES FROM (0) TO (100);
    CREATE TABLE m_part2 PARTITION OF m_part FOR VALUES FROM (100) TO (1000) PARTITION BY LIST (id);
    CREATE TABLE m_part2d PARTITION OF m_part2 DEFAULT;
    ALTER TABLE m_part1 REPLICA IDENTITY FULL;
    ALTER TABLE m_part2d REPLICA IDENTITY FULL;
    CREATE FUNCTION busy() RETURNS void LANGUAGE plpgsql AS \$\$
      BEGIN
        FOR i IN 1 .. 200 LOOP
          BEGIN
            INSERT INTO m_def VALUES (5000 + i, 'sub');
            IF i % 3 = 0 THEN RAISE EXCEPTION 'x'; END IF;
          EXCEPTION WHEN raise_exception THEN NULL;
          END;
        END LOOP;
      END \$\$"
}

capture() { catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1; }

quiet_ddl() {
  sql a "$1"
  capture || die "catfill: $(tail -n 1 "$T/catfill.log")"
}

workload() {
  local hook="catfill '$T/cat' '$C' '$T/a/pg_wal' >>'$T/catfill.log' 2>&1"
  sqlmix "$C" "$WS_SEED" "$WS_STEPS" "$hook" || die sqlmix
  quiet_ddl 'ALTER TABLE m_def ADD COLUMN w int DEFAULT 5'
  quiet_ddl 'ALTER TABLE m_full DROP COLUMN v, ADD COLUMN v text DEFAULT $$d$$'
  quiet_ddl 'ALTER TABLE m_idx REPLICA IDENTITY FULL'
  quiet_ddl 'ALTER TABLE m_none RENAME TO m_none_'
  quiet_ddl 'ALTER TABLE m_none_ RENAME TO m_none'
  sqlmix "$C" "$((WS_SEED + 1000))" "$WS_STEPS" "$hook" || die sqlmix
  sql a 'SELECT busy()' 'SELECT busy() FROM generate_series(1, 1)' >/dev/null 2>&1
  sql a 'DELETE FROM m_def WHERE id > 4000' 'SELECT busy()' >/dev/null
}

major() {
  local db
  pg_init a
  pg_conf a autovacuum=off wal_keep_size=2GB max_prepared_transactions=100 checkpoint_timeout=1h
  pg_start a
  C=$(pg_conninfo a)
  rm -rf "$T/cat"
  tables
  capture || die catfill
  sql a "SELECT pg_create_logical_replication_slot('s', 'test_decoding')" >/dev/null
  start=$(pg_lsn a)
  note "$(workload)"
  end=$(pg_lsn a)
  # Empty transactions are left out here: 16 leaves the BEGIN out with them before a message.
  sql a "SELECT data FROM pg_logical_slot_get_changes('s', '$end', NULL)" |
    awk '/^BEGIN / { b = $0; next } b && !/^COMMIT / { print b } !(b && /^COMMIT /) { print } { b = "" }' >"$T/expected"
  db=$(sql a 'SELECT oid FROM pg_database WHERE datname = current_database()')
  cmp_is "$(wc -l <"$T/expected")" -gt $((WS_STEPS * 2)) "$PG_MAJOR: PostgreSQL decoded a lot"
  pg_stop a # the WAL stays as it is: what is compared below reads it more than once
  ws-decode --catalog "$T/cat" --database "$db" -s "$start" "$T/a/pg_wal" >"$T/stream"
  run decodecmp "$T/expected" <"$T/stream"
  like "$OUT" '^same: ' "$PG_MAJOR: the same transactions, order and rows"
  note "$OUT"
  ws-decode --catalog "$T/cat" --database "$db" -s "$start" -m 64kB "$T/a/pg_wal" >"$T/small"
  same_file "$T/small" "$T/stream" "$PG_MAJOR: the same with little memory"
  run decrestart "$T/cat" "$db" "$T/a/pg_wal" "$start"
  like "$OUT" '^restarts=' "$PG_MAJOR: the same from the floor of each of its commits"
  note "$OUT"
  run decrestart "$T/cat" "$db" "$T/a/pg_wal" "$start" 65536 20
  like "$OUT" '^restarts=' "$PG_MAJOR: and with little memory"
  rm -rf "$T/store" && mkdir "$T/store"
  run decrestart "$T/cat" "$db" "$T/a/pg_wal" "$start" 0 10 "$T/store"
  like "$OUT" '^restarts=' "$PG_MAJOR: and with a TOAST store, after kills" || diag "$ERR"
  ws-decode --catalog "$T/cat" --database "$db" -s "$start" --toast-store "$T/store" "$T/a/pg_wal" >"$T/small"
  same_file "$T/small" "$T/stream" "$PG_MAJOR: the same with a TOAST store"
}

for_majors major
done_testing
