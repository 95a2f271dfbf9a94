#!/usr/bin/env bash
# ws-decode at its limits: memory, many subtransactions, lost speculative inserts, streams, bad input.
# shellcheck disable=SC2016 # dollar quotes of SQL
. "$(dirname "$0")/lib/it.sh"

capture() { catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die "catfill: $(tail -n 1 "$T/catfill.log")"; }
decode() { ws-decode --catalog "$T/cat" --database "$DB" "$@"; }

# The loser of an ON CONFLICT race: its speculative insert is taken back (a function in a unique index
# waits on an advisory lock at its second call, between the check and the insertion into the index).
speculative() {
  sql a "
    CREATE TABLE spec (k int, v text);
    ALTER TABLE spec REPLICA IDENTITY FULL;
    ALTER TABLE spec ALTER v SET STORAGE EXTERNAL;
    CREATE SEQUENCE calls;
    CREATE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$
      BEGIN
        IF current_setting('my.slow', true) = 'on' AND nextval('calls') = 2 THEN
          PERFORM pg_advisory_lock(7);
          PERFORM pg_advisory_unlock(7);
        END IF;
        RETURN k;
      END \$\$;
    CREATE UNIQUE INDEX spec_i ON spec (slow(k))"
  capture
  bg locker psql -Xqt "$C" -c 'SELECT pg_advisory_lock(7)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  bg loser psql -Xqt "$C" -c "SET my.slow = 'on'" \
    -c "INSERT INTO spec VALUES (1, repeat('l', 5000)) ON CONFLICT (slow(k)) DO UPDATE SET v = 'merged'"
  wait_for_is 1 sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
  sql a "INSERT INTO spec VALUES (1, repeat('w', 5000)) ON CONFLICT (slow(k)) DO NOTHING"
  sql a "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted" >/dev/null
  wait_for not_alive loser
  wait_for not_alive locker
  is "$(sql a 'SELECT v FROM spec')" merged 'the race was lost'
}

