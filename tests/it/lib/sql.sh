# SQL of every kind that is supported, in the files of data/350: after each step everything is
# drained and the tables are compared, every column of every row.  Then sessions side by side in an
# order of WS_SEED, what the documented policy is to stop at, and sequences.  WS_SQL chooses files and
# parts (sessions, stops, stops_ddl, sequences) by a pattern, which each test file has.
# shellcheck shell=bash disable=SC2053 # WS_SQL is a pattern
. "$IT_LIB/pipe.sh"

SEED=${WS_SEED:-$RANDOM}
RANDOM=$SEED
note "WS_SEED=$SEED"

# compare_tables SCHEMA-REGEX: every permanent table in these schemas.
compare_tables() {
  sql src/app "SELECT format(E'%1\$I.%2\$I\tapp.%1\$s_%2\$s\t%3\$s: %1\$I.%2\$I', nspname, relname, \$_\$$STEP\$_\$)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind = 'r' AND relpersistence = 'p' AND nspname ~ '$1' ORDER BY nspname, relname" >"$T/.compare.tables"
  pg_to_ch_compare_all src/app app <"$T/.compare.tables"
}

drained() { pipe_drained src "$STEP"; }

# run_file FILE: its steps, each drained and compared.  A change of another database goes with it.
run_file() {
  local name schema i
  name=$(basename "$1" .sql)
  schema=s${name%%-*}
  rm -f "$T"/step.*
  csplit -s -z -f "$T/step." -n 3 "$1" '/^-- step/' '{*}'
  sql src/app "CREATE SCHEMA $schema"
  for i in "$T"/step.*; do
    STEP="$name $(head -n 1 "$i" | sed 's/^-- //; s/^step:/'"${i##*.}"'/')"
    sql src/other "INSERT INTO noise SELECT g, md5(g::text) FROM generate_series(1, 20) g" \
      'CREATE TABLE x AS SELECT * FROM noise' 'DROP TABLE x' 'VACUUM FULL noise'
    sql src/app <"$i" >"$T/step.out" 2>"$T/step.err" || fail "$STEP: SQL" "$(head -n 5 "$T/step.err")"
    drained || return 1
    compare_tables "^$schema"
  done
}

# leave_out FILE: a file that failed does not hide what the others would find.
leave_out() {
  local name
  name=$(basename "$1")
  sed -i "1i exclude *s${name%%-*}*.*" "$T/routes"
  pipe_stop
  pipe_start
  STEP="without $name"
  drained
}

# ---- sessions side by side ----

# random_sql SESSION: statements over few rows, so that sessions meet, wait, fail and deadlock.
random_sql() {
  local i n k open=0
  for ((i = 0; i < 150; i++)); do
    n=$((RANDOM % 60)) k=$((RANDOM % 60))
    case $((RANDOM % 20)) in
    0 | 1) echo "INSERT INTO r.a VALUES ($n, 's$1 i$i', $k) ON CONFLICT (id) DO UPDATE SET v = excluded.v, n = r.a.n + 1;" ;;
    2) echo "INSERT INTO r.a VALUES ($n, 's$1 i$i', $k) ON CONFLICT DO NOTHING;" ;;
    3) echo "INSERT INTO r.a SELECT g, 's$1 i$i', g FROM generate_series($n, $n + 5) g;" ;;
    4 | 5) echo "UPDATE r.a SET v = v || '.', n = $k WHERE id BETWEEN $n AND $n + 3;" ;;
    6) echo "UPDATE r.a SET id = $k WHERE id = $n;" ;;
    7 | 8) echo "DELETE FROM r.a WHERE id BETWEEN $n AND $n + 2;" ;;
    9) echo "INSERT INTO r.b VALUES ($n, repeat(md5('$i'), 100), $k) ON CONFLICT (id, k) DO UPDATE SET v = repeat(md5('$k'), 150);" ;;
    10) echo "UPDATE r.b SET k = $k WHERE id = $n;" ;;
    11) echo "DELETE FROM r.b WHERE id = $n; INSERT INTO r.b VALUES ($n, 's$1', $k);" ;;
    12) echo "UPDATE r.p SET k = k + $k - 30 WHERE id = $n;" ;;
    13) echo "INSERT INTO r.p VALUES ($n, $k) ON CONFLICT (id, k) DO NOTHING;" ;;
    14) ((open)) && echo "SAVEPOINT s$((RANDOM % 3));" ;;
    15) ((open)) && echo "ROLLBACK TO s$((RANDOM % 3));" ;;
    16 | 17)
      if ((open)); then
        ((RANDOM % 4)) && echo 'COMMIT;' || echo 'ROLLBACK;'
      else
        echo 'BEGIN;'
      fi
      open=$((!open))
      ;;
    18) echo "SELECT pg_sleep(0.00$((RANDOM % 9)));" ;;
    19)
      case $((RANDOM % 12)) in
      0) echo "ALTER TABLE r.a ADD COLUMN IF NOT EXISTS c$((k % 3)) int DEFAULT $k;" ;;
      1) echo "ALTER TABLE r.a DROP COLUMN IF EXISTS c$((k % 3));" ;;
      2) echo 'TRUNCATE r.b;' ;;
      3) echo 'CLUSTER r.a USING a_pkey;' ;;
      4) echo 'ALTER TABLE r.b ALTER n TYPE bigint USING n + 1;' ;;
      5) echo 'ALTER TABLE r.b ALTER n TYPE int USING n - 1;' ;;
      6) echo "CREATE TABLE IF NOT EXISTS r.n$((k % 3)) (id int PRIMARY KEY); INSERT INTO r.n$((k % 3)) VALUES ($n);" ;;
      7) echo "DROP TABLE IF EXISTS r.n$((k % 3));" ;;
      8) echo 'CREATE TEMP TABLE IF NOT EXISTS x (a int); DROP TABLE x;' ;;
      9) echo 'CHECKPOINT;' ;;
      10) echo 'VACUUM FULL r.p1;' ;;
      11) echo "ALTER TABLE r.p ADD COLUMN IF NOT EXISTS d$((k % 2)) text DEFAULT 'd$k';" ;;
      esac
      ;;
    esac
  done
  echo 'COMMIT;'
}

