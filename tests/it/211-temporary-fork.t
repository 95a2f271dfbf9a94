#!/usr/bin/env bash
# ws-catalog reads WAL that turns out to be past a fork, with commits of temporary relations in it: what
# it passed there has not happened, and moves no position over what the descendant has instead.
. "$(dirname "$0")/lib/it.sh"

# As the tools write them: never half.
pos() { echo "$2" >"$S/pos/.new" && mv "$S/pos/.new" "$S/pos/$1"; }
total() { sed -n "s/^walshadow_catalog_$1_total //p" "$S/catalog.prom"; }
passed_some() { [ -e "$S/catalog.prom" ] && [ "$(total temporary_boundaries)" -ge 20 ]; }
found_other() { [ "$(total boundaries)" -gt "$(total temporary_boundaries)" ]; }
where() {
  local pid
  pid=$(pid_of catalog)
  total boundaries
  tail -n 2 "$S"/pos/*
  ls -l "$S/raw" "/proc/$pid/fd"
  cat "/proc/$pid/wchan" "/proc/$pid/stat"
}

fork() {
  local db floor beyond end seg i
  S=$T/state
  rm -rf "$S" "$T/copy"
  mkdir -p "$S/pos" "$S/consumer/x" "$S/catalog"
  pg_init a
  pg_conf a autovacuum=off max_connections=6
  pg_start a
  sql a 'CREATE TABLE t (id int PRIMARY KEY)'
  pg_temp_schemas a
  catfill "$S/catalog" "$(pg_conninfo a)" "$T/a/pg_wal" >"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"
  db=$(sql a "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  printf 'DATABASE_OID=%s\nDATABASE=postgres\n' "$db" >"$S/consumer/x/config"
  sql a 'INSERT INTO t VALUES (1)'
  floor=$(pg_lsn a)
  pg_stop a
  cp -a "$T/a" "$T/copy"
  pg_adopt b "$T/copy"
  pg_start a
  for i in {1..20}; do sql a 'CREATE TEMP TABLE x (id int PRIMARY KEY, v text)'; done
  beyond=$(pg_lsn a)
  ws-receive -q --state "$S" -d "$(pg_conninfo a)" -n -E "$beyond" 2>"$T/err" || die "ws-receive: $(cat "$T/err")"
  touch "$T/b/standby.signal"
  pg_start b
  sql b 'SELECT pg_promote()' >/dev/null
  wait_for_is f sql b 'SELECT pg_is_in_recovery()'
  sql b 'CREATE TABLE made (id int PRIMARY KEY)'
  end=$(pg_lsn b)
  ok 'the first server went past what the second made' lsn_ge "$beyond" "$end"
  seg=$(sql b 'SELECT pg_walfile_name(pg_current_wal_lsn())')
  pg_stop a
  pg_stop b

  # What is durable ends before the fork; more was written when ws-receive died.
  pos received "1 $floor"
  pos "captured.$db" "1 $floor"
  bg catalog ws-catalog capture --state "$S" --shadow "host=$T/none" --metrics "$S/catalog.prom"
  ok 'it passes temporary relations past the fork' wait_for -t 60 passed_some
  ok 'without moving' lsn_ge "$floor" "$(pos_lsn "$S/pos/captured.$db")"
  cp "$T/b/pg_wal/00000002.history" "$S/raw/"
  head -c $(($(lsn_num "$end") & 16777215)) "$T/b/pg_wal/$seg" >"$S/raw/new"
  mv "$S/raw/new" "$S/raw/$seg.partial"
  pos received "2 $end"
  ok 'it goes over to the descendant' wait_for -t 60 log_has catalog 'timeline 2 from'
  ok 'to the table that was made there' wait_for -t 60 found_other || diag "$(where)"
  proc_nap 0.5
  not_ok 'which is not passed' lsn_ge "$(pos_lsn "$S/pos/captured.$db")" "$end"
  stop catalog
}

for_majors fork
done_testing
