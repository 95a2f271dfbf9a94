#!/usr/bin/env bash
# A seeded workload of everything at once against three oracles (lib/random.sh).  WS_SEED is the first
# seed, WS_SEEDS how many a major, WS_STEPS the statements of each; `make soak` runs many.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/pipe.sh"
. "$IT_LIB/shapes.sh"
. "$IT_LIB/random.sh"

: "${WS_SEED:=$((RANDOM % 10000))}" "${WS_SEEDS:=2}" "${WS_STEPS:=600}"
# Seeds on one pipeline, before the cluster is made anew with other settings.
ROUND=10
note "WS_SEED=$WS_SEED"

# What is a policy and not the test's matter: rows without a key are appended.
routes() { printf '%s\n' 'table ~^g[0-9]+\.ins$ keyless=append' 'table *' >"$T/routes"; }

round() {
  local seed
  S=$T/state$PG_MAJOR
  rm -rf "$S"
  ch 'DROP DATABASE IF EXISTS app' 2>/dev/null
  random_init "$1"
  pg_start src
  ok "seed $1: xids" random_wrap "$1"
  sql src 'CREATE DATABASE app'
  routes
  ok "seed $1: set up" pipe_init src/app --routes "$T/routes" || return
  # The oracles look at all WAL again: nothing is pruned.
  pipe_stop
  echo 'PRUNE_INTERVAL=86400' >>"$S/walshadow.conf"
  ok "seed $1: started" pipe_start || return
  for ((seed = $1; seed < $2; seed++)); do
    if ! random_round "$seed" "$WS_STEPS"; then
      pipe_logs
      break
    fi
  done
  ok 'it stops' pipe_stop
  pg_stop src
}

major() {
  local first
  ch_start ch
  for ((first = WS_SEED; first < WS_SEED + WS_SEEDS; first += ROUND)); do
    round "$first" $((first + ROUND < WS_SEED + WS_SEEDS ? first + ROUND : WS_SEED + WS_SEEDS))
  done
}

for_majors major
done_testing
