#!/usr/bin/env bash
# Values through the whole pipeline, by the initial load and by the stream alike: a database in another
# encoding, what does not fit by each policy, types by choice, values that are too long.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

# both TABLE COLUMNS: what the destination has of the rows loaded (id below 100) and streamed (above),
# which must be the same; it is printed once.
both() {
  local loaded streamed
  loaded=$(ch "SELECT id, $2 FROM d.public_$1 FINAL WHERE id < 100 ORDER BY id FORMAT TSV")
  streamed=$(ch "SELECT toInt32(id - 100), $2 FROM d.public_$1 FINAL WHERE id >= 100 ORDER BY id FORMAT TSV")
  [ "$loaded" = "$streamed" ] || { echo "loaded: $loaded streamed: $streamed" | tr '\n\t' ';|'; return; }
  tr '\n\t' ';|' <<<"$loaded"
}

# Rows that are there when the load begins, and the same ones again later.
rows_of_everything() {
  local t
  for t in clamped nulled texted; do
    sql src/d "INSERT INTO $t SELECT $1 + id, n, d, ts, i, a, ip FROM unfit"
  done
  sql src/d "INSERT INTO chosen SELECT $1 + id, h, hn, ip, m, x FROM choice" \
    "INSERT INTO enc VALUES ($1 + 1, E'\\u20ac \\u00fc', ARRAY[E'\\u00e4,\"', NULL], E'gr\\u00fcn', ROW(1, E'\\u00df')), ($1 + 2, 'plain', '{}', 'b', NULL)"
}

values() {
  S=$T/state$PG_MAJOR
  ch_start ch
  pg_new src
  sql src "CREATE DATABASE d ENCODING 'WIN1252' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
  sql src/d "SET client_encoding = 'UTF8'" 'CREATE EXTENSION hstore' "CREATE TYPE farbe AS ENUM (E'gr\\u00fcn', 'b')" \
    "CREATE TYPE pair AS (i int, U&\"gr\\00f6\\00dfe\" text)" \
    'CREATE TABLE unfit (id int, n numeric(6, 2), d date, ts timestamp, i int, a numeric(6, 2)[] NOT NULL, ip inet)' \
    "INSERT INTO unfit VALUES (1, 'NaN', 'infinity', '-infinity', 40000, '{NaN,1.5}', '10.0.0.1'), (2, 1.5, '2020-01-01', '2020-01-01', 1, '{1.5,NULL}', '::1'),
      (3, NULL, '0044-03-15 BC', '20000-01-01 00:00:00', -40000, '{}', NULL)" \
    'CREATE TABLE clamped (LIKE unfit, PRIMARY KEY (id))' 'CREATE TABLE nulled (LIKE unfit, PRIMARY KEY (id))' \
    'CREATE TABLE texted (LIKE unfit, PRIMARY KEY (id))' \
    'CREATE TABLE choice (id int, h hstore, hn hstore, ip inet, m money, x xid8)' \
    "INSERT INTO choice VALUES (1, '\"a\"=>\"1\", \"q\\\"b\"=>\"x\\\\y\"', 'a=>NULL, b=>2', '1.2.3.4', 1234.5, '18446744073709551615'), (2, '', '', '255.255.255.255', -0.01, '0')" \
    'CREATE TABLE chosen (LIKE choice, PRIMARY KEY (id))' \
    'ALTER TABLE chosen ALTER h SET NOT NULL, ALTER hn SET NOT NULL, ALTER ip SET NOT NULL' \
    'CREATE TABLE enc (id int PRIMARY KEY, t text, a text[] NOT NULL, f farbe, p pair)'
  rows_of_everything 0
  # NaN has no nearest number, and a Decimal no room for it: that column is left to the others.
  sql src/d "UPDATE clamped SET n = 9999.99 WHERE n = 'NaN'" "UPDATE clamped SET a = '{2}' WHERE id = 1" \
    'DROP TABLE unfit_' 2>/dev/null
  cat >"$T/routes" <<'R'
exclude public.unfit
exclude public.choice
table public.clamped unfit=clamp
table public.nulled unfit=null
table public.texted unfit=text
table *
column public.clamped.i type=Nullable(Int16)
column public.nulled.i type=Nullable(Int16)
column public.clamped.ip type=Nullable(IPv6)
column public.nulled.ip type=Nullable(IPv6)
column public.chosen.h type="Map(String, String)"
column public.chosen.hn type="Map(LowCardinality(String), Nullable(String))"
column public.chosen.ip type=IPv4
R
  ok 'set up' pipe_init src/d --routes "$T/routes" || return
  for t in clamped nulled texted; do
    sql src/d "INSERT INTO $t SELECT id + 100, n, d, ts, i, a, ip FROM $t"
  done
  sql src/d 'INSERT INTO chosen SELECT id + 100, h, hn, ip, m, x FROM chosen' \
    'INSERT INTO enc SELECT id + 100, t, a, f, p FROM enc'
  ok 'drained' pipe_drain src || return
  is "$(both clamped 'n, d, ts, i, a')" \
    '1|9999.99|9999-12-31|0001-01-01 00:00:00.000000|32767|[2];2|1.5|2020-01-01|2020-01-01 00:00:00.000000|1|[1.5,NULL];3|\N|0001-01-01|9999-12-31 23:59:59.999999|-32768|[];' \
    'unfit=clamp: the nearest'
  is "$(both clamped ip)" '1|::ffff:10.0.0.1;2|::1;3|\N;' 'an IPv4 address in an IPv6 column'
  is "$(both nulled 'n, d, ts, i, a, ip')" \
    '1|\N|\N|\N|\N|[NULL,1.5]|\N;2|1.5|2020-01-01|2020-01-01 00:00:00.000000|1|[1.5,NULL]|::1;3|\N|\N|\N|\N|[]|\N;' 'unfit=null'
  is "$(both texted 'n, d, ts, i, a, ip')" \
    '1|NaN|infinity|-infinity|40000|{NaN,1.50}|10.0.0.1;2|1.50|2020-01-01|2020-01-01 00:00:00|1|{1.50,NULL}|::1;3|\N|0044-03-15 BC|20000-01-01 00:00:00|-40000|{}|\N;' \
    'unfit=text'
  is "$(both chosen 'mapKeys(h), mapValues(h), hn, ip, m, x')" \
    "1|['a','q\"b']|['1','x\\\\y']|{'a':NULL,'b':'2'}|1.2.3.4|1234.5|18446744073709551615;2|[]|[]|{}|255.255.255.255|-0.01|0;" \
    'Map, IPv4, Decimal, UInt64'
  is "$(both enc 't, a, f, p')" '1|€ ü|['"'"'ä,"'"'"',NULL]|grün|(1,ß);2|plain|[]|b|\N;' 'WIN1252 comes out in UTF-8'
  ok 'what a policy changed is counted' wait_for -t 20 -m 'the metrics' grep -q '^walshadow_emit_unfit_values_total 16$' "$S/metrics/ws-emit.main.prom"
  pg_to_ch_compare src/d public.chosen d.public_chosen
  pg_to_ch_compare src/d public.texted d.public_texted
  sql src/d 'ALTER TABLE chosen ADD mm money DEFAULT 7, ADD hh hstore DEFAULT $$k=>v$$' "INSERT INTO chosen VALUES (300, '', '', '1.1.1.1', 2, '3', 4, 'a=>b')" \
    "SET client_encoding = 'UTF8'" "ALTER TABLE enc ADD U&\"gr\\00f6\\00dfe\" text DEFAULT E'\\u00fc'" 'UPDATE enc SET t = $$new$$ WHERE id = 2'
  ok 'columns that came later' pipe_drain src || return
  pg_to_ch_compare src/d public.chosen d.public_chosen
  pg_to_ch_compare src/d public.enc d.public_enc
  stops
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE d'
}

