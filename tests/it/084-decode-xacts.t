#!/usr/bin/env bash
# ws-decode and transactions: as many rows and subtransactions as may come, within bounds that are
# measured; prepared ones across crashes; xids that wrap around; wal_level lowered and restored.
# WS_SCALE=full: 10 million rows, 2 million subtransactions.
# shellcheck disable=SC2016 # dollar quotes of SQL
. "$(dirname "$0")/lib/it.sh"

: "${WS_SEED:=1}" "${WS_SCALE:=small}"
if [[ $WS_SCALE == full ]]; then
  ROWS=10000000 SUBS=2000000 MEMORY=32MB LIMIT=131072 FILTER_LIMIT=131072
else
  # A tenth of the subtransactions with a tenth of the memory; what a process needs anyhow stays.
  ROWS=400000 SUBS=200000 MEMORY=3200kB LIMIT=12288 FILTER_LIMIT=20480
fi

capture() { catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"; }
decode() { ws-decode --catalog "$T/cat" --database "$DB" "$@"; }
known() {
  C=$(pg_conninfo a)
  DB=$(sql a 'SELECT oid FROM pg_database WHERE datname = current_database()')
}

# ---- size ----

SCHEMA='
  CREATE TABLE m (id int, v text); CREATE TABLE s (id int, v text);
  CREATE TABLE l (id int PRIMARY KEY); CREATE TABLE w (id int PRIMARY KEY, v text);
  CREATE FUNCTION subs(n int, nested int) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      FOR i IN 1 .. n LOOP
        BEGIN
          INSERT INTO s VALUES (i, md5(i::text));
          IF i % 10 = 0 THEN RAISE EXCEPTION $x$x$x$; END IF;
          IF i % 1000 = 1 AND nested > 0 THEN PERFORM subs(nested, 0); END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
      END LOOP;
    END $$;'

size() {
  local out first
  start=$(pg_lsn a)
  sql a "INSERT INTO m SELECT g, 'row ' || g FROM generate_series(1, $ROWS) g"
  out=$(anon_peak ws-decode --catalog "$T/cat" --database "$DB" -s "$start" -m "$MEMORY" "$T/a/pg_wal")
  cmp_is "$out" -lt "$LIMIT" "$ROWS rows in a transaction: $out kB of $LIMIT"
  start=$(pg_lsn a)
  # The top level writes before, between and after; another session has a transaction open all the while.
  bg open psql -Xqt "$C" -c "BEGIN" -c "INSERT INTO l VALUES (1)" -c "SELECT pg_sleep(600)" -c COMMIT
  wait_for_is 1 sql a "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
  sql a 'BEGIN' 'INSERT INTO l VALUES (2)' "SELECT subs($SUBS / 2, 3)" 'INSERT INTO l VALUES (3)' "SELECT subs($SUBS / 2, 0)" \
    'INSERT INTO l VALUES (4)' 'COMMIT' >/dev/null
  sql a "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'" >/dev/null
  wait_for not_alive open
  out=$(anon_peak ws-decode --catalog "$T/cat" --database "$DB" -s "$start" -m "$MEMORY" --metrics "$T/metrics" "$T/a/pg_wal")
  cmp_is "$out" -lt "$LIMIT" "$SUBS subtransactions: $out kB of $LIMIT"
  cmp_is "$(sed -n 's/^walshadow_decode_spilled_total //p' "$T/metrics")" -gt $((SUBS / 2)) 'most were spilled'
  out=$(anon_peak ws-filter --no-sync -q -D "$T/filtered" "$T/a/pg_wal")
  cmp_is "$out" -lt "$FILTER_LIMIT" "ws-filter: $out kB of $FILTER_LIMIT"
  rm -rf "$T/filtered"
  decode -s "$start" -F json "$T/a/pg_wal" | grep '"type":"row"' | sed 's/.*"table":"\([a-z]*\)".*"new":{"id":\([0-9]*\).*/\1 \2/' >"$T/rows"
  # In the order of the statements, by PostgreSQL's own physical order.
  sql a "SELECT 's ' || id FROM s ORDER BY ctid" >"$T/want"
  grep '^s ' "$T/rows" >"$T/got"
  same_file "$T/got" "$T/want" 'every committed row, in order'
  is "$(grep -v '^s ' "$T/rows" | tr '\n' ' ')" 'l 2 l 3 l 4 ' 'and the top level between them'
  decode -s "$start" "$T/a/pg_wal" >"$T/whole"
  decode -s "$start" -m 64kB "$T/a/pg_wal" >"$T/small"
  decode -s "$start" -m 512MB "$T/a/pg_wal" >"$T/large"
  same_file "$T/small" "$T/whole" 'the same stream with little memory'
  same_file "$T/large" "$T/whole" 'and with much'
  first=$(head -n 1 "$T/want")
  like "$first" '^s 1$' 'which begins at the beginning'
}

# ---- two phases ----

pending() { ws-decode --prepared --database "$DB" -s "$start" "$@" "$T/a/pg_wal"; }

# expect_pending DESC: what PostgreSQL says is what is listed.
expect_pending() {
  pending >"$T/pending"
  same_text <(cut -f 1,4,5 "$T/pending" | sed 's/+00\t/\t/' | sort) \
    <(sql a "SELECT transaction || E'\t' || prepared AT TIME ZONE 'UTC' || E'\t' || gid FROM pg_prepared_xacts WHERE database = current_database()" | sort) "$1"
}

prepared() {
  local line
  start=$(pg_lsn a)
  sql a "BEGIN; INSERT INTO w VALUES (1, 'first'); SAVEPOINT a; INSERT INTO w VALUES (2, 'sub'); SAVEPOINT b; INSERT INTO w VALUES (99, 'x'); ROLLBACK TO b; PREPARE TRANSACTION 'one'"
  sql a "BEGIN; INSERT INTO w VALUES (3, 'never'); PREPARE TRANSACTION 'it''s \"two\"'"
  sql a "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'empty'" >/dev/null
  sql a "BEGIN; INSERT INTO w VALUES (4, 'short'); PREPARE TRANSACTION 'three'" "COMMIT PREPARED 'three'" "INSERT INTO w VALUES (5, 'between')"
  sql a "BEGIN; CREATE TABLE made (id int PRIMARY KEY); INSERT INTO made VALUES (1); PREPARE TRANSACTION 'ddl'"
  pending >"$T/pending"
  is "$(wc -l <"$T/pending")" 4 "four are pending"
  line=$(grep -P '\tone$' "$T/pending")
  ok 'a first LSN at or above the start' lsn_ge "$(cut -f 2 <<<"$line")" "$start"
  ok 'and below its PREPARE' lsn_ge "$(cut -f 3 <<<"$line")" "$(cut -f 2 <<<"$line")"
  like "$(pending -F json)" '\{"gid":"it.s \\"two\\"","xid":[0-9]+,"database_oid":[0-9]+,"first_lsn":"[0-9A-F]+/[0-9A-F]+"' 'as JSON too'
  sed -i 's/it.s \\"two\\"/two/' "$T/pending"
  sql a "ROLLBACK PREPARED 'it''s \"two\"'" "BEGIN; INSERT INTO w VALUES (6, 'again'); PREPARE TRANSACTION 'two'"
  expect_pending 'as PostgreSQL says'
  pg_kill a
  pg_start a
  expect_pending 'after a crash too'
  sql a "INSERT INTO w VALUES (7, 'meanwhile')" CHECKPOINT "COMMIT PREPARED 'one'" "ROLLBACK PREPARED 'two'"
  pg_restart a
  expect_pending 'and a restart'
  sql a "COMMIT PREPARED 'ddl'" "ROLLBACK PREPARED 'empty'" 'INSERT INTO made VALUES (2)'
  is "$(pending)" '' 'none is left'
  is "$(ws-decode --prepared -s "$start" "$T/a/pg_wal")" '' 'of any database'
  capture
  decode -s "$start" -F json "$T/a/pg_wal" | grep '"type":"row"' | sed 's/.*"new":{"id":\([0-9]*\).*/\1/' >"$T/rows"
  is "$(tr '\n' ' ' <"$T/rows")" '4 5 7 1 2 1 2 ' 'in the order of the commits'
  run decrestart "$T/cat" "$DB" "$T/a/pg_wal" "$start"
  like "$OUT" '^restarts=' 'the same from every floor'
}

# ---- xids wrap around ----

wrap() {
  ok 'near the end of the xids' pg_near_wrap a || return
  rm -rf "$T/cat"
  known
  capture
  sql a "SELECT pg_create_logical_replication_slot('wrap', 'test_decoding')" >/dev/null
  start=$(pg_lsn a)
  sql a "SELECT subs(32000, 0)" "BEGIN; INSERT INTO w VALUES (100, 'before the wrap'); PREPARE TRANSACTION 'old'" >/dev/null
  bg lock psql -Xqt "$C" -c 'SELECT pg_advisory_lock(1)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  bg old psql -Xqt "$C" -c BEGIN -c "INSERT INTO w VALUES (101, 'open over the wrap')" -c 'SAVEPOINT a' -c "INSERT INTO w VALUES (102, 'its child')" \
    -c 'SELECT pg_advisory_lock(1)' -c 'SAVEPOINT b' -c "INSERT INTO w VALUES (103, 'its younger child')" -c COMMIT
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
  sql a "BEGIN; INSERT INTO w VALUES (104, 'in one'); SELECT subs(2000, 0); INSERT INTO w VALUES (105, 'with both epochs'); COMMIT" >/dev/null
  is "$(sql a 'SELECT txid_current() / 4294967296')" 1 'the second epoch'
  sql a 'CHECKPOINT' 'CHECKPOINT' 'UPDATE w SET v = v' "SELECT pg_log_standby_snapshot()" >/dev/null
  sql a "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted" >/dev/null
  wait_for not_alive lock
  wait_for not_alive old
  is "$(sql a 'SELECT count(*) FROM w WHERE id BETWEEN 101 AND 103')" 3 'what was open over the wrap commits'
  sql a "COMMIT PREPARED 'old'" "INSERT INTO w VALUES (106, 'after')"
  sql a "SELECT data FROM pg_logical_slot_get_changes('wrap', '$(pg_lsn a)', NULL)" |
    awk '/^BEGIN / { b = $0; next } b && !/^COMMIT / { print b } !(b && /^COMMIT /) { print } { b = "" }' >"$T/expected"
  capture
  decode -s "$start" "$T/a/pg_wal" >"$T/stream"
  run decodecmp "$T/expected" <"$T/stream"
  like "$OUT" '^same: ' 'the same as PostgreSQL decodes'
  decode -s "$start" -m 64kB "$T/a/pg_wal" >"$T/small"
  same_file "$T/small" "$T/stream" 'also with little memory'
  run decrestart "$T/cat" "$DB" "$T/a/pg_wal" "$start"
  like "$OUT" '^restarts=' 'and from every floor'
}

# ---- wal_level ----

level() {
  local before at
  start=$(pg_lsn a)
  sql a "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'logical'" "INSERT INTO w VALUES (200, 'before')" >/dev/null
  before=$(pg_lsn a)
  pg_conf a wal_level=replica
  pg_restart a
  sql a "INSERT INTO w VALUES (201, 'lost')" 'UPDATE w SET id = 202 WHERE id = 200'
  pg_conf a wal_level=logical
  pg_restart a
  sql a "INSERT INTO w VALUES (203, 'after')"
  decode -s "$start" -F json "$T/a/pg_wal" >"$T/out" 2>"$T/err"
  is "$?" 3 "wal_level lowered and restored stops"
  like "$(tail -n 1 "$T/err")" 'reason=wal_level$' 'with the reason'
  at=$(sed -n 's/.*below logical from \([0-9A-F]*\/[0-9A-F]*\) on.*/\1/p' "$T/err")
  ok 'it says where' lsn_ge "${at:-0/0}" "$before"
  is "$(grep '"type":"row"' "$T/out" | sed 's/.*"new":{"id":\([0-9]*\).*/\1/' | tr '\n' ' ')" '200 ' 'and nothing after is sent'
}

major() {
  pg_init a
  pg_conf a autovacuum=off wal_keep_size=8GB max_wal_size=8GB max_prepared_transactions=20 checkpoint_timeout=1h
  pg_start a
  rm -rf "$T/cat"
  known
  sql a "$SCHEMA"
  capture
  size
  prepared
  wrap
  level
  pg_stop a
}

for_majors major
done_testing