major() {
  local out first
  pg_init a
  pg_conf a autovacuum=off wal_keep_size=4GB max_wal_size=4GB
  pg_start a
  C=$(pg_conninfo a)
  DB=$(sql a 'SELECT oid FROM pg_database WHERE datname = current_database()')
  rm -rf "$T/cat" "$T/store"
  sql a "CREATE TABLE m (id int, v text); CREATE TABLE s (id int); CREATE TABLE b (id int PRIMARY KEY, v text);
    ALTER TABLE b ALTER v SET STORAGE EXTERNAL;
    INSERT INTO b VALUES (1, repeat('x', 5000));
    CREATE FUNCTION subs(n int) RETURNS void LANGUAGE plpgsql AS \$\$
      BEGIN
        FOR i IN 1 .. n LOOP
          BEGIN
            INSERT INTO s VALUES (i);
            IF i % 10 = 0 THEN RAISE EXCEPTION 'x'; END IF;
          EXCEPTION WHEN raise_exception THEN NULL;
          END;
        END LOOP;
      END \$\$"
  capture
  first=$(pg_lsn a)
  sql a "INSERT INTO b VALUES (3, repeat('y', 6000)), (4, repeat('z', 70000))"
  start=$(pg_lsn a)
  speculative
  end=$(pg_lsn a)
  out=$(decode -s "$start" -e "$end" -F json "$T/a/pg_wal" | grep '"table":"spec"' | grep '"type":"row"')
  is "$(grep -o '"op":"[a-z]*"' <<<"$out" | tr '\n' ' ')" '"op":"insert" "op":"update" ' 'only the winner, then the update'
  like "$(head -n 1 <<<"$out")" '"v":"w{5000}"' 'with its own TOAST value'

  start=$(pg_lsn a)
  sql a "BEGIN; INSERT INTO m SELECT g, 'row ' || g FROM generate_series(1, 1500000) g; COMMIT"
  sql a 'SELECT subs(60000)' >/dev/null
  is "$(decode -s "$start" -F json "$T/a/pg_wal" | grep -c '"table":"s","new"')" 54000 'rows of all committed subtransactions'
  out=$(anon_peak ws-decode --catalog "$T/cat" --database "$DB" -s "$start" -m 2MB "$T/a/pg_wal")
  cmp_is "$out" -lt 32768 "little memory for 1.5 million rows and 60000 subtransactions"
  note "RssAnon $out kB"
  end=$(pg_lsn a)
  decode -s "$start" -e "$end" "$T/a/pg_wal" >"$T/whole"
  decode -s "$start" -e "$end" -m 64kB "$T/a/pg_wal" >"$T/small"
  same_file "$T/small" "$T/whole" 'the same stream with page maps'

  # A stream in, and a compressed segment: kept in scratch segments, which are removed.
  mkdir -p "$T/scratch"
  ws-receive -d "$C" -S ws --create-slot
  sql a 'SELECT pg_switch_wal()' >/dev/null
  start=$(pg_lsn a)
  sql a "INSERT INTO s SELECT generate_series(1, 1000)" "INSERT INTO m VALUES (7, 'seven')" 'SELECT pg_switch_wal()' >/dev/null
  ws-receive -d "$C" -S ws -E "$(pg_lsn a)" -o - --no-loop -q |
    decode -s "$start" -F json --scratch "$T/scratch" - | grep -v '"type":"progress"' >"$T/streamed"
  decode -s "$start" -F json "$T/a/pg_wal" | grep -v '"type":"progress"' >"$T/whole"
  same_text <(grep -v '"type":"end"' "$T/streamed") <(grep -v '"type":"end"' "$T/whole") 'a stream gives the same'
  cmp_is "$(wc -l <"$T/streamed")" -gt 1000 'and something'
  gzip -c "$T/a/pg_wal/$(sql a "SELECT pg_walfile_name('$start'::pg_lsn + 1)")" >"$T/one.gz"
  mv "$T/one.gz" "$T/$(sql a "SELECT pg_walfile_name('$start'::pg_lsn + 1)").gz"
  decode -F json --scratch "$T/scratch" "$T"/0000*.gz | grep -v '"type":"progress"' >"$T/streamed"
  same_text <(grep -v '"type":"end"' "$T/streamed") <(grep -v '"type":"end"' "$T/whole") 'a compressed segment too'
  is "$(ls "$T/scratch")" '' 'nothing is left in the scratch folder'
  rm -f "$T"/0000*.gz

  # Bad input.
  sql a 'UPDATE b SET id = 5 WHERE id = 3'
  end=$(pg_lsn a)
  sql a 'UPDATE b SET id = 2 WHERE id = 1'
  decode -s "$start" "$T/a/pg_wal" >/dev/null 2>"$T/err"
  is "$?" 3 'a TOAST value of an earlier transaction stops'
  like "$(tail -n 1 "$T/err")" 'public\.b, column v: .*reason=toast_missing' 'and says where'
  like "$(decode -s "$start" --toast-missing absent -F json "$T/a/pg_wal" | grep '"table":"b","new"')" '"new":\{"id":2\}' \
    'or is absent by option'
  like "$(decode -s "$first" -e "$end" --toast-store "$T/store" -F json "$T/a/pg_wal" | grep '"new":{"id":5')" '"new":\{"id":5,"v":"y{6000}"\}' \
    'or comes from a store'
  like "$(decode -s "$start" -e "$end" --toast-store "$T/store" -F json "$T/a/pg_wal" | grep '"new":{"id":5')" '"new":\{"id":5,"v":"y{6000}"\}' \
    'which keeps it'
  status_is 3 'a value past --max-value' decode -s "$first" -e "$end" --max-value 64kB "$T/a/pg_wal"
  like "$ERR" 'value of 70000 bytes.*--max-value.*reason=value_too_long' 'is refused'
  status_is 2 'a bad --max-value' decode --max-value 12 "$T/a/pg_wal"
  status_is 2 'a database is needed' ws-decode --catalog "$T/cat" "$T/a/pg_wal"
  status_is 2 'a bad LSN' decode -s 0/Z "$T/a/pg_wal"
  status_is 2 'a bad size' decode -m 12x "$T/a/pg_wal"
  status_is 2 'a limit that is none' decode --max-value 10 "$T/a/pg_wal"
  status_is 2 'a bad format' decode -F xml "$T/a/pg_wal"
  status_is 2 'a bad word' decode --toast-missing maybe "$T/a/pg_wal"
  status_is 2 'no WAL' decode
  status_is 2 'a consumer has no end' ws-decode --state "$T/none" --consumer x -e 0/1
  status_is 2 'no such consumer' ws-decode --state "$T/none" --consumer x
  status_is 3 'no history of that database' ws-decode --catalog "$T/cat" --database 4711 -s "$start" "$T/a/pg_wal"

  pg_conf a wal_level=replica max_wal_senders=0
  pg_restart a
  sql a 'INSERT INTO s VALUES (1)'
  decode -s "$start" --toast-missing absent "$T/a/pg_wal" >/dev/null 2>"$T/err"
  is "$?" 3 'wal_level below logical stops'
  like "$(tail -n 1 "$T/err")" 'reason=wal_level' 'with the reason'
  pg_stop a
}

for_majors major
done_testing
