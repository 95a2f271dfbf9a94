#!/usr/bin/env bash
# The record reader on the WAL of real servers, against PostgreSQL's own tools: pg_waldump of 17 and
# 18, pg_walinspect on 16.
. "$(dirname "$0")/lib/it.sh"

# Segment sizes in MB, another for each major.
declare -A SEGMB=([16]=1 [17]=16 [18]=64)

workload() {
  pg_conf src max_prepared_transactions=5 wal_keep_size=1GB max_wal_size=4GB \
    autovacuum=off wal_buffers=1MB
  pg_start src
  sql src 'CREATE TABLE a (id int PRIMARY KEY, t text)' \
    "INSERT INTO a SELECT g, repeat(md5(g::text), g % 60) FROM generate_series(1, 3000) g" \
    'CHECKPOINT' 'UPDATE a SET t = t || 1 WHERE id % 3 = 0' 'DELETE FROM a WHERE id % 7 = 0'
  sql src "BEGIN; INSERT INTO a VALUES (-1, 'x'); SAVEPOINT s; INSERT INTO a VALUES (-2, 'y');
      ROLLBACK TO s; INSERT INTO a VALUES (-3, 'z'); PREPARE TRANSACTION 'one two'" \
    "COMMIT PREPARED 'one two'" 'CREATE INDEX ON a (t)' 'TRUNCATE a' 'DROP TABLE a' \
    'SELECT pg_switch_wal()' 'CREATE TABLE b AS SELECT * FROM pg_class, generate_series(1, 30)' \
    "SELECT length(pg_logical_emit_message(false, 'big', repeat('0123456789', 300000))::text)"
  for method in on $METHODS; do
    sql src "SET wal_compression = $method" 'CHECKPOINT' 'UPDATE b SET relpages = 1 WHERE oid < 2000'
  done
}

# A record that a crash cuts: its first pages are in the WAL, the rest never comes.
crash_in_record() {
  local before
  before=$(lsn_num "$(pg_lsn src)")
  bg big "$PSQL" -X -d "$(pg_conninfo src)" \
    -c "SELECT pg_logical_emit_message(false, 'cut', repeat('0123456789', 40000000))"
  wait_for -m 'some of the record to be written' written_past $((before + 3000000))
  pg_kill src
  wait_exit big
  pg_start src
  sql src 'CREATE TABLE after_crash (a int)'
}

written_past() { [ "$(lsn_num "$(pg_lsn src)")" -gt "$1" ]; }

segments() { find "$T/src/pg_wal" -maxdepth 1 -type f -name '0000*' ! -name '*.*' | sort; }

# What PostgreSQL says, in walwalk's form.
reference() {
  local start=$1 end=$2
  if [ "$PG_MAJOR" = 16 ]; then
    sql src "SELECT resource_manager || ' ' || record_length || ' ' || xid || ' ' || l(start_lsn)
        || ' ' || l(prev_lsn) || ' ' || l(end_lsn)
      FROM pg_get_wal_records_info('$start', '$end') ORDER BY start_lsn"
  else
    "$PGBIN/pg_waldump" -p "$T/src/pg_wal" -s "$start" -e "$end" 2>"$T/waldump.err" |
      sed -E 's#^rmgr: *([A-Za-z0-9]+) *len \(rec/tot\): *[0-9]+/ *([0-9]+), tx: *([0-9]+), lsn: ([0-9A-F/]+), prev ([0-9A-F/]+),.*#\1 \2 \3 \4 \5#'
  fi
}