failed() { local s; s=$(walshadow status 2>&1); [[ $s =~ consumer.main\ *FAILED\ status=3 ]]; }

# stops_at TOOL REASON DESC SQL...
stops_at() {
  local tool=$1 reason=$2 desc=$3
  shift 3
  sql src/d "$@" || fail "$desc: SQL"
  ok "$desc: status 3" wait_for -t 60 -m 'the consumer to stop' failed || return 1
  like "$(tail -n 1 "$S/log/$tool.main.log")" "reason=$reason\$" "$desc: the reason is $reason"
}

stops() {
  # A byte that WIN1252 does not have; PostgreSQL takes it where nothing is converted.
  stops_at emit invalid_encoding 'a text that is not of the encoding' "SET client_encoding = 'SQL_ASCII'" \
    "INSERT INTO enc (id, t, a) VALUES (400, E'\\x81', '{}')" || return
  sed -i '1i exclude public.enc' "$T/routes"
  pipe_stop
  pipe_start
  ok 'it goes on without that table' pipe_drain src || return
  echo WS_DECODE_MAX_VALUE=100kB >>"$S/walshadow.conf"
  pipe_stop
  pipe_start
  sql src/d 'CREATE TABLE long (id int PRIMARY KEY, v text)' "INSERT INTO long VALUES (1, repeat('x', 100000))"
  ok 'a value of that length' pipe_drain src || return
  stops_at decode value_too_long 'a longer value' "INSERT INTO long VALUES (2, repeat('x', 102401))" || return
  sed -i 's/^WS_DECODE_MAX_VALUE=.*/WS_DECODE_MAX_VALUE=1MB/' "$S/walshadow.conf"
  pipe_stop
  pipe_start
  ok 'with a larger limit it goes on' pipe_drain src
  is "$(ch 'SELECT length(v) FROM d.public_long FINAL WHERE id = 2')" 102401 'and the value is there'
}

for_majors values
done_testing
