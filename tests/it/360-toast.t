#!/usr/bin/env bash
# TOAST values that are older than the transaction which keeps them: whole in the destination, whatever
# happened to them in between; from the initial load and from the stream.  WS_TOAST_PARTS chooses; 361 to
# 363 have the other parts.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"

SEED=${WS_SEED:-$RANDOM}
: "${WS_TOAST_PARTS:=matrix}"
RANDOM=$SEED
note "WS_SEED=$SEED"

drained() { pipe_drained src "$STEP" "${1:-60}"; }

compare_all() {
  sql src/app "SELECT format(E'%1\$s.%2\$s\tapp.%1\$s_%2\$s\t%3\$s: %1\$s.%2\$s', nspname, relname, \$_\$$STEP\$_\$)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind = 'r' AND relpersistence = 'p' AND nspname IN ('public', 's') AND relname !~ '^(no|left)_' ORDER BY 1" >"$T/.compare.tables"
  pg_to_ch_compare_all src/app app <"$T/.compare.tables"
}

# set_up ROUTE...: servers, tables, initial load.
set_up() {
  S=$T/state$PG_MAJOR.$PART
  alive ch || ch_start ch
  ch 'DROP DATABASE IF EXISTS app' 2>/dev/null
  pg_init "$PART"
  PG_PORT["src"]=${PG_PORT[$PART]} PG_MAJOR_OF["src"]=${PG_MAJOR_OF[$PART]}
  pg_conf "$PART" max_prepared_transactions=10 autovacuum=off max_wal_size=4GB allow_in_place_tablespaces=on
  pg_start "$PART"
  sql src 'CREATE DATABASE app' "CREATE TABLESPACE other LOCATION ''"
  sql src/app <"$TOP/tests/it/data/360/load.sql" || fail 'SQL before the load'
  [ -z "${1:-}" ] || sql src/app "$1"
  [ -s "$T/routes" ] || echo 'table *' >"$T/routes"
  ok 'set up' pipe_init src/app --routes "$T/routes" || return
  STEP='loaded'
  compare_all
}

tear_down() {
  ok 'it stops' pipe_stop
  pg_stop "$PART"
  ch 'DROP DATABASE app'
  rm -f "$T/routes"
}

metric() { sed -n "s/^walshadow_decode_toast_$1 //p" "$S/metrics/ws-decode.main.prom"; }

# run_steps FILE: each step drained and compared; now and then ws-decode is killed.
run_steps() {
  local i
  rm -f "$T"/step.*
  csplit -s -z -f "$T/step." -n 3 "$TOP/tests/it/data/360/$1.sql" '/^-- step/' '{*}'
  for i in "$T"/step.*; do
    STEP=$(head -n 1 "$i" | sed 's/^-- step: //')
    sql src/app <"$i" >"$T/step.out" 2>"$T/step.err" || fail "$STEP: SQL" "$(head -n 5 "$T/step.err")"
    ((RANDOM % 3)) || pipe_kill9 decode.main
    drained || return 1
    compare_all
  done
}

matrix() {
  set_up || return
  run_steps matrix
  # A ws-decode that was killed counts anew.
  local i
  for i in 1 2 3 4 5; do
    sql src/app 'UPDATE m_default SET n = n + 1' 'UPDATE m_index SET n = n + 1' 'UPDATE m_full SET n = n + 1'
  done
  STEP='all values kept' && drained || return
  ok 'values come from the store' wait_for -m 'the metrics' fetched_some
  # What is dead goes once the floor has passed it.
  sql src/app 'DELETE FROM m_default' 'DELETE FROM m_index' 'DELETE FROM m_full' 'DROP TABLE k_default, k_index, k_full, t, p, gone'
  STEP='everything deleted'
  drained
  ok 'the dead are removed from the store' wait_for -t 30 store_empty
  is "$(metric absent_total)" 0 'nothing was left out'
  tear_down
}

fetched_some() { [ "$(metric fetched_total)" -gt 100 ]; }

