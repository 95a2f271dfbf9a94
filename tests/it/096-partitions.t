#!/usr/bin/env bash
# Partitions whose rows go to one table of their root (partitions=root): what touches a leaf touches
# its rows only; moves, ATTACH, DETACH, rewrites and drops; deaths in between.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/chproxy.sh"

# by_leaf TABLE [DESC]: the root's table equals the source's root, also leaf by leaf.
by_leaf() {
  local want got
  pg_to_ch_compare src "public.$1" "postgres.public_$1" "$2: $1"
  want=$(sql src "SELECT tableoid::oid::bigint, count(*) FROM $1 GROUP BY 1 ORDER BY 1" | tr '|\n' ' ;')
  got=$(ch "SELECT _leaf, count() FROM postgres.public_$1 FINAL WHERE _is_deleted = 0 GROUP BY 1 ORDER BY 1" | tr '\t\n' ' ;')
  is "$got" "$want" "$2: $1 leaf by leaf"
}

same() {
  ok "$1: acknowledged" pipe_drain src main 60 || { tail -n 3 "$T/emit.err" >&2; return 1; }
  by_leaf p "$1"
  by_leaf k "$1"
}

# at WHEN REGEX SQL...: ws-emit dies when that statement is held.
at() {
  local when=$1 re=$2
  proxy_rule "$when" "$re"
  sql src "${@:3}"
  if ! proxy_hit; then
    fail "the statement is reached: $re"
    rm -f "$PROXY_DIR/rule"
    return
  fi
  pair_dies emit
  proxy_done
}

tables() {
  sql src 'CREATE TABLE p (id int, part int, v text, n int, PRIMARY KEY (id, part)) PARTITION BY LIST (part)' \
    'CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)' 'CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)' \
    'CREATE TABLE p3 (gone int, v text, part int NOT NULL, n int, id int NOT NULL)' 'ALTER TABLE p3 DROP gone' \
    'ALTER TABLE p ATTACH PARTITION p3 FOR VALUES IN (3)' \
    'CREATE TABLE p4 PARTITION OF p FOR VALUES IN (4, 5) PARTITION BY LIST (part)' \
    'CREATE TABLE p44 PARTITION OF p4 FOR VALUES IN (4)' \
    "INSERT INTO p SELECT g, 1 + g % 4, g::text, g FROM generate_series(1, 40) g" \
    'CREATE TABLE k (a int, b text) PARTITION BY RANGE (a)' 'CREATE TABLE k1 PARTITION OF k FOR VALUES FROM (0) TO (100)' \
    'CREATE TABLE k2 PARTITION OF k FOR VALUES FROM (100) TO (200)' "INSERT INTO k SELECT g, 'k' FROM generate_series(90, 110) g" \
    "INSERT INTO k VALUES (95, 'k'), (95, 'k')" 'CREATE TABLE own (id int PRIMARY KEY, v text) PARTITION BY LIST (id)' \
    'CREATE TABLE own1 PARTITION OF own FOR VALUES IN (1)' "INSERT INTO own VALUES (1, 'x')"
}

rows() {
  sql src "INSERT INTO p SELECT g, 1 + g % 4, 'n', g FROM generate_series(50, 70) g" "UPDATE p SET v = 'u' WHERE id % 3 = 0" \
    'UPDATE p SET part = 1 + part % 4 WHERE id % 5 = 0' 'DELETE FROM p WHERE id % 7 = 0' \
    'BEGIN; UPDATE p SET part = 2 WHERE id = 1; UPDATE p SET part = 1 WHERE id = 1; UPDATE p SET part = 3 WHERE id = 1; COMMIT' \
    "INSERT INTO k VALUES (1, 'k'), (1, 'k'), (150, NULL)"
  same 'rows and moves'
  sql src 'TRUNCATE p2' 'TRUNCATE k1' "INSERT INTO k VALUES (2, 'behind')" \
    'BEGIN; INSERT INTO p VALUES (1, 2); TRUNCATE p2; INSERT INTO p VALUES (2, 2); COMMIT' 'VACUUM FULL p1' 'CLUSTER p3 USING p3_pkey'
  same 'TRUNCATE of a leaf'
}

shapes() {
  sql src "BEGIN; INSERT INTO p VALUES (100, 1, 'a', 1); ALTER TABLE p ADD c int NOT NULL DEFAULT 7; INSERT INTO p VALUES (101, 3, 'a', 1, 8); COMMIT" \
    'ALTER TABLE p RENAME n TO m' 'UPDATE p SET m = m + 1 WHERE id < 20' 'ALTER TABLE k ADD c text' "INSERT INTO k VALUES (3, 'x', 'y')"
  same 'columns added and renamed'
  sql src 'ALTER TABLE p ALTER m TYPE bigint' 'UPDATE p SET m = 5000000000 WHERE id = 11' 'ALTER TABLE p DROP c' 'ALTER TABLE k ALTER c TYPE varchar(20)'
  same 'a wider type, a column dropped'
  sql src "UPDATE p SET v = '1' WHERE v !~ '^[0-9]+\$' OR v IS NULL" \
    "BEGIN; ALTER TABLE p ALTER v TYPE int USING v::int * 2, ALTER id TYPE bigint USING id * 10; INSERT INTO p VALUES (5, 1, 6, 7); COMMIT" \
    "INSERT INTO p VALUES (6, 4, 6, 7)" "ALTER TABLE k ALTER b TYPE int USING length(b)"
  same 'types and keys changed by USING'
}

