#!/usr/bin/env bash
# Schema changes on their way to the destination, and a death at each step: before the shape is
# durable; durable, not emitted; emitted, not applied; half applied; applied, not acknowledged.
# Each time the destination ends equal to the source, nothing lost and nothing double.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/chproxy.sh"

# tables PREFIX: a table a change; h is a history.
tables() {
  local p=$1
  sql src "CREATE TABLE ${p}_add (id int PRIMARY KEY, v text)" "CREATE TABLE ${p}_swap (id int PRIMARY KEY, a int, b int)" \
    "CREATE TABLE ${p}_drop (id int PRIMARY KEY, v text, w int)" "CREATE TABLE ${p}_wide (id int PRIMARY KEY, n int)" \
    "CREATE TABLE ${p}_using (id int PRIMARY KEY, v text)" "CREATE TABLE ${p}_trunc (id int PRIMARY KEY, v text)" \
    "CREATE TABLE ${p}_old (id int PRIMARY KEY, v text)" "CREATE TABLE ${p}_gone (id int PRIMARY KEY, v text)" \
    "INSERT INTO ${p}_add SELECT g, 'v' || g FROM generate_series(1, 20) g" "INSERT INTO ${p}_swap SELECT g, g, -g FROM generate_series(1, 20) g" \
    "INSERT INTO ${p}_drop SELECT g, 'v', g FROM generate_series(1, 20) g" "INSERT INTO ${p}_wide SELECT g, g FROM generate_series(1, 20) g" \
    "INSERT INTO ${p}_using SELECT g, g::text FROM generate_series(1, 20) g" "INSERT INTO ${p}_trunc SELECT g, 'v' FROM generate_series(1, 20) g" \
    "INSERT INTO ${p}_old SELECT g, 'v' FROM generate_series(1, 20) g" "INSERT INTO ${p}_gone SELECT g, 'v' FROM generate_series(1, 20) g"
}

# What each change does, with rows before and after it in its transaction, and rows behind it.
declare -A CHANGE=(
  [add]="INSERT INTO P_add VALUES (30, 'before'); ALTER TABLE P_add ADD c int NOT NULL DEFAULT 7; INSERT INTO P_add VALUES (31, 'after', 8)"
  [swap]='UPDATE P_swap SET a = 100 WHERE id = 1; ALTER TABLE P_swap RENAME a TO x; ALTER TABLE P_swap RENAME b TO a; ALTER TABLE P_swap RENAME x TO b; INSERT INTO P_swap VALUES (30, 1, 2)'
  [drop]="DELETE FROM P_drop WHERE id = 3; ALTER TABLE P_drop DROP w; INSERT INTO P_drop VALUES (30, 'after')"
  [wide]='ALTER TABLE P_wide ALTER n TYPE bigint; INSERT INTO P_wide VALUES (30, 5000000000)'
  [using]="INSERT INTO P_using VALUES (30, '30'); ALTER TABLE P_using ALTER id TYPE bigint USING id * 1000 + 1, ALTER v TYPE int USING v::int + 1; INSERT INTO P_using VALUES (3, 4)"
  [trunc]="INSERT INTO P_trunc VALUES (30, 'dead'); TRUNCATE P_trunc; INSERT INTO P_trunc VALUES (1, 'live')"
  [old]="INSERT INTO P_old VALUES (30, 'before'); ALTER TABLE P_old RENAME TO P_new; INSERT INTO P_new VALUES (31, 'after')"
  [gone]="DELETE FROM P_gone WHERE id = 3; DROP TABLE P_gone"
)
declare -A BEHIND=(
  [add]="INSERT INTO P_add VALUES (40, 'behind', NULL::int + 1 IS NULL)" [swap]='UPDATE P_swap SET a = a + 1 WHERE id > 18'
  [drop]="UPDATE P_drop SET v = 'behind' WHERE id = 5" [wide]='UPDATE P_wide SET n = n + 6000000000 WHERE id < 3'
  [using]='DELETE FROM P_using WHERE id = 2001' [trunc]="INSERT INTO P_trunc VALUES (2, 'behind')"
  [old]='DELETE FROM P_new WHERE id = 1' [gone]='SELECT 1'
)
BEHIND[add]="INSERT INTO P_add VALUES (40, 'behind', 9)"

change() { sql src "BEGIN; ${CHANGE[$2]//P_/$1_}; COMMIT" "${BEHIND[$2]//P_/$1_}" >/dev/null; }