# Small WAL moves the floor.
store_empty() {
  sql src/app "SELECT pg_logical_emit_message(true, 'x', 'x')" >/dev/null
  # Chunks of this run and of those before it: the store itself tells.
  [[ $(toastdump "$S/consumer/main/toast" 2>/dev/null | grep -c '^chunk') == 0 ]]
}

moves() {
  set_up || return
  run_steps moves
  is "$(metric absent_total)" 0 'nothing was left out'
  tear_down
}

# Tables exchange their files and TOAST tables, as pg_repack does it.
swap() {
  local both="(a.oid = 't'::regclass AND b.oid = 'repack.t'::regclass OR a.oid = 'repack.t'::regclass AND b.oid = 't'::regclass)"
  printf '%s\n' 'exclude repack.*' 'table *' >"$T/routes"
  set_up || return
  echo 'WS_DECODE_TRUST_SWAPS=yes' >>"$S/walshadow.conf"
  pipe_stop
  pipe_start
  sql src/app 'UPDATE t SET n = 1' 'CREATE SCHEMA repack' 'CREATE TABLE repack.t (LIKE t INCLUDING ALL)' 'INSERT INTO repack.t SELECT * FROM t ORDER BY id DESC' \
    "BEGIN; SET LOCAL allow_system_table_mods = on; LOCK t, repack.t;
    UPDATE pg_class a SET relfilenode = b.relfilenode, reltoastrelid = b.reltoastrelid FROM pg_class b WHERE $both;
    UPDATE pg_class a SET relfilenode = b.relfilenode FROM pg_class b WHERE ${both//\'::/_pkey\'::};
    COMMIT" 'UPDATE t SET n = n + 1' 'DELETE FROM t WHERE id % 3 = 0' 'UPDATE t SET v = noise(3333, id), n = n + 1 WHERE id % 3 = 1' 'UPDATE t SET n = n + 1'
  STEP='files and TOAST tables exchanged'
  drained || return
  compare_all
  is "$(metric absent_total)" 0 'nothing was left out'
  tear_down
}

# ---- a random workload, and ws-decode killed at random moments ----

random_sql() {
  local i n k open=0
  for ((i = 0; i < 120; i++)); do
    n=$((RANDOM % 60)) k=$((RANDOM % 100))
    case $((RANDOM % 22)) in
    0 | 1) echo "INSERT INTO t (id, v) VALUES ($n, noise($((2000 + k * 50)), $k)) ON CONFLICT (id) DO UPDATE SET n = t.n + 1;" ;;
    2 | 3) echo "UPDATE t SET v = noise($((2000 + k * 60)), $n) WHERE id = $n;" ;;
    4 | 5 | 6) echo "UPDATE t SET n = n + 1 WHERE id BETWEEN $n AND $n + 6;" ;;
    7) echo "UPDATE t SET id = id + $k WHERE id = $n;" ;;
    8) echo "DELETE FROM t WHERE id BETWEEN $n AND $n + 3;" ;;
    9) echo "UPDATE m_default SET n = n + 1 WHERE id BETWEEN $n AND $n + 5;" ;;
    10) echo "UPDATE m_index SET ext = noise($((3000 + k * 20)), $k), n = n + 1 WHERE id = $((n % 20));" ;;
    11) echo "UPDATE k_default SET n = n + 1 WHERE n % 7 = $((n % 7));" ;;
    12) echo "UPDATE p SET part = 3 - part, n = n + 1 WHERE id = $((n % 20));" ;;
    13) echo "UPDATE p SET n = n + 1;" ;;
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
    18) echo "SELECT pg_sleep(0.0$((RANDOM % 9)));" ;;
    19) ((open)) || echo 'VACUUM t;' ;;
    20) echo "INSERT INTO gone VALUES ($n, noise($((k * 100)), $k)) ON CONFLICT (id) DO UPDATE SET v = gone.v || 'x';" ;;
    21)
      case $((RANDOM % 8)) in
      0) ((open)) || echo 'VACUUM FULL t;' ;;
      1) echo 'CLUSTER t USING t_pkey;' ;;
      2) echo 'TRUNCATE gone;' ;;
      3) echo 'ALTER TABLE t ALTER c TYPE bigint USING c + 1;' ;;
      4) echo 'ALTER TABLE t ALTER c TYPE int USING c - 1;' ;;
      5) echo 'CHECKPOINT;' ;;
      6) ((open)) || echo 'VACUUM (FULL) m_default;' ;;
      7) echo "ALTER TABLE t SET TABLESPACE $( ((k % 2)) && echo other || echo pg_default);" ;;
      esac
      ;;
    esac
  done
  echo 'COMMIT;'
}