sessions() {
  local i pids=()
  STEP="sessions, seed $SEED"
  sql src/app "CREATE SCHEMA r" "CREATE TABLE r.a (id int PRIMARY KEY, v text, n int)" \
    "CREATE TABLE r.b (id int, v text, k int, n int DEFAULT 1, PRIMARY KEY (id, k))" "ALTER TABLE r.b REPLICA IDENTITY FULL" \
    "CREATE TABLE r.p (id int, k int, PRIMARY KEY (id, k)) PARTITION BY RANGE (k)" \
    "CREATE TABLE r.p1 PARTITION OF r.p FOR VALUES FROM (MINVALUE) TO (30)" "CREATE TABLE r.p2 PARTITION OF r.p DEFAULT"
  for i in 1 2 3 4 5; do
    random_sql "$i" >"$T/session.$i"
    PGOPTIONS='-c deadlock_timeout=20ms -c lock_timeout=500ms' psql_bounded -XAtq -d "$(pg_conninfo src app)" \
      -f "$T/session.$i" >"$T/session.$i.out" 2>&1 &
    pids+=($!)
  done
  wait "${pids[@]}"
  drained || return 1
  compare_tables '^r$'
}

# ---- what stops ----

consumer_failed() {
  local status
  status=$(walshadow status 2>&1)
  [[ $status =~ consumer.main\ *FAILED\ status=3 ]]
}

# stops TOOL REASON DESC SQL...: the consumer ends with status 3 and that reason, and neither its
# position nor rows move past the commit.
stops() {
  local tool=$1 reason=$2 desc=$3
  shift 3
  STEP=$desc
  drained || return 1
  sql src/app "$@" || fail "$desc: SQL"
  stopped "$tool" "$reason" "$desc"
}

# stopped TOOL REASON DESC: the same when what it stops at has been run.
stopped() {
  local tool=$1 reason=$2 desc=$3 after
  after=$(sql src 'SELECT pg_current_wal_insert_lsn()')
  sql src/app "INSERT INTO stop.after VALUES (DEFAULT)"
  ok "$desc: status 3" wait_for -t 30 -m 'the consumer to stop' consumer_failed || return 1
  like "$(tail -n 1 "$S/log/$tool.main.log")" "reason=$reason\$" "$desc: the reason is $reason"
  not_ok "$desc: nothing past it is acknowledged" pos_ge "$S/pos/ack.main" "$after"
  isnt "$(ch 'SELECT max(id) FROM app.stop_after')" "$(sql src/app 'SELECT max(id) FROM stop.after')" "$desc: nor written"
}

