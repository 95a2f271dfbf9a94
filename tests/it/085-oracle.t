#!/usr/bin/env bash
# The oracle: values of every type as text, against the server's own; errors of single values; its
# limits; a worker that is killed; a server that restarts; descriptions from the history.
# shellcheck disable=SC2016 # dollar quotes of SQL
. "$(dirname "$0")/lib/it.sh"

MODULES=$WS_BUILD/pgext

# A primary that has the module: what it renders does not depend on the server's role.
oracle_server() {
  local lib=$MODULES/$PG_MAJOR/walshadow_oracle
  pg_init a
  pg_conf a autovacuum=off "shared_preload_libraries='$lib'" "dynamic_library_path='\$libdir:$MODULES/$PG_MAJOR'" \
    "walshadow_oracle.directory='$T/o'" walshadow_oracle.value_timeout=2s walshadow_oracle.memory_limit=512MB
  pg_start a
  C=$(pg_conninfo a)
  DB=$(sql a 'SELECT oid FROM pg_database WHERE datname = current_database()')
  TEST=$MODULES/$PG_MAJOR/oracle_test.so
}

capture() { catfill "$T/cat" "$C" "$T/a/pg_wal" >>"$T/catfill.log" 2>&1 || die catfill; }
decode() {
  ws-decode -F json --catalog "$T/cat" --database "$DB" --start "$START" "$@" "${WAL:-$T/a/pg_wal}"
}

# rows_of TABLE: the last version of each row in a JSON stream, as `id column value` lines.
rows_of() {
  perl -MJSON::PP -ne '
    BEGIN { $t = shift; binmode STDOUT, ":utf8" }
    my $c = JSON::PP->new->utf8->allow_bignum->decode($_);
    next unless $c->{type} eq "row" && $c->{table} eq $t && $c->{new};
    $rows{$c->{new}{id}} = $c->{new};
    delete $rows{$c->{old}{id}} if $c->{old} && $c->{old}{id} != $c->{new}{id};
    END {
      for my $id (sort { $a <=> $b } keys %rows) {
        for my $k (sort keys %{$rows{$id}}) {
          my $v = $rows{$id}{$k};
          next if $k eq "id" || !defined $v || ref $v || $k !~ /$ENV{COLUMNS_LIKE}/;
          $v =~ s/\\/\\\\/g; $v =~ s/\n/\\n/g;
          print "$id $k $v\n";
        }
      }
    }' "$1"
}