nap_ms() { proc_nap "$(printf '0.%03d' "$1")"; }

# Read again from a floor that lies inside a transaction which is over: what it did is in the store.
inside() {
  local floor
  STEP='the floor is inside a transaction that is over'
  sql src/app 'CREATE TABLE plain (id int PRIMARY KEY, n int)' 'INSERT INTO plain SELECT g, g FROM generate_series(1, 100) g' \
    "BEGIN; CLUSTER plain USING plain_pkey; PREPARE TRANSACTION 'over'"
  floor=$(sql src 'SELECT pg_current_wal_insert_lsn()')
  sql src/app "BEGIN; UPDATE t SET n = n + 1 WHERE id = 1; PREPARE TRANSACTION 'open'" "COMMIT PREPARED 'over'" 'UPDATE plain SET n = n + 1'
  ok "$STEP" wait_for -m 'a floor past its start' pos_ge "$S/pos/floor.main" "$floor" || return
  pipe_kill9 decode.main
  sql src/app "COMMIT PREPARED 'open'"
  drained && compare_all
}

kills() {
  local round i pids=() n=0 busy pid floor
  set_up || return
  # All WAL from here on stays, and the store as it is now.
  pipe_stop
  echo 'PRUNE_INTERVAL=1000000' >>"$S/walshadow.conf"
  cp -r "$S/consumer/main/toast" "$T/store"
  read -r _ floor <"$S/pos/floor.main"
  pipe_start
  inside || return
  for ((round = 1; round <= ${WS_KILL_ROUNDS:-3}; round++)); do
    STEP="kill -9, round $round, seed $SEED"
    pids=()
    pg_tool psql
    for i in 1 2 3; do
      random_sql >"$T/session.$i"
      PGOPTIONS='-c deadlock_timeout=20ms -c lock_timeout=500ms' "$PGTOOL" -XAtq -d "$(pg_conninfo src app)" \
        -f "$T/session.$i" >"$T/session.$i.out" 2>&1 &
      pids+=($!)
    done
    busy=1
    while ((busy)); do
      nap_ms $((50 + RANDOM % 700))
      pipe_kill9 "$( ((RANDOM % 4)) && echo decode.main || echo emit.main)" && n=$((n + 1))
      busy=0
      for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && busy=1; done
    done
    wait "${pids[@]}"
    drained 120 || return
    compare_all
    # All that is there was in the store, or is.
    sql src/app 'UPDATE t SET n = n + 1' 'UPDATE m_default SET n = n + 1' 'UPDATE m_index SET n = n + 1' 'UPDATE p SET n = n + 1' \
      'UPDATE k_default SET n = n + 1'
    STEP+=', then all rows'
    drained || return
    compare_all
  done
  note "killed $n times"
  pipe_stop
  run decrestart "$S/catalog" "$(sql src "SELECT oid FROM pg_database WHERE datname = 'app'")" "$S/raw" "$floor" 0 "${WS_RESTARTS:-25}" "$T/store"
  like "$OUT" '^restarts=' "the same from commits' floors after kills that lose what was not synced" || diag "$ERR"
  note "$OUT"
  rm -rf "$T/store"
  tear_down
}

# ---- what is not known ----