walks() {
  local end segs fields=1-5 line middle
  METHODS='pglz lz4 zstd'
  [ "$PG_MAJOR" != 16 ] || METHODS=pglz
  pg_bin
  pg_tool psql
  PSQL=$PGTOOL
  pg_init src --wal-segsize="${SEGMB[$PG_MAJOR]}"
  workload >/dev/null || die 'the workload does not run'
  crash_in_record
  sql src 'CHECKPOINT'
  end=$(pg_lsn src)
  if [ "$PG_MAJOR" = 16 ]; then
    sql src 'CREATE EXTENSION pg_walinspect' "CREATE FUNCTION l(pg_lsn) RETURNS text LANGUAGE sql AS
      \$\$SELECT split_part(\$1::text, '/', 1) || '/' || lpad(split_part(\$1::text, '/', 2), 8, '0')\$\$"
    fields=1-6
  fi
  mapfile -t segs < <(segments)
  status_is 0 'walks' walwalk -f "${segs[@]}"
  mv "$T/out" "$T/all"
  mv "$T/err" "$T/all.err"
  like "$(tail -n 1 "$T/all.err")" 'images=[1-9][0-9]*' 'and restores page images'
  # Up to the position that the reference is asked for.
  cut -d' ' -f"$fields" <"$T/all" >"$T/walked"
  reference "$(awk '{print $4; exit}' "$T/all")" "$end" >"$T/reference"
  head -n "$(wc -l <"$T/reference")" "$T/walked" >"$T/walked.to"
  cmp_is "$(wc -l <"$T/reference")" -gt 5000 'PostgreSQL sees thousands of records'
  same_text "$T/walked.to" "$T/reference" 'the same records as PostgreSQL'
  unlike "$(tail -n 1 "$T/all.err")" 'dropped=0/00000000' 'the record that the crash cut was dropped'
  pg_stop src
  mapfile -t segs < <(segments)
  walwalk "${segs[@]}" >"$T/all" 2>"$T/all.err"
  like "$(tail -n 1 "$T/all")" '^XLOG 1' 'after a shutdown its checkpoint is last'
  for chunk in 4097 1048576; do
    walwalk -c "$chunk" "${segs[@]}" >"$T/chunked" 2>/dev/null
    same_file "$T/chunked" "$T/all" "fed $chunk bytes at a time: the same"
  done
  # Byte by byte is slow: the first segments only.
  walwalk -c 1 "${segs[@]:0:16/SEGMB[$PG_MAJOR]+1}" >"$T/chunked" 2>/dev/null
  cmp_is "$(wc -l <"$T/chunked")" -gt 5000 'thousands of records byte by byte'
  head -n "$(wc -l <"$T/chunked")" "$T/all" >"$T/all.head"
  same_file "$T/chunked" "$T/all.head" 'are the same'
  middle=$(($(wc -l <"$T/all") / 2))
  line=$(sed -n "${middle}p" "$T/all" | cut -d' ' -f4)
  walwalk -s "$line" "${segs[@]}" >"$T/from" 2>/dev/null
  tail -n "+$middle" "$T/all" >"$T/tail"
  same_file "$T/from" "$T/tail" 'started in the middle: the same from there'
  if [ "$PG_MAJOR" != 16 ]; then
    mkdir -p "$T/i1" "$T/i2"
    walwalk -q -i "$T/i1" "${segs[@]}" >/dev/null
    "$PGBIN/pg_waldump" -q -p "$T/src/pg_wal" -s "$(awk '{print $4; exit}' "$T/all")" \
      --save-fullpage="$T/i2" 2>"$T/waldump.err"
    cmp_is "$(find "$T/i2" -type f | wc -l)" -gt 100 'pg_waldump saves page images'
    ok 'the same images, byte for byte' diff -rq "$T/i1" "$T/i2"
    rm -rf "$T/i1" "$T/i2"
  fi
}

for_majors walks

# Older WAL is refused by name.
pg_14() {
  local bin
  bin=$("$TOP/tests/rig/pg" 14) || bail_out 'no PostgreSQL 14'
  "$bin/initdb" -D "$T/old" -A trust --no-sync >/dev/null 2>&1 || die 'initdb 14'
  status_is 1 'WAL of PostgreSQL 14 is refused' walwalk -q "$T/old/pg_wal/000000010000000000000001"
  like "$ERR" 'PostgreSQL 14 is too old' 'and named'
}
pg_14
done_testing