# goes_on DESC ROUTE...: rules in front of the others, all arrives, and the tables are equal.
goes_on() {
  resume "$@" && compare_tables '^stop$'
}

resume() {
  local desc=$1
  shift
  { printf '%s\n' "$@"; cat "$T/routes"; } >"$T/routes.new"
  mv "$T/routes.new" "$T/routes"
  pipe_stop
  pipe_start
  STEP="$desc: goes on"
  ok "$STEP" drained
}

stops_all() {
  sql src/app 'CREATE SCHEMA stop' 'CREATE TABLE stop.after (id serial PRIMARY KEY)' 'INSERT INTO stop.after VALUES (DEFAULT)' \
    'CREATE TABLE stop.d (id int PRIMARY KEY, d date, n numeric(5, 2), f float8)' 'INSERT INTO stop.d (id) VALUES (1)' \
    'CREATE TABLE stop.t (id int PRIMARY KEY, v text, n int)' 'ALTER TABLE stop.t ALTER v SET STORAGE EXTERNAL' \
    "INSERT INTO stop.t VALUES (1, repeat('x', 5000), 1)"
  stops emit value_unfit 'an infinite date' "INSERT INTO stop.d VALUES (2, 'infinity')" || return
  ch 'ALTER TABLE app.stop_d MODIFY COLUMN d Nullable(String)'
  goes_on 'an infinite date, the column a String' '#'
  stops emit value_unfit 'a numeric NaN' "BEGIN; INSERT INTO stop.d VALUES (3, NULL, 1.5); INSERT INTO stop.d VALUES (4, NULL, 'NaN'); COMMIT" || return
  resume 'a numeric NaN as NULL' 'table stop.d unfit=null'
  is "$(ch 'SELECT id, n FROM app.stop_d FINAL WHERE id IN (3, 4) ORDER BY id FORMAT TSV' | tr '\n\t' '; ')" '3 1.5;4 \N;' 'a numeric NaN as NULL'
  sql src/app 'UPDATE stop.d SET n = 2 WHERE id = 4'
  stops emit type_unsupported 'an unsupported type' 'CREATE TABLE stop.u (id int PRIMARY KEY, p pg_snapshot)' "INSERT INTO stop.u VALUES (1, NULL), (2, '1:2:')" || return
  sql src/app 'DELETE FROM stop.u WHERE id = 2'
  goes_on 'an unsupported type in hexadecimal' 'table stop.u unsupported=hex'
  stops emit keyless 'a table without a key' 'CREATE TABLE stop.k (a int, b text)' "INSERT INTO stop.k VALUES (1, 'x')" || return
  goes_on 'a table without a key, append only' 'table stop.k keyless=append'
  stops emit append_only_changed 'its row is deleted' 'ALTER TABLE stop.k REPLICA IDENTITY FULL' 'DELETE FROM stop.k' || return
  resume 'the table excluded' 'exclude stop.k'
  sql src/app 'DROP TABLE stop.k'
  stops emit keyless 'a deferrable primary key' 'CREATE TABLE stop.def (id int PRIMARY KEY DEFERRABLE, v int)' 'INSERT INTO stop.def SELECT g, g FROM generate_series(1, 5) g' || return
  resume 'the table with a deferrable key excluded' 'exclude stop.def'
  sql src/app 'DROP TABLE stop.def'
  # No stop: a TOAST value that is left alone.
  sql src/app 'UPDATE stop.t SET n = 2'
  stops emit key_text_changed 'a label of a key is renamed' "CREATE TYPE stop.e AS ENUM ('a', 'b')" 'CREATE TYPE stop.c AS (x int, e stop.e)' \
    'CREATE TABLE stop.el (k stop.e PRIMARY KEY, v int)' 'CREATE TABLE stop.ec (k stop.c PRIMARY KEY, v int)' \
    "INSERT INTO stop.el VALUES ('a', 1)" "INSERT INTO stop.ec VALUES ('(1,a)', 1)" "ALTER TYPE stop.e ADD VALUE 'z'" "ALTER TYPE stop.e RENAME VALUE 'a' TO 'c'" || return
  resume 'the tables with that key excluded' 'exclude stop.el' 'exclude stop.ec'
  stops emit key_text_changed 'a composite of a key changes' 'CREATE TYPE stop.r AS (x int)' 'CREATE TABLE stop.er (k stop.r PRIMARY KEY, v int)' \
    "INSERT INTO stop.er VALUES ('(1)', 1)" 'ALTER TYPE stop.r ADD ATTRIBUTE y int' || return
  resume 'the table with that key excluded' 'exclude stop.er'
  sql src/app 'DROP TABLE stop.el, stop.ec, stop.er' 'DROP TYPE stop.r, stop.c, stop.e'
  stops emit text_changed 'a label in an array is renamed' "CREATE TYPE stop.e AS ENUM ('a', 'b')" 'CREATE TABLE stop.tl (k int PRIMARY KEY, v stop.e, w stop.e[])' \
    "INSERT INTO stop.tl VALUES (1, 'a', '{b}')" "ALTER TYPE stop.e ADD VALUE 'z'" "INSERT INTO stop.tl VALUES (2, 'z', '{z,a}')" "ALTER TYPE stop.e RENAME VALUE 'b' TO 'c'" || return
  resume 'the old text is kept' 'table stop.tl text-change=keep'
  sql src/app "UPDATE stop.tl SET v = 'c' WHERE k = 2"
  ok 'a label that is renamed: the rows go on' drained
  is "$(ch 'SELECT k, v, w FROM app.stop_tl FINAL ORDER BY k FORMAT TSV' | tr '\n\t' '; ')" '1 a {b};2 c {z,a};' 'with the new text'
  stops emit text_changed 'a composite in a composite gets an attribute' 'CREATE TYPE stop.r AS (x int)' 'CREATE TYPE stop.rr AS (r stop.r)' 'CREATE TABLE stop.tr (k int PRIMARY KEY, v stop.rr)' \
    "INSERT INTO stop.tr VALUES (1, ROW(ROW(1)))" 'ALTER TYPE stop.r ADD ATTRIBUTE y int' || return
  resume 'the table excluded' 'exclude stop.tr'
  sql src/app 'DROP TABLE stop.tl, stop.tr' 'DROP TYPE stop.rr, stop.r, stop.e'
  STEP='after all stops'
  drained && compare_tables '^stop$'
}