consumer_failed() { [[ $(walshadow status 2>&1) =~ consumer.main\ *FAILED\ status=3 ]]; }

again() {
  if [ -n "${1:-}" ]; then
    { printf '%s\n' "$@"; cat "$T/routes"; } >"$T/routes.new"
    mv "$T/routes.new" "$T/routes"
  fi
  pipe_stop
  pipe_start
}

policy() {
  printf '%s\n' 'exclude public.no_*' 'table public.left_* load=none' 'column public.left_col.v exclude' 'table *' >"$T/routes"
  set_up "CREATE TABLE no_store (LIKE t INCLUDING ALL); CREATE TABLE left_alone (LIKE t INCLUDING ALL);
    ALTER TABLE left_alone ADD w text DEFAULT 'w'; CREATE TABLE left_strict (id int PRIMARY KEY, v text NOT NULL, n int);
    ALTER TABLE left_strict ALTER v SET STORAGE EXTERNAL; INSERT INTO left_strict SELECT id, v FROM t WHERE id < 5;
    CREATE TABLE left_col (id int PRIMARY KEY, v text, n int); ALTER TABLE left_col ALTER v SET STORAGE EXTERNAL; INSERT INTO left_col SELECT id, v FROM t;
    INSERT INTO no_store SELECT * FROM t; INSERT INTO left_alone SELECT * FROM t" 2>"$T/set_up.err" || return
  # A table that nobody replicates costs nothing and stops nothing.
  sql src/app 'UPDATE no_store SET n = 1' "INSERT INTO no_store (id, v) SELECT 1000 + g, noise(4000, g) FROM generate_series(1, 20) g" \
    'UPDATE no_store SET n = 2' 'UPDATE t SET n = n + 1 WHERE id = 1'
  STEP='a table that is not replicated'
  drained || return
  is "$(toastdump "$S/consumer/main/toast" | grep -c "^chunk $(sql src/app "SELECT reltoastrelid FROM pg_class WHERE relname = 'no_store'") ")" 0 \
    'chunks of a table that is not replicated are not kept'
  sql src/app 'UPDATE left_col SET n = 1'
  STEP='a column that is not replicated'
  drained || return
  is "$(ch 'SELECT count() FROM app.public_left_col FINAL WHERE n = 1')" 60 'a column that is not replicated stops nothing'
  sql src/app 'UPDATE left_alone SET n = 1 WHERE id = 3' 'UPDATE m_default SET n = n + 1'
  ok 'a value that was not loaded stops' wait_for -t 30 -m 'the consumer to stop' consumer_failed || return
  like "$(tail -n 1 "$S/log/decode.main.log")" 'public\.left_alone, column v: .* TOAST value [0-9]+ of table [0-9]+.*reason=toast_missing$' \
    'and says which'
  again 'table public.left_* load=none toast-missing=null'
  STEP='toast-missing=null'
  drained || return
  is "$(ch 'SELECT id, v IS NULL, w FROM app.public_left_alone FINAL FORMAT TSV' | tr '\t' ' ')" '3 1 w' 'by rule it is NULL'
  # What the stream brings is known from then on.
  sql src/app "UPDATE left_alone SET v = noise(5000, id) WHERE id = 3" 'UPDATE left_alone SET n = 2 WHERE id = 3'
  drained || return
  pg_to_ch_compare src/app public.left_alone app.public_left_alone 'a new value is whole' 'id = 3'
  sql src/app 'UPDATE left_strict SET n = 1 WHERE id = 1'
  ok 'a column that cannot be NULL stops all the same' wait_for -t 30 -m 'the consumer to stop' consumer_failed || return
  like "$(tail -n 1 "$S/log/emit.main.log")" 'column v.*reason=toast_missing$' 'with the reason'
  again 'exclude public.left_strict'
  STEP='excluded'
  drained || return
  # Replicated again after a time without: what was not seen is unknown, never an older value.
  again 'exclude public.t'
  sql src/app 'UPDATE t SET v = noise(4444, id) WHERE id < 10'
  STEP='t excluded'
  drained || return
  sed -i '/^exclude public.t$/d' "$T/routes"
  again
  sql src/app 'UPDATE t SET n = n + 1 WHERE id = 30'
  ok 'what was not seen is not known' wait_for -t 30 -m 'the consumer to stop' consumer_failed || return
  like "$(tail -n 1 "$S/log/decode.main.log")" 'public\.t, column v: .*reason=toast_missing$' 'with the reason'
  again 'exclude public.t'
  sql src/app 'DROP TABLE t'
  STEP='all'
  drained && pg_to_ch_compare src/app public.m_index app.public_m_index 'the others are equal'
  tear_down
}