# same PREFIX DESC: its tables are equal, and the dropped one gone.
same() {
  local k
  LEFT=("${LEFT[@]/$1/}")
  ok "$2: acknowledged" pipe_drain src main 60 || return
  for k in add swap drop wide using trunc new; do
    printf '%s\t%s\t%s\n' "public.${1}_$k" "postgres.public_${1}_$k" "$2: $k"
  done >"$T/.compare.tables"
  pg_to_ch_compare_all src postgres <"$T/.compare.tables"
  shift
  is "$(ch "SELECT name FROM system.tables WHERE database = 'postgres' AND (name LIKE '%gone%' OR name LIKE '%staging%')
    AND name NOT IN ($(printf "'public_%s_gone'," "${LEFT[@]}") '')" | tr '\n' ' ')" '' "$1: nothing is left behind"
}

KINDS=(add swap drop wide using trunc old gone)

# stopped TOOL PREFIX DESC: the tool is stopped before the changes, and dies with them undone.
stopped() {
  local k pid
  pid=$([ "$1" = decode ] && pid_of decode || pipe_pid "$1") || bail_out "no $1"
  kill -STOP "$pid"
  for k in "${KINDS[@]}"; do change "$2" "$k"; done
  [ "$1" = catalog ] || wait_for -m 'the shapes to be durable' pos_ge "$S/pos/captured.$DBOID" "$(pg_lsn src)"
  if [ "$1" = decode ]; then pair_dies decode; else kill -KILL "$pid"; fi
  same "$2" "$3"
}

# at WHEN REGEX PREFIX KIND: ws-emit dies when that statement is held.
at() {
  local seen
  proxy_rule "$1" "$2"
  change "$3" "$4"
  if ! proxy_hit; then
    fail "$4: the statement $2 is reached"
    rm -f "$PROXY_DIR/rule"
    return
  fi
  seen=$(pos_lsn "$S/pos/ack.main")
  pair_dies emit
  proxy_done
  ok "$4: died $1 $2, at ack $seen" pipe_drain src main 60
}

crashes() {
  # shellcheck disable=SC2034 # pipe.sh reads it
  S=$T/state
  ch_start ch
  proxy_start proxy
  pg_new src
  for p in "${PREFIXES[@]}"; do tables "$p"; done
  LEFT=("${PREFIXES[@]}")
  printf 'table * drop-table=drop\n' >"$T/routes"
  CH_DIRECT=$CH_URL CH_URL=$PROXY_URL
  ok 'set up' pipe_init src --routes "$T/routes" || return
  CH_URL=$CH_DIRECT
  ok 'the consumer is paused' walshadow pause main
  pair_start --routes "$T/routes"
  DBOID=$(sql src "SELECT oid FROM pg_database WHERE datname = 'postgres'")
  stopped catalog s1 'before the shape is durable'
  stopped decode s2 'durable, not emitted'
  at before 'ALTER TABLE.*ADD COLUMN' s3 add
  at before 'ALTER TABLE.*RENAME COLUMN' s3 swap
  at before 'ALTER TABLE.*DROP COLUMN' s3 drop
  at before 'ALTER TABLE.*MODIFY COLUMN|EXCHANGE' s3 wide
  at before 'EXCHANGE' s3 using
  at before 'TRUNCATE' s3 trunc
  at before 'RENAME TABLE' s3 old
  at before 'DROP TABLE' s3 gone
  same s3 'emitted, not applied'
  # The first of several statements is done, the second not; or the table is made and not yet filled.
  at before 'RENAME COLUMN .*moving' s4 swap
  at before 'INSERT INTO .*staging' s4 using
  at before 'DROP TABLE.*staging.* SYNC' s4 wide
  for k in add drop trunc old gone; do change s4 $k; done
  same s4 'half applied'
  at after 'ALTER TABLE.*ADD COLUMN' s5 add
  at after 'RENAME COLUMN' s5 swap
  at after 'DROP COLUMN' s5 drop
  at after 'EXCHANGE' s5 wide
  at after 'EXCHANGE' s5 using
  at after 'TRUNCATE' s5 trunc
  at after 'RENAME TABLE' s5 old
  at after 'DROP TABLE' s5 gone
  same s5 'applied, not acknowledged'
  # The answer does not come, and ws-emit lives on.
  for k in add:ADD swap:RENAME drop:DROP wide:EXCHANGE using:EXCHANGE trunc:TRUNCATE old:RENAME gone:DROP; do
    proxy_rule lost "${k#*:}"
    change s6 "${k%:*}"
    proxy_hit || fail "${k%:*}: the statement is reached"
    ok "${k%:*}: an answer is lost" pipe_drain src main 60
  done
  same s6 'answers lost'
  pair_stop
  ok 'it stops' pipe_stop
}

PREFIXES=(s1 s2 s3 s4 s5 s6)
LEFT=()
# What is tested does not depend on the source's version.
WS_MAJORS=${WS_MAJORS:-17}
WS_MAJORS=${WS_MAJORS##* } for_majors crashes
done_testing