# ---- what stops, by DDL: identities that go, files that change hands ----

# holding SQL: in a transaction that stays open until `release`.
holding() {
  bg gate psql -Xqt "$(pg_conninfo src app)" -c 'SELECT pg_advisory_lock(350)' -c 'SELECT pg_sleep(600)'
  wait_for_is 1 sql src "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
  bg writer psql -Xqt "$(pg_conninfo src app)" -c BEGIN -c "$1" -c 'SELECT pg_advisory_lock(350)' -c COMMIT
  wait_for_is 1 sql src "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
}

release() {
  sql src "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted" >/dev/null
  wait_for not_alive gate
  wait_for not_alive writer
}

# The identity's index is dropped while a transaction is open that has written old keys by it.
identity_dropped() {
  sql src/app 'CREATE TABLE stop.w (id int NOT NULL, v int)' 'CREATE UNIQUE INDEX w_i ON stop.w (id)' \
    'ALTER TABLE stop.w REPLICA IDENTITY USING INDEX w_i' 'INSERT INTO stop.w SELECT g, g FROM generate_series(1, 9) g'
  STEP='before the identity goes'
  drained && compare_tables '^stop$' || return
  holding 'DELETE FROM stop.w WHERE id = 1'
  bg dropper psql -Xqt "$(pg_conninfo src app)" -c 'DROP INDEX CONCURRENTLY stop.w_i'
  wait_for_is 1 sql src/app "SELECT count(*) FROM pg_index WHERE indexrelid = 'stop.w_i'::regclass AND NOT indisreplident"
  release
  wait_for not_alive dropper
  stopped emit keyless 'the identity index is dropped while a writer is open' || return
  resume 'the table whose identity went excluded' 'exclude stop.w'
  sql src/app 'DROP TABLE stop.w'
}