places() {
  sql src 'ALTER TABLE p DETACH PARTITION p1'
  same 'DETACH'
  pg_to_ch_compare src public.p1 postgres.public_p1 'the detached table has its rows'
  sql src 'UPDATE p1 SET v = 77 WHERE id % 20 = 0' 'DELETE FROM p1 WHERE id < 100' 'INSERT INTO p1 VALUES (8, 1, 8, 8)' \
    'ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)' 'INSERT INTO p VALUES (9, 1, 9, 9)'
  same 'ATTACH again'
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'postgres' AND name = 'public_p1'")" 0 'its own table is gone by drop-table=drop'
  sql src 'CREATE TABLE p5 (LIKE p INCLUDING ALL)' 'INSERT INTO p5 SELECT g, 5, g, g FROM generate_series(1, 9) g' \
    'ALTER TABLE p4 ATTACH PARTITION p5 FOR VALUES IN (5)' 'UPDATE p SET v = 0 WHERE part = 5 AND id < 4' \
    'CREATE TABLE p6 PARTITION OF p FOR VALUES IN (6)' 'INSERT INTO p VALUES (1, 6)' 'DROP TABLE p2' \
    "BEGIN; CREATE TABLE k3 (LIKE k); INSERT INTO k3 SELECT g, 1, 'z' FROM generate_series(200, 220) g; ALTER TABLE k ATTACH PARTITION k3 FOR VALUES FROM (200) TO (300); COMMIT" \
    'DROP TABLE k2'
  same 'new leaves and a dropped one'
  sql src 'ALTER TABLE p DETACH PARTITION p4' 'INSERT INTO p4 VALUES (77, 4)'
  same 'DETACH of a partitioned partition'
  pg_to_ch_compare src public.p4 postgres.public_p4 'which is a table of its own, with two leaves'
  sql src 'ALTER TABLE p ATTACH PARTITION p4 FOR VALUES IN (4, 5)'
  same 'and ATTACH'
  sql src 'ALTER TABLE p RENAME TO q' 'INSERT INTO q VALUES (78, 4)' 'ALTER TABLE q RENAME TO p'
  same 'the root renamed and named back'
}

deaths() {
  local s
  for s in 'INSERT INTO .* SELECT' 'MODIFY COMMENT' 'DELETE WHERE' 'CREATE TABLE'; do
    at before "$s" 'ALTER TABLE p DETACH PARTITION p1' 'UPDATE p1 SET v = v + 1 WHERE id % 3 = 0'
    same "death before $s of DETACH"
    pg_to_ch_compare src public.p1 postgres.public_p1 'the detached table'
    case $s in
    'CREATE TABLE') s='DROP TABLE' ;;
    'DELETE WHERE') s='INSERT INTO .* SELECT' ;; # there is nothing to delete
    esac
    at after "$s" 'ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)' 'UPDATE p SET v = v + 1 WHERE part = 1'
    same "death after $s of ATTACH"
  done
  sql src 'ALTER TABLE p ALTER v TYPE text USING v || $$x$$'
  same 'a type that holds more'
  at after 'EXCHANGE' 'ALTER TABLE p ALTER v TYPE int USING length(v)'
  same 'death after the exchange of a rewrite'
  at before 'DELETE WHERE' 'ALTER TABLE p ALTER id TYPE bigint USING id * 2'
  same 'death in a rewrite in place'
  at after 'DELETE WHERE' 'TRUNCATE p'
  same 'death in a TRUNCATE of all'
}

ends() {
  sql src 'CREATE TABLE tmp_x (a int PRIMARY KEY)' 'INSERT INTO tmp_x VALUES (301)' 'DROP TABLE p'
  ok 'the root is dropped' pipe_drain src main 60
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'postgres' AND match(name, 'public_p|staging')")" 0 'with its table, by rule'
  pg_to_ch_compare src public.own1 postgres.public_own1 'other partitions have their own tables'
  sql src 'ALTER TABLE tmp_x RENAME TO x'
  wait_exit emit
  is "$STATUS" 3 'a table that was not replicated gets a name that is'
  like "$(tail -n 1 "$T/emit.err")" 'reason=table_unloaded' 'which stops with a reason'
  wait_exit decode
}

partitions() {
  # shellcheck disable=SC2034 # pipe.sh reads it
  S=$T/state
  ch_start ch
  proxy_start proxy
  pg_new src
  tables
  printf '%s\n' 'exclude public.tmp_*' 'table public.k partitions=root keyless=append drop-table=drop' \
    'table public.p* partitions=root drop-table=drop' 'table public.q name=public_p partitions=root' 'table *' >"$T/routes"
  ok 'set up' pipe_init src --routes "$T/routes" || return
  ok 'the consumer is paused' walshadow pause main
  pair_start --routes "$T/routes"
  same 'the initial load'
  for part in rows shapes places deaths ends; do "$part"; done
  ok 'it stops' pipe_stop
}

# What is tested does not depend on the source's version.
WS_MAJORS=${WS_MAJORS:-17}
WS_MAJORS=${WS_MAJORS##* } for_majors partitions
done_testing
