# Rounds of the seeded workload (tests/prog/sqlgen.c) through a running pipeline, and what must hold
# after each: the end state, PostgreSQL's own decoding, the catalogs.  Every failure names the seed.
# shellcheck shell=bash disable=SC2034,SC2153 # S and T are the library's

# What decides about a cluster, by the round's seed: segment size, checksums, compression.
random_init() {
  local seed=$1 sizes=(1 16 64) kinds=(off pglz) size kind sums=()
  pg_bin
  size=${sizes[seed % 3]}
  [ "$PG_MAJOR" -lt 18 ] || sums=(--no-data-checksums)
  ((seed / 3 % 2)) && sums=(--data-checksums)
  pg_init src --wal-segsize="$size" "${sums[@]}"
  # What the build has beside these.
  for kind in lz4 zstd; do
    "$PGBIN/postgres" -D "$T/src" -C wal_compression -c wal_compression=$kind >/dev/null 2>&1 && kinds+=("$kind")
  done
  kind=${kinds[seed % ${#kinds[@]}]}
  note "seed $seed: segments of $size MB, ${sums[*]:-no checksums}, wal_compression=$kind"
  pg_conf src max_prepared_transactions=30 autovacuum=off max_wal_size=4GB "wal_compression=$kind" track_commit_timestamp=on
}

# random_wrap SEED: of some the xids wrap around within the first rounds.
random_wrap() {
  (($1 / 2 % 3 == 0)) || return 0
  pg_near_wrap src || return 1
  # All but some hundreds.
  sql src 'CREATE TEMP TABLE burnt (i int)' "DO \$\$ BEGIN FOR i IN 1 .. 32300 LOOP BEGIN INSERT INTO burnt VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$" \
    'CHECKPOINT' || return 1
  note "seed $1: next is xid $(sql src 'SELECT txid_snapshot_xmax(txid_current_snapshot()) % 4294967296')"
}

random_drained() { pipe_drained src "seed $1" "${WS_DRAIN:-120}"; }

# random_tables SEED SCHEMA: every permanent table of it, every column of every row: one test.
random_tables() {
  local name before=$TAP_FAILED
  while read -r name; do
    printf '%s\t%s\t%s\t%s\n' "$2.$name" "app.$2_$name" "seed $1: $2.$name" "tableoid = '$2.$name'::regclass"
  done < <(sql src/app "SELECT relname FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p' AND relnamespace = '$2'::regnamespace ORDER BY 1") \
    >"$T/.compare.tables"
  pg_to_ch_compare_all src/app app <"$T/.compare.tables"
  [ "$before" = "$TAP_FAILED" ]
}

# random_decoded SEED START: PostgreSQL's own decoding of the same WAL.
random_decoded() {
  local end out
  end=$(sql src 'SELECT pg_current_wal_insert_lsn()')
  sql src/app "SELECT data FROM pg_logical_slot_get_changes('oracle', '$end', NULL)" >"$T/oracle.txt" || {
    fail "seed $1: PostgreSQL decodes"
    return 1
  }
  if ! ws-decode --catalog "$S/catalog" --database "$RANDOM_DB" -s "$2" -e "$end" "$S/raw" >"$T/oracle.stream" 2>"$T/oracle.err"; then
    fail "seed $1: ws-decode offline" "$(tail -n 2 "$T/oracle.err")"
    return 1
  fi
  decodecmp -P <"$T/oracle.stream" >"$T/oracle.ours"
  out=$(txcmp "$T/oracle.txt" "$T/oracle.ours" '\.(mv|brief)$')
  if [[ $out == 'same: '* ]]; then
    pass "seed $1: the same transactions, order and rows as PostgreSQL decodes"
    note "$out"
  else
    fail "seed $1: the same transactions, order and rows as PostgreSQL decodes" "$out"
    return 1
  fi
}

# random_catalogs SEED: shapes in the history as on the source.
random_catalogs() {
  shapes_of_history "$S/catalog" "$RANDOM_DB" >"$T/shapes.history"
  shapes_of_source src/app >"$T/shapes.source"
  if cmp -s "$T/shapes.history" "$T/shapes.source"; then
    pass "seed $1: the history's shapes are the source's"
  else
    fail "seed $1: the history's shapes are the source's" "$(diff "$T/shapes.source" "$T/shapes.history" | head -n 6 | cut -c 1-400)"
    return 1
  fi
}

# random_kills SEED: as long as the workload runs, tools die at moments of the seed.
random_kills() {
  local tools=(receive filter walsend shadow catalog decode.main emit.main) n=0
  RANDOM=$1
  while alive workload; do
    pipe_kill9 "${tools[RANDOM % ${#tools[@]}]}" && n=$((n + 1))
    proc_nap "$((RANDOM % 2)).$((RANDOM % 9))"
  done
  note "seed $1: $n kills"
}

# random_round SEED STATEMENTS: one seed on the running pipeline.  Odd ones run their sessions side by
# side, each third one kills tools meanwhile.
random_round() {
  local seed=$1 schema=g$1 start how=()
  ((seed % 2)) && how=(-p)
  RANDOM_DB=$(sql src/app 'SELECT oid FROM pg_database WHERE datname = current_database()')
  sql src/app "SELECT pg_create_logical_replication_slot('oracle', 'test_decoding')" >/dev/null || return 1
  start=$(sql src 'SELECT pg_current_wal_insert_lsn()')
  sqlgen "$seed" "$2" "$schema" ${WS_TOAST:+toast} >"$T/round.sql"
  rm -f "$T/workload.out" "$T/workload.err"
  BG_IN=$T/round.sql bg workload sqlrun "$(pg_conninfo src app)" "${how[@]}"
  ((seed % 3)) || random_kills "$seed"
  wait_exit workload 300
  if [ "$STATUS" != 0 ]; then
    fail "seed $seed: the workload runs" "$(tail -n 3 "$T/workload.err")"
    return 1
  fi
  note "seed $seed: $(tr '\n' ';' <"$T/workload.out")"
  random_drained "$seed" || return 1
  random_tables "$seed" "$schema"
  random_decoded "$seed" "$start"
  random_catalogs "$seed"
  sql src/app "SELECT pg_drop_replication_slot('oracle')" >/dev/null
}