# Another primary key: rows of the destination are told apart by what is no key any more.
key_replaced() {
  sql src/app 'CREATE TABLE stop.pk (a int PRIMARY KEY, b int NOT NULL, v text)' "INSERT INTO stop.pk SELECT g, -g, 'x' FROM generate_series(1, 9) g"
  stops emit sort_key 'the primary key is replaced by another' 'BEGIN; DELETE FROM stop.pk WHERE a = 1; ALTER TABLE stop.pk DROP CONSTRAINT pk_pkey, ADD PRIMARY KEY (b);
    UPDATE stop.pk SET a = 5 WHERE b = -6; DELETE FROM stop.pk WHERE b = -7; COMMIT' || return
  resume 'the table with another key excluded' 'exclude stop.pk'
  sql src/app 'DROP TABLE stop.pk'
}

# What pg_repack does: a copy kept up by a trigger, then the two exchange their files in pg_class.
repacked() {
  resume 'what pg_repack makes excluded' 'exclude repack.*' || return
  sql src/app 'CREATE TABLE stop.r (id int PRIMARY KEY, v text, n int)' "INSERT INTO stop.r SELECT g, 'v' || g, g FROM generate_series(1, 500) g" \
    'CREATE SCHEMA repack' 'CREATE TABLE repack.log (id serial PRIMARY KEY, k int)' \
    'CREATE FUNCTION repack.trg() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO repack.log (k) VALUES (coalesce(NEW.id, OLD.id)); RETURN NULL; END $$' \
    'CREATE TRIGGER trg AFTER INSERT OR DELETE OR UPDATE ON stop.r FOR EACH ROW EXECUTE FUNCTION repack.trg()' \
    'CREATE TABLE repack.table_r AS SELECT * FROM stop.r ORDER BY id DESC' 'ALTER TABLE repack.table_r ADD PRIMARY KEY (id)' \
    "UPDATE stop.r SET n = -n WHERE id % 7 = 0" 'DELETE FROM stop.r WHERE id % 11 = 0'
  STEP='before the swap'
  drained && compare_tables '^stop$' || return
  stops decode filenode_swap 'files exchanged as pg_repack does' "SET allow_system_table_mods = on; BEGIN; LOCK TABLE stop.r;
    DELETE FROM repack.table_r WHERE id IN (SELECT k FROM repack.log); INSERT INTO repack.table_r SELECT * FROM stop.r WHERE id IN (SELECT k FROM repack.log);
    UPDATE pg_class a SET relfilenode = b.relfilenode FROM pg_class b WHERE (a.oid = 'stop.r'::regclass AND b.oid = 'repack.table_r'::regclass)
      OR (b.oid = 'stop.r'::regclass AND a.oid = 'repack.table_r'::regclass);
    UPDATE pg_class a SET relfilenode = b.relfilenode FROM pg_class b WHERE (a.oid = 'stop.r_pkey'::regclass AND b.oid = 'repack.table_r_pkey'::regclass)
      OR (b.oid = 'stop.r_pkey'::regclass AND a.oid = 'repack.table_r_pkey'::regclass);
    COMMIT" || return
  echo 'WS_DECODE_TRUST_SWAPS=yes' >>"$S/walshadow.conf"
  goes_on 'files exchanged, trusted' '#'
  sql src/app 'DROP TRIGGER trg ON stop.r' 'DROP SCHEMA repack CASCADE' 'UPDATE stop.r SET n = 0 WHERE id < 9' 'DELETE FROM stop.r WHERE id BETWEEN 20 AND 30' \
    "INSERT INTO stop.r VALUES (1000, 'after the swap', 1)" 'VACUUM FULL stop.r' "UPDATE stop.r SET v = 'moved' WHERE id = 1000"
  STEP='rows after the swap'
  drained && compare_tables '^stop$'
}

stops_ddl() {
  sql src/app 'CREATE SCHEMA IF NOT EXISTS stop' 'CREATE TABLE IF NOT EXISTS stop.after (id serial PRIMARY KEY)' 'INSERT INTO stop.after VALUES (DEFAULT)'
  identity_dropped
  key_replaced
  repacked
}

# ---- sequences as rows ----

