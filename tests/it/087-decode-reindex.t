#!/usr/bin/env bash
# ws-decode on transactions that give indexes new files, in savepoints, and then drop them: the files
# belong to no table, and no table's rows are in doubt.
. "$(dirname "$0")/lib/it.sh"

rows() { # rows SQL WANTED NAME: the rows of one script
  local start end
  start=$(sql a 'SELECT pg_current_wal_lsn()')
  printf '%s\n' "$1" | sql a >/dev/null 2>"$T/sql.err" || die "SQL: $(cat "$T/sql.err")"
  catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"
  end=$(sql a 'SELECT pg_current_wal_lsn()')
  run ws-decode --catalog "$T/cat" --database "$DB" --start "$start" --end "$end" -F json "$T/a/pg_wal"
  is "$STATUS $(grep -o '"op":"[a-z]*"\|"id":[0-9]*\|"type":"replace[^"]*"' <<<"$OUT" | sed 's/.*:"*//; s/"//' | tr '\n' ' ')" "0 $2" "$3"
  ((STATUS == 0)) || diag "$ERR"
}

reindex() {
  rm -rf "$T/cat"
  pg_new a
  C=$(pg_conninfo a)
  DB=$(sql a "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  sql a 'CREATE TABLE t (id int PRIMARY KEY, v int)' 'CREATE INDEX ti ON t (v)' 'CREATE INDEX tj ON t (v, id)' 'CREATE INDEX tk ON t (id, v)'
  catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"
  rows 'BEGIN; INSERT INTO t VALUES (1, 1); SAVEPOINT s; REINDEX INDEX ti; RELEASE s; DROP INDEX ti; INSERT INTO t VALUES (2, 2); COMMIT;' \
    'insert 1 insert 2 ' 'REINDEX in a savepoint, then DROP INDEX'
  rows 'BEGIN; INSERT INTO t VALUES (3, 1); SAVEPOINT s; REINDEX TABLE t; SAVEPOINT u; DROP INDEX tj; RELEASE u; INSERT INTO t VALUES (4, 2); RELEASE s; COMMIT;' \
    'insert 3 insert 4 ' 'REINDEX TABLE in a savepoint, DROP INDEX in another'
  rows 'BEGIN; SAVEPOINT s; REINDEX INDEX tk; INSERT INTO t VALUES (5, 1); ROLLBACK TO s; INSERT INTO t VALUES (6, 2); DROP INDEX tk; COMMIT;' \
    'insert 6 ' 'REINDEX in a savepoint that is rolled back, then DROP INDEX'
  rows 'BEGIN; SAVEPOINT s; CREATE INDEX tl ON t (v); REINDEX INDEX tl; INSERT INTO t VALUES (7, 1); RELEASE s; DROP INDEX tl; DELETE FROM t WHERE id = 1; COMMIT;' \
    'insert 7 delete 1 ' 'an index made, reindexed and dropped'
  rows 'CREATE INDEX tm ON t (v); BEGIN; SAVEPOINT s; TRUNCATE t; INSERT INTO t VALUES (8, 1); REINDEX INDEX tm; RELEASE s; DROP INDEX tm; INSERT INTO t VALUES (9, 1); COMMIT;' \
    'insert 8 insert 9 ' 'with a TRUNCATE before'
  rows 'CREATE INDEX tn ON t (v); BEGIN; SAVEPOINT s; REINDEX INDEX tn; RELEASE s; DROP INDEX tn; ALTER TABLE t ALTER v TYPE bigint; INSERT INTO t VALUES (10, 1); COMMIT;' \
    'replace_begin insert 8 insert 9 replace_end insert 10 ' 'with a rewrite behind'
}

for_majors reindex
done_testing