# ---- sizes ----

peak_memory() {
  local pid kb max=0
  while [ ! -e "$T/peak.stop" ]; do
    pid=$(pipe_pid decode.main) && kb=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
    ((${kb:-0} > max)) && max=$kb
    nap_ms 100
  done
  echo "$max" >"$T/peak"
}

limits() {
  local watcher
  set_up 'CREATE TABLE big (id int PRIMARY KEY, v bytea, n int); ALTER TABLE big ALTER v SET STORAGE EXTERNAL;
    CREATE TABLE many (id int PRIMARY KEY, v text, n int); ALTER TABLE many ALTER v SET STORAGE EXTERNAL' || return
  echo WS_DECODE_MAX_VALUE=32MB >>"$S/walshadow.conf"
  pipe_stop
  pipe_start
  rm -f "$T/peak.stop"
  peak_memory &
  watcher=$!
  # 32 MB; 100,000 values in one transaction, kept by an update in it and one after.
  sql src/app "INSERT INTO big SELECT 1, decode(repeat(md5('x'), 1048576), 'hex') || decode(repeat(md5('y'), 1048000), 'hex')" 'UPDATE big SET n = 1' \
    "BEGIN; INSERT INTO many SELECT g, repeat(md5(g::text), 80) FROM generate_series(1, 100000) g; UPDATE many SET n = 1; COMMIT" \
    'UPDATE many SET n = n + 1 WHERE id % 3 = 0' 'DELETE FROM many WHERE id % 2 = 0' 'UPDATE big SET n = 2'
  STEP='large and many'
  drained 240 || return
  : >"$T/peak.stop"
  wait $watcher
  cmp_is "$(cat "$T/peak")" -lt 131072 'ws-decode stays below 128 MB'
  note "RssAnon $(cat "$T/peak") kB"
  compare_all
  sql src/app "INSERT INTO big SELECT 2, decode(repeat('00', 33554433), 'hex')"
  ok 'a value past --max-value stops' wait_for -t 60 -m 'the consumer to stop' consumer_failed || return
  like "$(tail -n 1 "$S/log/decode.main.log")" '33554433 bytes.*--max-value.*reason=value_too_long$' 'and says so'
  sed -i 's/^WS_DECODE_MAX_VALUE=.*/WS_DECODE_MAX_VALUE=40MB/' "$S/walshadow.conf"
  again
  STEP='a larger --max-value'
  drained 120 && pg_to_ch_compare src/app public.big app.public_big 'goes on with a larger --max-value'
  # Damage.
  pipe_stop
  dd if=/dev/zero of="$S/consumer/main/toast/data.mdb" bs=4096 count=2 conv=notrunc 2>/dev/null
  pipe_start
  ok 'a damaged store stops' wait_for -t 30 -m 'the consumer to stop' consumer_failed
  like "$(tail -n 1 "$S/log/decode.main.log")" 'reason=toast_store_corrupt$' 'with its reason'
  tear_down
}

all() {
  local parts=$WS_TOAST_PARTS
  # Large values cost much, and their layout is that of every major: on the newest alone.
  [[ $PG_MAJOR = "${WS_MAJORS##* }" ]] || parts=${parts//limits/}
  # shellcheck disable=SC2086 # words
  for_parts $parts
}

for_majors all
done_testing