seq_row() { ch "SELECT last_value, is_called FROM app.walshadow_sequences FINAL WHERE schema_name = 'q' AND sequence_name = '$1' FORMAT TSV" | tr '\t' ' '; }
seq_is() { is "$(seq_row "$1")" "$2" "sequences: $3"; }

sequences() {
  echo 'WS_EMIT_SEQUENCES=yes' >>"$S/walshadow.conf"
  sql src/app 'CREATE SCHEMA q' 'CREATE SEQUENCE q.before'
  resume 'sequences as rows' '#'
  sql src/app "SELECT nextval('q.before')" 'BEGIN; CREATE SEQUENCE q.made START 5; INSERT INTO stop.after VALUES (DEFAULT); COMMIT' >/dev/null
  drained || return
  seq_is before '33 true' 'as far as the WAL is ahead'
  seq_is made '5 false' 'one made in a transaction'
  sql src/app "SELECT setval('q.before', 1000)" "BEGIN; SELECT nextval('q.made'); ROLLBACK" "BEGIN; ALTER SEQUENCE q.before RESTART WITH 7; ROLLBACK" \
    "SELECT setval('q.made', 9223372036854775807)" 'CREATE TABLE q.t (id int GENERATED ALWAYS AS IDENTITY, v text PRIMARY KEY)' "INSERT INTO q.t (v) SELECT 'v' || g FROM generate_series(1, 100) g" >/dev/null
  drained || return
  seq_is before '1000 true' 'setval, and a restart that was rolled back'
  seq_is made '9223372036854775807 true' 'the largest'
  cmp_is "$(seq_row t_id_seq | cut -d ' ' -f 1)" -ge 100 'sequences: an identity column'
  sql src/app "BEGIN; ALTER SEQUENCE q.before RESTART WITH 7; SELECT nextval('q.before'); SELECT nextval('q.before'); COMMIT" 'TRUNCATE q.t RESTART IDENTITY' >/dev/null
  drained || return
  cmp_is "$(seq_row before | cut -d ' ' -f 1)" -le 41 'sequences: restarted in a transaction'
  seq_is t_id_seq '1 false' 'RESTART IDENTITY'
  pipe_kill9 emit.main
  sql src/app "SELECT setval('q.before', 77, false)" >/dev/null
  drained || return
  seq_is before '77 false' 'after a kill'
  compare_tables '^q$'
}

all() {
  local f oracle=auto
  S=$T/state$PG_MAJOR
  ch_start ch
  ch 'DROP DATABASE IF EXISTS app' 2>/dev/null
  pg_init src
  pg_conf src max_prepared_transactions=10 autovacuum=off max_wal_size=4GB
  pg_start src
  sql src 'CREATE DATABASE app' 'CREATE DATABASE other'
  sql src/other 'CREATE TABLE noise (id int, v text)'
  # The same values by the initial load.
  for f in 10 11; do
    [[ $f-types.sql == $WS_SQL ]] || continue
    sed "s/s$f/s0${f#1}/g" "$TOP/tests/it/data/350/$f-types.sql" >"$T/load.sql"
    sql src/app "CREATE SCHEMA s0${f#1}"
    sql src/app <"$T/load.sql" || fail 'SQL before the load'
  done
  # Their types change the text of values, and all rows are written after that.
  printf '%s\n' 'table ~^s1[01]\. text-change=keep' 'table *' >"$T/routes"
  # What has no text stops: without the oracle there is such a type.
  [[ stops != $WS_SQL ]] || oracle=none
  ok 'set up' pipe_init src/app --routes "$T/routes" --oracle $oracle || return
  STEP='loaded'
  compare_tables '^s0'
  for f in "$TOP"/tests/it/data/350/$WS_SQL; do
    [ ! -f "$f" ] || run_file "$f" || leave_out "$f" || return
  done
  if [[ sessions == $WS_SQL ]]; then sessions; fi
  if [[ stops == $WS_SQL ]]; then stops_all; fi
  if [[ stops_ddl == $WS_SQL ]]; then stops_ddl; fi
  if [[ sequences == $WS_SQL ]]; then
    sql src/app 'CREATE SCHEMA IF NOT EXISTS stop' 'CREATE TABLE IF NOT EXISTS stop.after (id serial PRIMARY KEY)'
    sequences
  fi
  ok 'it stops' pipe_stop
  ch 'DROP DATABASE app'
}