# The same from the server.
rows_in() {
  local cols
  cols=$(sql a "SELECT string_agg(format('(%L, format(''%%s'', %I), %I IS NOT DISTINCT FROM NULL)', attname, attname, attname), ', ') FROM pg_attribute
    WHERE attrelid = '$1'::regclass AND attnum > 1 AND NOT attisdropped AND attname ~ '$COLUMNS_LIKE'")
  sql a 'SET extra_float_digits = 1' "SET timezone = 'UTC'" "SELECT id || ' ' || k || ' ' || replace(replace(v, '\\', '\\\\'), E'\\n', '\\n')
    FROM $1, LATERAL (VALUES $cols) x (k, v, nul) WHERE NOT nul ORDER BY id, k COLLATE \"C\""
}

types() {
  run "$PGTOOL" -Xq -d "$C" -v lib="$TEST" -t -f "$TOP/tests/it/data/085-types.sql"
  is "$STATUS:$ERR" 0: 'tables with columns of every type'
  is "$(grep -c . <<<"$OUT")" 0 'there is a sample of every type' || diag "$OUT"
  capture
  START=$(pg_lsn a)
  run "$PGTOOL" -Xq -d "$C" -f "$TOP/tests/it/data/085-rows.sql"
  is "$STATUS:$ERR" 0: 'rows with values of every type'
  sql a 'SELECT pg_switch_wal()' >/dev/null
  decode --oracle "$T/o/socket" >"$T/stream" 2>"$T/stream.err"
  is "$?" 0 'ws-decode has them as text' || diag "$(tail -n 3 "$T/stream.err")"
  export COLUMNS_LIKE='^[cd]'
  rows_of whole <"$T/stream" >"$T/whole.got"
  rows_in whole >"$T/whole.want"
  is "$(grep -c '^11 c_' "$T/whole.want")" "$(sql a 'SELECT count(*) FROM sample WHERE v IS NOT NULL')" 'each of them has a composite'
  same_file "$T/whole.got" "$T/whole.want" 'composites with every type, and arrays of them, are as the server prints them'
  # What is decoded here is compared elsewhere; of the rest all is text.
  rows_of plain <"$T/stream" | sort >"$T/plain.got"
  rows_in plain | sort >"$T/plain.want"
  perl -MJSON::PP -ne 'my $c = decode_json($_); next unless $c->{type} eq "relation" && $c->{table} eq "plain";
    print map { "$_->{name}\n" } grep { $_->{kind} eq "other" } @{$c->{columns}}' <"$T/stream" >"$T/others"
  for f in got want; do awk 'NR == FNR { o[$1] = 1; next } $2 in o' "$T/others" "$T/plain.$f" >"$T/plain.$f.o"; done
  ok 'columns that are text there are' test -s "$T/plain.got.o"
  same_file "$T/plain.got.o" "$T/plain.want.o" 'and so are columns of the types themselves'
  unlike "$(cat "$T/stream")" unsupported 'nothing went as bytes'
  # Without it they are bytes, and counted.
  decode --metrics "$T/prom" >"$T/stream0" 2>&1
  like "$(cat "$T/stream0")" '"\$unsupported"' 'without the oracle they are bytes'
  like "$(grep ^walshadow_decode_unsupported_values_total "$T/prom")" ' [1-9][0-9]+$' 'and counted'
}

# What would be read from the present catalogs: oids instead of names.
catalogs() {
  sql a 'CREATE TYPE cat AS (c regclass, t regtype[], r regrole, z regproc, a aclitem, o odd)' 'CREATE TABLE reg (id int PRIMARY KEY, v cat)'
  capture
  START=$(pg_lsn a)
  sql a "INSERT INTO reg VALUES (1, ROW('pg_class', '{int4,text}', 'postgres', '-', 'postgres=arw*/postgres', '9'))" 'SELECT pg_switch_wal()' >/dev/null
  COLUMNS_LIKE=v
  is "$(decode --oracle "$T/o/socket" | rows_of reg)" '1 v (1259,"{23,25}",10,-,10=arw*/10,9!)' 'what names catalogs is written with oids'
}

# By the description of the time: the server is ahead.
history() {
  sql a "CREATE TYPE shape AS (a int, m mood, o odd)" 'CREATE TABLE h (id int PRIMARY KEY, v shape, w shape[])' \
    'CREATE TABLE h2 (id int PRIMARY KEY, v shape)'
  capture
  START=$(pg_lsn a)
  sql a "INSERT INTO h VALUES (1, ROW(1, 'sad', '7'), ARRAY[ROW(2, 'ok', NULL)::shape])"
  sql a 'ALTER TYPE shape ADD ATTRIBUTE n text'
  capture
  sql a "INSERT INTO h VALUES (2, ROW(1, 'sad', '7', 'new'), NULL)"
  sql a "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"
  capture
  sql a "INSERT INTO h VALUES (3, ROW(1, 'blue', '7', NULL), NULL)"
  sql a 'ALTER TYPE shape DROP ATTRIBUTE a'
  capture
  sql a "INSERT INTO h VALUES (4, ROW('blue', '7', 'x,'), NULL)" 'DROP TABLE h, h2; DROP TYPE shape'
  capture
  COLUMNS_LIKE=.
  is "$(decode --oracle "$T/o/socket" | rows_of h)" '1 v (1,sad,7!)
1 w {"(2,ok,)"}
2 v (1,sad,7!,new)
3 v (1,blue,7!,)
4 v (blue,7!,"x,")' 'every value by the types of its time'
}

ask() { perl "$IT_LIB/oracle-client.pl" "$T/o/socket" "$DB" "int4:$TEST:oracle_test_out" "$@"; }
worker() { sql a "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walshadow oracle'"; }

values() {
  is "$(ask 7 1 8)" 'text 7!
failed this value has no text (SQLSTATE XX000)
text 8!' 'an error of a value is its own'
  is "$(ask 7 2 8)" 'text 7!
failed its output function took longer than 2 s
text 8!' 'a value that takes too long'
  is "$(ask 7 5 8 | sed 's/ (SQL.*//')" 'text 7!
failed out of memory
text 8!' 'a value that takes too much memory'
  is "$(ask 7 6 8)" closed 'a value that ends its session ends the worker'
  is "$(ask 9)" 'text 9!' 'and another is started'
  is "$(perl "$IT_LIB/oracle-client.pl" "$T/o/socket" 4000000000 int4::int4out 1 | sed 's/;.*//')" \
    "again the database's worker ended at its start" 'a database that is not there'
  local i out=''
  for i in 1 2 3 4 5 6 7 8 9 10 50 500 5000; do
    out+=$(perl "$IT_LIB/oracle-client.pl" "$T/o/socket" "$DB" x "garbage:$i" | cut -c 1)
  done
  like "$out" '^[Xc]+$' 'garbage is refused'
  is "$(ask 9)" 'text 9!' 'and harms nobody else'
}

# ws-decode stops at a value that has no text, and says which.
stops() {
  sql a 'CREATE TABLE bad (id int PRIMARY KEY, v odd)'
  capture
  START=$(pg_lsn a)
  sql a "INSERT INTO bad VALUES (1, '7'), (2, '1'), (3, '8')" 'SELECT pg_switch_wal()' >/dev/null
  run decode --oracle "$T/o/socket"
  is "$STATUS" 3 'a value without text stops the pipeline'
  like "$ERR" 'reason=oracle_value' 'with the reason'
  like "$ERR" 'type public.odd in the row at .* this value has no text' 'the type and the row'
  run decode --oracle "$T/o/none"
  is "$STATUS" 1 'an oracle that is not there is temporary'
  run decode --oracle ''
  is "$STATUS" 2 'and an empty name is none'
}

# A crash of the worker is one of the server, which starts again by itself.
crash() {
  sql a 'CREATE TABLE fatal (id int PRIMARY KEY, v odd)' 'CREATE TABLE many (id int PRIMARY KEY, v odd)'
  capture
  START=$(pg_lsn a)
  sql a "INSERT INTO fatal SELECT i, CASE i WHEN 300 THEN '6' ELSE '7' END::odd FROM generate_series(1, 1000) i" 'SELECT pg_switch_wal()' >/dev/null
  run decode --oracle "$T/o/socket"
  is "$STATUS" 3 'a value that ends the worker each time is found'
  like "$ERR" 'reason=oracle_crash' 'and stops the pipeline'
  START=$(pg_lsn a)
  sql a "INSERT INTO many SELECT i, (i + 100)::text::odd FROM generate_series(1, 200000) i" 'SELECT pg_switch_wal()' >/dev/null
  # A crash recovery takes segments away.
  cp -r "$T/a/pg_wal" "$T/wal"
  WAL=$T/wal
  # Killed while it is at work.
  bg killer bash -c 'for i in 1 2 3; do sleep 0.4; kill -TERM $(psql -XAtq -d "$1" -c "SELECT pid FROM pg_stat_activity WHERE backend_type = \$\$walshadow oracle\$\$"); done' x "$C"
  decode --oracle "$T/o/socket" >"$T/many" 2>"$T/many.err"
  is "$?" 0 'a worker that is killed is asked again' || diag "$(tail -n 3 "$T/many.err")"
  wait_for not_alive killer
  STATUS=0
  is "$(grep -c '"v":"[0-9]*!"' "$T/many")" 200000 'no value is lost or doubled'
  decode --oracle "$T/o/socket" >"$T/many2" 2>"$T/many.err" &
  local pid=$!
  sleep 0.3
  kill -KILL "$(worker)" 2>/dev/null
  wait $pid
  is "$?" 0 'nor when it is a crash of the server'
  same_file "$T/many2" "$T/many" 'the stream is the same'
  wait_for sql a 'SELECT 1'
}

major() {
  rm -rf "$T/o" "$T/cat" "$T/wal"
  WAL=
  oracle_server
  pg_tool psql
  types
  catalogs
  history
  values
  stops
  crash
  pg_stop a
}

[ -e "$MODULES/17/walshadow_oracle.so" ] || bail_out 'no module: make pgext'
for_majors major
done_testing
